//! The number of changes of clocks.

use bevy_platform::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// Counts the changes of the clocks of a world, so that a computed value can tell whether it still
/// holds. Each run is a change.
///
/// Copies share one counter. Reading it takes no lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes(Arc<AtomicU64>);

impl Changes {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Counts a change, before it happens.
    pub(crate) fn note(&self) {
        self.0.fetch_add(1, Relaxed);
    }
}

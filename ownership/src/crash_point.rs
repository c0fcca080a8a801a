//! Named places in the code at which tests kill the process.
//!
//! Without the feature `crash-points` the macro expands to nothing.

#[cfg(feature = "crash-points")]
use std::sync::OnceLock;

/// Marks a place at which a test can kill the process.
macro_rules! crash_point {
    ($name:literal) => {
        #[cfg(feature = "crash-points")]
        $crate::crash_point::pass($name);
    };
}
pub(crate) use crash_point;

/// The names of all crash points, in the order in which a journal first passes them.
#[cfg(feature = "crash-points")]
pub const CRASH_POINTS: &[&str] = &[
    "segment.created",
    "segment.header_synced",
    "tail.cut",
    "batch.half_written",
    "batch.written",
    "batch.synced",
    "boot.synced",
    "journal.opened",
    "effects.half_released",
    "effects.released",
    "live.copied",
    "segment.deleted",
];

#[cfg(feature = "crash-points")]
type Hook = Box<dyn Fn(&'static str) + Send + Sync>;

#[cfg(feature = "crash-points")]
static HOOK: OnceLock<Hook> = OnceLock::new();

/// Calls `hook` with the name of each crash point that a thread of this process passes.
///
/// The first hook stays for the life of the process.
#[cfg(feature = "crash-points")]
pub fn set_crash_hook(hook: impl Fn(&'static str) + Send + Sync + 'static) {
    _ = HOOK.set(Box::new(hook));
}

#[cfg(feature = "crash-points")]
pub(crate) fn pass(name: &'static str) {
    debug_assert!(
        CRASH_POINTS.contains(&name),
        "`{name}` is not in the table of crash points"
    );
    if let Some(hook) = HOOK.get() {
        hook(name);
    }
}

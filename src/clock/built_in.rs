//! The components of the built-in clocks, which are not entities.

use bevy_ecs::prelude::*;

use super::{Clock, row::ClockKey, shared::ClockTable, table::BUILT_IN};

/// The `Clock` of each built-in clock, by key.
#[derive(Resource)]
pub(crate) struct BuiltInClocks(pub(super) [Clock; BUILT_IN.len()]);

impl BuiltInClocks {
    /// Creates the handles of the built-in clocks, whose key is also their age.
    pub(crate) fn new(table: &ClockTable) -> Self {
        Self(core::array::from_fn(|key| {
            table.handle(key as ClockKey, key as u64).into()
        }))
    }
}

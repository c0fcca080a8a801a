//! Finding a timer by its key.

use alloc::string::String;
use core::fmt;

use bevy_ecs::prelude::*;

use super::{Timer, key_id::KeyId, key_table::KeyTable};
use crate::call::report;

/// Returns the entity of the timer of `owner` with this key, if any.
///
/// Debug builds report a key that no timer of this world has had.
pub(super) fn find_keyed(world: &mut World, owner: Entity, key: &str) -> Option<Entity> {
    let table = world.get_resource::<KeyTable>()?;
    if cfg!(debug_assertions) && !table.is_used(key) {
        let error = UnusedKey(key.into());
        report::<Timer>(world, BevyError::warning(error));
        return None;
    }
    table.get(owner, KeyId::find(key)?)
}

/// The error for a key that no timer of the world has had.
#[derive(Debug)]
struct UnusedKey(String);

impl fmt::Display for UnusedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no timer has had the key {:?}: check its spelling, or use a type that implements \
             `TimerKey`",
            self.0
        )
    }
}

impl core::error::Error for UnusedKey {}

//! Finding a timer by its key.

use alloc::string::String;
use core::fmt;

use bevy_ecs::prelude::*;

use super::{IntoKey, Timer, key_id::KeyId, key_table::KeyTable};
use crate::call::report;

/// Returns the entity of the timer of `owner` with this key, if any.
///
/// Debug builds report a string that no timer of this world has had as its key, once.
pub(super) fn find_keyed(world: &mut World, owner: Entity, key: &impl IntoKey) -> Option<Entity> {
    let name = key.name();
    if cfg!(debug_assertions) && !key.is_typed() {
        report_unused(world, &name);
    }
    let table = world.get_resource::<KeyTable>()?;
    table.get(owner, KeyId::find(&name)?)
}

fn report_unused(world: &mut World, name: &str) {
    if let Some(mut table) = world.get_resource_mut::<KeyTable>()
        && table.use_name(name)
    {
        let error = UnusedKey(name.into());
        report::<Timer>(world, BevyError::warning(error));
    }
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

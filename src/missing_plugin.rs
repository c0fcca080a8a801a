//! The report of a use of this crate in a world without the plugin.

use core::fmt;

use bevy_ecs::{prelude::*, world::DeferredWorld};

use crate::roster::Intake;

/// The first use of this crate in a world without the plugin.
#[derive(Debug)]
struct MissingPlugin(&'static str);

impl fmt::Display for MissingPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} does nothing in a world without `DuePlugin`: add it to the app",
            self.0
        )
    }
}

impl core::error::Error for MissingPlugin {}

/// Present once the world has been reported.
#[derive(Resource)]
struct Reported;

/// Warns once per world if the world has no plugin.
///
/// It is not an error: the plugin may be added later, and the world may only hold a scene.
pub(crate) fn warn_without_plugin(world: &mut DeferredWorld, what: &'static str) {
    if world.contains_resource::<Intake>() || world.contains_resource::<Reported>() {
        return;
    }
    world.commands().queue(move |world: &mut World| -> Result {
        if world.contains_resource::<Reported>() {
            return Ok(());
        }
        world.insert_resource(Reported);
        Err(BevyError::warning(MissingPlugin(what)))
    });
}

//! The report of a use of this crate in a world without the plugin.

use alloc::format;

use bevy_ecs::{prelude::*, world::DeferredWorld};

use crate::{clock::ClockTable, report::report};

/// Present if the missing plugin was reported.
#[derive(Resource)]
struct Reported;

/// Warns once per world if the world has no plugin.
///
/// It is not an error: the plugin may be added later, and the world may only hold a scene.
pub(crate) fn warn_without_plugin(world: &mut DeferredWorld, what: &'static str) {
    if has_nothing_to_report(world) {
        return;
    }
    world.commands().queue(move |world: &mut World| {
        if has_nothing_to_report(world) {
            return;
        }
        world.insert_resource(Reported);
        let error =
            format!("{what} does nothing in a world without `DuePlugin`: add it to the app");
        report::<Reported>(world, BevyError::warning(error));
    });
}

/// Returns `true` if the world has the plugin, or has been reported. A restore takes the table out for a while, but its
/// entity stays.
fn has_nothing_to_report(world: &World) -> bool {
    world.resource_entity::<ClockTable>().is_some() || world.contains_resource::<Reported>()
}

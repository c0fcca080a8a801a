//! The report of a use of this crate in a world without the plugin.

use alloc::format;

use bevy_ecs::{prelude::*, world::DeferredWorld};

use crate::report::report;

/// Present if there is nothing to report: the world has the plugin, or it has been reported.
#[derive(Resource)]
pub(crate) struct NothingToReport;

/// Warns once per world if the world has no plugin.
///
/// It is not an error: the plugin may be added later, and the world may only hold a scene.
pub(crate) fn warn_without_plugin(world: &mut DeferredWorld, what: &'static str) {
    if world.contains_resource::<NothingToReport>() {
        return;
    }
    world.commands().queue(move |world: &mut World| {
        if world.contains_resource::<NothingToReport>() {
            return;
        }
        world.insert_resource(NothingToReport);
        let error =
            format!("{what} does nothing in a world without `DuePlugin`: add it to the app");
        report::<NothingToReport>(world, BevyError::warning(error));
    });
}

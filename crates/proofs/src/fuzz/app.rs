//! An app that is quick to build, because each run of a fuzzer needs a new one.

use core::time::Duration;

use bevy_app::{App, FixedPreUpdate, PreUpdate};
use bevy_due::DuePlugin;
use bevy_ecs::{
    error::{BevyError, ErrorContext, FallbackErrorHandler, Severity},
    prelude::*,
    schedule::SingleThreadedExecutor,
};
use bevy_time::prelude::*;

/// Builds an app that only has the schedules of the plugin. [`frame`] and [`fixed_step`] run them.
pub(super) fn app(due: DuePlugin) -> App {
    let mut app = App::empty();
    app.init_resource::<AppTypeRegistry>()
        .init_resource::<Time>()
        .init_resource::<Time<Real>>()
        .init_resource::<Time<Virtual>>()
        .init_resource::<Time<Fixed>>()
        .insert_resource(FallbackErrorHandler(only_warnings))
        .add_plugins(due);
    app.edit_schedule(PreUpdate, |schedule| {
        schedule.set_executor(SingleThreadedExecutor::new());
    });
    app.edit_schedule(FixedPreUpdate, |schedule| {
        schedule.set_executor(SingleThreadedExecutor::new());
    });
    app
}

/// Runs a frame in which this much time has passed.
pub(super) fn frame(world: &mut World, span: Duration) {
    world.resource_mut::<Time<Real>>().advance_by(span);
    world.resource_mut::<Time<Virtual>>().advance_by(span);
    world.run_schedule(PreUpdate);
}

/// Runs a step of the fixed schedule.
pub(super) fn fixed_step(world: &mut World, span: Duration) {
    world.resource_mut::<Time<Fixed>>().advance_by(span);
    world.run_schedule(FixedPreUpdate);
}

/// A script may name a handler that does not exist. Any other error is a fault.
fn only_warnings(error: BevyError, context: ErrorContext) {
    let text = error.to_string();
    let is_expected = text.contains("no timer handler is registered");
    assert!(
        is_expected || error.severity() <= Severity::Warning,
        "{text}, {context}"
    );
}

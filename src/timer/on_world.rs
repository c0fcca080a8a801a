//! Queries of timers with exclusive access to the world.

use bevy_ecs::{
    prelude::*,
    system::{SystemParamValidationError, SystemState},
};

use super::status::ArmedTimers;

/// The state that [`ArmedTimers`] needs, kept between calls.
#[derive(Resource, Default)]
struct Cache(Option<SystemState<ArmedTimers<'static, 'static>>>);

/// Calls `ask` with the timers of a world.
///
/// # Errors
///
/// Returns an error if the world has no plugin.
pub(crate) fn try_with_timers<Out>(
    world: &mut World,
    ask: impl FnOnce(ArmedTimers) -> Out,
) -> Result<Out, SystemParamValidationError> {
    // Pending commands may change timers.
    world.flush();
    let cached = world.get_resource_or_init::<Cache>().0.take();
    let mut state = cached.unwrap_or_else(|| SystemState::new(world));
    let answer = state.get(world).map(ask);
    world.get_resource_or_init::<Cache>().0 = Some(state);
    answer
}

/// Calls `ask` with the timers of a world, which must have the plugin.
#[track_caller]
pub(crate) fn with_timers<Out>(world: &mut World, ask: impl FnOnce(ArmedTimers) -> Out) -> Out {
    match try_with_timers(world, ask) {
        Ok(answer) => answer,
        Err(error) => panic!("{error}"),
    }
}

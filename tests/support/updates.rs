//! Callbacks for the tests of `UpdateComponent`, which log their calls.

use core::mem;

use bevy_app::App;
use bevy_due::{ClockId, UpdateComponent, UpdateContext};
use bevy_ecs::prelude::*;

use super::*;

/// The names of the callbacks called so far, in order.
#[derive(Resource, Default)]
struct Called(Vec<&'static str>);

/// Creates an app with a log of the calls.
pub fn update_app() -> App {
    let mut app = app();
    log_calls(&mut app);
    app
}

/// Prepares an app for [`say`], [`doing`] and [`called`].
pub fn log_calls(app: &mut App) {
    app.init_resource::<Called>();
}

/// Returns a callback that logs `what`.
pub fn say(what: &'static str) -> UpdateComponent {
    doing(what, |_, _| ())
}

/// Returns a callback that queues a command. The command logs `what`, and runs `act` with the
/// entity of the component.
pub fn doing(
    what: &'static str,
    act: impl Fn(&mut World, Entity) + Copy + Send + Sync + 'static,
) -> UpdateComponent {
    UpdateComponent::new(move |mut me: UpdateContext| {
        let id = me.update_entity;
        me.commands.queue(move |world: &mut World| {
            note(world, what);
            act(world, id);
        });
    })
}

/// Pauses all callbacks from a priority up, or resumes all of them.
pub fn pause_updates(world: &mut World, from: Option<i32>) {
    match from {
        Some(priority) => world.commands().pause_updates_from(priority),
        None => world.commands().resume_updates(),
    }
    world.flush();
}

pub fn note(world: &mut World, what: &'static str) {
    world.resource_mut::<Called>().0.push(what);
}

/// Takes the log of the calls.
pub fn called(app: &mut App) -> Vec<&'static str> {
    mem::take(&mut app.world_mut().resource_mut::<Called>().0)
}

/// The times passed to the callback of an entity, one [`Tick`] per call.
#[derive(Component, Default)]
pub struct Ticks(Vec<Tick>);

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tick {
    pub delta: Duration,
    pub elapsed: Duration,
    pub clock: ClockId,
}

/// Returns a callback that records its times in the [`Ticks`] of its entity.
pub fn note_time() -> UpdateComponent {
    UpdateComponent::new(|mut me: UpdateContext| {
        let tick = Tick {
            delta: me.delta,
            elapsed: me.elapsed,
            clock: me.clock,
        };
        me.entity.get_mut::<Ticks>().unwrap().0.push(tick);
    })
}

/// Takes the ticks of an entity.
pub fn ticks(app: &mut App, entity: Entity) -> Vec<Tick> {
    mem::take(&mut app.world_mut().get_mut::<Ticks>(entity).unwrap().0)
}

/// Takes the ticks of an entity, as pairs of delta and elapsed time in milliseconds.
pub fn times(app: &mut App, entity: Entity) -> Vec<(u128, u128)> {
    let ticks = ticks(app, entity).into_iter();
    ticks
        .map(|tick| (tick.delta.as_millis(), tick.elapsed.as_millis()))
        .collect()
}

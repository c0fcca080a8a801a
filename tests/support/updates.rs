//! What the tests of `UpdateComponent` share: functions that say when they are called.

use core::mem;

use bevy_app::App;
use bevy_due::{ClockId, UpdateComponent, UpdateContext};
use bevy_ecs::prelude::*;

use super::*;

/// What has been called, in order.
#[derive(Resource, Default)]
struct Called(Vec<&'static str>);

/// The same app with a log of what is called.
pub fn update_app() -> App {
    let mut app = app();
    log_calls(&mut app);
    app
}

/// Prepares an app for [`say`], [`doing`] and [`called`].
pub fn log_calls(app: &mut App) {
    app.init_resource::<Called>();
}

/// One that says that it has been called.
pub fn say(what: &'static str) -> UpdateComponent {
    doing(what, |_, _| ())
}

/// One that says that it has been called, and then does something to the world by a command. It is
/// told the entity with the component.
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

/// Pauses all callbacks from a priority on, or none.
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

/// Takes the log: what has been called, in order.
pub fn called(app: &mut App) -> Vec<&'static str> {
    mem::take(&mut app.world_mut().resource_mut::<Called>().0)
}

/// What the function of an entity was told in each of its calls.
#[derive(Component, Default)]
pub struct Ticks(Vec<Tick>);

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tick {
    pub delta: Duration,
    pub elapsed: Duration,
    pub clock: ClockId,
}

/// One that notes what it is told of the time, in the [`Ticks`] of its entity.
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

/// Takes what the function of an entity was told.
pub fn ticks(app: &mut App, entity: Entity) -> Vec<Tick> {
    mem::take(&mut app.world_mut().get_mut::<Ticks>(entity).unwrap().0)
}

/// Takes what the function of an entity was told of the time, in milliseconds: how much has passed,
/// and what its clock shows.
pub fn times(app: &mut App, entity: Entity) -> Vec<(u128, u128)> {
    let ticks = ticks(app, entity).into_iter();
    ticks
        .map(|tick| (tick.delta.as_millis(), tick.elapsed.as_millis()))
        .collect()
}

//! Shared set-up: an app with manual time, and logs of firings and cancellations.

#![allow(unreachable_pub, reason = "test code")]

pub mod errors;
pub mod updates;

use core::{num::NonZeroU32, time::Duration};

use bevy_app::prelude::*;
use bevy_due::{CancelReason, TimerCancelled, clock::ClockMut, prelude::*, timer::TimerStatus};
use bevy_ecs::{prelude::*, system::RunSystemOnce};
use bevy_time::{Fixed, Time, TimePlugin, TimeUpdateStrategy, Virtual};

/// The name under which a timer appears in the log.
#[derive(Component, Clone, Copy)]
pub struct Tag(pub &'static str);

/// The firings since the log was last taken, in order.
#[derive(Resource, Default)]
struct Log(Vec<(&'static str, TimerFired)>);

/// The cancellations since the log was last taken, in order.
#[derive(Resource, Default)]
struct CancelLog(Vec<TimerCancelled>);

/// Creates an app whose time moves only through [`advance`].
pub fn app() -> App {
    app_with(DuePlugin::default())
}

/// Like [`app`], with custom plugin settings.
pub fn app_with(plugin: DuePlugin) -> App {
    let mut app = unobserved_app_with(plugin);
    app.init_resource::<Log>()
        .init_resource::<CancelLog>()
        .add_observer(
            |fired: On<TimerFired>, tags: Query<&Tag>, mut log: ResMut<Log>| {
                // An observed owner receives the same event again: log it once.
                if fired.event_target() == fired.entity() {
                    let tag = tags.get(fired.entity()).map_or("", |tag| tag.0);
                    log.0.push((tag, *fired));
                }
            },
        )
        .add_observer(
            |cancelled: On<TimerCancelled>, mut log: ResMut<CancelLog>| {
                log.0.push(*cancelled);
            },
        );
    app
}

/// Like [`app`], without observers and logs.
pub fn unobserved_app() -> App {
    unobserved_app_with(DuePlugin::default())
}

/// Like [`unobserved_app`], with custom plugin settings.
pub fn unobserved_app_with(plugin: DuePlugin) -> App {
    let mut app = App::new();
    app.add_plugins((TimePlugin, plugin));
    app.world_mut()
        .resource_mut::<Time<Virtual>>()
        .set_max_delta(Duration::MAX);
    // With the default step, a jump of a century would run billions of fixed steps.
    app.insert_resource(Time::<Fixed>::from_duration(Duration::MAX));
    advance(&mut app, Duration::ZERO);
    app
}

/// Returns the default settings with this burst limit.
pub fn burst_limit(limit: u32) -> DuePlugin {
    DuePlugin {
        burst_limit: NonZeroU32::new(limit).unwrap(),
        ..DuePlugin::default()
    }
}

/// Returns the time of the game clock, which was not set or fast-forwarded.
#[cfg(feature = "serialize")]
pub fn game_time(app: &App) -> Duration {
    app.world().resource::<Time<Virtual>>().elapsed()
}

/// Runs one frame that takes `by`.
pub fn advance(app: &mut App, by: Duration) {
    app.insert_resource(TimeUpdateStrategy::ManualDuration(by));
    app.update();
}

pub fn advance_ms(app: &mut App, millis: u64) {
    advance(app, ms(millis));
}

/// Returns the time that a clock shows.
pub fn now(app: &App, clock: impl Into<ClockId>) -> Duration {
    app.world()
        .clock_now(clock)
        .expect("there should be a clock")
}

/// Changes a clock at once.
pub fn change_clock(app: &mut App, clock: impl Into<ClockId>, change: impl FnOnce(&mut ClockMut)) {
    let changed = app.world_mut().change_clock(clock, change);
    changed.expect("there should be a clock");
}

/// Returns a clock with its present settings and time.
pub fn clock(app: &mut App, clock: impl Into<ClockId>) -> Clock {
    let clock = clock.into();
    let get = move |clocks: Clocks| clocks.get(clock).expect("there should be a clock");
    app.world_mut().run_system_once(get).expect("a system")
}

/// Returns the state of an armed timer.
pub fn status(app: &mut App, timer: Entity) -> TimerStatus {
    let status = app.world_mut().with_timers(|timers| timers.get(timer));
    status.expect("it is armed")
}

pub fn spawn_clock(app: &mut App, clock: Clock) -> Entity {
    app.world_mut().spawn(clock).id()
}

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A timer with this marker survives [`cancel_deletable`].
#[derive(Component)]
pub struct Survives;

/// Cancels the owner's own timer and all its owned timers, except timers marked [`Survives`].
pub fn cancel_deletable(world: &mut World, owner: Entity) {
    let survives = |world: &World, timer: Entity| world.entity(timer).contains::<Survives>();
    let owned = owned(world, owner).into_iter();
    let owned: Vec<Entity> = owned.filter(|&timer| !survives(world, timer)).collect();
    if !survives(world, owner) {
        world.entity_mut(owner).remove::<bevy_due::Timer>();
    }
    for timer in owned {
        world.despawn(timer);
    }
}

/// Takes the log: the tag of each firing, in order.
pub fn fired(app: &mut App) -> Vec<&'static str> {
    take_fired(app).into_iter().map(|(tag, _)| tag).collect()
}

/// Takes the log: the tag and the deadline in milliseconds of each firing, in order.
pub fn fired_at(app: &mut App) -> Vec<(&'static str, u128)> {
    take_fired(app)
        .into_iter()
        .map(|(tag, fired)| (tag, fired.deadline().as_millis()))
        .collect()
}

/// Takes the log: the full event of each firing, in order.
pub fn firings(app: &mut App) -> Vec<TimerFired> {
    take_fired(app)
        .into_iter()
        .map(|(_, fired)| fired)
        .collect()
}

fn take_fired(app: &mut App) -> Vec<(&'static str, TimerFired)> {
    core::mem::take(&mut app.world_mut().resource_mut::<Log>().0)
}

/// Takes the log of cancellations: each timer with its reason, in order.
pub fn cancelled(app: &mut App) -> Vec<(Entity, CancelReason)> {
    core::mem::take(&mut app.world_mut().resource_mut::<CancelLog>().0)
        .into_iter()
        .map(|cancelled| (cancelled.entity(), cancelled.reason()))
        .collect()
}

/// Sets a keyed timer that is logged as its key, and returns its entity.
pub fn set_timer(
    world: &mut World,
    owner: Entity,
    key: &'static str,
    timer: bevy_due::Timer,
) -> Entity {
    use bevy_due::DueEntityCommandsExt;
    world.entity_mut(owner).set_timer(key, (timer, Tag(key)));
    *owned(world, owner)
        .last()
        .expect("the new timer is the last")
}

/// Returns the entities that belong to `owner`.
pub fn owned(world: &World, owner: Entity) -> Vec<Entity> {
    let owned = world.get::<Owned>(owner);
    owned.into_iter().flat_map(Owned::iter).collect()
}

/// Spawns a timer that is logged as `tag`.
pub fn spawn(app: &mut App, tag: &'static str, timer: bevy_due::Timer) -> Entity {
    app.world_mut().spawn((Tag(tag), timer)).id()
}

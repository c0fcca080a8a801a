//! Apps with this crate's timers, and apps with Bevy's alternatives. All of them react in the same way:
//! they record the entity of the firing.

use core::time::Duration;

use bevy_app::prelude::*;
use bevy_due::{Timer, prelude::*};
use bevy_ecs::{prelude::*, schedule::SingleThreadedExecutor};
use bevy_time::{DelayedCommandsExt, Time, TimePlugin, TimeUpdateStrategy, TimerMode, Virtual};

use crate::work::{FRAME, random};

/// The first delay and the period of a timer, in nanoseconds.
#[derive(Clone, Copy)]
pub struct TimerSpec {
    pub first: u64,
    pub period: u64,
}

/// The sum over all firings. It ignores their order, because Bevy's timers do not keep one.
#[derive(Resource, Default)]
pub struct Fired {
    pub checksum: u64,
    /// The index of the first entity. The others follow without a gap.
    start: u32,
}

impl Fired {
    fn record(&mut self, entity: Entity, times: u32) {
        let nth = entity.index_u32() - self.start;
        let sum = random(nth.into()).wrapping_mul(times.into());
        self.checksum = self.checksum.wrapping_add(sum);
    }
}

/// Runs all schedules on one thread, because waking another one takes longer than an empty frame.
pub fn on_one_thread(mut app: App) -> App {
    for (_, schedule) in app.world_mut().resource_mut::<Schedules>().iter_mut() {
        schedule.set_executor(SingleThreadedExecutor::new());
    }
    app
}

/// Spawns an entity per spec, with consecutive indices.
fn spawn<B: Component>(
    app: &mut App,
    specs: &[TimerSpec],
    bundle: impl Fn(&TimerSpec) -> B,
) -> Vec<Entity> {
    let entities: Vec<_> = app
        .world_mut()
        .spawn_batch(specs.iter().map(bundle))
        .collect();
    if let Some(first) = entities.first() {
        let start = first.index_u32();
        let indices = entities.iter().map(|entity| entity.index_u32());
        assert!(
            indices.eq((start..).take(entities.len())),
            "indices should be consecutive"
        );
        app.world_mut().resource_mut::<Fired>().start = start;
    }
    entities
}

/// Returns an app without timers. Its frames take a sixtieth of a second.
pub fn app() -> App {
    let mut app = App::new();
    app.add_plugins(TimePlugin)
        .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_nanos(
            FRAME,
        )))
        .init_resource::<Fired>();
    app
}

pub fn empty_app(_: &[TimerSpec]) -> App {
    on_one_thread(app())
}

/// This crate's timers, without a reader or an observer.
pub fn due_without_reaction(specs: &[TimerSpec]) -> App {
    on_one_thread(due(specs))
}

/// Returns an app with this crate's plugin, and without timers.
pub fn due_app() -> App {
    let mut app = app();
    app.add_plugins(DuePlugin::default());
    app
}

/// This crate's timers, on any number of threads.
pub fn due(specs: &[TimerSpec]) -> App {
    let mut app = due_app();
    spawn_timers(&mut app, specs);
    app
}

fn spawn_timers(app: &mut App, specs: &[TimerSpec]) {
    spawn(app, specs, |spec| {
        let timer = Timer::every(Duration::from_nanos(spec.period));
        timer.first_after(Duration::from_nanos(spec.first))
    });
}

/// This crate's timers in exact frames, and a system that reads their messages.
pub fn exact_messages(specs: &[TimerSpec]) -> App {
    let mut app = app();
    app.add_plugins(DuePlugin {
        exact_frames: true,
        ..DuePlugin::default()
    });
    spawn_timers(&mut app, specs);
    read_messages(&mut app);
    on_one_thread(app)
}

/// This crate's timers, and a system that reads their messages.
pub fn due_messages(specs: &[TimerSpec]) -> App {
    let mut app = due(specs);
    read_messages(&mut app);
    on_one_thread(app)
}

/// Adds a system that reads the messages of firings.
pub fn read_messages(app: &mut App) {
    app.add_systems(
        Update,
        |mut messages: MessageReader<TimerFired>, mut fired: ResMut<Fired>| {
            for message in messages.read() {
                fired.record(message.entity(), 1);
            }
        },
    );
}

/// This crate's timers, and a global observer of their firings.
pub fn due_observer(specs: &[TimerSpec]) -> App {
    let mut app = due(specs);
    app.add_observer(|event: On<TimerFired>, mut fired: ResMut<Fired>| {
        fired.record(event.entity(), 1);
    });
    on_one_thread(app)
}

#[derive(Component, Clone)]
pub struct Ticked(bevy_time::Timer);

/// Bevy's timers: a system ticks the one on each entity, and reacts when it has finished.
pub fn bevy_timer(specs: &[TimerSpec]) -> App {
    let mut app = app();
    spawn(&mut app, specs, |spec| {
        let period = Duration::from_nanos(spec.period);
        let mut timer = bevy_time::Timer::new(period, TimerMode::Repeating);
        timer.set_elapsed(period.saturating_sub(Duration::from_nanos(spec.first)));
        Ticked(timer)
    });
    app.add_systems(
        Update,
        |mut timers: Query<(Entity, &mut Ticked)>, time: Res<Time>, mut fired: ResMut<Fired>| {
            for (entity, mut timer) in &mut timers {
                if timer.0.tick(time.delta()).just_finished() {
                    fired.record(entity, timer.0.times_finished_this_tick());
                }
            }
        },
    );
    on_one_thread(app)
}

#[derive(Component)]
struct Delayed;

/// Bevy's delayed commands: each one queues the next for its entity.
pub fn delayed_commands(specs: &[TimerSpec]) -> App {
    fn fire(world: &mut World, entity: Entity, deadline: Duration, period: Duration) {
        world.resource_mut::<Fired>().record(entity, 1);
        delay(world, entity, deadline + period, period);
    }

    fn delay(world: &mut World, entity: Entity, deadline: Duration, period: Duration) {
        let now = world.resource::<Time<Virtual>>().elapsed();
        world
            .commands()
            .delayed()
            .duration(deadline.saturating_sub(now))
            .queue(move |world: &mut World| fire(world, entity, deadline, period));
    }

    let mut app = app();
    let entities = spawn(&mut app, specs, |_| Delayed);
    let world = app.world_mut();
    for (entity, spec) in entities.into_iter().zip(specs) {
        let period = Duration::from_nanos(spec.period);
        delay(world, entity, Duration::from_nanos(spec.first), period);
    }
    world.flush();
    on_one_thread(app)
}

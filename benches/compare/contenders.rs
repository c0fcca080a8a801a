//! Apps with timers: this crate's, and what Bevy has for it. All react in the same way: they note
//! which entity it was.

use core::time::Duration;

use bevy_app::prelude::*;
use bevy_due::{Timer, prelude::*};
use bevy_ecs::{prelude::*, schedule::SingleThreadedExecutor};
use bevy_time::{DelayedCommandsExt, Time, TimePlugin, TimeUpdateStrategy, TimerMode, Virtual};

use crate::work::{FRAME, random};

/// What the timer of an entity does.
#[derive(Clone, Copy)]
pub struct Work {
    pub first: u64,
    pub period: u64,
}

/// Of all that has fired, in whatever order: the timers of Bevy know none.
#[derive(Resource, Default)]
pub struct Fired {
    pub checksum: u64,
    /// The index of the first entity. The others have been spawned in order.
    start: u32,
}

impl Fired {
    fn note(&mut self, entity: Entity, times: u32) {
        let nth = entity.index_u32() - self.start;
        let sum = random(nth.into()).wrapping_mul(times.into());
        self.checksum = self.checksum.wrapping_add(sum);
    }
}

/// One thread for all, because waking another costs more than an empty frame.
pub fn on_one_thread(mut app: App) -> App {
    for (_, schedule) in app.world_mut().resource_mut::<Schedules>().iter_mut() {
        schedule.set_executor(SingleThreadedExecutor::new());
    }
    app
}

/// Spawns the entities, with indices one after the other.
fn spawn<B: Component>(app: &mut App, work: &[Work], bundle: impl Fn(&Work) -> B) -> Vec<Entity> {
    let entities: Vec<_> = app
        .world_mut()
        .spawn_batch(work.iter().map(bundle))
        .collect();
    if let Some(first) = entities.first() {
        let start = first.index_u32();
        let indices = entities.iter().map(|entity| entity.index_u32());
        assert!(indices.eq((start..).take(entities.len())), "not in order");
        app.world_mut().resource_mut::<Fired>().start = start;
    }
    entities
}

/// An app without timers whose frames take a sixtieth of a second.
pub fn app() -> App {
    let mut app = App::new();
    app.add_plugins(TimePlugin)
        .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_nanos(
            FRAME,
        )))
        .init_resource::<Fired>();
    app
}

pub fn empty_app(_: &[Work]) -> App {
    on_one_thread(app())
}

/// This crate's timers, and nobody who reads or observes what they fire.
pub fn due_alone(work: &[Work]) -> App {
    on_one_thread(due(work))
}

fn due(work: &[Work]) -> App {
    let mut app = app();
    app.add_plugins(DuePlugin::default());
    spawn(&mut app, work, |work| {
        let timer = Timer::every(Duration::from_nanos(work.period));
        timer.first_after(Duration::from_nanos(work.first))
    });
    app
}

/// A system that reads the messages of this crate.
pub fn due_messages(work: &[Work]) -> App {
    let mut app = due(work);
    app.add_systems(
        Update,
        |mut messages: MessageReader<TimerFired>, mut fired: ResMut<Fired>| {
            for message in messages.read() {
                fired.note(message.entity(), 1);
            }
        },
    );
    on_one_thread(app)
}

/// An observer of all that this crate fires.
pub fn due_observer(work: &[Work]) -> App {
    let mut app = due(work);
    app.add_observer(|event: On<TimerFired>, mut fired: ResMut<Fired>| {
        fired.note(event.entity(), 1);
    });
    on_one_thread(app)
}

#[derive(Component)]
struct Ticked(bevy_time::Timer);

/// A system that ticks a timer on each entity, and reacts where it finds one finished.
pub fn bevy_timer(work: &[Work]) -> App {
    let mut app = app();
    spawn(&mut app, work, |work| {
        let period = Duration::from_nanos(work.period);
        let mut timer = bevy_time::Timer::new(period, TimerMode::Repeating);
        timer.set_elapsed(period.saturating_sub(Duration::from_nanos(work.first)));
        Ticked(timer)
    });
    app.add_systems(
        Update,
        |mut timers: Query<(Entity, &mut Ticked)>, time: Res<Time>, mut fired: ResMut<Fired>| {
            for (entity, mut timer) in &mut timers {
                if timer.0.tick(time.delta()).just_finished() {
                    fired.note(entity, timer.0.times_finished_this_tick());
                }
            }
        },
    );
    on_one_thread(app)
}

#[derive(Component)]
struct Delayed;

/// Delayed commands, each of which queues the next of its entity.
pub fn delayed_commands(work: &[Work]) -> App {
    fn fire(world: &mut World, entity: Entity, deadline: Duration, period: Duration) {
        world.resource_mut::<Fired>().note(entity, 1);
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
    let entities = spawn(&mut app, work, |_| Delayed);
    let world = app.world_mut();
    for (entity, work) in entities.into_iter().zip(work) {
        let period = Duration::from_nanos(work.period);
        delay(world, entity, Duration::from_nanos(work.first), period);
    }
    world.flush();
    on_one_thread(app)
}

//! Promise 8: the same inputs give the same firings in the same order, on any number of threads.

mod support;

use core::time::Duration;
use std::collections::HashMap;

use bevy_app::{TaskPoolOptions, TaskPoolPlugin, prelude::*};
use bevy_due::{OwnedBy, Timer, TimerFired};
use bevy_ecs::{
    prelude::*,
    schedule::{MultiThreadedExecutor, ScheduleLabel, SingleThreadedExecutor, SystemExecutor},
};
use support::*;

/// A linear congruential generator, which gives the same numbers on every platform.
#[derive(Resource)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// Arms, re-arms, cancels or despawns at random at every firing.
fn act_at_random(
    fired: On<TimerFired>,
    timers: Query<Entity, With<Timer>>,
    mut dice: ResMut<Dice>,
    mut commands: Commands,
) {
    let delay = ms(dice.roll(300));
    match dice.roll(8) {
        0 => {
            commands.spawn((Tag("child"), Timer::after(delay)));
        }
        1 => {
            let every = Timer::every(ms(1 + dice.roll(40))).first_after(delay);
            commands.entity(fired.entity()).insert(every);
        }
        2 => {
            commands.spawn((Tag("owned"), OwnedBy(fired.entity()), Timer::every(ms(25))));
        }
        3 if timers.count() > 20 => {
            if let Some(other) = timers.iter().nth(dice.roll(20) as usize) {
                commands.entity(other).despawn();
            }
        }
        4 if timers.count() > 20 => {
            if let Some(other) = timers.iter().nth(dice.roll(20) as usize) {
                commands.entity(other).remove::<Timer>();
            }
        }
        _ => {}
    }
}

/// Spawns a timer every `N` frames. The instances are unordered, so they may run in parallel.
fn spawn_every<const N: u32>(mut frames: Local<u32>, mut commands: Commands) {
    *frames += 1;
    if frames.is_multiple_of(N) {
        let delay = ms(u64::from(10 * N));
        commands.spawn((Tag("parallel"), Timer::every(delay).times(N)));
    }
}

/// Arms timers from several schedules and returns all firings of about two seconds.
fn run(configure: fn(&mut App)) -> Vec<(u64, Duration, u64)> {
    let mut app = app();
    configure(&mut app);
    app.insert_resource(Dice(42))
        .add_observer(act_at_random)
        .add_systems(Update, |mut dice: ResMut<Dice>, mut commands: Commands| {
            let timer = Timer::every(ms(5 + dice.roll(50)));
            commands.spawn((Tag("update"), timer));
        })
        .add_systems(
            Update,
            (spawn_every::<3>, spawn_every::<4>, spawn_every::<5>),
        )
        .add_systems(Last, spawn_every::<2>);
    for frame in 0..120 {
        advance_ms(&mut app, if frame % 10 == 0 { 90 } else { 8 });
    }
    // Entity bits depend on Bevy's features, so entities are numbered by their first firing.
    let mut known = HashMap::new();
    firings(&mut app)
        .iter()
        .map(|fired| {
            let next = known.len() as u64;
            let entity = *known.entry(fired.entity()).or_insert(next);
            (entity, fired.deadline(), fired.count())
        })
        .collect()
}

fn set_executor<E: SystemExecutor + 'static>(app: &mut App, executor: fn() -> E) {
    for label in [
        First.intern(),
        PreUpdate.intern(),
        Update.intern(),
        Last.intern(),
    ] {
        app.edit_schedule(label, |schedule| {
            schedule.set_executor(executor());
        });
    }
}

fn on_threads(app: &mut App) {
    app.add_plugins(TaskPoolPlugin {
        task_pool_options: TaskPoolOptions::with_num_threads(4),
    });
    set_executor(app, MultiThreadedExecutor::new);
}

fn on_one_thread(app: &mut App) {
    set_executor(app, SingleThreadedExecutor::new);
}

#[test]
fn firings_are_the_same_across_runs_and_thread_counts() {
    let first = run(on_one_thread);
    assert!(first.len() > 2000, "only {} firings", first.len());
    assert_eq!(run(on_one_thread), first, "two runs should be the same");
    assert_eq!(run(on_threads), first, "threads should make no difference");
}

/// The checksum is the same in debug and release builds, and must not change between versions.
#[test]
fn the_firings_match_the_recorded_checksum() {
    let checksum = run(on_one_thread).iter().fold(0_u64, |sum, fired| {
        let (entity, deadline, count) = *fired;
        [entity, deadline.as_nanos() as u64, count]
            .iter()
            .fold(sum, |sum, value| {
                (sum ^ value)
                    .wrapping_mul(0x0000_0100_0000_01b3)
                    .rotate_left(23)
            })
    });
    assert_eq!(checksum, 11_581_759_211_518_201_165);
}

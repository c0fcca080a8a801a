//! A long scripted game with 100,000 timers of every kind, update callbacks and messages, and the
//! checksum of all that happens in it. Every choice comes from seeded dice.

#![allow(
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "test code"
)]

mod bystanders;
mod cast;
mod checksum;
mod clocks;
mod handlers;
mod moves;
mod timers;

use core::{num::NonZeroU32, time::Duration};

use bevy_app::prelude::*;
use bevy_due::prelude::*;
use bevy_ecs::{
    error::{FallbackErrorHandler, ignore},
    prelude::*,
    schedule::{InternedScheduleLabel, ScheduleLabel, SingleThreadedExecutor, SystemExecutor},
};
use bevy_time::{TimePlugin, TimeUpdateStrategy, Virtual};

use cast::Cast;
use checksum::Recorder;
pub use checksum::{Checksum, Record};

/// The checksum of the scripted world.
///
/// It may change only with the script in this folder, or with a release whose changelog says which
/// timers now fire at another time or in another order.
pub const EXPECTED: u64 = 17_706_895_054_042_960_803;

/// The number of timers at the start.
pub const TIMERS: usize = 100_000;

const FRAMES: u64 = 160;

/// Plays the script, and returns its record.
///
/// `bystanders` is the seed of the order in which the systems run that arm no timers. Without it,
/// there are no such systems.
pub fn play(executor: fn(&mut App), bystanders: Option<u64>) -> Record {
    let mut app = App::new();
    executor(&mut app);
    let recorder = set_up(&mut app);
    if let Some(seed) = bystanders {
        bystanders::add(&mut app, Dice(seed));
    }
    // Bevy's first frame takes no time.
    advance(&mut app, Duration::ZERO);
    Cast::enter(&mut app);
    for frame in 0..FRAMES {
        play_frame(&mut app, frame);
        recorder.end_frame();
    }
    recorder.finish()
}

fn set_up(app: &mut App) -> Recorder {
    let recorder = Recorder::default();
    app.add_plugins((
        TimePlugin,
        DuePlugin {
            burst_limit: NonZeroU32::new(40).expect("not zero"),
            delay_seed: 7,
            ..DuePlugin::default()
        },
    ))
    .insert_resource(recorder.clone())
    .insert_resource(Dice(42))
    // A move may concern a timer that has ended.
    .insert_resource(FallbackErrorHandler(ignore));
    app.world_mut()
        .resource_mut::<bevy_time::Time<Virtual>>()
        .set_max_delta(Duration::MAX);
    handlers::add(app);
    recorder
}

fn play_frame(app: &mut App, frame: u64) {
    let mut time = app.world_mut().resource_mut::<bevy_time::Time<Virtual>>();
    match frame % 50 {
        20 => time.pause(),
        23 => time.unpause(),
        30 => time.set_relative_speed(0.5),
        40 => time.set_relative_speed(1.0),
        _ => {}
    }
    advance(
        app,
        ms(match frame % 25 {
            0 => 1500,
            7 => 0,
            10 | 18 => 90,
            odd => 8 + odd % 13,
        }),
    );
    if frame % 40 == 39 {
        Cast::fast_forward(app.world_mut());
    }
}

fn advance(app: &mut App, by: Duration) {
    app.insert_resource(TimeUpdateStrategy::ManualDuration(by));
    app.update();
}

/// Runs all systems on the thread of the world.
pub fn on_one_thread(app: &mut App) {
    set_executor(app, SingleThreadedExecutor::new);
}

pub fn set_executor<E: SystemExecutor + 'static>(app: &mut App, executor: fn() -> E) {
    let labels: [InternedScheduleLabel; 6] = [
        First.intern(),
        PreUpdate.intern(),
        FixedPreUpdate.intern(),
        Update.intern(),
        PostUpdate.intern(),
        Last.intern(),
    ];
    for label in labels {
        app.edit_schedule(label, |schedule| {
            schedule.set_executor(executor());
        });
    }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

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

    fn ms(&mut self, below: u64) -> Duration {
        ms(self.roll(below))
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len() as u64) as usize]
    }
}

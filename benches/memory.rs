//! Counts the bytes that an app holds after a peak of timers is gone.
//!
//! ```text
//! cargo bench -p bevy_due_benches --bench memory
//! ```
//!
//! Prints CSV: `work,n,peak_bytes,left_bytes,plain_peak_bytes,plain_left_bytes,ratio`. An app spawns n
//! entities, runs a frame, despawns some of them in each frame, and runs 500 more. The plain entities have components
//! of the same sizes. The ratio is the number of bytes left, divided by the number left with plain
//! entities. It should be at most 1.3.
//!
//! In `timers_at_once`, all despawn in one frame. Bevy's `Messages` keep the memory of the longest frame, here that of
//! half a million cancellations.
//!
//! The bench counts the bytes of live allocations, including those of the app. Two runs differ by less
//! than a thousandth.

#![allow(missing_docs, reason = "a program")]

use core::{mem, time::Duration};
use std::env;

use allocation_counter::{AllocationInfo, measure};
use bevy_app::App;
use bevy_due::{Timer, prelude::*};
use bevy_ecs::{
    bundle::NoBundleEffect,
    prelude::*,
    schedule::{Schedules, SingleThreadedExecutor},
};
use bevy_time::{TimePlugin, TimeUpdateStrategy};

const FRAME: Duration = Duration::from_nanos(1_000_000_000 / 60);
/// The frames between the end of the entities and the count.
const FRAMES_SINCE: usize = 500;
/// The entities that despawn in a frame.
const PER_FRAME: usize = 5_000;
const DELAY: Duration = Duration::from_secs(3600);

/// A component as large as a timer.
#[derive(Component)]
#[expect(dead_code, reason = "only its size matters")]
struct PlainTimer([u8; mem::size_of::<Timer>()]);

/// A component as large as a clock.
#[derive(Component)]
#[expect(dead_code, reason = "only its size matters")]
struct PlainClock([u8; mem::size_of::<Clock>()]);

fn main() {
    let is_short = env::args().any(|arg| arg == "--test");
    let n = if is_short { 10_000 } else { 500_000 };
    println!("work,n,peak_bytes,left_bytes,plain_peak_bytes,plain_left_bytes,ratio");
    let plain_timer = || PlainTimer([1; _]);
    let plain_clock = || PlainClock([1; _]);
    let timer = || Timer::after(DELAY);
    for (name, per_frame) in [("timers", PER_FRAME), ("timers_at_once", n)] {
        let timers = [peak(n, per_frame, timer), peak(n, per_frame, plain_timer)];
        print(name, n, timers);
    }
    let clocks = peak(n, PER_FRAME, || (Clock::new(), timer()));
    let plain = peak(n, PER_FRAME, || (plain_clock(), plain_timer()));
    print("clocks_with_timers", n, [clocks, plain]);
}

fn print(name: &str, n: usize, [ours, plain]: [AllocationInfo; 2]) {
    let ratio = ours.bytes_current as f64 / plain.bytes_current as f64;
    println!(
        "{name},{n},{},{},{},{},{ratio:.2}",
        ours.bytes_max, ours.bytes_current, plain.bytes_max, plain.bytes_current
    );
}

/// Spawns n entities, despawns so many of them in each frame, and counts what the app holds after many more.
fn peak<B: Bundle<Effect: NoBundleEffect>>(
    n: usize,
    per_frame: usize,
    bundle: impl Fn() -> B,
) -> AllocationInfo {
    let mut app = None;
    let counted = measure(|| {
        let app = app.insert(new_app());
        let entities: Vec<_> = app
            .world_mut()
            .spawn_batch((0..n).map(|_| bundle()))
            .collect();
        app.update();
        for some in entities.chunks(per_frame) {
            for &entity in some {
                app.world_mut().despawn(entity);
            }
            app.update();
        }
        for _ in 0..FRAMES_SINCE {
            app.update();
        }
    });
    drop(app);
    counted
}

/// Returns an app that runs on one thread, because the counter sees only this thread.
fn new_app() -> App {
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .insert_resource(TimeUpdateStrategy::ManualDuration(FRAME));
    app.update();
    for (_, schedule) in app.world_mut().resource_mut::<Schedules>().iter_mut() {
        schedule.set_executor(SingleThreadedExecutor::new());
    }
    app
}

//! Things that should cost nothing: an observer elsewhere, idle clocks, and clocks that are gone. And exact frames,
//! which should cost little.
//!
//! The peer is the same app without them. It should take at least 0.83 of our time, so that we take at
//! most 1.2 times as long. An exact frame may take 300 ns more for each deadline.

use core::time::Duration;

use bevy_app::App;
use bevy_due::{Timer, prelude::*};
use bevy_ecs::{bundle::NoBundleEffect, prelude::*};

use crate::{
    contenders::{Fired, TimerSpec, due_messages, exact_messages},
    frames::{frames, warm_up},
    sides::{Done, Side, Table, timed},
    work::{FRAME, SECOND, first_deadline},
};

const TIMERS: [usize; 2] = [10_000, 100_000];
const EXACT: [usize; 3] = [1_000, 10_000, 100_000];
const GONE: [usize; 2] = [10_000, 500_000];

const IDLE_CLOCKS: usize = 10_000;

/// The deadlines of a fast-forward.
const DEADLINES: usize = 300;
const SPAN: u64 = 3 * SECOND;

const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

pub fn compare(table: &mut Table) {
    for n in TIMERS {
        let per_turn = move |units: usize| 200 * units / n + 1;
        table.line(
            ("app_observer_elsewhere", n, "no_observer"),
            None,
            |units| frames(observed_elsewhere(n), per_turn(units), 1, fired),
            |units| frames(due_messages(&due_in_turn(n)), per_turn(units), 1, fired),
        );
    }
    for n in EXACT {
        let (frames_per_turn, due) = (move |units: usize| 20 * units / n + 1, n / 100);
        table.line(
            ("app_exact_frames", n, "default_frames"),
            None,
            |units| {
                let app = exact_messages(&due_in_turn(n));
                frames(app, frames_per_turn(units), due, fired)
            },
            |units| {
                let app = due_messages(&due_in_turn(n));
                frames(app, frames_per_turn(units), due, fired)
            },
        );
    }
    for (name, due) in [
        ("app_gone_clocks_1_due", 1),
        ("app_gone_clocks_1000_due", 1000),
    ] {
        for n in GONE {
            let per_turn = |units: usize| units / 500 + 1;
            table.line(
                (name, n, "never_there"),
                None,
                |units| frames(gone_clocks(due, n), per_turn(units), 1, fired),
                |units| frames(gone_clocks(due, 0), per_turn(units), 1, fired),
            );
        }
    }
    for (name, spawn) in [
        ("fast_forward_idle_clocks", idle_clocks as fn(&mut World)),
        ("fast_forward_idle_clocks_with_timers", idle_timers),
    ] {
        let rounds = |units: usize| units / 50_000 + 1;
        table.line(
            (name, IDLE_CLOCKS, "no_clocks"),
            None,
            |units| fast_forwards(rounds(units), spawn),
            |units| fast_forwards(rounds(units), |_| ()),
        );
    }
}

fn fired(app: &mut App) -> u64 {
    app.world().resource::<Fired>().checksum
}

/// Periodic timers, of which one in a hundred is due in each frame.
fn due_in_turn(n: usize) -> Vec<TimerSpec> {
    let period = 100 * FRAME;
    let spec = |id| TimerSpec {
        first: first_deadline(id, period),
        period,
    };
    (0..n as u32).map(spec).collect()
}

/// The same timers, and an observer of firings on an entity that has no timer.
fn observed_elsewhere(n: usize) -> App {
    let mut app = due_messages(&due_in_turn(n));
    app.world_mut()
        .spawn_empty()
        .observe(|_: On<TimerFired>| panic!("this entity has no timer"));
    app
}

/// Timers that are due in each frame, in a world in which so many clocks with a timer each were spawned
/// and despawned.
fn gone_clocks(due: usize, gone: usize) -> App {
    let every_frame = TimerSpec {
        first: FRAME,
        period: FRAME,
    };
    let mut app = due_messages(&vec![every_frame; due]);
    let clocks = spawn_clocks(app.world_mut(), gone, || Timer::after(YEAR));
    app.update();
    for clock in clocks {
        app.world_mut().despawn(clock);
    }
    app.update();
    app
}

fn idle_clocks(world: &mut World) {
    spawn_clocks(world, IDLE_CLOCKS, || ());
}

fn idle_timers(world: &mut World) {
    spawn_clocks(world, IDLE_CLOCKS, || Timer::after(YEAR));
}

/// Spawns clocks that follow the game clock, with the same bundle on each.
fn spawn_clocks<B: Bundle<Effect: NoBundleEffect>>(
    world: &mut World,
    n: usize,
    bundle: impl Fn() -> B,
) -> Vec<Entity> {
    let bundles = (0..n).map(|_| (Clock::new(), bundle()));
    world.spawn_batch(bundles).collect()
}

/// Returns a side that fast-forwards the game clock over a few hundred deadlines. A unit is a deadline.
fn fast_forwards(rounds: usize, spawn_idle: impl FnOnce(&mut World)) -> Side {
    let spec = |nth| TimerSpec {
        first: (nth + 1) * (SPAN / DEADLINES as u64),
        period: SPAN,
    };
    let specs: Vec<_> = (0..DEADLINES as u64).map(spec).collect();
    let mut app = due_messages(&specs);
    spawn_idle(app.world_mut());
    warm_up(&mut app);
    let mut done = Done::default();
    Box::new(move || {
        let mut time = Duration::ZERO;
        for _ in 0..rounds {
            let mut stats = None;
            time += timed(|| {
                let span = Duration::from_nanos(SPAN);
                stats = app.world_mut().fast_forward(ClockId::Virtual, span).ok();
            });
            let stats = stats.expect("the game clock runs");
            assert_eq!(stats.fired, DEADLINES as u64, "each timer fires once");
            done.units += stats.fired;
            // The system reads the messages.
            app.update();
        }
        done.checksum = fired(&mut app);
        (time, done)
    })
}

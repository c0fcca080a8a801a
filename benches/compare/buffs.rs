//! Units with a periodic effect, which changes a component of the unit.

use core::time::Duration;

use bevy_app::prelude::*;
use bevy_due::{Timer, prelude::*};
use bevy_ecs::prelude::*;
use bevy_time::{Time, TimerMode};

use crate::{
    app::SIZES,
    contenders::{app, due_app, on_one_thread},
    frames::frames,
    sides::Table,
    work::{SECOND, first_deadline},
};

/// The times between two ticks of an effect, in nanoseconds.
const INTERVALS: [u64; 5] = [SECOND / 4, SECOND / 2, SECOND, 2 * SECOND, 5 * SECOND];

/// A frame has about one tick per this many units.
const UNITS_PER_TICK: usize = 39;

#[derive(Component)]
struct Health(u64);

#[derive(Component)]
struct Ticked(bevy_time::Timer);

pub fn compare(table: &mut Table) {
    for n in SIZES {
        let per_turn = move |units: usize| units * UNITS_PER_TICK / n + 1;
        table.line(
            ("app_buffs", n, "bevy_timer"),
            None,
            |units| frames(messages(n), per_turn(units), 1, health),
            |units| frames(ticked(n), per_turn(units), 1, health),
        );
    }
}

/// Returns the interval and the first deadline of each unit's effect.
fn effects(n: usize) -> impl Iterator<Item = (Duration, Duration)> {
    (0..n as u32).map(|unit| {
        let interval = INTERVALS[unit as usize % INTERVALS.len()];
        let first = first_deadline(unit, interval);
        (Duration::from_nanos(interval), Duration::from_nanos(first))
    })
}

/// This crate's timers, and a system that reads their messages.
fn messages(n: usize) -> App {
    let mut app = due_app();
    app.world_mut().spawn_batch(
        effects(n).map(|(interval, first)| (Health(0), Timer::every(interval).first_after(first))),
    );
    app.add_systems(
        Update,
        |mut fired: MessageReader<TimerFired>, mut units: Query<&mut Health>| {
            for fired in fired.read() {
                if let Ok(mut health) = units.get_mut(fired.entity()) {
                    health.0 += 1;
                }
            }
        },
    );
    on_one_thread(app)
}

/// A system that ticks a timer on each unit.
fn ticked(n: usize) -> App {
    let mut app = app();
    app.world_mut()
        .spawn_batch(effects(n).map(|(interval, first)| {
            let mut timer = bevy_time::Timer::new(interval, TimerMode::Repeating);
            timer.set_elapsed(interval - first);
            (Health(0), Ticked(timer))
        }));
    app.add_systems(
        Update,
        |mut units: Query<(&mut Health, &mut Ticked)>, time: Res<Time>| {
            for (mut health, mut timer) in &mut units {
                if timer.0.tick(time.delta()).just_finished() {
                    health.0 += 1;
                }
            }
        },
    );
    on_one_thread(app)
}

fn health(app: &mut App) -> u64 {
    let mut units = app.world_mut().query::<&Health>();
    units.iter(app.world()).map(|health| health.0).sum()
}

//! Entities that each have a clock and a timer. None is due.

use core::time::Duration;

use bevy_app::prelude::*;
use bevy_due::{Timer, prelude::*};
use bevy_ecs::prelude::*;
use bevy_time::{Time, TimerMode};

use crate::{
    contenders::{app, due_app, empty_app, on_one_thread},
    frames::frames,
    sides::Table,
};

const CLOCKS: usize = 10_000;

const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// How fast time passes for an entity.
#[derive(Component)]
struct Speed(f32);

#[derive(Component)]
struct Ticked(bevy_time::Timer);

pub fn compare(table: &mut Table) {
    for (peer, theirs) in [
        ("bevy_timer", ticked as fn() -> App),
        ("empty_app", || empty_app(&[])),
    ] {
        let per_turn = |units: usize| units / 50 + 1;
        table.line(
            ("app_clocks", CLOCKS, peer),
            None,
            |units| frames(own_clocks(), per_turn(units), 1, |_| 0),
            |units| frames(theirs(), per_turn(units), 1, |_| 0),
        );
    }
}

fn speeds() -> impl Iterator<Item = f32> {
    (0..CLOCKS).map(|nth| 0.5 + (nth % 4) as f32 / 2.0)
}

/// This crate's clocks.
fn own_clocks() -> App {
    let mut app = due_app();
    app.world_mut().spawn_batch(speeds().map(|speed| {
        let clock = Clock::new().with_speed(speed.into());
        (clock, Timer::after(YEAR))
    }));
    on_one_thread(app)
}

/// A system that multiplies the delta of each entity.
fn ticked() -> App {
    let mut app = app();
    app.world_mut().spawn_batch(speeds().map(|speed| {
        let timer = bevy_time::Timer::new(YEAR, TimerMode::Once);
        (Speed(speed), Ticked(timer))
    }));
    app.add_systems(
        Update,
        |mut timers: Query<(&Speed, &mut Ticked)>, time: Res<Time>| {
            for (speed, mut timer) in &mut timers {
                timer.0.tick(time.delta().mul_f32(speed.0));
            }
        },
    );
    on_one_thread(app)
}

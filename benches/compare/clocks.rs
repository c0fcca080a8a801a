//! Entities that each have a clock: with a timer that is not due, and with five effects.

use core::time::Duration;

use bevy_app::prelude::*;
use bevy_due::{Timer, prelude::*};
use bevy_ecs::prelude::*;
use bevy_time::{Time, TimerMode};

use crate::{
    contenders::{app, due_app, empty_app, on_one_thread},
    frames::frames,
    sides::Table,
    work::{SECOND, first_deadline},
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
    for (peer, theirs) in [
        ("no_clocks", (|| own_effects(false)) as fn() -> App),
        ("bevy_timer", ticked_effects),
    ] {
        let per_turn = |units: usize| units / 500 + 1;
        table.line(
            ("app_unit_clocks", UNITS, peer),
            None,
            |units| frames(own_effects(true), per_turn(units), 1, ticks),
            |units| frames(theirs(), per_turn(units), 1, ticks),
        );
    }
}

const UNITS: usize = 50_000;
const EFFECTS: u32 = 5;

#[derive(Component)]
struct Unit {
    ticks: u64,
}

/// The effects of a unit that is ticked.
#[derive(Component)]
struct Effects([bevy_time::Timer; EFFECTS as usize]);

/// Returns the interval and the first deadline of an effect.
fn effect(unit: usize, nth: u32) -> (Duration, Duration) {
    let effect = unit as u32 * EFFECTS + nth;
    // From one second to six, in an order that does not follow the units.
    let interval = SECOND + u64::from(effect.wrapping_mul(2_654_435_761) % 5000) * (SECOND / 1000);
    let first = first_deadline(effect, interval);
    (Duration::from_nanos(interval), Duration::from_nanos(first))
}

/// This crate's timers on units with or without a clock, and a system that reads their messages.
fn own_effects(with_clocks: bool) -> App {
    let mut app = due_app();
    let world = app.world_mut();
    for unit in 0..UNITS {
        let mut entity = world.spawn(Unit { ticks: 0 });
        if with_clocks {
            entity.insert(Clock::new());
        }
        let id = entity.id();
        for nth in 0..EFFECTS {
            let (interval, first) = effect(unit, nth);
            let timer = Timer::every(interval).first_after(first);
            world.spawn((OwnedBy(id), timer));
        }
    }
    app.add_systems(
        Update,
        |mut fired: MessageReader<TimerFired>, mut units: Query<&mut Unit>| {
            for fired in fired.read() {
                if let Ok(mut unit) = units.get_mut(fired.owner()) {
                    unit.ticks += 1;
                }
            }
        },
    );
    on_one_thread(app)
}

/// A system that ticks five timers on each unit, at the speed of the unit.
fn ticked_effects() -> App {
    #[derive(Component)]
    struct WholeSpeed(u32);

    let mut app = app();
    for unit in 0..UNITS {
        let effects = core::array::from_fn(|nth| {
            let (interval, first) = effect(unit, nth as u32);
            let mut timer = bevy_time::Timer::new(interval, TimerMode::Repeating);
            timer.set_elapsed(interval - first);
            timer
        });
        app.world_mut()
            .spawn((Unit { ticks: 0 }, WholeSpeed(1), Effects(effects)));
    }
    app.add_systems(
        Update,
        |mut units: Query<(&mut Unit, &WholeSpeed, &mut Effects)>, time: Res<Time>| {
            for (mut unit, speed, mut effects) in &mut units {
                let delta = time.delta() * speed.0;
                for effect in &mut effects.0 {
                    if effect.tick(delta).just_finished() {
                        unit.ticks += 1;
                    }
                }
            }
        },
    );
    on_one_thread(app)
}

fn ticks(app: &mut App) -> u64 {
    let mut units = app.world_mut().query::<&Unit>();
    units.iter(app.world()).map(|unit| unit.ticks).sum()
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

//! Timers of every kind.

use core::time::Duration;

use bevy_due::{MissedTicks, Timer, prelude::*, timer::Keyed};
use bevy_ecs::prelude::*;

use super::{Cast, Dice, clocks::BUILT_IN, ms};

/// The longest delay at the start, in milliseconds.
const LONGEST: u64 = 25_000;

pub(super) const KEYS: [&str; 4] = ["burn", "chill", "haste", "regrow"];

/// Rolls a timer of any kind with delays up to `longest` milliseconds.
pub(super) fn any_timer(dice: &mut Dice, cast: &Cast, longest: u64) -> Timer {
    let delay = dice.ms(longest);
    let interval = ms(longest / 100 + 1) + dice.ms(longest / 4);
    let times = 1 + dice.roll(6) as u32;
    let timer = match dice.roll(12) {
        0..=3 => Timer::after(delay),
        4 => Timer::after_between(delay..=delay + interval),
        5 => Timer::after(delay).with_jitter(interval),
        6 => Timer::every(interval).first_after(delay).times(times),
        7 => Timer::every(interval).times(times),
        8 => Timer::every(interval).immediately().times(times),
        9 => Timer::every_between(interval..=interval + delay).times(times),
        10 => Timer::every(interval).since(delay).times(times),
        _ => Timer::at(delay),
    };
    let timer = timer.with_missed_ticks(dice.pick(&[
        MissedTicks::Burst,
        MissedTicks::Delay,
        MissedTicks::Skip,
    ]));
    match dice.roll(4) {
        0 => timer.on(dice.pick(&BUILT_IN)),
        1 => timer.on(dice.pick(&cast.clocks)),
        _ => timer,
    }
}

/// Spawns the timers of the start, alone or on owners, with keys, actions and pauses.
pub(super) fn spawn_all(world: &mut World, dice: &mut Dice, cast: &mut Cast, timers: usize) {
    for nth in 0..timers {
        let timer = any_timer(dice, cast, LONGEST);
        let owner = dice.pick(&cast.owners);
        let entity = match nth % 20 {
            0..=2 => world.spawn((OwnedBy(owner), timer)).id(),
            3 => {
                let key = dice.pick(&KEYS);
                world.spawn((OwnedBy(owner), Keyed::new(key), timer)).id()
            }
            4 => world.spawn((timer, TimerAction::named("note"))).id(),
            5 => world.spawn((timer, TimerAction::despawn())).id(),
            6 => world.spawn((timer, Paused)).id(),
            7 => {
                let entity = world.spawn(timer).id();
                let pause = dice.ms(3000);
                world
                    .entity_mut(entity)
                    .pause_for(pause)
                    .pause_for(pause / 2);
                entity
            }
            8 => world.spawn((timer, lifetime(dice))).id(),
            9 => world.spawn(lifetime(dice)).id(),
            _ => world.spawn(timer).id(),
        };
        cast.timers.push(entity);
    }
    spawn_fast(world, cast);
}

fn lifetime(dice: &mut Dice) -> DespawnAfter {
    DespawnAfter::new(dice.ms(LONGEST))
}

/// Spawns timers that fire in every frame, several times, forever.
fn spawn_fast(world: &mut World, cast: &mut Cast) {
    let clocks = BUILT_IN.into_iter();
    for (nth, clock) in (0..).zip(clocks.chain(cast.clocks.iter().map(|&clock| clock.into()))) {
        let interval = Duration::from_nanos(3_333_333 + 1_000_003 * nth);
        for missed_ticks in [MissedTicks::Burst, MissedTicks::Delay, MissedTicks::Skip] {
            let timer = Timer::every(interval).on(clock);
            let timer = timer.with_missed_ticks(missed_ticks);
            cast.timers.push(world.spawn(timer).id());
        }
    }
}

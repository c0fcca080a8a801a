//! Clocks whose speeds leave fractions of a nanosecond, in uneven frames.

use core::time::Duration;

use bevy_app::App;
use bevy_due::{Clock, DueWorldExt, Timer, TimerFired};
use bevy_ecs::{entity::EntityHashMap, message::Messages, prelude::*};

use super::{Dice, advance, app, grid::Grid};

/// The speed of each clock, its parent among the clocks, and the interval of its timer.
const CLOCKS: [(f64, Option<usize>, u64); 5] = [
    (1.0 / 3.0, None, 16_666_667),
    (1.1, None, 1_000_000_007),
    (1.0 / 7.0, Some(0), 1_000_000_001),
    (2.5, Some(0), 999_999_999),
    (0.123_456_789, Some(3), 3_333_333_333),
];

/// Runs the clocks for a simulated time, and returns the number of firings.
pub fn fractions_of_nanoseconds(seconds: u64) -> u64 {
    let mut game = Game::new(seconds);
    let mut left = u128::from(seconds) * 1_000_000_000;
    let mut frame = 0_u64;
    while left > 0 {
        let nanos = match frame % 8 {
            0 => game.dice.roll(120_000_000_000),
            1 => game.dice.roll(100),
            _ => game.dice.roll(60_000_000),
        };
        let nanos = u128::from(nanos).min(left);
        left -= nanos;
        game.run_frame(nanos);
        if frame.is_multiple_of(64) {
            game.change_a_clock();
        }
        frame += 1;
    }
    game.firings
}

struct Game {
    app: App,
    clocks: Vec<ExactClock>,
    /// The index of the clock of each timer.
    timers: EntityHashMap<usize>,
    dice: Dice,
    firings: u64,
}

/// A clock as exact arithmetic has it.
struct ExactClock {
    entity: Entity,
    parent: Option<usize>,
    speed: f64,
    is_paused: bool,
    /// The time that has passed, in units of 2^-64 nanoseconds.
    passed: u128,
    /// How far the clock has been set ahead, in nanoseconds.
    shift: u128,
    grid: Grid,
}

impl ExactClock {
    fn now(&self) -> u128 {
        self.passed >> 64
    }
}

/// Returns an `f64` as an exact number of units of 2^-64.
fn exact(speed: f64) -> u128 {
    let bits = speed.to_bits();
    let mantissa = u128::from(bits & ((1 << 52) - 1) | 1 << 52);
    let exponent = i64::from((bits >> 52) as u16) - 1075 + 64;
    mantissa << u32::try_from(exponent).expect("the speed is not tiny")
}

impl Game {
    fn new(seed: u64) -> Self {
        let mut app = app();
        let mut clocks: Vec<ExactClock> = Vec::new();
        let mut timers = EntityHashMap::default();
        for (nth, (speed, parent, interval)) in CLOCKS.into_iter().enumerate() {
            let clock = match parent {
                Some(parent) => Clock::of(clocks[parent].entity),
                None => Clock::new(),
            };
            let entity = app.world_mut().spawn(clock.with_speed(speed)).id();
            let timer = Timer::every(Duration::from_nanos(interval)).on(entity);
            timers.insert(app.world_mut().spawn(timer).id(), nth);
            clocks.push(ExactClock {
                entity,
                parent,
                speed,
                is_paused: false,
                passed: 0,
                shift: 0,
                grid: Grid::new(interval, interval),
            });
        }
        Self {
            app,
            clocks,
            timers,
            dice: Dice(seed),
            firings: 0,
        }
    }

    fn run_frame(&mut self, nanos: u128) {
        advance(&mut self.app, nanos as u64);
        let mut by = [0; CLOCKS.len()];
        for nth in 0..self.clocks.len() {
            let parent = self.clocks[nth].parent.map_or(nanos, |parent| by[parent]);
            let clock = &mut self.clocks[nth];
            let before = clock.now();
            if !clock.is_paused {
                clock.passed += parent * exact(clock.speed);
            }
            by[nth] = clock.now() - before;
        }
        let world = self.app.world_mut();
        let mut fired = world.resource_mut::<Messages<TimerFired>>();
        for fired in fired.drain() {
            let clock = &mut self.clocks[self.timers[&fired.entity()]];
            let now = clock.now();
            clock.grid.check(&fired, now, clock.shift);
            self.firings += 1;
        }
        for clock in &self.clocks {
            let shown = world.clock_now(clock.entity);
            let shown = shown.expect("the clock is there").as_nanos();
            assert_eq!(shown, clock.now() + clock.shift, "{:?}", clock.grid);
            if !clock.is_paused {
                clock.grid.check_all_served(clock.now());
            }
        }
    }

    /// Pauses or resumes a clock, sets it ahead, or gives it another speed.
    fn change_a_clock(&mut self) {
        let nth = self.dice.roll(CLOCKS.len() as u64) as usize;
        let (choice, by) = (self.dice.roll(4), self.dice.roll(1_000_000_000_000));
        let exact = &mut self.clocks[nth];
        let now = self.app.world().clock_now(exact.entity);
        let changed = self
            .app
            .world_mut()
            .change_clock(exact.entity, |clock| match choice {
                0 if exact.is_paused => clock.unpause(),
                0 => clock.pause(),
                1 => {
                    let now = now.expect("the clock is there") + Duration::from_nanos(by);
                    clock.set_now(now);
                    exact.shift += u128::from(by);
                }
                _ => {
                    // Both speeds of a clock leave fractions.
                    exact.speed = if exact.speed == CLOCKS[nth].0 {
                        2.0 / 3.0
                    } else {
                        CLOCKS[nth].0
                    };
                    clock.set_speed(exact.speed);
                }
            });
        changed.expect("the clock is there");
        exact.is_paused ^= choice == 0;
    }
}

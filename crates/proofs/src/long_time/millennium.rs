//! Sparse timers for centuries, by fast-forward.

use core::time::Duration;

use bevy_app::App;
use bevy_due::{Clock, Timer, TimerFired, clock::ClockMut, prelude::*};
use bevy_ecs::{message::Messages, prelude::*};

use super::{DAY, Dice, YEAR, app, grid::Grid};

/// The longest time on one clock, in years. A clock counts 511 years from its start.
const LONGEST: u64 = 500;

/// The intervals in nanoseconds: a day, a month of the moon, a year, and eleven years.
const INTERVALS: [u64; 4] = [
    DAY * 1_000_000_000 + 7,
    2_551_442_876_543_211,
    YEAR * 1_000_000_000,
    11 * YEAR * 1_000_000_000 + 1,
];

/// Runs clocks one after the other for this many years in all, and returns the number of firings.
pub fn sparse_timers(years: u64) -> u64 {
    let mut firings = 0;
    let mut left = years;
    while left > 0 {
        let span = left.min(LONGEST);
        left -= span;
        firings += Era::new(span).run(span);
    }
    firings
}

/// A clock with its timers, and what they must do.
struct Era {
    app: App,
    clock: Entity,
    timers: Vec<(Entity, Grid)>,
    /// The nanoseconds that have passed on the clock.
    passed: u128,
    /// How far the clock has been set ahead.
    shift: u128,
    dice: Dice,
    firings: u64,
}

impl Era {
    fn new(seed: u64) -> Self {
        let mut app = app();
        let clock = app.world_mut().spawn(Clock::new()).id();
        let timers = INTERVALS.map(|interval| {
            let first = interval / 3;
            let timer = Timer::every(Duration::from_nanos(interval));
            let timer = timer.first_after(Duration::from_nanos(first)).on(clock);
            (
                app.world_mut().spawn(timer).id(),
                Grid::new(first, interval),
            )
        });
        Self {
            app,
            clock,
            timers: timers.into(),
            passed: 0,
            shift: 0,
            dice: Dice(seed),
            firings: 0,
        }
    }

    fn run(mut self, years: u64) -> u64 {
        for year in 0..years {
            let part = self.dice.roll(YEAR * 1_000_000_000);
            match year % 5 {
                1 => self.set_clock(),
                2 => self.pause_timer(part),
                3 => self.pause_clock(part),
                _ => {}
            }
            let passed = if matches!(year % 5, 2 | 3) { part } else { 0 };
            self.forward(YEAR * 1_000_000_000 - passed);
        }
        assert_eq!(self.passed, u128::from(years * YEAR) * 1_000_000_000);
        self.firings
    }

    /// Lets time pass, and checks each firing in order.
    fn forward(&mut self, nanos: u64) {
        let world = self.app.world_mut();
        let span = Duration::from_nanos(nanos);
        let stats = world
            .fast_forward(self.clock, span)
            .expect("the clock runs");
        self.passed += u128::from(nanos);
        let mut fired = world.resource_mut::<Messages<TimerFired>>();
        let fired: Vec<TimerFired> = fired.drain().collect();
        assert_eq!((stats.fired, stats.missed), (fired.len() as u64, 0));
        self.firings += stats.fired;
        assert!(fired.is_sorted_by_key(TimerFired::deadline), "in order");
        for fired in fired {
            let mut timers = self.timers.iter_mut();
            let timer = timers.find(|(timer, _)| *timer == fired.entity());
            let (_, grid) = timer.expect("only these timers exist");
            // Each deadline has its own run.
            let now = grid.next();
            grid.check(&fired, now, self.shift);
        }
        for (timer, grid) in &self.timers {
            if world.get::<Paused>(*timer).is_none() {
                grid.check_all_served(self.passed);
            }
        }
    }

    /// Sets the clock ahead. The timers keep their remaining times.
    fn set_clock(&mut self) {
        let by = self.dice.roll(YEAR * 1_000_000_000);
        self.shift += u128::from(by);
        let now = self.app.world().clock_now(self.clock);
        let now = now.expect("the clock is there") + Duration::from_nanos(by);
        self.change_clock(|clock| clock.set_now(now));
        assert_eq!(now.as_nanos(), self.passed + self.shift);
    }

    /// Pauses one of the timers for a while. The others go on.
    fn pause_timer(&mut self, nanos: u64) {
        let nth = self.dice.roll(self.timers.len() as u64) as usize;
        let (timer, _) = self.timers[nth];
        self.app.world_mut().entity_mut(timer).insert(Paused);
        self.forward(nanos);
        self.app.world_mut().entity_mut(timer).remove::<Paused>();
        self.timers[nth].1.delay(nanos.into());
    }

    /// Pauses the clock for a while. A fast-forward runs it all the same.
    fn pause_clock(&mut self, nanos: u64) {
        self.change_clock(|clock| clock.pause());
        self.forward(nanos);
        self.change_clock(|clock| clock.unpause());
    }

    fn change_clock(&mut self, change: impl FnOnce(&mut ClockMut)) {
        let changed = self.app.world_mut().change_clock(self.clock, change);
        changed.expect("the clock is there");
    }
}

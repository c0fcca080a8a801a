//! A clock. Its time is a number of whole nanoseconds and an exact fraction.

use core::mem;

use super::clocks::Nth;
use crate::entry::Named;

/// The time that has passed on a new clock. It shows zero.
const START: u64 = 1 << 61;

/// The time that no clock reaches.
pub(crate) const NEVER: u64 = u64::MAX;

/// The time passed up to which a clock can jump. Beyond, only the time that it shows jumps.
const LAST_JUMP: u64 = NEVER - (1 << 60);

/// The length of a frame on the frame clock.
pub(super) const FRAME: u64 = 1_000_000_000;

#[derive(Clone)]
pub(crate) struct Clock {
    pub(crate) name: Named,
    pub(crate) exists: bool,
    /// Whether it is read in fixed steps, not in frames. Kept when it loses its parent.
    pub(crate) is_fixed: bool,
    pub(super) driver: Driver,
    /// The parent, which may not exist. Built-in and manual clocks have none.
    pub(crate) parent: Option<Named>,
    /// Whether the `OnClock` of its entity names the parent, or nothing does.
    pub(super) has_default_parent: bool,
    /// The missing parent that a component named. It counts if it arrives before the next reading.
    pub(super) awaited: Option<Named>,
    pub(super) awaits_default: bool,
    pub(crate) speed: f64,
    /// The product of the speed modifiers.
    pub(crate) factor: f64,
    pub(crate) is_paused: bool,
    pub(crate) is_disabled: bool,
    pub(crate) is_held: bool,
    /// The time that has passed, and a fraction in units of 2^-64.
    pub(crate) now: u64,
    pub(super) part: u64,
    /// The time of the driver to which this clock has followed it.
    pub(super) seen: u64,
    /// The difference between the time shown and the time passed.
    pub(crate) offset: i128,
    /// The time to which it has skipped. Up to then, each timer fires at most once.
    pub(crate) skipped_to: Option<u64>,
    /// The time at the last two readings.
    pub(crate) ticks: (u64, u64),
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Driver {
    Real,
    Game,
    Frames,
    Fixed,
    Clock(Nth),
    /// A manual clock only moves by hand.
    Hand,
    /// The parent does not exist.
    Missing,
}

impl Clock {
    pub(super) fn new(name: Named, parent: Option<Named>, driver: Driver, speed: f64) -> Self {
        Self {
            name,
            exists: true,
            is_fixed: false,
            driver,
            parent,
            has_default_parent: false,
            awaited: None,
            awaits_default: false,
            speed,
            factor: 1.0,
            is_paused: false,
            is_disabled: false,
            is_held: false,
            now: START,
            part: 0,
            seen: 0,
            offset: -i128::from(START),
            skipped_to: None,
            ticks: (START, START),
        }
    }

    /// A clock advances by the time that has passed on its driver.
    pub(super) fn follow(&mut self, to: u64) {
        let seen = mem::replace(&mut self.seen, to);
        self.run(to - seen);
    }

    /// A clock advances by a time of its driver, times its speed. The end of time stops it.
    pub(super) fn run(&mut self, span: u64) {
        if self.stands_still() {
            return;
        }
        let (span, part) = (u128::from(span), u128::from(self.part));
        let passed = span.checked_mul(self.rate());
        let passed = passed.and_then(|passed| passed.checked_add(part));
        self.part = span.wrapping_mul(self.rate()).wrapping_add(part) as u64;
        self.advance(whole(passed.unwrap_or(u128::MAX)));
    }

    /// Takes over the settings of a saved clock. It shows the same time.
    pub(super) fn load(&mut self, saved: &Self) {
        self.set_now(saved.shown(saved.now));
        self.part = saved.part;
        (self.speed, self.is_paused) = (saved.speed, saved.is_paused);
        (self.factor, self.is_disabled) = (saved.factor, saved.is_disabled);
        self.has_default_parent = saved.has_default_parent;
        let later = i128::from(self.now) - i128::from(saved.now);
        self.skipped_to = saved.skipped_to.map(|to| shift(to, later));
    }

    pub(crate) fn advance(&mut self, by: u64) {
        self.now = self.now.saturating_add(by).min(NEVER - 1);
    }

    /// The clock advances at once, but not up to the end of time.
    pub(crate) fn jump(&mut self, by: u64) {
        let shown = self.shown(self.now).saturating_add(by);
        self.advance(by.min(LAST_JUMP.saturating_sub(self.now)));
        self.set_now(shown);
    }

    pub(crate) fn set_now(&mut self, shown: u64) {
        self.offset = i128::from(shown.min(NEVER - 1)) - i128::from(self.now);
    }

    pub(crate) fn shown(&self, passed: u64) -> u64 {
        shift(passed, self.offset)
    }

    pub(super) fn is_driven_by_bevy(&self) -> bool {
        matches!(self.driver, Driver::Real | Driver::Game | Driver::Fixed)
    }

    pub(super) fn stands_still(&self) -> bool {
        self.is_paused || self.is_disabled || self.is_held
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stands_still() || self.rate() == 0
    }

    /// The speed in units of 2^-64. The speeds and factors in scripts and their products are exact.
    pub(super) fn rate(&self) -> u128 {
        (self.speed * self.factor * (1_u128 << 64) as f64) as u128
    }
}

fn whole(parts: u128) -> u64 {
    (parts >> 64) as u64
}

/// Moves a time. It saturates at both ends, and what never happens is never moved.
pub(crate) fn shift(time: u64, by: i128) -> u64 {
    match time {
        NEVER => NEVER,
        time => (i128::from(time) + by).clamp(0, i128::from(NEVER)) as u64,
    }
}

//! A clock. Its time is a number of whole nanoseconds and an exact fraction.

use core::mem;

use super::clocks::Nth;
use crate::entry::Named;

/// The time that has passed on a new clock. It shows zero.
const START: u64 = 1 << 61;

/// The time that no clock reaches.
pub(crate) const NEVER: u64 = u64::MAX;

/// The length of a frame on the frame clock.
pub(super) const FRAME: u64 = 1_000_000_000;

#[derive(Clone)]
pub(crate) struct Clock {
    pub(crate) name: Named,
    pub(crate) exists: bool,
    /// Whether it is read in fixed steps, not in frames. Kept when it loses its parent.
    pub(crate) is_fixed: bool,
    pub(super) driver: Driver,
    /// What the next reading takes over.
    pub(crate) component: Component,
    /// The parent, which may not exist.
    pub(crate) parent: Named,
    pub(crate) speed: f64,
    /// The product of the speed modifiers.
    pub(crate) factor: f64,
    pub(crate) is_paused: bool,
    pub(crate) is_disabled: bool,
    pub(crate) is_held: bool,
    /// The time that has passed, and a fraction in units of 2^-64.
    pub(crate) now: u64,
    pub(super) part: u64,
    /// The time of the driver when this clock was last read. A loaded clock may have been read before
    /// its driver began.
    pub(super) seen: i128,
    /// The difference between the time shown and the time passed.
    pub(crate) offset: i128,
    /// Whether it stood still at the last reading.
    pub(super) was_stopped: bool,
    /// The reading of its cadence at which it skipped time, so that each timer fires at most once.
    pub(crate) skipped: Option<u64>,
    /// The time in the last two runs.
    pub(crate) ticks: (u64, u64),
}

/// The settings of a component, and the jump of its time.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Component {
    pub(crate) parent: Named,
    pub(crate) speed: f64,
    pub(crate) is_paused: bool,
    pub(crate) advance_by: u64,
    pub(crate) skip_by: u64,
    pub(super) set_now: Option<u64>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Driver {
    Real,
    Game,
    Frames,
    Fixed,
    Clock(Nth),
    Nothing,
}

impl Component {
    pub(super) fn new(parent: Named, speed: f64) -> Self {
        Self {
            parent,
            speed,
            is_paused: false,
            advance_by: 0,
            skip_by: 0,
            set_now: None,
        }
    }
}

impl Clock {
    pub(super) fn new(name: Named, parent: Named, driver: Driver, speed: f64) -> Self {
        Self {
            name,
            exists: true,
            is_fixed: false,
            driver,
            component: Component::new(parent, speed),
            parent,
            speed,
            factor: 1.0,
            is_paused: false,
            is_disabled: false,
            is_held: false,
            now: START,
            part: 0,
            seen: 0,
            offset: -i128::from(START),
            was_stopped: false,
            skipped: None,
            ticks: (START, START),
        }
    }

    /// A built-in clock follows Bevy's time, which shows `to` and has advanced by `delta`. The time passed
    /// never goes back.
    pub(super) fn follow_bevy(&mut self, to: u64, delta: u64) {
        if i128::from(to) < self.seen {
            let back = self.seen - i128::from(to - delta);
            if !self.stands_still() {
                self.offset -= i128::from(whole(back.unsigned_abs() * self.rate()));
            }
            self.seen = i128::from(to - delta);
        }
        self.follow(to);
    }

    /// A clock advances by the time that has passed on its driver, times its speed. The end of time
    /// stops it.
    pub(super) fn follow(&mut self, to: u64) {
        let to = i128::from(to);
        let seen = mem::replace(&mut self.seen, to);
        if self.stands_still() {
            return;
        }
        let parts = |span: i128| span.unsigned_abs().checked_mul(self.rate());
        let part = u128::from(self.part);
        let passed = parts(to - seen).and_then(|parts| parts.checked_add(part));
        let fraction = (to - seen).unsigned_abs().wrapping_mul(self.rate());
        self.part = fraction.wrapping_add(part) as u64;
        self.advance(whole(passed.unwrap_or(u128::MAX)));
    }

    /// Returns the time of the driver, if it has not advanced since.
    pub(super) fn now_seen(&self) -> u64 {
        self.seen.max(0) as u64
    }

    /// The driver advances unseen by others.
    pub(super) fn run(&mut self, span: u64) {
        let seen = mem::replace(&mut self.seen, 0);
        self.follow(span);
        self.seen = seen;
    }

    /// Takes over the settings of a saved clock. It shows the same time.
    pub(super) fn load(&mut self, saved: &Self) {
        self.set_now(saved.shown(saved.now));
        self.part = saved.part;
        (self.speed, self.is_paused) = (saved.speed, saved.is_paused);
        self.component = Component {
            parent: self.component.parent,
            ..saved.component
        };
        (self.factor, self.is_disabled) = (saved.factor, saved.is_disabled);
    }

    /// The time jumps at a reading. Returns `true` if some of it is skipped.
    pub(super) fn jump(&mut self) -> bool {
        let by = mem::take(&mut self.component.advance_by);
        let skipped = mem::take(&mut self.component.skip_by);
        self.advance(by);
        self.advance(skipped);
        if let Some(shown) = self.component.set_now.take() {
            self.set_now(shown);
        }
        skipped > 0
    }

    pub(crate) fn advance(&mut self, by: u64) {
        self.now = self.now.saturating_add(by).min(NEVER - 1);
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

    /// The component may have stopped the clock since the last reading.
    pub(super) fn is_stopped_by_now(&self) -> bool {
        self.is_stopped() || self.component.is_paused || self.component.speed == 0.0
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

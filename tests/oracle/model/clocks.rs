//! Clocks that are all read in every run, parents first.

use core::mem;

use super::clock::{Clock, Driver, FRAME, Reading};
use crate::entry::{Id, Named};

/// The index of a clock. A lower one is older.
pub(crate) type Nth = usize;

/// Every clock ever added, the oldest first.
#[derive(Clone)]
pub(crate) struct Clocks {
    pub(crate) all: Vec<Clock>,
    pub(crate) times: Times,
    /// The clocks that were added since the last run, and wait for this parent.
    pub(super) waiting: Vec<(Named, Nth)>,
}

/// Bevy's times, and whether game time was paused when this frame began.
#[derive(Clone, Default)]
pub(crate) struct Times {
    pub(crate) real: u64,
    pub(crate) game: u64,
    pub(crate) fixed: u64,
    pub(crate) is_game_paused: bool,
}

impl Clocks {
    pub(crate) fn new() -> Self {
        let built_in = [
            (Named::Real, Driver::Real),
            (Named::Virtual, Driver::Game),
            (Named::Frames, Driver::Frames),
            (Named::Fixed, Driver::Fixed),
        ];
        let all = built_in.map(|(name, driver)| Clock {
            is_fixed: driver == Driver::Fixed,
            ..Clock::new(name, name, driver, 1.0)
        });
        Self {
            all: all.into(),
            times: Times::default(),
            waiting: Vec::new(),
        }
    }

    pub(crate) fn find(&self, name: Named) -> Option<Nth> {
        let is_it = |clock: &Clock| clock.exists && clock.name == name;
        self.all.iter().position(is_it)
    }

    /// In a run, every clock of its cadence is read. A step of a fast-forward reads them too, and
    /// advances only one clock on its own.
    pub(crate) fn read_all(&mut self, is_fixed: bool, forwarded: Option<(Nth, u64)>) {
        if let Some((nth, by)) = forwarded {
            self.all[nth].advance(by);
        }
        let mut is_read = vec![false; self.all.len()];
        for nth in 0..self.all.len() {
            self.read(nth, is_fixed, forwarded.map(|(nth, _)| nth), &mut is_read);
        }
    }

    fn read(&mut self, nth: Nth, is_fixed: bool, forwarded: Option<Nth>, is_read: &mut [bool]) {
        let clock = &self.all[nth];
        if !clock.exists || clock.is_fixed != is_fixed || mem::replace(&mut is_read[nth], true) {
            return;
        }
        if let Driver::Clock(parent) = clock.driver {
            self.read(parent, is_fixed, forwarded, is_read);
        }
        let is_run = forwarded.is_none();
        let clock = &self.all[nth];
        let (to, is_stopped) = match clock.driver {
            Driver::Real => (self.times.real, false),
            Driver::Game => (self.times.game, self.times.is_game_paused),
            Driver::Fixed => (self.times.fixed, false),
            Driver::Frames if is_run => (clock.now_seen() + FRAME, false),
            Driver::Frames => (clock.now_seen(), false),
            Driver::Clock(parent) => {
                let Reading { now, stopped, .. } = self.all[parent].reading;
                (now, stopped)
            }
            Driver::Nothing => (clock.now_seen(), true),
        };
        let clock = &mut self.all[nth];
        // A clock that is forwarded on its own sees its driver after the step.
        let is_forwarded = forwarded == Some(nth);
        let before = clock.now;
        if is_run || i128::from(to) > clock.seen {
            clock.follow(to);
        }
        clock.reading = Reading {
            now: if is_forwarded { before } else { clock.now },
            offset: clock.offset,
            stopped: is_stopped && !is_forwarded || clock.is_stopped(),
        };
        if is_run {
            clock.ticks = (clock.now, clock.ticks.0);
        }
    }

    /// Returns the clock as it would be if it were read now.
    pub(crate) fn live(&self, nth: Nth) -> Clock {
        let mut clock = self.all[nth].clone();
        match clock.driver {
            Driver::Real => clock.follow(self.times.real),
            Driver::Game => clock.follow(self.times.game),
            Driver::Fixed => clock.follow(self.times.fixed),
            Driver::Clock(parent) => clock.follow(self.live(parent).now),
            Driver::Frames | Driver::Nothing => {}
        }
        clock
    }

    /// Stopping a clock takes effect immediately, for it and all clocks that run on it. Resuming it
    /// takes effect at the next reading. The drivers of a clock that is forwarded do not matter.
    pub(crate) fn may_fire(&self, nth: Nth, forwarded: Option<Nth>) -> bool {
        !self.all[nth].reading.stopped && self.is_running(nth, forwarded)
    }

    fn is_running(&self, nth: Nth, forwarded: Option<Nth>) -> bool {
        let clock = &self.all[nth];
        let is_driven = match clock.driver {
            _ if forwarded == Some(nth) => true,
            Driver::Clock(parent) => self.is_running(parent, forwarded),
            Driver::Nothing => false,
            _ => true,
        };
        clock.exists && !clock.is_stopped() && is_driven
    }

    /// A clock that stands still itself, or that has lost a parent, can't be fast-forwarded.
    pub(crate) fn can_forward(&self, nth: Nth) -> bool {
        let clock = &self.all[nth];
        clock.exists && !clock.is_stopped() && !self.is_orphaned(nth)
    }

    fn is_orphaned(&self, nth: Nth) -> bool {
        match self.all[nth].driver {
            Driver::Clock(parent) => self.is_orphaned(parent),
            Driver::Nothing => true,
            _ => false,
        }
    }

    pub(crate) fn runs_on(&self, nth: Nth, root: Nth) -> bool {
        match self.all[nth].driver {
            _ if nth == root => true,
            Driver::Clock(parent) => self.runs_on(parent, root),
            _ => false,
        }
    }

    /// Returns the time of a clock once the clock `root`, on which it runs, has advanced by `by` since
    /// its reading, or `None` if a clock between them stands still.
    pub(crate) fn time_after(&self, nth: Nth, root: Nth, by: u64) -> Option<u64> {
        let mut clock = self.all[nth].clone();
        match clock.driver {
            _ if nth == root => {
                clock.now = clock.reading.now;
                clock.advance(by);
            }
            _ if clock.is_stopped() => return None,
            Driver::Clock(parent) => {
                let to = self.time_after(parent, root, by)?;
                clock.follow(to.max(clock.now_seen()));
            }
            _ => return None,
        }
        Some(clock.now)
    }

    /// Adds a clock. It counts from the time of its parent at this moment. A parent that does not
    /// exist yet may arrive before the next run.
    pub(crate) fn add(
        &mut self,
        entity: Id,
        parent: Named,
        (speed, factor, is_disabled): (f64, f64, bool),
    ) {
        let mut clock = Clock {
            factor,
            is_disabled,
            ..Clock::new(Named::Own(entity), parent, Driver::Nothing, speed)
        };
        clock.reading.stopped = true;
        if let Some(nth) = self.find(parent) {
            clock.driver = Driver::Clock(nth);
            clock.seen = self.live(nth).now.into();
            clock.is_fixed = self.all[nth].is_fixed;
            clock.reading.stopped = self.all[nth].reading.stopped || clock.is_stopped();
        } else if parent != clock.name {
            self.waiting.push((parent, self.all.len()));
        }
        let name = clock.name;
        self.all.push(clock);
        self.adopt_waiting(name);
    }

    /// Puts the clocks that wait for a parent under it, unless they got another one.
    fn adopt_waiting(&mut self, parent: Named) {
        let waiting = mem::take(&mut self.waiting).into_iter();
        let (found, others) = waiting.partition::<Vec<_>, _>(|&(name, _)| name == parent);
        self.waiting = others;
        for (_, nth) in found {
            let clock = &self.all[nth];
            if clock.exists && clock.driver == Driver::Nothing && clock.parent == parent {
                self.set_parent(nth, parent);
            }
        }
    }

    pub(super) fn parent(&self, nth: Nth) -> Option<Nth> {
        match self.all[nth].driver {
            Driver::Clock(parent) => Some(parent),
            _ => None,
        }
    }

    /// Clocks whose parent has not arrived by the next run wait no longer.
    pub(crate) fn stop_waiting(&mut self) {
        self.waiting.clear();
    }

    /// A clock whose parent is removed stands still.
    pub(crate) fn remove(&mut self, nth: Nth) {
        self.all[nth].exists = false;
        for clock in &mut self.all {
            if clock.driver == Driver::Clock(nth) {
                clock.driver = Driver::Nothing;
            }
        }
    }

    /// Puts a clock on another parent from now on, and returns `false` if there is no such clock, or
    /// if the clock would drive itself.
    pub(crate) fn set_parent(&mut self, nth: Nth, parent: Named) -> bool {
        let Some(to) = self.find(parent).filter(|&to| !self.runs_on(to, nth)) else {
            return false;
        };
        if self.all[nth].driver == Driver::Clock(to) {
            return true;
        }
        let Clock {
            reading, is_fixed, ..
        } = self.all[to];
        let clock = &mut self.all[nth];
        (clock.driver, clock.parent, clock.seen) = (Driver::Clock(to), parent, reading.now.into());
        for at in 0..self.all.len() {
            if self.runs_on(at, nth) && self.all[at].is_fixed != is_fixed {
                let clock = &mut self.all[at];
                clock.is_fixed = is_fixed;
                clock.ticks = (clock.now, clock.now);
            }
        }
        true
    }
}

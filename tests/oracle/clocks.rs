//! Obviously correct clocks. All times are whole nanoseconds, because speeds are multiples of a
//! quarter and a tick can be quartered once per clock.

use crate::script::CLOCKS;

pub(crate) struct Clocks {
    /// The time that drives the clock of the game.
    elapsed: i64,
    /// Every clock ever spawned, oldest first.
    pub(crate) all: Vec<Clock>,
    /// The index in `all` of the clock with each number, if it exists.
    pub(crate) current: [Option<usize>; CLOCKS],
}

pub(crate) struct Clock {
    driver: Driver,
    exists: bool,
    pub(crate) quarters: i64,
    pub(crate) paused: bool,
    /// The time that has passed on this clock.
    pub(crate) now: i64,
    /// The time of the driver when this clock was last read.
    seen: i64,
    /// The difference between the time shown and the time passed.
    pub(crate) offset: i64,
    /// The reading taken at the start of this run.
    pub(crate) reading: Reading,
}

#[derive(Clone, Copy)]
enum Driver {
    Game,
    Clock(usize),
    Nothing,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Reading {
    pub(crate) now: i64,
    pub(crate) offset: i64,
    stopped: bool,
}

impl Clocks {
    pub(crate) fn new() -> Self {
        Self {
            elapsed: 0,
            all: vec![Clock::new(Driver::Game, 0, 4)],
            current: core::array::from_fn(|clock| (clock == 0).then_some(0)),
        }
    }

    /// Advances time and reads all clocks for a run.
    pub(crate) fn advance(&mut self, by: i64) {
        self.elapsed += by;
        let mut is_read = vec![false; self.all.len()];
        for at in 0..self.all.len() {
            self.read(at, &mut is_read);
        }
    }

    /// Reads a clock after the clock that drives it, unless it has been read.
    fn read(&mut self, at: usize, is_read: &mut [bool]) {
        if core::mem::replace(&mut is_read[at], true) {
            return;
        }
        if let Driver::Clock(parent) = self.all[at].driver {
            self.read(parent, is_read);
        }
        let parent = match self.all[at].driver {
            Driver::Game => Some((self.elapsed, false)),
            Driver::Clock(parent) if self.all[parent].exists => {
                let parent = self.all[parent].reading;
                Some((parent.now, parent.stopped))
            }
            Driver::Clock(_) | Driver::Nothing => None,
        };
        let clock = &mut self.all[at];
        if let Some((parent_now, _)) = parent {
            clock.now = clock.now_if_parent_shows(parent_now);
            clock.seen = parent_now;
        }
        clock.reading = Reading {
            now: clock.now,
            offset: clock.offset,
            stopped: clock.paused
                || clock.quarters == 0
                || parent.is_none_or(|(_, stopped)| stopped),
        };
    }

    /// Returns the time that a clock would have if it were read now.
    pub(crate) fn now(&self, at: usize) -> i64 {
        let clock = &self.all[at];
        match clock.driver {
            Driver::Game => clock.now_if_parent_shows(self.elapsed),
            Driver::Clock(parent) if self.all[parent].exists => {
                clock.now_if_parent_shows(self.now(parent))
            }
            Driver::Clock(_) | Driver::Nothing => clock.now,
        }
    }

    /// Stopping a clock takes effect immediately, for it and all clocks that run on it. Resuming it
    /// takes effect at the next reading.
    pub(crate) fn may_fire(&self, at: usize) -> bool {
        !self.all[at].reading.stopped && !self.is_stopped(at)
    }

    fn is_stopped(&self, at: usize) -> bool {
        let clock = &self.all[at];
        let is_driven = match clock.driver {
            Driver::Game => true,
            Driver::Clock(parent) => !self.is_stopped(parent),
            Driver::Nothing => false,
        };
        !clock.exists || clock.paused || clock.quarters == 0 || !is_driven
    }

    pub(crate) fn spawn(&mut self, clock: usize, parent: usize, quarters: u32) {
        let (driver, seen) = match self.current[parent] {
            Some(parent) => (Driver::Clock(parent), self.now(parent)),
            None => (Driver::Nothing, 0),
        };
        self.current[clock] = Some(self.all.len());
        self.all.push(Clock::new(driver, seen, quarters));
    }

    /// Gives the clock with this number, if it exists, new settings. The new parent must exist, and
    /// must not run on the clock itself.
    pub(crate) fn replace(&mut self, clock: usize, parent: usize, quarters: u32) -> bool {
        let Some(at) = self.current[clock] else {
            return false;
        };
        let parent = self.current[parent].filter(|&parent| !self.runs_on(parent, at));
        let seen = parent.map(|parent| self.all[parent].reading.now);
        let clock = &mut self.all[at];
        (clock.quarters, clock.paused) = (i64::from(quarters), false);
        if let (Some(parent), Some(seen)) = (parent, seen)
            && !matches!(clock.driver, Driver::Clock(before) if before == parent)
        {
            (clock.driver, clock.seen) = (Driver::Clock(parent), seen);
        }
        true
    }

    fn runs_on(&self, at: usize, root: usize) -> bool {
        match self.all[at].driver {
            _ if at == root => true,
            Driver::Clock(parent) if self.all[parent].exists => self.runs_on(parent, root),
            _ => false,
        }
    }

    /// Removes the clock with this number and returns its index in `all`.
    pub(crate) fn despawn(&mut self, clock: usize) -> Option<usize> {
        let at = self.current[clock].take()?;
        self.all[at].exists = false;
        Some(at)
    }

    pub(crate) fn set(&mut self, clock: usize, set: impl FnOnce(&mut Clock)) {
        if let Some(at) = self.current[clock] {
            set(&mut self.all[at]);
        }
    }
}

impl Clock {
    fn new(driver: Driver, seen: i64, quarters: u32) -> Self {
        Self {
            driver,
            exists: true,
            quarters: i64::from(quarters),
            paused: false,
            now: 0,
            seen,
            offset: 0,
            reading: Reading::default(),
        }
    }

    fn now_if_parent_shows(&self, parent_now: i64) -> i64 {
        if self.paused {
            return self.now;
        }
        let quarters = (parent_now - self.seen) * self.quarters;
        assert_eq!(quarters % 4, 0, "times should stay whole");
        self.now + quarters / 4
    }
}

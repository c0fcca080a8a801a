//! The obviously right clocks. All times are nanoseconds. They are whole, since speeds are quarters
//! and a tick can be quartered as often as there are clocks.

use crate::script::CLOCKS;

pub(crate) struct Clocks {
    /// What the clock of the game runs on.
    elapsed: i64,
    /// All that ever were, by age.
    pub(crate) all: Vec<Clock>,
    /// Which of them is known by which number.
    pub(crate) current: [Option<usize>; CLOCKS],
}

pub(crate) struct Clock {
    driver: Driver,
    is_there: bool,
    pub(crate) quarters: i64,
    pub(crate) paused: bool,
    /// How much has passed.
    pub(crate) now: i64,
    /// What it runs on had come to when this was last read.
    seen: i64,
    /// What it shows beyond what has passed.
    pub(crate) offset: i64,
    /// What it said when it was read for this run.
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

    /// Lets time pass, and reads the clocks for a run. What a clock runs on is older than itself.
    pub(crate) fn go(&mut self, by: i64) {
        self.elapsed += by;
        for at in 0..self.all.len() {
            self.read(at);
        }
    }

    fn read(&mut self, at: usize) {
        let parent = match self.all[at].driver {
            Driver::Game => Some((self.elapsed, false)),
            Driver::Clock(parent) if self.all[parent].is_there => {
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

    /// Returns what a clock would say if it were read now.
    pub(crate) fn now(&self, at: usize) -> i64 {
        let clock = &self.all[at];
        match clock.driver {
            Driver::Game => clock.now_if_parent_shows(self.elapsed),
            Driver::Clock(parent) if self.all[parent].is_there => {
                clock.now_if_parent_shows(self.now(parent))
            }
            Driver::Clock(_) | Driver::Nothing => clock.now,
        }
    }

    /// A clock that is stopped stops at once, with all that run on it; one that is let go on waits
    /// until it is read.
    pub(crate) fn may_fire(&self, at: usize) -> bool {
        !self.all[at].reading.stopped && !self.stands_still(at)
    }

    fn stands_still(&self, at: usize) -> bool {
        let clock = &self.all[at];
        let is_driven = match clock.driver {
            Driver::Game => true,
            Driver::Clock(parent) => !self.stands_still(parent),
            Driver::Nothing => false,
        };
        !clock.is_there || clock.paused || clock.quarters == 0 || !is_driven
    }

    pub(crate) fn begin(&mut self, clock: usize, parent: usize, quarters: u32) {
        let (driver, seen) = match self.current[parent] {
            Some(parent) => (Driver::Clock(parent), self.now(parent)),
            None => (Driver::Nothing, 0),
        };
        self.current[clock] = Some(self.all.len());
        self.all.push(Clock::new(driver, seen, quarters));
    }

    /// Says which one it was.
    pub(crate) fn end(&mut self, clock: usize) -> Option<usize> {
        let at = self.current[clock].take()?;
        self.all[at].is_there = false;
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
            is_there: true,
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

//! Clocks that are all read in every run, parents first.

use super::clock::{Clock, Component, Driver, FRAME};
use crate::entry::{Id, Named};

/// The index of a clock. A lower one is older.
pub(crate) type Nth = usize;

/// Every clock ever added, the oldest first.
#[derive(Clone)]
pub(crate) struct Clocks {
    pub(crate) all: Vec<Clock>,
    pub(crate) times: Times,
    /// The readings of each cadence.
    pub(crate) rounds: [u64; 2],
}

/// Bevy's times, and whether game time was paused when this frame began.
#[derive(Clone, Default)]
pub(crate) struct Times {
    pub(crate) real: u64,
    pub(crate) game: u64,
    pub(crate) fixed: u64,
    /// The latest steps of these.
    pub(crate) steps: [u64; 3],
    pub(crate) is_game_paused: bool,
    /// Whether game time was paused since this frame began.
    pub(crate) is_paused_by_now: bool,
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
            rounds: [0; 2],
        }
    }

    pub(crate) fn find(&self, name: Named) -> Option<Nth> {
        let is_it = |clock: &Clock| clock.exists && clock.name == name;
        self.all.iter().position(is_it)
    }

    /// In a run, every clock of its cadence is read.
    pub(crate) fn read_all(&mut self, is_fixed: bool) {
        let skipped = self.take_changes();
        self.rounds[usize::from(is_fixed)] += 1;
        for nth in 0..self.all.len() {
            if skipped.iter().any(|&root| self.runs_on(nth, root)) {
                let of = self.all[nth].is_fixed;
                let round = self.rounds[usize::from(of)] + u64::from(of != is_fixed);
                self.all[nth].skipped = Some(round);
            }
        }
        for nth in self.parents_first() {
            let is_here = self.all[nth].exists && self.all[nth].is_fixed == is_fixed;
            if is_here {
                self.follow(nth);
                self.note(nth);
                let clock = &mut self.all[nth];
                clock.ticks = (clock.now, clock.ticks.0);
            }
        }
    }

    /// A clock advances on its own. Those that run on it follow.
    pub(crate) fn forward(&mut self, root: Nth, by: u64) {
        self.all[root].advance(by);
        for nth in self.parents_first() {
            if nth != root && self.runs_on(nth, root) {
                self.follow(nth);
            }
            if self.runs_on(nth, root) {
                self.note(nth);
            }
        }
    }

    pub(super) fn follow(&mut self, nth: Nth) {
        let Times {
            real,
            game,
            fixed,
            steps,
            ..
        } = self.times;
        match self.all[nth].driver {
            Driver::Real => self.all[nth].follow_bevy(real, steps[0]),
            Driver::Game => self.all[nth].follow_bevy(game, steps[1]),
            Driver::Fixed => self.all[nth].follow_bevy(fixed, steps[2]),
            Driver::Frames => {
                let to = self.all[nth].now_seen() + FRAME;
                self.all[nth].follow(to);
            }
            Driver::Clock(parent) => {
                let to = self.all[parent].now;
                self.all[nth].follow(to);
            }
            Driver::Nothing => {}
        }
    }

    /// Notes whether a clock stands still at a reading.
    fn note(&mut self, nth: Nth) {
        self.all[nth].was_stopped = self.all[nth].is_stopped();
    }

    /// Returns `true` if a clock has skipped time since the run before this one.
    pub(crate) fn has_skipped(&self, nth: Nth) -> bool {
        let clock = &self.all[nth];
        clock.skipped == Some(self.rounds[usize::from(clock.is_fixed)])
    }

    /// Takes over what the components have changed. Returns the clocks that have skipped time.
    pub(crate) fn take_changes(&mut self) -> Vec<Nth> {
        self.take_settings();
        let mut skipped = Vec::new();
        for nth in self.parents_first() {
            if self.all[nth].jump() {
                skipped.push(nth);
            }
            if let Driver::Clock(parent) = self.all[nth].driver {
                let to = self.all[parent].now;
                self.all[nth].follow(to);
            }
        }
        skipped
    }

    /// Takes over the settings of the components. They count from now on. Then clocks without a parent
    /// look for it.
    pub(crate) fn take_settings(&mut self) {
        for nth in 0..self.all.len() {
            let Component {
                parent,
                speed,
                is_paused,
                ..
            } = self.all[nth].component;
            let clock = &mut self.all[nth];
            (clock.speed, clock.is_paused) = (speed, is_paused);
            if clock.exists && parent != clock.parent {
                self.set_parent(nth, parent);
            }
            self.all[nth].component.parent = self.all[nth].parent;
        }
        for nth in 0..self.all.len() {
            let Clock {
                parent,
                driver,
                exists,
                ..
            } = self.all[nth];
            if exists && driver == Driver::Nothing {
                self.set_parent(nth, parent);
            }
        }
    }

    /// Returns all clocks in another order: each after those that drive it.
    pub(super) fn parents_first(&self) -> Vec<Nth> {
        let mut clocks: Vec<Nth> = (0..self.all.len()).collect();
        clocks.sort_by_key(|&nth| {
            (0..self.all.len())
                .filter(|&at| self.runs_on(nth, at))
                .count()
        });
        clocks
    }

    /// Returns the clock as it is now.
    pub(crate) fn live(&self, nth: Nth) -> Clock {
        self.all[nth].clone()
    }

    /// Stopping a clock takes effect immediately, for it and all clocks that run on it. Resuming it
    /// takes effect at the next reading. The drivers of a clock that is forwarded do not matter.
    pub(crate) fn may_fire(&self, nth: Nth, forwarded: Option<Nth>) -> bool {
        let clock = &self.all[nth];
        let is_driven = match clock.driver {
            _ if forwarded == Some(nth) => true,
            Driver::Clock(parent) => self.may_fire(parent, forwarded),
            Driver::Game => !self.times.is_game_paused && !self.times.is_paused_by_now,
            Driver::Nothing => false,
            _ => true,
        };
        clock.exists && !clock.was_stopped && !clock.is_stopped_by_now() && is_driven
    }

    /// A clock that stands still itself, or that has lost a parent, can't be fast-forwarded.
    pub(crate) fn can_forward(&self, nth: Nth) -> bool {
        let clock = &self.all[nth];
        clock.exists && !clock.is_stopped_by_now() && !self.is_orphaned(nth)
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
    /// exist yet may arrive later.
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
        if let Some(nth) = self.find(parent) {
            clock.driver = Driver::Clock(nth);
            clock.seen = self.all[nth].now.into();
            clock.is_fixed = self.all[nth].is_fixed;
        }
        self.all.push(clock);
    }

    pub(super) fn parent(&self, nth: Nth) -> Option<Nth> {
        match self.all[nth].driver {
            Driver::Clock(parent) => Some(parent),
            _ => None,
        }
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
        self.all[nth].parent = parent;
        if self.all[nth].driver == Driver::Clock(to) {
            return true;
        }
        let (seen, is_fixed) = (self.all[to].now, self.all[to].is_fixed);
        let clock = &mut self.all[nth];
        (clock.driver, clock.parent, clock.seen) = (Driver::Clock(to), parent, seen.into());
        for at in 0..self.all.len() {
            if self.runs_on(at, nth) && self.all[at].is_fixed != is_fixed {
                let clock = &mut self.all[at];
                clock.is_fixed = is_fixed;
                clock.ticks = (clock.now, clock.now);
                clock.skipped = None;
            }
        }
        true
    }
}

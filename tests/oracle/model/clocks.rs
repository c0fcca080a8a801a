//! The clocks, which are always in step with each other.

use super::clock::{Clock, Driver, FRAME};
use crate::entry::{Id, Named};

/// The index of a clock. A lower one is older.
pub(crate) type Nth = usize;

/// Every clock ever added, the oldest first.
#[derive(Clone)]
pub(crate) struct Clocks {
    pub(crate) all: Vec<Clock>,
    pub(crate) times: Times,
    /// The clocks with a new parent, which what is on the entities of their modifiers has yet to follow.
    pub(super) moved: Vec<Id>,
}

/// Bevy's times, and whether game time was paused when this frame began.
#[derive(Clone, Default)]
pub(crate) struct Times {
    pub(crate) real: u64,
    pub(crate) game: u64,
    pub(crate) fixed: u64,
    /// The frames that an exact run has not finished.
    pub(crate) frames: u64,
    pub(crate) is_game_paused: bool,
    /// Whether game time was paused since this frame began.
    pub(crate) is_paused_by_now: bool,
}

/// The clocks that a run covers.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Scope {
    /// Those read in fixed steps, or those read in frames.
    Of { is_fixed: bool },
    /// A clock that is fast-forwarded, and those below. If it was stopped before, it runs nevertheless.
    Under { root: Nth, was_stopped: bool },
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
            ..Clock::new(name, None, driver, 1.0)
        });
        Self {
            all: all.into(),
            times: Times::default(),
            moved: Vec::new(),
        }
    }

    pub(crate) fn find(&self, name: Named) -> Option<Nth> {
        let is_it = |clock: &Clock| clock.exists && clock.name == name;
        self.all.iter().position(is_it)
    }

    /// From a reading on, no clock awaits a missing parent any longer.
    pub(super) fn stop_awaiting(&mut self) {
        for clock in &mut self.all {
            clock.awaited = None;
        }
    }

    /// In a run, every clock of its cadence is read.
    pub(super) fn read_all(&mut self, is_fixed: bool) {
        for nth in self.parents_first() {
            if self.all[nth].is_fixed == is_fixed {
                match (self.bevy_time(nth), self.all[nth].driver) {
                    (Some(to), _) => self.all[nth].follow(to),
                    (None, Driver::Frames) => self.all[nth].run(FRAME),
                    _ => self.follow_parent(nth),
                }
            }
        }
        self.end_reading(is_fixed);
    }

    pub(super) fn end_reading(&mut self, is_fixed: bool) {
        for clock in &mut self.all {
            if clock.exists && clock.is_fixed == is_fixed {
                clock.ticks = (clock.now, clock.ticks.0);
            }
        }
    }

    /// Returns the time of Bevy that drives a clock.
    pub(super) fn bevy_time(&self, nth: Nth) -> Option<u64> {
        match self.all[nth].driver {
            Driver::Real => Some(self.times.real),
            Driver::Game => Some(self.times.game),
            Driver::Fixed => Some(self.times.fixed),
            _ => None,
        }
    }

    pub(super) fn follow_parent(&mut self, nth: Nth) {
        if let Driver::Clock(parent) = self.all[nth].driver {
            let to = self.all[parent].now;
            self.all[nth].follow(to);
        }
    }

    /// The time of a clock jumps at once. The clocks below it follow.
    pub(super) fn jump(&mut self, nth: Nth, jump: impl FnOnce(&mut Clock)) {
        jump(&mut self.all[nth]);
        for at in self.parents_first() {
            if at != nth && self.runs_on(at, nth) {
                self.follow_parent(at);
            }
        }
    }

    /// The time of a clock jumps. On it and on the clocks below, each timer fires at most once for it.
    pub(super) fn skip(&mut self, nth: Nth, by: u64) {
        let time = |clock: &Clock| (clock.now, clock.offset);
        let before: Vec<_> = self.all.iter().map(time).collect();
        self.jump(nth, |clock| clock.jump(by));
        for (clock, before) in self.all.iter_mut().zip(before) {
            if time(clock) != before {
                clock.skipped_to = Some(clock.now);
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

    pub(super) fn is_in(&self, nth: Nth, scope: Scope) -> bool {
        let clock = &self.all[nth];
        clock.exists
            && match scope {
                Scope::Of { is_fixed } => clock.is_fixed == is_fixed,
                Scope::Under { root, .. } => self.runs_on(nth, root),
            }
    }

    /// Returns `true` if a clock exists, and nothing stops it at this moment.
    pub(super) fn is_running(&self, nth: Nth, scope: Scope) -> bool {
        let clock = &self.all[nth];
        let is_driven = match (clock.driver, scope) {
            (_, Scope::Under { root, was_stopped }) if root == nth => {
                return clock.exists && (was_stopped || !self.is_stopped(nth));
            }
            (Driver::Clock(parent), _) => self.is_running(parent, scope),
            (driver, _) => driver != Driver::Missing,
        };
        clock.exists && !self.is_stopped(nth) && is_driven
    }

    /// Returns `true` if a clock itself stands still. A pause of Bevy's game time stops the game clock.
    pub(super) fn is_stopped(&self, nth: Nth) -> bool {
        let clock = &self.all[nth];
        let is_game_paused = self.times.is_game_paused || self.times.is_paused_by_now;
        clock.is_stopped() || clock.driver == Driver::Game && is_game_paused
    }

    pub(crate) fn runs_on(&self, nth: Nth, root: Nth) -> bool {
        match self.all[nth].driver {
            _ if nth == root => true,
            Driver::Clock(parent) => self.runs_on(parent, root),
            _ => false,
        }
    }

    /// Adds a clock. It counts from the time of its parent at this moment. Clocks that wait for it get it as
    /// their parent.
    pub(crate) fn add(
        &mut self,
        entity: Id,
        parent: Option<Named>,
        (speed, factor, is_disabled): (f64, f64, bool),
        shown: u64,
    ) {
        let name = Named::Own(entity);
        let nth = self.all.len();
        let mut clock = Clock {
            factor,
            is_disabled,
            ..Clock::new(name, parent, Driver::Missing, speed)
        };
        clock.set_now(shown);
        self.all.push(clock);
        self.set_parent(nth, parent);
        for at in 0..nth {
            let clock = &self.all[at];
            let is_orphan = clock.driver == Driver::Missing && clock.parent == Some(name);
            if clock.exists && (is_orphan || clock.awaited == Some(name)) {
                let is_default = match clock.awaited {
                    Some(_) => clock.awaits_default,
                    None => clock.has_default_parent,
                };
                if self.set_parent(at, Some(name)) {
                    self.all[at].has_default_parent = is_default;
                }
            }
        }
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
                clock.driver = Driver::Missing;
            }
        }
    }

    /// Puts a clock on another parent from now on, or on none. Returns `false` if there is no such clock,
    /// or if the clock would drive itself.
    pub(crate) fn set_parent(&mut self, nth: Nth, parent: Option<Named>) -> bool {
        let to = parent.map(|parent| self.find(parent));
        if to.is_some_and(|to| to.is_none_or(|to| self.runs_on(to, nth))) {
            return false;
        }
        let (driver, seen, is_fixed) = match to.flatten() {
            Some(to) => {
                let to_clock = &self.all[to];
                (Driver::Clock(to), to_clock.now, to_clock.is_fixed)
            }
            None => (Driver::Hand, 0, false),
        };
        let clock = &mut self.all[nth];
        if let Named::Own(id) = clock.name {
            self.moved.push(id);
        }
        (clock.driver, clock.seen) = (driver, seen);
        (clock.parent, clock.awaited) = (parent, None);
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

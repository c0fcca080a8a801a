//! Clocks that are read in every run.

use core::time::Duration;
use std::{prelude::rust_2024::*, vec::Vec};

use super::ALL;
use crate::clock::{
    readings::TimeSource,
    row::{BevyTime, Brakes, Cadence, ClockKey, FRAME, Source},
    speed::Speed,
    state::ClockState,
};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times(pub(super) [u64; 3]);

impl TimeSource for Times {
    fn elapsed(&self, time: BevyTime) -> Duration {
        Duration::from_nanos(self.0[time as usize])
    }

    fn was_paused(&self) -> bool {
        false
    }
}

/// A clock that is read in every run.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    pub(super) key: ClockKey,
    pub(super) source: From,
    /// Kept when the clock loses its parent.
    pub(super) cadence: Cadence,
    pub(super) state: ClockState,
    pub(super) brakes: Brakes,
    pub(super) seen: u64,
    /// The time in this run, and whether the clock was stopped.
    pub(super) read: (u64, bool),
    /// The time in the last two runs of the cadence.
    pub(super) ticks: (u64, u64),
    pub(super) deadline: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum From {
    Time(Source),
    Clock(usize),
    Nothing,
}

pub(super) struct Model {
    pub(super) clocks: Vec<Option<Clock>>,
    pub(super) times: Times,
}

impl Clock {
    fn rate(&self) -> Speed {
        self.state.speed.times(self.brakes.factor)
    }

    fn is_paused(&self) -> bool {
        self.state.paused || self.brakes.holds > 0
    }

    fn followed(&self, to: u64) -> ClockState {
        let mut state = self.state;
        if self.is_paused() {
            return state;
        }
        match to.checked_sub(self.seen) {
            Some(by) => state.run(self.rate(), by),
            None => state.run_back(self.rate(), self.seen - to),
        }
        state
    }
}

impl Model {
    pub(super) fn clock(&self, at: usize) -> Option<&Clock> {
        self.clocks[at].as_ref()
    }

    fn parent(&self, at: usize) -> Option<usize> {
        match self.clock(at)?.source {
            From::Clock(parent) => Some(parent),
            _ => None,
        }
    }

    pub(super) fn root(&self, at: usize) -> Option<usize> {
        match self.clock(at)?.source {
            From::Clock(parent) => self.root(parent),
            From::Time(_) => Some(at),
            From::Nothing => None,
        }
    }

    pub(super) fn is_of(&self, at: usize, cadence: Cadence) -> bool {
        let clock = self.clock(at);
        clock.is_some_and(|clock| clock.cadence == cadence)
    }

    pub(super) fn elapsed(&self, source: Source) -> Option<u64> {
        match source {
            Source::Bevy(time) => Some(self.times.0[time as usize]),
            _ => None,
        }
    }

    /// Reads the clocks of a cadence, parents before children: in a run, or when a clock has been
    /// fast-forwarded on its own.
    pub(super) fn read(&mut self, cadence: Cadence, forwarded: Option<usize>) {
        let is_run = forwarded.is_none();
        let depth = |at: &usize| {
            let mut depth = 0;
            let mut at = *at;
            while let Some(parent) = self.parent(at) {
                (at, depth) = (parent, depth + 1);
            }
            depth
        };
        let mut order: Vec<usize> = (0..ALL).collect();
        order.sort_by_key(depth);
        for at in order {
            if !self.is_of(at, cadence) {
                continue;
            }
            let Some(clock) = self.clock(at) else {
                continue;
            };
            let (to, stopped) = match clock.source {
                _ if forwarded == Some(at) => (clock.seen, false),
                From::Time(source) if is_run => {
                    let frame = clock.seen.saturating_add(FRAME);
                    (self.elapsed(source).unwrap_or(frame), false)
                }
                From::Time(_) => (clock.seen, false),
                From::Clock(parent) => self.clock(parent).map_or((0, true), |clock| clock.read),
                From::Nothing => (clock.seen, true),
            };
            let mut clock = clock.clone();
            // A source that has been seen ahead is not set back by reading it again.
            if is_run || to > clock.seen {
                clock.state = clock.followed(to);
                clock.seen = to;
            }
            let is_stopped = stopped || clock.is_paused() || clock.rate().is_zero();
            clock.read = (clock.state.now, is_stopped);
            if is_run {
                clock.ticks = (clock.state.now, clock.ticks.0);
            }
            self.clocks[at] = Some(clock);
        }
    }

    /// Returns the time of a clock at this moment.
    pub(super) fn live(&self, at: usize) -> u64 {
        let clock = self.clock(at).expect("the clock should exist");
        let to = match clock.source {
            From::Time(source) => self.elapsed(source).unwrap_or(clock.seen),
            From::Clock(parent) => self.live(parent),
            From::Nothing => clock.seen,
        };
        clock.followed(to).now
    }

    pub(super) fn runs_on(&self, at: usize, root: usize) -> bool {
        at == root
            || self
                .parent(at)
                .is_some_and(|parent| self.runs_on(parent, root))
    }
}

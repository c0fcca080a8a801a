//! Reading the clocks: for a run, or at any moment. And changing them in between.

use core::time::Duration;

use smallvec::SmallVec;

#[cfg(feature = "serialize")]
use super::time_passed::TimePassed;
use super::{
    load::Saved,
    reading::{Reading, saturating_nanos},
    row::{
        BevyTime, Brakes, Cadence, ClockKey, FRAME, Live, Moment, Row, RunReading, Source, Ticks,
    },
    state::ClockState,
    table::{BUILT_IN, Counters, Start, Table},
};

/// A source of Bevy's times: a world, or system parameters.
pub(super) trait TimeSource {
    /// Returns the reading of one of Bevy's clocks.
    fn elapsed(&self, time: BevyTime) -> Duration;

    /// Returns `true` if game time was paused when this frame began.
    fn was_paused(&self) -> bool;
}

/// A path from a clock up to the first ancestor that needs no work.
type Path = SmallVec<[ClockKey; 8]>;

impl Table {
    /// Creates the built-in clocks.
    pub(super) fn new(times: &impl TimeSource) -> Self {
        let mut table = Self::default();
        for (key, (id, source)) in (0..).zip(BUILT_IN) {
            let mut state = ClockState::new(id);
            let seen = elapsed(source, times).unwrap_or(0);
            state.advance(seen);
            let start = Start {
                source,
                root: key,
                seen,
                moment: None,
                run: Reading {
                    now: seen,
                    ..Reading::default()
                },
            };
            table.add(None, (state, Saved::default()), Brakes::default(), start);
        }
        table
    }

    /// Starts a run on the clocks of a cadence: reads the built-in ones. The others are read when
    /// they are needed.
    pub(super) fn begin_run(&mut self, cadence: Cadence, times: &impl TimeSource) {
        let roots = Self::built_in(cadence);
        // The times that the sources of the roots show. Each is looked up once.
        let mut sources = [0; BUILT_IN.len()];
        let mut is_set_back = false;
        for (now, &root) in sources.iter_mut().zip(roots) {
            if let Some(row) = self.get(root) {
                let next_frame = || row.seen.saturating_add(FRAME);
                *now = elapsed(row.source, times).unwrap_or_else(next_frame);
                is_set_back |= *now < row.seen;
            }
        }
        let roots = || roots.iter().copied().zip(sources);
        if is_set_back {
            self.prepare_set_back(roots());
        }
        self.counters.runs[cadence as usize] += 1;
        self.counters.epochs[cadence as usize] += 1;
        self.counters.changes.note();
        for (root, now) in roots() {
            self.read_built_in(root, now, times);
        }
        if is_set_back {
            for (root, _) in roots() {
                self.set_back_under(root);
            }
        }
        self.set_back_ahead(cadence);
        self.end_load();
    }

    fn read_built_in(&mut self, root: ClockKey, now: u64, times: &impl TimeSource) {
        let Counters { runs, epochs, .. } = self.counters;
        let Some(row) = self.get_mut(root) else {
            return;
        };
        row.set_back_to(now);
        row.settle_at(now);
        row.brakes.source_stopped =
            row.source == Source::Bevy(BevyTime::Virtual) && times.was_paused();
        let is_stopped = row.is_stopped() || row.brakes.source_stopped;
        row.run = RunReading {
            epoch: epochs[row.cadence as usize],
            reading: row.state.read(is_stopped),
        };
        row.ticks = Ticks {
            run: runs[row.cadence as usize],
            last: row.state.now,
            previous: row.ticks.last,
        };
    }

    /// Returns the reading of a clock in this run.
    pub(super) fn run_reading(&mut self, key: ClockKey) -> Option<Reading> {
        let is_read =
            |table: &Self, row: &Row| row.run.epoch == table.counters.epochs[row.cadence as usize];
        let row = self.get(key)?;
        if is_read(self, row) {
            return Some(row.run.reading);
        }
        for key in self.path(key, is_read).into_iter().rev() {
            let parent = self.parent(key);
            let parent = parent
                .and_then(|parent| self.get(parent))
                .map(|row| row.run);
            let row = self.get(key)?;
            let (state, stopped) = match (parent, row.source) {
                (Some(parent), _) => (row.state_at(parent.reading.now), parent.reading.stopped),
                (None, Source::Bevy(_) | Source::Frames) => (row.state, row.brakes.source_stopped),
                (None, _) => (row.state, true),
            };
            let epoch = self.counters.epochs[row.cadence as usize];
            let reading = state.read(stopped || row.is_stopped());
            self.get_mut(key)?.run = RunReading { epoch, reading };
        }
        Some(self.get(key)?.run.reading)
    }

    /// Returns the time of a clock in the last two runs of its cadence.
    pub(super) fn ticks(&mut self, key: ClockKey) -> Option<Ticks> {
        let path = self.path(key, |table, row| {
            row.ticks.run == table.counters.runs[row.cadence as usize]
        });
        for key in path.into_iter().rev() {
            let parent = self.parent(key);
            let parent = parent
                .and_then(|parent| self.get(parent))
                .map(|row| row.ticks);
            let row = self.get(key)?;
            let run = self.counters.runs[row.cadence as usize];
            let time_at = |now| row.state_at(now).now;
            let last = parent.map_or(row.state.now, |parent| time_at(parent.last));
            let previous = match parent {
                _ if row.ticks.run + 1 == run => row.ticks.last,
                Some(parent) => time_at(parent.previous),
                None => row.state.now,
            };
            self.get_mut(key)?.ticks = Ticks {
                run,
                last,
                previous,
            };
        }
        Some(self.get(key)?.ticks)
    }

    /// Returns the clocks from `key` up to the first that is `done`, or that has no parent.
    fn path(&self, key: ClockKey, done: impl Fn(&Self, &Row) -> bool) -> Path {
        let mut path = Path::new();
        let mut at = Some(key);
        while let Some(key) = at
            && let Some(row) = self.get(key)
            && !done(self, row)
        {
            path.push(key);
            at = self.parent(key);
        }
        path
    }

    /// Returns the state of a clock, with all changes since the last run.
    pub(super) fn current(&mut self, key: ClockKey) -> Option<ClockState> {
        let source = self.source_now(key)?;
        Some(self.get(key)?.state_at(source))
    }

    /// Returns the state that a clock would have in a run that began now, if no time had passed on
    /// the built-in clocks. A change of its parent has then reached it.
    pub(super) fn settled(&self, key: ClockKey) -> Option<ClockState> {
        self.settled_after(key, |_| 0)
    }

    /// Returns the same state, if the built-in clocks had advanced by these nanoseconds.
    fn settled_after(&self, key: ClockKey, nanos: impl Fn(Source) -> u64) -> Option<ClockState> {
        let path = self.path(key, |_, _| false);
        let mut above: Option<ClockState> = None;
        for key in path.into_iter().rev() {
            let row = self.get(key)?;
            above = Some(match (above, row.source) {
                (Some(parent), _) => row.state_at(parent.now),
                (None, Source::Bevy(_)) => row.state_after(nanos(row.source)),
                (None, _) => row.state_after(row.behind.saturating_add(nanos(row.source))),
            });
        }
        above
    }

    /// Returns the time of the source of a clock, as of this run.
    pub(super) fn source_now(&mut self, key: ClockKey) -> Option<u64> {
        let seen = self.get(key)?.seen;
        Some(match self.parent(key) {
            Some(parent) if !self.is_new(key) => self.run_reading(parent)?.now,
            _ => seen,
        })
    }

    /// Returns `true` if no run has begun since a clock was added.
    pub(super) fn is_new(&self, key: ClockKey) -> bool {
        let row = self.get(key);
        row.is_some_and(|row| row.added_in == Some(self.counters.epochs[row.cadence as usize]))
    }

    /// Brings a clock up to date, so that it can change.
    pub(super) fn settle(&mut self, key: ClockKey) {
        self.ticks(key);
        self.run_reading(key);
        if let Some(source) = self.source_now(key)
            && let Some(row) = self.get_mut(key)
        {
            row.settle_at(source);
        }
    }

    /// Changes a clock. The time up to the last run has passed with its previous settings.
    pub(super) fn change(&mut self, key: ClockKey, change: impl FnOnce(&mut Row)) {
        self.settle(key);
        self.counters.changes.note();
        if let Some(row) = self.get_mut(key) {
            change(row);
        }
        self.reschedule(key);
    }

    /// Advances a clock on its own, and lets its descendants follow immediately.
    pub(super) fn fast_forward(&mut self, key: ClockKey, nanos: u64) {
        self.change(key, |row| row.state.advance(nanos));
        let Some(row) = self.get(key) else {
            return;
        };
        let reading = row.state.read(row.is_stopped());
        let cadence = row.cadence as usize;
        self.counters.epochs[cadence] += 1;
        let epoch = self.counters.epochs[cadence];
        if let Some(row) = self.get_mut(key) {
            row.run = RunReading { epoch, reading };
        }
    }

    /// Returns how far a clock advances while the built-in clocks advance, at its present speed.
    #[cfg(feature = "serialize")]
    pub(super) fn share(&self, key: ClockKey, passed: &TimePassed) -> u64 {
        let before = self.settled(key).map_or(0, |state| state.now);
        let after = self.settled_after(key, |source| passed.on(source));
        after.map_or(0, |state| state.now.saturating_sub(before))
    }

    /// Lets the source of a clock advance by `nanos`, unseen by other clocks.
    #[cfg(feature = "serialize")]
    pub(super) fn pass(&mut self, key: ClockKey, nanos: u64) {
        self.change(key, |row| {
            row.state = row.state_after(nanos);
        });
        self.fast_forward(key, 0);
    }

    /// Returns the state of a clock at this moment. Bevy's time may have advanced since the last
    /// run.
    pub(super) fn live(&mut self, key: ClockKey, times: &impl TimeSource) -> Option<ClockState> {
        let moment = self.moment(key, times)?;
        let path = self.path(key, |_, row| row.live.moment == Some(moment));
        for &key in path.iter().rev() {
            let now = self.live_state(key, times)?.now;
            let moment = Some(moment);
            self.get_mut(key)?.live = Live { moment, now };
        }
        self.live_state(key, times)
    }

    /// Returns the moment at which the clocks under the root of `key` are read.
    pub(super) fn moment(&self, key: ClockKey, times: &impl TimeSource) -> Option<Moment> {
        let root = self.get(self.get(key)?.root)?;
        Some(Moment {
            changes: self.counters.changes.get(),
            elapsed: elapsed(root.source, times).unwrap_or(root.seen),
        })
    }

    /// Returns the state of a clock whose parent, if any, has been read for this moment.
    fn live_state(&mut self, key: ClockKey, times: &impl TimeSource) -> Option<ClockState> {
        let before = self.source_now(key)?;
        let row = self.get(key)?;
        let now = match self.parent(key) {
            Some(parent) => self.get(parent)?.live.now,
            None => match elapsed(row.source, times) {
                Some(now) => now,
                None => return Some(row.state_after(row.behind)),
            },
        };
        let mut state = row.state_at(now.max(before));
        if now < before && !row.is_stopped() {
            state.run_back(row.rate(), before.max(row.seen) - now);
        }
        Some(state)
    }
}

/// Returns the reading of one of Bevy's clocks, or `None` for any other source.
pub(super) fn elapsed(source: Source, times: &impl TimeSource) -> Option<u64> {
    match source {
        Source::Bevy(time) => Some(saturating_nanos(times.elapsed(time))),
        Source::Frames | Source::Clock(..) | Source::Missing => None,
    }
}

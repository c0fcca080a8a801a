//! Exact frames: the clocks advance through a frame one deadline at a time.
//!
//! A reading only notes how much of Bevy's time has yet to pass. The run then lets it pass step by step, so that each
//! handler finds all clocks at the deadline that fires.

use super::{
    row::{BUILT_IN, Cadence, ClockKey, FRAMES, Row, VIRTUAL, built_in_id},
    table::{ClockTable, FRAME, Scope},
};

/// How far the built-in clocks are behind Bevy's time, in a frame that goes through its deadlines one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct ExactFrames {
    pub(super) is_on: bool,
    behind: [Option<u64>; BUILT_IN.len()],
    /// How far they were behind when the frame began, or when the game last stood still. All have gone the same part of
    /// it.
    whole: [u64; BUILT_IN.len()],
    /// Whether the clocks of each cadence are on their way through a frame, which no longer becomes longer.
    is_under_way: [bool; 2],
}

impl ExactFrames {
    /// Lets the parts of the frame count from here.
    fn begin_part(&mut self, cadence: Cadence) {
        for &root in cadence.roots() {
            self.whole[root as usize] = self.behind[root as usize].unwrap_or(0);
        }
    }

    /// Returns how much of Bevy's time has passed in this part of the frame.
    fn passed(&self, root: ClockKey) -> u64 {
        let behind = self.behind[root as usize].unwrap_or(0);
        self.whole[root as usize].saturating_sub(behind)
    }
}

impl ClockTable {
    /// Advances the built-in clocks of a cadence to the times that Bevy shows for them, or begins an exact frame. Each
    /// time comes with its latest step.
    pub(super) fn advance(&mut self, cadence: Cadence, times: [(u64, u64); BUILT_IN.len()]) {
        for &root in cadence.roots() {
            let before = self.frames.behind[root as usize].unwrap_or(0);
            let Some(row) = self.rows.get_mut(root) else {
                continue;
            };
            let behind = match (root, times[root as usize]) {
                (FRAMES, _) => before + FRAME,
                // A handler reads the clocks. What it has let pass on Bevy's clocks waits for the next frame.
                _ if self.frames.is_under_way[cadence as usize] => before,
                (_, (elapsed, delta)) => row.behind(elapsed, delta),
            };
            self.frames.behind[root as usize] = Some(behind);
        }
        if !self.frames.is_on {
            self.end_frame(cadence, false);
        } else if !self.frames.is_under_way[cadence as usize] {
            self.frames.begin_part(cadence);
        }
    }

    /// Lets the next reading make a frame longer again, although the clocks have not reached its end.
    pub(crate) fn end_way(&mut self) {
        self.frames.is_under_way = [false; 2];
    }

    /// Returns `true` while the clocks of a cadence are behind Bevy's time.
    #[inline]
    pub(crate) fn is_in_frame(&self, cadence: Cadence) -> bool {
        let mut roots = cadence.roots().iter();
        roots.any(|&root| self.frames.behind[root as usize].is_some())
    }

    /// Returns `true` in a run that goes through its frame from deadline to deadline.
    pub(crate) fn is_exact(&self, scope: Scope) -> bool {
        matches!(scope, Scope::Of(cadence) if self.is_in_frame(cadence))
    }

    /// Advances the clocks of a cadence to the next deadline of the frame, or to its end. Returns `false` if they were
    /// there.
    ///
    /// If the game is stopped, the rest of the frame passes on its clock after the stop: Bevy has counted it.
    pub(crate) fn step(&mut self, cadence: Cadence, is_game_stopped: bool) -> bool {
        if !self.is_in_frame(cadence) {
            return false;
        }
        let waits = |root| root == VIRTUAL && is_game_stopped;
        let steps = cadence.tops().iter().filter(|&&top| !waits(top));
        let steps = steps.filter_map(|&top| self.next_step(top));
        // The first one, as a part of its frame.
        let first = steps.min_by(|&(a, of_a), &(b, of_b)| {
            let part = |to: u64, other: u64| u128::from(to) * u128::from(other);
            part(a, of_b).cmp(&part(b, of_a))
        });
        self.frames.is_under_way[cadence as usize] = true;
        let Some((to, of)) = first else {
            self.end_frame(cadence, is_game_stopped);
            return true;
        };
        for &root in cadence.roots() {
            if root != FRAMES && !waits(root) {
                let whole = self.frames.whole[root as usize];
                // Not from step to step, so that nothing is rounded twice.
                let to = match whole == of {
                    true => to,
                    false => (u128::from(whole) * u128::from(to) / u128::from(of)) as u64,
                };
                self.pass_on(root, to.saturating_sub(self.frames.passed(root)));
            }
        }
        if cadence.roots().iter().any(|&root| waits(root)) {
            self.frames.begin_part(cadence);
        }
        true
    }

    /// Returns how much of Bevy's time has passed in the frame at the next deadline on a time line, and how much at its
    /// end, which is not zero. Returns `None` if there is no deadline in the frame.
    fn next_step(&self, top: ClockKey) -> Option<(u64, u64)> {
        let soonest = self.lines.under(top).soonest();
        if built_in_id(top).is_none() {
            return (soonest == 0).then_some((0, 1));
        }
        let row = self.rows.get(top).filter(|row| !row.is_stopped())?;
        if soonest <= row.time.now {
            return Some((0, 1));
        }
        let behind = match top {
            FRAMES => 0,
            top => self.frames.behind[top as usize]?,
        };
        let span = row.parent_time(soonest)?.saturating_sub(row.seen);
        let whole = self.frames.whole[top as usize].max(1);
        (span <= behind).then(|| (self.frames.passed(top) + span, whole))
    }

    /// Lets some of the time of a frame pass on a built-in clock.
    fn pass_on(&mut self, root: ClockKey, nanos: u64) {
        if let (Some(row), Some(behind)) = (
            self.rows.get_mut(root),
            &mut self.frames.behind[root as usize],
        ) {
            row.pass(nanos);
            *behind -= nanos;
        }
    }

    /// Lets the rest of a frame pass, and ends the reading of a cadence.
    pub(crate) fn end_frame(&mut self, cadence: Cadence, is_game_stopped: bool) {
        self.frames.is_under_way[cadence as usize] = false;
        self.rounds[cadence as usize] += 1;
        let round = self.rounds[cadence as usize];
        for &root in cadence.roots() {
            let behind = self.frames.behind[root as usize].unwrap_or(0);
            if root != VIRTUAL || !is_game_stopped {
                self.pass_on(root, behind);
            }
            self.frames.behind[root as usize] = None;
            if let Some(row) = self.rows.get_mut(root) {
                row.end_reading(round);
            }
        }
    }

    /// Returns the time on a clock at the end of the frame, at its present speed, or `None` in a run that is not exact.
    /// The clock shows `now`.
    pub(crate) fn end_of_frame(&self, clock: ClockKey, scope: Scope, now: u64) -> Option<u64> {
        let end_on_root = |root: ClockKey, row: &Row| {
            let behind = *self.frames.behind.get(root as usize)?;
            Some(row.time_after(behind?))
        };
        let end = || self.rows.time_below(clock, end_on_root);
        self.is_exact(scope)
            .then(|| end().map_or(now, |end| end.now))
    }

    /// Returns `true` if a deadline passes on a time line in the rest of an exact frame.
    pub(super) fn is_due_in_frame(&self, top: ClockKey) -> bool {
        let behind = self.frames.behind.get(top as usize).copied().flatten();
        let row = self.rows.get(top);
        behind.zip(row).is_some_and(|(behind, row)| {
            self.lines.under(top).soonest() <= row.time_after(behind).now
        })
    }
}

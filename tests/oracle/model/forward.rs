//! Fast-forwards: a run at each deadline, found by bisection.

use super::{Flow, Model, Panicked, clock::NEVER, clocks::Nth, firing::Scope};
use crate::op::At;

/// The wait of a timer that is due already: one step of Bevy's fixed schedule.
const SOON: u64 = 15_625_000;

impl Model {
    /// Returns the sums of the statistics of all runs, or `None` if the clock is missing or stopped.
    pub(super) fn fast_forward(&mut self, at: At, span: u64) -> Result<Option<[u64; 3]>, Panicked> {
        let root = self.find_clock(at);
        self.clocks.take_changes();
        let Some(root) = root.filter(|&root| self.clocks.can_forward(root)) else {
            return Ok(None);
        };
        let mut stats = [0; 3];
        self.step(root, 0, &mut stats)?;
        let mut left = span;
        while left > 0 && self.clocks.can_forward(root) {
            let next = self.until_next(root, SOON);
            if !self.clocks.can_forward(root) {
                break;
            }
            let by = next.map_or(left, |next| next.min(left));
            left -= by;
            self.step(root, by, &mut stats)?;
        }
        Ok(Some(stats))
    }

    /// Returns the distance, or `Some(None)` if nothing is due.
    pub(super) fn fast_forward_to_next(&mut self, at: At) -> Result<Option<Option<u64>>, Panicked> {
        let root = self.find_clock(at);
        self.clocks.take_changes();
        let Some(root) = root.filter(|&root| self.clocks.can_forward(root)) else {
            return Ok(None);
        };
        self.advance(root, 0);
        let next = self.until_next(root, 0);
        let next = next.filter(|_| self.clocks.can_forward(root));
        if let Some(by) = next {
            self.step(root, by, &mut [0; 3])?;
        }
        Ok(Some(next))
    }

    fn advance(&mut self, root: Nth, by: u64) {
        self.clocks.forward(root, by);
    }

    fn step(&mut self, root: Nth, by: u64, sums: &mut [u64; 3]) -> Flow {
        self.advance(root, by);
        let mut stats = [0; 3];
        self.run(Scope::Under(root), &mut stats)?;
        for (sum, stat) in sums.iter_mut().zip(stats) {
            *sum += stat;
        }
        Ok(())
    }

    /// Returns how far the clock must advance until something is due on it or on a clock that runs
    /// on it.
    fn until_next(&mut self, root: Nth, overdue: u64) -> Option<u64> {
        self.clocks.take_changes();
        let waiting = self
            .timers
            .iter()
            .filter(|timer| timer.paused_at.is_none() && !timer.is_held);
        let spans = waiting.filter_map(|timer| {
            let clock = timer.clock.filter(|_| timer.deadline != NEVER)?;
            let is_in = self.is_in(clock, Scope::Under(root));
            is_in.then(|| self.span_until(clock, root, timer.deadline))?
        });
        let span = spans.min()?;
        Some(if span == 0 { overdue } else { span })
    }

    /// Returns the shortest advance of `root` after which `clock` reaches a deadline.
    fn span_until(&self, clock: Nth, root: Nth, deadline: u64) -> Option<u64> {
        let is_due = |by| Some(self.clocks.time_after(clock, root, by)? >= deadline);
        let mut range = (0, NEVER - 1 - self.clocks.all[root].now);
        if !is_due(range.1)? {
            return None;
        }
        while range.0 < range.1 {
            let middle = range.0 + (range.1 - range.0) / 2;
            match is_due(middle)? {
                true => range.1 = middle,
                false => range.0 = middle + 1,
            }
        }
        Some(range.0)
    }
}

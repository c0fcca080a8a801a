//! Fast-forwards: a run at each deadline.

use super::{Flow, Model, Panicked, clock::NEVER, clocks::Scope, exact::first_where};
use crate::op::At;

/// The wait of a timer that is due already: one step of Bevy's fixed schedule.
const SOON: u64 = 15_625_000;

impl Model {
    /// Returns the sums of the statistics of all runs, or `None` if there is no such clock.
    pub(super) fn fast_forward(&mut self, at: At, span: u64) -> Result<Option<[u64; 3]>, Panicked> {
        let Some(scope) = self.under(at) else {
            return Ok(None);
        };
        let mut stats = [0; 3];
        self.step(scope, 0, &mut stats)?;
        let mut left = span;
        // A handler that stops the clock ends the fast-forward, unless it was stopped before.
        while left > 0 && self.goes_on(scope) {
            self.swap(scope);
            // A modifier may have stopped the clock.
            if !self.goes_on(scope) {
                break;
            }
            let next = self.until_next(scope);
            let next = next.map(|next| if next == 0 { SOON } else { next });
            let by = next.map_or(left, |next| next.min(left));
            left -= by;
            self.step(scope, by, &mut stats)?;
        }
        Ok(Some(stats))
    }

    /// Returns the distance, or `Some(None)` if nothing is due.
    pub(super) fn fast_forward_to_next(&mut self, at: At) -> Result<Option<Option<u64>>, Panicked> {
        let Some(scope) = self.under(at) else {
            return Ok(None);
        };
        self.swap(scope);
        let next = self.until_next(scope).filter(|_| self.goes_on(scope));
        if let Some(by) = next {
            self.step(scope, by, &mut [0; 3])?;
        }
        Ok(Some(next))
    }

    fn under(&self, at: At) -> Option<Scope> {
        let root = self.find_clock(at)?;
        let was_stopped = self.clocks.is_stopped(root);
        Some(Scope::Under { root, was_stopped })
    }

    fn goes_on(&self, scope: Scope) -> bool {
        matches!(scope, Scope::Under { root, .. } if self.clocks.is_running(root, scope))
    }

    fn step(&mut self, scope: Scope, by: u64, sums: &mut [u64; 3]) -> Flow {
        if let Scope::Under { root, .. } = scope {
            self.clocks.jump(root, |clock| clock.advance(by));
        }
        let mut stats = [0; 3];
        self.run(scope, &mut stats)?;
        for (sum, stat) in sums.iter_mut().zip(stats) {
            *sum += stat;
        }
        Ok(())
    }

    /// Returns how far the clock must advance until something is due on it or on a clock that runs on it.
    fn until_next(&self, scope: Scope) -> Option<u64> {
        let Scope::Under { root, .. } = scope else {
            return None;
        };
        first_where(0, NEVER - 1 - self.clocks.all[root].now, |by| {
            let mut clocks = self.clocks.clone();
            clocks.jump(root, |clock| clock.advance(by));
            self.is_any_due(&clocks, scope)
        })
    }
}

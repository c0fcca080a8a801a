//! The budget: deferrable timers that are due wait until all others have fired, and then for a frame in
//! which there is room.

use super::{Flow, Model, firing::Scope};

/// The frames of waiting that count as much as one priority.
const FRAMES_PER_PRIORITY: i64 = 16;

impl Model {
    pub(super) fn stop_waiting(&mut self, scope: Scope) {
        for at in 0..self.timers.len() {
            let clock = self.timers[at].clock;
            if clock.is_some_and(|clock| self.is_in(clock, scope)) {
                self.timers[at].turn = None;
            }
        }
    }

    pub(super) fn deferred(&self) -> usize {
        let timers = self.timers.iter();
        timers.filter(|timer| timer.turn.is_some()).count()
    }

    /// A due timer takes a place among the waiting ones, by its priority and by the frame.
    pub(super) fn wait_for_budget(&mut self, at: usize) {
        let priority = i64::from(self.timers[at].priority.unwrap_or(0));
        let turn = self.frames + priority * FRAMES_PER_PRIORITY;
        self.timers[at].turn = Some((turn, self.waits));
        self.waits += 1;
    }

    /// The waiting timers fire in turn. Those whose clock is stopped are passed over.
    pub(super) fn fire_waiting(&mut self, is_fixed: bool, stats: &mut [u64; 3]) -> Flow {
        let mut last = None;
        while let Some((turn, at)) = self.next_waiting(last) {
            let clock = self.timers[at].clock.expect("it is armed");
            if !self.is_in(clock, Scope::Of { is_fixed }) || !self.clocks.may_fire(clock, None) {
                last = Some(turn);
                continue;
            }
            // The frame and its fixed steps each fire one at least.
            let spent = &mut self.spent[usize::from(is_fixed)];
            *spent += 1;
            if *spent > 1 && self.spent.iter().sum::<u32>() > self.rules.budget {
                self.spent[usize::from(is_fixed)] -= 1;
                break;
            }
            self.fire(at, is_fixed, stats)?;
        }
        Ok(())
    }

    fn next_waiting(&self, last: Option<(i64, u64)>) -> Option<((i64, u64), usize)> {
        let waiting = self.timers.iter().enumerate();
        let waiting = waiting.filter_map(|(at, timer)| Some((timer.turn?, at)));
        waiting.filter(|&(turn, _)| Some(turn) > last).min()
    }
}

//! The budget: deferrable timers that are due wait until all others have fired, and then for a frame in
//! which there is room.

use core::cmp::Reverse;

use super::{Flow, Model, clocks::Nth, timers::Timer};

/// The wait that counts as much as one priority.
const WAIT_PER_PRIORITY: i128 = 250_000_000;

impl Model {
    pub(super) fn is_anyone_waiting(&self, clock: Nth) -> bool {
        let mut timers = self.timers.iter();
        timers.any(|timer| timer.waits && timer.clock == Some(clock))
    }

    pub(super) fn stop_waiting(&mut self, clock: Nth) {
        let timers = self.timers.iter_mut();
        for timer in timers.filter(|timer| timer.clock == Some(clock)) {
            timer.waits = false;
        }
    }

    pub(super) fn deferred(&self) -> usize {
        self.timers.iter().filter(|timer| timer.waits).count()
    }

    /// The most urgent timer fires: the one that is the latest, with its priority taken into account.
    pub(super) fn fire_waiting(&mut self, due: &[Nth], stats: &mut [u64; 3]) -> Flow {
        while let Some(at) = self.most_urgent(due) {
            let clock = self.timers[at].clock.expect("it is armed");
            let is_fixed = self.clocks.all[clock].is_fixed;
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

    fn most_urgent(&self, due: &[Nth]) -> Option<usize> {
        let heads = due.iter().enumerate().filter_map(|(nth, &clock)| {
            let waiting = self.timers.iter().enumerate();
            let waiting = waiting.filter(|(_, it)| it.waits && it.clock == Some(clock));
            let (at, head) = waiting.min_by_key(|(_, timer)| (rank(timer), timer.sequence))?;
            let urgency = i128::from(self.clocks.all[clock].reading.now) - rank(head);
            let may_fire = self.clocks.may_fire(clock, None);
            may_fire.then_some((urgency, Reverse(nth), at))
        });
        heads.max().map(|(.., at)| at)
    }
}

fn rank(timer: &Timer) -> i128 {
    let priority = i128::from(timer.priority.unwrap_or(0));
    i128::from(timer.deadline) + priority * WAIT_PER_PRIORITY
}

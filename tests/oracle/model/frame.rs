//! A frame: time passes, timers fire, callbacks are called, messages are delivered, and then the
//! steps of the fixed schedule follow.

use super::{Model, clocks::Scope};
use crate::entry::Named;

impl Model {
    pub(super) fn frame(&mut self, by: u64) {
        let times = &mut self.clocks.times;
        times.is_game_paused = self.is_game_paused;
        times.real += by;
        times.frames += 1;
        let game = if self.is_game_paused { 0 } else { by };
        times.game += game;
        self.swap_written();
        for (id, entity) in self.entities.iter().enumerate() {
            if let Some(nth) = self.clocks.find(Named::Own(id)) {
                self.clocks.all[nth].is_held = entity.is_held && !self.condition;
            }
        }
        self.timers_and_updates(false);
        // A panic ends the delivery of this frame.
        self.deliver().ok();
        if self.rules.step == 0 {
            return;
        }
        self.overstep += game;
        let step = self.rules.nanos(self.rules.step);
        while self.overstep >= step {
            self.overstep -= step;
            self.clocks.times.fixed += step;
            self.timers_and_updates(true);
            self.mail.written.is_swapped_next = true;
        }
    }

    /// A panic ends the run of the timers, and then the callbacks are called nevertheless.
    fn timers_and_updates(&mut self, is_fixed: bool) {
        let mut stats = [0; 3];
        self.add_modified_clocks();
        self.clocks.stop_awaiting();
        if self.rules.exact_frames {
            self.follow_clocks();
            self.let_updates_join(is_fixed);
            self.run_exactly(is_fixed, &mut stats).ok();
        } else {
            self.clocks.read_all(is_fixed);
            self.follow_clocks();
            self.let_updates_join(is_fixed);
            self.run(Scope::Of { is_fixed }, &mut stats).ok();
        }
        self.stats[usize::from(is_fixed)] = stats;
        self.run_updates(is_fixed).ok();
    }
}

//! Saving the world, and going on in a new one.

use super::{Model, mail::Mail, rollback::Rollback, updates::Updates};
use crate::{entry::NOWHERE, rules::Rules};

impl Model {
    /// Messages, callbacks and snapshots are lost, and so are the statistics. Requests that have timed
    /// out complete nevertheless. All clocks start over, with their timers.
    pub(super) fn reload(&mut self) {
        let timed_out = self.timed_out();
        let new = Self::new(Rules {
            ahead: 0,
            ..self.rules
        });
        for entity in &mut self.entities {
            (entity.follows, entity.transit) = (None, None);
        }
        self.updates = Updates::default();
        self.mail = Mail {
            serial: self.mail.serial,
            ..Mail::default()
        };
        self.rollback = Rollback::default();
        (self.stats, self.unwritten) = (new.stats, Vec::new());
        self.clocks.take_settings();
        let mut timers = self.timers.clone();
        timers.iter_mut().for_each(|timer| self.save_new(timer));
        self.timers = timers;
        let saved = self.clocks.all.clone();
        self.clocks.start_over(new.clocks);
        for timer in &mut self.timers {
            (timer.is_held, timer.turn) = (false, None);
            if let Some(nth) = timer.clock {
                timer.follow_clock(&saved[nth], &self.clocks.all[nth]);
            }
        }
        let alive: Vec<bool> = (0..self.entities.len()).map(|id| self.exists(id)).collect();
        let is_alive = |id: usize| alive.get(id) == Some(&true);
        for ended in &mut self.ended {
            ended.retain(|&(id, _)| is_alive(id));
        }
        // Entities that do not exist any more are all the same.
        self.rename(|id| if is_alive(id) { id } else { NOWHERE });
        for request in timed_out {
            self.time_out(request);
        }
    }
}

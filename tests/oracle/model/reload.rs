//! Saving the world, and going on in a new one.

use super::{
    Model,
    mail::{Letter, Mail, Role, Round, Whom},
    rollback::Rollback,
    updates::Updates,
};
use crate::{
    entry::{Id, NOWHERE},
    op::Topic,
    rules::Rules,
};

impl Model {
    /// Update callbacks, snapshots and statistics are lost. The game inserts its message components again.
    /// All clocks start over, with their timers.
    pub(super) fn reload(&mut self) {
        let sent = self.mail_on_way().into_iter();
        let mut sent: Vec<Letter> = sent.flat_map(|it| self.saved_letters(it)).collect();
        let follows: Vec<_> = self.entities.iter().map(|it| it.follows).collect();
        let new = Self::new(Rules {
            ahead: 0,
            ..self.rules
        });
        for entity in &mut self.entities {
            (entity.follows, entity.parent) = (None, None);
            entity.children.clear();
        }
        self.updates = Updates::default();
        self.mail = Mail {
            serial: self.mail.serial,
            ..Mail::default()
        };
        self.rollback = Rollback::default();
        (self.stats, self.unwritten) = (new.stats, Vec::new());
        self.add_modified_clocks();
        let mut timers = core::mem::take(&mut self.timers);
        for timer in &mut timers {
            timer.save(|id, kind| self.spec(id, kind), self.rules);
        }
        self.timers = timers;
        let saved = self.clocks.all.clone();
        self.clocks.start_over(new.clocks);
        for timer in &mut self.timers {
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
        let name = |id| if is_alive(id) { id } else { NOWHERE };
        self.rename(name);
        for letter in &mut sent {
            letter.rename(name);
        }
        self.mail.sent = sent.into();
        for (id, follows) in follows.into_iter().enumerate() {
            if let Some(follows) = follows.filter(|_| self.exists(id)) {
                self.follow(id, follows.topics);
            }
        }
    }

    /// Returns the messages on their way, in order.
    pub(super) fn mail_on_way(&self) -> Vec<Letter> {
        let mail = &self.mail;
        let letters = mail.held.iter().chain(&mail.released);
        let letters = letters.chain(&mail.sent);
        let mut letters: Vec<Letter> = letters.cloned().collect();
        for letter in &mut letters {
            if let Role::Reply(request) = &mut letter.role {
                *request = self.request_now(*request);
            }
        }
        letters
    }

    /// Returns a message as it is saved. If its delivery to all has begun, it goes to each of the others.
    fn saved_letters(&self, letter: Letter) -> Vec<Letter> {
        let Whom::All(Some(round)) = &letter.to else {
            return vec![letter];
        };
        let left = self.left_in(letter.topic, round).into_iter();
        let letters = left.map(|id| Letter {
            to: Whom::One(Some(id)),
            ..letter.clone()
        });
        letters.collect()
    }

    /// Returns the entities that a message to all has not reached yet.
    fn left_in(&self, topic: Topic, round: &Round) -> Vec<Id> {
        let left = self.followers(topic).into_iter();
        let left = left.filter(|(number, _)| (round.next..=round.until).contains(number));
        left.map(|(_, id)| id).collect()
    }
}

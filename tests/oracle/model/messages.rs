//! The delivery of messages: once, in the order of sending, to one, to all or to one in turn.

use std::collections::VecDeque;

use super::{
    Flow, Handler, Model, Panicked,
    mail::{Letter, Outcome, Role, Round, Whom},
};
use crate::{
    entry::{Entry, Hearing, Id, Named},
    op::Topic,
};

impl Model {
    /// Held messages come first, then one that a panic has broken off, then the others in the order
    /// of sending. Messages from Bevy's writers come last.
    pub(super) fn deliver(&mut self) -> Flow {
        if let Some(request) = self.mail.completed.take() {
            self.despawn(request);
        }
        self.mail.joined = self.updates.numbers;
        self.release_lost();
        let mut released: VecDeque<Letter> = self.mail.held.drain(..).collect();
        released.extend(self.mail.broken_off.take());
        released.append(&mut self.mail.released);
        released.append(&mut self.mail.sent);
        let has_mail = !released.is_empty();
        self.mail.released = released;
        // Those that are written during the delivery wait for the next.
        let written = self.mail.written.all.len();
        let has_written = self.mail.written.is_read && written > 0;
        while let Some(letter) = self.mail.released.pop_front() {
            self.deliver_letter(letter)?;
        }
        if has_written {
            self.deliver_written(written)?;
        }
        if has_mail || has_written {
            self.mail.shown_counts = self.mail.counts;
        }
        Ok(())
    }

    fn deliver_letter(&mut self, letter: Letter) -> Flow {
        let outcome = match letter.to {
            Whom::All(_) => return self.deliver_to_all(letter),
            Whom::Rest(..) => return self.deliver_to_rest(letter),
            Whom::InTurn => self.deliver_in_turn(&letter)?,
            Whom::One(None) => Outcome::Undeliverable,
            Whom::One(Some(id)) => match letter.role {
                Role::Reply(request) => self.deliver_reply(id, request, &letter)?,
                _ => self.deliver_to(id, &letter)?,
            },
        };
        match outcome {
            Outcome::Delivered => self.mail.counts[0] += 1,
            Outcome::Undeliverable => self.mail.counts[1] += 1,
            Outcome::Late => self.mail.counts[2] += 1,
            Outcome::Early | Outcome::Disabled => self.mail.held.push(letter),
            Outcome::InTransit(id) => self.hold(id, letter),
        }
        Ok(())
    }

    /// A message to an entity that is gone or disabled, or that does not follow it, is lost. It waits
    /// for a component that does not take part yet.
    fn deliver_to(&mut self, id: Id, letter: &Letter) -> Result<Outcome, Panicked> {
        if self.exists(id) && self.entities[id].transit.is_some() {
            return Ok(Outcome::InTransit(id));
        }
        if !self.exists(id) || self.entities[id].is_disabled {
            return Ok(Outcome::Undeliverable);
        }
        Ok(match self.entities[id].follows {
            None => Outcome::Undeliverable,
            Some(follows) if follows.number > self.mail.joined => Outcome::Early,
            Some(follows) if follows.topics.contain(letter.topic) => {
                self.hear(id, letter)?;
                Outcome::Delivered
            }
            Some(_) => Outcome::Undeliverable,
        })
    }

    /// The first reply completes a request, also if a restore has spawned the request or the asking
    /// entity again. It waits for an entity that is disabled.
    fn deliver_reply(
        &mut self,
        mut asker: Id,
        request: Id,
        letter: &Letter,
    ) -> Result<Outcome, Panicked> {
        let request = self.request_now(request);
        if !self.exists(asker)
            && let Some(request) = self.entities.get(request)
        {
            asker = request.owner.unwrap_or(asker);
        }
        let letter = &Letter {
            role: Role::Reply(request),
            ..letter.clone()
        };
        if self.exists(asker) && self.entities[asker].transit.is_some() {
            return Ok(Outcome::InTransit(asker));
        }
        if !self.exists(request) || self.entities[request].owner != Some(asker) {
            return Ok(Outcome::Late);
        }
        if self.entities[asker].is_disabled {
            return Ok(Outcome::Disabled);
        }
        let follows = self.entities[asker].follows;
        if follows.is_some_and(|follows| follows.number > self.mail.joined) {
            return Ok(Outcome::Early);
        }
        self.mail.completed = Some(request);
        let outcome = self.deliver_to(asker, letter)?;
        self.mail.completed = None;
        // Other replies are late from now on, even if the entity does not follow this one.
        self.despawn(request);
        Ok(outcome)
    }

    /// Messages to all and in turn pass over entities that are disabled or in transit.
    fn hears(&self, id: Id) -> bool {
        let entity = &self.entities[id];
        !entity.is_disabled && entity.transit.is_none()
    }

    /// One follower gets the message, in turn.
    fn deliver_in_turn(&mut self, letter: &Letter) -> Result<Outcome, Panicked> {
        let topic = letter.topic as usize;
        let turn = self.mail.turns[topic];
        let all = self.followers(letter.topic);
        let joined = self.mail.joined;
        let takes_part = |&&(number, id): &&(u64, Id)| number <= joined && self.hears(id);
        let mut able = all.iter().filter(takes_part);
        let first = able.clone().next();
        let Some(&(number, id)) = able.find(|&&(number, _)| number >= turn).or(first) else {
            let is_early = all.iter().any(|&(number, _)| number > joined);
            return Ok(match is_early {
                true => Outcome::Early,
                false => Outcome::Undeliverable,
            });
        };
        self.mail.turns[topic] = number + 1;
        self.hear(id, letter)?;
        Ok(Outcome::Delivered)
    }

    /// All followers get the message. It waits for those whose component was replaced before their
    /// turn, or, if no entity got it, for all that take part from the next delivery on.
    fn deliver_to_all(&mut self, mut letter: Letter) -> Flow {
        let Whom::All(round) = &mut letter.to else {
            return Ok(());
        };
        let mut round = round.take().unwrap_or_else(|| self.new_round());
        let called = self.call_all(&mut round, &letter, false);
        if called.is_err() {
            letter.to = Whom::All(Some(round));
            self.mail.broken_off = Some(letter);
            return called;
        }
        self.mail.counts[0] += round.calls;
        let early = self.followers(letter.topic).into_iter();
        let early: Vec<Id> = early
            .filter(|&(number, _)| number > round.until)
            .map(|(_, id)| id)
            .collect();
        let owed = early.iter().copied();
        let owed: VecDeque<Id> = owed
            .filter(|&id| self.is_owed(id, letter.topic, &round))
            .collect();
        let waiting = match owed.is_empty() && round.calls == 0 {
            true => early.into(),
            false => owed,
        };
        self.wait(letter, waiting, round.calls);
        Ok(())
    }

    pub(super) fn new_round(&self) -> Round {
        Round {
            until: self.mail.joined,
            ..Round::default()
        }
    }

    /// Calls the followers in order: all that take part, or all to which the message is owed.
    pub(super) fn call_all(&mut self, round: &mut Round, letter: &Letter, owed: bool) -> Flow {
        loop {
            let followers = self.followers(letter.topic).into_iter();
            let next = followers.into_iter().find(|&(number, id)| {
                let is_meant = match owed {
                    false => number <= round.until,
                    true => number > round.until && self.is_owed(id, letter.topic, round),
                };
                is_meant && number >= round.next
            });
            let Some((number, id)) = next else {
                return Ok(());
            };
            round.next = number + 1;
            round.done.insert(id);
            if self.hears(id) {
                round.calls += 1;
                let heard = self.hear(id, letter);
                if heard.is_err() {
                    // The panic comes before the call is counted.
                    round.calls -= 1;
                    return heard;
                }
            }
        }
    }

    /// An entity is owed a message if it has followed the topic since before the round began, but its
    /// component was replaced before its turn.
    fn is_owed(&self, id: Id, topic: Topic, round: &Round) -> bool {
        let follows = self.entities[id].follows;
        let since = follows.map(|follows| follows.since[topic as usize]);
        since.is_some_and(|since| since <= round.until) && !round.done.contains(&id)
    }

    fn deliver_to_rest(&mut self, mut letter: Letter) -> Flow {
        let Whom::Rest(waiting, calls) = &mut letter.to else {
            return Ok(());
        };
        let (mut waiting, mut calls) = (core::mem::take(waiting), *calls);
        let mut early = VecDeque::new();
        while let Some(id) = waiting.pop_front() {
            match self.deliver_to(id, &letter) {
                Ok(Outcome::Delivered) => {
                    calls += 1;
                    self.mail.counts[0] += 1;
                }
                Ok(Outcome::Early) => early.push_back(id),
                Ok(_) => {}
                Err(panicked) => {
                    waiting.append(&mut early);
                    letter.to = Whom::Rest(waiting, calls);
                    self.mail.broken_off = Some(letter);
                    return Err(panicked);
                }
            }
        }
        self.wait(letter, early, calls);
        Ok(())
    }

    fn wait(&mut self, letter: Letter, waiting: VecDeque<Id>, calls: u64) {
        if !waiting.is_empty() {
            let to = Whom::Rest(waiting, calls);
            self.mail.held.push(Letter { to, ..letter });
        } else if calls == 0 {
            self.mail.counts[1] += 1;
        }
    }

    /// Returns the number of each component that follows a topic, and its entity, in order.
    pub(super) fn followers(&self, topic: Topic) -> Vec<(u64, Id)> {
        let all = self.entities.iter().enumerate();
        let followers = all.filter_map(|(id, entity)| {
            let follows = entity.follows.filter(|_| entity.exists)?;
            follows
                .topics
                .contain(topic)
                .then_some((follows.number, id))
        });
        let mut followers: Vec<_> = followers.collect();
        followers.sort_unstable();
        followers
    }

    /// A callback gets a message. The commands of the delivery run after it, before its own.
    fn hear(&mut self, id: Id, letter: &Letter) -> Flow {
        let clock = self.entities[id].follows.and_then(|follows| follows.clock);
        let clock = clock.filter(|&clock| self.clocks.all[clock].exists);
        let clock = clock.or(self.clocks.find(Named::Virtual));
        let reading = self.clocks.all[clock.expect("built-in clocks stay")].reading;
        let (request, asks) = match letter.role {
            Role::Plain => (None, false),
            Role::Request(asker, request) => {
                self.mail.heard.push_back((asker, request));
                (Some(request), true)
            }
            Role::Reply(request) => (Some(request), false),
        };
        self.log.push(Entry::Heard(Hearing {
            entity: id,
            topic: letter.topic,
            serial: letter.serial,
            request,
            asks,
            elapsed: reading.shown(reading.now),
        }));
        // A panic of the callback leaves the end of the request to the next delivery.
        if let Some(request) = self.mail.completed.filter(|_| !self.is_panic_next()) {
            self.mail.completed = None;
            self.despawn(request);
        }
        self.react(Handler::Command)
    }
}

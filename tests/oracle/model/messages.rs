//! Messages: delivered once, in the order of sending, to one, to all or to one in turn.

use std::collections::{BTreeSet, VecDeque};

use super::{Flow, Handler, Model, clocks::Nth};
use crate::{
    entry::{Entry, Hearing, Id, Named},
    op::{ALL_TOPICS, Slot, TOPICS, To, Topic, Topics},
};

/// The messages on their way.
#[derive(Default)]
pub(super) struct Mail {
    /// The number of messages ever sent.
    serial: u64,
    /// Those of this delivery, and those that were sent since it began.
    released: VecDeque<Letter>,
    sent: VecDeque<Letter>,
    /// Those that wait for a component that takes part from the next delivery on.
    held: Vec<Letter>,
    /// The one that was being delivered when a callback panicked.
    broken_off: Option<Letter>,
    /// The components with a higher number do not take part yet.
    joined: u64,
    /// The component whose turn it is, by topic.
    turns: [u64; TOPICS],
    pub(super) written: Written,
    /// The delivered, undeliverable and late messages, and those of the last delivery.
    counts: [u64; 3],
    pub(super) shown_counts: [u64; 3],
    /// The requests that were heard: who asked, and the request.
    pub(super) heard: VecDeque<(Id, Id)>,
    /// The request that was complete when the callback for its reply panicked.
    completed: Option<Id>,
}

/// The messages from Bevy's writers.
#[derive(Default)]
pub(super) struct Written {
    /// The number of each message, and how often Bevy has swapped its buffers since.
    all: VecDeque<(u64, u32)>,
    /// Whether an entity has ever followed them.
    is_read: bool,
    round: Option<Round>,
    /// Whether a fixed step has run since Bevy swapped its buffers.
    pub(super) is_swapped_next: bool,
}

/// A `MessageComponent`.
#[derive(Clone, Copy)]
pub(super) struct Follows {
    topics: Topics,
    number: u64,
    /// The number of the first of the components that have replaced each other, by topic.
    since: [u64; TOPICS],
    clock: Option<Nth>,
}

#[derive(Clone)]
pub(super) struct Letter {
    to: Whom,
    topic: Topic,
    serial: u64,
    role: Role,
}

#[derive(Clone)]
enum Whom {
    One(Option<Id>),
    /// All followers. The round has begun if a callback has panicked in it.
    All(Option<Round>),
    /// The followers for which a message to all has waited, and the number of those that got it.
    Rest(VecDeque<Id>, u64),
    InTurn,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Role {
    Plain,
    /// Who asks, and the request.
    Request(Id, Id),
    Reply(Id),
}

/// The progress of a message to all followers.
#[derive(Clone, Default)]
struct Round {
    /// Components with a lower number have had their turn.
    next: u64,
    /// Components with a higher number did not take part when the round began.
    until: u64,
    /// The entities that have had their turn.
    done: BTreeSet<Id>,
    calls: u64,
}

enum Outcome {
    Delivered,
    Early,
    Disabled,
    Late,
    Undeliverable,
}

impl Model {
    pub(super) fn follow(&mut self, id: Id, topics: Topics) {
        let before = self.entities[id].follows;
        let number = self.next_number();
        let clock = self.clocks.find(self.clock_of(id, None));
        let since = ALL_TOPICS.map(|topic| match before {
            Some(before) if before.topics.contain(topic) => before.since[topic as usize],
            _ => number,
        });
        self.entities[id].follows = Some(Follows {
            topics,
            number,
            since,
            clock,
        });
        if topics.contain(Topic::Word) && !self.mail.written.is_read {
            self.mail.written.is_read = true;
            self.mail.written.all.retain(|&(_, swaps)| swaps == 0);
        }
    }

    pub(super) fn unfollow(&mut self, id: Id) {
        self.entities[id].follows = None;
    }

    pub(super) fn next_serial(&mut self) -> u64 {
        self.mail.serial += 1;
        self.mail.serial
    }

    pub(super) fn send(&mut self, to: To, topic: Topic, role: Role) {
        let to = match to {
            To::One(slot) => Whom::One(self.last_at(slot)),
            To::All => Whom::All(None),
            To::InTurn => Whom::InTurn,
        };
        let serial = match topic {
            Topic::NoReply => 0,
            _ => self.next_serial(),
        };
        self.mail.sent.push_back(Letter {
            to,
            topic,
            serial,
            role,
        });
    }

    fn last_at(&self, slot: Slot) -> Option<Id> {
        self.slots[slot]
    }

    pub(super) fn send_reply(&mut self, asker: Id, request: Id, topic: Topic) {
        let serial = match topic {
            Topic::NoReply => 0,
            _ => self.next_serial(),
        };
        self.mail.sent.push_back(Letter {
            to: Whom::One(Some(asker)),
            topic,
            serial,
            role: Role::Reply(request),
        });
    }

    pub(super) fn write(&mut self) {
        let serial = self.next_serial();
        self.mail.written.all.push_back((serial, 0));
    }

    /// Bevy keeps written messages until it has swapped its buffers twice. It swaps them in the frame
    /// after a fixed step.
    pub(super) fn swap_written(&mut self) {
        if core::mem::take(&mut self.mail.written.is_swapped_next) {
            for (_, swaps) in &mut self.mail.written.all {
                *swaps += 1;
            }
        }
    }

    /// Held messages come first, then one that a panic has broken off, then the others in the order
    /// of sending. Messages from Bevy's writers come last.
    pub(super) fn deliver(&mut self) -> Flow {
        if let Some(request) = self.mail.completed.take() {
            self.despawn(request);
        }
        self.mail.joined = self.updates.numbers;
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
        }
        Ok(())
    }

    /// A message to an entity that is gone or disabled, or that does not follow it, is lost. It waits
    /// for a component that does not take part yet.
    fn deliver_to(&mut self, id: Id, letter: &Letter) -> Result<Outcome, super::Panicked> {
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

    /// The first reply completes a request. It waits for an entity that is disabled.
    fn deliver_reply(
        &mut self,
        asker: Id,
        request: Id,
        letter: &Letter,
    ) -> Result<Outcome, super::Panicked> {
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

    /// One follower gets the message, in turn. Disabled ones are passed over.
    fn deliver_in_turn(&mut self, letter: &Letter) -> Result<Outcome, super::Panicked> {
        let topic = letter.topic as usize;
        let turn = self.mail.turns[topic];
        let all = self.followers(letter.topic);
        let joined = self.mail.joined;
        let takes_part =
            |&&(number, id): &&(u64, Id)| number <= joined && !self.entities[id].is_disabled;
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

    fn new_round(&self) -> Round {
        Round {
            until: self.mail.joined,
            ..Round::default()
        }
    }

    /// Calls the followers in order: those that take part, or those that are owed the message.
    fn call_all(&mut self, round: &mut Round, letter: &Letter, owed: bool) -> Flow {
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
            if !self.entities[id].is_disabled {
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

    /// Messages from Bevy's writers can't wait: entities whose component was replaced get them at
    /// once.
    fn deliver_written(&mut self, count: usize) -> Flow {
        for left in (1..=count).rev() {
            let Some(&(serial, swaps)) = self.mail.written.all.front() else {
                break;
            };
            if self.followers(Topic::Word).is_empty() {
                self.mail.written.all.drain(..left);
                let round = self.mail.written.round.take();
                self.mail.counts[0] += round.map_or(0, |round| round.calls);
                break;
            }
            let round = self.mail.written.round.take();
            let mut round = round.unwrap_or_else(|| self.new_round());
            let letter = Letter {
                to: Whom::All(None),
                topic: Topic::Word,
                serial,
                role: Role::Plain,
            };
            if swaps < 2 {
                let called = self.call_all(&mut round, &letter, false);
                let called = called.and_then(|()| self.call_all(&mut round, &letter, true));
                if called.is_err() {
                    self.mail.written.round = Some(round);
                    return called;
                }
            }
            self.mail.counts[0] += round.calls;
            self.mail.written.all.pop_front();
        }
        Ok(())
    }

    /// Returns the number of each component that follows a topic, and its entity, in order.
    fn followers(&self, topic: Topic) -> Vec<(u64, Id)> {
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

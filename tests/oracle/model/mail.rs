//! Messages on their way, and the components that follow them.

use std::collections::VecDeque;

use super::{Model, clocks::Nth, written::Written};
use crate::{
    entry::Id,
    op::{ALL_TOPICS, TOPICS, To, Topic, Topics},
};

/// The messages on their way.
#[derive(Clone, Default)]
pub(super) struct Mail {
    /// The number of messages ever sent.
    pub(super) serial: u64,
    /// The messages of this delivery, or those that it left when a callback panicked, and the messages that
    /// were sent since it began.
    pub(super) released: VecDeque<Letter>,
    pub(super) sent: VecDeque<Letter>,
    /// Replies that wait for an entity that is disabled.
    pub(super) held: Vec<Letter>,
    /// The component whose turn it is, by topic.
    pub(super) turns: [u64; TOPICS],
    pub(super) written: Written,
    /// The numbers of delivered, undeliverable and late messages, now and at the last delivery.
    pub(super) counts: [u64; 3],
    pub(super) shown_counts: [u64; 3],
    /// The requests that were heard: who asked, and the request.
    pub(super) heard: VecDeque<(Id, Id)>,
    /// The request that was complete when the callback for its reply panicked.
    pub(super) completed: Option<Id>,
}

/// A `MessageComponent`.
#[derive(Clone, Copy)]
pub(super) struct Follows {
    pub(super) topics: Topics,
    /// By topic, the number of the first of the components that have replaced each other.
    pub(super) numbers: [u64; TOPICS],
    pub(super) clock: Option<Nth>,
}

#[derive(Clone)]
pub(super) struct Letter {
    pub(super) to: Whom,
    pub(super) topic: Topic,
    pub(super) serial: u64,
    pub(super) role: Role,
}

#[derive(Clone)]
pub(super) enum Whom {
    One(Option<Id>),
    /// All followers. The round has begun if a callback has panicked in it.
    All(Option<Round>),
    InTurn,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Role {
    Plain,
    /// The asking entity, and the request.
    Request(Id, Id),
    Reply(Id),
}

/// The progress of a message to all followers.
#[derive(Clone, Default)]
pub(super) struct Round {
    /// Components with a lower number have had their turn.
    pub(super) next: u64,
    /// Components with a higher number did not exist when the round began.
    pub(super) until: u64,
    /// Whether a follower has heard it.
    pub(super) is_heard: bool,
}

impl Mail {
    /// Replaces the numbers of entities in all messages on their way.
    pub(super) fn rename(&mut self, name: impl Fn(Id) -> Id) {
        let letters = self.released.iter_mut().chain(&mut self.sent);
        let letters = letters.chain(&mut self.held);
        letters.for_each(|letter| letter.rename(&name));
    }
}

impl Letter {
    /// Replaces the numbers of entities.
    pub(super) fn rename(&mut self, name: impl Fn(Id) -> Id) {
        if let Whom::One(Some(to)) = &mut self.to {
            *to = name(*to);
        }
        match &mut self.role {
            Role::Plain => {}
            Role::Request(asker, request) => {
                (*asker, *request) = (name(*asker), name(*request));
            }
            Role::Reply(request) => *request = name(*request),
        }
    }
}

pub(super) enum Outcome {
    Delivered,
    Disabled,
    Late,
    Undeliverable,
}

impl Model {
    pub(super) fn follow(&mut self, id: Id, topics: Topics) {
        let before = self.entities[id].follows;
        let number = self.next_number();
        let clock = self.clocks.find(self.clock_of(id, None));
        let numbers = ALL_TOPICS.map(|topic| match before {
            Some(before) if before.topics.contain(topic) => before.numbers[topic as usize],
            _ => number,
        });
        self.entities[id].follows = Some(Follows {
            topics,
            numbers,
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
            To::One(slot) => Whom::One(self.slots[slot]),
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
}

//! The courier: the delivery of one item after another.

use alloc::vec::Vec;

use bevy_ecs::{entity::EntityHashMap, prelude::*};
use bevy_platform::cell::SyncCell;

use super::{
    ask::{RequestState, asker_now, state_of},
    batch::AnyBatch,
    broadcast::{Broadcast, Rest},
    calls::Calls,
    component::MessageComponent,
    context::Incoming,
    directory::Directory,
    followers::{Followers, Outcome},
    held_letters::HeldLetters,
    letter::{Letter, Recipient, Role},
    mailbag::{InProgress, Item},
    room::Room,
    stats::MessageStats,
};
use crate::{call::EntityCaller, clock::ClockTable, double_buffer::DoubleBuffer};

/// Delivers items one at a time.
pub(super) struct Courier<'a, 'w, 's> {
    pub(super) caller: &'a mut EntityCaller<'w, 's>,
    pub(super) followers: &'a mut Followers,
    pub(super) directory: &'a Directory,
    /// The lowest number of a follower that does not take part yet.
    pub(super) joined: u64,
    pub(super) clocks: &'a ClockTable,
    pub(super) held: &'a mut Vec<Item>,
    pub(super) transit: &'a mut EntityHashMap<HeldLetters>,
    pub(super) room: &'a mut Room,
    pub(super) is_urgent: &'a mut bool,
    pub(super) stats: &'a mut MessageStats,
}

impl Courier<'_, '_, '_> {
    /// Delivers items until a callback issues commands or no item is left.
    pub(super) fn deliver(
        &mut self,
        items: &mut DoubleBuffer<Item>,
        in_progress: &mut Option<InProgress>,
    ) {
        while !self.caller.has_commands() {
            match in_progress {
                Some(InProgress::Batch(batch)) => self.deliver_batch(&mut **batch),
                Some(InProgress::Broadcast(broadcast)) => self.broadcast(broadcast),
                Some(InProgress::Rest(rest)) => self.deliver_rest(rest),
                None => {}
            }
            if self.caller.has_commands() {
                return;
            }
            if let Some(done) = in_progress.take() {
                self.finish(done);
            }
            let Some(item) = items.next() else {
                return;
            };
            *in_progress = self.begin(item);
        }
    }

    /// Delivers an item, or returns it if it takes several calls.
    fn begin(&mut self, item: Item) -> Option<InProgress> {
        match item {
            Item::Letter(letter) => return self.deliver_letter(letter),
            Item::Batch(batch) => return Some(InProgress::Batch(batch)),
            Item::Broadcast(broadcast) => return Some(InProgress::Broadcast(*broadcast)),
            Item::Rest(rest) => return Some(InProgress::Rest(*rest)),
            Item::Command(command) => {
                self.room.give_back(1);
                let command = SyncCell::to_inner(command);
                self.caller.commands().queue(command);
            }
            #[cfg(feature = "worlds")]
            Item::KeyTaken(key) => self.note_key_taken(key),
        }
        None
    }

    /// Notes that another world has got the key of an entity in transit.
    #[cfg(feature = "worlds")]
    fn note_key_taken(&mut self, key: u64) {
        self.room.give_back(1);
        #[cfg(feature = "serialize")]
        if let Some(entity) = self.directory.entity(key)
            && let Some(root) = self.caller.root_in_transit(entity)
            && let Some(held) = self.transit.get_mut(&root)
        {
            held.note_key_taken();
        }
        #[cfg(not(feature = "serialize"))]
        let _ = key;
    }

    /// Delivers messages to one entity each until a callback issues commands.
    fn deliver_batch(&mut self, batch: &mut dyn AnyBatch) {
        while !self.caller.has_commands()
            && let Some(topic) = batch.topic()
        {
            let mut calls = Calls {
                topic,
                following: self.followers.of(topic),
                next: 0,
                joined: self.joined,
                caller: self.caller,
                clocks: self.clocks,
                room: self.room,
                stats: self.stats,
            };
            let Some(to) = batch.deliver(&mut calls) else {
                continue;
            };
            let outcome = self.miss(to);
            self.count(outcome);
            if let Outcome::Early | Outcome::InTransit = outcome
                && let Some(letter) = batch.take_missed()
            {
                self.hold_letter(letter, outcome);
            }
        }
    }

    /// Delivers a letter to its followers until a callback issues commands.
    fn broadcast(&mut self, broadcast: &mut Broadcast) {
        let Broadcast { letter, round } = broadcast;
        let incoming = incoming(letter, self.clocks);
        let followers = &mut *self.followers;
        followers.call_from(round, self.joined, self.caller, incoming);
    }

    /// Delivers a letter to the followers for which it has waited, until a callback issues commands.
    fn deliver_rest(&mut self, rest: &mut Rest) {
        while !self.caller.has_commands()
            && let Some(entity) = rest.to.pop_front()
        {
            match self.call(entity, incoming(&rest.letter, self.clocks)) {
                Outcome::Delivered => {
                    rest.calls += 1;
                    self.stats.delivered += 1;
                }
                Outcome::Early => rest.early.push_back(entity),
                Outcome::Disabled | Outcome::InTransit | Outcome::Late | Outcome::Undeliverable => {
                }
            }
        }
    }

    /// Holds a letter to all followers for the entities that still wait for it. Counts it if it has
    /// reached no entity, and none waits.
    fn finish(&mut self, done: InProgress) {
        let (letter, early, calls) = match done {
            InProgress::Batch(_) => return,
            InProgress::Broadcast(Broadcast { letter, round }) => {
                self.stats.delivered += round.calls;
                let early = self.followers.early(letter.payload.topic(), &round);
                (letter, early, round.calls)
            }
            InProgress::Rest(rest) => (rest.letter, rest.early, rest.calls),
        };
        if !early.is_empty() {
            let rest = Rest::new(letter, early, calls);
            self.hold(Item::Rest(rest.into()));
            return;
        }
        self.room.give_back(1);
        self.stats.undeliverable += u64::from(calls == 0);
    }

    /// Delivers a letter to one entity, or returns it as a broadcast.
    fn deliver_letter(&mut self, mut letter: Letter) -> Option<InProgress> {
        let is_reply = matches!(letter.role, Role::Reply(_));
        if letter.to == Recipient::All && !is_reply {
            return Some(InProgress::Broadcast(Broadcast::new(letter)));
        }
        // Given back first, because the callback may panic.
        self.room.give_back(1);
        let outcome = match letter.to {
            // A reply must go to the asking entity, but another process may send anything.
            Recipient::All => Outcome::Late,
            Recipient::InTurn if is_reply => Outcome::Late,
            Recipient::InTurn => {
                let followers = &mut self.followers;
                followers.call_in_turn(self.joined, self.caller, incoming(&letter, self.clocks))
            }
            Recipient::Entity(entity) => self.deliver_to(entity, &mut letter),
            Recipient::Key(key) => match self.directory.entity(key) {
                Some(entity) => self.deliver_to(entity, &mut letter),
                None => Outcome::Undeliverable,
            },
        };
        self.count(outcome);
        match outcome {
            Outcome::Early | Outcome::InTransit => self.hold_letter(letter, outcome),
            Outcome::Disabled => {
                // It is not urgent: the entity can stay disabled for long.
                self.room.take_anyway(1);
                self.held.push(Item::Letter(letter));
            }
            Outcome::Delivered | Outcome::Late | Outcome::Undeliverable => {}
        }
        None
    }

    /// Delivers a letter to an entity. A reply completes its request.
    fn deliver_to(&mut self, mut entity: Entity, letter: &mut Letter) -> Outcome {
        if let Role::Reply(request) = &mut letter.role {
            *request = self.directory.resolve(*request);
            let Some(request) = request.entity() else {
                return Outcome::Late;
            };
            entity = asker_now(entity, request, self.caller);
            if self.caller.root_in_transit(entity).is_some() {
                return Outcome::InTransit;
            }
            match state_of(request, entity, self.caller) {
                RequestState::Closed => return Outcome::Late,
                RequestState::Disabled => return Outcome::Disabled,
                RequestState::Open => {}
            }
            match self.caller.get(entity) {
                None => return Outcome::Disabled,
                Some(asker) if self.is_early(asker) => return Outcome::Early,
                Some(_) => {}
            }
            // Other replies are late from now on, even if the entity does not follow this one.
            self.caller.commands().entity(request).despawn();
        }
        self.call(entity, incoming(letter, self.clocks))
    }

    /// Returns `true` if the component of an entity takes part only from the next run on.
    fn is_early(&self, entity: EntityRef) -> bool {
        let component = entity.get::<MessageComponent>();
        component.is_some_and(|component| !component.has_joined(self.joined))
    }

    /// Keeps an item for the next run.
    fn hold(&mut self, item: Item) {
        self.held.push(item);
        *self.is_urgent = true;
    }

    /// Calls the callback of an entity for a message, if the entity follows it.
    fn call(&mut self, entity: Entity, incoming: Incoming) -> Outcome {
        let following = self.followers.of(incoming.topic);
        match following.is_some_and(|it| it.call(entity, self.joined, self.caller, incoming)) {
            true => Outcome::Delivered,
            false => self.miss(entity),
        }
    }

    /// Returns the outcome of a message to an entity that could not be called.
    #[cold]
    fn miss(&self, entity: Entity) -> Outcome {
        match self.caller.get(entity) {
            Some(entity) if self.is_early(entity) => Outcome::Early,
            Some(_) => Outcome::Undeliverable,
            None => match self.caller.root_in_transit(entity) {
                Some(_) => Outcome::InTransit,
                None => Outcome::Undeliverable,
            },
        }
    }

    #[inline]
    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Delivered => self.stats.delivered += 1,
            Outcome::Early | Outcome::Disabled | Outcome::InTransit => {}
            Outcome::Late => self.stats.late += 1,
            Outcome::Undeliverable => self.stats.undeliverable += 1,
        }
    }

    /// Keeps a letter whose recipient takes part later, or is in transit.
    fn hold_letter(&mut self, letter: Letter, outcome: Outcome) {
        self.room.take_anyway(1);
        if outcome != Outcome::InTransit {
            self.hold(Item::Letter(letter));
            return;
        }
        let to = match letter.to {
            Recipient::Entity(entity) => Some(entity),
            Recipient::Key(key) => self.directory.entity(key),
            Recipient::All | Recipient::InTurn => None,
        };
        let root = to.and_then(|to| self.caller.root_in_transit(to));
        let held = root.and_then(|root| self.transit.get_mut(&root));
        match (to, held) {
            (Some(to), Some(held)) => held.arrived.push((to, letter)),
            // Its move has ended, but not for this entity.
            _ => self.held.push(Item::Letter(letter)),
        }
    }
}

fn incoming<'a>(letter: &'a Letter, clocks: &'a ClockTable) -> Incoming<'a> {
    Incoming {
        clocks,
        topic: letter.payload.topic(),
        message: letter.payload.as_any(),
        role: &letter.role,
    }
}

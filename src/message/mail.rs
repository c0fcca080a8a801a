//! Messages on their way.

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::{
    any::{Any, type_name},
    mem,
};

#[cfg(feature = "serialize")]
use bevy_ecs::entity::EntityHashMap;
use bevy_ecs::prelude::*;
use bevy_platform::cell::SyncCell;

#[cfg(feature = "serialize")]
use super::{codec::renamed, request::Origin};
use super::{
    deliver::{Calls, Courier},
    followers::{Followers, Round},
    payload::{Payload, sealed::Sealed},
    request::{ReplyTo, Request},
};

/// Selects the entities that receive a message. An `Entity` converts into [`To`](Self::To).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub enum Delivery<To = Entity> {
    /// This entity.
    To(To),
    /// All entities that follow the message when its delivery begins. An entity that starts to follow
    /// later does not get it.
    #[doc(alias("broadcast", "publish"))]
    All,
    /// Exactly one of the entities that follow the message, round-robin.
    ///
    /// Turns go by the order in which the entities started to follow the message. They stay fair
    /// when entities join and leave. An entity that replaces its component keeps its place.
    #[doc(alias("exclusive", "round_robin", "queue group"))]
    InTurn,
}

impl From<Entity> for Delivery {
    #[inline]
    fn from(entity: Entity) -> Self {
        Self::To(entity)
    }
}

/// The recipient of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recipient {
    Entity(Entity),
    /// The entity that other worlds know by this key. It is looked up on delivery.
    #[cfg_attr(
        not(feature = "worlds"),
        expect(dead_code, reason = "there is no other world")
    )]
    Key(u64),
    All,
    InTurn,
}

impl From<Delivery> for Recipient {
    #[inline]
    fn from(delivery: Delivery) -> Self {
        match delivery {
            Delivery::To(entity) => Self::Entity(entity),
            Delivery::All => Self::All,
            Delivery::InTurn => Self::InTurn,
        }
    }
}

impl From<Entity> for Recipient {
    #[inline]
    fn from(entity: Entity) -> Self {
        Self::Entity(entity)
    }
}

/// The role of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    Request(ReplyTo),
    Reply(Request),
}

impl Role {
    pub(super) fn request(&self) -> Option<Request> {
        match self {
            Self::Plain => None,
            Self::Request(reply_to) => Some(reply_to.request()),
            Self::Reply(request) => Some(*request),
        }
    }

    pub(super) fn reply_to(&self) -> Option<&ReplyTo> {
        match self {
            Self::Request(reply_to) => Some(reply_to),
            Self::Plain | Self::Reply(_) => None,
        }
    }
}

/// Messages of one type, each with its recipient, in the order of sending.
///
/// Plain messages that are sent one after the other share a mail. A request or a reply has a mail of its
/// own.
pub(crate) struct Mail<P> {
    role: Role,
    waiting: Waiting<(Recipient, P)>,
    /// The progress of the next message, if it goes to all followers and a callback has interrupted its
    /// delivery.
    round: Option<Round>,
}

/// A queue whose first item needs no allocation.
struct Waiting<T> {
    first: Option<T>,
    rest: VecDeque<T>,
}

/// A mail of any type.
pub(crate) trait AnyMail: Any + Send + Sync {
    /// Returns the number of waiting messages.
    fn len(&self) -> usize;

    /// Returns the `nth` waiting message.
    fn get(&self, nth: usize) -> Option<MailRef<'_>>;

    /// Delivers messages until a callback issues commands or none is left.
    fn deliver(&mut self, followers: &mut Followers, courier: &mut Courier);

    /// Takes the next message as a separate mail.
    fn take_first(&mut self) -> Option<Letter>;

    /// Takes all messages but the one whose delivery a callback has interrupted, if there is one.
    fn take_rest(&mut self) -> Box<dyn AnyMail>;

    /// Takes the messages whose recipient `member` names, with that recipient.
    fn extract(
        &mut self,
        member: &dyn Fn(Recipient) -> Option<Entity>,
        taken: &mut Vec<(Entity, Item)>,
    );

    /// Changes the names of entities. A request that has no name is over.
    #[cfg(feature = "serialize")]
    fn rename(&mut self, names: &EntityHashMap<Entity>);
}

/// A mail of exactly one message.
pub(crate) type Letter = Box<dyn AnyMail>;

/// A waiting message.
#[derive(Clone, Copy)]
pub(crate) struct MailRef<'a> {
    pub(super) to: Recipient,
    pub(super) role: &'a Role,
    /// The name of the type.
    pub(super) name: &'static str,
    pub(super) payload: &'a dyn Any,
}

impl<P: Payload> Mail<P> {
    /// Creates an empty mail with memory for this many messages, at least one.
    pub(super) fn with_capacity(role: Role, messages: usize) -> Self {
        let waiting = Waiting {
            first: None,
            rest: VecDeque::with_capacity(messages.saturating_sub(1)),
        };
        Self {
            role,
            waiting,
            round: None,
        }
    }

    /// Creates a mail of one message.
    pub(crate) fn letter(to: impl Into<Recipient>, payload: P, role: Role) -> Letter {
        let mut mail = Self::with_capacity(role, 1);
        mail.push(to.into(), payload);
        Box::new(mail)
    }

    /// Returns the number of messages for which the mail has memory.
    pub(super) fn capacity(&self) -> usize {
        self.waiting.rest.capacity().saturating_add(1)
    }

    #[inline]
    pub(super) fn has_room(&self) -> bool {
        let rest = &self.waiting.rest;
        rest.len() < rest.capacity()
    }

    /// Adds a message, after all others.
    #[inline]
    pub(super) fn push(&mut self, to: Recipient, payload: P) {
        self.waiting.push((to, payload));
    }

    /// Delivers the next message to an entity.
    #[inline]
    fn deliver_to(&mut self, entity: Option<Entity>, calls: &mut Calls) {
        // It no longer waits, so a callback that panics does not get it again.
        if let Some((to, payload)) = self.waiting.pop()
            && let Some(wait) = calls.call_entity(entity, &payload, &self.role)
        {
            calls.keep(wait, Self::letter(to, payload, self.role.clone()));
        }
    }
}

impl<T> Waiting<T> {
    #[inline]
    fn push(&mut self, item: T) {
        if self.first.is_none() && self.rest.is_empty() {
            self.first = Some(item);
        } else {
            self.rest.push_back(item);
        }
    }

    #[inline]
    fn front(&self) -> Option<&T> {
        self.first.as_ref().or_else(|| self.rest.front())
    }

    #[inline]
    fn pop(&mut self) -> Option<T> {
        self.first.take().or_else(|| self.rest.pop_front())
    }

    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }
}

impl<P: Payload> AnyMail for Mail<P> {
    fn len(&self) -> usize {
        self.waiting.len()
    }

    fn get(&self, nth: usize) -> Option<MailRef<'_>> {
        let Waiting { first, rest } = &self.waiting;
        let (to, payload) = first.iter().chain(rest).nth(nth)?;
        Some(MailRef {
            to: *to,
            role: &self.role,
            name: type_name::<P>(),
            payload,
        })
    }

    fn deliver(&mut self, followers: &mut Followers, courier: &mut Courier) {
        if let Role::Reply(request) = &mut self.role {
            *request = courier.directory.resolve(*request);
        }
        while !courier.caller.has_commands()
            && let Some((_, payload)) = self.waiting.front()
        {
            let topic = Sealed::topic(payload);
            let mut calls = Calls::new(courier, followers, topic);
            while !calls.courier.caller.has_commands()
                && let Some((to, payload)) = self.waiting.front()
                && Sealed::topic(payload) == topic
            {
                match *to {
                    Recipient::Entity(entity) => self.deliver_to(Some(entity), &mut calls),
                    Recipient::Key(key) => {
                        let entity = calls.courier.directory.entity(key);
                        self.deliver_to(entity, &mut calls);
                    }
                    Recipient::InTurn => {
                        if let Some((_, payload)) = self.waiting.pop() {
                            calls.call_in_turn(&payload, &self.role);
                        }
                    }
                    Recipient::All => {
                        if calls.call_all(&mut self.round, payload, &self.role) {
                            self.waiting.pop();
                        }
                    }
                }
            }
        }
    }

    fn take_first(&mut self) -> Option<Letter> {
        let (to, payload) = self.waiting.pop()?;
        Some(Self::letter(to, payload, self.role.clone()))
    }

    fn take_rest(&mut self) -> Box<dyn AnyMail> {
        let mut rest = Self::with_capacity(self.role.clone(), 1);
        mem::swap(&mut self.waiting, &mut rest.waiting);
        if self.round.is_some() {
            self.waiting.first = rest.waiting.pop();
        }
        Box::new(rest)
    }

    fn extract(
        &mut self,
        member: &dyn Fn(Recipient) -> Option<Entity>,
        taken: &mut Vec<(Entity, Item)>,
    ) {
        let Waiting { first, rest } = &self.waiting;
        if first
            .iter()
            .chain(rest)
            .all(|(to, _)| member(*to).is_none())
        {
            return;
        }
        for _ in 0..self.len() {
            let Some((recipient, payload)) = self.waiting.pop() else {
                return;
            };
            match member(recipient) {
                Some(to) => {
                    let letter = Self::letter(recipient, payload, self.role.clone());
                    taken.push((to, Item::Mail(letter)));
                }
                None => self.push(recipient, payload),
            }
        }
    }

    #[cfg(feature = "serialize")]
    fn rename(&mut self, names: &EntityHashMap<Entity>) {
        let Waiting { first, rest } = &mut self.waiting;
        for (to, _) in first.iter_mut().chain(rest) {
            if let Recipient::Entity(to) = to {
                *to = renamed(*to, names);
            }
        }
        if let Role::Reply(Request(Origin::Here(request))) = &mut self.role {
            *request = renamed(*request, names);
        }
    }
}

/// Something that waits for the next delivery.
pub(crate) enum Item {
    Mail(Box<dyn AnyMail>),
    /// A function to run on the world.
    Run(SyncCell<Box<dyn FnOnce(&mut World) + Send>>),
    /// A note that another world has got a key.
    #[cfg(feature = "worlds")]
    KeyTaken(u64),
}

impl Item {
    /// Returns the number of messages, functions and notes.
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Mail(mail) => mail.len(),
            Self::Run(_) => 1,
            #[cfg(feature = "worlds")]
            Self::KeyTaken(_) => 1,
        }
    }

    /// Returns the mail to which plain messages of this type can be added, if the item is one.
    #[inline]
    pub(super) fn plain_mail<P: Payload>(&mut self) -> Option<&mut Mail<P>> {
        let Self::Mail(mail) = self else {
            return None;
        };
        let mail: &mut dyn Any = &mut **mail;
        let mail: &mut Mail<P> = mail.downcast_mut()?;
        matches!(mail.role, Role::Plain).then_some(mail)
    }
}

//! Questions and answers.

use core::{any::type_name, fmt};

use bevy_ecs::{
    bundle::Bundle, component::Component, entity::Entity, message::Message, world::World,
};

#[cfg(feature = "bevy_reflect")]
use bevy_reflect::Reflect;

use super::{
    Address, Mail, Payload, RefusedBecause,
    letter::{Letter, Regarding},
    packet::{Topic, sealed::Sealed},
};
use crate::{
    owner::OwnedBy,
    timer::{SurvivesCancelAll, Timer, TimerAction, TimerFired, Unannounced},
};

/// The number of a question that an entity has [asked](super::MessageEntityCommandsExt::ask).
///
/// Until it is answered, or its time is up, it is an entity, one of the [`Owned`](crate::Owned) entities of
/// who asked; despawning that takes the question back. What comes afterwards is dropped, and
/// counted in [`MessageStats::late`](super::MessageStats::late).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub struct Session {
    question: u64,
    /// The world in which it was asked, or zero in that world itself.
    world: u64,
}

impl Session {
    /// Returns the entity of a question that was asked in this world.
    #[must_use]
    pub fn entity(self) -> Option<Entity> {
        let is_of_here = self.world == HERE;
        Entity::try_from_bits(self.question).filter(|_| is_of_here)
    }

    /// Returns the number, which means nothing in other worlds.
    #[must_use]
    pub fn number(self) -> u64 {
        self.question
    }

    /// What other worlds are told. Worlds that are built alike give their questions the same
    /// entities, so that alone does not say whose question it is.
    pub(super) fn leave(self, world: u64) -> Self {
        Self { world, ..self }
    }

    /// What comes back to a world. The question of another one is none here.
    pub(super) fn come_to(self, world: u64) -> Self {
        let world = match self.world {
            asked_in if asked_in == world => HERE,
            HERE => ELSEWHERE,
            other => other,
        };
        Self { world, ..self }
    }
}

const HERE: u64 = 0;

/// What only somebody who makes it up can come from.
const ELSEWHERE: u64 = u64::MAX;

impl From<Entity> for Session {
    fn from(entity: Entity) -> Self {
        Self {
            question: entity.to_bits(),
            world: HERE,
        }
    }
}

/// Where to send the answer to a question. It can be kept, and the question answered later.
///
/// # Examples
///
/// A waiter who asks the kitchen in his turn:
///
/// ```
/// use std::collections::HashMap;
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
///
/// #[derive(Message)]
/// struct Order;
/// #[derive(Message, Clone)]
/// struct Meal;
///
/// /// Whose order it is that the kitchen was asked about.
/// #[derive(Component, Default)]
/// struct Pending(HashMap<Session, ReplyTo>);
///
/// fn waiter(kitchen: Entity) -> impl Bundle {
///     let follows = MessageComponent::new()
///         .on(move |mut me: MessageContext, _: &Order| {
///             let Some(guest) = me.reply_to().cloned() else { return };
///             let waiter = me.entity.id();
///             let session = me.commands.entity(waiter).ask(kitchen, Order, Timer::after_secs(60.0));
///             me.entity.get_mut::<Pending>().unwrap().0.insert(session, guest);
///         })
///         .on(|mut me: MessageContext, meal: &Meal| {
///             let Some(session) = me.session() else { return };
///             let guest = me.entity.get_mut::<Pending>().unwrap().0.remove(&session);
///             if let Some(guest) = guest {
///                 me.commands.answer(guest, meal.clone());
///             }
///         });
///     (follows, Pending::default())
/// }
/// # let mut world = World::new();
/// # let kitchen = world.spawn_empty().id();
/// # world.spawn(waiter(kitchen));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyTo {
    pub(super) asker: Asker,
    pub(super) session: Session,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    Here(Entity),
    Elsewhere(Address),
}

impl ReplyTo {
    /// Returns the number of the question, in the world of who asked.
    #[must_use]
    pub fn session(&self) -> Session {
        self.session
    }

    /// Whether this can go there.
    pub(super) fn check<P: Payload>(&self, answer: &P) -> Result<(), NotAnswerable> {
        match (&self.asker, Sealed::topic(answer)) {
            (Asker::Elsewhere(_), Topic::Type(_)) => {
                Err(NotAnswerable::NotAPacket(type_name::<P>()))
            }
            _ => Ok(()),
        }
    }
}

/// There is no way to answer so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAnswerable {
    /// The message is no question: nobody waits for an answer.
    NoQuestion,
    /// The question comes from another world, to which only [`Packet`](super::Packet)s can go. This is the type of
    /// the answer.
    NotAPacket(&'static str),
}

impl fmt::Display for NotAnswerable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoQuestion => f.write_str("this message is no question"),
            Self::NotAPacket(name) => {
                write!(f, "an answer to another world must be a packet, not {name}")
            }
        }
    }
}

impl core::error::Error for NotAnswerable {}

/// Word that a question of this entity will not be answered, with its
/// [session](super::MessageContext::session). Follow it like any other message.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Clone, Debug, PartialEq)
)]
#[doc(alias = "timeout")]
pub enum NoAnswer {
    /// Its time is up, or the clock of its timer has gone. What comes later is dropped.
    TimedOut,
    /// It could not be sent, and why.
    Refused(RefusedBecause),
}

/// A question that is open.
#[derive(Component, Clone, Copy)]
pub(super) struct OpenQuestion;

/// Makes the bundle of a question that somebody asks. If nobody has answered, its entity is there
/// until that has been told.
pub(super) fn question(asker: Entity, until: Timer) -> impl Bundle {
    let give_up =
        TimerAction::call(|world: &mut World, fired: TimerFired| time_out(world, fired.entity()));
    (
        OwnedBy(asker),
        (until.keep_when_done().act_without_clock(), give_up),
        (SurvivesCancelAll, Unannounced, OpenQuestion),
    )
}

/// Tells who asked that the time of a question is up.
fn time_out(world: &mut World, question: Entity) {
    match world.get::<OwnedBy>(question) {
        Some(&OwnedBy(asker)) => give_up(world, asker, question.into(), NoAnswer::TimedOut),
        // It has been taken from who asked, so nobody is to be told.
        None => _ = world.despawn(question),
    }
}

/// Tells who asked that there will be no answer.
pub(super) fn give_up(world: &mut World, asker: Entity, session: Session, why: NoAnswer) {
    let letter = Letter::new(asker, why, Regarding::Answer(session));
    Mail::send(world, letter);
}

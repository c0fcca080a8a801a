//! Messages to other worlds.

use alloc::{borrow::Cow, boxed::Box};
use core::fmt;

use bevy_ecs::{
    component::Component,
    entity::Entity,
    error::BevyError,
    lifecycle::HookContext,
    message::Message,
    resource::Resource,
    world::{DeferredWorld, World},
};
#[cfg(feature = "bevy_reflect")]
use {bevy_ecs::reflect::ReflectComponent, bevy_reflect::Reflect};

use super::{
    Delivery, Inbox, Letter, Mail, Packet, ReplyTo, Session,
    letter::{Recipient, Regarding},
    packet::Topic,
    session::{Asker, NoAnswer, OpenQuestion, give_up},
};
use crate::{call::report, owner::OwnedBy};

/// The name of an entity that other worlds know it by. It means the same in the next run of the
/// game, and in another world to which the entity moves; an `Entity` does not.
///
/// You choose it, and see to it that no two entities of a group of worlds have the same. The one that
/// has got it last is found; if the other is in the same world, Bevy's error handler is told, as a
/// warning.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[component(immutable, on_insert = on_insert, on_discard = on_discard)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Component, Clone, Debug, PartialEq, Hash)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub struct StableKey(pub u64);

/// Where an entity is that other worlds can send to: a group of worlds, and its key there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub struct Address {
    /// The name of the group.
    pub group: Cow<'static, str>,
    /// The key of the entity.
    pub key: StableKey,
}

/// A packet for another world, with all that is to be said of it. All of it can be serialised.
///
/// Of several worlds of a group, it goes to the one with the entity, to all, or to exactly one in
/// turn, as its [`Delivery`] says; and in that world in the same way to the entities that follow it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub struct Parcel {
    /// The name of the group of worlds.
    pub group: Cow<'static, str>,
    /// To whom of it.
    pub delivery: Delivery<StableKey>,
    /// What is in it.
    pub packet: Packet,
    /// What is assured: that it has been sent, or an answer, or word that there is none.
    pub assurance: Assurance,
}

/// What is assured of a [`Parcel`]. Only an answer proves that it has arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub enum Assurance {
    /// That the link has taken it.
    #[default]
    Sent,
    /// That it will be answered, there, under this number, or given up.
    Answered {
        /// Who waits for it.
        reply_to: Address,
        /// The number of the question.
        session: Session,
    },
    /// It is an answer itself, to the question of this number.
    Answer(Session),
}

impl Parcel {
    /// Makes a parcel of which it is assured that it is sent. See
    /// [`ask_world`](super::MessageEntityCommandsExt::ask_world) for one that is to be answered.
    #[must_use]
    pub fn new(
        group: impl Into<Cow<'static, str>>,
        delivery: impl Into<Delivery<StableKey>>,
        packet: Packet,
    ) -> Self {
        Self {
            group: group.into(),
            delivery: delivery.into(),
            packet,
            assurance: Assurance::Sent,
        }
    }

    pub(super) fn into_letter(self, world: u64) -> Letter {
        let regarding = match self.assurance {
            Assurance::Sent => Regarding::Nothing,
            Assurance::Answered { reply_to, session } => Regarding::Question(
                ReplyTo {
                    asker: Asker::Elsewhere(reply_to),
                    session,
                }
                .into(),
            ),
            Assurance::Answer(session) => Regarding::Answer(session.come_to(world)),
        };
        Letter::new(self.delivery, self.packet, regarding)
    }
}

/// What carries parcels between worlds: threads of one process ([`WorldGroups`](crate::WorldGroups)),
/// or a messaging engine between processes.
///
/// This is the sending end. The receiving end is a [`MessageSender`](super::MessageSender) of the
/// other world: what has arrived is given to its [`receive`](super::MessageSender::receive). A world
/// that has gone drops its end.
pub trait Link: Send + Sync + 'static {
    /// Takes a parcel, to carry it to a group of worlds. It does not wait for anything.
    ///
    /// # Errors
    ///
    /// [`Refused`] with the parcel, if that is not possible. No error does not mean that it will
    /// arrive.
    fn send(&self, parcel: Parcel) -> Result<(), Refused>;

    /// Takes note that the entity of this address can be found on this side from now on.
    fn bind(&self, address: &Address);

    /// Takes note that it can't be found here any more.
    fn unbind(&self, address: &Address);
}

/// A parcel that a [`Link`] did not take. That of a [`post`](super::MessageCommandsExt::post) is
/// broadcast in its own world as a message; if nobody follows that, Bevy's error handler is told, as
/// a warning.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What was to be sent.
    pub parcel: Parcel,
    /// Why it was not.
    pub because: RefusedBecause,
}

/// Why a parcel was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Clone, Debug, PartialEq, Hash)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub enum RefusedBecause {
    /// This world has no link to others.
    NoLink,
    /// There is no such group, or no world in it that runs.
    UnknownGroup,
    /// No entity of the group has this key.
    UnknownKey,
    /// Who is to get it has no room for it now.
    Full,
    /// Some of those who are to get it have not taken it. The others have got it, so who sends it
    /// again sends it to them twice.
    InPart,
    /// The entity that asks has no [`StableKey`], so no answer would find it.
    NoKey,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { parcel, because } = self;
        let why = match because {
            RefusedBecause::NoLink => "this world has no link to others",
            RefusedBecause::UnknownGroup => "no such group runs",
            RefusedBecause::UnknownKey => "it has no such entity",
            RefusedBecause::Full => "it has no room",
            RefusedBecause::InPart => "some of its worlds have no room, the others have got it",
            RefusedBecause::NoKey => "the entity that asks has no stable key",
        };
        write!(
            f,
            "packet {} for {:?} of the group {:?} is refused: {why}",
            parcel.packet.id(),
            parcel.delivery,
            parcel.group
        )
    }
}

impl core::error::Error for Refused {}

/// The link of this world to others.
#[derive(Resource)]
#[component(on_insert = on_insert_link)]
pub struct WorldLink {
    group: Cow<'static, str>,
    link: Box<dyn Link>,
}

impl WorldLink {
    /// Makes the world into which it is inserted a member of a group, by a link.
    #[must_use]
    pub fn new(group: impl Into<Cow<'static, str>>, link: impl Link) -> Self {
        Self {
            group: group.into(),
            link: Box::new(link),
        }
    }

    /// Returns the name of the group to which this world belongs.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Sends a parcel at once.
    ///
    /// # Errors
    ///
    /// [`Refused`] with the parcel, if the link does not take it.
    pub fn post(&self, parcel: Parcel) -> Result<(), Refused> {
        self.link.send(parcel)
    }

    pub(super) fn address(&self, key: StableKey) -> Address {
        Address {
            group: self.group.clone(),
            key,
        }
    }
}

impl fmt::Debug for WorldLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorldLink")
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

/// Sends a parcel from a world, and tells there of one that is refused.
pub(super) fn post(world: &mut World, parcel: Parcel) {
    let sent = match world.get_resource::<WorldLink>() {
        Some(link) => link.post(parcel),
        None => Err(Refused {
            parcel,
            because: RefusedBecause::NoLink,
        }),
    };
    if let Err(refused) = sent {
        refuse(world, refused);
    }
}

/// Tells who asked, if it was a question, or all who follow that.
fn refuse(world: &mut World, refused: Refused) {
    if let Assurance::Answered { session, .. } = refused.parcel.assurance
        && let Some(inbox) = world.get_resource::<Inbox>()
        && let session = session.come_to(inbox.world())
        && let Some(asker) = asker(world, session)
    {
        // Those who have got it may yet answer.
        if refused.because != RefusedBecause::InPart {
            give_up(world, asker, session, NoAnswer::Refused(refused.because));
        }
        return;
    }
    let topic = Topic::of::<Refused>();
    let mail = world.get_resource::<Mail>();
    if mail.is_some_and(|mail| mail.followed(topic).is_some()) {
        let letter = Letter::new(Recipient::All, refused, Regarding::Nothing);
        return Mail::send(world, letter);
    }
    report::<Parcel>(world, BevyError::warning(refused));
}

/// Returns who of this world has asked a question, if it is open.
fn asker(world: &World, session: Session) -> Option<Entity> {
    let question = world.get_entity(session.entity()?).ok()?;
    let asker = question
        .get::<OpenQuestion>()
        .and(question.get::<OwnedBy>());
    asker.map(|of| of.0)
}

/// Lets all be found whose keys are there already.
fn on_insert_link(world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let link = world.get::<WorldLink>(entity);
    if let (Some(link), Some(mail)) = (link, world.get_resource::<Mail>()) {
        for &key in mail.keys.keys() {
            link.link.bind(&link.address(key));
        }
    }
}

fn on_insert(world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    bind(world, entity);
}

/// Lets the entity be found by its key. Without a plugin nothing happens.
pub(crate) fn bind(mut world: DeferredWorld, entity: Entity) {
    let Some(&key) = world.get::<StableKey>(entity) else {
        return;
    };
    let Some(mut mail) = world.get_resource_mut::<Mail>() else {
        return;
    };
    // It may have taken the place of one that is about to go.
    if let Some(other) = mail.keys.insert(key, entity) {
        let error = BevyError::warning(DuplicateKey { key, entity, other });
        let mut commands = world.commands();
        commands.queue(move |_: &mut World| Err::<(), _>(error));
    }
    if let Some(link) = world.get_resource::<WorldLink>() {
        link.link.bind(&link.address(key));
    }
}

fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let Some(&key) = world.get::<StableKey>(entity) else {
        return;
    };
    let Some(mut mail) = world.get_resource_mut::<Mail>() else {
        return;
    };
    if mail.keys.get(&key) == Some(&entity) {
        mail.keys.remove(&key);
        if let Some(link) = world.get_resource::<WorldLink>() {
            link.link.unbind(&link.address(key));
        }
    }
}

/// Two entities of a world have the same key.
#[derive(Debug)]
struct DuplicateKey {
    key: StableKey,
    entity: Entity,
    other: Entity,
}

impl fmt::Display for DuplicateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, entity, other } = self;
        write!(
            f,
            "{entity} has the key {} of {other}, which is not found by it any more",
            key.0
        )
    }
}

impl core::error::Error for DuplicateKey {}

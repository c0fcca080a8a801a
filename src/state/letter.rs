//! Messages as data: letters that are saved, or that move to another world.

use alloc::{
    borrow::Cow,
    string::{String, ToString},
    vec,
    vec::Vec,
};

use bevy_ecs::{entity::EntityHashMap, prelude::*};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::save::{LoadError, SaveError, SavedTimers};
use crate::message::{
    Delivery, Encoder, Letter, MailRef, Mailbag, MessageCodecs, NoAnswer, Packet, Recipient,
    RemoteAsker, ReplyTo, Request, Role, Route, name_of_recipients, visit_letters,
};
#[cfg(feature = "worlds")]
use crate::worlds::{StableKey, post_reply};

/// A letter, as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LetterData {
    to: Recipient,
    content: Content,
    role: RoleData,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Content {
    Packet(Packet),
    NoAnswer(NoAnswer),
    Named {
        name: Cow<'static, str>,
        data: Vec<u8>,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum RoleData {
    Plain,
    /// A request by an entity of another world.
    Request(RemoteAsker),
    Reply(Request),
    /// A request by an entity that is in the same data.
    LocalRequest {
        asker: Entity,
        request: Request,
    },
}

/// A message on its way that can't be saved, or can't move with the entity for which it waits.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the message `{message}` to {} can't be saved or moved: {reason}", name_of_recipients(*to))]
#[non_exhaustive]
pub struct UnsavableMail {
    /// The recipients, or `None` if another world sent the message to a key.
    pub to: Option<Delivery>,
    /// The type of the message.
    pub message: &'static str,
    /// The reason.
    pub reason: UnsavableReason,
}

/// The reason why a message can't be saved or moved.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UnsavableReason {
    /// The type of the message has no codec.
    #[error("register the type with `add_message_codec`, or send a `Packet` instead")]
    NoCodec,
    /// The codec returned this error.
    #[error("its codec returned an error: {0}")]
    Encode(String),
    /// The message is a request by an entity that does not move along, and not a packet.
    #[error(
        "it is a request, and only a `Packet` can ask across worlds: send a `Packet`, or move the \
         entity after it has received the request"
    )]
    TypedRequest,
    /// The message is a request by this entity, which does not move along, and which a reply from another world
    /// can't reach.
    #[error(
        "it is a request by entity {0}, which a reply from another world can't reach: give that \
         entity a `StableKey` and its world a `WorldLink`, or move the entity after it has got the \
         request"
    )]
    NoAddress(Entity),
}

/// Letters that are being turned into data.
#[derive(Default)]
pub(super) struct MailData {
    pub(super) letters: Vec<LetterData>,
    pub(super) unsavable: Vec<UnsavableMail>,
}

impl MailData {
    /// Adds a letter, with the names that entities have in the data. A request by an entity that has no name
    /// there gets its reply from another world. A message to all whose delivery has begun goes to each of the
    /// other followers.
    pub(super) fn add(&mut self, world: &World, letter: MailRef, name: &dyn Fn(Entity) -> Entity) {
        let data = content(world, letter).and_then(|content| match content {
            Some(content) => Ok(Some((role(world, letter.role, &content, name)?, content))),
            None => Ok(None),
        });
        let (role, content) = match data {
            Ok(Some(data)) => data,
            Ok(None) => return,
            Err(reason) => {
                return self.unsavable.push(UnsavableMail {
                    to: letter.to.delivery(),
                    message: letter.payload.content().1,
                    reason,
                });
            }
        };
        let mailbag = world.get_resource::<Mailbag>();
        let left = letter.round.zip(mailbag).map(|(round, mailbag)| {
            let left = mailbag.followers.left_in(letter.payload.topic(), round);
            left.into_iter().map(Recipient::Entity).collect()
        });
        for to in left.unwrap_or_else(|| vec![letter.to]) {
            self.letters.push(LetterData {
                to: to.with(name(to.entity())),
                content: content.clone(),
                role: role.clone(),
            });
        }
    }

    /// Returns the letters, and those that are not data.
    pub(super) fn into_parts(self) -> (Vec<LetterData>, Vec<UnsavableMail>) {
        (self.letters, self.unsavable)
    }
}

/// Returns the letters on their way to each of some entities and to everything that was saved with it. Other
/// entities that a letter refers to have the names that `name` returns. Goes through the letters of a world
/// once.
pub(super) fn mail_of(
    world: &World,
    saved: &[Result<SavedTimers, SaveError>],
    name: &dyn Fn(Entity) -> Entity,
) -> Vec<MailData> {
    let mut saved_in = EntityHashMap::<Vec<usize>>::default();
    for (nth, saved) in saved.iter().enumerate() {
        for member in saved.iter().flat_map(SavedTimers::entities) {
            saved_in.entry(member).or_default().push(nth);
        }
    }
    let mut mail: Vec<_> = saved.iter().map(|_| MailData::default()).collect();
    visit_letters(world, |to, letter| {
        let Some(to) = to else { return };
        for &nth in saved_in.get(&to).into_iter().flatten() {
            let name_here = |entity| match saved_in.get(&entity) {
                Some(saved_in) if saved_in.contains(&nth) => entity,
                _ => name(entity),
            };
            let to = Recipient::Entity(to);
            mail[nth].add(world, MailRef { to, ..letter }, &name_here);
        }
    });
    mail
}

/// Returns the name of an entity in a map, or one that no entity has.
pub(super) fn name_in(names: &EntityHashMap<Entity>) -> impl Fn(Entity) -> Entity {
    |entity| names.get(&entity).copied().unwrap_or(Entity::PLACEHOLDER)
}

/// Returns a message as data, unless the game leaves its type out.
fn content(world: &World, letter: MailRef) -> Result<Option<Content>, UnsavableReason> {
    let (message, _) = letter.payload.content();
    if let Some(packet) = message.downcast_ref::<Packet>() {
        return Ok(Some(Content::Packet(packet.clone())));
    }
    if let Some(&no_answer) = message.downcast_ref::<NoAnswer>() {
        return Ok(Some(Content::NoAnswer(no_answer)));
    }
    let codecs = world.get_resource::<MessageCodecs>();
    let encoder = codecs.and_then(|codecs| codecs.encoder(message));
    match encoder.ok_or(UnsavableReason::NoCodec)? {
        Encoder::Codec(name, encode) => {
            let data = encode(message);
            let data = data.map_err(|error| UnsavableReason::Encode(error.to_string()))?;
            let name = name.clone();
            Ok(Some(Content::Named { name, data }))
        }
        Encoder::LeaveOut => Ok(None),
    }
}

fn role(
    world: &World,
    role: &Role,
    content: &Content,
    name: &dyn Fn(Entity) -> Entity,
) -> Result<RoleData, UnsavableReason> {
    let named = |mut request: Request| {
        request.rename(name);
        request
    };
    Ok(match role {
        Role::Plain => RoleData::Plain,
        Role::Reply(request) => {
            let mailbag = world.get_resource::<Mailbag>();
            let request = mailbag.map_or(*request, |it| it.directory.resolve(*request));
            RoleData::Reply(named(request))
        }
        Role::Request(reply_to) => match &reply_to.route {
            Route::Elsewhere(asker, _) => RoleData::Request((**asker).clone()),
            &Route::Here(asker) => {
                let request = reply_to.request();
                let stays = name(asker) == Entity::PLACEHOLDER;
                if stays && world.entities().contains_spawned(asker) {
                    let Content::Packet(_) = content else {
                        return Err(UnsavableReason::TypedRequest);
                    };
                    let remote = remote_asker(world, asker, request);
                    RoleData::Request(remote.ok_or(UnsavableReason::NoAddress(asker))?)
                } else {
                    RoleData::LocalRequest {
                        asker: name(asker),
                        request: named(request),
                    }
                }
            }
        },
    })
}

/// Turns data into letters, with the same names.
pub(super) fn letters(world: &World, mail: &[LetterData]) -> Result<Vec<Letter>, LoadError> {
    mail.iter().map(|letter| letter.to_letter(world)).collect()
}

/// Changes the names of the entities in letters. A request that has no name is over.
pub(super) fn rename_all(letters: &mut [Letter], names: &EntityHashMap<Entity>) {
    for letter in letters {
        letter.rename(&name_in(names));
    }
}

/// Returns how another world can reply to a request of an entity of this world, if it can.
#[cfg(feature = "worlds")]
fn remote_asker(world: &World, asker: Entity, request: Request) -> Option<RemoteAsker> {
    let directory = &world.get_resource::<Mailbag>()?.directory;
    let &StableKey(key) = world.get(asker)?;
    // Another entity may have taken the key.
    (directory.entity(key) == Some(asker)).then(|| directory.remote_asker(key, request))?
}

#[cfg(not(feature = "worlds"))]
fn remote_asker(_: &World, _: Entity, _: Request) -> Option<RemoteAsker> {
    None
}

impl LetterData {
    /// Returns the name of the message.
    pub(super) fn name(&self) -> &str {
        match &self.content {
            Content::Packet(_) => "Packet",
            Content::NoAnswer(_) => "NoAnswer",
            Content::Named { name, .. } => name,
        }
    }

    /// Returns the entities that the letter names: the recipient, the asking entity and the request.
    pub(super) fn entities(&self) -> impl Iterator<Item = Entity> {
        let (asker, request) = match &self.role {
            RoleData::Plain | RoleData::Request(_) => (None, None),
            RoleData::Reply(request) => (None, Some(request)),
            RoleData::LocalRequest { asker, request } => (Some(*asker), Some(request)),
        };
        let to = match self.to {
            Recipient::Entity(to) => Some(to),
            _ => None,
        };
        let entities = [to, asker, request.and_then(|request| request.entity())];
        let entities = entities.into_iter().flatten();
        entities.filter(|&entity| entity != Entity::PLACEHOLDER)
    }

    fn to_letter(&self, world: &World) -> Result<Letter, LoadError> {
        let role = match &self.role {
            RoleData::Plain => Role::Plain,
            RoleData::Reply(request) => Role::Reply(*request),
            RoleData::LocalRequest { asker, request } => {
                Role::Request(ReplyTo::here(*asker, *request))
            }
            #[cfg(feature = "worlds")]
            RoleData::Request(asker) => {
                Role::Request(ReplyTo::elsewhere(asker.clone(), post_reply))
            }
            #[cfg(not(feature = "worlds"))]
            RoleData::Request(_) => return Err(LoadError::NoWorlds),
        };
        Ok(match &self.content {
            Content::Packet(packet) => Letter::new(self.to, packet.clone(), role),
            Content::NoAnswer(no_answer) => Letter::new(self.to, *no_answer, role),
            Content::Named { name, data } => {
                let codecs = world.get_resource::<MessageCodecs>();
                let decode = codecs.and_then(|codecs| codecs.decoder(name));
                let decode = decode.ok_or_else(|| LoadError::NoCodec(name.to_string()))?;
                let letter = decode(data, self.to, role);
                letter.map_err(|error| LoadError::Decode {
                    name: name.to_string(),
                    error: error.to_string(),
                })?
            }
        })
    }
}

//! Messages as data: letters that move to another world.

use alloc::{
    borrow::Cow,
    string::{String, ToString},
    vec::Vec,
};

use bevy_ecs::{entity::EntityHashMap, prelude::*};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::MoveError;
use crate::message::{
    Letter, MailRef, MessageCodecs, NoAnswer, Packet, Recipient, RemoteAsker, Request, Role, Route,
    renamed,
};
#[cfg(feature = "worlds")]
use crate::{
    message::{Directory, ReplyTo},
    worlds::{StableKey, post_reply},
};

/// A letter to an entity, as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LetterData {
    to: Entity,
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
    Request(RemoteAsker),
    Reply(Request),
}

/// A message that can't move with the entity for which it waits.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the message `{message}` to entity {entity} can't move: {reason}")]
#[non_exhaustive]
pub struct UnmovableMail {
    /// The entity for which the message waits.
    pub entity: Entity,
    /// The type of the message.
    pub message: &'static str,
    /// The reason.
    pub reason: UnmovableReason,
}

/// The reason why a message can't move.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UnmovableReason {
    /// The type of the message has no codec.
    #[error("register the type with `add_message_codec`, or send a `Packet` instead")]
    NoCodec,
    /// The codec returned this error.
    #[error("its codec returned an error: {0}")]
    Encode(String),
    /// The message is a request, but not a packet.
    #[error(
        "it is a request, and only a `Packet` can ask across worlds: send a `Packet`, or move the \
         entity after it has received the request"
    )]
    TypedRequest,
    /// The message is a request by this entity, which a reply from another world can't reach.
    #[error(
        "it is a request by entity {0}, which a reply from another world can't reach: give that \
         entity a `StableKey` and its world a `WorldLink`, or move the entity after it has got the \
         request"
    )]
    NoAddress(Entity),
}

/// Turns a letter to an entity into data.
pub(super) fn letter_to_data(
    world: &World,
    to: Entity,
    letter: MailRef,
) -> Result<LetterData, UnmovableMail> {
    let unmovable = |reason| UnmovableMail {
        entity: to,
        message: letter.name,
        reason,
    };
    let content = content(world, letter).map_err(unmovable)?;
    let role = role(world, letter.role, &content).map_err(unmovable)?;
    Ok(LetterData { to, content, role })
}

fn content(world: &World, letter: MailRef) -> Result<Content, UnmovableReason> {
    if let Some(packet) = letter.payload.downcast_ref::<Packet>() {
        return Ok(Content::Packet(packet.clone()));
    }
    if let Some(&no_answer) = letter.payload.downcast_ref::<NoAnswer>() {
        return Ok(Content::NoAnswer(no_answer));
    }
    let codecs = world.get_resource::<MessageCodecs>();
    let codec = codecs.and_then(|codecs| codecs.encoder(letter.payload));
    let (name, encode) = codec.ok_or(UnmovableReason::NoCodec)?;
    let data = encode(letter.payload);
    let data = data.map_err(|error| UnmovableReason::Encode(error.to_string()))?;
    let name = name.clone();
    Ok(Content::Named { name, data })
}

fn role(world: &World, role: &Role, content: &Content) -> Result<RoleData, UnmovableReason> {
    Ok(match role {
        Role::Plain => RoleData::Plain,
        Role::Reply(request) => RoleData::Reply(*request),
        Role::Request(_) if !matches!(content, Content::Packet(_)) => {
            return Err(UnmovableReason::TypedRequest);
        }
        Role::Request(reply_to) => match &reply_to.route {
            Route::Elsewhere(asker, _) => RoleData::Request((**asker).clone()),
            Route::Here(asker) => {
                let remote = remote_asker(world, *asker, reply_to.request());
                RoleData::Request(remote.ok_or(UnmovableReason::NoAddress(*asker))?)
            }
        },
    })
}

/// Returns how another world can reply to a request of an entity of this world, if it can.
#[cfg(feature = "worlds")]
fn remote_asker(world: &World, asker: Entity, request: Request) -> Option<RemoteAsker> {
    let directory = world.get_resource::<Directory>()?;
    let &StableKey(key) = world.get(asker)?;
    // Another entity may have taken the key.
    (directory.entity(key) == Some(asker)).then(|| directory.remote_asker(key, request))?
}

#[cfg(not(feature = "worlds"))]
fn remote_asker(_: &World, _: Entity, _: Request) -> Option<RemoteAsker> {
    None
}

impl LetterData {
    /// Returns the entity to which the letter goes, as the exporting world calls it.
    pub(super) fn to(&self) -> Entity {
        self.to
    }

    /// Changes the names of entities. A request that has no name is over.
    pub(super) fn rename(&mut self, names: &EntityHashMap<Entity>) {
        self.to = renamed(self.to, names);
        if let RoleData::Reply(request) = &mut self.role {
            request.rename(names);
        }
    }

    /// Turns the data into a letter.
    pub(super) fn to_letter(&self, world: &World) -> Result<Letter, MoveError> {
        let to = Recipient::Entity(self.to);
        let role = match &self.role {
            RoleData::Plain => Role::Plain,
            RoleData::Reply(request) => Role::Reply(*request),
            #[cfg(feature = "worlds")]
            RoleData::Request(asker) => {
                Role::Request(ReplyTo::elsewhere(asker.clone(), post_reply))
            }
            #[cfg(not(feature = "worlds"))]
            RoleData::Request(_) => return Err(MoveError::NoWorlds),
        };
        Ok(match &self.content {
            Content::Packet(packet) => Letter::new(to, packet.clone(), role),
            Content::NoAnswer(no_answer) => Letter::new(to, *no_answer, role),
            Content::Named { name, data } => {
                let codecs = world.get_resource::<MessageCodecs>();
                let decode = codecs.and_then(|codecs| codecs.decoder(name));
                let decode = decode.ok_or_else(|| MoveError::NoCodec(name.to_string()))?;
                let letter = decode(data, to, role);
                letter.map_err(|error| MoveError::Decode {
                    name: name.to_string(),
                    error: error.to_string(),
                })?
            }
        })
    }
}

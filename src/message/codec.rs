//! Messages as data: codecs, and letters that move to another world.

use alloc::{
    borrow::Cow,
    boxed::Box,
    string::{String, ToString},
    vec::Vec,
};
use core::any::{Any, TypeId, type_name};

use bevy_ecs::{entity::EntityHashMap, error::Result, prelude::*};
use bevy_platform::{collections::HashMap, sync::Arc};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{
    directory::Directory,
    mail::{MailRef, Role},
    payload::Packet,
    queue::Letter,
    request::{NoAnswer, PostReply, RemoteAsker, ReplyTo, Request, Route},
};

/// The codecs of a world.
#[derive(Resource, Default)]
pub(crate) struct MessageCodecs {
    by_type: HashMap<TypeId, Arc<Codec>>,
    by_name: HashMap<Cow<'static, str>, Arc<Codec>>,
}

/// Turns the messages of one type into bytes and back.
struct Codec {
    name: Cow<'static, str>,
    encode: Box<Encode>,
    decode: Box<Decode>,
}

type Encode = dyn Fn(&dyn Any) -> Result<Vec<u8>> + Send + Sync;
type Decode = dyn Fn(&[u8], Entity, Role) -> Result<Letter> + Send + Sync;

/// Registers how to turn messages of the type `M` into bytes and back.
#[track_caller]
pub(crate) fn add_message_codec<M: Message>(
    world: &mut World,
    name: Cow<'static, str>,
    encode: impl Fn(&M) -> Result<Vec<u8>> + Send + Sync + 'static,
    decode: impl Fn(&[u8]) -> Result<M> + Send + Sync + 'static,
) {
    let mut codecs = world.get_resource_or_init::<MessageCodecs>();
    assert!(
        !codecs.by_name.contains_key(&name),
        "a message codec is already registered as {name:?}: choose another name"
    );
    assert!(
        !codecs.by_type.contains_key(&TypeId::of::<M>()),
        "the message `{}` already has a codec: register one codec per type",
        type_name::<M>()
    );
    let codec = Arc::new(Codec {
        name: name.clone(),
        encode: Box::new(move |message| match message.downcast_ref() {
            Some(message) => encode(message),
            None => Ok(Vec::new()),
        }),
        decode: Box::new(move |data, to, role| Ok(Letter::new(to, decode(data)?, role))),
    });
    codecs.by_type.insert(TypeId::of::<M>(), codec.clone());
    codecs.by_name.insert(name, codec);
}

/// A letter to an entity, as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LetterData {
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

/// The error for data that does not become a letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LetterError {
    NoCodec(String),
    Decode {
        name: String,
        error: String,
    },
    /// A request from another world, without the feature `worlds`.
    NoWorlds,
}

/// Turns a letter to an entity into data.
pub(crate) fn letter_to_data(
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
    let codec = codecs.and_then(|codecs| codecs.by_type.get(&letter.payload.type_id()));
    let codec = codec.ok_or(UnmovableReason::NoCodec)?;
    let data = (codec.encode)(letter.payload);
    let data = data.map_err(|error| UnmovableReason::Encode(error.to_string()))?;
    let name = codec.name.clone();
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
                let directory = world.get_resource::<Directory>();
                let remote = directory.and_then(|it| it.remote_asker(*asker, reply_to.request));
                RoleData::Request(remote.ok_or(UnmovableReason::NoAddress(*asker))?)
            }
        },
    })
}

impl LetterData {
    /// Returns the entity to which the letter goes, as the exporting world calls it.
    pub(crate) fn to(&self) -> Entity {
        self.to
    }

    /// Changes the names of entities. A request that has no name is over.
    pub(crate) fn rename(&mut self, names: &EntityHashMap<Entity>) {
        self.to = renamed(self.to, names);
        if let RoleData::Reply(request) = &mut self.role {
            request.rename(names);
        }
    }

    /// Turns the data into a letter.
    pub(crate) fn to_letter(
        &self,
        world: &World,
        post: Option<PostReply>,
    ) -> Result<Letter, LetterError> {
        let to = self.to;
        let role = match &self.role {
            RoleData::Plain => Role::Plain,
            RoleData::Reply(request) => Role::Reply(*request),
            RoleData::Request(asker) => {
                let post = post.ok_or(LetterError::NoWorlds)?;
                Role::Request(ReplyTo::elsewhere(asker.clone(), post))
            }
        };
        Ok(match &self.content {
            Content::Packet(packet) => Letter::new(to, packet.clone(), role),
            Content::NoAnswer(no_answer) => Letter::new(to, *no_answer, role),
            Content::Named { name, data } => {
                let codecs = world.get_resource::<MessageCodecs>();
                let codec = codecs.and_then(|codecs| codecs.by_name.get(name));
                let codec = codec.ok_or_else(|| LetterError::NoCodec(name.to_string()))?;
                let letter = (codec.decode)(data, to, role);
                letter.map_err(|error| LetterError::Decode {
                    name: name.to_string(),
                    error: error.to_string(),
                })?
            }
        })
    }
}

/// Returns the other name of an entity, or one that no entity has.
pub(super) fn renamed(entity: Entity, names: &EntityHashMap<Entity>) -> Entity {
    names.get(&entity).copied().unwrap_or(Entity::PLACEHOLDER)
}

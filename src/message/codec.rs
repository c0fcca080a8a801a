//! Codecs: typed messages as data.

use alloc::{borrow::Cow, boxed::Box, vec::Vec};
use core::any::{Any, TypeId, type_name};

use bevy_ecs::{error::Result, prelude::*};
use bevy_platform::{collections::HashMap, sync::Arc};

use super::letter::{Letter, Recipient, Role};

/// The codecs of a world.
#[derive(Resource, Default)]
pub(crate) struct MessageCodecs {
    by_type: HashMap<TypeId, Arc<Codec>>,
    by_name: HashMap<Cow<'static, str>, Arc<Codec>>,
}

/// Turns the messages of one type into bytes and back.
pub(super) struct Codec {
    pub(super) name: Cow<'static, str>,
    encode: Box<Encode>,
    decode: Box<Decode>,
}

type Encode = dyn Fn(&dyn Any) -> Result<Vec<u8>> + Send + Sync;
type Decode = dyn Fn(&[u8], Recipient) -> Result<Letter> + Send + Sync;

impl MessageCodecs {
    pub(super) fn of_type(&self, message: TypeId) -> Option<&Codec> {
        self.by_type.get(&message).map(|codec| &**codec)
    }

    pub(super) fn named(&self, name: &str) -> Option<&Codec> {
        self.by_name.get(name).map(|codec| &**codec)
    }
}

impl Codec {
    pub(super) fn encode(&self, message: &dyn Any) -> Result<Vec<u8>> {
        (self.encode)(message)
    }

    /// Decodes a message, as a letter to an entity.
    pub(super) fn decode(&self, data: &[u8], to: Entity) -> Result<Letter> {
        (self.decode)(data, to.into())
    }
}

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
        decode: Box::new(move |data, to| Ok(Letter::new(to, decode(data)?, Role::Plain))),
    });
    codecs.by_type.insert(TypeId::of::<M>(), codec.clone());
    codecs.by_name.insert(name, codec);
}

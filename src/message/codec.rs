//! Codecs, which turn messages into bytes and back.

use alloc::{borrow::Cow, boxed::Box, format, vec::Vec};
use core::any::{Any, TypeId, type_name};

use bevy_ecs::prelude::*;
use bevy_platform::collections::HashMap;

use super::{
    mail::{Recipient, Role},
    queue::Letter,
};

/// The codecs of a world.
#[derive(Resource, Default)]
pub(crate) struct MessageCodecs {
    /// By type, the name of the codec and a function that turns a message into bytes.
    encoders: HashMap<TypeId, (Cow<'static, str>, Box<Encode>)>,
    decoders: HashMap<Cow<'static, str>, Box<Decode>>,
}

type Encode = dyn Fn(&dyn Any) -> Result<Vec<u8>> + Send + Sync;
type Decode = dyn Fn(&[u8], Recipient, Role) -> Result<Letter> + Send + Sync;

impl MessageCodecs {
    /// Adds how to turn messages of the type `M` into bytes and back.
    #[track_caller]
    pub(super) fn add<M: Message>(
        &mut self,
        name: Cow<'static, str>,
        encode: impl Fn(&M) -> Result<Vec<u8>> + Send + Sync + 'static,
        decode: impl Fn(&[u8]) -> Result<M> + Send + Sync + 'static,
    ) {
        assert!(
            !self.decoders.contains_key(&name),
            "a message codec is already registered as {name:?}: choose another name"
        );
        assert!(
            !self.encoders.contains_key(&TypeId::of::<M>()),
            "the message `{}` already has a codec: register one codec per type",
            type_name::<M>()
        );
        let encode: Box<Encode> = Box::new(move |message| {
            let message = message.downcast_ref();
            encode(message.ok_or_else(|| format!("it is no `{}`", type_name::<M>()))?)
        });
        let decode = move |data: &[u8], to, role| Ok(Letter::new(to, decode(data)?, role));
        self.encoders
            .insert(TypeId::of::<M>(), (name.clone(), encode));
        self.decoders.insert(name, Box::new(decode));
    }

    /// Returns the codec of a message: its name, and a function that turns the message into bytes.
    pub(crate) fn encoder(&self, message: &dyn Any) -> Option<&(Cow<'static, str>, Box<Encode>)> {
        self.encoders.get(&message.type_id())
    }

    /// Returns the function that turns bytes into a letter.
    pub(crate) fn decoder(&self, name: &str) -> Option<&Decode> {
        self.decoders.get(name).map(|decode| &**decode)
    }
}

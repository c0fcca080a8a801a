//! Codecs, which turn messages into bytes and back.

use alloc::{borrow::Cow, boxed::Box, format, vec::Vec};
use core::any::{Any, TypeId, type_name};

use bevy_ecs::prelude::*;
use bevy_platform::collections::HashMap;

use super::{
    mail::{Recipient, Role},
    queue::Letter,
    request::NoAnswer,
};

/// The codecs of a world.
#[derive(Resource, Default)]
pub(crate) struct MessageCodecs {
    encoders: HashMap<TypeId, Encoder>,
    decoders: HashMap<Cow<'static, str>, Box<Decode>>,
}

/// What a save does with a message of a type.
pub(crate) enum Encoder {
    /// It turns the message into bytes, under the name of the codec.
    Codec(Cow<'static, str>, Box<Encode>),
    LeaveOut,
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
        match self.encoders.get(&TypeId::of::<M>()) {
            None => {}
            Some(Encoder::Codec(..)) => panic!(
                "the message `{}` already has a codec: register one codec per type",
                type_name::<M>()
            ),
            Some(Encoder::LeaveOut) => panic!(
                "saves leave the message `{}` out: register a codec, or leave the message out",
                type_name::<M>()
            ),
        }
        let encode: Box<Encode> = Box::new(move |message| {
            let message = message.downcast_ref();
            encode(message.ok_or_else(|| format!("it is no `{}`", type_name::<M>()))?)
        });
        let decode = move |data: &[u8], to, role| Ok(Letter::new(to, decode(data)?, role));
        let encoder = Encoder::Codec(name.clone(), encode);
        self.encoders.insert(TypeId::of::<M>(), encoder);
        self.decoders.insert(name, Box::new(decode));
    }

    /// Lets saves leave messages of the type `M` out.
    #[track_caller]
    pub(super) fn leave_out<M: Message>(&mut self) {
        let this = TypeId::of::<M>();
        assert!(
            !matches!(self.encoders.get(&this), Some(Encoder::Codec(..))),
            "the message `{}` has a codec: register a codec, or leave the message out",
            type_name::<M>()
        );
        self.encoders.insert(this, Encoder::LeaveOut);
    }

    /// Returns `true` if other types have codecs, and this one has none.
    pub(super) fn lack<M: Message>(&self) -> bool {
        let this = TypeId::of::<M>();
        let is_data = this == TypeId::of::<NoAnswer>() || self.encoders.contains_key(&this);
        !self.decoders.is_empty() && !is_data
    }

    /// Returns what a save does with a message.
    pub(crate) fn encoder(&self, message: &dyn Any) -> Option<&Encoder> {
        self.encoders.get(&message.type_id())
    }

    /// Returns the function that turns bytes into a letter.
    pub(crate) fn decoder(&self, name: &str) -> Option<&Decode> {
        self.decoders.get(name).map(|decode| &**decode)
    }
}

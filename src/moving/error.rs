//! The errors of a move.

use alloc::{string::String, vec::Vec};
use core::fmt;

use bevy_ecs::prelude::*;

use crate::{
    message::{LetterError, UnmovableMail},
    save::{LoadError, SaveError},
};

/// The error for a step of a move that is not possible. The world stays as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MoveError {
    /// The world has no [`DuePlugin`](crate::DuePlugin).
    NoPlugin,
    /// The entity does not exist.
    NoSuchEntity(Entity),
    /// A timer handler has called [`export_entity`](crate::moving::MoveWorldExt::export_entity). The other steps
    /// never return this.
    Running,
    /// This entity is already in transit.
    InTransit(Entity),
    /// No move of this entity has begun here, or it has ended.
    NotInTransit(Entity),
    /// Some timers can't be saved.
    Timers(SaveError),
    /// Some messages are not data. There is at least one.
    Mail(Vec<UnmovableMail>),
    /// The timers can't be loaded.
    Load(LoadError),
    /// The data refers to this entity, which it does not contain.
    UnknownEntity(Entity),
    /// The data contains the state of a whole world.
    WholeWorld,
    /// The data gives this entity the name of a request, but the entity is not a request, or another
    /// request has the name.
    InvalidRequest(Entity),
    /// No codec is registered under this name.
    NoCodec(String),
    /// A codec returned an error for a message.
    Decode {
        /// The name of the codec.
        name: String,
        /// The error.
        error: String,
    },
    /// Another entity of this world or of the data has the stable key of an entity.
    KeyInUse {
        /// The key.
        key: u64,
        /// The entity that has it.
        entity: Entity,
    },
    /// The mail contains a request from another world, and the feature `worlds` is off.
    NoWorlds,
}

impl fmt::Display for MoveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPlugin => f.write_str("the world has no `DuePlugin`: add it before you move"),
            Self::NoSuchEntity(entity) => write!(f, "entity {entity} does not exist"),
            Self::Running => f.write_str(
                "can't export an entity in a timer handler: call this from a system or between frames",
            ),
            Self::InTransit(entity) => write!(
                f,
                "entity {entity} is in transit: commit or forget it before you move it again"
            ),
            Self::NotInTransit(entity) => write!(
                f,
                "entity {entity} is not in transit: export or import it first"
            ),
            Self::Timers(error) => error.fmt(f),
            Self::Mail(mail) => {
                for (nth, mail) in mail.iter().enumerate() {
                    if nth > 0 {
                        f.write_str("; ")?;
                    }
                    mail.fmt(f)?;
                }
                Ok(())
            }
            Self::Load(error) => error.fmt(f),
            Self::UnknownEntity(entity) => write!(
                f,
                "the data refers to entity {entity}, but does not contain it: export the entity again"
            ),
            Self::WholeWorld => f.write_str(
                "the data contains the state of a whole world: load it with `load_timers`",
            ),
            Self::InvalidRequest(entity) => write!(
                f,
                "the data names entity {entity} as a request, but it is not a request, or another \
                 request has its name: export the entity again"
            ),
            Self::NoCodec(name) => write!(
                f,
                "no message codec is registered as {name:?}: call `add_message_codec` at start-up"
            ),
            Self::Decode { name, error } => {
                write!(f, "the message codec {name:?} returned an error: {error}")
            }
            Self::KeyInUse { key, entity } => write!(
                f,
                "entity {entity} has the stable key {key}: despawn it, or map the moved entity to it"
            ),
            Self::NoWorlds => f.write_str(
                "the mail contains a request from another world: turn the feature `worlds` on",
            ),
        }
    }
}

impl core::error::Error for MoveError {}

impl From<LoadError> for MoveError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::NoPlugin => Self::NoPlugin,
            error => Self::Load(error),
        }
    }
}

impl From<SaveError> for MoveError {
    fn from(error: SaveError) -> Self {
        Self::Timers(error)
    }
}

impl From<LetterError> for MoveError {
    fn from(error: LetterError) -> Self {
        match error {
            LetterError::NoCodec(name) => Self::NoCodec(name),
            LetterError::Decode { name, error } => Self::Decode { name, error },
            LetterError::NoWorlds => Self::NoWorlds,
        }
    }
}

//! The errors of a move.

use alloc::vec::Vec;

use bevy_ecs::prelude::*;
use thiserror::Error;

use super::{MovedEntity, UnsavableMail};
use crate::state::save::{LoadError, SaveError, list};

/// The reason for which an entity can't leave a world, or come into one. The world stays as it was.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MoveError {
    /// The world has no [`DuePlugin`](crate::DuePlugin).
    #[error("the world has no `DuePlugin`: add it before you move")]
    NoPlugin,
    /// The entity does not exist.
    #[error("entity {0} does not exist")]
    NoSuchEntity(Entity),
    /// A timer handler has called [`take_entity`](crate::moving::MoveWorldExt::take_entity) or
    /// [`copy_entities`](crate::moving::MoveWorldExt::copy_entities).
    #[error("can't take an entity in a timer handler: call this from a system or between frames")]
    Running,
    /// Some timers can't be saved.
    #[error("{0}")]
    Timers(SaveError),
    /// Some messages are not data. There is at least one.
    #[error("{}", list(.0))]
    Mail(Vec<UnsavableMail>),
    /// The timers or the mail can't be loaded.
    #[error("{0}")]
    Load(LoadError),
    /// The data refers to this entity, which it does not contain.
    #[error("the data refers to entity {0}, but does not contain it: take the entity again")]
    UnknownEntity(Entity),
    /// The data contains the state of a whole world.
    #[error("the data contains the state of a whole world: load it with `load_timers`")]
    WholeWorld,
    /// The data gives this entity the name of a request, but the entity is not a request, or another
    /// request has the name.
    #[error(
        "the data names entity {0} as a request, but it is not a request, or another request has its \
         name: take the entity again"
    )]
    InvalidRequest(Entity),
    /// Another entity of this world or of the data has the stable key of an entity.
    #[error("entity {entity} has the stable key {key}: despawn it, or map the moved entity to it")]
    KeyInUse {
        /// The key.
        key: u64,
        /// The entity that has it.
        entity: Entity,
    },
}

/// The error for an entity that a world can't take. It hands the entity back.
#[derive(Clone, Debug, Error)]
#[error("{reason}")]
pub struct PutError {
    /// The entity.
    pub moved: MovedEntity,
    /// The reason.
    pub reason: MoveError,
}

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
        match error {
            SaveError::NoPlugin => Self::NoPlugin,
            SaveError::NoSuchEntity(entity) => Self::NoSuchEntity(entity),
            error => Self::Timers(error),
        }
    }
}

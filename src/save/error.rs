//! The errors of saving and loading.

use alloc::{string::String, vec::Vec};
use core::fmt;

use bevy_ecs::prelude::*;

/// A timer that can't be saved, because its action is a closure.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unsavable {
    /// The entity of the timer.
    pub entity: Entity,
    /// The owner of the timer, or its own entity if it has none.
    pub owner: Entity,
    /// The type of the closure, or of the system of a delayed command.
    pub closure: String,
}

impl fmt::Display for Unsavable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            entity, closure, ..
        } = self;
        write!(
            f,
            "the timer on entity {entity} can't be saved, because its action is a closure \
             ({closure}): register it with `add_timer_handler`, and use `TimerAction::named`"
        )
    }
}

impl core::error::Error for Unsavable {}

/// The error for timers that can't be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveError {
    /// The timers that can't be saved. There is at least one.
    pub unsavable: Vec<Unsavable>,
}

impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, unsavable) in self.unsavable.iter().enumerate() {
            if nth > 0 {
                f.write_str("; ")?;
            }
            unsavable.fmt(f)?;
        }
        Ok(())
    }
}

impl core::error::Error for SaveError {}

/// The error for data that can't be loaded. The world stays as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// The world has no [`DuePlugin`](crate::DuePlugin).
    NoPlugin,
    /// The data contains an entity twice.
    DuplicateEntity(Entity),
    /// The data contains a component of an entity twice.
    DuplicateComponent(Entity, &'static str),
    /// The data refers to an entity that is neither in the data nor in the map of entities.
    UnknownEntity {
        /// The saved entity with the reference.
        entity: Entity,
        /// The component with the reference.
        component: &'static str,
        /// The saved entity that it refers to.
        to: Entity,
    },
    /// The map sends a saved entity to an entity that does not exist in the world.
    NotInWorld {
        /// The saved entity.
        entity: Entity,
        /// The entity that the map holds for it.
        to: Entity,
    },
    /// The map sends two saved entities to the same entity.
    MappedTwice {
        /// The two saved entities.
        entities: [Entity; 2],
        /// The entity that the map holds for both.
        to: Entity,
    },
    /// Clocks of these saved entities drive each other.
    ClockCycle(Vec<Entity>),
    /// The parent of a saved clock has no clock.
    NoParentClock {
        /// The saved entity of the clock.
        clock: Entity,
        /// The saved entity of its parent.
        parent: Entity,
    },
    /// Two timers of an owner have the same key.
    DuplicateKey {
        /// The saved entity of the owner.
        owner: Entity,
        /// The key of both.
        key: &'static str,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPlugin => f.write_str("the world has no `DuePlugin`: add it before you load"),
            Self::DuplicateEntity(entity) => write!(f, "entity {entity} is saved twice"),
            Self::DuplicateComponent(entity, component) => {
                write!(f, "the `{component}` of entity {entity} is saved twice")
            }
            Self::UnknownEntity {
                entity,
                component,
                to,
            } => write!(
                f,
                "the `{component}` of saved entity {entity} refers to entity {to}, which is not \
                 saved: add it to the map of entities"
            ),
            Self::NotInWorld { entity, to } => write!(
                f,
                "the map of entities sends saved entity {entity} to {to}, which does not exist: \
                 spawn it first"
            ),
            Self::MappedTwice {
                entities: [one, other],
                to,
            } => write!(
                f,
                "the map of entities sends both {one} and {other} to {to}: use two entities"
            ),
            Self::ClockCycle(clocks) => {
                write!(f, "clocks can't drive each other in a circle: {clocks:?}")
            }
            Self::NoParentClock { clock, parent } => write!(
                f,
                "the clock on saved entity {clock} runs on {parent}, which has no clock: map it to \
                 an entity with a `Clock`"
            ),
            Self::DuplicateKey { owner, key } => write!(
                f,
                "two timers of saved entity {owner} have the key {key:?}: keep one of them"
            ),
        }
    }
}

impl core::error::Error for LoadError {}

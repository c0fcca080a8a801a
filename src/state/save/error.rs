//! The errors of saving and loading.

use alloc::{
    borrow::Cow,
    string::{String, ToString},
    vec::Vec,
};
use core::{fmt, time::Duration};

use bevy_ecs::prelude::*;
use thiserror::Error;

use super::UnsavableMail;
use crate::timer::MAX_STEPS;

/// Something that can't be saved.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unsavable {
    /// A timer whose action is a closure.
    #[error("{0}")]
    Timer(UnsavableTimer),
    /// A message without a codec, or whose codec returned an error.
    #[error("{0}")]
    Message(UnsavableMail),
    /// A component of the game whose `Serialize` returned an error.
    #[error("{0}")]
    Component(UnsavableComponent),
}

/// A component of the game that can't be saved.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the component {component:?} of entity {entity} can't be serialized: {error}")]
#[non_exhaustive]
pub struct UnsavableComponent {
    /// The entity with the component.
    pub entity: Entity,
    /// The name under which the component was [added](super::SaveWorldExt::add_saved_component).
    pub component: Cow<'static, str>,
    /// The error of its `Serialize`.
    pub error: String,
}

/// A timer that can't be saved, because its action is a closure.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub struct UnsavableTimer {
    /// The entity of the timer.
    pub entity: Entity,
    /// The owner of the timer, or its own entity if it has none.
    pub owner: Entity,
    /// The key of the timer, if it has one.
    pub key: Option<Cow<'static, str>>,
    /// The type of the closure, or of the system of a delayed command.
    pub closure: String,
}

impl fmt::Display for UnsavableTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the timer ")?;
        if let Some(key) = &self.key {
            write!(f, "{key:?} ")?;
        }
        write!(f, "on entity {}", self.entity)?;
        if self.owner != self.entity {
            write!(f, ", which belongs to {},", self.owner)?;
        }
        write!(
            f,
            " runs a closure ({}): register a handler with `add_timer_handler` and use \
             `TimerAction::named`",
            self.closure
        )
    }
}

/// The error for timers and messages that can't be saved.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The world has no [`DuePlugin`](crate::DuePlugin).
    #[error("the world has no `DuePlugin`: add it to the app")]
    NoPlugin,
    /// The entity does not exist.
    #[error("entity {0} does not exist: save it before it despawns")]
    NoSuchEntity(Entity),
    /// The actions of some timers are closures, or some messages on their way or components of the game are not
    /// data. There is at least one.
    #[error("{}; or skip them with `save_timers_without_closures`", list(.0))]
    Unsavable(Vec<Unsavable>),
}

/// The error for data that can't be loaded. The world stays as it was.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The world has no [`DuePlugin`](crate::DuePlugin).
    #[error("the world has no `DuePlugin`: add it before you load")]
    NoPlugin,
    /// The data contains an entity twice.
    #[error("entity {0} is saved twice")]
    DuplicateEntity(Entity),
    /// A timer has ended on an entity that is not in the data.
    #[error("a timer has ended on entity {0}, which is not saved: the data may be damaged")]
    UnknownEnd(Entity),
    /// The data contains a component of an entity twice.
    #[error("the `{1}` of entity {0} is saved twice")]
    DuplicateComponent(Entity, String),
    /// The data refers to an entity that is neither in the data nor in the map of entities.
    #[error(
        "the `{component}` of saved entity {entity} refers to entity {to}, which is not saved: add it \
         to the map of entities"
    )]
    UnknownEntity {
        /// The saved entity with the reference.
        entity: Entity,
        /// The component with the reference.
        component: String,
        /// The saved entity that it refers to.
        to: Entity,
    },
    /// A message refers to an entity that is neither in the data nor in the map of entities.
    #[error(
        "the saved message `{message}` refers to entity {to}, which is not saved: add it to the map of \
         entities"
    )]
    UnknownInMessage {
        /// The name of the codec of the message, or of its type.
        message: String,
        /// The saved entity that it refers to.
        to: Entity,
    },
    /// No component of the game is saved under this name.
    #[error(
        "saved entity {0} has the component {1:?}, which is not registered: call `add_saved_component` at start-up"
    )]
    UnknownComponent(Entity, String),
    /// A component of the game can't be deserialized.
    #[error("the component {component:?} of saved entity {entity} can't be deserialized: {error}")]
    Component {
        /// The saved entity.
        entity: Entity,
        /// The name of the component.
        component: String,
        /// The error of its `Deserialize`.
        error: String,
    },
    /// No codec is registered under this name.
    #[error("no message codec is registered as {0:?}: call `add_message_codec` at start-up")]
    NoCodec(String),
    /// A codec returned an error for a message.
    #[error("the message codec {name:?} returned an error: {error}")]
    Decode {
        /// The name of the codec.
        name: String,
        /// The error.
        error: String,
    },
    /// The data contains a request from another world, and the feature `worlds` is off.
    #[error("the data contains a request from another world: turn the feature `worlds` on")]
    NoWorlds,
    /// The map sends a saved entity to an entity that does not exist in the world.
    #[error(
        "the map of entities sends saved entity {entity} to {to}, which does not exist: spawn it first"
    )]
    NotInWorld {
        /// The saved entity.
        entity: Entity,
        /// The entity that the map holds for it.
        to: Entity,
    },
    /// The map sends two saved entities to the same entity.
    #[error(
        "the map of entities sends both {} and {} to {to}: use two entities",
        entities[0], entities[1]
    )]
    MappedTwice {
        /// The two saved entities.
        entities: [Entity; 2],
        /// The entity that the map holds for both.
        to: Entity,
    },
    /// Clocks of these saved entities would drive each other, together with existing clocks.
    #[error("clocks can't drive each other in a circle: {0:?}")]
    ClockCycle(Vec<Entity>),
    /// A clock or a timer runs on an entity that has no clock.
    #[error(
        "the `{component}` of saved entity {entity} runs on entity {clock}, which has no clock: map it \
         to an entity with a `Clock`"
    )]
    NoClock {
        /// The saved entity of the clock or the timer.
        entity: Entity,
        /// Its component.
        component: String,
        /// The saved entity of the clock on which it runs.
        clock: Entity,
    },
    /// The fixed clock would have to run too many steps at once.
    #[error(
        "the overstep of the fixed clock is {overstep:?}, more than {MAX_STEPS} steps of {timestep:?}: \
         the data may be damaged"
    )]
    TooManySteps {
        /// The time that the fixed clock is behind.
        overstep: Duration,
        /// The time of one step.
        timestep: Duration,
    },
    /// Two timers of an owner have the same key.
    #[error("two timers of saved entity {owner} have the key {key:?}: keep one of them")]
    DuplicateKey {
        /// The saved entity of the owner.
        owner: Entity,
        /// The key of both.
        key: Cow<'static, str>,
    },
}

/// Returns the texts of errors, one after the other.
pub(crate) fn list(errors: &[impl ToString]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

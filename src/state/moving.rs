//! Moving an entity to another world: on another thread, or in another process.
//!
//! [`take_entity`] takes an entity out of its world and returns it as a value: its timers and cooldowns with their
//! remaining times, its waiting mail, its open requests, and everything that it owns. It takes all or nothing.
//! [`put_entity`] inserts the value into another world, or hands it back with the reason.
//!
//! A move over a network needs no further calls. Send the value to the other process, and keep it until that process
//! has answered. If it has refused the entity, put the value back.
//!
//! # Time
//!
//! Pass [`put_entity`] the time since the entity was taken, as a `Duration` or as the [time of each
//! clock](TimePassed). A deadline that has passed on the way is served in the next run. A periodic timer then follows
//! its [`MissedTicks`](crate::MissedTicks). A paused timer keeps its full remaining time. A clock that moves along shows
//! the time on the way, but no frame has taken it: it is no part of a [`delta`](crate::Clocks::delta).
//!
//! # What moves
//!
//! | moves | stays |
//! |---|---|
//! | everything that [`save_entity`](crate::save::SaveWorldExt::save_entity) saves, with your registered components | your other components, observers, [`UpdateComponent`](crate::UpdateComponent)s and [`MessageComponent`](crate::message::MessageComponent)s: they despawn with the entity |
//! | pauses of the entity and modifiers of its clock that belong to nobody else | effects that belong to another entity, and modifiers that pause another entity: they end |
//! | a [`Cooldown`](crate::Cooldown) component: it continues on the clock of its entity | cooldowns inside your components |
//! | mail to the entity: [packets](crate::message::Packet), and messages [with a codec](crate::message::MessageWorldExt::add_message_codec) | messages to all, in turn, or from Bevy's writers: the entity misses them |
//! | open requests | requests from others that the entity has received but not answered |
#![cfg_attr(
    feature = "worlds",
    doc = "| its [`StableKey`](crate::worlds::StableKey) | |"
)]
//!
//! Insert your other components when `put_entity` returns. The mail that moved along is delivered in the next run. If
//! there is no `MessageComponent` by then, it is lost, and counted in
//! [`MessageStats::undeliverable`](crate::message::MessageStats::undeliverable).
//!
//! # Mail on the way
//!
//! While an entity is away, nothing is held for it. A message to it in the old world is counted in
//! [`MessageStats::undeliverable`](crate::message::MessageStats::undeliverable) there, and a request to it times out.
#![cfg_attr(
    feature = "worlds",
    doc = "A parcel for its `StableKey` is refused at once: the sender gets \
[`NoAnswer::Refused`](crate::message::NoAnswer::Refused) for a request, and \
[`Refused`](crate::worlds::Refused) with the parcel for anything else, and can send it again."
)]
//!
//! A reply in the old world to a request of the entity is late: it is counted in
//! [`MessageStats::late`](crate::message::MessageStats::late) there, and the request times out at the new place. A
//! reply from another world finds the entity at its new place, because the stable key has moved along. If it comes
//! while the entity is away, it is refused, and the request times out.
//!
//! # Crashes
//!
//! A value that is lost is an entity that is lost, and a value that is put twice is two entities. To survive the end of
//! the process, store the value before you send it.
//! [`copy_entities`](crate::moving::MoveWorldExt::copy_entities) returns the same data of entities that do not move,
//! to store it in every frame.
//!
//! # Examples
//!
//! ```
//! use core::time::Duration;
//! use bevy_app::prelude::*;
//! use bevy_due::{
//!     Timer,
//!     message::{MessageWorldExt, Packet},
//!     moving::{MoveWorldExt, MovedEntity},
//!     prelude::*,
//! };
//! use bevy_ecs::{entity::EntityHashMap, prelude::*};
//! use bevy_time::{TimePlugin, TimeUpdateStrategy};
//!
//! const HIT: u32 = 1;
//!
//! #[derive(Component)]
//! struct Health(u8);
//!
//! fn ears() -> MessageComponent {
//!     MessageComponent::new().on_packet(HIT, |mut me, hit| {
//!         me.entity.get_mut::<Health>().unwrap().0 -= hit.payload()[0];
//!     })
//! }
//!
//! fn zone() -> App {
//!     let mut app = App::new();
//!     app.add_plugins((TimePlugin, DuePlugin::default())).insert_resource(
//!         TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)),
//!     );
//!     app.update(); // Bevy's first frame takes no time.
//!     app
//! }
//!
//! let (mut forest, mut town) = (zone(), zone());
//! let hero = forest.world_mut().spawn((Health(10), ears(), Timer::after(1.0))).id();
//! forest.update();
//! forest.world_mut().send(hero, Packet::new(HIT, [3]))?; // It moves along.
//!
//! let health = forest.world().get::<Health>(hero).unwrap().0;
//! let moved = forest.world_mut().take_entity(hero)?;
//! assert!(forest.world().get_entity(hero).is_err());
//! let data = ron::to_string(&(moved, health))?; // Or as bytes.
//!
//! let (moved, health): (MovedEntity, u8) = ron::from_str(&data)?;
//! let on_the_way = Duration::from_millis(250);
//! let mut entities = EntityHashMap::default();
//! let hero = town.world_mut().put_entity(moved, on_the_way, &mut entities)?;
//! town.world_mut().entity_mut(hero).insert((Health(health), ears()));
//!
//! let timer = town.world_mut().with_timers(|timers| timers.get(hero));
//! assert_eq!(timer.unwrap().remaining, Duration::from_millis(500));
//! town.update();
//! assert_eq!(town.world().get::<Health>(hero).unwrap().0, 7);
//! # Ok::<(), BevyError>(())
//! ```
//!
//! [`put_entity`]: crate::moving::MoveWorldExt::put_entity
//! [`take_entity`]: crate::moving::MoveWorldExt::take_entity

mod error;
mod ext;
mod names;
mod put;
mod take;

use alloc::{boxed::Box, vec::Vec};

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Versioned, save::SavedTimers};
pub use error::{MoveError, PutError};
pub use ext::MoveWorldExt;
use put::put_entities;
use take::{copy_entities, take_entity};

pub use super::letter::{UnsavableMail, UnsavableReason};

pub use crate::clock::TimePassed;

/// An entity on its way to another world, as data.
///
/// [`MoveWorldExt::take_entity`] and [`MoveWorldExt::copy_entities`] return it, and [`MoveWorldExt::put_entity`] takes
/// it. The serialized form begins with its version. A version that this release does not know is an error.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
#[must_use = "the entity is lost unless it is put into a world"]
pub struct MovedEntity(Box<Versioned<Content>>);

/// An entity, by the names of the world that it comes from.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    entity: Entity,
    timers: SavedTimers,
    /// The keys by which other worlds know the entities.
    keys: Vec<(Entity, u64)>,
    requests: Vec<RequestName>,
    #[serde(skip)]
    left_out: Vec<UnsavableMail>,
}

/// The name under which an open request was made.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestName {
    entity: Entity,
    token: u64,
    number: u64,
}

impl RequestName {
    fn name(&self) -> (u64, u64) {
        (self.token, self.number)
    }
}

impl MovedEntity {
    /// Returns the entity, as it is called in the world that it comes from.
    #[must_use]
    pub fn entity(&self) -> Entity {
        self.0.entity
    }

    /// Returns the entity and everything that moves with it, as they are called in the world that they come from.
    pub fn entities(&self) -> impl Iterator<Item = Entity> {
        self.0.timers.entities()
    }

    /// Returns the messages that waited for the entity or for what it owns, and that are not part of a
    /// [copy](MoveWorldExt::copy_entities), because they can't be turned into data.
    #[must_use]
    pub fn left_out(&self) -> &[UnsavableMail] {
        &self.0.left_out
    }
}

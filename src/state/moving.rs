//! Moving an entity to another world: on another thread, or in another process.
//!
//! A move has two ends. Each holds the entity until it knows how the move ends. Then one end commits,
//! and the other forgets:
//!
//! 1. [`export_entity`] returns the entity as data: its timers and cooldowns with their remaining times,
//!    its waiting mail, its open requests, and everything that it owns. From here on the entity is
//!    [in transit](InTransit): its timers do not fire, its callbacks do not run, and its mail is held.
//!    Your own systems still see it: filter them with `Without<InTransit>`.
//! 2. [`import_entity`] brings it into the other world, where it is in transit, too. Insert your own
//!    components now, and its [`MessageComponent`](crate::message::MessageComponent), unless you have
//!    [registered](crate::save::SaveWorldExt::add_saved_component) them or a component that requires them. Mail that is
//!    released before there is a `MessageComponent` is lost, and counted in
//!    [`MessageStats::undeliverable`](crate::message::MessageStats::undeliverable). Import the data once. An
//!    entity without a stable key can't be recognized, so a second import is a second entity.
//! 3. [`forget_entity`] despawns the entity in the old world without any event, and returns the mail
//!    held there.
//! 4. [`commit_entity`] releases the entity in the new world. The exported mail comes first, then the
//!    mail from step 3, then the mail that has arrived at the new place. All of it comes before the rest of
//!    the delivery that is under way.
//!
//! If the other world refuses the entity, commit it at the old place with an empty [`HeldMail`]. It
//! continues as if nothing had happened. If the other world has imported the entity already, forget it there,
//! and pass on what that returns. That mail then comes after the mail that the old world has held.
#![cfg_attr(
    feature = "worlds",
    doc = "Parcels for a [`StableKey`](crate::worlds::StableKey) keep the order in which they were sent: those that \
went to the other world come between those before and after."
)]
//!
//! # Time
//!
//! Clocks keep running during a move. Pass `import_entity` the time since the export, as a `Duration` or
//! as the [time of each clock](TimePassed); from the import on, the clocks of the new world count. A deadline that has passed by the time of the commit is served
//! in the next run. A periodic timer then follows its [`MissedTicks`](crate::MissedTicks). A paused
//! timer stays paused, and keeps its full remaining time. If the move ends at the old place, the clocks
//! there count all the time.
//!
//! # What moves
//!
//! | moves | stays |
//! |---|---|
//! | everything that [`save_entity`](crate::save::SaveWorldExt::save_entity) saves, with your registered components | your other components, observers, [`UpdateComponent`](crate::UpdateComponent)s and `MessageComponent`s |
//! | pauses of the entity and modifiers of its clock that belong to nobody else | effects that belong to another entity, and modifiers that pause another entity. They despawn with the entity here |
//! | a [`Cooldown`](crate::Cooldown) component: it continues on the clock of its entity | cooldowns inside your components |
//! | mail to the entity: [packets](crate::message::Packet), and messages [with a codec](crate::message::MessageWorldExt::add_message_codec) | messages to all, in turn, or from Bevy's writers: they pass the entity by |
//! | open requests | requests from others that the entity has received but not answered |
#![cfg_attr(
    feature = "worlds",
    doc = "| its [`StableKey`](crate::worlds::StableKey), from the import on | |"
)]
//!
//! # Requests
//!
//! A reply that arrives during the move is held mail, and completes the request at the new place. After
//! `forget_entity`, a reply still finds the entity if the request was made to another world, because the
//! stable key has moved along. A reply that is sent inside the old world is too late: it is counted in
//! [`MessageStats::late`](crate::message::MessageStats::late) there, and the request times out at the
//! new place.
//!
//! # Crashes
//!
//! If a process crashes during a move, the entity can exist in both worlds or in neither. To recover,
//! store the exported data and the last call that succeeded.
//! [`copy_entities`](crate::moving::MoveWorldExt::copy_entities) returns the same data of entities that do not move,
//! to store it in every frame. A world that is saved during a move is
//! saved as if the entity were not in transit, with the held mail.
//!
//! # Examples
//!
//! ```
//! use core::time::Duration;
//! use bevy_app::prelude::*;
//! use bevy_due::{
//!     Timer,
//!     message::{MessageWorldExt, Packet},
//!     moving::{HeldMail, MoveWorldExt, MovedEntity},
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
//!
//! let moved = forest.world_mut().export_entity(hero)?;
//! let data = ron::to_string(&moved)?; // As bytes, with the components of the game.
//! forest.world_mut().send(hero, Packet::new(HIT, [3]))?; // Held.
//! forest.update();
//!
//! let moved: MovedEntity = ron::from_str(&data)?;
//! let on_the_way = Duration::from_millis(250);
//! let mut entities = EntityHashMap::default();
//! let in_town = town.world_mut().import_entity(&moved, on_the_way, &mut entities)?;
//! town.world_mut().entity_mut(in_town).insert((Health(10), ears()));
//!
//! let late = ron::to_string(&forest.world_mut().forget_entity(hero)?)?;
//! assert!(forest.world().get_entity(hero).is_err());
//!
//! let late: HeldMail = ron::from_str(&late)?;
//! town.world_mut().commit_entity(in_town, &late)?;
//! let timer = town.world_mut().with_timers(|timers| timers.get(in_town));
//! assert_eq!(timer.unwrap().remaining, Duration::from_millis(500));
//! town.update();
//! assert_eq!(town.world().get::<Health>(in_town).unwrap().0, 7);
//! # Ok::<(), BevyError>(())
//! ```
//!
//! [`commit_entity`]: crate::moving::MoveWorldExt::commit_entity
//! [`export_entity`]: crate::moving::MoveWorldExt::export_entity
//! [`forget_entity`]: crate::moving::MoveWorldExt::forget_entity
//! [`import_entity`]: crate::moving::MoveWorldExt::import_entity

mod end;
mod error;
mod export;
mod ext;
mod import;
mod names;

use alloc::vec::Vec;

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Versioned, letter::LetterData, save::SavedTimers};
use end::{commit_entity, forget_entity};
pub use error::MoveError;
use export::{copy_entities, export_entity};
pub use ext::MoveWorldExt;
use import::import_entities;

pub use super::letter::{UnsavableMail, UnsavableReason};

pub use crate::{clock::TimePassed, transit::InTransit};

/// An entity on its way to another world, as data.
///
/// [`MoveWorldExt::export_entity`] returns it, and
/// [`MoveWorldExt::import_entity`] takes it. The serialized form begins
/// with its version. A version that this release does not know is an error.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MovedEntity(Versioned<Content>);

/// The mail that was held for an entity in transit, as data.
///
/// [`MoveWorldExt::forget_entity`] returns it, and
/// [`MoveWorldExt::commit_entity`] takes it. The default value is
/// empty. The serialized form begins with its version.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HeldMail(Versioned<Vec<LetterData>>);

/// An entity, by the names of the world that exported it.
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

impl MovedEntity {
    /// Returns the entity, as it is called in the world that exported it.
    #[must_use]
    pub fn entity(&self) -> Entity {
        self.0.entity
    }

    /// Returns the entity and everything that moves with it, as they are called in the world that
    /// exported them.
    pub fn entities(&self) -> impl Iterator<Item = Entity> {
        self.0.timers.entities()
    }

    /// Returns the messages that waited for the entity or for what it owns, and that are not part of a
    /// [copy](MoveWorldExt::copy_entities), because they are no data.
    #[must_use]
    pub fn left_out(&self) -> &[UnsavableMail] {
        &self.0.left_out
    }
}

impl HeldMail {
    /// Returns the number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if there is no message.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Default for HeldMail {
    fn default() -> Self {
        Self(Versioned::V1(Vec::new()))
    }
}

//! Keys: an owner has at most one timer per key.

use alloc::borrow::Cow;
use core::fmt;

use bevy_ecs::{entity::EntityHashMap, prelude::*, world::DeferredWorld};
use bevy_platform::collections::HashMap;
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::Reflect;

use super::{CancelReason, Timer, arm::cancel, lines::is_armed};
use crate::owner::OwnedBy;

/// The key of a timer, unique among the timers of its owner.
///
/// A new timer with the same key and owner cancels the earlier one with [`CancelReason::Replaced`]
/// and despawns its entity, even during its last firing.
///
/// [`set_timer`](crate::DueEntityCommandsExt::set_timer) spawns a keyed timer, and
/// [`cancel_timer`](crate::DueEntityCommandsExt::cancel_timer) cancels it.
///
/// Setting a periodic timer again also restarts its interval. To keep the phase of the earlier
/// timer, use its remaining time:
///
/// ```
/// use bevy_due::{ArmedTimers, Timer, prelude::*};
/// use bevy_ecs::prelude::*;
///
/// fn poison(victim: Entity, timers: ArmedTimers, mut commands: Commands) {
///     let mut poison = Timer::every_secs(1.0).times(5);
///     if let Some(earlier) = timers.keyed(victim, "poison") {
///         poison = poison.first_after(earlier.remaining);
///     }
///     commands.entity(victim).set_timer("poison", poison);
/// }
/// # let _ = poison;
/// ```
///
/// # Time complexity
///
/// Setting or finding a key is *O*(1), however many timers the owner has. Replacing a timer is
/// *O*(*n*) in the number of entities of the owner, because its entity leaves
/// [`Owned`](crate::Owned).
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
/// use bevy_time::TimePlugin;
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default()));
/// let mut commands = app.world_mut().commands();
/// let hero = commands.spawn_empty().id();
/// // A second potion, before the first wears off.
/// commands.entity(hero).set_timer("potion", Timer::after_secs(30.0));
/// commands.entity(hero).set_timer("potion", Timer::after_secs(45.0));
/// app.world_mut().flush();
/// assert_eq!(app.world().get::<Owned>(hero).unwrap().len(), 1);
/// ```
///
/// An observer on the owner can look up which timer fired:
///
/// ```
/// use bevy_due::{Keyed, Timer, prelude::*};
/// use bevy_ecs::prelude::*;
///
/// fn suffer(fired: On<TimerFired>, keys: Query<&Keyed>) {
///     match keys.get(fired.entity()).map(|key| &*key.0) {
///         Ok("burning") => println!("{} burns", fired.owner()),
///         Ok("poison") => println!("{} is sick", fired.owner()),
///         _ => {}
///     }
/// }
///
/// fn set_on_fire(monster: Entity, mut commands: Commands) {
///     let mut monster = commands.entity(monster);
///     monster.observe(suffer);
///     monster.set_timer("burning", Timer::every_secs(0.5).times(6));
/// }
/// # let _ = set_on_fire;
/// ```
#[doc(alias("name", "tag", "category"))]
#[derive(Component, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[component(immutable)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Component, Clone, Debug, PartialEq, Hash)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub struct Keyed(pub Cow<'static, str>);

impl Keyed {
    /// Creates a key.
    #[must_use]
    pub fn new(key: impl Into<Cow<'static, str>>) -> Self {
        Self(key.into())
    }
}

impl fmt::Display for Keyed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The entity that was last inserted with each key of each owner.
#[derive(Resource, Debug, Default)]
pub(crate) struct KeyTable(EntityHashMap<HashMap<Cow<'static, str>, Entity>>);

impl KeyTable {
    /// Returns the entity with a key of an owner, if any.
    pub(super) fn get(&self, owner: Entity, key: &str) -> Option<Entity> {
        self.0.get(&owner)?.get(key).copied()
    }

    /// Gives a key of an owner to an entity, and returns the entity that had it before.
    fn insert(&mut self, owner: Entity, Keyed(key): Keyed, entity: Entity) -> Option<Entity> {
        let earlier = self.0.entry(owner).or_default().insert(key, entity);
        earlier.filter(|&earlier| earlier != entity)
    }

    /// Frees a key of an owner, unless another entity has it by now.
    fn remove(&mut self, owner: Entity, key: &str, entity: Entity) {
        if self.get(owner, key) != Some(entity) {
            return;
        }
        if let Some(keys) = self.0.get_mut(&owner) {
            keys.remove(key);
            if keys.is_empty() {
                self.0.remove(&owner);
            }
        }
    }
}

pub(crate) fn on_key(inserted: On<Insert<(Keyed, OwnedBy)>>, mut world: DeferredWorld) {
    take_key(&mut world, inserted.entity);
}

/// Gives a key to `entity`, and cancels the timer of its owner that had the key before.
pub(crate) fn take_key(world: &mut DeferredWorld, entity: Entity) {
    let Some((owner, key)) = key_of(world, entity) else {
        return;
    };
    let key = key.clone();
    let table = world.get_resource_mut::<KeyTable>();
    let Some(earlier) = table.and_then(|mut table| table.insert(owner, key.clone(), entity)) else {
        return;
    };
    // The command runs after the owner has learned of the new timer. Observers of the earlier timer
    // may then even despawn the owner.
    world.commands().queue(move |world: &mut World| {
        let table = world.get_resource::<KeyTable>();
        let holder = table.and_then(|table| table.get(owner, &key.0));
        // Either of them may have lost the key, or taken it back, in the meantime.
        if holder != Some(earlier) && key_of(world, earlier) == Some((owner, &key)) {
            cancel(&mut world.into(), earlier, CancelReason::Replaced);
            world.despawn(earlier);
        }
    });
}

pub(crate) fn on_discard_key(discarded: On<Discard<(Keyed, OwnedBy)>>, mut world: DeferredWorld) {
    let entity = discarded.entity;
    let Some((owner, Keyed(key))) = key_of(&world, entity) else {
        return;
    };
    let key = key.clone();
    if let Some(mut table) = world.get_resource_mut::<KeyTable>() {
        table.remove(owner, &key, entity);
    }
}

/// Returns the owner and the key of an entity, if it has both.
fn key_of(world: &World, entity: Entity) -> Option<(Entity, &Keyed)> {
    let &OwnedBy(owner) = world.get(entity)?;
    Some((owner, world.get(entity)?))
}

/// Cancels the timer of `owner` with this key, and returns `true` if there was one.
pub(crate) fn cancel_keyed(world: &mut World, owner: Entity, key: &str) -> bool {
    let table = world.get_resource::<KeyTable>();
    let timer = table.and_then(|table| table.get(owner, key));
    let Some(timer) = timer.filter(|&timer| world.get::<Timer>(timer).is_some()) else {
        return false;
    };
    // A timer in its last firing is no longer armed.
    let was_armed = is_armed(world, timer);
    world.despawn(timer);
    was_armed
}

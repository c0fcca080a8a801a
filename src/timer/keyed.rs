//! Keys: an owner has at most one timer per key.

use alloc::{borrow::Cow, vec::Vec};
use core::fmt;

use bevy_ecs::{entity_disabling::Disabled, prelude::*};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::Reflect;

use super::{CancelReason, Timer, arm::cancel, lines::is_armed};
use crate::owner::{OwnedBy, owned_by};

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
/// Inserting is *O*(*n*) in the number of the owner's timers.
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

/// Cancels the other timers with the same owner and the same key.
///
/// This is an observer, not a hook. Its command runs after the owner has learned of the new timer.
/// Observers of the earlier timer may then even despawn the owner.
pub(crate) fn replace_earlier(
    inserted: On<Insert<(Keyed, OwnedBy)>>,
    timers: Query<(&Keyed, &OwnedBy), Allow<Disabled>>,
    mut commands: Commands,
) {
    let entity = inserted.entity;
    let Ok((key, &OwnedBy(owner))) = timers.get(entity) else {
        return;
    };
    let key = key.clone();
    commands.queue(move |world: &mut World| {
        let is_earlier = |&other: &Entity| other != entity && world.get(other) == Some(&key);
        let earlier: Vec<Entity> = owned_by(world, owner).filter(is_earlier).collect();
        for earlier in earlier {
            cancel(&mut world.into(), earlier, CancelReason::Replaced);
            world.despawn(earlier);
        }
    });
}

/// Cancels the timer of `owner` with this key, and returns `true` if there was one.
pub(crate) fn cancel_keyed(world: &mut World, owner: Entity, key: &str) -> bool {
    let found = owned_by(world, owner).rfind(|&entity| {
        let keyed = world.get::<Keyed>(entity);
        keyed.is_some_and(|keyed| keyed.0 == key) && world.get::<Timer>(entity).is_some()
    });
    let Some(timer) = found else {
        return false;
    };
    // A timer in its last firing is no longer armed.
    let was_armed = is_armed(world, timer);
    world.despawn(timer);
    was_armed
}

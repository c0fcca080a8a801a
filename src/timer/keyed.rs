//! One timer for each key of an owner.

use alloc::{borrow::Cow, vec::Vec};
use core::fmt;

use bevy_ecs::{
    component::Component,
    entity::Entity,
    entity_disabling::Disabled,
    lifecycle::Insert,
    observer::On,
    query::Allow,
    system::{Commands, Query},
    world::World,
};
#[cfg(feature = "bevy_reflect")]
use {bevy_ecs::reflect::ReflectComponent, bevy_reflect::Reflect};

use super::{CancelReason, Timer, TimerOf, Timers, hooks::cancel_for};

/// The key of this timer among those of its owner, who has no more than one timer of a key.
///
/// A new one cancels and despawns the earlier one of that key, as
/// [`CancelReason::Replaced`], also from inside its last firing.
///
/// [`set_timer`](crate::TimerEntityCommandsExt::set_timer) spawns such a timer, and
/// [`cancel_timer`](crate::TimerEntityCommandsExt::cancel_timer) cancels it.
///
/// # Time complexity
///
/// *O*(*n*) in the number of the owner's timers.
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
/// app.add_plugins((TimePlugin, DuePlugin));
/// let mut commands = app.world_mut().commands();
/// let hero = commands.spawn_empty().id();
/// // Drinking another one before the first wears off.
/// commands.entity(hero).set_timer("potion", Timer::after_secs(30.0));
/// commands.entity(hero).set_timer("potion", Timer::after_secs(45.0));
/// app.world_mut().flush();
/// assert_eq!(app.world().get::<Timers>(hero).unwrap().len(), 1);
/// ```
///
/// An observer of the owner asks which of its timers has fired:
///
/// ```
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
///
/// fn suffer(fired: On<TimerFired>, keys: Query<&Keyed>) {
///     match keys.get(fired.entity).map(|key| &*key.0) {
///         Ok("burning") => println!("{} burns", fired.owner),
///         Ok("poison") => println!("{} is sick", fired.owner),
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

/// Cancels the other timers that have the owner and the key of this one.
///
/// Not a hook: what an observer queues comes after what lets the owner know of its timer, and
/// whoever hears that the earlier one is cancelled may despawn the owner.
pub(crate) fn replace_earlier(
    inserted: On<Insert<(Keyed, TimerOf)>>,
    timers: Query<(&Keyed, &TimerOf), Allow<Disabled>>,
    mut commands: Commands,
) {
    let entity = inserted.entity;
    let Ok((key, &TimerOf(owner))) = timers.get(entity) else {
        return;
    };
    let key = key.clone();
    commands.queue(move |world: &mut World| {
        let others = world.get::<Timers>(owner).into_iter().flatten().copied();
        let is_earlier = |&other: &Entity| {
            other != entity && world.get::<Keyed>(other).is_some_and(|keyed| *keyed == key)
        };
        let earlier: Vec<Entity> = others.filter(is_earlier).collect();
        for earlier in earlier {
            cancel_for(&mut world.into(), earlier, CancelReason::Replaced);
            world.despawn(earlier);
        }
    });
}

/// Returns the armed timer of `owner` that has this key.
pub(crate) fn find(world: &World, owner: Entity, key: &str) -> Option<Entity> {
    let mut timers = world.get::<Timers>(owner)?.iter().copied();
    timers.rfind(|&timer| {
        let is_armed = world.get::<Timer>(timer).and_then(Timer::armed).is_some();
        is_armed
            && world
                .get::<Keyed>(timer)
                .is_some_and(|keyed| keyed.0 == key)
    })
}

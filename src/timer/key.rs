//! Keys: an owner has at most one timer per key.

use alloc::{borrow::Cow, string::String};
use core::fmt;

use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::Reflect;
#[cfg(all(feature = "bevy_reflect", feature = "serialize"))]
use bevy_reflect::{ReflectDeserialize, ReflectSerialize};

use super::key_id::KeyId;
use crate::owner::{OwnedBy, TimerHooks};

/// A type that is the key of a timer.
///
/// Use a type for a key that your code knows: the compiler then catches a misspelling. The type is a
/// component, and [`set_timer`](crate::DueEntityCommandsExt::set_timer) inserts it on the timer's
/// entity. `With<Meteor>` therefore finds the timer. A scene saves the component with it. Use a
/// string for a key that comes from data.
///
/// The component alone is no key: an entity that you spawn yourself also needs
/// [`Keyed::new(Meteor)`](Keyed::new).
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::{ArmedTimers, Timer, TimerKey, prelude::*};
/// use bevy_ecs::prelude::*;
/// use bevy_time::TimePlugin;
///
/// #[derive(Component)]
/// struct Meteor;
///
/// impl TimerKey for Meteor {
///     const NAME: &'static str = "meteor";
/// }
///
/// fn cast(boss: Entity, mut commands: Commands) {
///     commands.entity(boss).set_timer(Meteor, Timer::after(3.0));
/// }
///
/// fn interrupt(boss: Entity, mut commands: Commands) {
///     commands.entity(boss).cancel_timer(Meteor);
/// }
///
/// fn progress(boss: Entity, timers: ArmedTimers) -> Option<f32> {
///     timers.keyed(boss, Meteor).map(|cast| cast.fraction())
/// }
/// # let _ = (cast, interrupt, progress);
/// ```
pub trait TimerKey: Component {
    /// The name of the key. It does not change when the type is renamed, and it is saved.
    const NAME: &'static str;
}

/// The key of a timer as an argument: a [`TimerKey`], or a string.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the key of a timer",
    label = "expected a key",
    note = "a key is a value of a type that implements `TimerKey`, or a string"
)]
pub trait IntoKey: Sized + Send + 'static {
    /// Returns the name of the key.
    fn name(&self) -> Cow<'static, str>;

    /// The component of the key on the timer's entity, if any.
    #[doc(hidden)]
    type Component: Bundle;

    #[doc(hidden)]
    fn into_component(self) -> Self::Component;

    /// Returns `true` if the compiler finds a misspelt key.
    #[doc(hidden)]
    fn is_typed(&self) -> bool {
        false
    }
}

impl<K: TimerKey> IntoKey for K {
    type Component = K;

    fn name(&self) -> Cow<'static, str> {
        K::NAME.into()
    }

    fn into_component(self) -> K {
        self
    }

    fn is_typed(&self) -> bool {
        true
    }
}

impl IntoKey for &'static str {
    type Component = ();

    fn name(&self) -> Cow<'static, str> {
        (*self).into()
    }

    fn into_component(self) {}
}

impl IntoKey for String {
    type Component = ();

    fn name(&self) -> Cow<'static, str> {
        self.clone().into()
    }

    fn into_component(self) {}
}

impl IntoKey for Cow<'static, str> {
    type Component = ();

    fn name(&self) -> Cow<'static, str> {
        self.clone()
    }

    fn into_component(self) {}
}

impl IntoKey for Keyed {
    type Component = ();

    fn name(&self) -> Cow<'static, str> {
        Keyed::name(self).into()
    }

    fn into_component(self) {}
}

/// The key of an owned timer, unique among the timers of its owner.
///
/// A new timer with the same key and owner cancels the earlier one with
/// [`CancelReason::Replaced`](crate::CancelReason::Replaced) and despawns its entity, even during
/// its last firing. On an entity without an [owner](crate::OwnedBy), the component does nothing. An owned
/// entity that has no timer, but a [`DespawnAfter`](crate::DespawnAfter), is replaced and
/// [cancelled](crate::DueEntityCommandsExt::cancel_timer) by its key in the same way, without an event.
///
/// [`set_timer`](crate::DueEntityCommandsExt::set_timer) spawns a keyed timer. A key that the code
/// knows is a type that implements [`TimerKey`]. The process keeps each name forever, so use names
/// from a limited set, not a new name for each player.
///
/// # Time complexity
///
/// Setting, finding and replacing a timer is *O*(1), no matter how many timers the owner has.
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
/// commands
///     .entity(hero)
///     .set_timer("potion", Timer::after(30.0))
///     .set_timer("potion", Timer::after(45.0));
/// app.world_mut().flush();
/// assert_eq!(app.world().get::<Owned>(hero).unwrap().len(), 1);
/// ```
#[doc(alias("name", "tag", "category"))]
#[derive(Component, Clone, Copy, PartialEq, Eq, Hash)]
#[component(immutable, on_insert = on_insert, on_discard = on_discard)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(opaque),
    reflect(Component, Clone, Debug, PartialEq, Hash)
)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "Cow<'static, str>", from = "Cow<'static, str>")
)]
#[cfg_attr(
    all(feature = "bevy_reflect", feature = "serialize"),
    reflect(Serialize, Deserialize)
)]
pub struct Keyed(KeyId);

impl Keyed {
    /// Creates a key.
    #[must_use]
    pub fn new(key: impl IntoKey) -> Self {
        Self(KeyId::of(key.name()))
    }

    /// Returns the name of the key.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    pub(super) fn id(self) -> KeyId {
        self.0
    }
}

fn on_insert(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    TimerHooks::of(&world, |hooks| hooks.on_take_key)(&mut world, entity);
}

fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    TimerHooks::of(&world, |hooks| hooks.on_free_key)(&mut world, entity);
}

impl From<Cow<'static, str>> for Keyed {
    fn from(name: Cow<'static, str>) -> Self {
        Self::new(name)
    }
}

impl From<Keyed> for Cow<'static, str> {
    fn from(keyed: Keyed) -> Self {
        keyed.name().into()
    }
}

impl fmt::Debug for Keyed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keyed").field(&self.name()).finish()
    }
}

impl fmt::Display for Keyed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}

/// Returns the owner and the key of an entity, if it has both.
pub(super) fn key_of(world: &World, entity: Entity) -> Option<(Entity, KeyId)> {
    let entity = world.get_entity(entity).ok()?;
    let key: &Keyed = entity.get()?;
    let &OwnedBy(owner) = entity.get()?;
    Some((owner, key.id()))
}

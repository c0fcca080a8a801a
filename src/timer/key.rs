//! The keys of timers, and their names.

use alloc::{borrow::Cow, string::String};
use core::{fmt, num::NonZeroU32};

use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};
use bevy_platform::{
    collections::HashMap,
    hash::FixedHasher,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::prelude::*;

use super::keyed::{free_key, take_key};

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

/// The key of a timer as an argument: a [`TimerKey`], a string, or a [`Keyed`].
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

    /// Returns `true` if the key was written as text in the code, where it may be misspelt.
    #[doc(hidden)]
    fn is_text(&self) -> bool {
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
}

impl IntoKey for &'static str {
    type Component = ();

    fn name(&self) -> Cow<'static, str> {
        (*self).into()
    }

    fn into_component(self) {}

    fn is_text(&self) -> bool {
        true
    }
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
        self.0.name.clone()
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
/// knows is a type that implements [`TimerKey`].
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
#[derive(Component, Clone, PartialEq, Eq, Hash)]
#[component(immutable, on_insert = on_insert, on_discard = on_discard)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due::timer",
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
pub struct Keyed(Arc<Key>);

impl Keyed {
    /// Creates a key.
    #[must_use]
    pub fn new(key: impl IntoKey) -> Self {
        let name = key.name();
        let known = NAMES
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&name);
        known.unwrap_or_else(|| {
            let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
            names.insert(name)
        })
    }

    /// Returns the name of the key.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    #[inline]
    pub(super) fn id(&self) -> KeyId {
        self.0.id
    }
}

fn on_insert(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    take_key(&mut world, entity);
}

fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    free_key(&mut world, entity);
}

impl From<Cow<'static, str>> for Keyed {
    fn from(name: Cow<'static, str>) -> Self {
        Self::new(name)
    }
}

impl From<Keyed> for Cow<'static, str> {
    fn from(keyed: Keyed) -> Self {
        keyed.0.name.clone()
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

/// The number of a name. Equal names have equal numbers in all worlds of the process.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KeyId(NonZeroU32);

impl KeyId {
    /// The numbers have 31 bits, to leave one for another use.
    const MAX: u32 = u32::MAX >> 1;

    /// Returns the number of a name, if a timer has had it.
    pub(super) fn find(name: &str) -> Option<Self> {
        let names = NAMES.read().unwrap_or_else(PoisonError::into_inner);
        names.by_name.get(name).map(|known| known.key.id())
    }

    /// Returns the key with this number, or `None` for zero.
    pub(super) fn from_number(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    pub(super) fn number(self) -> u32 {
        self.0.get()
    }

    /// Returns the name, unless it is forgotten.
    pub(super) fn name(self) -> Option<Cow<'static, str>> {
        let names = NAMES.read().unwrap_or_else(PoisonError::into_inner);
        names.by_id.get(&self).map(|key| key.0.name.clone())
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.name().unwrap_or_default(), f)
    }
}

/// A name and its number.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    id: KeyId,
    name: Cow<'static, str>,
}

/// The names that keys have.
///
/// A name in the code stays forever. A name from data is forgotten some time after its last [`Keyed`]
/// has been dropped. Until then, the events of its timers can be read.
struct Names {
    by_name: HashMap<Cow<'static, str>, Known>,
    by_id: HashMap<KeyId, Keyed>,
    /// The number that was given last.
    last: u32,
    /// The bytes that the names take, and at how many they are swept.
    bytes: usize,
    sweep_at: usize,
}

struct Known {
    key: Keyed,
    /// Whether no timer had the key when the names were last swept.
    is_old: AtomicBool,
}

static NAMES: RwLock<Names> = RwLock::new(Names {
    by_name: HashMap::with_hasher(FixedHasher),
    by_id: HashMap::with_hasher(FixedHasher),
    last: 0,
    bytes: 0,
    sweep_at: Names::FIRST_SWEEP,
});

impl Names {
    const FIRST_SWEEP: usize = 1 << 20;

    fn get(&self, name: &str) -> Option<Keyed> {
        let known = self.by_name.get(name)?;
        if known.is_old.load(Ordering::Relaxed) {
            known.is_old.store(false, Ordering::Relaxed);
        }
        Some(known.key.clone())
    }

    fn insert(&mut self, name: Cow<'static, str>) -> Keyed {
        // Another thread may have inserted the name in the meantime.
        if let Some(key) = self.get(&name) {
            return key;
        }
        if self.bytes >= self.sweep_at {
            self.sweep();
        }
        let id = self.next_id();
        let key = Keyed(Arc::new(Key {
            id,
            name: name.clone(),
        }));
        self.bytes += weight(&name);
        self.by_id.insert(id, key.clone());
        let known = Known {
            key: key.clone(),
            is_old: AtomicBool::new(false),
        };
        self.by_name.insert(name, known);
        key
    }

    /// Returns a number that no name has. A number is used again as late as possible, because events
    /// may still have it.
    fn next_id(&mut self) -> KeyId {
        loop {
            self.last = self.last % KeyId::MAX + 1;
            if let Some(id) = KeyId::from_number(self.last)
                && !self.by_id.contains_key(&id)
            {
                return id;
            }
        }
    }

    /// Forgets the names from data that were unused since the sweep before.
    fn sweep(&mut self) {
        let Self { by_id, bytes, .. } = self;
        self.by_name.retain(|name, Known { key, is_old }| {
            let is_from_code = matches!(name, Cow::Borrowed(_));
            // Both maps have it.
            let is_used = is_from_code || Arc::strong_count(&key.0) > 2;
            let stays = is_used || !*is_old.get_mut();
            *is_old.get_mut() = !is_used;
            if !stays {
                *bytes -= weight(name);
                by_id.remove(&key.id());
            }
            stays
        });
        self.sweep_at = (2 * self.bytes).max(Self::FIRST_SWEEP);
    }
}

/// Returns about how many bytes a name takes.
fn weight(name: &str) -> usize {
    2 * name.len() + 128
}

#[cfg(test)]
mod tests {
    use std::{format, string::ToString};

    use super::*;

    #[test]
    fn equal_names_have_equal_numbers() {
        let key = Keyed::new("a name of this test");
        assert_eq!(Keyed::new("a name of this test".to_string()), key);
        assert_eq!(KeyId::find("a name of this test"), Some(key.id()));
        assert_eq!(key.id().name().as_deref(), Some("a name of this test"));
        assert_eq!(KeyId::find("no name of this test"), None);
        assert_ne!(Keyed::new("another name of this test"), key);
        assert_eq!(size_of::<Option<KeyId>>(), 4);
    }

    #[test]
    fn names_from_data_are_forgotten_once_no_timer_has_them() {
        let kept = Keyed::new("kept".to_string());
        let in_code = Keyed::new("in the code").id();
        let first = Keyed::new("first".to_string()).id();
        assert_eq!(first.name().as_deref(), Some("first"), "not at once");
        for nth in 0..100_000 {
            let id = Keyed::new(format!("a name from data {nth}")).id();
            assert!(id.name().is_some(), "events can still be read");
        }
        assert_eq!(first.name(), None);
        assert_eq!(KeyId::find("first"), None);
        assert_eq!(kept.id().name().as_deref(), Some("kept"));
        assert_eq!(in_code.name().as_deref(), Some("in the code"));
        let names = NAMES.read().expect("no test panics");
        let (len, bytes) = (names.by_name.len(), names.bytes);
        assert!(len < 20_000, "{len} names");
        assert_eq!(len, names.by_id.len());
        assert!(bytes < 3 * Names::FIRST_SWEEP, "{bytes} bytes");
    }
}

//! Factors on the speed of a clock.

use alloc::borrow::Cow;
use core::{ops::Deref, slice};

use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::prelude::*;
use smallvec::SmallVec;

use super::{id::ClockError, table::ClockTable, time::Speed};
use crate::{
    copies::{join_list, remove_if_empty},
    seconds::or_panic,
};

/// Multiplies the speed of a [`Clock`](crate::Clock), as long as this component exists.
///
/// Each modifier is a separate entity, so that effects can overlap: a slow field of 0.5 and a haste of 2.0 together
/// leave the speed as it is. Of a [group](Self::in_group), only the strongest counts.
/// [`Clock::speed`](crate::Clock::speed) remains the speed without modifiers, and
/// [`Clocks::speed`](crate::Clocks::speed) counts them. To change a factor, insert the component again. To end the
/// effect, remove it or despawn its entity. It also ends with the last firing of a timer on its entity, if the entity
/// then despawns. The modifiers of a clock despawn with it. If a slow field [owns](crate::OwnedBy) its modifiers, they
/// also despawn with the field.
///
/// Timers and a [`DespawnAfter`](crate::DespawnAfter) on the entity run on the parent of the clock,
/// unless they choose [another one](crate::OnClock). A slow field therefore does not slow its own
/// end. On a modifier of a [manual clock](crate::Clock::manual), they run on the game clock.
///
/// If the entity has no clock, it gets one before time passes next: a child of the clock that it is on, with the same
/// time. Its timers move there with what remains of them, and a new one counts there from this frame. A
/// unit therefore needs a clock only once something slows it.
///
/// The built-in clocks have no modifiers. Use `Time::<Virtual>::set_relative_speed` for the game,
/// or drive your clocks with a clock that you spawn.
///
/// # Time complexity
///
/// Adding or removing a modifier is *O*(*n*) in the number of modifiers of its clock, times the number of those in
/// groups.
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::{clock::SpeedModifier, prelude::*};
/// use bevy_ecs::prelude::*;
/// use bevy_time::{TimePlugin, TimeUpdateStrategy};
/// use core::time::Duration;
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default()))
///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)));
/// app.update(); // Bevy's first frame takes no time.
///
/// let enemy = app.world_mut().spawn(Clock::new()).id();
/// // Slow for one second of game time.
/// app.world_mut().spawn((SpeedModifier::new(enemy, 0.5), DespawnAfter::new(1.0)));
/// for _ in 0..4 {
///     app.update();
/// }
/// assert_eq!(app.world().clock_now(enemy), Ok(Duration::from_millis(500)));
///
/// app.update();
/// assert_eq!(app.world().clock_now(enemy), Ok(Duration::from_millis(750)));
/// ```
#[doc(alias("slow", "haste", "buff"))]
#[derive(Component, Clone, Debug, PartialEq)]
#[relationship(relationship_target = SpeedModifiers)]
#[component(on_insert = join_list::<Self>, on_discard = on_discard)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due::clock",
    reflect(opaque),
    reflect(Component, Clone, Debug, PartialEq)
)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
#[cfg_attr(
    all(feature = "bevy_reflect", feature = "serialize"),
    reflect(Serialize, Deserialize)
)]
pub struct SpeedModifier {
    #[relationship]
    clock: Entity,
    factor: Factor,
    #[cfg_attr(feature = "serialize", serde(default))]
    group: Option<Cow<'static, str>>,
}

/// A valid factor, by default one: `related!` creates the component from the entity alone.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "f64", try_from = "f64")
)]
struct Factor(f64);

impl Default for Factor {
    fn default() -> Self {
        Self(1.0)
    }
}

impl TryFrom<f64> for Factor {
    type Error = ClockError;

    fn try_from(factor: f64) -> Result<Self, ClockError> {
        Speed::try_from(factor)?;
        // A negative zero would count as the weakest factor.
        Ok(Self(factor + 0.0))
    }
}

impl From<Factor> for f64 {
    fn from(factor: Factor) -> Self {
        factor.0
    }
}

impl SpeedModifier {
    /// Creates a modifier of the clock on this entity.
    ///
    /// # Panics
    ///
    /// Panics if `factor` is negative, infinite or not a number. Use [`try_new`](Self::try_new) for
    /// a factor that comes from data.
    #[must_use]
    #[track_caller]
    pub fn new(clock: Entity, factor: f64) -> Self {
        or_panic(Self::try_new(clock, factor))
    }

    /// Creates a modifier of the clock on this entity, or returns an error if the factor is
    /// invalid.
    ///
    /// # Errors
    ///
    /// Returns [`ClockError::InvalidSpeed`] if `factor` is negative, infinite or not a number.
    pub fn try_new(clock: Entity, factor: f64) -> Result<Self, ClockError> {
        let factor = Factor::try_from(factor)?;
        Ok(Self {
            clock,
            factor,
            group: None,
        })
    }

    /// Puts the modifier into a group, of which only the strongest counts.
    ///
    /// The strongest is the one that changes the speed most: 0.25 is stronger than 0.5, 3.0 is stronger than 2.0,
    /// and 0.25 is stronger than 3.0. When it ends, the next one counts. Modifiers of different groups multiply.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_app::prelude::*;
    /// # use bevy_due::{Clocks, clock::SpeedModifier, prelude::*};
    /// # use bevy_ecs::{prelude::*, system::RunSystemOnce};
    /// # use bevy_time::TimePlugin;
    /// # let mut app = App::new();
    /// # app.add_plugins((TimePlugin, DuePlugin::default()));
    /// # let world = app.world_mut();
    /// let enemy = world.spawn_empty().id();
    /// world.spawn(SpeedModifier::new(enemy, 0.75).in_group("slow"));
    /// let frost = world.spawn(SpeedModifier::new(enemy, 0.5).in_group("slow")).id();
    /// # app.update();
    /// # let world = app.world_mut();
    /// # let speed = move |clocks: Clocks| clocks.speed(enemy);
    /// # assert_eq!(world.run_system_once(speed).unwrap(), Ok(0.5));
    /// world.despawn(frost);
    /// # app.update();
    /// # let world = app.world_mut();
    /// # assert_eq!(world.run_system_once(speed).unwrap(), Ok(0.75));
    /// ```
    #[doc(alias = "strongest")]
    #[must_use]
    pub fn in_group(mut self, group: impl Into<Cow<'static, str>>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Returns the entity of the clock.
    #[must_use]
    pub fn clock(&self) -> Entity {
        self.clock
    }

    /// Returns the factor.
    #[must_use]
    pub fn factor(&self) -> f64 {
        self.factor.0
    }

    /// Returns the [group](Self::in_group), if any.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// Returns how much the modifier changes the speed, in either direction.
    fn strength(&self) -> f64 {
        self.factor.0.max(1.0 / self.factor.0)
    }
}

/// The entities with a [`SpeedModifier`] of this clock, as a slice.
#[derive(Component, Clone, Default, Debug, PartialEq, Eq)]
#[relationship_target(relationship = SpeedModifier, linked_spawn)]
#[component(storage = "SparseSet", on_insert = on_insert_modifiers)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due::clock",
    reflect(Component, Debug, PartialEq)
)]
pub struct SpeedModifiers(SmallVec<[Entity; 4]>);

impl Deref for SpeedModifiers {
    type Target = [Entity];

    fn deref(&self) -> &[Entity] {
        &self.0
    }
}

impl<'a> IntoIterator for &'a SpeedModifiers {
    type Item = &'a Entity;
    type IntoIter = slice::Iter<'a, Entity>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// Not a hook: it would run before that of the relationship.
pub(crate) fn on_modify_speed(inserted: On<Insert<SpeedModifier>>, mut world: DeferredWorld) {
    update_later(&mut world, inserted.entity);
}

fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    update_later(&mut world, entity);
}

/// Updates the factor of a clock once it knows which modifiers it has.
fn update_later(world: &mut DeferredWorld, modifier: Entity) {
    if let Some(&SpeedModifier { clock, .. }) = world.get(modifier) {
        update_clock_later(world, clock);
    }
}

/// Notes the modifiers of a scene, which may arrive after the components to which they refer.
fn on_insert_modifiers(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    remove_if_empty::<SpeedModifiers>(&mut world, entity);
    update_clock_later(&mut world, entity);
}

/// Updates the factor of a clock after the commands that are queued.
pub(crate) fn update_clock_later(world: &mut DeferredWorld, clock: Entity) {
    world.commands().queue(move |world: &mut World| {
        let factor = factor(world, clock);
        if let Some(mut table) = world.get_resource_mut::<ClockTable>() {
            match table.key_of(clock) {
                Some(key) => table.change(key, |row| row.brakes.factor = factor),
                None => table.pending.modified.push_back(clock),
            }
        }
    });
}

/// Returns the product of the modifiers of a clock, of each group the strongest. It is finite.
pub(super) fn factor(world: &World, clock: Entity) -> f64 {
    let modifiers = world.get::<SpeedModifiers>(clock).into_iter().flatten();
    let modifiers = modifiers.filter_map(|&entity| world.get::<SpeedModifier>(entity));
    let modifiers: SmallVec<[&SpeedModifier; 8]> = modifiers.collect();
    let counts = |&(nth, modifier): &(usize, &&SpeedModifier)| {
        let strength = modifier.strength();
        let is_stronger = |(other_nth, other): (usize, &&SpeedModifier)| {
            let by = other.strength();
            other.group == modifier.group && (by > strength || by == strength && other_nth < nth)
        };
        modifier.group.is_none() || !modifiers.iter().enumerate().any(is_stronger)
    };
    let factors = modifiers.iter().enumerate().filter(counts);
    let factors = factors.map(|(_, modifier)| modifier.factor());
    // Infinity times a factor or a speed of zero would be no number.
    factors.fold(1.0, |product, factor| (product * factor).min(f64::MAX))
}

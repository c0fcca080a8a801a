//! Many timers on one owner, which die with it.

use core::{ops::Deref, slice};

use bevy_ecs::{
    component::Component,
    entity::Entity,
    lifecycle::HookContext,
    world::{DeferredWorld, World},
};
#[cfg(all(feature = "bevy_reflect", feature = "serialize"))]
use bevy_reflect::{ReflectDeserialize, ReflectSerialize};
use smallvec::SmallVec;
#[cfg(feature = "bevy_reflect")]
use {
    bevy_ecs::reflect::ReflectComponent,
    bevy_reflect::{Reflect, std_traits::ReflectDefault},
};

use super::{
    CancelReason,
    hooks::{cancel_for, change_armed},
    own_clocks::retire_later,
    pause,
};

/// Makes the timer on this entity belong to another entity, its owner.
///
/// One entity carries one [`Timer`](crate::Timer). For many timers on one owner, give each an entity of its
/// own with `TimerOf`: the timers are cancelled and despawned with the owner.
///
/// After its last firing a timer's entity loses its [`Timer`](crate::Timer) at once, and is despawned at the
/// start of the next run of [`DueSystems::Fire`](crate::DueSystems::Fire), so that the systems of
/// this frame that read the [`TimerFired`](crate::TimerFired) message still find its components.
/// (A system that does not run in every frame, as in the fixed schedule, may come too late for
/// them: observe the firing there.) An entity that has a `Timer` again by then stays. To cancel an
/// owned timer, despawn its entity.
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
/// use bevy_time::TimePlugin;
///
/// #[derive(Component)]
/// struct Enrage;
/// #[derive(Component)]
/// struct Summon;
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin));
/// let boss = app
///     .world_mut()
///     .spawn(related!(Timers[
///         (Enrage, Timer::after_secs(60.0)),
///         (Summon, Timer::every_secs(8.0)),
///     ]))
///     .id();
/// let timers = app.world().get::<Timers>(boss).unwrap().to_vec();
/// assert_eq!(timers.len(), 2);
///
/// app.world_mut().despawn(boss);
/// assert!(app.world().get_entity(timers[0]).is_err(), "they die with the boss");
/// ```
///
/// What a firing is about, the components of the timer's entity say; whom it is about, its owner:
///
/// ```
/// # use bevy_due::prelude::*;
/// # use bevy_ecs::prelude::*;
/// # #[derive(Component)]
/// # struct Enrage;
/// # #[derive(Component)]
/// # struct Damage(u32);
/// fn enrage(
///     mut fired: MessageReader<TimerFired>,
///     enrages: Query<(), With<Enrage>>,
///     mut damages: Query<&mut Damage>,
/// ) {
///     for fired in fired.read().filter(|fired| enrages.contains(fired.entity)) {
///         if let Ok(mut damage) = damages.get_mut(fired.owner) {
///             damage.0 *= 2;
///         }
///     }
/// }
/// # bevy_ecs::system::assert_is_system(enrage);
/// ```
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[relationship(relationship_target = Timers)]
#[component(on_insert = on_insert, on_discard = on_discard)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Component, Clone, Debug, PartialEq)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    all(feature = "bevy_reflect", feature = "serialize"),
    reflect(Serialize, Deserialize)
)]
pub struct TimerOf(pub Entity);

/// The entities whose timers belong to this entity, as a slice: the other side of [`TimerOf`].
#[derive(Component, Clone, Default, Debug, PartialEq, Eq)]
#[relationship_target(relationship = TimerOf, linked_spawn)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Component, Debug, Default, PartialEq)
)]
pub struct Timers(SmallVec<[Entity; 4]>);

impl Deref for Timers {
    type Target = [Entity];

    fn deref(&self) -> &[Entity] {
        &self.0
    }
}

impl<'a> IntoIterator for &'a Timers {
    type Item = &'a Entity;
    type IntoIter = slice::Iter<'a, Entity>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

fn on_insert(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let Some(&TimerOf(owner)) = world.get::<TimerOf>(entity) else {
        return;
    };
    if !world.entities().contains_spawned(owner) {
        // It dies with its owner, even if that died first; but not before those who have just
        // spawned it are through with it.
        let mut commands = world.commands();
        commands.queue(move |world: &mut World| {
            cancel_for(&mut world.into(), entity, CancelReason::OwnerGone);
            retire_later(world, entity);
        });
    }
    // Firing needs no look-up of the owner.
    change_armed(&mut world, entity, |timer| timer.owner = owner);
    pause::update(&mut world, entity);
}

fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    change_armed(&mut world, entity, |timer| timer.owner = entity);
    let mut commands = world.commands();
    commands.queue(move |world: &mut World| pause::update(&mut world.into(), entity));
}

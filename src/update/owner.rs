//! Many functions of one owner, which die with it.

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

/// Makes the [`UpdateComponent`](crate::UpdateComponent) on this entity a function of another
/// entity, its owner.
///
/// One entity carries one. For many functions of one owner, give each an entity of its own: each
/// has its own priority and clock, is paused and removed by itself, and all of them are despawned
/// with the owner.
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::prelude::*;
/// use bevy_ecs::prelude::*;
/// use bevy_time::TimePlugin;
///
/// #[derive(Component)]
/// struct Log(Vec<&'static str>);
///
/// fn say(what: &'static str) -> UpdateComponent {
///     UpdateComponent::new(move |mut me: UpdateContext| {
///         if let Some(mut log) = me.entity.get_mut::<Log>() {
///             log.0.push(what);
///         }
///     })
/// }
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin));
/// let robot = app
///     .world_mut()
///     .spawn((
///         Log(vec![]),
///         related!(Updates[say("move").with_priority(2), say("think").with_priority(1)]),
///     ))
///     .id();
/// app.update();
/// assert_eq!(app.world().get::<Log>(robot).unwrap().0, ["think", "move"]);
/// ```
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[relationship(relationship_target = Updates)]
#[component(on_insert = on_insert)]
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
pub struct UpdateOf(pub Entity);

/// The entities whose functions belong to this entity, as a slice: the other side of [`UpdateOf`].
#[derive(Component, Clone, Default, Debug, PartialEq, Eq)]
#[relationship_target(relationship = UpdateOf, linked_spawn)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Component, Debug, Default, PartialEq)
)]
pub struct Updates(SmallVec<[Entity; 4]>);

impl Deref for Updates {
    type Target = [Entity];

    fn deref(&self) -> &[Entity] {
        &self.0
    }
}

impl<'a> IntoIterator for &'a Updates {
    type Item = &'a Entity;
    type IntoIter = slice::Iter<'a, Entity>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// It dies with its owner, even if that died first.
fn on_insert(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let owner = world.get::<UpdateOf>(entity).map(|of| of.0);
    if owner.is_some_and(|owner| !world.entities().contains_spawned(owner)) {
        let mut commands = world.commands();
        commands.queue(move |world: &mut World| {
            world.try_despawn(entity).ok();
        });
    }
}

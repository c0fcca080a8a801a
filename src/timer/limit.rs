//! The limit of a component's time, as data.

use alloc::borrow::Cow;
use core::fmt;

#[cfg(feature = "bevy_reflect")]
use bevy_ecs::reflect::{AppTypeRegistry, ReflectComponent};
use bevy_ecs::{
    component::ComponentId,
    lifecycle::{HookContext, RemoveEvent},
    prelude::*,
    world::DeferredWorld,
};
use bevy_platform::collections::HashMap;
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::Reflect;
#[cfg(all(feature = "bevy_reflect", feature = "serialize"))]
use bevy_reflect::{ReflectDeserialize, ReflectSerialize};

use super::{KeyTable, key_id::KeyId};
use crate::{call::call_with_world, owner::OwnedBy};

/// Removes a component from the timer's owner when the timer ends, for whatever reason.
///
/// The limit names the type of the component with [`core::any::type_name`], and so does the key of
/// the timer. Any component can have a limit, but only a type that implements `Reflect` has a type
/// path. The derive of `Reflect` makes the two equal, except for a type with a `type_path` attribute,
/// such as those of this crate, and for a type in a function. A world that loads a limit therefore looks its name up among the
/// type paths.
#[derive(Component, Clone, Copy, PartialEq, Eq)]
#[component(immutable, on_insert = on_insert, on_remove = on_remove)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(opaque),
    reflect(Component, Clone, Debug, PartialEq)
)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "Option<Cow<'static, str>>", from = "Option<Cow<'static, str>>")
)]
#[cfg_attr(
    all(feature = "bevy_reflect", feature = "serialize"),
    reflect(Serialize, Deserialize)
)]
pub(crate) struct Limit(Option<KeyId>);

impl Limit {
    /// The limit of a component that has been removed.
    const OVER: Self = Self(None);

    /// Creates the limit of a component with this type name.
    pub(crate) fn named(name: impl Into<Cow<'static, str>>) -> Self {
        Self(Some(KeyId::of(name.into())))
    }

    /// Returns the type name of the component, or `None` if the component has been removed.
    pub(crate) fn name(&self) -> Option<&'static str> {
        self.0.map(KeyId::name)
    }
}

#[cfg(feature = "serialize")]
impl From<Limit> for Option<Cow<'static, str>> {
    fn from(limit: Limit) -> Self {
        limit.name().map(Cow::Borrowed)
    }
}

#[cfg(feature = "serialize")]
impl From<Option<Cow<'static, str>>> for Limit {
    fn from(name: Option<Cow<'static, str>>) -> Self {
        name.map_or(Self::OVER, Self::named)
    }
}

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Limit").field(&self.name()).finish()
    }
}

fn on_insert(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    check_limit(&mut world, entity);
}

/// Finds the component of a limit that is new in this world, such as a loaded one. Without the
/// plugin, the world may only hold a scene.
pub(crate) fn check_limit(world: &mut DeferredWorld, entity: Entity) {
    let Some(&Limit(Some(name))) = world.get(entity) else {
        return;
    };
    if is_watched(world, name) || !world.contains_resource::<KeyTable>() {
        return;
    }
    world.commands().queue(move |world: &mut World| {
        call_with_world::<Limit>(world, "a limited component", entity, |world| {
            let component = find(world, name).ok_or(UnknownComponent(name))?;
            Ok(watch(world, name, component)?)
        });
    });
}

fn on_remove(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    if let (Some(&Limit(Some(name))), Some(&OwnedBy(owner))) =
        (world.get(entity), world.get(entity))
    {
        let mut commands = world.commands();
        commands.queue(move |world: &mut World| end(world, owner, name));
    }
}

/// Removes the component, unless another timer has taken over.
fn end(world: &mut World, owner: Entity, name: KeyId) {
    if limit_of(world, owner, name).is_none()
        && let Some(component) = find(world, name)
        && let Ok(mut owner) = world.get_entity_mut(owner)
    {
        owner.remove_by_id(component);
    }
}

/// Returns the timer that ends the component with this name, if any.
fn limit_of(world: &World, owner: Entity, name: KeyId) -> Option<Entity> {
    let table = world.get_resource::<KeyTable>()?;
    table.get(owner, name)
}

/// The components that have had a limit in this world, by name.
#[derive(Resource, Default)]
struct LimitedComponents(HashMap<KeyId, LimitedComponent>);

#[derive(Clone, Copy)]
struct LimitedComponent {
    id: ComponentId,
    /// Ends the timer of the component when the component is removed.
    observer: Entity,
}

fn limited(world: &World, name: KeyId) -> Option<LimitedComponent> {
    let limited = world.get_resource::<LimitedComponents>()?;
    limited.0.get(&name).copied()
}

fn is_watched(world: &World, name: KeyId) -> bool {
    let limited = limited(world, name);
    limited.is_some_and(|limited| world.entities().contains_spawned(limited.observer))
}

/// Finds a component that has had a limit in this world, or that is registered for reflection.
fn find(world: &mut World, name: KeyId) -> Option<ComponentId> {
    match limited(world, name) {
        Some(limited) => Some(limited.id),
        #[cfg(feature = "bevy_reflect")]
        None => {
            let registry = world.get_resource::<AppTypeRegistry>()?.clone();
            let registry = registry.read();
            let registered = registry.get_with_type_path(&type_path(name.name()))?;
            let component = registered.data::<ReflectComponent>()?;
            Some(component.register_component(world))
        }
        #[cfg(not(feature = "bevy_reflect"))]
        None => None,
    }
}

/// Returns the type path that belongs to a type name. The types of this crate are at its root.
#[cfg(feature = "bevy_reflect")]
fn type_path(name: &'static str) -> Cow<'static, str> {
    let own = name.strip_prefix("bevy_due::");
    match own.and_then(|path| path.rsplit("::").next()) {
        Some(own) => Cow::Owned(alloc::format!("bevy_due::{own}")),
        None => Cow::Borrowed(name),
    }
}

/// Notes the component with this name, and adds the observer of its removal, unless the world has
/// it.
///
/// # Errors
///
/// Returns an error if another component has the name.
pub(super) fn watch(world: &mut World, name: KeyId, id: ComponentId) -> Result<(), SameName> {
    let other = limited(world, name).filter(|limited| limited.id != id);
    if other.is_some() {
        return Err(SameName(name));
    }
    if is_watched(world, name) {
        return Ok(());
    }
    let observer = Observer::new(move |removed: On<RemoveEvent>, world: DeferredWorld| {
        on_remove_component(world, removed.entity, name);
    });
    let observer = world.spawn(observer.with_component(id)).id();
    let mut limited = world.get_resource_or_init::<LimitedComponents>();
    limited.0.insert(name, LimitedComponent { id, observer });
    Ok(())
}

fn on_remove_component(mut world: DeferredWorld, owner: Entity, name: KeyId) {
    if let Some(timer) = limit_of(&world, owner, name) {
        let mut commands = world.commands();
        // Another observer may have brought the component back: it stays.
        commands.entity(timer).try_insert(Limit::OVER).try_despawn();
    }
}

/// The error for a limit whose component this world does not know.
#[derive(Debug)]
struct UnknownComponent(KeyId);

impl fmt::Display for UnknownComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.name();
        write!(
            f,
            "{name} stays when its time is over, because no component is registered under this \
             type path: derive `Reflect` for it with `#[reflect(Component)]`, and call \
             `register_type` before loading"
        )
    }
}

impl core::error::Error for UnknownComponent {}

/// The error for two types with the same name.
#[derive(Debug)]
pub(super) struct SameName(KeyId);

impl fmt::Display for SameName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "two components with limited times are named {}: rename one, or move it to another \
             module",
            self.0.name()
        )
    }
}

impl core::error::Error for SameName {}

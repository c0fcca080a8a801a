//! The keys of entities that other worlds can send to.

use alloc::{borrow::Cow, format};

use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::Reflect;

use crate::{
    message::{Delivery, Mailbag, Recipient},
    report::report,
};

/// The key by which other worlds know this entity.
///
/// Unlike an `Entity`, a key keeps its meaning in other worlds and in the next run of the program.
/// You choose the keys. Each must be unique within a group. If two entities have the same key, the
/// most recent binding wins, and the error handler of that world gets a warning. If the entities are
/// in different worlds of this process and the later one goes, the earlier one gets the key back.
///
/// All processes that are [linked](crate::worlds::link) learn each key, unless its world
/// [announces only one](crate::worlds::WorldLink::announce_only).
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[component(immutable, on_insert = on_insert, on_discard = on_discard)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due::worlds",
    reflect(Component, Clone, Debug, PartialEq, Hash)
)]
#[derive(serde::Serialize, serde::Deserialize)]
pub struct StableKey(pub u64);

/// The address of an entity that other worlds can send to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Address {
    /// The name of the group of worlds.
    pub group: Cow<'static, str>,
    /// The key of the entity.
    pub key: StableKey,
}

impl From<StableKey> for Delivery<StableKey> {
    fn from(key: StableKey) -> Self {
        Self::To(key)
    }
}

impl From<Delivery<StableKey>> for Recipient {
    fn from(delivery: Delivery<StableKey>) -> Self {
        match delivery {
            Delivery::To(StableKey(key)) => Self::Key(key),
            Delivery::All => Self::All,
            Delivery::InTurn => Self::InTurn,
        }
    }
}

fn on_insert(world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    bind(world, entity);
}

/// Binds the key of an entity. Does nothing without the plugin.
pub(crate) fn bind(mut world: DeferredWorld, entity: Entity) {
    let Some(&key) = world.get::<StableKey>(entity) else {
        return;
    };
    let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() else {
        return;
    };
    let directory = &mut mailbag.directory;
    directory.note(entity);
    // Only a warning, because the other entity may be about to despawn.
    if let Some(other) = directory.bind(key.0, entity) {
        let warning = format!(
            "entity {entity} took the stable key {} from {other}: other worlds no longer reach {other}",
            key.0
        );
        let error = BevyError::warning(warning);
        let mut commands = world.commands();
        commands.queue(move |_: &mut World| Err::<(), _>(error));
    }
}

fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    if let Some(&StableKey(key)) = world.get(entity)
        && let Some(mut mailbag) = world.get_resource_mut::<Mailbag>()
    {
        mailbag.directory.note(entity);
        mailbag.directory.unbind(key, entity);
    }
}

/// Warns a world that another world of its group has an entity with the same key.
pub(super) fn warn_of_shared_key(world: &World, Address { group, key }: &Address) {
    let warning = format!(
        "another world of the group {group:?} also has an entity with the stable key {}: parcels for \
         the key now go to this world",
        key.0
    );
    report::<StableKey>(world, BevyError::warning(warning));
}

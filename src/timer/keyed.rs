//! The timers of an owner by key: setting, finding and replacing them.

use alloc::format;

use bevy_ecs::{
    bundle::InsertMode, change_detection::MaybeLocation, prelude::*, system::entity_command,
    world::DeferredWorld,
};
use bevy_platform::collections::{HashMap, hash_map::Entry};

use super::{
    CancelReason, IntoKey, Keyed, Timer,
    change::{cancel_and_despawn, change_timer},
    key::KeyId,
    queues::{TimerQueues, change_armed},
};
use crate::{owner::OwnedBy, report::report};

/// A [`Timer`], or a tuple of a `Timer` and other bundles.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a timer",
    label = "expected a `Timer`, or a tuple that starts with a `Timer`"
)]
pub trait TimerBundle: Bundle {}

impl TimerBundle for Timer {}

macro_rules! impl_timer_bundle {
    ($($bundle:ident)*) => {
        impl<$($bundle: Bundle),*> TimerBundle for (Timer, $($bundle,)*) {}
    };
}

impl_timer_bundle!(A);
impl_timer_bundle!(A B);
impl_timer_bundle!(A B C);
impl_timer_bundle!(A B C D);
impl_timer_bundle!(A B C D E);
impl_timer_bundle!(A B C D E F);

/// Returns the id of a key, and the components of a timer that belongs to `owner` under this key.
pub(crate) fn keyed(
    owner: Entity,
    key: impl IntoKey,
    timer: impl TimerBundle,
) -> (KeyId, impl Bundle) {
    let keyed = Keyed::new(key.name());
    let id = keyed.id();
    (id, (key.into_component(), OwnedBy(owner), keyed, timer))
}

/// Returns the id of a key, and the command that makes an entity a timer of `owner` under this key. Bevy notes the
/// caller as the place that inserts the timer.
#[track_caller]
pub(crate) fn insert_keyed(
    owner: Entity,
    key: impl IntoKey,
    timer: impl TimerBundle,
) -> (KeyId, impl EntityCommand) {
    let (key, timer) = keyed(owner, key, timer);
    (key, entity_command::insert(timer, InsertMode::Replace))
}

/// Spawns a timer that belongs to an entity, under a key. The earlier timer with this key, if any, is
/// cancelled.
#[track_caller]
pub(crate) fn set_keyed(owner: &mut EntityWorldMut, key: impl IntoKey, timer: impl TimerBundle) {
    if size_of::<MaybeLocation>() > 0 {
        // The closure would hide the caller.
        let (_, insert) = insert_keyed(owner.id(), key, timer);
        return owner.world_scope(|world| spawn(world, insert));
    }
    let (_, timer) = keyed(owner.id(), key, timer);
    owner.world_scope(|world| {
        world.spawn(timer);
        world.flush();
    });
}

fn spawn(world: &mut World, insert: impl EntityCommand) {
    insert.apply(world.spawn_empty());
    world.flush();
}

/// Refreshes the timer of `owner` with this key, or sets it if it is not armed.
pub(crate) fn refresh_keyed(
    world: &mut World,
    owner: Entity,
    key: KeyId,
    insert: impl EntityCommand,
) {
    let earlier = holder(world, owner, key);
    if !earlier.is_some_and(|earlier| refresh(world, earlier)) {
        spawn(world, insert);
    }
}

/// Renews a timer, and returns `true` if it is armed.
fn refresh(world: &mut World, entity: Entity) -> bool {
    let Some(timer) = world.get::<Timer>(entity) else {
        return false;
    };
    let times = timer.max_firings();
    match change_armed(&mut world.into(), entity, |armed| armed.refresh(times)) {
        Some(false) => change_timer(world, entity, |timer| timer.restart()).is_ok(),
        refreshed => refreshed.is_some(),
    }
}

/// Returns the entity of the timer of `owner` with this key, if any.
///
/// Reports a key in the text of the code that no timer has had, once.
pub(super) fn find_keyed(world: &World, owner: Entity, key: &impl IntoKey) -> Option<Entity> {
    let name = key.name();
    let queues = world.get_resource::<TimerQueues>()?;
    match KeyId::find(&name) {
        Some(key) => queues.keys.get(owner, key),
        None => {
            if key.is_text() {
                let error = format!(
                    "no timer has had the key {name:?}: check its spelling, or use a type that \
                     implements `TimerKey`"
                );
                report::<Timer>(world, BevyError::warning(error));
                // From now on, the name counts as used.
                _ = Keyed::new(name);
            }
            None
        }
    }
}

/// Returns the entity that has this key of an owner, if any.
pub(super) fn holder(world: &World, owner: Entity, key: KeyId) -> Option<Entity> {
    world.get_resource::<TimerQueues>()?.keys.get(owner, key)
}

/// The entity that was last inserted with each key of each owner.
#[derive(Debug, Default)]
pub(crate) struct KeyTable(HashMap<(Entity, KeyId), Entity>);

impl KeyTable {
    /// Returns the entity with a key of an owner, if any.
    pub(super) fn get(&self, owner: Entity, key: KeyId) -> Option<Entity> {
        self.0.get(&(owner, key)).copied()
    }

    /// Gives a key of an owner to an entity, and returns the entity that had it before.
    pub(super) fn insert(&mut self, owner: Entity, key: KeyId, entity: Entity) -> Option<Entity> {
        // If a bundle has an owner and a key, both hooks insert the same entry.
        let earlier = self.0.insert((owner, key), entity);
        earlier.filter(|&earlier| earlier != entity)
    }

    /// Frees a key of an owner, unless another entity has it by now.
    pub(super) fn remove(&mut self, owner: Entity, key: KeyId, entity: Entity) {
        if let Entry::Occupied(holder) = self.0.entry((owner, key))
            && *holder.get() == entity
        {
            holder.remove();
        }
    }

    /// Gives an entity the key that it has.
    pub(crate) fn join(&mut self, world: &World, entity: Entity) {
        if let Some((owner, key)) = key_of(world, entity) {
            self.insert(owner, key, entity);
        }
    }

    /// Frees the key of an entity, unless another entity has it by now.
    pub(crate) fn leave(&mut self, world: &World, entity: Entity) {
        if let Some((owner, key)) = key_of(world, entity) {
            self.remove(owner, key, entity);
        }
    }
}

/// Returns the owner and the key of an entity, if it has both.
pub(super) fn key_of(world: &World, entity: Entity) -> Option<(Entity, KeyId)> {
    let entity = world.get_entity(entity).ok()?;
    let key: &Keyed = entity.get()?;
    let &OwnedBy(owner) = entity.get()?;
    Some((owner, key.id()))
}

/// Gives a key to `entity`, and cancels the timer of its owner that had the key before.
pub(crate) fn take_key(world: &mut DeferredWorld, entity: Entity) {
    let Some((owner, key)) = key_of(world, entity) else {
        return;
    };
    let queues = world.get_resource_mut::<TimerQueues>();
    let Some(earlier) = queues.and_then(|mut it| it.keys.insert(owner, key, entity)) else {
        return;
    };
    // The command runs after the owner has learned of the new timer. Observers of the earlier timer
    // may then even despawn the owner.
    world.commands().queue(move |world: &mut World| {
        let holder = holder(world, owner, key);
        // Either of them may have lost the key, or taken it back, in the meantime.
        if holder != Some(earlier) && key_of(world, earlier) == Some((owner, key)) {
            cancel_and_despawn(world, earlier, CancelReason::Replaced);
        }
    });
}

/// Frees the key of an entity that loses it or its owner.
pub(crate) fn free_key(world: &mut DeferredWorld, entity: Entity) {
    if let Some((owner, key)) = key_of(world, entity)
        && let Some(mut queues) = world.get_resource_mut::<TimerQueues>()
    {
        queues.keys.remove(owner, key, entity);
    }
}

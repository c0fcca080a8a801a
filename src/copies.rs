//! Copies of entities, and the lists of relationships in which Bevy forgets them.

use bevy_ecs::{
    lifecycle::HookContext,
    prelude::*,
    relationship::{
        Relationship, RelationshipHookMode, RelationshipSourceCollection, RelationshipTarget,
    },
    world::DeferredWorld,
};

/// Adds a copy of an entity to the list of its target.
///
/// If Bevy clones an entity with all that is linked to it, it expects each list to be cloned, too, with the copies in
/// it. The target of another relationship may not be among the clones.
pub(crate) fn join_list<R: Relationship>(world: DeferredWorld, context: HookContext) {
    join_searched::<R>(world, context, |list, copy| {
        list.iter().any(|it| it == copy)
    });
}

/// Adds a copy of an entity to the list of its target, with a function that finds it there.
pub(crate) fn join_searched<R: Relationship>(
    mut world: DeferredWorld,
    context: HookContext,
    is_listed: fn(&R::RelationshipTarget, Entity) -> bool,
) {
    let RelationshipHookMode::RunIfNotLinked = context.relationship_hook_mode else {
        return;
    };
    let entity = context.entity;
    world.commands().queue(move |world: &mut World| {
        let Some(target) = world.get::<R>(entity).map(R::get) else {
            return;
        };
        let Ok(mut target) = world.get_entity_mut(target) else {
            world.entity_mut(entity).remove::<R>();
            return;
        };
        match target.get_mut::<R::RelationshipTarget>() {
            Some(list) if is_listed(&list, entity) => {}
            Some(mut list) => _ = list.collection_mut_risky().add(entity),
            None => {
                let mut list = R::RelationshipTarget::with_capacity(1);
                list.collection_mut_risky().add(entity);
                target.insert(list);
            }
        }
    });
}

/// Removes a list that is still empty when the commands are applied. Bevy gives an empty one to the clone of a target,
/// unless it clones the entities on the list, too.
pub(crate) fn remove_if_empty<T: RelationshipTarget>(world: &mut DeferredWorld, entity: Entity) {
    let is_empty = move |world: &World| world.get::<T>(entity).is_some_and(T::is_empty);
    if is_empty(world) {
        world.commands().queue(move |world: &mut World| {
            if is_empty(world) {
                world.entity_mut(entity).remove::<T>();
            }
        });
    }
}

//! Entities that are on their way from one world to another.

use bevy_ecs::prelude::*;

/// Marks an entity that is moving to another world, or that has arrived and is not
/// [committed](crate::moving::MoveWorldExt::commit_entity) yet.
///
/// [`export_entity`](crate::moving::MoveWorldExt::export_entity) and
/// [`import_entity`](crate::moving::MoveWorldExt::import_entity) insert it on the entity and on everything that
/// moves with it. Their timers do not fire, and their callbacks do not run. Clocks keep running: a timer
/// that becomes due during the move fires when the move ends here.
///
/// Your own systems still see the entity. Filter it out with `Without<InTransit>` where it must not act
/// in two worlds. A clone of the entity is not in transit.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(immutable, clone_behavior = Ignore)]
#[cfg_attr(
    not(feature = "serialize"),
    allow(unreachable_pub, dead_code, reason = "only a move inserts it")
)]
pub struct InTransit {
    #[entities]
    pub(crate) root: Entity,
}

#[cfg_attr(
    not(feature = "serialize"),
    allow(unreachable_pub, dead_code, reason = "only a move inserts it")
)]
impl InTransit {
    /// Returns the entity that moves, with all that it owns.
    #[must_use]
    pub fn root(&self) -> Entity {
        self.root
    }
}

/// Returns `true` if the timer and the callback on an entity wait for the end of a move.
pub(crate) fn is_in_transit(world: &World, entity: EntityRef, owner: Entity) -> bool {
    entity.contains::<InTransit>()
        || owner != entity.id() && world.get::<InTransit>(owner).is_some()
}

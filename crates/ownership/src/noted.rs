//! What happens between two ends of frames.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bevy_due::{message::Packet, worlds::StableKey};
use bevy_ecs::{entity::EntityHashSet, entity_disabling::Disabled, prelude::*};

use crate::committer::Effect;

/// What the world has done since the last frame was stored.
#[derive(Resource, Default)]
pub(crate) struct Noted {
    /// Entities whose stored state may have changed.
    pub(crate) touched: EntityHashSet,
    /// Entities that have got a key, in order.
    pub(crate) born: Vec<Entity>,
    /// Keys that entities have lost.
    pub(crate) died: Vec<(Entity, StableKey)>,
    pub(crate) letters: Vec<Letter>,
    /// Entities that are to move, and the zones to which they go.
    pub(crate) moves: Vec<(Entity, StableKey)>,
}

/// A letter that was sent in this frame.
pub(crate) struct Letter {
    pub(crate) sender: Entity,
    pub(crate) from: StableKey,
    pub(crate) to: StableKey,
    pub(crate) packet: Packet,
}

/// What others will see of the frame when it is durable.
#[derive(Resource, Clone, Default)]
pub(crate) struct Held(Arc<Mutex<Vec<Effect>>>);

impl Held {
    pub(crate) fn push(&self, effect: Effect) {
        self.effects().push(effect);
    }

    pub(crate) fn take(&self) -> Vec<Effect> {
        core::mem::take(&mut *self.effects())
    }

    fn effects(&self) -> MutexGuard<'_, Vec<Effect>> {
        // No code panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn note_birth(inserted: On<Insert<StableKey>>, mut noted: ResMut<Noted>) {
    noted.born.push(inserted.entity);
}

pub(crate) fn note_death(
    discarded: On<Discard<StableKey>>,
    keys: Query<&StableKey, Allow<Disabled>>,
    mut noted: ResMut<Noted>,
) {
    if let Ok(&key) = keys.get(discarded.entity) {
        noted.died.push((discarded.entity, key));
    }
}

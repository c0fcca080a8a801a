//! What happens between two ends of frames.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bevy_due::{message::Packet, worlds::StableKey};
use bevy_ecs::{entity::EntityHashSet, entity_disabling::Disabled, prelude::*};

use crate::committer::Effect;

/// The end of a frame, which stores what has changed.
#[derive(SystemSet, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StoreFrame;

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

/// What others will see of the frame when it is durable, with the size of each parcel.
#[derive(Resource, Clone, Default)]
pub(crate) struct Outgoing(Arc<Mutex<Vec<(Effect, usize)>>>);

impl Outgoing {
    pub(crate) fn push(&self, effect: Effect, bytes: usize) {
        self.lock().push((effect, bytes));
    }

    pub(crate) fn take(&self) -> Vec<Effect> {
        let held = core::mem::take(&mut *self.lock());
        held.into_iter().map(|(effect, _)| effect).collect()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lock().iter().map(|(_, bytes)| bytes).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Effect, usize)>> {
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

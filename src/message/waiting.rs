//! The messages from other threads that wait for the next frame.

#[cfg(feature = "worlds")]
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::mem;

use bevy_ecs::entity::Entity;
#[cfg(feature = "worlds")]
use bevy_platform::{collections::HashMap, sync::Arc};

use super::{
    batch::Batch,
    mailbag::{Arrived, Item},
    payload::Payload,
    send_error::SendError,
};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// What the world and its senders share.
pub(super) struct Shared(Mutex<Waiting>);

/// The messages that wait for the next frame, and their bounds.
pub(super) struct Waiting {
    pub(super) arrived: Arrived,
    pub(super) capacity: usize,
    pub(super) byte_capacity: usize,
    pub(super) is_closed: bool,
    /// Called when the inbox is empty again, by who was refused.
    #[cfg(feature = "worlds")]
    pub(super) when_room: HashMap<Refused, Callback>,
    /// Called when an item arrives in the empty inbox.
    #[cfg(feature = "worlds")]
    pub(super) wake: Option<Arc<dyn Fn() + Send + Sync>>,
}

/// The process and the world whose parcel found no room.
#[cfg(feature = "worlds")]
pub(super) type Refused = (u64, u64);

#[cfg(feature = "worlds")]
pub(super) type Callback = Box<dyn FnOnce() + Send>;

/// The number of messages in the first batch of a frame, and in the largest.
const BATCH: (usize, usize) = (4, 1 << 10);

impl Default for Shared {
    fn default() -> Self {
        Self(Mutex::new(Waiting {
            arrived: Arrived::with_capacity(8),
            capacity: 1 << 16,
            byte_capacity: usize::MAX,
            is_closed: false,
            #[cfg(feature = "worlds")]
            when_room: HashMap::default(),
            #[cfg(feature = "worlds")]
            wake: None,
        }))
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Waiting> {
        // No code that holds this lock can panic halfway through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the inbox with space for one more item. The space is allocated without the lock.
    #[inline]
    pub(super) fn lock_with_space(&self) -> MutexGuard<'_, Waiting> {
        loop {
            let waiting = self.lock();
            let items = &waiting.arrived.items;
            let capacity = items.capacity();
            if items.len() < capacity {
                return waiting;
            }
            drop(waiting);
            self.grow(2 * capacity.max(4));
        }
    }

    /// Makes space for this many items.
    #[cold]
    fn grow(&self, capacity: usize) {
        let mut larger = VecDeque::with_capacity(capacity);
        let mut waiting = self.lock();
        let items = &mut waiting.arrived.items;
        if items.capacity() < larger.capacity() {
            larger.append(items);
            mem::swap(items, &mut larger);
        }
    }
}

impl Waiting {
    /// Returns an error if there is no room for an item with this many bytes.
    pub(super) fn check(&self, bytes: usize) -> Result<(), SendError<()>> {
        let Arrived {
            len, bytes: sum, ..
        } = self.arrived;
        if self.is_closed {
            return Err(SendError::Closed(()));
        }
        // A packet that is larger than the capacity can arrive alone.
        let has_room = sum == 0 || sum.saturating_add(bytes) <= self.byte_capacity;
        match len < self.capacity && has_room {
            true => Ok(()),
            false => Err(SendError::Full(())),
        }
    }

    /// Adds a message to the last batch if it has messages of this type and room.
    pub(super) fn push_into_batch<P: Payload>(&mut self, to: Entity, payload: P) -> Result<(), P> {
        let batch = self.last_batch::<P>();
        let Some(batch) = batch.filter(|batch| batch.has_room()) else {
            return Err(payload);
        };
        batch.push(to, payload);
        Ok(())
    }

    /// Returns the number of messages of a new batch. A batch after a full one is larger.
    pub(super) fn next_batch<P: Payload>(&mut self) -> usize {
        let (first, largest) = BATCH;
        let last = self.last_batch::<P>();
        last.map_or(first, |last| largest.min(2 * last.capacity()))
    }

    fn last_batch<P: Payload>(&mut self) -> Option<&mut Batch<P>> {
        self.arrived.items.back_mut().and_then(Item::as_batch)
    }

    /// Counts an item that was added, and wakes the world if it is the first.
    #[inline]
    pub(super) fn note_arrival(mut waiting: MutexGuard<Self>, bytes: usize) {
        let Arrived {
            len, bytes: sum, ..
        } = &mut waiting.arrived;
        *len += 1;
        *sum = sum.saturating_add(bytes);
        #[cfg(feature = "worlds")]
        if waiting.arrived.len == 1
            && let Some(wake) = waiting.wake.clone()
        {
            drop(waiting);
            wake();
        }
    }
}

//! The inbox: messages from other threads.

use core::mem;

use bevy_ecs::prelude::*;
use bevy_platform::sync::Arc;

use super::{
    mailbag::{Arrived, Mailbag},
    waiting::Shared,
};
use crate::double_buffer::RecentPeak;

/// Holds the messages from other threads until the next frame.
#[derive(Resource)]
pub(crate) struct Inbox {
    shared: Arc<Shared>,
    /// The items taken last. They are empty before the next swap, which reuses their memory.
    taken: Arrived,
    peak: RecentPeak,
}

impl Default for Inbox {
    fn default() -> Self {
        Self {
            shared: Arc::default(),
            taken: Arrived::with_capacity(8),
            peak: RecentPeak::default(),
        }
    }
}

impl Inbox {
    /// Sets the number of items, and of bytes in packets, that can arrive between two frames.
    pub(crate) fn set_capacity(&self, items: usize, bytes: usize) {
        let mut waiting = self.shared.lock();
        (waiting.capacity, waiting.byte_capacity) = (items, bytes);
    }

    /// Returns `true` if an item has arrived in a world since the last frame.
    #[cfg(feature = "worlds")]
    pub(crate) fn has_arrivals(world: &World) -> bool {
        let inbox = world.get_resource::<Self>();
        inbox.is_some_and(|inbox| !inbox.shared.lock().arrived.items.is_empty())
    }

    /// Takes the items that have arrived, if there are any. Gives back memory that was not needed
    /// recently.
    fn take(&mut self) -> Option<Arrived> {
        let Self {
            shared,
            taken,
            peak,
        } = self;
        if taken.items.is_empty() {
            peak.trim(&mut taken.items);
            let mut waiting = shared.lock();
            mem::swap(&mut waiting.arrived, taken);
            #[cfg(feature = "worlds")]
            let when_room = mem::take(&mut waiting.when_room);
            drop(waiting);
            peak.note(taken.items.len());
            #[cfg(feature = "worlds")]
            for has_room in when_room.into_values() {
                has_room();
            }
        }
        (!taken.items.is_empty()).then(|| mem::take(taken))
    }

    /// Returns the state that senders share with the inbox.
    pub(super) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// Refuses all messages from now on.
    pub(super) fn close(&self) {
        self.shared.lock().is_closed = true;
    }

    /// Calls `wake` whenever an item arrives in the empty inbox.
    #[cfg(feature = "worlds")]
    pub(crate) fn wake_with(&self, wake: impl Fn() + Send + Sync + 'static) {
        self.shared.lock().wake = Some(Arc::new(wake));
    }

    /// Moves all items that have arrived in a world into its mailbag.
    pub(super) fn move_to_mailbag(world: &mut World) {
        let inbox = world.get_resource_mut::<Self>();
        let Some(mut arrived) = inbox.and_then(|mut inbox| inbox.take()) else {
            return;
        };
        if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
            mailbag.append_arrived(&mut arrived);
        }
        // The next swap reuses the memory.
        if let Some(mut inbox) = world.get_resource_mut::<Self>() {
            inbox.taken = arrived;
        }
    }
}

/// Closes the senders, and drops the items, which may hold senders to this inbox themselves.
impl Drop for Inbox {
    fn drop(&mut self) {
        let mut waiting = self.shared.lock();
        waiting.is_closed = true;
        let arrived = mem::take(&mut waiting.arrived);
        #[cfg(feature = "worlds")]
        let when_room = mem::take(&mut waiting.when_room);
        drop(waiting);
        drop(arrived);
        // Another world of the group may have room.
        #[cfg(feature = "worlds")]
        for has_room in when_room.into_values() {
            has_room();
        }
    }
}

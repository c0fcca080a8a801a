//! The inbox: messages from other threads.

use alloc::{boxed::Box, collections::VecDeque};
use core::{any::Any, fmt, mem, mem::MaybeUninit};

use bevy_ecs::prelude::*;
use bevy_platform::{cell::SyncCell, sync::Arc};

use super::{
    batch::Batch,
    letter::{Delivery, Letter},
    mailbag::{Arrived, Item, Mailbag},
    packet::Packet,
    send_error::SendError,
    topic::Payload,
};
use crate::{
    double_buffer::RecentPeak,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Holds the messages from other threads until the next frame.
#[derive(Resource)]
pub(crate) struct Inbox {
    shared: Arc<Shared>,
    /// The items taken last. They are empty before the next swap, which reuses their memory.
    taken: Arrived,
    peak: RecentPeak,
}

/// A handle that sends messages to a world from any thread.
///
/// Clones send to the same world. The messages of one sender arrive in the order of sending. Each
/// send holds a lock for one push only, and the game holds it once per frame, to swap two buffers.
/// Memory is allocated before the lock is taken. Consecutive messages of one type, each to one entity,
/// share an allocation.
///
/// Get a sender from [`DueWorldExt::message_sender`](crate::DueWorldExt::message_sender), or in a
/// system from `Local<MessageSender>`.
///
/// # Examples
///
/// ```
/// use std::thread;
/// use bevy_app::prelude::*;
/// use bevy_due::{Delivery, MessageSender, prelude::*};
/// use bevy_ecs::prelude::*;
/// use bevy_time::TimePlugin;
///
/// #[derive(Message)]
/// struct Line(String);
///
/// #[derive(Resource, Default)]
/// struct Log(Vec<String>);
///
/// fn read_lines(sender: Local<MessageSender>) {
///     let sender = sender.clone();
///     thread::spawn(move || {
///         for line in ["one", "two"] {
///             sender.send(Delivery::All, Line(line.into())).expect("room for two lines");
///         }
///         // A command for the world.
///         sender.run(|world| world.resource_mut::<Log>().0.push("end".into())).ok();
///     })
///     .join()
///     .unwrap();
/// }
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default()))
///     .init_resource::<Log>()
///     .add_systems(Startup, read_lines);
/// app.world_mut().spawn(MessageComponent::new().on(|mut me, line: &Line| {
///     let line = line.0.clone();
///     me.commands.queue(move |world: &mut World| world.resource_mut::<Log>().0.push(line));
/// }));
/// app.update();
/// assert_eq!(app.world().resource::<Log>().0, ["one", "two", "end"]);
/// ```
#[derive(Clone)]
pub struct MessageSender(Arc<Shared>);

struct Shared(Mutex<Waiting>);

struct Waiting {
    arrived: Arrived,
    capacity: usize,
    byte_capacity: usize,
    is_closed: bool,
    /// Called when an item arrives in the empty inbox.
    #[cfg(feature = "worlds")]
    wake: Option<Arc<dyn Fn() + Send + Sync>>,
}

/// The number of messages in the first batch of a frame, and in the largest.
const BATCH: (usize, usize) = (4, 1 << 10);

impl Default for Inbox {
    fn default() -> Self {
        let waiting = Waiting {
            arrived: Arrived::with_capacity(8),
            capacity: 1 << 16,
            byte_capacity: usize::MAX,
            is_closed: false,
            #[cfg(feature = "worlds")]
            wake: None,
        };
        Self {
            shared: Arc::new(Shared(Mutex::new(waiting))),
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

    /// Takes all items that have arrived, and returns `true` if there are any. Gives back memory that
    /// was not needed recently.
    pub(super) fn poll(&mut self) -> bool {
        let Self {
            shared,
            taken,
            peak,
        } = self;
        if taken.items.is_empty() {
            peak.trim(&mut taken.items);
            mem::swap(&mut shared.lock().arrived, taken);
            peak.note(taken.items.len());
        }
        !taken.items.is_empty()
    }

    fn sender(&self) -> MessageSender {
        MessageSender(self.shared.clone())
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

    /// Takes all items that have arrived. The caller must empty the buffer.
    pub(super) fn take(&mut self) -> &mut Arrived {
        self.poll();
        &mut self.taken
    }

    /// Moves all items that have arrived in a world into its mailbag, outside of a delivery.
    pub(super) fn empty(world: &mut World) {
        let inbox = world.get_resource_mut::<Self>();
        let mut arrived = inbox.map_or_else(Arrived::default, |mut inbox| mem::take(inbox.take()));
        if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
            mailbag.append_arrived(&mut arrived);
        }
    }
}

/// Closes the senders, and drops the items, which may hold senders to this inbox themselves.
impl Drop for Inbox {
    fn drop(&mut self) {
        let mut waiting = self.shared.lock();
        waiting.is_closed = true;
        let arrived = mem::take(&mut waiting.arrived);
        drop(waiting);
        drop(arrived);
    }
}

impl MessageSender {
    /// Sends a message for delivery in the next frame.
    ///
    /// # Errors
    ///
    /// Returns [`SendError`] with the message if the inbox is full or closed.
    pub fn send<P: Payload>(
        &self,
        to: impl Into<Delivery>,
        payload: P,
    ) -> Result<(), SendError<P>> {
        let packet = (&payload as &dyn Any).downcast_ref::<Packet>();
        let bytes = packet.map_or(0, |packet| packet.payload().len());
        match to.into() {
            Delivery::To(entity) => self.send_to(entity, payload, bytes),
            to => {
                let room = P::room();
                self.put(payload, bytes, |payload| {
                    Item::Letter(Letter::plain_in(room, to, payload))
                })
            }
        }
    }

    /// Runs a function on the world in the next frame, in order with the messages.
    ///
    /// # Errors
    ///
    /// Returns [`SendError`] with the function if the inbox is full or closed.
    #[doc(alias("performFunctionInCocosThread", "run_on_main_thread"))]
    pub fn run<F: FnOnce(&mut World) + Send + 'static>(
        &self,
        function: F,
    ) -> Result<(), SendError<F>> {
        let room: Box<MaybeUninit<F>> = Box::new_uninit();
        self.put(function, 0, |function| {
            let function: Box<F> = Box::write(room, function);
            Item::Command(SyncCell::new(function))
        })
    }

    /// Turns a value with this many bytes into a letter and sends it. A refused value comes back as
    /// it was.
    #[cfg(feature = "worlds")]
    pub(crate) fn put_letter<T>(
        &self,
        value: T,
        bytes: usize,
        letter: impl FnOnce(T) -> Letter,
    ) -> Result<(), SendError<T>> {
        self.put(value, bytes, |value| Item::Letter(letter(value)))
    }

    /// Notes that another world has got a key, in order with the messages. A full inbox misses the note.
    #[cfg(feature = "worlds")]
    pub(crate) fn note_key_taken(&self, key: u64) {
        self.put(key, 0, Item::KeyTaken).ok();
    }

    /// Returns `true` if the world is gone or its inbox is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.lock().is_closed
    }

    /// Sends a message to one entity, in the last batch if it has messages of this type and room.
    fn send_to<P: Payload>(
        &self,
        to: Entity,
        payload: P,
        bytes: usize,
    ) -> Result<(), SendError<P>> {
        let mut waiting = self.0.lock();
        if let Err(refused) = waiting.check(bytes) {
            return Err(refused.map(|()| payload));
        }
        let Err(payload) = waiting.push_into_batch(to, payload) else {
            Waiting::note_arrival(waiting, bytes);
            return Ok(());
        };
        let messages = waiting.next_batch::<P>();
        drop(waiting);
        let mut batch = Box::new(Batch::with_capacity(messages));
        let mut waiting = self.0.lock_with_space();
        if let Err(refused) = waiting.check(bytes) {
            return Err(refused.map(|()| payload));
        }
        // Another thread may have added a batch.
        if let Err(payload) = waiting.push_into_batch(to, payload) {
            batch.push(to, payload);
            waiting.arrived.items.push_back(Item::Batch(batch));
        }
        Waiting::note_arrival(waiting, bytes);
        Ok(())
    }

    /// Turns a value with this many bytes into an item and puts it into the inbox. A refused value
    /// comes back as it was.
    fn put<T>(
        &self,
        value: T,
        bytes: usize,
        item: impl FnOnce(T) -> Item,
    ) -> Result<(), SendError<T>> {
        let mut waiting = self.0.lock_with_space();
        if let Err(refused) = waiting.check(bytes) {
            return Err(refused.map(|()| value));
        }
        waiting.arrived.items.push_back(item(value));
        Waiting::note_arrival(waiting, bytes);
        Ok(())
    }
}

impl FromWorld for MessageSender {
    /// Creates a sender to this world.
    fn from_world(world: &mut World) -> Self {
        world.get_resource_or_init::<Inbox>().sender()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // No code that holds this lock can panic halfway through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the inbox with space for one more item. The space is allocated without the lock.
    #[inline]
    fn lock_with_space(&self) -> MutexGuard<'_, Waiting> {
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
    fn check(&self, bytes: usize) -> Result<(), SendError<()>> {
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
    fn push_into_batch<P: Payload>(&mut self, to: Entity, payload: P) -> Result<(), P> {
        let batch = self.last_batch::<P>();
        let Some(batch) = batch.filter(|batch| batch.has_room()) else {
            return Err(payload);
        };
        batch.push(to, payload);
        Ok(())
    }

    /// Returns the number of messages of a new batch. A batch after a full one is larger.
    fn next_batch<P: Payload>(&mut self) -> usize {
        let (first, largest) = BATCH;
        let last = self.last_batch::<P>();
        last.map_or(first, |last| largest.min(2 * last.capacity()))
    }

    fn last_batch<P: Payload>(&mut self) -> Option<&mut Batch<P>> {
        self.arrived.items.back_mut().and_then(Item::as_batch)
    }

    /// Counts an item that was added, and wakes the world if it is the first.
    #[inline]
    fn note_arrival(mut waiting: MutexGuard<Self>, bytes: usize) {
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

impl fmt::Debug for MessageSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageSender").finish_non_exhaustive()
    }
}

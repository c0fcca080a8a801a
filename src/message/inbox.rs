//! The inbox: messages from other threads.

use alloc::{boxed::Box, collections::VecDeque};
use core::{any::Any, fmt, mem};

use bevy_ecs::prelude::*;
use bevy_platform::{cell::SyncCell, sync::Arc};

use super::{
    letter::{Delivery, Letter},
    mailbag::Item,
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
    /// The buffer taken last, now empty. The next swap reuses its memory.
    taken: VecDeque<Item>,
    peak: RecentPeak,
}

/// A handle that sends messages to a world from any thread.
///
/// Clones send to the same world. The messages of one sender arrive in the order of sending. Each
/// send takes a lock for one push. The game takes the lock once per frame to swap two buffers.
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
    items: VecDeque<Item>,
    capacity: usize,
    /// The sum of the payloads of all packets.
    bytes: usize,
    byte_capacity: usize,
    is_closed: bool,
    /// Called when an item arrives in the empty inbox.
    #[cfg(feature = "worlds")]
    wake: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Default for Inbox {
    fn default() -> Self {
        let waiting = Waiting {
            items: VecDeque::new(),
            capacity: 1 << 16,
            bytes: 0,
            byte_capacity: usize::MAX,
            is_closed: false,
            #[cfg(feature = "worlds")]
            wake: None,
        };
        Self {
            shared: Arc::new(Shared(Mutex::new(waiting))),
            taken: VecDeque::new(),
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
        inbox.is_some_and(|inbox| !inbox.shared.lock().items.is_empty())
    }

    /// Returns `true` if an item has arrived since the last frame. Gives back memory that was not
    /// needed recently.
    pub(super) fn poll(&mut self) -> bool {
        let mut waiting = self.shared.lock();
        self.peak.note(waiting.items.len());
        self.peak.trim(&mut waiting.items);
        self.peak.trim(&mut self.taken);
        !waiting.items.is_empty()
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
    pub(super) fn take(&mut self) -> &mut VecDeque<Item> {
        let mut waiting = self.shared.lock();
        waiting.bytes = 0;
        mem::swap(&mut waiting.items, &mut self.taken);
        &mut self.taken
    }
}

/// Closes the senders, and drops the items, which may hold senders to this inbox themselves.
impl Drop for Inbox {
    fn drop(&mut self) {
        let mut waiting = self.shared.lock();
        waiting.is_closed = true;
        let items = mem::take(&mut waiting.items);
        drop(waiting);
        drop(items);
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
        let to = to.into();
        let packet = (&payload as &dyn Any).downcast_ref::<Packet>();
        let bytes = packet.map_or(0, |packet| packet.payload().len());
        self.put(payload, bytes, |payload| {
            Item::Letter(Letter::plain(to, payload))
        })
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
        self.put(function, 0, |function| {
            Item::Command(SyncCell::new(Box::new(function)))
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

    /// Turns a value with this many bytes into an item and puts it into the inbox. A refused value
    /// comes back as it was.
    fn put<T>(
        &self,
        value: T,
        bytes: usize,
        item: impl FnOnce(T) -> Item,
    ) -> Result<(), SendError<T>> {
        let mut waiting = self.0.lock();
        if waiting.is_closed {
            return Err(SendError::Closed(value));
        }
        // A packet that is larger than the capacity can arrive alone.
        let sum = waiting.bytes.saturating_add(bytes);
        let has_room = waiting.bytes == 0 || sum <= waiting.byte_capacity;
        if waiting.items.len() >= waiting.capacity || !has_room {
            return Err(SendError::Full(value));
        }
        waiting.bytes = sum;
        waiting.items.push_back(item(value));
        #[cfg(feature = "worlds")]
        if waiting.items.len() == 1
            && let Some(wake) = waiting.wake.clone()
        {
            drop(waiting);
            wake();
        }
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
}

impl fmt::Debug for MessageSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageSender").finish_non_exhaustive()
    }
}

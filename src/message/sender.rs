//! Sending from other threads, and the inbox that holds such messages until the next frame.

use alloc::boxed::Box;
use core::{any::Any, fmt, mem, mem::MaybeUninit, sync::atomic::Ordering};

use bevy_ecs::{prelude::*, system::SystemState};
use bevy_platform::{cell::SyncCell, collections::HashMap, sync::Arc};

use super::{
    mail::{Delivery, Packet, Payload, Role},
    mailbag::Mailbag,
    queue::{Item, Queue},
    send::SendError,
};
use crate::sync::{AtomicUsize, Mutex, MutexGuard, PoisonError};

/// A handle that sends messages to a world from any thread.
///
/// Clones send to the same world. The messages of one sender arrive in the order of sending. Each
/// send holds a lock for one push only, and the game holds it once per frame, to swap two buffers.
/// The memory for messages is kept from frame to frame.
///
/// Get a sender from [`MessageWorldExt::message_sender`](super::MessageWorldExt::message_sender), or in a
/// system from `Local<MessageSender>`.
///
/// # Examples
///
/// ```
/// use std::thread;
/// use bevy_app::prelude::*;
/// use bevy_due::{
///     message::{Delivery, MessageSender},
///     prelude::*,
/// };
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

impl FromWorld for MessageSender {
    /// Creates a sender to this world.
    fn from_world(world: &mut World) -> Self {
        Self(world.get_resource_or_init::<Inbox>().shared.clone())
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
        let to = to.into().into();
        self.put(payload, bytes, |payload, queue| {
            queue.push(to, payload, Role::Plain);
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
        // The memory is allocated before the inbox is locked.
        let memory: Box<MaybeUninit<F>> = Box::new_uninit();
        self.put(function, 0, |function, queue| {
            let function: Box<F> = Box::write(memory, function);
            queue.push_item(Item::Function(SyncCell::new(function)));
        })
    }

    /// Puts a value with this many bytes into the inbox. A refused value comes back as it was.
    pub(crate) fn put<T>(
        &self,
        value: T,
        bytes: usize,
        put: impl FnOnce(T, &mut Queue),
    ) -> Result<(), SendError<T>> {
        let mut inbox = self.0.lock();
        let (items, most_bytes) = inbox.capacity;
        // A packet that is larger than the capacity can arrive alone.
        let has_room = inbox.bytes == 0 || inbox.bytes.saturating_add(bytes) <= most_bytes;
        if inbox.is_closed {
            return Err(SendError::Closed(value));
        }
        if inbox.queue.len() >= items || !has_room {
            return Err(SendError::Full(value));
        }
        put(value, &mut inbox.queue);
        self.0.note_arrival(inbox, bytes);
        Ok(())
    }

    /// Returns `true` if the world is gone or its inbox is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.lock().is_closed
    }
}

#[cfg(feature = "worlds")]
impl MessageSender {
    /// Runs a function on the world in the next frame, also if the inbox is full. A closed inbox drops it.
    pub(crate) fn run_anyway(&self, function: impl FnOnce(&mut World) + Send + 'static) {
        let mut inbox = self.0.lock();
        if !inbox.is_closed {
            let function = SyncCell::new(Box::new(function) as _);
            inbox.queue.push_item(Item::Function(function));
            self.0.note_arrival(inbox, 0);
        }
    }

    /// Calls a function once the world has taken what is in its full inbox, once for each `refused`.
    /// Returns `false` if the world has done that already.
    pub(crate) fn when_room(
        &self,
        refused: (u64, u64),
        call: impl FnOnce() + Send + 'static,
    ) -> bool {
        let call = Box::new(call);
        let mut inbox = self.0.lock();
        if inbox.queue.len() == 0 && inbox.capacity.0 > 0 {
            return false;
        }
        inbox.when_room.entry(refused).or_insert(call);
        true
    }
}

impl fmt::Debug for MessageSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageSender").finish_non_exhaustive()
    }
}

/// Holds the messages from other threads until the next frame.
#[derive(Resource, Default)]
pub(crate) struct Inbox {
    shared: Arc<Shared>,
    /// The items on their way to the mailbag. Otherwise, an empty queue with the memory for the next frame.
    taken: Queue,
    /// Whether there is no memory to trim either, unless something has arrived since.
    is_idle: bool,
}

/// What an inbox shares with its senders.
#[derive(Default)]
struct Shared {
    open: Mutex<Open>,
    /// The number of items in the queue, or two if there are more. It is changed under the lock, and read without
    /// it.
    arrivals: Padded<AtomicUsize>,
}

/// A value that shares no cache line, nor the one next to it. Who looks at it again and again does not slow down
/// others that change what is beside it.
#[derive(Default)]
#[repr(align(128))]
struct Padded<T>(T);

/// The messages that wait for the next frame, and their bounds.
struct Open {
    queue: Queue,
    /// The sum of the payloads of all packets.
    bytes: usize,
    /// The bounds of both.
    capacity: (usize, usize),
    is_closed: bool,
    /// Called when the inbox is empty again.
    when_room: WhenRoom,
    /// Called when an item arrives in the empty inbox.
    wake: Option<Arc<dyn Fn() + Send + Sync>>,
}

/// What to call when an inbox has room again, by the process and the world whose parcel found none.
type WhenRoom = HashMap<(u64, u64), Box<dyn FnOnce() + Send>>;

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Open> {
        // No code that holds this lock can panic halfway through a change.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the bytes of an item that was added, and wakes the world if it is the first.
    #[inline]
    fn note_arrival(&self, mut inbox: MutexGuard<Open>, bytes: usize) {
        inbox.bytes = inbox.bytes.saturating_add(bytes);
        let arrivals = inbox.queue.len();
        let wake = match arrivals {
            1 => inbox.wake.clone(),
            _ => None,
        };
        if arrivals <= 2 {
            // A world that looks for messages then finds the lock free.
            self.arrivals.0.store(arrivals, Ordering::Release);
        }
        drop(inbox);
        if let Some(wake) = wake {
            wake();
        }
    }
}

impl Default for Open {
    fn default() -> Self {
        Self {
            queue: Queue::default(),
            bytes: 0,
            capacity: (1 << 16, usize::MAX),
            is_closed: false,
            when_room: HashMap::default(),
            wake: None,
        }
    }
}

impl Inbox {
    /// Sets the number of items, and of bytes in packets, that can arrive between two frames.
    pub(crate) fn set_capacity(&self, items: usize, bytes: usize) {
        self.shared.lock().capacity = (items, bytes);
    }

    /// Returns the number of items that have arrived in a world since the last delivery, or two if there are more.
    #[cfg(feature = "worlds")]
    pub(crate) fn arrivals(world: &World) -> usize {
        let inbox = world.get_resource::<Self>();
        inbox.map_or(0, |inbox| inbox.shared.arrivals.0.load(Ordering::Acquire))
    }

    /// Refuses all messages to a world from now on.
    pub(super) fn close(world: &World) {
        if let Some(inbox) = world.get_resource::<Self>() {
            inbox.shared.lock().is_closed = true;
        }
    }

    /// Calls `wake` whenever an item arrives in the empty inbox.
    #[cfg(feature = "worlds")]
    pub(crate) fn wake_with(&self, wake: impl Fn() + Send + Sync + 'static) {
        self.shared.lock().wake = Some(Arc::new(wake));
    }

    /// Takes the items that have arrived, with `is_closed` for the last time, and what to call afterwards. Returns
    /// `None` if no item has arrived for a while.
    fn take(&mut self, is_closed: bool) -> Option<WhenRoom> {
        // This look takes no lock.
        if self.is_idle && !is_closed && self.shared.arrivals.0.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut open = self.shared.lock();
        open.is_closed |= is_closed;
        let is_awaited = !open.when_room.is_empty();
        self.is_idle = open.queue.is_idle() && self.taken.is_idle() && !is_awaited;
        if self.is_idle {
            return None;
        }
        mem::swap(&mut open.queue, &mut self.taken);
        self.shared.arrivals.0.store(0, Ordering::Relaxed);
        open.bytes = 0;
        Some(mem::take(&mut open.when_room))
    }

    /// Moves all items that have arrived in a world into its mailbag, if it has one.
    pub(crate) fn move_to_mailbag(world: &mut World) {
        let mut state = SystemState::<(ResMut<Self>, ResMut<Mailbag>)>::new(world);
        if let Ok((mut inbox, mut mailbag)) = state.get_mut(world) {
            inbox.move_to(&mut mailbag);
        }
    }

    /// Moves all items that have arrived into a mailbag.
    pub(super) fn move_to(&mut self, mailbag: &mut Mailbag) {
        if let Some(when_room) = self.take(false) {
            // The next frame reuses the memory.
            mailbag.queue.append(&mut self.taken);
            // A world that sleeps looks at its inbox alone.
            mailbag.is_urgent = true;
            when_room.into_values().for_each(|has_room| has_room());
        }
    }
}

/// Closes the senders, and drops the items, which may hold senders to this inbox themselves. Another world
/// of the group may have room.
impl Drop for Inbox {
    fn drop(&mut self) {
        let when_room = self.take(true).into_iter().flatten();
        when_room.for_each(|(_, has_room)| has_room());
    }
}

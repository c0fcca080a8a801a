//! What comes from other threads.

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::{fmt, mem};

use bevy_ecs::{
    resource::Resource,
    world::{FromWorld, World},
};
use bevy_platform::{
    cell::SyncCell,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{Delivery, Letter, Mail, Parcel, Payload, batch::AnyBatch, letter::Regarding};

/// Where other threads put what they [send](MessageSender) to this world.
///
/// It takes so many messages between two frames, and refuses more than that: [`SendError::Full`].
/// Insert another one to have another bound, before anybody has a sender: those of the old one are
/// closed.
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::prelude::*;
/// use bevy_time::TimePlugin;
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin)).insert_resource(Inbox::with_capacity(1_000));
/// ```
#[derive(Resource)]
pub struct Inbox(Arc<Shared>);

/// A handle to send messages from any thread, without the world.
///
/// A clone goes to the same world. What one sender sends arrives in that order. A send never waits
/// for the game: it takes a lock, which the game takes once a frame for as long as it takes to swap
/// two pointers.
///
/// [`MessageWorldExt::message_sender`](super::MessageWorldExt::message_sender) gives one out, and
/// in a system a `Local<MessageSender>`.
///
/// # Examples
///
/// ```
/// use std::thread;
/// use bevy_app::prelude::*;
/// use bevy_due::prelude::*;
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
///         // Whatever else is to be done there.
///         sender.run(|world| world.resource_mut::<Log>().0.push("end".into())).ok();
///     })
///     .join()
///     .unwrap();
/// }
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin)).init_resource::<Log>().add_systems(Startup, read_lines);
/// app.world_mut().spawn(MessageComponent::new().on(|mut me: MessageContext, line: &Line| {
///     let line = line.0.clone();
///     me.commands.queue(move |world: &mut World| world.resource_mut::<Log>().0.push(line));
/// }));
/// app.update();
/// assert_eq!(app.world().resource::<Log>().0, ["one", "two", "end"]);
/// ```
#[derive(Clone)]
pub struct MessageSender(Arc<Shared>);

struct Shared {
    capacity: usize,
    /// What other worlds know this one by. No other has the same, here or elsewhere, now or later.
    world: u64,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    items: VecDeque<Item>,
    is_closed: bool,
    /// Is called when the first of them arrives.
    #[cfg(feature = "std")]
    wake: Option<Arc<dyn Fn() + Send + Sync>>,
}

/// What waits to be delivered, or done.
pub(super) enum Item {
    Letter(Letter),
    Batch(Box<dyn AnyBatch>),
    Run(SyncCell<Run>),
}

impl Item {
    pub(super) fn into_letters(self) -> Vec<Letter> {
        match self {
            Self::Letter(letter) => [letter].into(),
            Self::Batch(batch) => batch.into_letters(),
            Self::Run(_) => Vec::new(),
        }
    }
}

pub(super) type Run = Box<dyn FnOnce(&mut World) + Send>;

/// A message that was not taken, and why.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendError<T> {
    /// So much has been sent since the last frame that there is no room: see
    /// [`Inbox::with_capacity`].
    Full(T),
    /// The world is gone, or takes no more messages.
    Closed(T),
}

impl<T> SendError<T> {
    /// Returns what was to be sent.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(refused) | Self::Closed(refused) => refused,
        }
    }
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the inbox of the world is full",
            Self::Closed(_) => "the inbox of the world is closed",
        })
    }
}

impl<T> core::error::Error for SendError<T> {}

impl Default for Inbox {
    fn default() -> Self {
        Self::with_capacity(1 << 16)
    }
}

impl Inbox {
    /// Makes one for so many messages between two frames; 65,536 unless set.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Arc::new(Shared {
            capacity,
            world: some_world(),
            waiting: Mutex::default(),
        }))
    }

    /// Returns how many messages it takes between two frames.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.0.capacity
    }

    /// Returns how many messages have arrived since the last frame.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.lock().items.len()
    }

    /// Returns `true` if nothing has arrived since the last frame.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn world(&self) -> u64 {
        self.0.world
    }

    pub(super) fn sender(&self) -> MessageSender {
        MessageSender(self.0.clone())
    }

    /// Refuses what is sent from now on.
    pub(crate) fn close(&self) {
        self.0.lock().is_closed = true;
    }

    /// Calls this whenever something arrives where nothing was.
    #[cfg(feature = "std")]
    pub(crate) fn wake_with(&self, wake: impl Fn() + Send + Sync + 'static) {
        self.0.lock().wake = Some(Arc::new(wake));
    }

    /// Takes all that has arrived, and leaves what is to be filled next.
    pub(super) fn take(&self, emptied: &mut VecDeque<Item>) {
        mem::swap(&mut self.0.lock().items, emptied);
    }
}

/// Whoever still has a sender is to know. What nobody will take any more may hold senders itself.
impl Drop for Inbox {
    fn drop(&mut self) {
        let mut waiting = self.0.lock();
        waiting.is_closed = true;
        let items = mem::take(&mut waiting.items);
        drop(waiting);
        drop(items);
    }
}

impl MessageSender {
    /// Sends a message, to be delivered in the next frame.
    ///
    /// # Errors
    ///
    /// [`SendError`] with the message, if there is no room for it or the world takes no more.
    pub fn send<P: Payload>(
        &self,
        to: impl Into<Delivery>,
        payload: P,
    ) -> Result<(), SendError<P>> {
        let to = to.into();
        self.put(payload, |payload| {
            Item::Letter(Letter::new(to, payload, Regarding::Nothing))
        })
    }

    /// Has a function run on the world, in the next frame, in its turn among what is sent.
    ///
    /// # Errors
    ///
    /// [`SendError`] with the function, if there is no room for it or the world takes no more.
    #[doc(alias("performFunctionInCocosThread", "run_on_main_thread"))]
    pub fn run<F: FnOnce(&mut World) + Send + 'static>(
        &self,
        function: F,
    ) -> Result<(), SendError<F>> {
        self.put(function, |function| {
            Item::Run(SyncCell::new(Box::new(function)))
        })
    }

    /// Takes in what comes from another world, as the receiving end of a [`Link`](super::Link)
    /// does.
    ///
    /// # Errors
    ///
    /// [`SendError`] with the parcel, if there is no room for it or the world takes no more.
    pub fn receive(&self, parcel: Parcel) -> Result<(), SendError<Parcel>> {
        self.put(parcel, |parcel| {
            Item::Letter(parcel.into_letter(self.0.world))
        })
    }

    /// Returns `true` if the world takes no more messages.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.lock().is_closed
    }

    fn put<T>(&self, value: T, item: impl FnOnce(T) -> Item) -> Result<(), SendError<T>> {
        let mut waiting = self.0.lock();
        if waiting.is_closed {
            return Err(SendError::Closed(value));
        }
        if waiting.items.len() >= self.0.capacity {
            return Err(SendError::Full(value));
        }
        waiting.items.push_back(item(value));
        #[cfg(feature = "std")]
        if waiting.items.len() == 1
            && let Some(wake) = waiting.wake.clone()
        {
            drop(waiting);
            wake();
        }
        Ok(())
    }
}

/// A sender to this world.
impl FromWorld for MessageSender {
    fn from_world(world: &mut World) -> Self {
        Mail::begin_run(world);
        world.get_resource_or_init::<Inbox>().sender()
    }
}

/// At random, and never zero.
#[cfg(feature = "std")]
fn some_world() -> u64 {
    use core::hash::BuildHasher;
    use std::hash::RandomState;

    RandomState::new().hash_one("world") | 1
}

/// One after the other: only those of this program are told apart.
#[cfg(not(feature = "std"))]
fn some_world() -> u64 {
    use bevy_platform::sync::atomic::{AtomicU64, Ordering};

    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nobody panics while holding it in a way that would leave it half done.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox")
            .field("capacity", &self.capacity())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for MessageSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageSender").finish_non_exhaustive()
    }
}

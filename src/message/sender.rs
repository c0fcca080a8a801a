//! Sending messages from other threads.

use alloc::boxed::Box;
use core::{any::Any, fmt, mem::MaybeUninit};

use bevy_ecs::prelude::*;
use bevy_platform::{cell::SyncCell, sync::Arc};

use super::{
    batch::Batch,
    inbox::Inbox,
    letter::{Delivery, Letter},
    mailbag::Item,
    packet::Packet,
    payload::Payload,
    send_error::SendError,
    waiting::{Shared, Waiting},
};

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

impl FromWorld for MessageSender {
    /// Creates a sender to this world.
    fn from_world(world: &mut World) -> Self {
        Self(world.get_resource_or_init::<Inbox>().shared())
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

    /// Notes that another world has got a key, in order with the messages.
    #[cfg(feature = "worlds")]
    pub(crate) fn note_key_taken(&self, key: u64) {
        self.put_anyway(Item::KeyTaken(key));
    }

    /// Runs a function on the world in the next frame, also if the inbox is full. A closed inbox drops it.
    #[cfg(feature = "worlds")]
    pub(crate) fn run_anyway(&self, function: impl FnOnce(&mut World) + Send + 'static) {
        self.put_anyway(Item::Command(SyncCell::new(Box::new(function))));
    }

    #[cfg(feature = "worlds")]
    fn put_anyway(&self, item: Item) {
        let mut waiting = self.0.lock_with_space();
        if !waiting.is_closed {
            waiting.arrived.items.push_back(item);
            Waiting::note_arrival(waiting, 0);
        }
    }

    /// Calls a function once the world has taken what is in its full inbox, once for each `refused`.
    /// Returns `false` if the world has done that already.
    #[cfg(feature = "worlds")]
    pub(crate) fn when_room(
        &self,
        refused: (u64, u64),
        call: impl FnOnce() + Send + 'static,
    ) -> bool {
        let call = Box::new(call);
        let mut waiting = self.0.lock();
        if waiting.arrived.items.is_empty() && waiting.capacity > 0 {
            return false;
        }
        waiting.when_room.entry(refused).or_insert(call);
        true
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

impl fmt::Debug for MessageSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageSender").finish_non_exhaustive()
    }
}

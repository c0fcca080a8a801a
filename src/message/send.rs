//! Sending from the world's own code: with commands, with the world, or with an outbox.

use alloc::format;
use core::{any::type_name, fmt, mem};

use bevy_ecs::{
    error::BevyError,
    prelude::*,
    system::{SystemBuffer, SystemMeta, SystemParam},
    world::DeferredWorld,
};

use thiserror::Error;

use super::{
    mail::{Delivery, Recipient, Role},
    mailbag::Mailbag,
    payload::Payload,
    queue::Queue,
};
use crate::missing_plugin::warn_without_plugin;

/// A message or function that could not be sent, with the reason.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
pub enum SendError<T> {
    /// Too many messages wait for the next frame. See
    /// [`DuePlugin::inbox_capacity`](crate::DuePlugin::inbox_capacity) and
    /// [`inbox_bytes`](crate::DuePlugin::inbox_bytes) for messages from other threads, and
    /// [`mailbox_capacity`](crate::DuePlugin::mailbox_capacity) for messages of the world itself.
    #[error(
        "too many messages wait: retry in the next frame, or raise `DuePlugin::inbox_capacity` and \
         `inbox_bytes` for messages from other threads, `DuePlugin::mailbox_capacity` for others"
    )]
    Full(T),
    /// The world is gone, or its inbox is closed.
    #[error("the world has ended or closed its inbox")]
    Closed(T),
}

impl<T> SendError<T> {
    /// Returns the message or function that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(refused) | Self::Closed(refused) => refused,
        }
    }

    /// Turns what was not sent into something else.
    pub(crate) fn map<U>(self, refused: impl FnOnce(T) -> U) -> SendError<U> {
        match self {
            Self::Full(value) => SendError::Full(refused(value)),
            Self::Closed(value) => SendError::Closed(refused(value)),
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

/// Returns the mailbag, or reports that the world has no plugin and drops a message.
pub(super) fn mailbag(world: &mut World) -> Option<Mut<'_, Mailbag>> {
    if !world.contains_resource::<Mailbag>() {
        warn_without_plugin(&mut world.into(), "a message");
    }
    world.get_resource_mut()
}

/// Sends a message if there is room. Without the plugin, the message is dropped.
pub(super) fn try_send<P: Payload>(
    world: &mut World,
    to: Delivery,
    payload: P,
    role: Role,
) -> Result<(), SendError<P>> {
    match mailbag(world) {
        Some(mailbag) if !mailbag.has_room() => return Err(SendError::Full(payload)),
        Some(mut mailbag) => mailbag.queue.push(to.into(), payload, role),
        None => {}
    }
    Ok(())
}

/// Sends a message, or returns an error that names its recipient if there is no room. Does nothing
/// without the plugin.
pub(super) fn send_or_report<P: Payload>(
    world: &mut World,
    to: Delivery,
    payload: P,
    role: Role,
) -> Result {
    if try_send(world, to, payload, role).is_ok() {
        return Ok(());
    }
    let to = match to {
        Delivery::To(entity) => format!("entity {entity}"),
        Delivery::All => "all followers".into(),
        Delivery::InTurn => "one follower in turn".into(),
    };
    let message = type_name::<P>();
    let capacity = world.get_resource().map_or(0, Mailbag::capacity);
    Err(BevyError::error(format!(
        "the message `{message}` to {to} was refused, because {capacity} messages wait: send fewer per \
         frame, or raise `DuePlugin::mailbox_capacity`"
    )))
}

/// Sends a message that must not be refused. Does nothing without the plugin.
pub(super) fn send_anyway<P: Payload>(
    world: &mut World,
    to: impl Into<Recipient>,
    payload: P,
    role: Role,
) {
    if let Some(mut mailbag) = mailbag(world) {
        mailbag.queue.push(to.into(), payload, role);
    }
}

/// Sends a message for a run that should not wait. Does nothing without the plugin.
#[cfg(feature = "worlds")]
pub(crate) fn send_urgent<P: Payload>(
    world: &mut World,
    to: impl Into<Recipient>,
    payload: P,
    role: Role,
) {
    if let Some(mut mailbag) = mailbag(world) {
        mailbag.queue.push(to.into(), payload, role);
        mailbag.is_urgent = true;
    }
}

/// Sends many messages from a system, at a lower cost than commands.
///
/// The messages are sent when the commands of the system or observer are applied, in the order of
/// the systems. The messages of one outbox keep their order. Relative to `commands.send`, the order
/// of the parameters decides: with `(Commands, Outbox)`, the messages of the commands come first.
///
/// While the mailbox is less than half full, an outbox takes room for 64 messages at a time, and gives
/// back the rest when its messages are sent.
///
/// # Examples
///
/// ```
/// use bevy_due::message::Outbox;
/// use bevy_ecs::prelude::*;
///
/// #[derive(Message)]
/// struct Damage(u32);
/// #[derive(Component)]
/// struct Burning(u32);
///
/// fn burn(burning: Query<(Entity, &Burning)>, mut outbox: Outbox) -> Result {
///     for (entity, burning) in &burning {
///         outbox.send(entity, Damage(burning.0))?;
///     }
///     Ok(())
/// }
/// # bevy_ecs::schedule::Schedule::default().add_systems(burn);
/// ```
#[derive(SystemParam)]
pub struct Outbox<'w, 's> {
    sent: Deferred<'s, Sent>,
    mailbag: Option<Res<'w, Mailbag>>,
}

/// The messages of an outbox.
#[derive(Default)]
struct Sent {
    queue: Queue,
    /// The number of messages for which there is room, sent or not, and of those not sent yet.
    reserved: usize,
    left: usize,
}

impl Outbox<'_, '_> {
    /// Sends a message, like [`MessageCommandsExt::send`](super::MessageCommandsExt::send).
    ///
    /// # Errors
    ///
    /// Returns [`SendError::Full`] with the message if too many messages wait: see
    /// [`DuePlugin::mailbox_capacity`](crate::DuePlugin::mailbox_capacity).
    #[inline]
    pub fn send<P: Payload>(
        &mut self,
        to: impl Into<Delivery>,
        payload: P,
    ) -> Result<(), SendError<P>> {
        let Sent {
            queue,
            reserved,
            left,
        } = &mut *self.sent;
        if *left == 0 {
            let taken = self.mailbag.as_ref().map(|mailbag| mailbag.reserve());
            *reserved += taken.unwrap_or(0);
            // Without the plugin, the message is dropped later.
            *left = taken.unwrap_or(1);
        }
        match left.checked_sub(1) {
            Some(rest) => *left = rest,
            None => return Err(SendError::Full(payload)),
        }
        queue.push(to.into().into(), payload, Role::Plain);
        Ok(())
    }
}

impl fmt::Debug for Outbox<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").finish_non_exhaustive()
    }
}

impl Sent {
    /// Moves the messages into the mailbag, where they need no reserved room.
    fn send(&mut self, world: &mut World) {
        self.left = 0;
        let reserved = mem::take(&mut self.reserved);
        if self.queue.len() > 0
            && let None = mailbag(world)
        {
            self.queue = Queue::default();
        }
        if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
            mailbag.queue.append(&mut self.queue);
            mailbag.release_room(reserved);
        }
    }
}

impl SystemBuffer for Sent {
    /// Sends the messages of a system, after the commands of earlier parameters.
    fn apply(&mut self, _: &SystemMeta, world: &mut World) {
        self.send(world);
    }

    /// Sends the messages of an observer, after the queued commands of earlier parameters.
    fn queue(&mut self, _: &SystemMeta, mut world: DeferredWorld) {
        if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
            let unused = mem::take(&mut self.left).min(self.reserved);
            self.reserved -= unused;
            mailbag.release_room(unused);
        }
        if self.queue.len() > 0 {
            let mut sent = mem::take(self);
            let send = move |world: &mut World| sent.send(world);
            world.commands().queue(send);
        }
    }
}

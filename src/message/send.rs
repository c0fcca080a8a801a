//! Sending from the world's own code: with commands, with the world, or with an outbox.

use alloc::{collections::VecDeque, format};
use core::{any::type_name, fmt, mem};

use bevy_ecs::{
    error::BevyError,
    prelude::*,
    system::{SystemBuffer, SystemMeta, SystemParam},
    world::DeferredWorld,
};

use super::{
    deliver::Undelivered,
    mail::{Delivery, Item, Mail, Recipient, Role},
    mailbag::Mailbag,
    payload::Payload,
};
use crate::{double_buffer::RecentPeak, missing_plugin::warn_without_plugin};

/// A message or function that could not be sent, with the reason.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendError<T> {
    /// Too many messages wait for the next frame. See
    /// [`DuePlugin::inbox_capacity`](crate::DuePlugin::inbox_capacity) and
    /// [`inbox_bytes`](crate::DuePlugin::inbox_bytes) for messages from other threads, and
    /// [`mailbox_capacity`](crate::DuePlugin::mailbox_capacity) for messages of the world itself.
    Full(T),
    /// The world is gone, or its inbox is closed.
    Closed(T),
}

impl<T> SendError<T> {
    /// Returns the message or function that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(refused) | Self::Closed(refused) => refused,
        }
    }

    /// Converts the message that was not sent.
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

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => {
                "too many messages wait: retry in the next frame, or raise \
                 `DuePlugin::inbox_capacity` and `inbox_bytes` for messages from other threads, \
                 `DuePlugin::mailbox_capacity` for others"
            }
            Self::Closed(_) => "the world has ended or closed its inbox",
        })
    }
}

impl<T> core::error::Error for SendError<T> {}

impl Mailbag {
    /// Adds a message, after all others.
    fn push<P: Payload>(&mut self, to: Recipient, payload: P, role: Role) {
        let payload = match role {
            Role::Plain => match self.queue.push_into_last(to, payload) {
                Ok(()) => return,
                Err(payload) => payload,
            },
            Role::Request(_) | Role::Reply(_) => payload,
        };
        self.queue.push(Item::Mail(Mail::letter(to, payload, role)));
    }
}

/// Sends a message. Without the plugin, the message is dropped.
pub(super) fn try_send<P: Payload>(
    world: &mut World,
    to: Delivery,
    payload: P,
    role: Role,
) -> Result<(), SendError<P>> {
    let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() else {
        drop_without_plugin(world);
        return Ok(());
    };
    if !mailbag.has_room() {
        return Err(SendError::Full(payload));
    }
    mailbag.push(to.into(), payload, role);
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
    match world.get_resource_mut::<Mailbag>() {
        Some(mut mailbag) => mailbag.push(to.into(), payload, role),
        None => drop_without_plugin(world),
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
    send_anyway(world, to, payload, role);
    if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
        mailbag.is_urgent = true;
    }
}

/// Sends a message again. Does nothing without the plugin.
pub(super) fn resend(world: &mut World, Undelivered(letter): Undelivered) {
    send_item(world, Item::Mail(letter));
}

fn send_item(world: &mut World, item: Item) {
    match world.get_resource_mut::<Mailbag>() {
        Some(mut mailbag) => mailbag.queue.push(item),
        None => drop_without_plugin(world),
    }
}

/// Reports a message that is dropped, because the world has no plugin.
fn drop_without_plugin(world: &mut World) {
    warn_without_plugin(&mut world.into(), "a message");
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
    items: VecDeque<Item>,
    peak: RecentPeak,
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
            items,
            reserved,
            left,
            ..
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
        let to = to.into().into();
        if let Some(mail) = items.back_mut().and_then(Item::plain_mail) {
            mail.push(to, payload);
        } else {
            items.push_back(Item::Mail(Mail::letter(to, payload, Role::Plain)));
        }
        Ok(())
    }
}

impl fmt::Debug for Outbox<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").finish_non_exhaustive()
    }
}

impl SystemBuffer for Sent {
    /// Sends the items of a system, after the commands of earlier parameters.
    fn apply(&mut self, _: &SystemMeta, world: &mut World) {
        self.peak.note(self.items.len());
        self.left = 0;
        let reserved = mem::take(&mut self.reserved);
        match world.get_resource_mut::<Mailbag>() {
            Some(mut mailbag) => {
                mailbag.queue.append(&mut self.items);
                mailbag.release_room(reserved);
            }
            None if self.items.is_empty() => {}
            None => {
                self.items.clear();
                drop_without_plugin(world);
            }
        }
        self.peak.trim(&mut self.items);
    }

    /// Sends the items of an observer, after the queued commands of earlier parameters.
    fn queue(&mut self, _: &SystemMeta, mut world: DeferredWorld) {
        let left = mem::take(&mut self.left);
        let reserved = mem::take(&mut self.reserved);
        if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
            mailbag.release_room(left.min(reserved));
        }
        let mut commands = world.commands();
        for item in self.items.drain(..) {
            // The messages keep their room until then.
            let kept = reserved.min(item.len());
            commands.queue(move |world: &mut World| {
                send_item(world, item);
                if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
                    mailbag.release_room(kept);
                }
            });
        }
    }
}

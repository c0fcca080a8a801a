//! The outbox: many messages from one system.

use alloc::{boxed::Box, collections::VecDeque};
use core::{fmt, mem};

use bevy_ecs::{
    prelude::*,
    system::{SystemBuffer, SystemMeta, SystemParam},
    world::DeferredWorld,
};

use super::{
    batch::Batch,
    letter::{Delivery, Letter},
    mailbag::{Item, Mailbag, drop_without_plugin, send_item},
    payload::Payload,
    send_error::SendError,
};
use crate::double_buffer::RecentPeak;

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
/// use bevy_due::{Outbox, prelude::*};
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
    items: Deferred<'s, Items>,
    mailbag: Option<Res<'w, Mailbag>>,
}

impl Outbox<'_, '_> {
    /// Sends a message, like [`DueCommandsExt::send`](crate::DueCommandsExt::send).
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
        let Items { items, room, .. } = &mut *self.items;
        if *room == 0 {
            // Without the plugin, the message is dropped later.
            *room = self.mailbag.as_ref().map_or(1, |it| it.room.take_some());
        }
        match room.checked_sub(1) {
            Some(left) => *room = left,
            None => return Err(SendError::Full(payload)),
        }
        let item = match to.into() {
            Delivery::To(entity) => {
                if let Some(last) = items.back_mut().and_then(Item::as_batch) {
                    last.push(entity, payload);
                    return Ok(());
                }
                Item::Batch(Box::new(Batch::new(entity, payload)))
            }
            to => Item::Letter(Letter::plain(to, payload)),
        };
        items.push_back(item);
        Ok(())
    }
}

impl fmt::Debug for Outbox<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Items {
    items: VecDeque<Item>,
    peak: RecentPeak,
    /// The number of further messages for which there is room.
    room: usize,
}

impl SystemBuffer for Items {
    /// Sends the items of a system, after the commands of earlier parameters.
    fn apply(&mut self, _: &SystemMeta, world: &mut World) {
        let Self { items, peak, room } = self;
        peak.note(items.len());
        let unused = mem::take(room);
        match world.get_resource_mut::<Mailbag>() {
            Some(mut mailbag) => {
                mailbag.append(items);
                mailbag.room.give_back(unused);
            }
            None if items.is_empty() => {}
            None => {
                items.clear();
                drop_without_plugin(world);
            }
        }
        peak.trim(items);
    }

    /// Sends the items of an observer, after the queued commands of earlier parameters.
    fn queue(&mut self, _: &SystemMeta, mut world: DeferredWorld) {
        let unused = mem::take(&mut self.room);
        if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
            mailbag.room.give_back(unused);
        }
        let mut commands = world.commands();
        for item in self.items.drain(..) {
            commands.queue(move |world: &mut World| send_item(world, item));
        }
    }
}

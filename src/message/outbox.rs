//! The outbox: many messages from one system.

use alloc::{boxed::Box, collections::VecDeque};
use core::fmt;

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
        if let Some(mailbag) = &self.mailbag
            && !mailbag.room.take()
        {
            return Err(SendError::Full(payload));
        }
        let items = &mut self.items.0;
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
struct Items(VecDeque<Item>, RecentPeak);

impl SystemBuffer for Items {
    /// Sends the items of a system, after the commands of earlier parameters.
    fn apply(&mut self, _: &SystemMeta, world: &mut World) {
        let Self(items, peak) = self;
        peak.note(items.len());
        match world.get_resource_mut::<Mailbag>() {
            Some(mut mailbag) => mailbag.append(items),
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
        let mut commands = world.commands();
        for item in self.0.drain(..) {
            commands.queue(move |world: &mut World| send_item(world, item));
        }
    }
}

//! What a durable entity can do.

use bevy_due::{message::Packet, worlds::StableKey};
use bevy_ecs::prelude::*;

use crate::changes::{Letter, Noted, Outgoing};

/// Moves durable entities and sends their letters.
pub trait DurableEntityCommandsExt {
    /// Moves the entity to another zone, with everything that it owns: timers, cooldowns, waiting mail, open
    /// requests, letters, and the registered components.
    ///
    /// It leaves at the end of the frame, and arrives there exactly once, whichever process dies on the way. Until it has
    /// left, a later call replaces this one, and a call with the zone in which it is cancels it.
    /// There it triggers [`Arrived`](crate::Arrived). If it can't leave or arrive, it stays or comes back, and
    /// triggers [`MoveFailed`](crate::MoveFailed) here.
    fn move_to(&mut self, zone: StableKey) -> &mut Self;

    /// Sends a letter to another durable entity, in any zone. It is delivered exactly once, as a packet to
    /// the entity's [`MessageComponent`](bevy_due::message::MessageComponent).
    ///
    /// Letters from one entity to another arrive in order. They follow the recipient if it moves. A letter that is on its
    /// way to a zone waits while that zone is down. If this zone does not know where the recipient is, and no zone
    /// answers for 30 seconds, the letter comes back as [`MailReturned`](crate::MailReturned).
    ///
    /// An entity can have 1,024 letters, or 768 KiB, waiting. More come back at once.
    fn mail(&mut self, to: StableKey, letter: Packet) -> &mut Self;
}

/// Lets others see what is durable.
pub trait DurableCommandsExt {
    /// Calls a function when everything that this frame has done is durable, on the thread that writes the
    /// journal. This is how to tell players what has happened. The function must not wait.
    ///
    /// If the process dies before, it is not called. If it panics, the error handler of the world hears of it, and all
    /// others are called.
    fn after_commit(&mut self, call: impl FnOnce() + Send + 'static);
}

impl DurableEntityCommandsExt for EntityCommands<'_> {
    fn move_to(&mut self, zone: StableKey) -> &mut Self {
        self.queue(move |entity: EntityWorldMut| {
            note(entity, |noted, id, _| noted.moves.push((id, zone)))
        })
    }

    fn mail(&mut self, to: StableKey, packet: Packet) -> &mut Self {
        self.queue(move |entity: EntityWorldMut| {
            note(entity, |noted, sender, from| {
                noted.letters.push(Letter {
                    sender,
                    from,
                    to,
                    packet,
                });
            })
        })
    }
}

impl DurableCommandsExt for Commands<'_, '_> {
    fn after_commit(&mut self, call: impl FnOnce() + Send + 'static) {
        self.queue(move |world: &mut World| -> Result {
            let held = world.get_resource::<Outgoing>().ok_or(NO_ZONE)?;
            held.push(Box::new(call), 0);
            Ok(())
        });
    }
}

/// Notes what a durable entity has done.
fn note(
    mut entity: EntityWorldMut,
    note: impl FnOnce(&mut Noted, Entity, StableKey) + Send,
) -> Result {
    let id = entity.id();
    let key = entity.get::<StableKey>().copied();
    let key = key.ok_or_else(|| format!("entity {id} is not durable: give it a `StableKey`"))?;
    entity.world_scope(|world| {
        let mut noted = world.get_resource_mut::<Noted>().ok_or(NO_ZONE)?;
        note(&mut noted, id, key);
        Ok(())
    })
}

const NO_ZONE: &str = "the world is no zone: add the plugin that `Shard::zone` returns";

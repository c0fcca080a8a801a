//! The delivery: one message at a time, in the order of sending.

use alloc::vec::Vec;

use bevy_ecs::{error::ErrorContext, prelude::*};

use super::{
    courier::Courier, directory::Directory, followers::Followers, holds::release_lost,
    inbox::Inbox, letter::Undelivered, mailbag::Mailbag, stats::MessageStats, written,
};
use crate::{
    call::{PumpState, pump},
    clock::ClockTable,
    roster::{Intake, Stage},
};

/// The parameters of a delivery.
type DeliveryState = PumpState<(
    ResMut<'static, Mailbag>,
    ResMut<'static, Followers>,
    Res<'static, Directory>,
    Res<'static, Intake>,
    Res<'static, ClockTable>,
)>;

/// Delivers the messages that were sent since the last run.
pub(crate) fn deliver_messages(world: &mut World, state: &mut DeliveryState) -> Result {
    // Commands left behind by a caught panic may send messages.
    state.apply(world);
    Inbox::move_to_mailbag(world);
    let is_waiting = written::is_waiting(world);
    let mut mailbag = world.resource_mut::<Mailbag>();
    if mailbag.is_empty() && !is_waiting {
        // Gives back memory that was not needed recently.
        mailbag.swap();
        return Ok(());
    }
    let has_mail = release(world);
    let has_written = written::swap(world);
    if has_mail {
        deliver_mail(world, state)?;
    }
    if has_written {
        written::deliver_all(world)?;
    }
    if has_mail || has_written {
        publish_stats(world);
    }
    Ok(())
}

/// Releases the messages that were sent since the last run, and returns `true` if there are any.
fn release(world: &mut World) -> bool {
    world.resource_mut::<Intake>().join(Stage::Messages);
    // Components of a game may also disable entities, unnoticed.
    world.resource_mut::<Followers>().retry_disabled();
    if !world.resource::<Mailbag>().transit.is_empty() {
        release_lost(world);
    }
    let mut mailbag = world.resource_mut::<Mailbag>();
    mailbag.swap();
    mailbag.items.has_released()
}

fn deliver_mail(world: &mut World, state: &mut DeliveryState) -> Result {
    pump(
        world,
        state,
        |caller, (mut mailbag, mut followers, directory, intake, clocks)| {
            let Mailbag {
                items,
                in_progress,
                held,
                transit,
                room,
                is_urgent,
                stats,
            } = &mut *mailbag;
            let mut courier = Courier {
                caller,
                followers: &mut followers,
                directory: &directory,
                joined: intake.joined(Stage::Messages),
                clocks: &clocks,
                held,
                transit,
                room,
                is_urgent,
                stats,
            };
            courier.deliver(items, in_progress);
        },
    )
}

/// Closes the inbox, delivers all sent messages, and takes the letters that remain undelivered.
pub(crate) fn close_inbox(world: &mut World) -> Vec<Undelivered> {
    if let Some(inbox) = world.get_resource::<Inbox>() {
        inbox.close();
    }
    if world.contains_resource::<Mailbag>() {
        let mut state = DeliveryState::new(world);
        if let Err(error) = deliver_messages(world, &mut state) {
            let name = "close_inbox".into();
            world.fallback_error_handler()(error, ErrorContext::Command { name });
        }
    }
    hand_back(world)
}

/// Closes the inbox, and takes all undelivered letters.
pub(crate) fn hand_back(world: &mut World) -> Vec<Undelivered> {
    if let Some(inbox) = world.get_resource::<Inbox>() {
        inbox.close();
    }
    Inbox::move_to_mailbag(world);
    let mailbag = world.get_resource_mut::<Mailbag>();
    mailbag.map_or_else(Vec::new, |mut mailbag| mailbag.hand_back())
}

/// Returns `true` if messages wait for the next run, or for entities that are disabled or in transit.
#[cfg(feature = "worlds")]
pub(crate) fn has_mail(world: &World) -> bool {
    let mailbag = world.get_resource::<Mailbag>();
    mailbag.is_some_and(|mailbag| !mailbag.is_empty()) || written::is_waiting(world)
}

fn publish_stats(world: &mut World) {
    let stats = world.resource::<Mailbag>().stats;
    if let Some(mut published) = world.get_resource_mut::<MessageStats>() {
        published.set_if_neq(stats);
    }
}

//! Messages from Bevy's writers.

use alloc::vec::Vec;
use core::{mem, ops::Range};

use bevy_ecs::{prelude::*, world::DeferredWorld};

use super::{
    deliver::{Courier, DeliveryState},
    followers::{Followers, Round},
    mail::{Role, Topic},
};
use crate::call::{pump, run_system};

/// The progress of each type that Bevy's writers write, in the order in which the types were first
/// followed. The messages stay in Bevy's buffers for other readers.
#[derive(Resource, Default)]
pub(crate) struct Written(Vec<Progress>);

/// The progress of the delivery of one type.
struct Progress {
    topic: Topic,
    /// Returns the numbers of the messages written since Bevy's last swap. Their end is the total number.
    recent: fn(&World) -> Range<usize>,
    /// Delivers the messages of the type at this index.
    deliver: fn(&mut World, usize) -> Result,
    /// The message to deliver next, up to the first one for the next run.
    waiting: Range<usize>,
    /// The progress of the next message, if a callback has interrupted its delivery.
    round: Option<Round>,
}

/// Starts the delivery of a type with the messages of the current frame, unless it has started.
pub(super) fn start<M: Message>(world: &mut DeferredWorld) {
    let topic = Topic::of::<M>();
    let next = recent::<M>(world).start;
    if let Some(mut written) = world.get_resource_mut::<Written>()
        && !written.0.iter().any(|progress| progress.topic == topic)
    {
        written.0.push(Progress {
            topic,
            recent: recent::<M>,
            deliver: |world, nth| run_system(world, deliver::<M>, nth),
            waiting: next..next,
            round: None,
        });
    }
}

fn recent<M: Message>(world: &World) -> Range<usize> {
    world
        .get_resource::<Messages<M>>()
        .map_or(0..0, |messages| {
            let end = messages.oldest_message_count() + messages.len();
            end - messages.iter_current_update_messages().len()..end
        })
}

/// Releases all messages written so far, of all types. Returns `true` if there are any.
pub(super) fn release(world: &mut World) -> bool {
    let mut written = mem::take(&mut *world.resource_mut::<Written>());
    let mut has_new = false;
    for progress in &mut written.0 {
        let recent = (progress.recent)(world);
        // The count is lower than before if the collection was replaced by another.
        if recent.end < progress.waiting.start {
            progress.waiting.start = recent.start;
        }
        progress.waiting.end = recent.end;
        has_new |= !progress.waiting.is_empty();
    }
    *world.resource_mut::<Written>() = written;
    has_new
}

/// Returns `true` if messages have been written since the last run.
pub(super) fn is_waiting(world: &World) -> bool {
    let written = world.get_resource::<Written>();
    let mut all = written.into_iter().flat_map(|written| &written.0);
    all.any(|progress| progress.waiting.start != (progress.recent)(world).end)
}

/// Delivers all released messages, type by type.
pub(super) fn deliver_all(world: &mut World) -> Result {
    let mut nth = 0;
    while let Some(progress) = world.resource::<Written>().0.get(nth) {
        if !progress.waiting.is_empty() {
            (progress.deliver)(world, nth)?;
        }
        nth += 1;
    }
    Ok(())
}

type Reader<M> = (ResMut<'static, Written>, Option<Res<'static, Messages<M>>>);

fn deliver<M: Message>(
    In(nth): In<usize>,
    world: &mut World,
    state: &mut DeliveryState<Reader<M>>,
) -> Result {
    pump(
        world,
        state,
        |caller, (mut mailbag, mut followers, directory, clocks, (mut written, messages))| {
            if let (Some(progress), Some(messages)) = (written.0.get_mut(nth), messages) {
                let (_, mut courier) = Courier::new(caller, &mut mailbag, &directory, &clocks);
                progress.deliver(&messages, &mut followers, &mut courier);
            }
        },
    )
}

impl Progress {
    /// Calls callbacks in order until one issues commands or no message is left.
    fn deliver<M: Message>(
        &mut self,
        messages: &Messages<M>,
        followers: &mut Followers,
        courier: &mut Courier,
    ) {
        let until = followers.next_number();
        let Some(following) = followers.of(self.topic) else {
            // The last follower may have left in its callback.
            self.waiting.start = self.waiting.end;
            self.round = None;
            return;
        };
        while !self.waiting.is_empty() {
            if let Some((message, _)) = messages.get_message(self.waiting.start) {
                let round = self.round.get_or_insert(Round {
                    until,
                    ..Round::default()
                });
                following.call_all(round, courier, message, &Role::Plain);
                if courier.caller.has_commands() {
                    return;
                }
            }
            self.waiting.start += 1;
            self.round = None;
        }
    }
}

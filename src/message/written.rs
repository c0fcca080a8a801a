//! Messages from Bevy's writers.

#[cfg(feature = "serialize")]
use alloc::format;
#[cfg(feature = "serialize")]
use core::any::type_name;
use core::{mem, ops::Range};

use bevy_ecs::{prelude::*, world::DeferredWorld};

use super::{
    deliver::{Courier, DeliveryState},
    followers::{Followers, Following, Round},
    mail::{Role, Topic},
    mailbag::Mailbag,
};
use crate::call::{pump, run_system};
#[cfg(feature = "serialize")]
use crate::{message::MessageCodecs, report::report};

/// The progress of the delivery of a type that Bevy's writers write. The messages stay in Bevy's buffers for
/// other readers.
pub(super) struct Written {
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
    if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>()
        && let written = &mut mailbag.followers.written
        && !written.iter().any(|it| it.topic == topic)
    {
        written.push(Written {
            topic,
            recent: recent::<M>,
            deliver: |world, nth| run_system(world, deliver::<M>, nth),
            waiting: next..next,
            round: None,
        });
        #[cfg(feature = "serialize")]
        warn_without_codec::<M>(world);
    }
}

/// Warns of a type that a save could meet, in a game that saves others. A game learns it from the first follower, not
/// from a save that fails.
#[cfg(feature = "serialize")]
fn warn_without_codec<M: Message>(world: &World) {
    let codecs = world.get_resource::<MessageCodecs>();
    if codecs.is_some_and(MessageCodecs::lack::<M>) {
        let error = format!(
            "messages of the type `{}` have no codec, so a save or a move that meets one on its way fails: call \
             `add_message_codec` or `leave_out_message` at start-up",
            type_name::<M>()
        );
        report::<M>(world, BevyError::warning(error));
    }
}

fn recent<M: Message>(world: &World) -> Range<usize> {
    let messages = world.get_resource::<Messages<M>>();
    messages.map_or(0..0, |messages| {
        let end = messages.oldest_message_count() + messages.len();
        end - messages.iter_current_update_messages().len()..end
    })
}

/// Releases all messages written so far, of all types. Returns `true` if there are any.
pub(super) fn release(world: &mut World) -> bool {
    let mut all = mem::take(&mut world.resource_mut::<Mailbag>().followers.written);
    let mut has_new = false;
    for written in &mut all {
        let recent = (written.recent)(world);
        // The count is lower than before if the collection was replaced by another.
        if recent.end < written.waiting.start {
            written.waiting.start = recent.start;
        }
        written.waiting.end = recent.end;
        has_new |= !written.waiting.is_empty();
    }
    world.resource_mut::<Mailbag>().followers.written = all;
    has_new
}

/// Returns `true` if messages have been written since the last run.
pub(super) fn is_waiting(world: &World) -> bool {
    let mailbag = world.get_resource::<Mailbag>();
    let mut all = mailbag.into_iter().flat_map(|it| &it.followers.written);
    all.any(|written| written.waiting.start != (written.recent)(world).end)
}

/// Delivers all released messages, type by type.
pub(super) fn deliver_all(world: &mut World) -> Result {
    let mut nth = 0;
    while let Some(written) = world.resource::<Mailbag>().followers.written.get(nth) {
        if !written.waiting.is_empty() {
            (written.deliver)(world, nth)?;
        }
        nth += 1;
    }
    Ok(())
}

fn deliver<M: Message>(
    In(nth): In<usize>,
    world: &mut World,
    mut state: Local<DeliveryState<Option<Res<'static, Messages<M>>>>>,
) -> Result {
    pump(
        world,
        &mut state,
        |caller, (mut mailbag, clocks, messages)| {
            let (_, followers, mut courier) = Courier::new(caller, &mut mailbag, &clocks);
            let until = followers.next_number();
            let Followers {
                written, by_topic, ..
            } = followers;
            if let (Some(written), Some(messages)) = (written.get_mut(nth), messages) {
                let following = by_topic.get(&written.topic);
                written.deliver(&messages, following, until, &mut courier);
            }
        },
    )
}

impl Written {
    /// Calls callbacks in order until one issues commands or no message is left.
    fn deliver<M: Message>(
        &mut self,
        messages: &Messages<M>,
        following: Option<&Following>,
        until: u64,
        courier: &mut Courier,
    ) {
        let Some(following) = following else {
            // The last follower may have left in its callback.
            self.waiting.start = self.waiting.end;
            self.round = None;
            return;
        };
        while !self.waiting.is_empty() {
            if let Some((message, _)) = messages.get_message(self.waiting.start) {
                let (round, role) = (&mut self.round, &Role::Plain);
                let is_done = following.call_all(round, until, courier, message, role);
                if is_done.is_none() {
                    return;
                }
            }
            self.waiting.start += 1;
            self.round = None;
        }
    }
}

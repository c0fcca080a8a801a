//! The delivery: one message at a time, in the order of sending.

use alloc::vec::Vec;
use core::any::Any;

use bevy_ecs::{prelude::*, system::SystemState};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, std_traits::ReflectDefault};

use super::{
    directory::Directory,
    followers::{Followers, Following, Round},
    mail::{Packet, Payload, Recipient, Role},
    mailbag::Mailbag,
    queue::{Letter, Queue},
    request::Request,
    sender::Inbox,
    written,
};
use crate::{
    call::{EntityCaller, PumpState, pump, pump_once},
    clock::ClockTable,
    owner::{OwnedBy, despawn_owned, end_kept_list},
    report::report,
    timer::OpenRequest,
};

/// The state of a delivery, with further parameters.
pub(crate) type DeliveryState<P = ()> =
    PumpState<(ResMut<'static, Mailbag>, Res<'static, ClockTable>, P)>;

/// Finds the messages that wait.
pub(crate) type WaitingMail = SystemState<(ResMut<'static, Inbox>, ResMut<'static, Mailbag>)>;

/// Delivers the messages that were sent since the last run.
pub(crate) fn deliver_messages(
    world: &mut World,
    waiting: &mut WaitingMail,
    mut state: Local<DeliveryState>,
) -> Result {
    deliver_waiting(world, waiting, &mut state)
}

fn deliver_waiting(
    world: &mut World,
    waiting: &mut WaitingMail,
    state: &mut DeliveryState,
) -> Result {
    // Commands left behind by a caught panic may send messages.
    if let Some(state) = state {
        state.apply(world);
        end_kept_list(world);
    }
    let (mut inbox, mut mailbag) = waiting.get_mut(world)?;
    inbox.move_to(&mut mailbag);
    let is_any_written = !mailbag.followers.written.is_empty();
    let is_idle = mailbag.is_idle();
    if is_idle && !(is_any_written && written::is_waiting(world)) {
        return Ok(());
    }
    let mut mailbag = world.resource_mut::<Mailbag>();
    // Components of a game may also disable entities, unnoticed.
    mailbag.followers.retry_disabled();
    mailbag.release();
    let has_mail = mailbag.queue.len() > 0;
    let has_written = is_any_written && written::release(world);
    let has_released = |mailbag: &Mailbag| mailbag.queue.has_released();
    while world.get_resource().is_some_and(has_released) {
        pump_once(world, state, |caller, (mut mailbag, clocks, ())| {
            let (queue, followers, mut courier) = Courier::new(caller, &mut mailbag, &clocks);
            queue.deliver(followers, &mut courier);
        })?;
        // An asker whose callback has made the next request keeps its list.
        end_kept_list(world);
    }
    if has_written {
        written::deliver_all(world)?;
    }
    if has_mail || has_written {
        let stats = world.resource::<Mailbag>().stats;
        if let Some(mut published) = world.get_resource_mut::<MessageStats>() {
            published.set_if_neq(stats);
        }
    }
    Ok(())
}

/// Delivers messages, and keeps the replies that have to wait.
pub(super) struct Courier<'a, 'w, 's> {
    pub(super) caller: &'a mut EntityCaller<'w, 's>,
    pub(super) directory: &'a Directory,
    pub(super) clocks: &'a ClockTable,
    replies: &'a mut Queue,
    pub(super) stats: &'a mut MessageStats,
}

impl<'a, 'w, 's> Courier<'a, 'w, 's> {
    /// Returns the queue and the followers of a mailbag, and a courier with the rest.
    pub(super) fn new(
        caller: &'a mut EntityCaller<'w, 's>,
        mailbag: &'a mut Mailbag,
        clocks: &'a ClockTable,
    ) -> (&'a mut Queue, &'a mut Followers, Self) {
        let courier = Self {
            caller,
            directory: &mailbag.directory,
            clocks,
            replies: &mut mailbag.replies,
            stats: &mut mailbag.stats,
        };
        (&mut mailbag.queue, &mut mailbag.followers, courier)
    }

    /// Calls all followers in order until one issues commands. The next call continues the round, which
    /// leaves out followers from the number `until` on. Returns `true` at its end.
    pub(super) fn call_all(
        &mut self,
        following: Option<&mut Following>,
        until: u64,
        round: &mut Option<Round>,
        message: &dyn Any,
        role: &Role,
    ) -> bool {
        if self.is_lost_reply(role) {
            return true;
        }
        let is_heard = match following {
            Some(following) => following.call_all(round, until, self, message, role),
            // The last follower may have left in its callback.
            None => Some(round.take().is_some_and(|round| round.is_heard)),
        };
        self.stats.undeliverable += u64::from(is_heard == Some(false));
        is_heard.is_some()
    }

    /// Returns `true` for a reply that does not go to the asking entity. Another process may send
    /// anything.
    fn is_lost_reply(&mut self, role: &Role) -> bool {
        let is_reply = matches!(role, Role::Reply(_));
        self.stats.late += u64::from(is_reply);
        is_reply
    }

    /// Calls an entity.
    #[inline(always)]
    pub(super) fn call_entity(
        &mut self,
        following: Option<&mut Following>,
        to: Entity,
        message: &dyn Any,
        role: &Role,
    ) {
        let follower = following.and_then(|it| it.find(to));
        if !follower.is_some_and(|it| it.call(self, message, role)) {
            self.stats.undeliverable += 1;
        }
    }

    /// Calls the recipient, and completes the request if the message is a reply. Returns `true` if the message is
    /// a reply that waits, because the asking entity is disabled.
    pub(super) fn call(
        &mut self,
        following: Option<&mut Following>,
        to: Recipient,
        message: &dyn Any,
        role: &Role,
    ) -> bool {
        let to = match to {
            Recipient::Entity(entity) => Some(entity),
            Recipient::Key(key) => self.directory.entity(key),
            // `call_all` has its own batch of messages.
            Recipient::All | Recipient::InTurn => {
                if !self.is_lost_reply(role) {
                    let called = following.is_some_and(|it| it.call_in_turn(self, message, role));
                    self.stats.undeliverable += u64::from(!called);
                }
                return false;
            }
        };
        let to = match (to, role) {
            (None, _) => {
                self.stats.undeliverable += 1;
                return false;
            }
            (Some(to), Role::Reply(request)) => match self.asker(to, *request) {
                Asker::Enabled(asker) => asker,
                Asker::Disabled => return true,
                Asker::Done => {
                    self.stats.late += 1;
                    return false;
                }
            },
            (Some(to), _) => to,
        };
        self.call_entity(following, to, message, role);
        false
    }

    /// Completes a request, unless its reply is late or has to wait.
    fn asker(&mut self, asker: Entity, request: Request) -> Asker {
        let caller = &mut *self.caller;
        let Some(request) = request.entity() else {
            return Asker::Done;
        };
        let open = caller.get(request);
        let owner = open
            .and_then(|open| open.get())
            .map(|&OwnedBy(owner)| owner);
        // A restore may have spawned the asking entity again, and a reply of another process may come by the
        // key that the world announces.
        let asker = owner.unwrap_or(asker);
        let is_open = match open {
            Some(open) => open.contains::<OpenRequest>() && owner.is_some(),
            // It may be disabled together with the asking entity.
            None => caller.exists(request),
        };
        let is_enabled = open.is_some() && caller.get(asker).is_some();
        if !is_open {
            return Asker::Done;
        }
        if !is_enabled {
            return Asker::Disabled;
        }
        // Other replies are late from now on, even if the entity does not follow this one.
        let despawn = move |world: &mut World| despawn_owned(world, request);
        caller.commands().queue(despawn);
        Asker::Enabled(asker)
    }

    /// Keeps a reply until the next run.
    #[cold]
    pub(super) fn keep(&mut self, reply: Letter) {
        self.replies.push_letter(reply);
    }
}

/// The entity that gets a reply.
enum Asker {
    Enabled(Entity),
    Disabled,
    /// The request is complete, or withdrawn.
    Done,
}

/// Calls an entity for a packet, now. Returns `false` if it does not follow the packet, or can't be called.
pub(crate) fn deliver_now(
    In((to, packet)): In<(Entity, Packet)>,
    world: &mut World,
    mut state: Local<DeliveryState>,
) -> Result<bool> {
    let mut is_called = None;
    pump(world, &mut state, |caller, (mut mailbag, clocks, ())| {
        // The commands of the callback have been applied.
        if is_called.is_some() {
            return;
        }
        let (_, followers, mut courier) = Courier::new(caller, &mut mailbag, &clocks);
        let following = followers.by_topic.get_mut(&packet.topic());
        let follower = following.and_then(|it| it.find(to));
        let called = follower.is_some_and(|it| it.call(&mut courier, &packet, &Role::Plain));
        is_called = Some(called);
    })?;
    Ok(is_called == Some(true))
}

/// Closes the inbox, delivers all sent messages, and takes the letters that remain undelivered.
pub(crate) fn close_inbox(world: &mut World) -> Vec<Letter> {
    Inbox::close(world);
    if world.contains_resource::<Mailbag>() {
        let (mut waiting, mut state) = (SystemState::new(world), None);
        deliver_arrivals(world, &mut waiting, &mut state);
    }
    hand_back(world)
}

/// Delivers all sent messages outside a frame.
pub(crate) fn deliver_arrivals(
    world: &mut World,
    waiting: &mut WaitingMail,
    state: &mut DeliveryState,
) {
    if let Err(error) = deliver_waiting(world, waiting, state) {
        report::<Inbox>(world, error);
    }
}

/// Closes the inbox, and takes all undelivered letters.
pub(crate) fn hand_back(world: &mut World) -> Vec<Letter> {
    Inbox::close(world);
    Inbox::move_to_mailbag(world);
    let mailbag = world.get_resource_mut::<Mailbag>();
    mailbag.map_or_else(Vec::new, |mut mailbag| mailbag.hand_back())
}

/// Returns `true` if messages wait for the next run, or for entities that are disabled.
#[cfg(feature = "worlds")]
pub(crate) fn has_mail(world: &World) -> bool {
    let mailbag = world.get_resource::<Mailbag>();
    mailbag.is_some_and(|mailbag| mailbag.waiting() > 0) || written::is_waiting(world)
}

/// Counts the messages of this world, from its start to the end of the last delivery.
///
/// # Examples
///
/// ```
/// use bevy_due::message::MessageStats;
/// use bevy_ecs::prelude::*;
///
/// fn print_lost(stats: Res<MessageStats>) {
///     if stats.is_changed() && stats.undeliverable > 0 {
///         println!("{} messages without a recipient", stats.undeliverable);
///     }
/// }
/// # bevy_ecs::system::assert_is_system(print_lost);
/// ```
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due::message",
    reflect(Resource, Clone, Debug, Default, PartialEq)
)]
pub struct MessageStats {
    /// The number of times that a callback was called with a message.
    pub delivered: u64,
    /// The number of messages without a recipient: the entity is gone, is disabled or does not
    /// follow the message, or no entity follows it.
    pub undeliverable: u64,
    /// The number of replies and [`NoAnswer`](super::NoAnswer)s to requests that were already
    /// complete or withdrawn.
    pub late: u64,
}

//! The delivery: one message at a time, in the order of sending.

use alloc::vec::Vec;
use core::{any::Any, fmt};

use bevy_ecs::{entity::EntityHashMap, error::ErrorContext, prelude::*};
use bevy_platform::cell::SyncCell;
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, std_traits::ReflectDefault};

use super::{
    ask::{asker_now, is_open},
    component::Incoming,
    directory::Directory,
    followers::{Followers, Following, Round},
    mail::{Delivery, Item, Letter, MailRef, Recipient, Role},
    mailbag::Mailbag,
    payload::{Packet, Payload, Topic},
    request::{ReplyTo, Request},
    sender::Inbox,
    transit::{HeldLetters, release_lost},
    written,
};
use crate::{
    call::{EntityCaller, PumpState, pump},
    clock::ClockTable,
};

/// The parameters of a delivery.
type DeliveryState = PumpState<(
    ResMut<'static, Mailbag>,
    ResMut<'static, Followers>,
    Res<'static, Directory>,
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
    // Components of a game may also disable entities, unnoticed.
    world.resource_mut::<Followers>().retry_disabled();
    release_lost(world);
    let mut mailbag = world.resource_mut::<Mailbag>();
    mailbag.swap();
    mailbag.queue.has_released()
}

fn deliver_mail(world: &mut World, state: &mut DeliveryState) -> Result {
    pump(
        world,
        state,
        |caller, (mut mailbag, mut followers, directory, clocks)| {
            let Mailbag {
                queue,
                in_progress,
                held,
                transit,
                stats,
                ..
            } = &mut *mailbag;
            let mut courier = Courier {
                caller,
                directory: &directory,
                clocks: &clocks,
                held,
                transit,
                stats,
            };
            while !courier.caller.has_commands() {
                if let Some(mail) = in_progress {
                    mail.deliver(&mut followers, &mut courier);
                    if courier.caller.has_commands() {
                        return;
                    }
                }
                *in_progress = match queue.next() {
                    None => return *in_progress = None,
                    Some(Item::Mail(mail)) => Some(mail),
                    Some(Item::Run(function)) => {
                        courier
                            .caller
                            .commands()
                            .queue(SyncCell::to_inner(function));
                        None
                    }
                    #[cfg(feature = "worlds")]
                    Some(Item::KeyTaken(key)) => {
                        courier.note_key_taken(key);
                        None
                    }
                };
            }
        },
    )
}

/// Delivers messages, and keeps the rest until they may be delivered.
pub(crate) struct Courier<'a, 'w, 's> {
    pub(super) caller: &'a mut EntityCaller<'w, 's>,
    pub(super) directory: &'a Directory,
    clocks: &'a ClockTable,
    held: &'a mut Vec<Letter>,
    transit: &'a mut EntityHashMap<HeldLetters>,
    stats: &'a mut MessageStats,
}

/// Calls the followers of one topic.
pub(super) struct Calls<'c, 'a, 'w, 's> {
    pub(super) courier: &'c mut Courier<'a, 'w, 's>,
    following: Option<&'c mut Following>,
    /// Followers from this number on do not exist yet.
    until: u64,
    /// The place after the follower that was called last. Most systems send in the order of the
    /// followers, so the next message is likely to go there.
    likely: usize,
}

/// The entity for which a message waits, and the one whose move it waits for, if any.
pub(super) struct Wait {
    entity: Entity,
    root: Option<Entity>,
}

impl Courier<'_, '_, '_> {
    fn incoming<'m>(&self, message: &'m dyn Any, role: &'m Role) -> Incoming<'m>
    where
        Self: 'm,
    {
        Incoming {
            message,
            role,
            clocks: self.clocks,
        }
    }

    /// Notes that another world has got the key of an entity in transit.
    #[cfg(feature = "worlds")]
    fn note_key_taken(&mut self, key: u64) {
        if let Some(entity) = self.directory.entity(key)
            && let Some(root) = self.caller.root_in_transit(entity)
            && let Some(held) = self.transit.get_mut(&root)
        {
            held.note_key_taken();
        }
    }
}

impl<'c, 'a, 'w, 's> Calls<'c, 'a, 'w, 's> {
    pub(super) fn new(
        courier: &'c mut Courier<'a, 'w, 's>,
        followers: &'c mut Followers,
        topic: Topic,
    ) -> Self {
        Self {
            courier,
            until: followers.next_number(),
            following: followers.of(topic),
            likely: 0,
        }
    }

    /// Calls all followers in order until one issues commands. The next call continues the round. Returns
    /// `true` at its end.
    pub(super) fn call_all(
        &mut self,
        round: &mut Option<Round>,
        message: &dyn Any,
        role: &Role,
    ) -> bool {
        if self.is_lost_reply(role) {
            return true;
        }
        let round_now = round.get_or_insert(Round::new(self.until));
        if let Some(following) = &self.following {
            let incoming = self.courier.incoming(message, role);
            let Courier { caller, stats, .. } = &mut *self.courier;
            following.call_all(round_now, caller, incoming, &mut stats.delivered);
        }
        if self.courier.caller.has_commands() {
            return false;
        }
        self.courier.stats.undeliverable += u64::from(!round_now.is_heard);
        *round = None;
        true
    }

    /// Calls the follower whose turn it is.
    pub(super) fn call_in_turn(&mut self, message: &dyn Any, role: &Role) {
        if self.is_lost_reply(role) {
            return;
        }
        let incoming = self.courier.incoming(message, role);
        let Courier { caller, stats, .. } = &mut *self.courier;
        let following = self.following.as_deref_mut();
        match following.is_some_and(|it| it.call_in_turn(caller, incoming)) {
            true => stats.delivered += 1,
            false => stats.undeliverable += 1,
        }
    }

    /// Returns `true` for a reply that does not go to the asking entity. Another process may send
    /// anything.
    fn is_lost_reply(&mut self, role: &Role) -> bool {
        let is_reply = matches!(role, Role::Reply(_));
        self.courier.stats.late += u64::from(is_reply);
        is_reply
    }

    /// Calls an entity. Returns where the message waits if the entity can't be called yet. A reply
    /// completes its request.
    #[inline]
    pub(super) fn call_entity(
        &mut self,
        entity: Option<Entity>,
        message: &dyn Any,
        role: &Role,
    ) -> Option<Wait> {
        let Some(mut to) = entity else {
            return self.miss(Entity::PLACEHOLDER);
        };
        if let &Role::Reply(request) = role {
            match self.asker(to, request) {
                Ok(asker) => to = asker,
                Err(wait) => return wait,
            }
        }
        let following = self.following.as_deref();
        let follower = following.and_then(|it| it.find(to, self.likely));
        let is_called = follower.is_some_and(|(place, follower)| {
            self.likely = place + 1;
            let incoming = self.courier.incoming(message, role);
            follower.call(self.courier.caller, incoming)
        });
        if !is_called {
            return self.miss(to);
        }
        self.courier.stats.delivered += 1;
        None
    }

    /// Returns where a message waits for an entity that could not be called, if it does.
    #[cold]
    fn miss(&mut self, entity: Entity) -> Option<Wait> {
        let root = self.courier.caller.root_in_transit(entity);
        self.courier.stats.undeliverable += u64::from(root.is_none());
        root.map(|root| Wait {
            entity,
            root: Some(root),
        })
    }

    /// Completes a request, and returns the entity that gets the reply. If the reply can't be delivered
    /// now, returns where it waits, or `None` if it is late.
    fn asker(&mut self, asker: Entity, request: Request) -> Result<Entity, Option<Wait>> {
        let Courier { caller, stats, .. } = &mut *self.courier;
        let Some(request) = request.entity() else {
            stats.late += 1;
            return Err(None);
        };
        let entity = asker_now(asker, request, caller);
        let root = caller.root_in_transit(entity);
        let is_open = is_open(request, entity, caller);
        let is_enabled = caller.get(request).is_some() && caller.get(entity).is_some();
        if root.is_some() || is_open && !is_enabled {
            return Err(Some(Wait { entity, root }));
        }
        if !is_open {
            stats.late += 1;
            return Err(None);
        }
        // Other replies are late from now on, even if the entity does not follow this one.
        caller.commands().entity(request).despawn();
        Ok(entity)
    }

    /// Keeps a letter until its recipient can be called.
    #[cold]
    pub(super) fn keep(&mut self, Wait { entity, root }: Wait, letter: Letter) {
        match root.and_then(|root| self.courier.transit.get_mut(&root)) {
            Some(held) => held.arrived.push((entity, letter)),
            // It is disabled, or its move has ended, but not for this entity.
            None => self.courier.held.push(letter),
        }
    }
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

/// A message that was not delivered, returned by [`close_inbox`](super::MessageWorldExt::close_inbox).
///
/// [`resend`](super::MessageWorldExt::resend) sends it again.
pub struct Undelivered(pub(super) Letter);

impl Undelivered {
    /// Returns the message, if it has the type `M`.
    #[must_use]
    pub fn message<M: Payload>(&self) -> Option<&M> {
        self.letter()?.payload.downcast_ref()
    }

    /// Returns the message, if it is a packet.
    #[must_use]
    pub fn packet(&self) -> Option<&Packet> {
        self.message()
    }

    /// Returns the type name of the message.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.letter().map_or("", |letter| letter.name)
    }

    /// Returns the recipients, or `None` if another world sent the message to a key.
    #[must_use]
    pub fn delivery(&self) -> Option<Delivery> {
        match self.letter()?.to {
            Recipient::Entity(entity) => Some(Delivery::To(entity)),
            Recipient::Key(_) => None,
            Recipient::All => Some(Delivery::All),
            Recipient::InTurn => Some(Delivery::InTurn),
        }
    }

    /// Returns the request that the message makes or replies to, if any.
    #[must_use]
    pub fn request(&self) -> Option<Request> {
        self.role()?.request()
    }

    /// Returns where to send a reply, if the message is a request.
    #[must_use]
    pub fn reply_to(&self) -> Option<&ReplyTo> {
        self.role()?.reply_to()
    }

    pub(crate) fn role(&self) -> Option<&Role> {
        self.letter().map(|letter| letter.role)
    }

    fn letter(&self) -> Option<MailRef<'_>> {
        self.0.get(0)
    }
}

impl fmt::Debug for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Undelivered")
            .field("to", &self.letter().map(|letter| letter.to))
            .field("message", &format_args!("{}", self.type_name()))
            .field("role", &self.role())
            .finish_non_exhaustive()
    }
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
    type_path = "bevy_due",
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

//! Sending from the world's own code: with commands, with the world, or with an outbox.

#[cfg(feature = "serialize")]
use alloc::borrow::Cow;
use alloc::{format, vec::Vec};
use core::{any::type_name, borrow::BorrowMut, fmt, mem};

use bevy_ecs::{
    error::BevyError,
    prelude::*,
    system::{SystemBuffer, SystemMeta, SystemParam},
    world::DeferredWorld,
};
use thiserror::Error;

#[cfg(feature = "serialize")]
use super::{codec::MessageCodecs, waiting::entities_with_mail};
use super::{
    deliver::{close_inbox, deliver_now},
    mail::{Delivery, Packet, Payload, Recipient, Role, name_of_recipients},
    mailbag::Mailbag,
    queue::{Letter, Queue},
    request::{ReplyTo, Request, open, reply},
    sender::MessageSender,
};
use crate::{missing_plugin::warn_without_plugin, timer::Timer};

/// Sends messages from systems and callbacks.
pub trait MessageCommandsExt {
    /// Sends a message to one entity, to all followers, or to one follower, round-robin.
    ///
    /// The message is delivered in the next run of
    /// [`DueSystems::Messages`](crate::DueSystems::Messages). To send many messages, use an
    /// [`Outbox`](super::Outbox).
    ///
    /// If too many messages wait, the message is dropped, and Bevy's error handler gets an error
    /// that names the recipient: see
    /// [`DuePlugin::mailbox_capacity`](crate::DuePlugin::mailbox_capacity).
    fn send(&mut self, to: impl Into<Delivery>, payload: impl Payload);

    /// Replies to a request.
    ///
    /// If the request is complete or withdrawn, the reply is dropped, and counted in
    /// [`MessageStats::late`](super::MessageStats::late). A reply to another world must be a
    /// [`Packet`](super::Packet): otherwise Bevy's error handler gets
    /// [`ReplyError::NotAPacket`](super::ReplyError::NotAPacket).
    #[doc(alias = "answer")]
    fn reply(&mut self, to: ReplyTo, payload: impl Payload);
}

/// Makes requests on behalf of an entity.
pub trait MessageEntityCommandsExt {
    /// Makes a request: sends a message, and waits for a reply until the first deadline of a timer.
    ///
    /// Every request completes exactly once: this entity gets either the first
    /// [`reply`](super::MessageContext::reply) or [`NoAnswer`](super::NoAnswer), both with the
    /// returned [`Request`]. The entity gets neither if it despawns first, or if the world is
    /// dropped. A request without a recipient times out.
    ///
    /// `until` says when the request times out: after which delay, on which clock, with which jitter, slack and
    /// priority. It does not become a `Timer` of an entity, so it triggers no event and writes no message, and
    /// [`ArmedTimers`](crate::ArmedTimers) does not list it. Without a clock of its own, it runs on the clock of this
    /// entity, and a [pause](crate::Paused) of this entity stops it. Use `Timer::after(Duration::MAX)` to wait forever.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{
    ///     Timer,
    ///     message::{MessageEntityCommandsExt, NoAnswer},
    ///     prelude::*,
    /// };
    /// use bevy_ecs::prelude::*;
    /// use bevy_time::TimePlugin;
    ///
    /// #[derive(Message)]
    /// struct Price(&'static str);
    /// #[derive(Message)]
    /// struct Coins(u32);
    /// #[derive(Component)]
    /// struct Purse(Option<u32>);
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default()));
    /// let shop = MessageComponent::new().on(|mut me, price: &Price| -> Result {
    ///     Ok(me.reply(Coins(price.0.len() as u32))?)
    /// });
    /// let shop = app.world_mut().spawn(shop).id();
    /// let customer = MessageComponent::new()
    ///     .on(|mut me, coins: &Coins| {
    ///         me.entity.get_mut::<Purse>().unwrap().0 = Some(coins.0);
    ///     })
    ///     .on(|_, _: &NoAnswer| println!("the shop is closed"));
    /// let customer = app.world_mut().spawn((customer, Purse(None))).id();
    ///
    /// let mut commands = app.world_mut().commands();
    /// commands.entity(customer).ask(shop, Price("sword"), Timer::after(2.0));
    /// app.update(); // Delivers the request.
    /// app.update(); // Delivers the reply.
    /// assert_eq!(app.world().get::<Purse>(customer).unwrap().0, Some(5));
    /// ```
    #[doc(alias("request", "call", "session"))]
    fn ask(&mut self, to: impl Into<Delivery>, payload: impl Payload, until: Timer) -> Request;
}

/// Sends messages with exclusive access to the world, and from other threads.
pub trait MessageWorldExt: BorrowMut<World> {
    /// Sends a message, like [`MessageCommandsExt::send`].
    ///
    /// # Errors
    ///
    /// Returns [`SendError::Full`] with the message if too many messages wait: see
    /// [`DuePlugin::mailbox_capacity`](crate::DuePlugin::mailbox_capacity).
    fn send<P: Payload>(
        &mut self,
        to: impl Into<Delivery>,
        payload: P,
    ) -> Result<(), SendError<P>> {
        try_send(self.borrow_mut(), to.into(), payload, Role::Plain)
    }

    /// Calls an entity for a packet now, before this returns, and applies the commands of its callback. The messages that
    /// wait stay where they are.
    ///
    /// Returns `false` if nothing was called: the entity does not follow the packet, or it is gone or disabled.
    /// A callback that returns an error was called. Bevy's error handler gets the error.
    ///
    /// # Errors
    ///
    /// Returns an error in a world without [`DuePlugin`](crate::DuePlugin), and if a callback that this has called, or a
    /// command of it, calls this again.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{
    ///     message::{MessageWorldExt, Packet},
    ///     prelude::*,
    /// };
    /// use bevy_ecs::prelude::*;
    /// use bevy_time::TimePlugin;
    ///
    /// #[derive(Component)]
    /// struct Gold(u8);
    ///
    /// const PAY: u32 = 1;
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default()));
    /// let purse = MessageComponent::new().on_packet(PAY, |mut me, packet| {
    ///     me.entity.get_mut::<Gold>().unwrap().0 += packet.payload()[0];
    /// });
    /// let hero = app.world_mut().spawn((Gold(1), purse)).id();
    /// assert!(app.world_mut().deliver(hero, &Packet::new(PAY, [2]))?);
    /// assert_eq!(app.world().get::<Gold>(hero).unwrap().0, 3);
    /// assert!(!app.world_mut().deliver(hero, &Packet::new(7, []))?, "it follows no such packet");
    /// # Ok::<(), BevyError>(())
    /// ```
    fn deliver(&mut self, to: Entity, packet: &Packet) -> Result<bool> {
        let world = self.borrow_mut();
        world.run_system_cached_with(deliver_now, (to, packet.clone()))?
    }

    /// Sends a message that [`close_inbox`](Self::close_inbox) handed back, to the same recipient.
    ///
    /// A request stays a request, and a reply stays a reply. The message is never refused.
    fn resend(&mut self, letter: Letter) {
        let world = self.borrow_mut();
        with_mailbag(world, |mut mailbag| mailbag.queue.push_letter(letter));
    }

    /// Returns a handle to send messages to this world from other threads.
    fn message_sender(&mut self) -> MessageSender {
        MessageSender::from_world(self.borrow_mut())
    }

    /// Refuses further messages from other threads, delivers all messages that have been sent, and
    /// returns the messages that are sent during that delivery.
    ///
    /// Call this when an app shuts down, so that no message is lost. `App::run` owns the world, so
    /// call this from a system in [`Last`](bevy_app::Last) when there is an
    /// [`AppExit`](bevy_app::AppExit) message, or call `App::update` yourself.
    ///
    /// Messages without a recipient are not returned, but counted in
    /// [`MessageStats::undeliverable`](super::MessageStats::undeliverable). Open requests stay
    /// open. Further frames can run, and the returned messages can be [sent again](Self::resend).
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{
    ///     message::{Delivery, MessageCommandsExt, MessageWorldExt, SendError},
    ///     prelude::*,
    /// };
    /// use bevy_ecs::prelude::*;
    /// use bevy_time::TimePlugin;
    ///
    /// #[derive(Message, Debug, PartialEq)]
    /// struct Save(u32);
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default()));
    /// app.world_mut().spawn(MessageComponent::new().on(|mut me, save: &Save| {
    ///     me.commands.send(Delivery::All, Save(save.0 + 1));
    /// }));
    /// app.update();
    ///
    /// let sender = app.world_mut().message_sender();
    /// sender.send(Delivery::All, Save(1)).unwrap();
    /// let left = app.world_mut().close_inbox();
    /// assert_eq!(left[0].message(), Some(&Save(2)), "the first one has been delivered");
    /// assert!(matches!(sender.send(Delivery::All, Save(3)), Err(SendError::Closed(Save(3)))));
    /// ```
    fn close_inbox(&mut self) -> Vec<Letter> {
        close_inbox(self.borrow_mut())
    }

    /// Returns the entities to which messages wait, sorted. Messages to all, in turn, and from Bevy's writers
    /// do not count.
    ///
    /// With [`changed_since`](crate::rollback::RollbackWorldExt::changed_since), this tells which entities to store at
    /// the end of a frame. Store those that had mail at the last store, too: it may have been delivered.
    ///
    /// # Time complexity
    ///
    /// *O*(*m* log *m*) in the number of messages that wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{
    ///     message::{MessageWorldExt, Packet},
    ///     prelude::*,
    /// };
    /// use bevy_time::TimePlugin;
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default()));
    /// let hero = app.world_mut().spawn_empty().id();
    /// app.world_mut().send(hero, Packet::new(1, [])).unwrap();
    /// assert_eq!(app.world().entities_with_mail(), [hero]);
    /// app.update();
    /// assert_eq!(app.world().entities_with_mail(), []);
    /// ```
    #[cfg(feature = "serialize")]
    fn entities_with_mail(&self) -> Vec<Entity> {
        entities_with_mail(self.borrow())
    }

    /// Registers how messages of the type `M` become bytes and back, so that those on their way can be
    /// [saved](crate::save), or move with the entity for which they wait.
    ///
    /// Register the same name in all worlds that load them or between which entities move. [Packets](super::Packet) and
    /// [`NoAnswer`](super::NoAnswer) need no codec. An `Entity` in a message keeps its id, which means
    /// nothing in another world.
    ///
    /// # Panics
    ///
    /// Panics if the name or the type is already registered.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{message::MessageWorldExt, moving::MoveWorldExt, prelude::*};
    /// use bevy_ecs::prelude::*;
    /// use bevy_time::TimePlugin;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Message, Serialize, Deserialize)]
    /// struct Damage(u32);
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default()));
    /// app.world_mut().add_message_codec(
    ///     "damage",
    ///     |damage: &Damage| Ok(ron::to_string(damage)?.into()),
    ///     |data| Ok(ron::de::from_bytes(data)?),
    /// );
    /// let hero = app.world_mut().spawn_empty().id();
    /// app.world_mut().send(hero, Damage(3)).unwrap();
    /// assert!(app.world_mut().take_entity(hero).is_ok());
    /// ```
    #[cfg(feature = "serialize")]
    #[track_caller]
    fn add_message_codec<M: Message>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        encode: impl Fn(&M) -> Result<Vec<u8>> + Send + Sync + 'static,
        decode: impl Fn(&[u8]) -> Result<M> + Send + Sync + 'static,
    ) {
        let mut codecs = self.borrow_mut().get_resource_or_init::<MessageCodecs>();
        codecs.add(name.into(), encode, decode);
    }

    /// Declares that messages of the type `M` are not [saved](crate::save): a save leaves those on their way out, and
    /// they do not move with an entity.
    ///
    /// Without this call and without a [codec](Self::add_message_codec), a message on its way is an error of the save,
    /// so that nothing is lost in silence. In a world with codecs, a warning names such a type when an entity starts to
    /// follow it.
    ///
    /// # Panics
    ///
    /// Panics if the type has a codec.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{message::MessageWorldExt, prelude::*, save::SaveWorldExt};
    /// use bevy_ecs::prelude::*;
    /// use bevy_time::TimePlugin;
    ///
    /// #[derive(Message)]
    /// struct Hover;
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default()));
    /// let button = app.world_mut().spawn_empty().id();
    /// app.world_mut().send(button, Hover).unwrap();
    /// assert!(app.world_mut().save_timers().is_err());
    ///
    /// app.world_mut().leave_out_message::<Hover>();
    /// assert!(app.world_mut().save_timers().is_ok());
    /// ```
    #[cfg(feature = "serialize")]
    #[track_caller]
    fn leave_out_message<M: Message>(&mut self) {
        let mut codecs = self.borrow_mut().get_resource_or_init::<MessageCodecs>();
        codecs.leave_out::<M>();
    }
}

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
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Closed(_) => "Closed(..)",
        })
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
        if self.queue.len() > 0 && with_mailbag(world, |_| ()).is_none() {
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
        let mut next = Self::default();
        if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
            let unused = mem::take(&mut self.left).min(self.reserved);
            self.reserved -= unused;
            mailbag.release_room(unused);
            if self.queue.len() > 0 {
                next.queue = mem::take(&mut mailbag.spare);
            }
        }
        if self.queue.len() == 0 {
            return;
        }
        let mut sent = mem::replace(self, next);
        world.commands().queue(move |world: &mut World| {
            sent.send(world);
            if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
                mailbag.spare = sent.queue;
            }
        });
    }
}

impl MessageCommandsExt for Commands<'_, '_> {
    fn send(&mut self, to: impl Into<Delivery>, payload: impl Payload) {
        let to = to.into();
        self.queue(move |world: &mut World| send_or_report(world, to, payload, Role::Plain));
    }

    fn reply(&mut self, to: ReplyTo, payload: impl Payload) {
        reply(self, to, payload);
    }
}

impl MessageEntityCommandsExt for EntityCommands<'_> {
    fn ask(&mut self, to: impl Into<Delivery>, payload: impl Payload, until: Timer) -> Request {
        let to = to.into();
        let request = open(self, until);
        let role = Role::Request(ReplyTo::here(self.id(), request));
        let mut commands = self.commands();
        commands.queue(move |world: &mut World| send_or_report(world, to, payload, role));
        request
    }
}

impl MessageWorldExt for World {}

/// Calls a function with the mailbag, or reports that the world has no plugin and drops a message.
fn with_mailbag<Out>(world: &mut World, call: impl FnOnce(Mut<Mailbag>) -> Out) -> Option<Out> {
    if let Some(mailbag) = world.get_resource_mut() {
        return Some(call(mailbag));
    }
    warn_without_plugin(&mut world.into(), "a message");
    None
}

/// Sends a message if there is room. Without the plugin, the message is dropped.
pub(super) fn try_send<P: Payload>(
    world: &mut World,
    to: Delivery,
    payload: P,
    role: Role,
) -> Result<(), SendError<P>> {
    let sent = with_mailbag(world, |mut mailbag| {
        if !mailbag.has_room() {
            return Err(SendError::Full(payload));
        }
        mailbag.queue.push(to.into(), payload, role);
        Ok(())
    });
    sent.unwrap_or(Ok(()))
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
    let to = name_of_recipients(Some(to));
    let message = type_name::<P>();
    let capacity = world
        .get_resource()
        .map_or(0, |mailbag: &Mailbag| mailbag.capacity);
    Err(BevyError::error(format!(
        "the message `{message}` to {to} was refused, because {capacity} messages wait: send fewer per \
         frame, or raise `DuePlugin::mailbox_capacity`"
    )))
}

/// Sends a message that must not be refused, and for which the next run should not wait. Does nothing without
/// the plugin.
#[cfg(feature = "worlds")]
pub(crate) fn send_urgently<P: Payload>(world: &mut World, to: Recipient, payload: P, role: Role) {
    send_anyway(world, to, payload, role);
    if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
        mailbag.is_urgent = true;
    }
}

/// Sends a message that must not be refused. Does nothing without the plugin.
pub(super) fn send_anyway<P: Payload>(world: &mut World, to: Recipient, payload: P, role: Role) {
    with_mailbag(world, |mut mailbag| mailbag.queue.push(to, payload, role));
}

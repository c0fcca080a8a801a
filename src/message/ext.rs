//! Sending, as methods of Bevy's types.

#[cfg(feature = "serialize")]
use alloc::borrow::Cow;
use alloc::vec::Vec;

use bevy_ecs::prelude::*;

use super::{
    ask::{ask, reply},
    deliver::close_inbox,
    mail::{Delivery, Role},
    payload::Payload,
    queue::Letter,
    request::{ReplyTo, Request},
    send::{SendError, mailbag, send_or_report, try_send},
    sender::MessageSender,
};
#[cfg(feature = "serialize")]
use super::{codec::add_message_codec, transit::entities_with_mail};
use crate::timer::Timer;

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
    /// Makes a request: sends a message, and waits for a reply until the timer fires.
    ///
    /// Every request completes exactly once: this entity gets either the first
    /// [`reply`](super::MessageContext::reply) or [`NoAnswer`](super::NoAnswer), both with the
    /// returned [`Request`]. The entity gets neither if it despawns first, or if the world is
    /// dropped. A request without a recipient times out.
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
pub trait MessageWorldExt {
    /// Sends a message, like [`MessageCommandsExt::send`].
    ///
    /// # Errors
    ///
    /// Returns [`SendError::Full`] with the message if too many messages wait: see
    /// [`DuePlugin::mailbox_capacity`](crate::DuePlugin::mailbox_capacity).
    fn send<P: Payload>(&mut self, to: impl Into<Delivery>, payload: P)
    -> Result<(), SendError<P>>;

    /// Sends a message that [`close_inbox`](Self::close_inbox) handed back, to the same recipient.
    ///
    /// A request stays a request, and a reply stays a reply. The message is never refused.
    fn resend(&mut self, letter: Letter);

    /// Returns a handle to send messages to this world from other threads.
    fn message_sender(&mut self) -> MessageSender;

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
    #[cfg_attr(
        feature = "serialize",
        doc = "
Messages that are held for an entity [in transit](crate::moving::InTransit) are returned, too, except for
those in its [`MovedEntity`](crate::moving::MovedEntity). The entity stays in transit."
    )]
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
    fn close_inbox(&mut self) -> Vec<Letter>;

    /// Returns the entities to which messages wait, sorted. Messages to all, in turn, and from Bevy's writers
    /// do not count.
    ///
    /// With [`changed_since`](crate::DueWorldExt::changed_since), this tells which entities to store at
    /// the end of a frame.
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
    fn entities_with_mail(&self) -> Vec<Entity>;

    /// Registers how messages of the type `M` become bytes and back, so that they can move with the
    /// entity for which they wait.
    ///
    /// Register the same name in all worlds between which entities move. [Packets](super::Packet) and
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
    /// use bevy_due::{message::MessageWorldExt, prelude::*};
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
    /// assert!(app.world_mut().export_entity(hero).is_ok());
    /// ```
    #[cfg(feature = "serialize")]
    #[track_caller]
    fn add_message_codec<M: Message>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        encode: impl Fn(&M) -> Result<Vec<u8>> + Send + Sync + 'static,
        decode: impl Fn(&[u8]) -> Result<M> + Send + Sync + 'static,
    );
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
        ask(self, to.into(), payload, until)
    }
}

impl MessageWorldExt for World {
    fn send<P: Payload>(
        &mut self,
        to: impl Into<Delivery>,
        payload: P,
    ) -> Result<(), SendError<P>> {
        try_send(self, to.into(), payload, Role::Plain)
    }

    fn resend(&mut self, letter: Letter) {
        if let Some(mut mailbag) = mailbag(self) {
            mailbag.queue.push_letter(letter);
        }
    }

    fn message_sender(&mut self) -> MessageSender {
        MessageSender::from_world(self)
    }

    fn close_inbox(&mut self) -> Vec<Letter> {
        close_inbox(self)
    }

    #[cfg(feature = "serialize")]
    fn entities_with_mail(&self) -> Vec<Entity> {
        entities_with_mail(self)
    }

    #[cfg(feature = "serialize")]
    fn add_message_codec<M: Message>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        encode: impl Fn(&M) -> Result<Vec<u8>> + Send + Sync + 'static,
        decode: impl Fn(&[u8]) -> Result<M> + Send + Sync + 'static,
    ) {
        add_message_codec(self, name.into(), encode, decode);
    }
}

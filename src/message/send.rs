//! Sending, asking and replying, as methods of Bevy's types.

use alloc::vec::Vec;

use bevy_ecs::{
    system::{Commands, EntityCommands},
    world::{FromWorld, World},
};

use super::{
    ask::open,
    deliver::close_inbox,
    inbox::MessageSender,
    letter::{Delivery, Letter, Undelivered},
    mailbag::{reply, send},
    request::{ReplyTo, Request, Role},
    topic::Payload,
};
use crate::timer::Timer;

/// Sends messages from systems and callbacks.
pub trait MessageCommandsExt {
    /// Sends a message to one entity, to all followers, or to one follower in turn.
    ///
    /// It is delivered in the next run of [`DueSystems::Message`](crate::DueSystems::Message). To send
    /// many messages, use an [`Outbox`](super::Outbox).
    fn send(&mut self, to: impl Into<Delivery>, payload: impl Payload);

    /// Replies to a request.
    ///
    /// If the request is complete or withdrawn, the reply is dropped, and counted in
    /// [`MessageStats::late`](super::MessageStats::late). A reply to another world must be a
    /// [`Packet`](super::Packet): otherwise Bevy's error handler gets a [`ReplyError`](super::ReplyError).
    #[doc(alias = "answer")]
    fn reply(&mut self, to: ReplyTo, payload: impl Payload);
}

/// Makes requests on behalf of an entity.
pub trait MessageEntityCommandsExt {
    /// Makes a request: sends a message, and waits for a reply until the timer fires.
    ///
    /// Every request completes exactly once: this entity gets either the first
    /// [`reply`](super::MessageContext::reply) or [`NoAnswer`](super::NoAnswer), both with the returned
    /// [`Request`]. It gets neither if it is despawned before, or if the world ends. A request without
    /// any recipient times out.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{NoAnswer, Timer, prelude::*};
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
    /// commands.entity(customer).ask(shop, Price("sword"), Timer::after_secs(2.0));
    /// app.update(); // The request is delivered, ..
    /// app.update(); // .. and then the reply.
    /// assert_eq!(app.world().get::<Purse>(customer).unwrap().0, Some(5));
    /// ```
    #[doc(alias("request", "call", "session"))]
    fn ask(&mut self, to: impl Into<Delivery>, payload: impl Payload, until: Timer) -> Request;
}

/// Sends messages, and ends the delivery, with the whole world.
pub trait MessageWorldExt {
    /// Sends a message, like [`MessageCommandsExt::send`].
    fn send(&mut self, to: impl Into<Delivery>, payload: impl Payload);

    /// Sends a message again that [`close_inbox`](Self::close_inbox) has handed back, to the same
    /// recipient. A request stays a request, and a reply a reply.
    fn resend(&mut self, undelivered: Undelivered);

    /// Returns a handle to send messages to this world from other threads.
    fn message_sender(&mut self) -> MessageSender;

    /// Refuses further messages from other threads, delivers all messages that have been sent, and
    /// returns the messages that are sent during that delivery.
    ///
    /// Call it when an app shuts down, so that no message is lost. `App::run` owns the world, so call
    /// it from a system in [`Last`](bevy_app::Last) when there is an [`AppExit`](bevy_app::AppExit)
    /// message, or call `App::update` yourself.
    ///
    /// Messages without a recipient are not returned, but counted in
    /// [`MessageStats::undeliverable`](super::MessageStats::undeliverable). Open requests stay open.
    /// Further frames can run, and the returned messages can be [sent again](Self::resend).
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Delivery, SendError, prelude::*};
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
    fn close_inbox(&mut self) -> Vec<Undelivered>;
}

impl MessageCommandsExt for Commands<'_, '_> {
    fn send(&mut self, to: impl Into<Delivery>, payload: impl Payload) {
        let letter = Letter::plain(to.into(), payload);
        self.queue(move |world: &mut World| send(world, letter));
    }

    fn reply(&mut self, to: ReplyTo, payload: impl Payload) {
        reply(self, to, payload);
    }
}

impl MessageEntityCommandsExt for EntityCommands<'_> {
    fn ask(&mut self, to: impl Into<Delivery>, payload: impl Payload, until: Timer) -> Request {
        let asker = self.id();
        let request = open(self, until);
        let reply_to = ReplyTo::here(asker, request);
        let letter = Letter::new(to.into(), payload, Role::Request(reply_to.into()));
        let mut commands = self.commands();
        commands.queue(move |world: &mut World| send(world, letter));
        request
    }
}

impl MessageWorldExt for World {
    fn send(&mut self, to: impl Into<Delivery>, payload: impl Payload) {
        send(self, Letter::plain(to.into(), payload));
    }

    fn resend(&mut self, undelivered: Undelivered) {
        send(self, undelivered.0);
    }

    fn message_sender(&mut self) -> MessageSender {
        MessageSender::from_world(self)
    }

    fn close_inbox(&mut self) -> Vec<Undelivered> {
        close_inbox(self)
    }
}

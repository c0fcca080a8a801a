//! Sending from within the world.

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::{any::Any, fmt};

use bevy_ecs::{
    error::BevyError,
    system::{Commands, Deferred, EntityCommands, SystemBuffer, SystemMeta, SystemParam},
    world::{DeferredWorld, FromWorld, World},
};

use super::{
    Address, Delivery, Inbox, Letter, Mail, MailParams, MessageSender, Parcel, Payload, ReplyTo,
    Session, StableKey, WorldLink,
    batch::Batch,
    deliver,
    inbox::Item,
    letter::{Recipient, Regarding},
    link::{Assurance, RefusedBecause, post},
    session::{Asker, NoAnswer, give_up, question},
    swap_followers,
};
use crate::{call::report, timer::Timer};

/// Sending messages from systems and handlers.
pub trait MessageCommandsExt {
    /// Sends a message: to an entity, to all that follow it, or to one of them in turn.
    ///
    /// It is delivered in the next [`DueSystems::Message`](crate::DueSystems::Message).
    fn send(&mut self, to: impl Into<Delivery>, payload: impl Payload);

    /// Answers a question.
    ///
    /// If the question has been answered already, or was given up, the answer is dropped, and
    /// counted. One to another world must be a [`Packet`](super::Packet): with another, Bevy's error handler is
    /// told.
    fn answer(&mut self, question: ReplyTo, answer: impl Payload);

    /// Sends a parcel to other worlds. One that the link refuses comes back as the message
    /// [`Refused`](super::Refused), to all here that follow that.
    fn post(&mut self, parcel: Parcel);
}

/// Asking questions as an entity.
pub trait MessageEntityCommandsExt {
    /// Asks a question: sends a message, and waits until this timer fires for an answer.
    ///
    /// Exactly one of two things is delivered to this entity, with the number that is returned: the
    /// first [`reply`](super::MessageContext::reply), or [`NoAnswer`](super::NoAnswer). If the
    /// entity is despawned meanwhile, or its world ends, neither. If there is nobody to ask, that
    /// shows when the time is up.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Timer, prelude::*};
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
    /// app.add_plugins((TimePlugin, DuePlugin));
    /// let shop = MessageComponent::new().on(|mut me: MessageContext, price: &Price| -> Result {
    ///     Ok(me.reply(Coins(price.0.len() as u32))?)
    /// });
    /// let shop = app.world_mut().spawn(shop).id();
    /// let customer = MessageComponent::new()
    ///     .on(|mut me: MessageContext, coins: &Coins| {
    ///         me.entity.get_mut::<Purse>().unwrap().0 = Some(coins.0);
    ///     })
    ///     .on(|_: MessageContext, _: &NoAnswer| println!("the shop is closed"));
    /// let customer = app.world_mut().spawn((customer, Purse(None))).id();
    ///
    /// let mut commands = app.world_mut().commands();
    /// commands.entity(customer).ask(shop, Price("sword"), Timer::after_secs(2.0));
    /// app.update(); // The question is delivered, ..
    /// app.update(); // .. and then the answer.
    /// assert_eq!(app.world().get::<Purse>(customer).unwrap().0, Some(5));
    /// ```
    fn ask(&mut self, to: impl Into<Delivery>, question: impl Payload, until: Timer) -> Session;

    /// Asks a question of other worlds: sends a parcel, and waits until this timer fires for an
    /// answer, as in [`ask`](Self::ask). If the link refuses it, that is
    /// [`NoAnswer::Refused`](super::NoAnswer::Refused).
    ///
    /// This entity needs a [`StableKey`], by which the answer finds it.
    fn ask_world(&mut self, parcel: Parcel, until: Timer) -> Session;
}

/// What can be done about messages with the whole world.
pub trait MessageWorldExt {
    /// Sends a message, as [`MessageCommandsExt::send`] does.
    fn send(&mut self, to: impl Into<Delivery>, payload: impl Payload);

    /// Sends a letter that was handed back: to whom it was for, with what it asked or answered.
    fn send_letter(&mut self, letter: Letter);

    /// Returns a handle by which other threads can send to this world.
    fn message_sender(&mut self) -> MessageSender;

    /// Takes no more messages from other threads, delivers what has been sent, and caller back what
    /// that has led to: to be done when an app is shut down, so that nothing is lost.
    ///
    /// `App::run` keeps the world to itself, so do it in a system in [`Last`](bevy_app::Last) when
    /// there is an [`AppExit`](bevy_app::AppExit) message, or call `App::update` yourself.
    ///
    /// What nobody follows is not handed back, but counted in
    /// [`MessageStats::undeliverable`](super::MessageStats). Questions that are open stay so, and
    /// nobody is told of them any more. Frames can still run, and what was handed back be
    /// [sent again](Self::send_letter).
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{SendError, prelude::*};
    /// use bevy_ecs::prelude::*;
    /// use bevy_time::TimePlugin;
    ///
    /// #[derive(Message, Debug, PartialEq)]
    /// struct Save(u32);
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin));
    /// app.world_mut().spawn(MessageComponent::new().on(|mut me: MessageContext, save: &Save| {
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
}

impl MessageCommandsExt for Commands<'_, '_> {
    fn send(&mut self, to: impl Into<Delivery>, payload: impl Payload) {
        let letter = Letter::new(to.into(), payload, Regarding::Nothing);
        self.queue(move |world: &mut World| Mail::send(world, letter));
    }

    fn answer(&mut self, question: ReplyTo, answer: impl Payload) {
        let ReplyTo { asker, session } = question.clone();
        match asker {
            Asker::Here(entity) => {
                let letter = Letter::new(entity, answer, Regarding::Answer(session));
                self.queue(move |world: &mut World| Mail::send(world, letter));
            }
            Asker::Elsewhere(Address { group, key }) => {
                self.queue(move |world: &mut World| -> bevy_ecs::error::Result {
                    question.check(&answer)?;
                    let answer = Letter::new(Recipient::Key(key), answer, Regarding::Nothing);
                    if let Some(packet) = answer.packet() {
                        let mut parcel = Parcel::new(group, key, packet.clone());
                        parcel.assurance = Assurance::Answer(session);
                        post(world, parcel);
                    }
                    Ok(())
                });
            }
        }
    }

    fn post(&mut self, parcel: Parcel) {
        self.queue(move |world: &mut World| post(world, parcel));
    }
}

impl MessageEntityCommandsExt for EntityCommands<'_> {
    fn ask(&mut self, to: impl Into<Delivery>, question: impl Payload, until: Timer) -> Session {
        let asker = self.id();
        let session = open(self, until);
        let reply_to = ReplyTo {
            asker: Asker::Here(asker),
            session,
        };
        let regarding = Regarding::Question(reply_to.into());
        let letter = Letter::new(to.into(), question, regarding);
        let mut commands = self.commands();
        commands.queue(move |world: &mut World| Mail::send(world, letter));
        session
    }

    fn ask_world(&mut self, mut parcel: Parcel, until: Timer) -> Session {
        let asker = self.id();
        let session = open(self, until);
        self.commands().queue(move |world: &mut World| {
            let key = world.get::<StableKey>(asker).copied();
            let this_world = world.get_resource_or_init::<Inbox>().world();
            let link = world.get_resource::<WorldLink>();
            let because = match (key, link) {
                (Some(key), Some(link)) => {
                    let reply_to = link.address(key);
                    let session = session.leave(this_world);
                    parcel.assurance = Assurance::Answered { reply_to, session };
                    return post(world, parcel);
                }
                (None, _) => RefusedBecause::NoKey,
                (_, None) => RefusedBecause::NoLink,
            };
            // The parcel could not say who asks.
            give_up(world, asker, session, NoAnswer::Refused(because));
        });
        session
    }
}

/// Opens a question of an entity.
fn open(asker: &mut EntityCommands, until: Timer) -> Session {
    let asked_by = asker.id();
    let mut commands = asker.commands();
    commands.spawn(question(asked_by, until)).id().into()
}

impl MessageWorldExt for World {
    fn send(&mut self, to: impl Into<Delivery>, payload: impl Payload) {
        let letter = Letter::new(to.into(), payload, Regarding::Nothing);
        Mail::send(self, letter);
    }

    fn send_letter(&mut self, letter: Letter) {
        Mail::send(self, letter);
    }

    fn message_sender(&mut self) -> MessageSender {
        MessageSender::from_world(self)
    }

    fn close_inbox(&mut self) -> Vec<Letter> {
        if let Some(inbox) = self.get_resource::<Inbox>() {
            inbox.close();
        }
        if !self.contains_resource::<Mail>() {
            return Vec::new();
        }
        if let Err(error) = deliver_all(self) {
            report::<Mail>(self, error);
        }
        Mail::hand_back(self)
    }
}

/// Does what a frame would do.
fn deliver_all(world: &mut World) -> Result<(), BevyError> {
    world.run_system_cached(swap_followers)?;
    let mut params = MailParams::new(world);
    deliver(world, &mut params)
}

/// Sends many messages: cheaper than commands, and as much in order.
///
/// They are taken up where the commands of the system are applied, in the order of the systems.
///
/// # Examples
///
/// ```
/// use bevy_due::prelude::*;
/// use bevy_ecs::prelude::*;
///
/// #[derive(Message)]
/// struct Damage(u32);
/// #[derive(Component)]
/// struct Burning(u32);
///
/// fn burn(burning: Query<(Entity, &Burning)>, mut outbox: Outbox) {
///     for (entity, burning) in &burning {
///         outbox.send(entity, Damage(burning.0));
///     }
/// }
/// # bevy_ecs::system::assert_is_system(burn);
/// ```
#[derive(SystemParam)]
pub struct Outbox<'s> {
    letters: Deferred<'s, Letters>,
}

impl Outbox<'_> {
    /// Sends a message, as [`MessageCommandsExt::send`] does.
    #[inline]
    pub fn send<P: Payload>(&mut self, to: impl Into<Delivery>, payload: P) {
        let letters = &mut self.letters.0;
        let item = match to.into() {
            Delivery::To(entity) => {
                if let Some(Item::Batch(last)) = letters.back_mut() {
                    let last: &mut dyn Any = &mut **last;
                    if let Some(last) = last.downcast_mut::<Batch<P>>() {
                        return last.push(entity, payload);
                    }
                }
                Item::Batch(Box::new(Batch::new(entity, payload)))
            }
            to => Item::Letter(Letter::new(to, payload, Regarding::Nothing)),
        };
        letters.push_back(item);
    }
}

impl fmt::Debug for Outbox<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Letters(VecDeque<Item>);

impl SystemBuffer for Letters {
    fn queue(&mut self, _: &SystemMeta, mut world: DeferredWorld) {
        if self.0.is_empty() {
            return;
        }
        let Some(mut mail) = world.get_resource_mut::<Mail>() else {
            return self.0.clear();
        };
        mail.items.append(&mut self.0);
        if mail.add_run.is_some() {
            world.commands().queue(Mail::begin_run);
        }
    }
}

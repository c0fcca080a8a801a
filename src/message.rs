//! The [`MessageComponent`]: functions of an entity that are called for the messages it follows.

mod batch;
mod dispatch;
mod hooks;
mod inbox;
mod letter;
mod link;
mod mail;
mod packet;
mod send;
mod session;
mod written;

use alloc::boxed::Box;
use core::{
    any::{Any, type_name},
    fmt,
};

use bevy_ecs::{
    component::Component,
    entity::Entity,
    error::{BevyError, CommandOutput},
    message::Message,
    system::{Commands, In, SystemId},
    world::{EntityMut, World},
};
use bevy_platform::sync::Arc;
use smallvec::SmallVec;
#[cfg(feature = "bevy_reflect")]
use {
    bevy_ecs::reflect::ReflectComponent,
    bevy_reflect::{Reflect, std_traits::ReflectDefault},
};

use crate::{
    call::{run_system, to_result},
    seat::Seat,
};
pub(crate) use dispatch::{MailParams, deliver, swap_followers};
pub(crate) use hooks::follow;
pub use inbox::{Inbox, MessageSender, SendError};
pub use letter::{Delivery, Letter, Recipient};
pub(crate) use link::bind;
pub use link::{Address, Assurance, Link, Parcel, Refused, RefusedBecause, StableKey, WorldLink};
pub(crate) use mail::Mail;
pub use mail::MessageStats;
pub use packet::{Packet, Payload};
pub use send::{MessageCommandsExt, MessageEntityCommandsExt, MessageWorldExt, Outbox};
pub use session::{NoAnswer, NotAnswerable, ReplyTo, Session};

use letter::Regarding;
use packet::{Shared, Topic};
use written::Written;

/// Calls a function of the entity for each message that it follows, in
/// [`DueSystems::Message`](crate::DueSystems::Message).
///
/// # What it follows
///
/// Messages by [type](Self::on), and [packets](Packet) by [number](Self::on_packet). Insert
/// another to have the entity follow others: from that moment the old functions are not called any
/// more, the new ones from the next frame on. What is sent to the entity in between waits for them.
///
/// # How messages come
///
/// | from | by | to whom |
/// |---|---|---|
/// | systems and handlers | [`commands.send`](MessageCommandsExt::send), or [`Outbox::send`] where there are many | as its [`Delivery`] says: one entity, all that follow it, or exactly one of these in turn |
/// | systems that know nothing of this | Bevy's `MessageWriter` | all that follow it |
/// | other threads | a [`MessageSender`] | as its [`Delivery`] says |
/// | a timer | [`TimerAction::send`](crate::TimerAction::send) | its entity, or its owner |
/// | a question | [`ask`](MessageEntityCommandsExt::ask) and [`reply`](MessageContext::reply) | who asked: the answer, or word that there is none |
/// | other worlds | a [`WorldLink`] | as the [`Parcel`] says |
///
/// What is sent before [`DueSystems::Message`](crate::DueSystems::Message) is delivered there, in
/// the order of sending; what other threads have sent comes after that, and then what Bevy's
/// writers have written, type by type. What is sent during the delivery is delivered in the next
/// frame. Whether the game is paused makes no difference.
///
/// A message to an entity that has gone, is disabled, or does not follow it is dropped, and counted
/// in [`MessageStats`].
///
/// What a function does by [commands](MessageContext::commands) is done before the next one is
/// called.
///
/// # Errors
///
/// An error that a function returns is told to Bevy's error handler, and the others go on: unless
/// that handler panics, as Bevy's own does for an error of the usual
/// [`Severity`](bevy_ecs::error::Severity). What comes from elsewhere should not end the app: give
/// such errors another one, or choose a handler that logs
/// ([`FallbackErrorHandler`](bevy_ecs::error::FallbackErrorHandler)). After a panic that somebody has
/// caught, what is left is delivered in the next frame.
///
/// # Time complexity
///
/// A message to one entity is *O*(1), one in turn *O*(log *f*) and one to all *O*(*f*) in the
/// number *f* of entities that follow it. The others are not looked at, and its payload is not copied.
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::prelude::*;
/// use bevy_ecs::prelude::*;
/// use bevy_time::TimePlugin;
///
/// #[derive(Message)]
/// struct Damage(u32);
///
/// #[derive(Component)]
/// struct Health(u32);
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin));
///
/// let hurt = MessageComponent::new().on(|mut me: MessageContext, damage: &Damage| {
///     let Some(mut health) = me.entity.get_mut::<Health>() else { return };
///     health.0 = health.0.saturating_sub(damage.0);
///     if health.0 == 0 {
///         me.commands.entity(me.entity.id()).despawn();
///     }
/// });
/// let monster = app.world_mut().spawn((Health(10), hurt.clone())).id();
/// let other = app.world_mut().spawn((Health(10), hurt)).id();
///
/// app.world_mut().commands().send(monster, Damage(7));
/// app.world_mut().commands().send(Delivery::All, Damage(3));
/// app.update();
/// assert!(app.world().get_entity(monster).is_err());
/// assert_eq!(app.world().get::<Health>(other).unwrap().0, 7);
/// ```
#[doc(alias("mailbox", "actor", "subscribe", "packet handler"))]
#[derive(Component, Clone, Default)]
#[component(immutable, on_insert = hooks::on_insert, on_discard = hooks::on_discard)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(opaque),
    reflect(Component, Clone, Debug, Default)
)]
pub struct MessageComponent {
    follows: SmallVec<[Follows; 2]>,
    seat: Seat,
}

#[derive(Clone)]
struct Follows {
    topic: Topic,
    /// What that is called.
    name: &'static str,
    handler: Handler,
    /// How to find what Bevy's writers have written of it.
    written: Option<Written>,
}

#[derive(Clone)]
enum Handler {
    Closure(Arc<Closure>),
    System {
        run: Arc<System>,
        /// Makes a clone of what Bevy's writers have written.
        share: fn(&dyn Any) -> Option<Shared>,
    },
}

type Closure = dyn Fn(MessageContext, &dyn Any) -> Result<(), BevyError> + Send + Sync;

/// Is given the message as it is shared.
type System = dyn Fn(&mut World, Entity, &Letter) -> Result<(), BevyError> + Send + Sync;

/// What a function of a [`MessageComponent`] is given beside the message.
pub struct MessageContext<'a> {
    /// The entity whose function it is, with all its components.
    pub entity: EntityMut<'a>,
    /// Commands, which are applied before the next function is called.
    pub commands: Commands<'a, 'a>,
    regarding: &'a Regarding,
}

/// What a system of a [`MessageComponent`] is given.
#[derive(Debug)]
pub struct Received<M> {
    /// The entity whose system it is.
    pub entity: Entity,
    /// The message, which others may be given, too.
    pub message: Arc<M>,
    regarding: Regarding,
}

impl MessageComponent {
    /// Creates one that follows nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Follows the messages of a type. A function that was there for it before is replaced.
    ///
    /// A closure keeps no state of its own: that belongs into components, where others can see it.
    /// It may return a `Result`. Neither need the message be added to the app, unless Bevy's
    /// writers write it.
    #[must_use]
    pub fn on<M: Message, Out: CommandOutput>(
        self,
        closure: impl Fn(MessageContext, &M) -> Out + Send + Sync + 'static,
    ) -> Self {
        let written = Some(Written::of::<M>());
        let topic = (Topic::of::<M>(), type_name::<M>());
        self.with(topic, calling(closure), written)
    }

    /// Follows the messages of a type with a one-shot system, which is given [`Received`] and
    /// may return a `Result`. It costs several times as much as a closure, and sees the whole world.
    ///
    /// A message of Bevy's writers belongs to them, so systems are given a clone, the same one for
    /// all.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::prelude::*;
    /// use bevy_ecs::prelude::*;
    ///
    /// #[derive(Message, Clone)]
    /// struct Alarm;
    ///
    /// #[derive(Component)]
    /// struct Awake;
    ///
    /// fn wake_up(In(alarm): In<Received<Alarm>>, mut commands: Commands) {
    ///     commands.entity(alarm.entity).insert(Awake);
    /// }
    ///
    /// fn post_guard(mut commands: Commands) {
    ///     let wake_up = commands.register_system(wake_up);
    ///     commands.spawn(MessageComponent::new().on_system(wake_up));
    /// }
    /// # bevy_ecs::system::assert_is_system(post_guard);
    /// ```
    #[must_use]
    pub fn on_system<M: Message + Clone>(self, system: SystemId<In<Received<M>>>) -> Self {
        let topic = (Topic::of::<M>(), type_name::<M>());
        self.with(topic, running(system), Some(Written::of::<M>()))
    }

    /// Follows the packets of a number. A function that was there for it before is replaced.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::prelude::*;
    /// use bevy_ecs::prelude::*;
    ///
    /// const LOGIN: u32 = 1;
    /// const SAY: u32 = 3;
    ///
    /// fn stranger() -> MessageComponent {
    ///     MessageComponent::new().on_packet(LOGIN, |mut me: MessageContext, packet: &Packet| {
    ///         // From the next frame on it may speak, and can't log in again.
    ///         me.commands.entity(me.entity.id()).insert((Name::new("Ada"), player()));
    ///     })
    /// }
    ///
    /// fn player() -> MessageComponent {
    ///     MessageComponent::new().on_packet(SAY, |me: MessageContext, packet: &Packet| {
    ///         let name = me.entity.get::<Name>();
    ///         println!("{name:?}: {:?}", packet.payload());
    ///     })
    /// }
    /// # World::new().spawn(stranger());
    /// ```
    #[must_use]
    pub fn on_packet<Out: CommandOutput>(
        self,
        id: u32,
        closure: impl Fn(MessageContext, &Packet) -> Out + Send + Sync + 'static,
    ) -> Self {
        self.with((Topic::Packet(id), "packet"), calling(closure), None)
    }

    /// Follows the packets of a number with a one-shot system, as [`on_system`](Self::on_system)
    /// does.
    #[must_use]
    pub fn on_packet_system(self, id: u32, system: SystemId<In<Received<Packet>>>) -> Self {
        self.with((Topic::Packet(id), "packet"), running(system), None)
    }

    fn with(
        mut self,
        (topic, name): (Topic, &'static str),
        handler: Handler,
        written: Option<Written>,
    ) -> Self {
        self.follows.retain(|follows| follows.topic != topic);
        self.follows.push(Follows {
            topic,
            name,
            handler,
            written,
        });
        self
    }

    #[inline]
    fn handler(&self, topic: Topic) -> Option<&Handler> {
        let mut follows = self.follows.iter();
        Some(&follows.find(|follows| follows.topic == topic)?.handler)
    }

    /// Returns its place in the order of inserting.
    #[inline]
    fn nth(&self) -> u64 {
        self.seat.get().map_or(u64::MAX, |(_, nth)| nth)
    }
}

fn calling<M: 'static, Out: CommandOutput>(
    closure: impl Fn(MessageContext, &M) -> Out + Send + Sync + 'static,
) -> Handler {
    let closure: Box<Closure> = Box::new(move |context, message: &dyn Any| {
        message
            .downcast_ref()
            .map_or(Ok(()), |message| to_result(closure(context, message)))
    });
    Handler::Closure(closure.into())
}

fn running<M: Clone + Send + Sync + 'static>(system: SystemId<In<Received<M>>>) -> Handler {
    let run: Box<System> = Box::new(move |world, entity, letter| {
        let Ok(message) = letter.payload.clone().downcast::<M>() else {
            return Ok(());
        };
        let regarding = letter.regarding.clone();
        let received = Received {
            entity,
            message,
            regarding,
        };
        run_system(world, system, received)
    });
    Handler::System {
        run: run.into(),
        share: |message| Some(Arc::new(message.downcast_ref::<M>()?.clone())),
    }
}

impl MessageContext<'_> {
    /// Returns the number of the question that this is, or that it answers.
    #[must_use]
    pub fn session(&self) -> Option<Session> {
        self.regarding.session()
    }

    /// Returns where to send an answer, if this is a question: for
    /// [`answer`](MessageCommandsExt::answer), now or later.
    #[must_use]
    pub fn reply_to(&self) -> Option<&ReplyTo> {
        self.regarding.reply_to()
    }

    /// Answers this question.
    ///
    /// # Errors
    ///
    /// [`NotAnswerable`] if this is no question, or if it comes from another world and the answer is
    /// no [`Packet`].
    pub fn reply(&mut self, answer: impl Payload) -> Result<(), NotAnswerable> {
        let reply_to = self.regarding.reply_to().ok_or(NotAnswerable::NoQuestion)?;
        let reply_to = reply_to.clone();
        reply_to.check(&answer)?;
        self.commands.answer(reply_to, answer);
        Ok(())
    }
}

impl<M> Received<M> {
    /// Returns the number of the question that this is, or that it answers.
    #[must_use]
    pub fn session(&self) -> Option<Session> {
        self.regarding.session()
    }

    /// Returns where to send an answer, if this is a question: for
    /// [`answer`](MessageCommandsExt::answer), now or later.
    #[must_use]
    pub fn reply_to(&self) -> Option<&ReplyTo> {
        self.regarding.reply_to()
    }
}

impl fmt::Debug for MessageComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut set = f.debug_set();
        for &Follows { topic, name, .. } in &self.follows {
            match topic {
                Topic::Type(_) => set.entry(&format_args!("{name}")),
                Topic::Packet(id) => set.entry(&format_args!("packet {id}")),
            };
        }
        set.finish()
    }
}

impl fmt::Debug for MessageContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageContext")
            .field("entity", &self.entity.id())
            .field("regarding", &self.regarding)
            .finish_non_exhaustive()
    }
}

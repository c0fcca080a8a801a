//! The component with its callbacks, and their argument.

use alloc::boxed::Box;
use core::{
    any::{Any, type_name},
    fmt,
    time::Duration,
};

use bevy_ecs::{
    error::CommandOutput, lifecycle::HookContext, prelude::*, system::SystemInput,
    world::DeferredWorld,
};
use bevy_platform::sync::Arc;
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, std_traits::ReflectDefault};
use smallvec::SmallVec;

use super::{
    mail::{Packet, Role, Topic},
    mailbag::Mailbag,
    request::{ReplyTo, Request},
    written,
};
use crate::{
    call::{queue_system, to_result, warn_of_resource},
    clock::{Age, ClockKey, ClockTable, find_clock},
    missing_plugin::warn_without_plugin,
    owner::owner_of,
};

/// Calls a per-entity callback once per message that the entity follows, in
/// [`DueSystems::Messages`](crate::DueSystems::Messages).
///
/// An entity follows messages by [type](Self::on), and [packets](Packet) by [id](Self::on_packet).
/// To change what it follows, insert another component, also from a callback. The new callbacks replace the
/// old ones at once. The new callbacks get every message not yet delivered to this entity, including ones
/// already sent. This includes the later messages of the same frame. A message to all calls each entity
/// at most once, even if the entity replaces its component midway. The entity keeps its place among the
/// followers, so messages in turn stay evenly shared.
///
/// A new follower gets every message whose delivery begins after the component was inserted.
///
/// # Sending
///
/// | from | with | to |
/// |---|---|---|
/// | systems and callbacks | [`commands.send`](super::MessageCommandsExt::send), or an [`Outbox`](super::Outbox) for many messages | its [`Delivery`](super::Delivery): one entity, all followers, or one follower in turn |
/// | systems that know nothing of this crate | Bevy's `MessageWriter` | all followers |
/// | other threads | a [`MessageSender`](super::MessageSender) | its [`Delivery`](super::Delivery) |
/// | a timer | [`TimerAction::call`](crate::TimerAction::call) with [`world.send`](super::MessageWorldExt::send) | any entity |
/// | a request | [`ask`](super::MessageEntityCommandsExt::ask) and [`reply`](MessageContext::reply) | the asking entity gets the reply, or [`NoAnswer`](super::NoAnswer) |
#[cfg_attr(
    feature = "worlds",
    doc = "| other worlds | a [`WorldLink`](crate::worlds::WorldLink) | as the [`Parcel`](crate::worlds::Parcel) says |"
)]
///
/// # Order
///
/// A message is delivered in the next run of [`DueSystems::Messages`](crate::DueSystems::Messages),
/// in the order of sending. Messages from this world come first, then messages from other threads,
/// then messages from Bevy's writers, one type at a time. A message sent during the delivery waits
/// for the next frame. The [commands](MessageContext::commands) of one callback are applied before
/// the next callback runs. Messages are delivered even while the game is paused.
///
/// A message is dropped if its entity is gone, is disabled or does not follow it. Dropped messages
/// are counted in [`MessageStats`](super::MessageStats). An entity that holds a resource is not called, and
/// a warning says so.
///
/// # Errors
///
/// An error that a callback returns is passed to Bevy's error handler, and the other callbacks run
/// as usual. Bevy's default handler panics on an error of the default
/// [`Severity`](bevy_ecs::error::Severity). Bad input from outside should not end the app: give
/// such errors a lower severity, or choose a handler that logs
/// ([`FallbackErrorHandler`](bevy_ecs::error::FallbackErrorHandler)). If a callback panics and the
/// panic is caught, the remaining messages are delivered in the next frame.
///
/// # Whole-world access
///
/// A callback sees its own entity only. To see more, queue a command, or
/// [run a system](MessageContext::run). Both run before the next callback.
///
/// # Time complexity
///
/// With *f* followers of a message: *O*(1) to send it to one entity, *O*(log *f*) to one in turn,
/// *O*(*f*) to all. Delivery in turn also skips each disabled follower, once per frame.
/// Other entities cost nothing, and the message is never cloned.
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::{
///     message::{Delivery, MessageCommandsExt},
///     prelude::*,
/// };
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
/// app.add_plugins((TimePlugin, DuePlugin::default()));
///
/// let hurt = MessageComponent::new().on(|mut me, damage: &Damage| {
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
#[component(
    immutable,
    on_insert = on_insert,
    on_discard = on_discard,
    on_remove = on_remove
)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due::message",
    reflect(opaque),
    reflect(Component, Clone, Debug, Default)
)]
pub struct MessageComponent {
    follows: SmallVec<[Follows; 2]>,
}

/// A topic that an entity follows.
#[derive(Clone)]
pub(super) struct Follows {
    pub(super) topic: Topic,
    pub(super) callback: Callback,
    /// The name of a message type, and how to start reading the messages that Bevy's writers write.
    written: Option<(&'static str, fn(&mut DeferredWorld))>,
}

impl MessageComponent {
    /// Creates a component that follows nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Follows the messages of the type `M`. Replaces the callback for that type, if any.
    ///
    /// The callback may return a `Result`. Keep its state in components, where other code can see
    /// it. `add_message::<M>()` is only required for messages from Bevy's writers.
    #[must_use]
    pub fn on<M: Message, Out: CommandOutput>(
        self,
        callback: impl Fn(MessageContext, &M) -> Out + Send + Sync + 'static,
    ) -> Self {
        self.with(Follows {
            topic: Topic::of::<M>(),
            callback: erase(callback),
            written: Some((type_name::<M>(), written::start::<M>)),
        })
    }

    /// Follows the packets with this id. Replaces the callback for that id, if any.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::{message::Packet, prelude::*};
    /// use bevy_ecs::prelude::*;
    ///
    /// const LOGIN: u32 = 1;
    /// const SAY: u32 = 3;
    ///
    /// fn stranger() -> MessageComponent {
    ///     MessageComponent::new().on_packet(LOGIN, |mut me, packet: &Packet| {
    ///         // From the next packet on, this client may speak and can't log in again.
    ///         me.commands.entity(me.entity.id()).insert((Name::new("Ada"), player()));
    ///     })
    /// }
    ///
    /// fn player() -> MessageComponent {
    ///     MessageComponent::new().on_packet(SAY, |me, packet: &Packet| {
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
        callback: impl Fn(MessageContext, &Packet) -> Out + Send + Sync + 'static,
    ) -> Self {
        self.with(Follows {
            topic: Topic::Packet(id),
            callback: erase(callback),
            written: None,
        })
    }

    fn with(mut self, follows: Follows) -> Self {
        self.follows.retain(|other| other.topic != follows.topic);
        self.follows.push(follows);
        self
    }
}

impl fmt::Debug for MessageComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut set = f.debug_set();
        for Follows { topic, written, .. } in &self.follows {
            match (topic, written) {
                (Topic::Packet(id), _) => set.entry(&format_args!("packet {id}")),
                (_, Some((name, _))) => set.entry(&format_args!("{name}")),
                (topic, None) => set.entry(topic),
            };
        }
        set.finish()
    }
}

/// Returns the place of an entity among the followers of the first topic that it follows.
#[cfg(feature = "serialize")]
pub(crate) fn turn_of(world: &World, entity: EntityRef) -> Option<u64> {
    let first = entity.get::<MessageComponent>()?.follows.first()?.topic;
    let followers = &world.get_resource::<Mailbag>()?.followers;
    followers.turn_of(first, entity.id())
}

fn on_insert(world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    follow(world, entity);
}

/// Lets `entity` follow what its `MessageComponent` says. Does nothing without the plugin.
pub(crate) fn follow(mut world: DeferredWorld, entity: Entity) {
    let Some(component) = world.get::<MessageComponent>(entity) else {
        return;
    };
    if !world.contains_resource::<Mailbag>() {
        return warn_without_plugin(&mut world, "a `MessageComponent`");
    }
    let follows = component.follows.clone();
    for (_, start) in follows.iter().filter_map(|it| it.written) {
        start(&mut world);
    }
    let owner = owner_of(world.entity(entity));
    let clock = find_clock(&mut world, entity, owner, None);
    // An unknown clock is not an error here: most callbacks need none.
    let clock = clock
        .and_then(Result::ok)
        .map(|found| (found.key, found.age));
    if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
        mailbag.followers.follow(entity, clock, &follows);
    }
    warn_of_resource::<MessageComponent>(&mut world, "MessageComponent", &[entity]);
}

/// Runs before the component is removed or replaced.
fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    if let Some(component) = world.get::<MessageComponent>(entity) {
        let topics: SmallVec<[Topic; 4]> = component.follows.iter().map(|it| it.topic).collect();
        if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
            mailbag.followers.begin_leaving(entity, topics);
        }
    }
}

/// Runs after `on_discard`, unless the component is replaced by another.
fn on_remove(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
        mailbag.followers.end_leaving(entity, |_| false);
    }
}

/// The context of a message callback: its entity, its commands and the request, if any.
pub struct MessageContext<'a> {
    /// The entity that the callback belongs to, with all its components.
    pub entity: EntityMut<'a>,
    /// Commands, which are applied before the next callback runs.
    pub commands: Commands<'a, 'a>,
    pub(super) role: &'a Role,
    pub(super) clocks: &'a ClockTable,
    pub(super) clock: &'a Option<(ClockKey, Age)>,
}

impl MessageContext<'_> {
    /// Returns the reading of the entity's clock in this run.
    ///
    /// The clock is the one of the entity or its owner ([`OnClock`](crate::OnClock)), or else the
    /// game clock. It is resolved when the component is inserted.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.clocks.shown(*self.clock)
    }

    /// Returns the request that the message makes or completes, if any.
    #[must_use]
    pub fn request(&self) -> Option<Request> {
        self.role.request()
    }

    /// Returns where to send the reply, if the message is a request. Pass it to
    /// [`commands.reply`](super::MessageCommandsExt::reply), now or later.
    #[must_use]
    pub fn reply_to(&self) -> Option<&ReplyTo> {
        self.role.reply_to()
    }

    /// Runs a system before the next callback, to reach other entities and resources, as
    /// [`UpdateContext::run`](crate::UpdateContext::run) does.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::prelude::*;
    /// use bevy_ecs::prelude::*;
    ///
    /// #[derive(Message, Clone)]
    /// struct Hit { by: Entity, damage: u32 }
    /// #[derive(Component)]
    /// struct Health(u32);
    /// #[derive(Component)]
    /// struct Score(u32);
    ///
    /// fn hurt(
    ///     In((victim, hit)): In<(Entity, Hit)>,
    ///     mut victims: Query<&mut Health>,
    ///     mut scores: Query<&mut Score>,
    /// ) -> Result {
    ///     let mut health = victims.get_mut(victim)?;
    ///     health.0 = health.0.saturating_sub(hit.damage);
    ///     scores.get_mut(hit.by)?.0 += hit.damage;
    ///     Ok(())
    /// }
    ///
    /// fn spawn_monster(mut commands: Commands) {
    ///     let ears = MessageComponent::new().on(|mut me, hit: &Hit| {
    ///         me.run(hurt, (me.entity.id(), hit.clone()));
    ///     });
    ///     commands.spawn((Health(10), ears));
    /// }
    /// # bevy_ecs::system::assert_is_system(spawn_monster);
    /// ```
    pub fn run<I, M, S>(&mut self, system: S, input: I::Inner<'static>)
    where
        I: SystemInput<Inner<'static>: Send + Sync> + Send + 'static,
        M: 'static,
        S: IntoSystem<I, (), M> + Send + 'static,
    {
        let (component, entity) = ("MessageComponent", self.entity.id());
        queue_system(&mut self.commands, component, entity, system, input);
    }
}

impl fmt::Debug for MessageContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageContext")
            .field("entity", &self.entity.id())
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

/// A callback for the messages of one topic.
pub(super) type Callback = Arc<dyn Fn(MessageContext, &dyn Any) -> Result + Send + Sync>;

/// Erases the type of the messages of a callback.
fn erase<M: 'static, Out: CommandOutput>(
    callback: impl Fn(MessageContext, &M) -> Out + Send + Sync + 'static,
) -> Callback {
    // Not `Arc::new`, which can't make an `Arc<dyn ..>` on platforms without atomics.
    let erased: Box<dyn Fn(MessageContext, &dyn Any) -> Result + Send + Sync> =
        Box::new(move |context, message| {
            message
                .downcast_ref()
                .map_or(Ok(()), |message| to_result(callback(context, message)))
        });
    erased.into()
}

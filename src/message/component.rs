//! The component, and the hooks that keep the followers in step with the world.

use core::{any::type_name, fmt};

use bevy_ecs::{error::CommandOutput, lifecycle::HookContext, prelude::*, world::DeferredWorld};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, std_traits::ReflectDefault};
use smallvec::SmallVec;

use super::{
    context::{Callback, MessageContext},
    followers::Followers,
    packet::Packet,
    topic::Topic,
    written::TypeReader,
};
use crate::{
    clock::find_clock, missing_plugin::warn_without_plugin, owner::owner_of, roster::Intake,
    seat::Seat,
};

/// Calls a per-entity callback once per message that the entity follows, in
/// [`DueSystems::Messages`](crate::DueSystems::Messages).
///
/// An entity follows messages by [type](Self::on), and [packets](Packet) by [id](Self::on_packet).
/// To change what it follows, insert another component. The old callbacks stop immediately. The new
/// ones start with the next delivery, and the entity then gets the messages that came in between:
/// messages to it, to all, or in turn. Messages from Bevy's writers cannot wait: the new callbacks
/// get them at once.
///
/// # Sending
///
/// | from | with | to |
/// |---|---|---|
/// | systems and callbacks | [`commands.send`](crate::DueCommandsExt::send), or an [`Outbox`](super::Outbox) for many messages | its [`Delivery`](super::Delivery): one entity, all followers, or one follower in turn |
/// | systems that know nothing of this crate | Bevy's `MessageWriter` | all followers |
/// | other threads | a [`MessageSender`](super::MessageSender) | its [`Delivery`](super::Delivery) |
/// | a timer | [`TimerAction::call`](crate::TimerAction::call) with `world.send` | any entity |
/// | a request | [`ask`](crate::MessageEntityCommandsExt::ask) and [`reply`](MessageContext::reply) | the asking entity gets the reply, or [`NoAnswer`](super::NoAnswer) |
#[cfg_attr(
    feature = "worlds",
    doc = "| other worlds | a [`WorldLink`](crate::WorldLink) | as the [`Parcel`](crate::Parcel) says |"
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
/// are counted in [`MessageStats`](super::MessageStats).
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
/// *O*(*f*) to all. In each frame, the messages in turn also pass over each disabled follower once.
/// Other entities cost nothing, and the message is never cloned.
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::{Delivery, prelude::*};
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
    type_path = "bevy_due",
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
    callback: Callback,
    /// The name of a message type, and a reader of the messages that Bevy's writers write.
    written: Option<(&'static str, TypeReader)>,
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
            callback: Callback::new(callback),
            written: Some((type_name::<M>(), TypeReader::of::<M>())),
        })
    }

    /// Follows the packets with this id. Replaces the callback for that id, if any.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::{Packet, prelude::*};
    /// use bevy_ecs::prelude::*;
    ///
    /// const LOGIN: u32 = 1;
    /// const SAY: u32 = 3;
    ///
    /// fn stranger() -> MessageComponent {
    ///     MessageComponent::new().on_packet(LOGIN, |mut me, packet: &Packet| {
    ///         // From the next frame on, this client may speak and can't log in again.
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
            callback: Callback::new(callback),
            written: None,
        })
    }

    fn with(mut self, follows: Follows) -> Self {
        self.follows.retain(|other| other.topic != follows.topic);
        self.follows.push(follows);
        self
    }

    /// Returns `true` if the component takes part in this run: its number is below `joined`.
    pub(super) fn has_joined(&self, joined: u64) -> bool {
        self.seat.get().is_some_and(|(_, number)| number < joined)
    }

    fn topics(&self) -> SmallVec<[Topic; 4]> {
        self.follows.iter().map(|follows| follows.topic).collect()
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

fn on_insert(world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    follow(world, entity);
}

/// Adds the `MessageComponent` of `entity` for the next run. Does nothing without the plugin.
pub(crate) fn follow(mut world: DeferredWorld, entity: Entity) {
    let Some(component) = world.get::<MessageComponent>(entity) else {
        return;
    };
    let follows = component.follows.clone();
    for Follows { topic, written, .. } in &follows {
        if let Some((_, reader)) = written {
            reader.start(*topic, &mut world);
        }
    }
    let owner = owner_of(world.entity(entity));
    let clock = find_clock(&mut world, entity, owner, None);
    // An unknown clock is not an error here: most callbacks need none.
    let clock = clock
        .and_then(Result::ok)
        .map(|found| (found.key, found.age));
    let Some(mut intake) = world.get_resource_mut::<Intake>() else {
        return warn_without_plugin(&mut world, "a `MessageComponent`");
    };
    let number = intake.next_number();
    let Some(mut followers) = world.get_resource_mut::<Followers>() else {
        return;
    };
    let callbacks = follows.into_iter();
    let callbacks = callbacks.map(|follows| (follows.topic, follows.callback));
    followers.add(number, entity, clock, callbacks);
    if let Some(component) = world.get::<MessageComponent>(entity) {
        component.seat.set(0, number);
    }
}

fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let Some(component) = world.get::<MessageComponent>(entity) else {
        return;
    };
    let (seat, topics) = (component.seat.take(), component.topics());
    if let Some((_, number)) = seat
        && let Some(mut followers) = world.get_resource_mut::<Followers>()
    {
        followers.leave(entity, topics.into_iter(), number);
    }
}

/// Runs after `on_discard`, unless the component is replaced by another.
fn on_remove(mut world: DeferredWorld, _: HookContext) {
    if let Some(mut followers) = world.get_resource_mut::<Followers>() {
        followers.forget_leaving();
    }
}

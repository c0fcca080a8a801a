//! The callbacks of a `MessageComponent`, and their argument.

use alloc::boxed::Box;
use core::{any::Any, fmt, time::Duration};

use bevy_ecs::{error::CommandOutput, prelude::*, system::SystemInput};
use bevy_platform::sync::Arc;

use super::{
    letter::Role,
    request::{ReplyTo, Request},
    topic::Topic,
};
use crate::{
    call::{queue_system, to_result},
    clock::{Age, ClockKey, ClockTable},
};

/// The context of a message callback: its entity, its commands and the request, if any.
pub struct MessageContext<'a> {
    /// The entity that the callback belongs to, with all its components.
    pub entity: EntityMut<'a>,
    /// Commands, which are applied before the next callback runs.
    pub commands: Commands<'a, 'a>,
    pub(super) role: &'a Role,
    clocks: &'a ClockTable,
    clock: &'a Option<(ClockKey, Age)>,
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
    /// [`commands.reply`](crate::DueCommandsExt::reply), now or later.
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
        let entity = self.entity.id();
        queue_system(
            &mut self.commands,
            "MessageComponent",
            entity,
            system,
            input,
        );
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

/// A message as a callback receives it.
#[derive(Clone, Copy)]
pub(super) struct Incoming<'a> {
    pub(super) topic: Topic,
    pub(super) message: &'a dyn Any,
    pub(super) role: &'a Role,
    pub(super) clocks: &'a ClockTable,
}

/// A callback for the messages of one topic.
#[derive(Clone)]
pub(super) struct Callback(Arc<Erased>);

type Erased = dyn Fn(MessageContext, &dyn Any) -> Result + Send + Sync;

impl Callback {
    /// Wraps a callback for messages of the type `M`.
    pub(super) fn new<M: 'static, Out: CommandOutput>(
        callback: impl Fn(MessageContext, &M) -> Out + Send + Sync + 'static,
    ) -> Self {
        // Not `Arc::new`, which can't make an `Arc<dyn ..>` on platforms without atomics.
        let erased: Box<Erased> = Box::new(move |context, message| {
            message
                .downcast_ref()
                .map_or(Ok(()), |message| to_result(callback(context, message)))
        });
        Self(erased.into())
    }

    #[inline]
    pub(super) fn call<'a>(
        &self,
        entity: EntityMut<'a>,
        commands: Commands<'a, 'a>,
        incoming: Incoming<'a>,
        clock: &'a Option<(ClockKey, Age)>,
    ) -> Result {
        let context = MessageContext {
            entity,
            commands,
            role: incoming.role,
            clocks: incoming.clocks,
            clock,
        };
        (self.0)(context, incoming.message)
    }
}

//! The extension trait of [`EntityCommands`].

use alloc::borrow::Cow;
use core::time::Duration;

use bevy_ecs::{bundle::Bundle, error::BevyError, system::EntityCommands, world::World};

use crate::{
    owner::OwnedBy,
    timer::{Keyed, Move, cancel_all, cancel_keyed, delay_all, move_deadline},
};

/// Changes the timers of an entity from a system.
///
/// Systems with exclusive access use [`DueEntityWorldMutExt`](crate::DueEntityWorldMutExt).
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
///
/// #[derive(Component)]
/// struct Boss;
///
/// fn silence(boss: Single<Entity, With<Boss>>, mut commands: Commands) {
///     let mut boss = commands.entity(*boss);
///     boss.cancel_timer("fireball");
///     boss.delay_timers_by(Duration::from_secs(5));
///     boss.set_timer("wake up", Timer::after_secs(5.0)).observe(|_: On<TimerFired>| {});
/// }
/// # bevy_ecs::system::assert_is_system(silence);
/// ```
pub trait DueEntityCommandsExt {
    /// Spawns a timer that belongs to this entity, under a [key](Keyed), and returns the commands of the
    /// timer's entity.
    ///
    /// The earlier timer with this key, if any, is cancelled. If this entity has despawned by then, the
    /// timer never fires and despawns in the next run.
    fn set_timer(
        &mut self,
        key: impl Into<Cow<'static, str>>,
        timer: impl Bundle,
    ) -> EntityCommands<'_>;

    /// Cancels the timer of this entity with this key, if any.
    fn cancel_timer(&mut self, key: impl Into<Cow<'static, str>>) -> &mut Self;

    /// Cancels all timers of this entity: its own, and those that belong to it.
    ///
    /// A [`DespawnAfter`](crate::DespawnAfter) and open requests stay. To spare timers of your own,
    /// mark them with a component, and despawn the others of [`Owned`](crate::Owned) yourself.
    fn cancel_timers(&mut self) -> &mut Self;

    /// Moves the deadline of the timer on this entity, as
    /// [`DueEntityWorldMutExt::reschedule`](crate::DueEntityWorldMutExt::reschedule) does.
    ///
    /// If the entity has no armed timer, Bevy's error handler gets a warning.
    fn reschedule(&mut self, deadline: Duration) -> &mut Self;

    /// Delays the timer on this entity.
    ///
    /// If the entity has no armed timer, Bevy's error handler gets a warning.
    fn delay_by(&mut self, by: Duration) -> &mut Self;

    /// Delays all timers of this entity: its own, and those that belong to it.
    fn delay_timers_by(&mut self, by: Duration) -> &mut Self;
}

impl DueEntityCommandsExt for EntityCommands<'_> {
    fn set_timer(
        &mut self,
        key: impl Into<Cow<'static, str>>,
        timer: impl Bundle,
    ) -> EntityCommands<'_> {
        let owner = OwnedBy(self.id());
        let commands = self.commands_mut();
        let timer = commands.spawn((owner, Keyed::new(key), timer)).id();
        commands.entity(timer)
    }

    fn cancel_timer(&mut self, key: impl Into<Cow<'static, str>>) -> &mut Self {
        let (owner, key) = (self.id(), key.into());
        self.commands().queue(move |world: &mut World| {
            cancel_keyed(world, owner, &key);
        });
        self
    }

    fn cancel_timers(&mut self) -> &mut Self {
        let owner = self.id();
        self.commands()
            .queue(move |world: &mut World| cancel_all(world, owner));
        self
    }

    fn reschedule(&mut self, deadline: Duration) -> &mut Self {
        queue_move(self, Move::To(deadline))
    }

    fn delay_by(&mut self, by: Duration) -> &mut Self {
        queue_move(self, Move::By(by))
    }

    fn delay_timers_by(&mut self, by: Duration) -> &mut Self {
        let owner = self.id();
        self.commands()
            .queue(move |world: &mut World| delay_all(world, owner, by));
        self
    }
}

fn queue_move<'a, 'b>(
    commands: &'a mut EntityCommands<'b>,
    to: Move,
) -> &'a mut EntityCommands<'b> {
    let entity = commands.id();
    commands.commands().queue(move |world: &mut World| {
        // A timer that has fired meanwhile is normal, and no reason to panic.
        move_deadline(world, entity, to).map_err(BevyError::warning)
    });
    commands
}

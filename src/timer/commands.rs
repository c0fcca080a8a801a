//! The same from systems.

use alloc::borrow::Cow;
use core::time::Duration;

use bevy_ecs::{bundle::Bundle, error::BevyError, system::EntityCommands, world::World};

use super::{Keyed, NoSuchTimer, TimerOf, TimerWorldExt};

/// What a system can do to the timers of an entity.
///
/// Moving the deadline of a timer that is not armed any more is told to Bevy's error handler, as a
/// warning.
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
pub trait TimerEntityCommandsExt {
    /// Spawns a timer of this entity under a key, and cancels the earlier one of that key: see
    /// [`Keyed`]. Returns the commands of the timer. If this entity has gone, the timer never fires.
    fn set_timer(
        &mut self,
        key: impl Into<Cow<'static, str>>,
        timer: impl Bundle,
    ) -> EntityCommands<'_>;

    /// Cancels the timer of this entity that has this key, if there is one.
    fn cancel_timer(&mut self, key: impl Into<Cow<'static, str>>) -> &mut Self;

    /// Cancels all timers of this entity, as in [`TimerWorldExt::cancel_timers`].
    fn cancel_timers(&mut self) -> &mut Self;

    /// Cancels all timers of this entity, also those that would survive that.
    fn force_cancel_timers(&mut self) -> &mut Self;

    /// Moves the deadline of the timer on this entity, as in [`TimerWorldExt::reschedule`].
    fn reschedule(&mut self, deadline: Duration) -> &mut Self;

    /// Puts the deadline of the timer on this entity off by a while, as in
    /// [`TimerWorldExt::delay_by`].
    fn delay_by(&mut self, by: Duration) -> &mut Self;

    /// Puts the deadlines of all timers of this entity off by a while, as in
    /// [`TimerWorldExt::delay_timers_by`].
    fn delay_timers_by(&mut self, by: Duration) -> &mut Self;
}

impl TimerEntityCommandsExt for EntityCommands<'_> {
    fn set_timer(
        &mut self,
        key: impl Into<Cow<'static, str>>,
        timer: impl Bundle,
    ) -> EntityCommands<'_> {
        let owner = TimerOf(self.id());
        let commands = self.commands_mut();
        let timer = commands.spawn((owner, Keyed::new(key), timer)).id();
        commands.entity(timer)
    }

    fn cancel_timer(&mut self, key: impl Into<Cow<'static, str>>) -> &mut Self {
        let (owner, key) = (self.id(), key.into());
        self.commands().queue(move |world: &mut World| {
            world.cancel_timer(owner, &key);
        });
        self
    }

    fn cancel_timers(&mut self) -> &mut Self {
        let owner = self.id();
        self.commands()
            .queue(move |world: &mut World| world.cancel_timers(owner));
        self
    }

    fn force_cancel_timers(&mut self) -> &mut Self {
        let owner = self.id();
        self.commands()
            .queue(move |world: &mut World| world.force_cancel_timers(owner));
        self
    }

    fn reschedule(&mut self, deadline: Duration) -> &mut Self {
        let entity = self.id();
        self.commands()
            .queue(move |world: &mut World| warn(world.reschedule(entity, deadline)));
        self
    }

    fn delay_by(&mut self, by: Duration) -> &mut Self {
        let entity = self.id();
        self.commands()
            .queue(move |world: &mut World| warn(world.delay_by(entity, by)));
        self
    }

    fn delay_timers_by(&mut self, by: Duration) -> &mut Self {
        let owner = self.id();
        self.commands()
            .queue(move |world: &mut World| world.delay_timers_by(owner, by));
        self
    }
}

/// That a timer has fired meanwhile is no reason to panic, as Bevy would.
fn warn(result: Result<(), NoSuchTimer>) -> Result<(), BevyError> {
    result.map_err(BevyError::warning)
}

//! The extension trait of [`EntityWorldMut`].

use alloc::borrow::Cow;
use core::time::Duration;

use bevy_ecs::prelude::*;

use crate::{
    owner::OwnedBy,
    timer::{Keyed, Move, NoSuchTimer, cancel_all, cancel_keyed, delay_all, move_deadline},
};

/// Changes the timers of an entity with exclusive access to the world.
///
/// Systems use [`DueEntityCommandsExt`](crate::DueEntityCommandsExt).
pub trait DueEntityWorldMutExt {
    /// Spawns a timer that belongs to this entity, under a [key](Keyed), and returns the timer's
    /// entity.
    ///
    /// The earlier timer with this key, if any, is cancelled.
    fn set_timer(&mut self, key: impl Into<Cow<'static, str>>, timer: impl Bundle) -> Entity;

    /// Cancels the timer of this entity with this key, and returns `true` if there was one.
    fn cancel_timer(&mut self, key: &str) -> bool;

    /// Cancels all timers of this entity, as
    /// [`DueEntityCommandsExt::cancel_timers`](crate::DueEntityCommandsExt::cancel_timers) does.
    fn cancel_timers(&mut self) -> &mut Self;

    /// Moves the deadline of the timer on this entity to `deadline`, as the timer's clock shows it.
    ///
    /// The timer gets a new place in the order of equal deadlines, as if it had just been armed.
    /// The timer keeps its count, and stays paused if it is paused. A deadline in the past fires in
    /// the next run, never inside this call. [`ArmedTimers::keyed`](crate::ArmedTimers::keyed)
    /// finds the entity of a keyed timer.
    ///
    /// # Errors
    ///
    /// Returns [`NoSuchTimer`] if this entity has no armed timer.
    ///
    /// # Time complexity
    ///
    /// *O*(1), plus *O*(log *n*) in the next run.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use bevy_app::prelude::*;
    /// use bevy_due::{DueEntityWorldMutExt, NoSuchTimer, Timer, prelude::*};
    /// use bevy_time::TimePlugin;
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default()));
    /// let mut bus = app.world_mut().spawn(Timer::after_secs(60.0));
    /// assert!(bus.reschedule(Duration::from_secs(90)).is_ok());
    ///
    /// let mut stop = app.world_mut().spawn_empty();
    /// assert_eq!(stop.reschedule(Duration::ZERO), Err(NoSuchTimer(stop.id())));
    /// ```
    fn reschedule(&mut self, deadline: Duration) -> Result<(), NoSuchTimer>;

    /// Delays the timer on this entity by `by`, under the rules of
    /// [`reschedule`](Self::reschedule).
    ///
    /// # Errors
    ///
    /// Returns [`NoSuchTimer`] if this entity has no armed timer.
    fn delay_by(&mut self, by: Duration) -> Result<(), NoSuchTimer>;

    /// Delays the timer on this entity and all timers that belong to it.
    fn delay_timers_by(&mut self, by: Duration) -> &mut Self;
}

impl DueEntityWorldMutExt for EntityWorldMut<'_> {
    fn set_timer(&mut self, key: impl Into<Cow<'static, str>>, timer: impl Bundle) -> Entity {
        let owner = OwnedBy(self.id());
        let keyed = Keyed::new(key);
        self.world_scope(|world| {
            let timer = world.spawn((owner, keyed, timer)).id();
            world.flush();
            timer
        })
    }

    fn cancel_timer(&mut self, key: &str) -> bool {
        let owner = self.id();
        self.world_scope(|world| cancel_keyed(world, owner, key))
    }

    fn cancel_timers(&mut self) -> &mut Self {
        let owner = self.id();
        self.world_scope(|world| cancel_all(world, owner));
        self
    }

    fn reschedule(&mut self, deadline: Duration) -> Result<(), NoSuchTimer> {
        let entity = self.id();
        self.world_scope(|world| move_deadline(world, entity, Move::To(deadline)))
    }

    fn delay_by(&mut self, by: Duration) -> Result<(), NoSuchTimer> {
        let entity = self.id();
        self.world_scope(|world| move_deadline(world, entity, Move::By(by)))
    }

    fn delay_timers_by(&mut self, by: Duration) -> &mut Self {
        let owner = self.id();
        self.world_scope(|world| delay_all(world, owner, by));
        self
    }
}

//! The extension trait of [`EntityWorldMut`].

use core::time::Duration;

use bevy_ecs::prelude::*;

use crate::{
    pause::pause_for,
    timer::{
        DespawnAfter, IntoKey, NoSuchTimer, Seconds, Timer, TimerBundle, TimerMut, arm_keyed,
        cancel_all, cancel_keyed, change_keyed, change_timer, delay_all, insert_for, refresh_keyed,
        set_keyed,
    },
};

/// Changes the timers of an entity with exclusive access to the world.
///
/// Systems use [`DueEntityCommandsExt`](crate::DueEntityCommandsExt).
pub trait DueEntityWorldMutExt {
    /// Spawns a timer that belongs to this entity, under a [key](crate::Keyed), as
    /// [`DueEntityCommandsExt::set_timer`](crate::DueEntityCommandsExt::set_timer) does.
    #[track_caller]
    fn set_timer(&mut self, key: impl IntoKey, timer: impl TimerBundle) -> &mut Self;

    /// Sets a timer or refreshes it, as
    /// [`DueEntityCommandsExt::refresh_timer`](crate::DueEntityCommandsExt::refresh_timer) does.
    #[track_caller]
    fn refresh_timer(&mut self, key: impl IntoKey, timer: impl TimerBundle) -> &mut Self;

    /// Pauses this entity for `duration` on its clock, as
    /// [`DueEntityCommandsExt::pause_for`](crate::DueEntityCommandsExt::pause_for) does.
    fn pause_for(&mut self, duration: Duration) -> &mut Self;

    /// Pauses this entity for a number of seconds, as [`pause_for`](Self::pause_for) does.
    ///
    /// # Panics
    ///
    /// Panics if `secs` is negative, infinite or not a number.
    #[track_caller]
    fn pause_for_secs(&mut self, secs: impl Seconds) -> &mut Self;

    /// Inserts a component, and removes it after `time` on this entity's clock, as
    /// [`DueEntityCommandsExt::insert_for`](crate::DueEntityCommandsExt::insert_for) does.
    #[track_caller]
    fn insert_for(&mut self, time: Duration, component: impl Component) -> &mut Self;

    /// Inserts a component, and removes it after a number of seconds, as
    /// [`insert_for`](Self::insert_for) does.
    ///
    /// # Panics
    ///
    /// Panics if `secs` is negative, infinite or not a number.
    #[track_caller]
    fn insert_for_secs(&mut self, secs: impl Seconds, component: impl Component) -> &mut Self;

    /// Cancels the timer of this entity with this key, and returns `true` if there was one.
    fn cancel_timer(&mut self, key: impl IntoKey) -> bool;

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
    /// let error = NoSuchTimer { entity: stop.id(), key: None };
    /// assert_eq!(stop.reschedule(Duration::ZERO), Err(error));
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

    /// Changes the timer on this entity.
    ///
    /// # Errors
    ///
    /// Returns [`NoSuchTimer`] if this entity has no armed timer.
    fn change_own_timer(&mut self, change: impl FnOnce(&mut TimerMut)) -> Result<(), NoSuchTimer>;

    /// Changes the timer of this entity with this key.
    ///
    /// # Errors
    ///
    /// Returns [`NoSuchTimer`] if this entity has no armed timer with this key.
    fn change_timer(
        &mut self,
        key: impl IntoKey,
        change: impl FnOnce(&mut TimerMut),
    ) -> Result<(), NoSuchTimer>;
}

impl DueEntityWorldMutExt for EntityWorldMut<'_> {
    fn set_timer(&mut self, key: impl IntoKey, timer: impl TimerBundle) -> &mut Self {
        set_keyed(self, key, timer);
        self
    }

    fn refresh_timer(&mut self, key: impl IntoKey, timer: impl TimerBundle) -> &mut Self {
        let owner = self.id();
        let name = key.name();
        let arm = arm_keyed(owner, key, timer);
        self.world_scope(|world| refresh_keyed(world, owner, &name, arm));
        self
    }

    fn pause_for(&mut self, duration: Duration) -> &mut Self {
        let target = self.id();
        self.world_scope(|world| pause_for(world, target, DespawnAfter::new(duration)));
        self
    }

    fn pause_for_secs(&mut self, secs: impl Seconds) -> &mut Self {
        self.pause_for(Timer::after_secs(secs).delay())
    }

    fn insert_for(&mut self, time: Duration, component: impl Component) -> &mut Self {
        let entity = self.id();
        let insert = insert_for(time, component);
        self.world_scope(|world| {
            if let Ok(entity) = world.get_entity_mut(entity) {
                insert.apply(entity);
            }
            world.flush();
        });
        self
    }

    fn insert_for_secs(&mut self, secs: impl Seconds, component: impl Component) -> &mut Self {
        self.insert_for(Timer::after_secs(secs).delay(), component)
    }

    fn cancel_timer(&mut self, key: impl IntoKey) -> bool {
        let owner = self.id();
        self.world_scope(|world| cancel_keyed(world, owner, &key))
    }

    fn cancel_timers(&mut self) -> &mut Self {
        let owner = self.id();
        self.world_scope(|world| cancel_all(world, owner));
        self
    }

    fn reschedule(&mut self, deadline: Duration) -> Result<(), NoSuchTimer> {
        self.change_own_timer(|timer| timer.reschedule(deadline))
    }

    fn delay_by(&mut self, by: Duration) -> Result<(), NoSuchTimer> {
        self.change_own_timer(|timer| timer.delay_by(by))
    }

    fn delay_timers_by(&mut self, by: Duration) -> &mut Self {
        let owner = self.id();
        self.world_scope(|world| delay_all(world, owner, by));
        self
    }

    fn change_own_timer(&mut self, change: impl FnOnce(&mut TimerMut)) -> Result<(), NoSuchTimer> {
        let entity = self.id();
        self.world_scope(|world| change_timer(world, entity, change))
    }

    fn change_timer(
        &mut self,
        key: impl IntoKey,
        change: impl FnOnce(&mut TimerMut),
    ) -> Result<(), NoSuchTimer> {
        let owner = self.id();
        self.world_scope(|world| change_keyed(world, owner, key, change))
    }
}

//! The extension traits of [`EntityCommands`] and [`EntityWorldMut`].

use bevy_ecs::{
    bundle::InsertMode,
    error::{CommandOutput, Severity},
    prelude::*,
    system::entity_command,
};

use crate::{
    clock::{Clock, ClockMut, change_clock},
    pause::pause_for,
    report::report,
    timer::{
        DespawnAfter, IntoDuration, IntoKey, NoSuchTimer, Timer, TimerBundle, TimerMut, cancel_all,
        cancel_keyed, change_keyed, change_timer, delay_all, insert_for, insert_keyed, keyed,
        refresh_keyed, set_keyed,
    },
};

/// Changes the timers of an entity from a system.
///
/// To make requests, see [`MessageEntityCommandsExt`](crate::message::MessageEntityCommandsExt).
///
/// # Examples
///
/// ```
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
///
/// #[derive(Component)]
/// struct Boss;
///
/// fn silence(boss: Single<Entity, With<Boss>>, mut commands: Commands) {
///     let mut boss = commands.entity(*boss);
///     boss.cancel_timer("fireball");
///     boss.delay_timers_by(5.0);
///     boss.set_timer("wake up", Timer::after(5.0));
/// }
/// # bevy_ecs::system::assert_is_system(silence);
/// ```
pub trait DueEntityCommandsExt {
    /// Spawns a timer that belongs to this entity, under a [key](crate::timer::Keyed).
    ///
    /// The key is a type that implements [`TimerKey`](crate::TimerKey), whose component is inserted
    /// on the timer's entity, or a string. `timer` is a [`Timer`](crate::Timer), or a tuple of a
    /// `Timer` and further components of the timer's entity. The method returns the commands of
    /// this entity, so calls chain.
    ///
    /// The earlier timer with this key, if any, is cancelled. If this entity no longer exists when
    /// the commands are applied, the timer never fires.
    ///
    /// To react, observe [`OwnedTimerFired`](crate::OwnedTimerFired) on this entity, once. The
    /// observer sees all further timers, too. To observe the timer's entity instead, spawn it yourself:
    /// `commands.spawn((OwnedBy(boss), Keyed::new(Meteor), timer)).observe(..)`.
    #[track_caller]
    fn set_timer(&mut self, key: impl IntoKey, timer: impl TimerBundle) -> &mut Self;

    /// Inserts a component, and removes it after `time`.
    ///
    /// The time counts on the clock of this entity's timers, or, if the entity has its own
    /// [`Clock`](crate::Clock), on the parent of that one. So neither a slow nor a pause of the entity
    /// prolongs it: its timer [runs while it is paused](crate::timer::RunsWhilePaused).
    ///
    /// The time is a `Duration`, a number of seconds, or a [`DespawnAfter`](crate::DespawnAfter). In a handler, a time
    /// that counts [since](crate::DespawnAfter::since) the deadline is as long in a long frame as in a short one.
    ///
    /// If the component is inserted again with this method, the later end counts: the time is never
    /// shortened. A plain `insert` changes the value, but not the end. If you remove the component, its
    /// timer ends; inserting it again with `insert` makes it permanent. If it was already permanent, this
    /// call only changes its value.
    ///
    /// The timer belongs to this entity, and despawns with it. The timer survives
    /// [`cancel_timers`](Self::cancel_timers). Its key is `core::any::type_name::<C>()`, also if the
    /// component is a [`TimerKey`](crate::TimerKey). Cancelling it removes the component at once.
    ///
    /// The timer is data: it holds the name `core::any::type_name::<C>()`. A world that loads it finds
    /// the component if its type is a saved component, if it is registered for reflection under this name as its
    /// type path, or if this method has already inserted one there. Otherwise Bevy's error handler gets an error
    /// that names the component, and the component stays. `#[derive(Reflect)]` gives a type this type
    /// path, unless you set another or declare the type in a function.
    ///
    /// The name must be unique: another type with the same name is an error, and is not inserted.
    ///
    /// For [`Paused`](crate::Paused), this is [`pause_for`](Self::pause_for). `Disabled` is an error,
    /// because the timers of a disabled entity stop.
    ///
    /// # Panics
    ///
    /// Panics if `time` is a negative, infinite or invalid number.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::{any::type_name, time::Duration};
    /// use bevy_due::{ArmedTimers, prelude::*};
    /// use bevy_ecs::prelude::*;
    ///
    /// #[derive(Component)]
    /// struct Invincible;
    /// #[derive(Component)]
    /// struct Hero;
    ///
    /// fn respawn(hero: Single<Entity, With<Hero>>, mut commands: Commands) {
    ///     commands.entity(*hero).insert_for(3.0, Invincible);
    /// }
    ///
    /// fn invincible_for(hero: Single<Entity, With<Hero>>, timers: ArmedTimers) -> Duration {
    ///     let timer = timers.keyed(*hero, type_name::<Invincible>());
    ///     timer.map_or(Duration::ZERO, |timer| timer.remaining)
    /// }
    /// # bevy_ecs::system::assert_is_system(respawn);
    /// # bevy_ecs::system::assert_is_system(invincible_for);
    /// ```
    #[track_caller]
    #[doc(alias("timed", "buff", "temporary"))]
    fn insert_for<C: Component>(
        &mut self,
        time: impl Into<DespawnAfter>,
        component: C,
    ) -> &mut Self {
        let time = time.into();
        // Bevy notes the caller as the place that inserts it.
        let insert = entity_command::insert(component, InsertMode::Replace);
        self.with_world(move |world, owner| insert_for::<C>(world, owner, time, insert))
    }

    /// Cancels the timer of this entity with this key, if any.
    ///
    /// If the key is a string literal that no timer has ever had, Bevy's error handler gets a warning, once:
    /// it may be misspelt.
    fn cancel_timer(&mut self, key: impl IntoKey) -> &mut Self {
        self.with_world(move |world, owner| _ = cancel_keyed(world, owner, &key))
    }

    /// Sets a timer, as [`set_timer`](Self::set_timer) does, or refreshes the one that has the key.
    ///
    /// If a timer with this key is armed, it keeps its settings and its components, and `timer` is dropped:
    ///
    /// - A periodic timer gets all its firings again, and keeps its next deadline. A poison that hits again
    ///   and again therefore keeps ticking. In contrast, `set_timer` starts the interval over.
    /// - A one-shot timer waits for its whole delay again: a buff is extended. Unlike after `set_timer`,
    ///   no timer was cancelled.
    ///
    /// A paused timer stays paused. To take the settings of `timer`, too, use `set_timer`. To take some of
    /// them, use [`change_timer`](Self::change_timer).
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Timer, prelude::*};
    /// use bevy_ecs::prelude::*;
    /// use bevy_time::{TimePlugin, TimeUpdateStrategy};
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default()))
    ///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(200)));
    /// app.update(); // Bevy's first frame takes no time.
    /// let hero = app.world_mut().spawn_empty().id();
    /// for _ in 0..2 {
    ///     let mut commands = app.world_mut().commands();
    ///     commands
    ///         .entity(hero)
    ///         .refresh_timer("poison", Timer::every(0.5).times(6))
    ///         .refresh_timer("haste", Timer::after(4.0));
    ///     app.update();
    /// }
    ///
    /// app.world_mut().with_timers(|timers| {
    ///     let poison = timers.keyed(hero, "poison").unwrap();
    ///     assert_eq!(poison.remaining, Duration::from_millis(100), "it keeps its rhythm");
    ///     let haste = timers.keyed(hero, "haste").unwrap();
    ///     assert_eq!(haste.remaining, Duration::from_millis(3800), "it started over");
    /// });
    /// ```
    #[track_caller]
    fn refresh_timer(&mut self, key: impl IntoKey, timer: impl TimerBundle) -> &mut Self {
        let (key, insert) = insert_keyed(self.entity(), key, timer);
        self.with_world(move |world, owner| refresh_keyed(world, owner, key, insert))
    }

    /// Pauses this entity for `duration` on the clock of its timers.
    ///
    /// If the entity has its own [`Clock`](crate::Clock), the time counts on the parent of that one, so that a
    /// slow does not prolong the pause. Pauses overlap, and the last end wins: see
    /// [`Pauses`](crate::timer::Pauses). The call spawns an entity with `Pauses` and a
    /// [`DespawnAfter`](crate::DespawnAfter).
    ///
    /// The duration is a `Duration`, a number of seconds, or a `DespawnAfter`. In a handler of a timer on the clock on
    /// which the pause counts, a pause [since](crate::DespawnAfter::since) the deadline is as long in a long frame as
    /// in a short one.
    ///
    /// # Panics
    ///
    /// Panics if `duration` is a negative, infinite or invalid number.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::prelude::*;
    /// use bevy_ecs::prelude::*;
    ///
    /// #[derive(Component)]
    /// struct Hero;
    ///
    /// /// The grenade is on the game clock, on which the stun counts, even if something slows the hero.
    /// fn flash(grenade: On<TimerFired>, hero: Single<Entity, With<Hero>>, mut commands: Commands) {
    ///     let stun = DespawnAfter::new(2.0).since(grenade.deadline());
    ///     commands.entity(*hero).pause_for(stun);
    /// }
    /// # World::new().add_observer(flash);
    /// ```
    #[doc(alias("stun", "freeze"))]
    #[track_caller]
    fn pause_for(&mut self, duration: impl Into<DespawnAfter>) -> &mut Self {
        let lifetime = duration.into();
        self.with_world(move |world, target| pause_for(world, target, lifetime))
    }

    /// Cancels the timer on this entity and all timers that belong to it.
    ///
    /// A [`DespawnAfter`](crate::DespawnAfter), a component [for a limited time](Self::insert_for)
    /// and open requests are not affected. To cancel only some timers, cancel them [by
    /// key](Self::cancel_timer). Alternatively, give them a marker component, and despawn the
    /// [`Owned`](crate::Owned) entities that carry it.
    fn cancel_timers(&mut self) -> &mut Self {
        self.with_world(cancel_all)
    }

    /// Moves the deadline of the timer on this entity to `deadline`, as the timer's clock shows it.
    ///
    /// The timer gets a new place in the order of equal deadlines, as if it had just been armed.
    /// The timer keeps its count, and stays paused if it is paused. A deadline in the past fires in
    /// the next run, never inside this call. [`ArmedTimers::keyed`](crate::ArmedTimers::keyed)
    /// finds the entity of a keyed timer.
    ///
    /// # Time complexity
    ///
    /// *O*(1), plus *O*(log *n*) in the next run.
    #[track_caller]
    fn reschedule(&mut self, deadline: impl IntoDuration) -> &mut Self {
        let deadline = deadline.into_duration();
        self.change_own_timer(move |timer| timer.reschedule(deadline))
    }

    /// Delays the timer on this entity by `by`, under the rules of [`reschedule`](Self::reschedule).
    #[track_caller]
    fn delay_by(&mut self, by: impl IntoDuration) -> &mut Self {
        let by = by.into_duration();
        self.change_own_timer(move |timer| timer.delay_by(by))
    }

    /// Delays the timer on this entity and all timers that belong to it.
    ///
    /// As for [`cancel_timers`](Self::cancel_timers), a [`DespawnAfter`](crate::DespawnAfter), a component [for
    /// a limited time](Self::insert_for) and open requests are not affected.
    #[track_caller]
    fn delay_timers_by(&mut self, by: impl IntoDuration) -> &mut Self {
        let by = by.into_duration();
        self.with_world(move |world, owner| delay_all(world, owner, by))
    }

    /// Changes the clock on this entity: its speed, its pause, its parent or its time.
    ///
    /// If there is no [`Clock`](crate::Clock) on this entity, or if `change` returns an error, Bevy's error handler
    /// gets a warning.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::prelude::*;
    /// use bevy_ecs::prelude::*;
    ///
    /// fn slow_motion(arena: Single<Entity, With<Clock>>, mut commands: Commands) {
    ///     commands.entity(*arena).change_clock(|clock| clock.set_speed(0.25));
    /// }
    /// # bevy_ecs::system::assert_is_system(slow_motion);
    ///
    /// // A speed that comes from data may be invalid.
    /// fn set_speed(arena: Entity, speed: f64, mut commands: Commands) {
    ///     commands.entity(arena).change_clock(move |clock| clock.try_set_speed(speed));
    /// }
    /// # let _ = set_speed;
    /// ```
    fn change_clock<Out: CommandOutput>(
        &mut self,
        change: impl FnOnce(&mut ClockMut) -> Out + Send + 'static,
    ) -> &mut Self {
        self.with_world(move |world, entity| {
            let changed = change_clock(world, entity.into(), change);
            let error = match changed {
                Ok(out) => out.to_err(),
                Err(error) => Some(error.into()),
            };
            if let Some(error) = error {
                report::<Clock>(world, error.with_severity(Severity::Warning));
            }
        })
    }

    /// Changes the timer on this entity: its interval, its number of firings, or its remaining
    /// time.
    fn change_own_timer(
        &mut self,
        change: impl FnOnce(&mut TimerMut) + Send + 'static,
    ) -> &mut Self {
        self.with_world(move |world, entity| {
            let changed = change_timer(world, entity, change);
            warn(world, changed);
        })
    }

    /// Changes the timer of this entity with this key: pauses, resumes, restarts or refreshes it,
    /// or sets its interval, its number of firings or its remaining time.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::prelude::*;
    /// use bevy_ecs::prelude::*;
    ///
    /// fn enrage(boss: Entity, mut commands: Commands) {
    ///     commands.entity(boss).change_timer("attack", |attack| attack.set_interval(0.5));
    /// }
    /// # let _ = enrage;
    /// ```
    fn change_timer(
        &mut self,
        key: impl IntoKey,
        change: impl FnOnce(&mut TimerMut) + Send + 'static,
    ) -> &mut Self {
        self.with_world(move |world, owner| {
            let changed = change_keyed(world, owner, key, change);
            warn(world, changed);
        })
    }

    /// Returns this entity.
    #[doc(hidden)]
    fn entity(&self) -> Entity;

    /// Changes the world: later with the other commands, or at once.
    #[doc(hidden)]
    fn with_world(&mut self, change: impl FnOnce(&mut World, Entity) + Send + 'static)
    -> &mut Self;
}

impl DueEntityCommandsExt for EntityCommands<'_> {
    fn set_timer(&mut self, key: impl IntoKey, timer: impl TimerBundle) -> &mut Self {
        let owner = self.id();
        let (_, timer) = keyed(owner, key, timer);
        self.commands().spawn(timer);
        self
    }

    fn entity(&self) -> Entity {
        self.id()
    }

    fn with_world(
        &mut self,
        change: impl FnOnce(&mut World, Entity) + Send + 'static,
    ) -> &mut Self {
        let entity = self.id();
        let mut commands = self.commands();
        commands.queue(move |world: &mut World| change(world, entity));
        self
    }
}

impl DueEntityCommandsExt for EntityWorldMut<'_> {
    fn set_timer(&mut self, key: impl IntoKey, timer: impl TimerBundle) -> &mut Self {
        set_keyed(self, key, timer);
        self
    }

    fn entity(&self) -> Entity {
        self.id()
    }

    fn with_world(
        &mut self,
        change: impl FnOnce(&mut World, Entity) + Send + 'static,
    ) -> &mut Self {
        let entity = self.id();
        self.world_scope(|world| {
            change(world, entity);
            world.flush();
        });
        self
    }
}

/// Reports that there is no such timer. It may have fired before the command runs, so this only warns.
fn warn(world: &World, changed: Result<(), NoSuchTimer>) {
    if let Err(unknown) = changed {
        report::<Timer>(world, BevyError::warning(unknown));
    }
}

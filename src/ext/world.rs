//! The extension trait of [`World`].

use alloc::borrow::Cow;
use core::{borrow::BorrowMut, time::Duration};

use bevy_ecs::{prelude::*, system::SystemState};

use crate::{
    clock::{ClockError, ClockId, ClockMut, ClockTable, change_clock},
    seconds::or_panic,
    systems::KeptSystem,
    timer::{
        ArmedTimers, IntoDuration, IntoKey, NoSuchTimer, Numbers, RunStats, TimerFired, TimerMut,
        TimerQueues, add_handler, cancel_keyed, change_keyed, change_timer, fast_forward,
        fast_forward_to_next,
    },
};

/// Registers handlers, asks about timers, and runs them without waiting.
pub trait DueWorldExt: BorrowMut<World> {
    /// Registers a system under a name that timers can refer to with
    /// [`TimerAction::named`](crate::TimerAction::named).
    ///
    /// The system receives the [`TimerFired`], and may return a `Result`. A system with `&mut World` that runs a schedule
    /// can't be called in it again: run the schedule with [`Commands::run_schedule`] instead.
    ///
    /// # Panics
    ///
    /// Panics if a handler is already registered under this name.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Timer, prelude::*};
    /// use bevy_ecs::prelude::*;
    /// use bevy_time::TimePlugin;
    ///
    /// fn grow(In(fired): In<TimerFired>, mut commands: Commands) {
    ///     commands.entity(fired.owner()).log_components();
    /// }
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default()));
    /// app.world_mut().add_timer_handler("grow", grow);
    /// app.world_mut().spawn((Timer::every(60.0), TimerAction::named("grow")));
    /// ```
    #[track_caller]
    fn add_timer_handler<M>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        handler: impl IntoSystem<In<TimerFired>, (), M> + 'static,
    ) {
        let (name, system) = (name.into(), KeptSystem::new(handler));
        add_handler(self.borrow_mut(), &name, move |world, fired| {
            system.run(world, fired)
        });
    }

    /// Asks about the timers of this world, as a system with [`ArmedTimers`] does.
    ///
    /// Pending commands are applied first.
    ///
    /// # Panics
    ///
    /// Panics if the world has no [`DuePlugin`](crate::DuePlugin).
    ///
    /// # Examples
    ///
    /// ```
    /// use core::{borrow::BorrowMut, time::Duration};
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Timer, prelude::*};
    /// use bevy_time::TimePlugin;
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default()));
    /// let bomb = app.world_mut().spawn(Timer::after(3.0)).id();
    /// let fuse = app.world_mut().with_timers(|timers| timers.get(bomb));
    /// assert_eq!(fuse.unwrap().remaining, Duration::from_secs(3));
    /// ```
    #[track_caller]
    fn with_timers<Out>(&mut self, ask: impl FnOnce(ArmedTimers) -> Out) -> Out {
        let world = self.borrow_mut();
        // Pending commands may change timers.
        world.flush();
        let mut state = SystemState::<ArmedTimers>::new(world);
        or_panic(state.get(world).map(ask))
    }

    /// Returns the time that a clock shows. Systems use [`Clocks::now`](crate::Clocks::now).
    ///
    /// # Errors
    ///
    /// Returns [`ClockError::NoSuchClock`] if there is no such clock.
    fn clock_now(&self, clock: impl Into<ClockId>) -> Result<Duration, ClockError> {
        let (world, clock): (&World, _) = (self.borrow(), clock.into());
        let table = world.get_resource::<ClockTable>();
        table.ok_or(ClockError::NoSuchClock(clock))?.now(clock)
    }

    /// Changes a clock at once.
    ///
    /// Applies pending commands first.
    ///
    /// # Errors
    ///
    /// Returns [`ClockError::NoSuchClock`] if there is no such clock.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_app::prelude::*;
    /// # use bevy_due::prelude::*;
    /// # use bevy_time::TimePlugin;
    /// # let mut app = App::new();
    /// # app.add_plugins((TimePlugin, DuePlugin::default()));
    /// # let world = app.world_mut();
    /// let arena = world.spawn(Clock::new()).id();
    /// world.change_clock(arena, |clock| clock.set_speed(0.25)).unwrap();
    /// ```
    fn change_clock<Out>(
        &mut self,
        clock: impl Into<ClockId>,
        change: impl FnOnce(&mut ClockMut) -> Out,
    ) -> Result<Out, ClockError> {
        change_clock(self.borrow_mut(), clock.into(), change)
    }

    /// Starts the random numbers of timers anew, as with this
    /// [`delay_seed`](crate::DuePlugin::delay_seed) in a new app.
    ///
    /// A second game in the same app then has the same random delays and the same slack as the first. A random
    /// interval belongs to its timer, and goes on.
    ///
    /// # Panics
    ///
    /// Panics if the world has no [`DuePlugin`](crate::DuePlugin).
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_app::prelude::*;
    /// # use bevy_due::{Timer, prelude::*};
    /// # use bevy_ecs::prelude::*;
    /// # use bevy_time::TimePlugin;
    /// # let mut app = App::new();
    /// # app.add_plugins((TimePlugin, DuePlugin::default()));
    /// # let world = app.world_mut();
    /// let mut new_game = |world: &mut World| {
    ///     world.set_delay_seed(7);
    ///     let ambush = world.spawn(Timer::after_between(2.0..=6.0)).id();
    ///     world.with_timers(|timers| timers.get(ambush).unwrap().remaining)
    /// };
    /// assert_eq!(new_game(world), new_game(world));
    /// ```
    #[track_caller]
    fn set_delay_seed(&mut self, seed: u64) {
        let mut queues = self.borrow_mut().resource_mut::<TimerQueues>();
        queues.set_numbers(Numbers::new(seed));
    }

    /// Changes the timer on an entity.
    ///
    /// # Errors
    ///
    /// Returns [`NoSuchTimer`] if the entity has no armed timer, because it has fired or was cancelled, or
    /// if the timer's clock does not exist.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::{borrow::BorrowMut, time::Duration};
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Timer, prelude::*, timer::NoSuchTimer};
    /// use bevy_time::TimePlugin;
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default()));
    /// let world = app.world_mut();
    ///
    /// let bus = world.spawn(Timer::after(60)).id();
    /// let late = Duration::from_secs(90);
    /// assert!(world.change_timer(bus, |bus| bus.reschedule(late)).is_ok());
    ///
    /// let stop = world.spawn_empty().id();
    /// let error = NoSuchTimer { entity: stop, key: None, clock: None };
    /// assert_eq!(world.change_timer(stop, |stop| stop.restart()), Err(error));
    /// ```
    fn change_timer(
        &mut self,
        entity: Entity,
        change: impl FnOnce(&mut TimerMut),
    ) -> Result<(), NoSuchTimer> {
        change_timer(self.borrow_mut(), entity, change)
    }

    /// Changes the timer of an owner with this [key](crate::timer::Keyed).
    ///
    /// # Errors
    ///
    /// Returns [`NoSuchTimer`] if the owner has no armed timer with this key, or if the timer's clock does
    /// not exist.
    fn change_keyed_timer(
        &mut self,
        owner: Entity,
        key: impl IntoKey,
        change: impl FnOnce(&mut TimerMut),
    ) -> Result<(), NoSuchTimer> {
        change_keyed(self.borrow_mut(), owner, key, change)
    }

    /// Cancels the timer of an owner with this [key](crate::timer::Keyed), and returns `true` if there was one.
    fn cancel_timer(&mut self, owner: Entity, key: impl IntoKey) -> bool {
        cancel_keyed(self.borrow_mut(), owner, &key)
    }

    /// Runs a clock for `span` in one call, fires everything on the way in order, and returns the
    /// statistics.
    ///
    /// Use this in tests and tools, or to catch up on the time while the player was away.
    ///
    /// Each deadline gets its own run. Handlers see the clock at that deadline, and nothing is late
    /// or missed. Timers that handlers arm also fire on the way. A timer that is already due fires
    /// first. A zero-delay timer that a handler arms fires 15.625 ms later, as in a game of 64
    /// frames a second.
    ///
    /// The descendants of the clock advance with it. Its parent, such as Bevy's `Time`, does not advance and may be
    /// paused, so the clock is ahead of it afterwards. To advance only part of the game, give that part its own clock.
    /// A clock that is paused runs nevertheless. The fast-forward ends early if a handler pauses a clock that was
    /// running, or despawns it. No schedule runs on the way. Every firing is written as a message, so a span with a
    /// million firings takes the memory of a million messages.
    ///
    /// Messages wait for the next frame, so a request made on the way times out if its deadline is
    /// within the span. Update callbacks are called once afterwards, with the whole span as their
    /// delta.
    ///
    /// # Panics
    ///
    /// Panics if `span` is a negative, infinite or invalid number.
    ///
    /// # Errors
    ///
    /// Returns [`ClockError`] if there is no such clock, or if the call is made from a timer handler.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Timer, prelude::*};
    /// use bevy_ecs::prelude::*;
    /// use bevy_time::TimePlugin;
    ///
    /// #[derive(Resource, Default)]
    /// struct Gold(u32);
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default())).init_resource::<Gold>();
    /// app.world_mut()
    ///     .spawn(Timer::every(60.0))
    ///     .observe(|_: On<TimerFired>, mut gold: ResMut<Gold>| gold.0 += 1);
    ///
    /// // The player comes back after eight hours.
    /// let away = 8 * 3600;
    /// let stats = app.world_mut().fast_forward(ClockId::Virtual, away)?;
    /// assert_eq!(app.world().resource::<Gold>().0, 480);
    /// assert_eq!(stats.fired, 480);
    /// # Ok::<(), BevyError>(())
    /// ```
    #[doc(alias("offline", "simulate", "skip"))]
    #[track_caller]
    fn fast_forward(
        &mut self,
        clock: impl Into<ClockId>,
        span: impl IntoDuration,
    ) -> Result<RunStats, ClockError> {
        fast_forward(self.borrow_mut(), clock.into(), span.into_duration())
    }

    /// Runs a clock up to the next deadline on it or its descendants.
    ///
    /// Returns the distance, or `None` if no timer waits. The distance is zero if a timer is
    /// already due.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`fast_forward`](Self::fast_forward).
    fn fast_forward_to_next(
        &mut self,
        clock: impl Into<ClockId>,
    ) -> Result<Option<Duration>, ClockError> {
        fast_forward_to_next(self.borrow_mut(), clock.into())
    }
}

impl DueWorldExt for World {}

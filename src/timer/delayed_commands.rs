//! Commands that are run later.

use core::{fmt, marker::PhantomData, time::Duration};

use bevy_ecs::{
    entity::Entity,
    system::{Commands, EntityCommands, IntoSystem},
    world::World,
};
use bevy_platform::sync::{Mutex, PoisonError};

use super::{Timer, TimerAction, TimerOf, events::Unannounced};
use crate::clock::ClockId;

/// Commands that are run later, or again and again.
///
/// They run in the exact order of their deadlines, among all other timers; those of one
/// deadline in the order in which they were given. What they are is a timer on an entity of its
/// own: despawn it to cancel. A delay that such commands give in their turn counts from the frame
/// in which they run; for a chain without drift, observe a timer, and use
/// [`Timer::since`](crate::Timer::since).
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
/// use bevy_time::{TimePlugin, TimeUpdateStrategy};
///
/// #[derive(Component)]
/// struct Reinforcements;
///
/// fn call_for_help(mut commands: Commands) {
///     commands.after_secs(2.0).queue(|commands| {
///         commands.spawn(Reinforcements);
///         commands.spawn(Reinforcements);
///     });
///     let too_late = commands.after_secs(2.0).queue(|commands| {
///         commands.spawn(Reinforcements);
///     });
///     let too_late = too_late.id();
///     commands.entity(too_late).despawn(); // Cancelled: it never runs.
/// }
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin))
///     .add_systems(Startup, call_for_help)
///     .insert_resource(TimeUpdateStrategy::ManualDuration(core::time::Duration::from_millis(250)));
/// for _ in 0..9 {
///     app.update();
/// }
/// let mut reinforcements = app.world_mut().query::<&Reinforcements>();
/// assert_eq!(reinforcements.iter(app.world()).count(), 2);
/// ```
#[doc(alias("delayed", "set_timeout"))]
pub trait TimerCommandsExt<'w, 's> {
    /// Runs commands once, after `delay`.
    fn after(&mut self, delay: Duration) -> TimedCommands<'_, 'w, 's, Once>;

    /// Runs commands once, after a number of seconds.
    ///
    /// # Panics
    ///
    /// Panics if `secs` is negative, infinite or not a number.
    #[track_caller]
    fn after_secs(&mut self, secs: f64) -> TimedCommands<'_, 'w, 's, Once>;

    /// Runs commands every `interval`, the first time after one interval. For another first delay,
    /// or none, see [`on_timer`](Self::on_timer).
    ///
    /// # Panics
    ///
    /// Panics if `interval` is zero.
    #[track_caller]
    fn every(&mut self, interval: Duration) -> TimedCommands<'_, 'w, 's, Repeatedly>;

    /// Runs commands every so many seconds, the first time after one interval.
    ///
    /// # Panics
    ///
    /// Panics if `secs` is zero, negative, infinite or not a number.
    #[track_caller]
    fn every_secs(&mut self, secs: f64) -> TimedCommands<'_, 'w, 's, Repeatedly>;

    /// Runs commands whenever this timer fires.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::{MissedTicks, Timer, prelude::*};
    /// # use bevy_ecs::prelude::*;
    /// fn spawn_waves(mut commands: Commands) {
    ///     let waves = Timer::every_secs(20.0).immediately().times(5).with_missed_ticks(MissedTicks::Skip);
    ///     commands.on_timer(waves).queue(|commands| {
    ///         commands.spawn_empty();
    ///     });
    /// }
    /// # bevy_ecs::system::assert_is_system(spawn_waves);
    /// ```
    fn on_timer(&mut self, timer: Timer) -> TimedCommands<'_, 'w, 's, Repeatedly>;
}

/// Commands that run once.
#[derive(Debug)]
pub enum Once {}

/// Commands that run again and again.
#[derive(Debug)]
pub enum Repeatedly {}

/// When commands are to be run: made by [`TimerCommandsExt`], it waits to be told which.
#[must_use = "it does nothing before it is told which commands to run"]
pub struct TimedCommands<'a, 'w, 's, Often> {
    commands: &'a mut Commands<'w, 's>,
    timer: Timer,
    owner: Option<Entity>,
    often: PhantomData<Often>,
}

impl<'w, 's> TimerCommandsExt<'w, 's> for Commands<'w, 's> {
    fn after(&mut self, delay: Duration) -> TimedCommands<'_, 'w, 's, Once> {
        TimedCommands::new(self, Timer::after(delay))
    }

    fn after_secs(&mut self, secs: f64) -> TimedCommands<'_, 'w, 's, Once> {
        TimedCommands::new(self, Timer::after_secs(secs))
    }

    fn every(&mut self, interval: Duration) -> TimedCommands<'_, 'w, 's, Repeatedly> {
        TimedCommands::new(self, Timer::every(interval))
    }

    fn every_secs(&mut self, secs: f64) -> TimedCommands<'_, 'w, 's, Repeatedly> {
        TimedCommands::new(self, Timer::every_secs(secs))
    }

    fn on_timer(&mut self, timer: Timer) -> TimedCommands<'_, 'w, 's, Repeatedly> {
        TimedCommands::new(self, timer)
    }
}

impl<'a, 'w, 's, Often> TimedCommands<'a, 'w, 's, Often> {
    fn new(commands: &'a mut Commands<'w, 's>, timer: Timer) -> Self {
        Self {
            commands,
            timer: timer.despawn_when_done(),
            owner: None,
            often: PhantomData,
        }
    }

    /// Puts them on a clock, as [`Timer::on`] does.
    pub fn on(mut self, clock: impl Into<ClockId>) -> Self {
        self.timer = self.timer.on(clock);
        self
    }

    /// Makes them belong to an entity: they are paused and cancelled with its timers, and when it
    /// despawns. If it has gone already, they never run.
    pub fn of(mut self, owner: Entity) -> Self {
        self.owner = Some(owner);
        self
    }

    fn spawn(self, action: TimerAction) -> EntityCommands<'a> {
        let timer = (self.timer, action, Unannounced);
        match self.owner {
            // Together, so that the timer is on its owner's clock.
            Some(owner) => self.commands.spawn((TimerOf(owner), timer)),
            None => self.commands.spawn(timer),
        }
    }

    /// Runs a system, and returns the commands of the entity that stands for it. Like
    /// `Commands::run_system_cached`, it takes functions and closures that capture nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::prelude::*;
    /// use bevy_ecs::prelude::*;
    /// # #[derive(Component)]
    /// # struct Arena;
    ///
    /// fn slow_motion(mut arena: Single<&mut Clock, With<Arena>>, mut commands: Commands) {
    ///     arena.set_speed(0.25);
    ///     commands.after_secs(2.0).run(normal_speed);
    /// }
    ///
    /// fn normal_speed(mut arena: Single<&mut Clock, With<Arena>>) {
    ///     arena.set_speed(1.0);
    /// }
    /// # bevy_ecs::system::assert_is_system(slow_motion);
    /// ```
    pub fn run<S, M: 'static>(self, system: S) -> EntityCommands<'a>
    where
        S: IntoSystem<(), (), M> + Clone + Send + Sync + 'static,
    {
        self.spawn(run(move |commands| {
            commands.run_system_cached(system.clone());
        }))
    }
}

impl<'a> TimedCommands<'a, '_, '_, Once> {
    /// Says which commands to run, as many as you like, and returns the commands of the entity
    /// that stands for them.
    pub fn queue(
        self,
        later: impl FnOnce(&mut Commands) + Send + Sync + 'static,
    ) -> EntityCommands<'a> {
        let mut once = Some(later);
        self.spawn(run(move |commands| {
            if let Some(later) = once.take() {
                later(commands);
            }
        }))
    }
}

impl<'a> TimedCommands<'a, '_, '_, Repeatedly> {
    /// Ends it after so many times.
    ///
    /// # Panics
    ///
    /// Panics if `times` is zero.
    #[track_caller]
    pub fn times(mut self, times: u32) -> Self {
        self.timer = self.timer.times(times);
        self
    }

    /// Says which commands to run each time, as many as you like, and returns the commands of the
    /// entity that stands for them.
    pub fn queue(
        self,
        each_time: impl FnMut(&mut Commands) + Send + Sync + 'static,
    ) -> EntityCommands<'a> {
        self.spawn(run(each_time))
    }
}

impl<Often> fmt::Debug for TimedCommands<'_, '_, '_, Often> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimedCommands")
            .field("timer", &self.timer)
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

fn run(commands: impl FnMut(&mut Commands) + Send + Sync + 'static) -> TimerAction {
    // Whoever runs it takes it out, so that it is never locked while it runs.
    let idle = Mutex::new(Some(commands));
    TimerAction::call(move |world: &mut World, _| {
        let taken = idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut commands) = taken {
            commands(&mut world.commands());
            *idle.lock().unwrap_or_else(PoisonError::into_inner) = Some(commands);
        }
    })
}

//! The builder of delayed and repeated commands.

use core::{
    any::{type_name, type_name_of_val},
    fmt,
};

use bevy_ecs::{error::BevyError, prelude::*};
use bevy_platform::sync::{Mutex, PoisonError};

use super::{CrateTimer, Timer, TimerAction};
use crate::{clock::ClockId, owner::OwnedBy, report::report, systems::KeptSystem};

/// Builds delayed or repeated commands.
///
/// [`commands.after(2.0)`](crate::DueCommandsExt::after) and its siblings return this
/// builder. Nothing runs until you call `queue` or [`run`](Self::run). `REPEATS` is `true` for
/// commands that run repeatedly.
///
/// The commands run in the exact order of their deadlines, among all other timers. Commands with
/// equal deadlines run in the order in which you queued them. Each call spawns an entity with a
/// timer: despawn the entity to cancel the commands.
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::prelude::*;
/// use bevy_ecs::prelude::*;
/// use bevy_time::{TimePlugin, TimeUpdateStrategy};
///
/// #[derive(Component)]
/// struct Reinforcements;
///
/// fn call_for_help(mut commands: Commands) {
///     commands.after(2.0).queue(|commands| {
///         commands.spawn(Reinforcements);
///         commands.spawn(Reinforcements);
///     });
///     let too_late = commands.after(2.0).queue(|commands| {
///         commands.spawn(Reinforcements);
///     });
///     let too_late = too_late.id();
///     commands.entity(too_late).despawn(); // Cancelled: it never runs.
/// }
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default()))
///     .add_systems(Startup, call_for_help)
///     .insert_resource(TimeUpdateStrategy::ManualDuration(core::time::Duration::from_millis(250)));
/// for _ in 0..9 {
///     app.update();
/// }
/// let mut reinforcements = app.world_mut().query::<&Reinforcements>();
/// assert_eq!(reinforcements.iter(app.world()).count(), 2);
/// ```
#[must_use = "nothing runs until you call `queue` or `run`"]
pub struct TimedCommands<'a, 'w, 's, const REPEATS: bool> {
    commands: &'a mut Commands<'w, 's>,
    timer: Timer,
    owner: Option<Entity>,
}

impl<'a, 'w, 's, const REPEATS: bool> TimedCommands<'a, 'w, 's, REPEATS> {
    pub(crate) fn new(commands: &'a mut Commands<'w, 's>, timer: Timer) -> Self {
        Self {
            commands,
            timer: timer.despawn_when_done(),
            owner: None,
        }
    }

    /// Puts the commands on a clock, as [`Timer::on`] does.
    pub fn on(mut self, clock: impl Into<ClockId>) -> Self {
        self.timer = self.timer.on(clock);
        self
    }

    /// Makes the commands belong to an entity: they are paused and cancelled with its timers, and
    /// never run once the entity has despawned.
    pub fn of(mut self, owner: Entity) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Runs a system, and returns the commands of the timer's entity.
    ///
    /// The system may be a function or a closure, and may return a `Result`. All commands that run
    /// the same function share its [`Local`] state. A closure that captures values has a state of
    /// its own. A system whose parameters are not available, such as a [`Single`] without a match,
    /// is skipped.
    ///
    /// The system belongs to the world that runs it first. In another world, a clone of the
    /// [`TimerAction`] is an error.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::prelude::*;
    /// use bevy_ecs::prelude::*;
    /// # #[derive(Component)]
    /// # struct Enemy;
    ///
    /// fn begin_wave(mut commands: Commands) {
    ///     commands.after(2.0).run(spawn_enemy);
    /// }
    ///
    /// fn spawn_enemy(mut commands: Commands, mut spawned: Local<u32>) {
    ///     *spawned += 1;
    ///     commands.spawn(Enemy);
    /// }
    /// # bevy_ecs::system::assert_is_system(begin_wave);
    /// ```
    #[track_caller]
    pub fn run<S, M: 'static>(self, system: S) -> EntityCommands<'a>
    where
        S: IntoSystem<(), (), M> + Send + Sync + 'static,
    {
        let own = KeptSystem::new(system);
        let run = move |world: &mut World, _| {
            KeptSystem::shared::<S>(world, || own.clone()).run(world, ())
        };
        self.spawn(TimerAction::call_as(type_name::<S>(), run))
    }

    #[track_caller]
    fn spawn(self, action: TimerAction) -> EntityCommands<'a> {
        let timer = (self.timer, action, CrateTimer::Commands);
        match self.owner {
            // One bundle, so that the timer uses its owner's clock.
            Some(owner) => self.commands.spawn((OwnedBy(owner), timer)),
            None => self.commands.spawn(timer),
        }
    }
}

impl<'a> TimedCommands<'a, '_, '_, false> {
    /// Runs any number of commands, and returns the commands of the timer's entity.
    #[track_caller]
    pub fn queue(
        self,
        later: impl FnOnce(&mut Commands) + Send + Sync + 'static,
    ) -> EntityCommands<'a> {
        let name = type_name_of_val(&later);
        let mut once = Some(later);
        self.spawn(run(name, move |commands| match once.take() {
            Some(later) => later(commands),
            None => commands.queue(has_run),
        }))
    }
}

impl<'a> TimedCommands<'a, '_, '_, true> {
    /// Limits the commands to `times` runs.
    ///
    /// # Panics
    ///
    /// Panics if `times` is zero, or if it is more than one and the timer has no interval.
    #[track_caller]
    pub fn times(mut self, times: u32) -> Self {
        self.timer = self.timer.times(times);
        self
    }

    /// Runs any number of commands each time, and returns the commands of the timer's entity.
    #[track_caller]
    pub fn queue(
        self,
        each_time: impl FnMut(&mut Commands) + Send + Sync + 'static,
    ) -> EntityCommands<'a> {
        self.spawn(run(type_name_of_val(&each_time), each_time))
    }
}

impl<const REPEATS: bool> fmt::Debug for TimedCommands<'_, '_, '_, REPEATS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimedCommands")
            .field("timer", &self.timer)
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

/// Reports that a one-time command is due again after a rollback.
fn has_run(world: &mut World) {
    let error = "a delayed command is due again after a rollback, but it could run only once: use \
                 `commands.after(..).run(system)`, which can run again";
    report::<TimerAction>(world, BevyError::warning(error));
}

fn run(
    name: &'static str,
    commands: impl FnMut(&mut Commands) + Send + Sync + 'static,
) -> TimerAction {
    let commands = Mutex::new(commands);
    TimerAction::call_as(name, move |world: &mut World, _| {
        // The closure only queues commands, so it never runs again while the lock is held. After a
        // panic, it runs again the next time.
        let mut commands = commands.lock().unwrap_or_else(PoisonError::into_inner);
        commands(&mut world.commands());
        Ok(())
    })
}

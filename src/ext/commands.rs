//! The extension trait of [`Commands`].

use core::borrow::BorrowMut;

use bevy_ecs::prelude::*;

use crate::{
    clock::ClockId,
    timer::{IntoDuration, TimedCommands, Timer, fast_forward_soon},
    update::pause_updates_from,
};

/// Runs commands later, and pauses update callbacks.
///
/// With exclusive access to the world, use `world.commands()`. The world applies them in its next
/// flush.
///
/// # Examples
///
/// ```
/// use bevy_due::prelude::*;
/// use bevy_ecs::prelude::*;
///
/// #[derive(Component)]
/// struct Star;
///
/// fn show(mut commands: Commands) {
///     commands.after(2.0).queue(|commands| {
///         commands.spawn(Star);
///     });
///     let stars = commands.every(0.5).times(5).queue(|commands| {
///         commands.spawn(Star);
///     });
///     let stars = stars.id(); // Despawn it to cancel.
/// }
/// # bevy_ecs::system::assert_is_system(show);
/// ```
#[doc(alias("delayed", "set_timeout", "set_interval"))]
pub trait DueCommandsExt<'w, 's>: BorrowMut<Commands<'w, 's>> {
    /// Runs commands once, after `delay`.
    ///
    /// # Panics
    ///
    /// Panics if `delay` is a negative, infinite or invalid number.
    #[track_caller]
    fn after(&mut self, delay: impl IntoDuration) -> TimedCommands<'_, 'w, 's, false> {
        TimedCommands::new(self.borrow_mut(), Timer::after(delay))
    }

    /// Runs commands every `interval`, starting after one interval.
    ///
    /// For a different first delay, see [`on_timer`](Self::on_timer).
    ///
    /// # Panics
    ///
    /// Panics if `interval` is zero, or a negative, infinite or invalid number.
    #[track_caller]
    fn every(&mut self, interval: impl IntoDuration) -> TimedCommands<'_, 'w, 's, true> {
        TimedCommands::new(self.borrow_mut(), Timer::every(interval))
    }

    /// Runs commands whenever this timer fires.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::{MissedTicks, Timer, prelude::*};
    /// # use bevy_ecs::prelude::*;
    /// fn spawn_waves(mut commands: Commands) {
    ///     let waves = Timer::every(20.0).immediately().times(5);
    ///     let waves = waves.with_missed_ticks(MissedTicks::Skip);
    ///     commands.on_timer(waves).queue(|commands| {
    ///         commands.spawn_empty();
    ///     });
    /// }
    /// # bevy_ecs::system::assert_is_system(spawn_waves);
    /// ```
    fn on_timer(&mut self, timer: Timer) -> TimedCommands<'_, 'w, 's, true> {
        TimedCommands::new(self.borrow_mut(), timer)
    }

    /// Runs a clock for `span`, as [`World::fast_forward`](crate::DueWorldExt::fast_forward) does.
    ///
    /// A handler of a timer may call this, too: the clock runs at the end of the run, after all timers that are due. If
    /// handlers ask for more on the way, that waits for the next run. With [exact
    /// frames](crate::DuePlugin::exact_frames), both happen at the instant of the frame at which they were asked for.
    ///
    /// If there is no such clock, Bevy's error handler gets a [`ClockError`](crate::clock::ClockError).
    ///
    /// # Panics
    ///
    /// Panics if `span` is a negative, infinite or invalid number.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::{TimerFired, prelude::*};
    /// use bevy_ecs::prelude::*;
    ///
    /// #[derive(Component)]
    /// struct Sun;
    ///
    /// /// Falls asleep, and wakes up eight hours later.
    /// fn fall_asleep(_: On<TimerFired>, sun: Single<Entity, With<Sun>>, mut commands: Commands) {
    ///     commands.fast_forward(*sun, 8 * 3600);
    /// }
    /// # World::new().add_observer(fall_asleep);
    /// ```
    #[doc(alias("sleep", "skip"))]
    #[track_caller]
    fn fast_forward(&mut self, clock: impl Into<ClockId>, span: impl IntoDuration) {
        let (clock, span) = (clock.into(), span.into_duration());
        let commands = self.borrow_mut();
        commands.queue(move |world: &mut World| fast_forward_soon(world, clock, span));
    }

    /// Pauses every [`UpdateComponent`](crate::UpdateComponent) with this priority or a higher one.
    ///
    /// The pause includes callbacks that would run later in this frame, and components that are
    /// inserted during the pause. The pause ends with [`resume_updates`](Self::resume_updates). A
    /// second call replaces the priority of the first.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::prelude::*;
    /// use bevy_ecs::prelude::*;
    ///
    /// /// Callbacks with this priority or a higher one stop while a menu is open.
    /// const GAME: i32 = 100;
    ///
    /// fn open_menu(mut commands: Commands) {
    ///     commands.pause_updates_from(GAME);
    /// }
    ///
    /// fn close_menu(mut commands: Commands) {
    ///     commands.resume_updates();
    /// }
    /// # bevy_ecs::system::assert_is_system(open_menu);
    /// # bevy_ecs::system::assert_is_system(close_menu);
    /// ```
    #[doc(alias = "pauseAllTargetsWithMinPriority")]
    fn pause_updates_from(&mut self, priority: i32) {
        let commands = self.borrow_mut();
        commands.queue(move |world: &mut World| pause_updates_from(world, Some(priority)));
    }

    /// Ends a pause by [`pause_updates_from`](Self::pause_updates_from).
    fn resume_updates(&mut self) {
        let commands = self.borrow_mut();
        commands.queue(|world: &mut World| pause_updates_from(world, None));
    }
}

impl<'w, 's> DueCommandsExt<'w, 's> for Commands<'w, 's> {}

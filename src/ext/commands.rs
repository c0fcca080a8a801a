//! The extension trait of [`Commands`].

use core::time::Duration;

use bevy_ecs::system::Commands;

use crate::timer::{Once, Repeatedly, TimedCommands, Timer};

/// Runs commands later.
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
///     commands.after_secs(2.0).queue(|commands| {
///         commands.spawn(Star);
///     });
///     let stars = commands.every_secs(0.5).times(5).queue(|commands| {
///         commands.spawn(Star);
///     });
///     let stars = stars.id(); // Despawn it to cancel.
/// }
/// # bevy_ecs::system::assert_is_system(show);
/// ```
#[doc(alias("delayed", "set_timeout", "set_interval"))]
pub trait DueCommandsExt<'w, 's> {
    /// Runs commands once, after `delay`.
    fn after(&mut self, delay: Duration) -> TimedCommands<'_, 'w, 's, Once>;

    /// Runs commands once, after a delay in seconds.
    ///
    /// # Panics
    ///
    /// Panics if `secs` is negative, infinite or not a number.
    #[track_caller]
    fn after_secs(&mut self, secs: f64) -> TimedCommands<'_, 'w, 's, Once>;

    /// Runs commands every `interval`, for the first time after one interval.
    ///
    /// For another first delay, see [`on_timer`](Self::on_timer).
    ///
    /// # Panics
    ///
    /// Panics if `interval` is zero.
    #[track_caller]
    fn every(&mut self, interval: Duration) -> TimedCommands<'_, 'w, 's, Repeatedly>;

    /// Runs commands at an interval in seconds, for the first time after one interval.
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

impl<'w, 's> DueCommandsExt<'w, 's> for Commands<'w, 's> {
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

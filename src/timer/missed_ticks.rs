//! The policy of a periodic timer for deadlines that passed during a long frame. `armed.rs` applies
//! it.

#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, std_traits::ReflectDefault};

/// The policy of a periodic timer when several deadlines have passed since the last run.
///
/// In the drawings, a timer is due every 10 units, and a long frame lasts from 20 to 55.
///
/// # Examples
///
/// ```
/// use bevy_due::{MissedTicks, Timer};
///
/// // A health bar does not need to be redrawn three times in one frame.
/// let redraw = Timer::every(0.5).with_missed_ticks(MissedTicks::Skip);
/// # assert_eq!(redraw.missed_ticks(), MissedTicks::Skip);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(Clone, Debug, Default, PartialEq, Hash)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub enum MissedTicks {
    /// Fires once for every deadline, in order with the firings of other timers.
    ///
    /// After [`burst_limit`](crate::DuePlugin::burst_limit) firings in one run, the rest are
    /// skipped as in [`Skip`](Self::Skip), and the last firing [reports](crate::TimerFired::missed)
    /// them.
    ///
    /// ```text
    /// deadlines   10   20   30   40   50   60   70
    /// runs        10   20               55 60   70
    /// firings     10   20               30 60   70
    ///                                   40
    ///                                   50
    /// ```
    #[default]
    Burst,
    /// Fires once, for the earliest deadline that has passed. The next deadline is one interval
    /// from now.
    ///
    /// ```text
    /// deadlines   10   20   30 (40)(50)      65   75
    /// runs        10   20               55   65   75
    /// firings     10   20               30   65   75
    ///                                    └ missed: 2
    /// ```
    ///
    /// This keeps a minimum distance between firings, at the price of drift. Even if the lateness
    /// is small, the next deadline counts from the run in which the timer fired.
    Delay,
    /// Fires once, for the earliest deadline that has passed. The next deadline is the first future
    /// deadline on the original grid.
    ///
    /// ```text
    /// deadlines   10   20   30 (40)(50)    60   70
    /// runs        10   20               55 60   70
    /// firings     10   20               30 60   70
    ///                                    └ missed: 2
    /// ```
    Skip,
}

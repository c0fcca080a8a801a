//! What a periodic timer does about the deadlines that a long frame has passed.

#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, std_traits::ReflectDefault};

/// What a periodic timer does when several of its deadlines have passed since the last run.
///
/// In the drawings a timer is due every 10, and a long frame lasts from 20 to 55.
///
/// # Examples
///
/// ```
/// use bevy_due::{MissedTicks, Timer};
///
/// // A health bar that need not be drawn three times over.
/// let redraw = Timer::every_secs(0.5).with_missed_ticks(MissedTicks::Skip);
/// # assert_eq!(redraw.missed_ticks(), MissedTicks::Skip);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Clone, Debug, Default, PartialEq, Hash)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub enum MissedTicks {
    /// Every deadline gets a firing of its own, in order with the firings of other timers, up to
    /// [`BurstLimit`](crate::BurstLimit); the rest are skipped as in [`Skip`](Self::Skip).
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
    /// One firing, for the earliest deadline that has passed. The next is one interval from now.
    ///
    /// ```text
    /// deadlines   10   20   30 (40)(50)      65   75
    /// runs        10   20               55   65   75
    /// firings     10   20               30   65   75
    ///                                    └ missed: 2
    /// ```
    ///
    /// It keeps a distance at the price of drift: the next deadline counts from the run in which
    /// the timer fired, however small the lateness.
    Delay,
    /// One firing, for the earliest deadline that has passed. The next is the first on the grid
    /// that is still to come.
    ///
    /// ```text
    /// deadlines   10   20   30 (40)(50)    60   70
    /// runs        10   20               55 60   70
    /// firings     10   20               30 60   70
    ///                                    └ missed: 2
    /// ```
    Skip,
}

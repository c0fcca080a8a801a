//! The budget of a frame for timers that may wait.

use alloc::{collections::BTreeMap, vec::Vec};
use core::{num::NonZeroU64, ops::Bound, time::Duration};

use bevy_ecs::prelude::*;
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::prelude::*;

use super::{Place, queued::ArmedTimer};
use crate::clock::Cadence;

/// The resource that limits the [deferrable](crate::Timer::deferrable) timers of each frame.
///
/// When more deferrable timers are due than the budget allows, those with the smallest priority
/// numbers fire first, and the others wait for a later frame. Their
/// [lateness](crate::TimerFired::lateness) grows while they wait. All other timers fire on time, before the
/// deferrable ones.
///
/// All waiting timers of a world form one queue. A timer joins it when it becomes due, and keeps its place.
/// It waits behind timers of equal priority. It overtakes timers of the next priority that joined up to 16
/// frames earlier, so none starves. The budget skips a timer whose clock is
/// stopped.
///
/// If any are due, at least one deferrable timer fires in each frame, and one in its fixed steps, even if
/// the budget is spent.
///
/// The resource can change at any time. The budget covers a whole frame, including its fixed steps.
/// [Fast-forward](crate::DueWorldExt::fast_forward) ignores the budget.
/// [`ArmedTimers::deferred`](crate::ArmedTimers::deferred) returns the number of timers that wait.
///
/// # What you give up
///
/// With a budget, the [promise of order](crate::DuePlugin) holds only among deferrable timers of one
/// priority on one clock, and among all other timers. A deferrable timer that was due earlier can fire
/// after another timer.
///
/// [`Firings`](Self::Firings) is deterministic. [`Time`](Self::Time) is not, because it depends on the
/// speed of the machine: do not use it for rollback or replays.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_app::prelude::*;
/// use bevy_due::{ArmedTimers, Timer, prelude::*, timer::TimerBudget};
/// use bevy_ecs::prelude::*;
/// use bevy_time::{TimePlugin, TimeUpdateStrategy};
///
/// #[derive(Resource, Default)]
/// struct Thoughts(usize);
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default()))
///     .insert_resource(TimerBudget::Firings(20))
///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(10)))
///     .init_resource::<Thoughts>()
///     .add_observer(|_: On<TimerFired>, mut thoughts: ResMut<Thoughts>| thoughts.0 += 1);
/// app.update(); // Bevy's first frame takes no time.
/// for _ in 0..50 {
///     app.world_mut().spawn(Timer::after(0.01).deferrable(0));
/// }
///
/// for thoughts in [20, 40, 50] {
///     app.update();
///     assert_eq!(app.world().resource::<Thoughts>().0, thoughts);
/// }
/// ```
#[doc(alias("time_slice", "throttle", "frame_budget"))]
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due::timer",
    reflect(Resource, Clone, Debug, Default, PartialEq)
)]
pub enum TimerBudget {
    /// Every due timer fires. The default.
    #[default]
    Unlimited,
    /// At most this many firings of deferrable timers per frame, in total. Zero counts as one.
    Firings(u32),
    /// No further deferrable timer fires in a frame whose deferrable timers have taken this time.
    ///
    /// The time of observers and actions counts. The time of systems that read the messages does not,
    /// because they run later: use [`Firings`](Self::Firings) for them.
    Time(Duration),
}

/// The frames of waiting that count as much as one priority.
const FRAMES_PER_PRIORITY: i64 = 16;

/// The deferrable timers that are due and wait for the budget.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    timers: BTreeMap<Rank, Place>,
    pub(super) spending: Spending,
}

/// What was spent of the budget, and the numbers that make the ranks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spending {
    /// The number of frames and the number of timers that have waited so far.
    frames: i64,
    pushed: u64,
    /// What the deferrable timers of this frame have used of the budget.
    firings: u32,
    time: Duration,
    /// By cadence: whether a timer has fired in this frame.
    has_fired: [bool; 2],
}

/// The place of a waiting timer: the frame in which the wait began, moved by the priority, and a number
/// that rises with each wait. Because it does not change while the timer waits, each timer comes first at
/// last.
pub(super) type Rank = (i64, NonZeroU64);

impl Deferred {
    pub(super) fn begin_frame(&mut self) {
        self.spending.frames += 1;
        self.spending.firings = 0;
        self.spending.time = Duration::ZERO;
        self.spending.has_fired = [false; 2];
    }

    /// Lets a due timer wait, and returns its rank.
    pub(super) fn push(&mut self, priority: i32, place: Place) -> Rank {
        self.spending.pushed += 1;
        let turn = self.spending.frames + i64::from(priority) * FRAMES_PER_PRIORITY;
        let rank = (turn, NonZeroU64::MIN.saturating_add(self.spending.pushed));
        self.timers.insert(rank, place);
        rank
    }

    /// Goes back to an earlier spending. The timers that waited then are added to the present ones.
    pub(super) fn rewind(&mut self, earlier: Spending, waited: Vec<(Rank, Place)>) {
        self.spending = earlier;
        self.timers.extend(waited);
    }

    /// Takes a timer out of the queue for the budget, and returns `true` if it was there.
    #[inline]
    pub(super) fn leave(&mut self, timer: &mut ArmedTimer) -> bool {
        let rank = timer.take_rank();
        rank.is_some_and(|rank| self.timers.remove(&rank).is_some())
    }

    /// Returns the first timer whose turn comes after `rank`, if any.
    pub(super) fn after(&self, rank: Option<Rank>) -> Option<(Rank, Place)> {
        let after = rank.map_or(Bound::Unbounded, Bound::Excluded);
        let mut timers = self.timers.range((after, Bound::Unbounded));
        timers.next().map(|(&rank, &timer)| (rank, timer))
    }

    /// Returns `true` if another timer may fire.
    pub(super) fn has_room(&self, budget: TimerBudget, cadence: Cadence) -> bool {
        !self.spending.has_fired[cadence as usize]
            || match budget {
                TimerBudget::Unlimited => true,
                TimerBudget::Firings(firings) => self.spending.firings < firings,
                TimerBudget::Time(time) => self.spending.time < time,
            }
    }

    pub(super) fn add_firing(&mut self, cadence: Cadence) {
        self.spending.has_fired[cadence as usize] = true;
        self.spending.firings = self.spending.firings.saturating_add(1);
    }

    pub(super) fn add_time(&mut self, time: Duration) {
        self.spending.time = self.spending.time.saturating_add(time);
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = Place> {
        self.timers.values().copied()
    }
}

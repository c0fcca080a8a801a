//! The [`Timer`] component, and what stands beside it: keys, owners, pauses, actions, events.
//!
//! The names that most games use are at the root of the crate, too.

mod action;
mod arm;
mod build;
mod cancel;
mod cancelled;
mod change;
mod clock_queues;
mod cooldown;
mod crate_timer;
mod delayed;
mod despawn_after;
mod end;
mod events;
mod fast_forward;
mod insert_for;
mod key;
mod keyed;
mod late_clock;
mod open_request;
pub(crate) mod owner;
pub(crate) mod pause;
mod place;
mod query;
mod queued;
mod queues;
mod random;
mod run;
#[cfg(feature = "serialize")]
mod saving;

mod setting;
mod timer_status;
mod turn;
mod undo;

use alloc::boxed::Box;

use core::{
    fmt,
    num::{NonZeroU32, NonZeroU64},
    time::Duration,
};

use bevy_ecs::{entity::MapEntities, prelude::*};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, prelude::*};

use crate::clock::{ClockId, Reading};
pub use crate::seconds::{IntoDuration, InvalidSeconds};
pub use action::TimerAction;
pub(crate) use action::{add_handler, check_handler};
pub(crate) use arm::add_timer;
pub use build::{InvalidTimer, MissedTicks};
#[cfg(feature = "serialize")]
pub(crate) use cancel::cancel_silently;
pub use cancelled::{CancelReason, OwnedTimerCancelled, TimerCancelled};
pub use change::{NoSuchTimer, TimerMut};
pub(crate) use change::{cancel_all, cancel_keyed, change_keyed, change_timer, delay_all};
pub use cooldown::Cooldown;
pub(crate) use crate_timer::CrateTimer;
pub use delayed::TimedCommands;
pub use despawn_after::DespawnAfter;
pub(crate) use end::cancel_timers_of_clock;
#[cfg(feature = "serialize")]
pub(crate) use end::{Ended, forget_timers, put_ends};
pub use events::{OwnedTimerFired, TimerFired};
pub(crate) use fast_forward::{
    end_broken_run, fast_forward, fast_forward_soon, fast_forward_to_next,
};
#[cfg(feature = "serialize")]
pub(crate) use insert_for::know_component;
pub(crate) use insert_for::{check_component, end_since, insert_for, limited_by};
pub use key::{IntoKey, Keyed, TimerKey};
pub use keyed::TimerBundle;
pub(crate) use keyed::{insert_keyed, keyed, refresh_keyed, set_keyed, take_key};
pub(crate) use late_clock::{add_modified_clocks, follow_clocks_later, settle_arrivals};
pub(crate) use open_request::OpenRequest;
pub use owner::{Owned, OwnedBy};
pub use pause::{Paused, PausedBy, Pauses, RunsWhilePaused};
pub(crate) use pause::{follow_observers, pause_or_resume};
use place::{Place, TimerSeat};
pub use query::ArmedTimers;
use queued::ArmedTimer;
pub(crate) use queues::TimerQueues;
#[cfg(feature = "worlds")]
pub(crate) use queues::{awaits_run, next_look, plan_all};
pub(crate) use random::Numbers;
use random::{RandomInterval, scale};
pub use run::RunStats;
pub(crate) use run::{RunDepth, run_timers};
#[cfg(feature = "serialize")]
pub(crate) use saving::{MAX_STEPS, StateReader, TimerState, WorldState, put_state};
pub use timer_status::TimerStatus;
pub(crate) use timer_status::{Shown, show_statuses};
pub(crate) use turn::FireParams;
pub(crate) use undo::{QueuedTimer, QueuesMark, TimerJournal, TimerName};

/// Fires [`TimerFired`] after a delay: once, *n* times, or forever.
///
/// Insert a `Timer` to arm it. Insert another to re-arm it. If a system re-inserts it in every frame, it
/// never fires. Remove it or despawn its entity to cancel it. Insert [`Paused`] to pause it. The component is
/// immutable, so the queue behind it never gets out of sync with the world. An entity has a `Timer`
/// exactly while the timer is armed or paused. Once the handlers of the last firing have run, the
/// `Timer` is removed.
/// If the timer belongs to an [owner](crate::OwnedBy), its entity then despawns in the next run
/// ([unless you keep it](Self::keep_when_done)). A timer that is cloned or moved to another entity
/// starts over there.
///
/// A delay counts from the time on the timer's clock at insertion. The default clock is Bevy's
/// `Time<Virtual>`, including its pause and relative speed. Use [`on`](Self::on) to choose another. If a
/// component that arrives before the next run puts the timer on another clock, such as [`OnClock`](crate::OnClock), the
/// delay starts again there.
/// While the clock is paused or its speed is zero, nothing fires, not even a timer with zero delay.
/// A handler that pauses `Time<Virtual>` stops the timers on it at once, even timers that are due in
/// the same run.
///
/// Deadlines are absolute, so firings never drift. If Bevy's clock is set back, the deadlines of armed
/// timers move back with it, and the remaining times stay the same. A deadline more than 511 years after the start of
/// the clock is never reached.
///
/// React to a firing with an observer, a system, or a [`TimerAction`] on the timer's entity. Use
/// [`OwnedBy`] to give an entity several timers. For work that happens every frame,
/// use a plain system instead of a timer.
///
/// # Reflection
///
/// With the feature `bevy_reflect`, a timer is a struct with the fields `delay`, `interval` and `times`, with times in
/// nanoseconds. The other settings are one opaque field. The component is
/// immutable, so an editor changes a timer by inserting another one, also one made from a dynamic
/// struct. [`TimerStatus`] shows the progress of the timer.
///
/// # Serialization
///
/// With the feature `serialize`, the serialized form of a timer has its settings. A timer that is deserialized is a new
/// one: it waits for its full delay. To save how far timers have come, use the module `save`.
///
/// # Time complexity
///
/// With *n* armed timers, inserting is *O*(1), plus *O*(log *n*) in the next run. Removing is
/// *O*(1), amortized. A frame in which nothing is due is *O*(1).
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
/// #[derive(Component)]
/// struct Health(u32);
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default()))
///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(100)));
///
/// // Poison: one damage, five times, starting after half a second.
/// let poison = Timer::every(1.0).first_after(0.5).times(5);
/// let victim = app
///     .world_mut()
///     .spawn((Health(10), poison))
///     .observe(|fired: On<TimerFired>, mut health: Query<&mut Health>| {
///         if let Ok(mut health) = health.get_mut(fired.entity()) {
///             health.0 -= 1;
///         }
///     })
///     .id();
///
/// for _ in 0..60 {
///     app.update();
/// }
/// assert_eq!(app.world().get::<Health>(victim).unwrap().0, 5);
/// assert!(!app.world().entity(victim).contains::<Timer>(), "it has finished");
/// ```
#[doc(alias("set_timeout", "set_interval", "schedule", "delay", "sleep"))]
#[derive(Component, Clone)]
#[component(immutable, map_entities, on_insert = arm::on_insert, on_discard = cancel::on_discard, on_remove = cancel::on_remove, on_despawn = cancel::on_despawn)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(from_reflect = false),
    reflect(Component, Clone, Debug, Default, FromReflect, PartialEq)
)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Deserialize),
    serde(try_from = "saving::TimerData")
)]
#[cfg_attr(
    all(feature = "bevy_reflect", feature = "serialize"),
    reflect(Serialize, Deserialize)
)]
pub struct Timer {
    delay: u64,
    interval: Option<NonZeroU64>,
    extra: Extra,
    #[cfg_attr(feature = "bevy_reflect", reflect(ignore))]
    seat: TimerSeat,
    times: Option<NonZeroU32>,
}

/// The options, boxed because most timers have none.
#[derive(Clone, Debug, Default)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(opaque, Clone, Debug, Default)
)]
struct Extra(Option<Box<Options>>);

/// Rarely used settings.
#[derive(MapEntities, Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Options {
    #[entities]
    clock: Option<ClockId>,
    missed_ticks: MissedTicks,
    /// The time from which the first delay counts, as the clock shows it.
    since: Option<u64>,
    /// The maximum random delay added to the first delay.
    jitter: u64,
    /// The maximum random addition to each interval.
    interval_span: u64,
    /// The maximum delay added to the first delay so that timers spread evenly.
    slack: u64,
    when_done: WhenDone,
}

static NO_OPTIONS: Options = Options {
    clock: None,
    missed_ticks: MissedTicks::Burst,
    since: None,
    jitter: 0,
    interval_span: 0,
    slack: 0,
    when_done: WhenDone::DespawnIfOwned,
};

/// What happens to the entity after the last firing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
enum WhenDone {
    #[default]
    DespawnIfOwned,
    Keep,
    Despawn,
    /// Despawns if it has no owner by then. For an entity whose owner does not exist.
    DespawnUnlessOwned,
}

impl Timer {
    /// Returns the delay to the first firing, at most `u64::MAX` nanoseconds.
    ///
    /// The delay counts from arming, or from [`since`](Self::since). Any
    /// [jitter](Self::with_jitter) is added to it.
    #[must_use]
    pub fn delay(&self) -> Duration {
        Duration::from_nanos(self.delay)
    }

    /// Returns the time between two deadlines, at most `u64::MAX` nanoseconds, or `None` for a
    /// one-shot timer. For [random intervals](Self::every_between), this is the shortest.
    #[must_use]
    pub fn interval(&self) -> Option<Duration> {
        self.interval
            .map(|interval| Duration::from_nanos(interval.get()))
    }

    /// Returns the total number of firings, or `None` if the timer fires forever. Without an interval,
    /// this is one.
    #[must_use]
    pub fn max_firings(&self) -> Option<u32> {
        match self.interval {
            Some(_) => self.times.map(NonZeroU32::get),
            None => Some(1),
        }
    }

    /// Returns the clock chosen with [`on`](Self::on), or `None` if the timer uses the default.
    ///
    /// The default is the clock of the timer's entity, the clock of its owner, or
    /// [`ClockId::Virtual`], in this order.
    #[must_use]
    pub fn clock(&self) -> Option<ClockId> {
        self.options().clock
    }

    /// Returns the policy for deadlines that pass during a long frame.
    #[must_use]
    pub fn missed_ticks(&self) -> MissedTicks {
        self.options().missed_ticks
    }

    /// Returns the maximum random addition to each interval, if any.
    fn interval_span(&self) -> Option<NonZeroU64> {
        self.interval?;
        NonZeroU64::new(self.options().interval_span)
    }

    /// Returns what happens to the entity after the last firing.
    fn when_done(&self) -> WhenDone {
        self.options().when_done
    }

    /// Returns the delay with its random part, and with its place in the slack.
    fn draw_delay(&self, numbers: &mut Numbers) -> u64 {
        let &Options { jitter, slack, .. } = self.options();
        let mut delay = self.delay;
        if jitter > 0 {
            delay = delay.saturating_add(scale(numbers.random(), jitter));
        }
        if slack > 0 {
            delay = delay.saturating_add(scale(numbers.even(), slack - 1));
        }
        delay
    }

    fn options(&self) -> &Options {
        self.extra.0.as_deref().unwrap_or(&NO_OPTIONS)
    }
}

impl Timer {
    /// Returns `true` if the timer has no settings but its delay, interval and number of firings.
    fn is_plain(&self) -> bool {
        self.extra.0.is_none()
    }

    /// Returns a copy with the place in the queue.
    pub(crate) fn copy(&self) -> Self {
        let copy = self.clone();
        copy.take_place_of(self);
        copy
    }

    /// Takes over the place of another timer in the queue.
    pub(crate) fn take_place_of(&self, other: &Self) {
        self.seat.move_to(other.seat.place());
    }

    /// Starts the delay at this reading of the clock, and returns the deadline and the wait.
    fn start(&self, reading: Reading, numbers: &mut Numbers) -> (u64, u64) {
        let delay = self.draw_delay(numbers);
        match self.options().since {
            None => (reading.now.saturating_add(delay), delay),
            Some(since) => {
                let mut first = since.saturating_add(delay);
                if let (0, Some(interval), None) = (since, self.interval, self.interval_span()) {
                    first = next_on_grid(first, interval, reading.shown_nanos(reading.now));
                }
                let deadline = reading.passed(Duration::from_nanos(first));
                (deadline, deadline.saturating_sub(reading.now))
            }
        }
    }

    /// Gives a timer for the queue its random intervals, unless it has them or needs none.
    fn begin_draws(&self, timer: &mut ArmedTimer, numbers: &mut Numbers) {
        if let (Some(span), None) = (self.interval_span(), timer.random()) {
            let (span, state) = (span.get(), numbers.random());
            let random = RandomInterval { span, state };
            timer.change_rare(|rare| rare.random = Some(random));
        }
    }
}

/// Returns the first time from `now` on that is a number of intervals after `first`, or `first` itself if that is
/// later.
fn next_on_grid(first: u64, interval: NonZeroU64, now: u64) -> u64 {
    let missed = now.saturating_sub(first).div_ceil(interval.get());
    first.saturating_add(interval.get().saturating_mul(missed))
}

/// The components that arm a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Kind {
    /// [`Timer`]
    Timer,
    /// [`OpenRequest`]
    Request,
    /// [`DespawnAfter`]
    Lifetime,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Timer, Self::Request, Self::Lifetime];

    /// Returns the timer of this kind on an entity, if any.
    #[inline]
    pub(crate) fn on(self, entity: EntityRef<'_>) -> Option<&Timer> {
        match self {
            Self::Timer => entity.get(),
            Self::Request => entity.get().map(|OpenRequest(timer)| timer),
            Self::Lifetime => entity.get().map(|DespawnAfter(timer)| timer),
        }
    }

    /// Inserts a timer of this kind.
    pub(crate) fn insert(self, entity: &mut EntityWorldMut, timer: Timer) {
        match self {
            Self::Timer => entity.insert(timer),
            Self::Request => entity.insert(OpenRequest(timer)),
            Self::Lifetime => entity.insert(DespawnAfter(timer)),
        };
    }

    /// Returns the timer of this kind on an entity, if any.
    pub(crate) fn get(self, world: &World, entity: Entity) -> Option<&Timer> {
        self.on(world.get_entity(entity).ok()?)
    }
}

impl MapEntities for Timer {
    fn map_entities<M: EntityMapper>(&mut self, mapper: &mut M) {
        if let Some(options) = &mut self.extra.0 {
            options.map_entities(mapper);
        }
    }
}

/// Fails if the settings contradict each other.
#[cfg(feature = "bevy_reflect")]
impl FromReflect for Timer {
    fn from_reflect(reflect: &dyn PartialReflect) -> Option<Self> {
        let fields = reflect.reflect_ref().as_struct().ok()?;
        let mut timer = Self::default();
        timer.try_apply(reflect).ok()?;
        if timer.interval.is_some() && fields.field("times").is_none() {
            timer.times = None;
        }
        if timer.interval.is_none() {
            // It can't fire forever.
            timer.times?;
        }
        timer.validated().ok()
    }
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        (self.delay, self.interval, self.times) == (other.delay, other.interval, other.times)
            && self.options() == other.options()
    }
}

impl Eq for Timer {}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer")
            .field("delay", &self.delay())
            .field("interval", &self.interval())
            .field("max_firings", &self.max_firings())
            .field("clock", &self.clock())
            .finish_non_exhaustive()
    }
}

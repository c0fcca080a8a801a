//! The [`Timer`] component and its builder.

mod action;
mod armed;
mod builder;
mod clocks;
mod commands;
mod control;
mod cooldown;
mod delayed_commands;
mod despawn_after;
mod error;
mod events;
mod hooks;
mod keyed;
mod missed_ticks;
mod on_clock;
mod own_clocks;
mod owner;
mod pause;
mod random;
mod reading;
mod status;
mod timeline;
mod timelines;

use alloc::boxed::Box;

use core::{
    fmt,
    num::{NonZeroU32, NonZeroU64},
    time::Duration,
};

use bevy_ecs::{
    component::Component,
    entity::{EntityMapper, MapEntities},
};
use bevy_platform::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(all(feature = "bevy_reflect", feature = "serialize"))]
use bevy_reflect::{ReflectDeserialize, ReflectSerialize};
#[cfg(feature = "bevy_reflect")]
use {bevy_ecs::reflect::ReflectComponent, bevy_reflect::Reflect};

use crate::{
    clock::{ClockId, Reading},
    queue::TimerKey,
};
pub use action::{TimerAction, TimerAppExt, UnknownHandler};
pub(crate) use armed::ArmedTimer;
pub use clocks::{Clocks, ClocksMut};
pub use commands::TimerEntityCommandsExt;
pub use control::{NoSuchTimer, SurvivesCancelAll, TimerWorldExt};
pub use cooldown::{Cooldown, NotReady};
pub use delayed_commands::{Once, Repeatedly, TimedCommands, TimerCommandsExt};
pub use despawn_after::DespawnAfter;
pub use error::InvalidTimer;
pub(crate) use events::Unannounced;
pub(crate) use events::is_observed_at_all;
pub use events::{CancelReason, TimerCancelled, TimerFired};
pub(crate) use hooks::arm;
pub use keyed::Keyed;
pub(crate) use keyed::replace_earlier;
pub use missed_ticks::MissedTicks;
pub use on_clock::OnClock;
pub(crate) use on_clock::find_clock;
pub(crate) use own_clocks::{IfClockGone, begin_clock, on_discard_clock, on_insert_clock, warn};
pub use owner::{TimerOf, Timers};
pub use pause::TimersPaused;
pub(crate) use pause::{on_disable, on_enable};
pub use random::DelaySeed;
pub(crate) use reading::{AnyClocks, Tick, Times, goes_on, is_going_on, read_clocks};
pub use status::{ArmedTimers, TimerStatus};
pub use timelines::RunStats;
pub(crate) use timelines::{Age, ClockKey, Scope, Timelines, Unfinished, swap_added};

/// Fires [`TimerFired`] after a delay: once, a number of times, or for ever.
///
/// Insert it to arm it, insert another to re-arm, remove it or despawn its entity to cancel, insert
/// [`TimersPaused`] to pause. It is immutable, so the queue behind it never drifts from the world.
/// An entity has a `Timer` exactly while it is armed or paused: after the handlers of its last
/// firing the `Timer` is removed, and where it belongs to an owner's [`Timers`], its entity is
/// despawned in the next run ([or not](Self::keep_when_done)). A timer that is cloned or moved to
/// another entity starts anew there.
///
/// A delay counts from what the timer's clock says when it is inserted, in every schedule. Unless
/// it is put [on another clock](Self::on), that is Bevy's `Time<Virtual>`, whose pause and relative
/// speed are obeyed: while it is paused, or its speed is zero, nothing fires, not even a delay of
/// zero. A handler that pauses `Time<Virtual>` takes nothing back: what is due in this run still
/// fires.
///
/// Deadlines are absolute. If Bevy's clock is set back, armed timers wait until it gets there
/// again; re-arm them to have them count from the new time. A deadline more than 511 years after
/// the start of the clock is never reached.
///
/// What the timer does when it fires is said by observers and systems, or by a [`TimerAction`]
/// beside it. For many timers on one entity see [`TimerOf`]. For something that runs in every frame
/// a plain system is simpler than a timer.
///
/// # Time complexity
///
/// In the number *n* of armed timers: inserting is *O*(1), and *O*(log *n*) in the next run;
/// removing is *O*(1), amortised. A frame in which nothing is due is *O*(1).
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
/// app.add_plugins((TimePlugin, DuePlugin))
///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(100)));
///
/// // Poison: five times one damage, the first after half a second.
/// let poison = Timer::every_secs(1.0).first_after_secs(0.5).times(5);
/// let victim = app
///     .world_mut()
///     .spawn((Health(10), poison))
///     .observe(|fired: On<TimerFired>, mut health: Query<&mut Health>| {
///         if let Ok(mut health) = health.get_mut(fired.entity) {
///             health.0 -= 1;
///         }
///     })
///     .id();
///
/// for _ in 0..60 {
///     app.update();
/// }
/// assert_eq!(app.world().get::<Health>(victim).unwrap().0, 5);
/// assert!(!app.world().entity(victim).contains::<Timer>(), "it has fired its last");
/// ```
#[doc(alias("set_timeout", "set_interval", "schedule", "delay", "sleep"))]
#[derive(Component)]
#[component(immutable, map_entities, on_insert = hooks::on_insert, on_discard = hooks::on_discard, on_remove = hooks::on_remove, on_despawn = hooks::on_despawn)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(opaque),
    reflect(Component, Clone, Debug, PartialEq)
)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "TimerData", try_from = "TimerData")
)]
#[cfg_attr(
    all(feature = "bevy_reflect", feature = "serialize"),
    reflect(Serialize, Deserialize)
)]
pub struct Timer {
    delay: u64,
    interval: Option<NonZeroU64>,
    /// What few timers are told.
    extra: Option<Box<Extra>>,
    /// Where its queue keeps it, as [`TimerKey`] bits. The hooks see an immutable component through
    /// a shared reference, hence the atomics.
    key: AtomicU64,
    /// The clock on which it is armed.
    line: AtomicU32,
    times: Option<NonZeroU32>,
}

/// What is apart from the others because few timers need it, to keep those small.
#[derive(Debug, Default)]
struct Extra {
    told: Told,
    /// How long it was to wait for its first deadline when it was armed.
    wait: AtomicU64,
}

/// What few timers are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    clock: Option<ClockId>,
    /// What the first delay counts from, as the clock shows it, if not from arming.
    since: Option<u64>,
    /// How much the first delay may be longer.
    spread: u64,
    missed_ticks: MissedTicks,
    when_done: WhenDone,
}

/// What becomes of the entity after the last firing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
enum WhenDone {
    #[default]
    DespawnIfOwned,
    Keep,
    Despawn,
}

impl Timer {
    /// Returns the delay to the first firing, at most `u64::MAX` nanoseconds: from arming, or from
    /// [`since`](Self::since). Of a range it is the shortest.
    #[must_use]
    pub fn delay(&self) -> Duration {
        Duration::from_nanos(self.delay)
    }

    /// Returns the time between two deadlines, at most `u64::MAX` nanoseconds, or `None` for a
    /// timer that fires once.
    #[must_use]
    pub fn interval(&self) -> Option<Duration> {
        self.interval
            .map(|interval| Duration::from_nanos(interval.get()))
    }

    /// Returns how often it fires in all, or `None` for ever.
    #[must_use]
    pub fn max_firings(&self) -> Option<u32> {
        self.times.map(NonZeroU32::get)
    }

    /// Returns the clock that it was put [on](Self::on), or `None` if that is its owner's or the
    /// game's.
    #[must_use]
    pub fn clock(&self) -> Option<ClockId> {
        self.told().clock
    }

    /// Returns what becomes of deadlines that a long frame has passed.
    #[must_use]
    pub fn missed_ticks(&self) -> MissedTicks {
        self.told().missed_ticks
    }

    /// Whether the entity goes with the timer after its last firing.
    pub(crate) fn despawns(&self, is_owned: bool) -> bool {
        match self.told().when_done {
            WhenDone::DespawnIfOwned => is_owned,
            WhenDone::Keep => false,
            WhenDone::Despawn => true,
        }
    }

    /// Returns the first deadline if the timer is armed at this reading of its clock.
    fn first_deadline(&self, reading: Reading, random: impl FnOnce() -> u64) -> u64 {
        let Told { since, spread, .. } = self.told();
        let mut delay = self.delay;
        if spread > 0 {
            let drawn = (u128::from(random()) * (u128::from(spread) + 1)) >> 64;
            delay = delay.saturating_add(drawn as u64);
        }
        let deadline = match since {
            None => reading.now.saturating_add(delay),
            Some(since) => reading.passed(Duration::from_nanos(since.saturating_add(delay))),
        };
        if let Some(extra) = &self.extra {
            let wait = deadline.saturating_sub(reading.now);
            extra.wait.store(wait, Ordering::Relaxed);
        }
        deadline
    }

    /// Returns how long it was to wait for its first deadline when it was armed.
    pub(crate) fn first_wait(&self) -> u64 {
        match &self.extra {
            Some(extra) => extra.wait.load(Ordering::Relaxed),
            None => self.delay,
        }
    }

    fn told(&self) -> Told {
        let extra = self.extra.as_deref();
        extra.map(|extra| extra.told).unwrap_or_default()
    }

    pub(crate) fn key(&self) -> TimerKey {
        TimerKey::from_bits(self.key.load(Ordering::Relaxed))
    }

    /// Returns where it is armed, if it is.
    pub(crate) fn armed(&self) -> Option<(ClockKey, TimerKey)> {
        let key = self.key();
        (!key.is_reserved()).then(|| (self.line.load(Ordering::Relaxed), key))
    }

    fn set_armed(&self, line: ClockKey, key: TimerKey) {
        self.line.store(line, Ordering::Relaxed);
        self.key.store(key.to_bits(), Ordering::Relaxed);
    }
}

impl MapEntities for Timer {
    fn map_entities<M: EntityMapper>(&mut self, mapper: &mut M) {
        let told = self.extra.as_deref_mut().map(|extra| &mut extra.told);
        if let Some(clock) = told.and_then(|told| told.clock.as_mut()) {
            clock.map_entities(mapper);
        }
    }
}

/// Clones what the timer was told. The clone is armed when it is inserted.
impl Clone for Timer {
    fn clone(&self) -> Self {
        let extra = self.extra.as_deref().map(|extra| {
            Box::new(Extra {
                told: extra.told,
                ..Extra::default()
            })
        });
        Self {
            extra,
            ..Self::new(self.delay, self.interval, self.times)
        }
    }
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        (self.delay, self.interval, self.times) == (other.delay, other.interval, other.times)
            && self.told() == other.told()
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

/// A [`Timer`] as it is written to a file. What is as usual may be left out.
#[cfg(feature = "serialize")]
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Timer", deny_unknown_fields)]
struct TimerData {
    delay: Duration,
    interval: Option<Duration>,
    times: Option<u32>,
    #[serde(default)]
    clock: Option<ClockId>,
    #[serde(default)]
    missed_ticks: MissedTicks,
    #[serde(default)]
    since: Option<Duration>,
    #[serde(default)]
    longest_delay: Option<Duration>,
    #[serde(default)]
    when_done: WhenDone,
}

#[cfg(feature = "serialize")]
impl From<Timer> for TimerData {
    fn from(timer: Timer) -> Self {
        let Told {
            clock,
            since,
            spread,
            missed_ticks,
            when_done,
        } = timer.told();
        let longest_delay = (spread > 0).then(|| timer.delay.saturating_add(spread));
        Self {
            delay: timer.delay(),
            interval: timer.interval(),
            times: timer.max_firings(),
            clock,
            missed_ticks,
            since: since.map(Duration::from_nanos),
            longest_delay: longest_delay.map(Duration::from_nanos),
            when_done,
        }
    }
}

#[cfg(feature = "serialize")]
impl TryFrom<TimerData> for Timer {
    type Error = InvalidTimer;

    fn try_from(data: TimerData) -> Result<Self, InvalidTimer> {
        let mut timer = match data.interval {
            Some(interval) => Self::try_every(interval)?.first_after(data.delay),
            None => Self::after(data.delay),
        };
        if let Some(longest) = data.longest_delay {
            timer = timer.try_first_after_between(data.delay..=longest)?;
        }
        if let Some(since) = data.since {
            timer = timer.since(since);
        }
        if let Some(times) = data.times {
            timer = timer.try_times(times)?;
        }
        if (data.clock, data.missed_ticks, data.when_done) != Default::default() {
            let told = timer.told_mut();
            told.clock = data.clock;
            told.missed_ticks = data.missed_ticks;
            told.when_done = data.when_done;
        }
        Ok(timer)
    }
}

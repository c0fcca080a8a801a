//! The serialized forms of [`Timer`] and [`DespawnAfter`].

use core::{num::NonZeroU64, time::Duration};

use serde::{Deserialize, Serialize, Serializer};

use super::fields::Fields;
use crate::{
    clock::{ClockId, saturating_nanos},
    timer::{DespawnAfter, InvalidTimer, MissedTicks, Options, Timer, WhenDone},
};

/// What a [`Timer`] is read from. Fields with a default may be omitted.
#[derive(Deserialize)]
#[serde(rename = "Timer", deny_unknown_fields)]
pub(in crate::timer) struct TimerData {
    delay: Duration,
    interval: Option<Duration>,
    times: Option<u32>,
    clock: Option<ClockId>,
    #[serde(default)]
    missed_ticks: MissedTicks,
    since: Option<Duration>,
    #[serde(default)]
    jitter: Duration,
    #[serde(default)]
    interval_span: Duration,
    #[serde(default)]
    slack: Duration,
    #[serde(default)]
    when_done: WhenDone,
}

impl Serialize for Timer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let options = self.options();
        let nanos = Duration::from_nanos;
        // Reflection may have set it on a timer without an interval, where it means nothing.
        let interval_span = self.interval_span().map_or(0, NonZeroU64::get);
        let mut fields = Fields::new(serializer, "Timer", 10)?;
        fields.required("delay", &self.delay())?;
        fields.add("interval", &self.interval())?;
        fields.add("times", &self.max_firings())?;
        fields.add("clock", &options.clock)?;
        fields.add("missed_ticks", &options.missed_ticks)?;
        fields.add("since", &options.since.map(nanos))?;
        fields.add("jitter", &nanos(options.jitter))?;
        fields.add("interval_span", &nanos(interval_span))?;
        fields.add("slack", &nanos(options.slack))?;
        fields.add("when_done", &options.when_done)?;
        fields.end()
    }
}

impl TryFrom<TimerData> for Timer {
    type Error = InvalidTimer;

    fn try_from(data: TimerData) -> Result<Self, InvalidTimer> {
        let mut timer = match data.interval {
            Some(interval) => Self::try_every(interval)?.first_after(data.delay),
            None => Self::after(data.delay),
        };
        let options = Options {
            clock: data.clock,
            missed_ticks: data.missed_ticks,
            since: data.since.map(saturating_nanos),
            jitter: saturating_nanos(data.jitter),
            interval_span: saturating_nanos(data.interval_span),
            slack: saturating_nanos(data.slack),
            when_done: data.when_done,
        };
        if options != Options::default() {
            *timer.options_mut() = options;
        }
        if let Some(times) = data.times {
            timer = timer.try_times(times)?;
        }
        timer.validated()
    }
}

/// The serialized form of a [`DespawnAfter`].
#[derive(Serialize, Deserialize)]
#[serde(rename = "DespawnAfter", deny_unknown_fields)]
pub(in crate::timer) struct LifetimeData {
    delay: Duration,
    since: Option<Duration>,
}

impl From<DespawnAfter> for LifetimeData {
    fn from(lifetime: DespawnAfter) -> Self {
        Self {
            delay: lifetime.delay(),
            since: lifetime.0.options().since.map(Duration::from_nanos),
        }
    }
}

impl From<LifetimeData> for DespawnAfter {
    fn from(data: LifetimeData) -> Self {
        let lifetime = Self::new(data.delay);
        match data.since {
            Some(since) => lifetime.since(since),
            None => lifetime,
        }
    }
}

//! The serialized forms of [`Timer`] and [`DespawnAfter`].

use core::time::Duration;

use serde::{Serialize, Serializer, ser::Error};

use super::{TimerState, fields::Fields};
use crate::{
    clock::{ClockId, saturating_nanos},
    timer::{DespawnAfter, InvalidTimer, MissedTicks, Options, Timer, WhenDone},
};

/// The serialized form of a [`Timer`]. Fields with a default may be omitted.
#[derive(serde::Deserialize)]
#[serde(rename = "Timer", deny_unknown_fields)]
pub(in crate::timer) struct TimerData {
    delay: Duration,
    #[serde(default)]
    interval: Option<Duration>,
    #[serde(default)]
    times: Option<u32>,
    #[serde(default)]
    clock: Option<ClockId>,
    #[serde(default)]
    missed_ticks: MissedTicks,
    #[serde(default)]
    since: Option<Duration>,
    #[serde(default)]
    jitter: Duration,
    #[serde(default)]
    interval_span: Duration,
    #[serde(default)]
    slack: Duration,
    #[serde(default)]
    priority: Option<i32>,
    #[serde(default)]
    when_done: WhenDone,
    #[serde(default)]
    state: Option<TimerState>,
}

impl TimerData {
    fn new(timer: &Timer, state: Option<TimerState>) -> Self {
        let &Options {
            clock,
            missed_ticks,
            since,
            jitter,
            interval_span,
            slack,
            priority,
            when_done,
        } = timer.options();
        // Reflection may have set it on a timer without an interval, where it means nothing.
        let interval_span = timer.interval_span().map_or(0, |_| interval_span);
        Self {
            delay: timer.delay(),
            interval: timer.interval(),
            times: timer.max_firings(),
            clock,
            missed_ticks,
            since: since.map(Duration::from_nanos),
            jitter: Duration::from_nanos(jitter),
            interval_span: Duration::from_nanos(interval_span),
            slack: Duration::from_nanos(slack),
            priority,
            when_done,
            state,
        }
    }
}

impl Serialize for TimerData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = Fields::new(serializer, "Timer", 12)?;
        fields.required("delay", &self.delay)?;
        fields.add("interval", &self.interval)?;
        fields.add("times", &self.times)?;
        fields.add("clock", &self.clock)?;
        fields.add("missed_ticks", &self.missed_ticks)?;
        fields.add("since", &self.since)?;
        fields.add("jitter", &self.jitter)?;
        fields.add("interval_span", &self.interval_span)?;
        fields.add("slack", &self.slack)?;
        fields.add("priority", &self.priority)?;
        fields.add("when_done", &self.when_done)?;
        fields.add("state", &self.state)?;
        fields.end()
    }
}

impl Serialize for Timer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let state = self.written_state().map_err(Error::custom)?;
        TimerData::new(self, state).serialize(serializer)
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
            priority: data.priority,
            when_done: data.when_done,
        };
        if options != Options::default() {
            *timer.options_mut() = options;
        }
        if let Some(times) = data.times {
            timer = timer.try_times(times)?;
        }
        if let Some(state) = data.state {
            timer.load(state);
        }
        timer.validated()
    }
}

/// The serialized form of a [`DespawnAfter`].
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "DespawnAfter", deny_unknown_fields)]
pub(in crate::timer) struct LifetimeData {
    delay: Duration,
    #[serde(default)]
    state: Option<TimerState>,
}

impl Serialize for DespawnAfter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let state = self.0.written_state().map_err(Error::custom)?;
        let delay = self.delay();
        LifetimeData { delay, state }.serialize(serializer)
    }
}

impl From<LifetimeData> for DespawnAfter {
    fn from(data: LifetimeData) -> Self {
        let mut lifetime = Self::new(data.delay);
        if let Some(state) = data.state {
            lifetime.0.load(state);
        }
        lifetime
    }
}

//! Reflection of a [`Timer`] as a struct. Times are in nanoseconds.

use core::num::{NonZeroU32, NonZeroU64};

use bevy_reflect::{FromReflect, PartialReflect};

use super::{Arms, MissedTicks, Options, Timer, WhenDone};
use crate::{
    clock::ClockId,
    shown_fields::{ShownFields, reflect_as_struct},
};

/// The settings of a timer without extra settings.
static NO_OPTIONS: Options = Options {
    clock: None,
    since: None,
    jitter: 0,
    interval_span: 0,
    slack: 0,
    priority: None,
    missed_ticks: MissedTicks::Burst,
    when_done: WhenDone::DespawnIfOwned,
};

reflect_as_struct!(Timer {
    delay: u64,
    interval: Option<NonZeroU64>,
    times: Option<NonZeroU32>,
    clock: Option<ClockId>,
    missed_ticks: MissedTicks,
    since: Option<u64>,
    jitter: u64,
    interval_span: u64,
    slack: u64,
    priority: Option<i32>,
    when_done: WhenDone,
});

impl ShownFields for Timer {
    fn shown(&self, name: &str) -> Option<&dyn PartialReflect> {
        let extra = self.extra.as_deref();
        let options = extra.map_or(&NO_OPTIONS, |extra| &extra.options);
        Some(match name {
            "delay" => &self.delay,
            "interval" => &self.interval,
            "times" => &self.times,
            "clock" => &options.clock,
            "missed_ticks" => &options.missed_ticks,
            "since" => &options.since,
            "jitter" => &options.jitter,
            "interval_span" => &options.interval_span,
            "slack" => &options.slack,
            "priority" => &options.priority,
            "when_done" => &options.when_done,
            _ => return None,
        })
    }

    fn shown_mut(&mut self, name: &str) -> Option<&mut dyn PartialReflect> {
        Some(match name {
            "delay" => &mut self.delay,
            "interval" => &mut self.interval,
            "times" => &mut self.times,
            "clock" => &mut self.options_mut().clock,
            "missed_ticks" => &mut self.options_mut().missed_ticks,
            "since" => &mut self.options_mut().since,
            "jitter" => &mut self.options_mut().jitter,
            "interval_span" => &mut self.options_mut().interval_span,
            "slack" => &mut self.options_mut().slack,
            "priority" => &mut self.options_mut().priority,
            "when_done" => &mut self.options_mut().when_done,
            _ => return None,
        })
    }

    fn detached(&self) -> Self {
        Arms::detached(self)
    }

    fn replace_by(&mut self, other: &Self) {
        *self = other.saved_or_clone();
    }
}

/// Fields that are missing have their defaults. Fails if a field has another type, or if a timer
/// without an interval should fire several times.
impl FromReflect for Timer {
    fn from_reflect(reflect: &dyn PartialReflect) -> Option<Self> {
        let fields = reflect.reflect_ref().as_struct().ok()?;
        let mut timer = Self::default();
        timer.try_apply(reflect).ok()?;
        if timer.interval.is_some() && fields.field("times").is_none() {
            timer.times = None;
        }
        let is_valid = match timer.interval {
            Some(_) => true,
            None => timer.times == Some(NonZeroU32::MIN) && timer.options().interval_span == 0,
        };
        is_valid.then_some(timer)
    }
}

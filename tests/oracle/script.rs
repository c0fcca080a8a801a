//! Random operations, and the log entries that they cause.

use std::collections::HashMap;

use bevy_due::{CancelReason, MissedTicks};
use proptest::prelude::*;

/// The number of clocks: the clock of the game and three custom clocks.
pub(crate) const CLOCKS: usize = 4;

/// The length of a tick in nanoseconds. It can be quartered ten times.
pub(crate) const TICK: u64 = 1 << 20;

/// The places that can hold a timer.
pub(crate) const PLACES: [Place; 9] = [
    Place::FREE,
    Place::FREE,
    Place::FREE,
    Place::of(0),
    Place::of(0).surviving(),
    Place::of(1),
    Place::of(0).under("a"),
    Place::of(0).under("b").surviving(),
    Place::of(1).under("a"),
];

/// The number of places, from the first, that own other places.
pub(crate) const OWNERS: usize = 2;

/// The places that have a key.
const KEYED: core::ops::Range<usize> = 6..9;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) owner: Option<usize>,
    pub(crate) key: Option<&'static str>,
    pub(crate) survives: bool,
}

impl Place {
    const FREE: Self = Self {
        owner: None,
        key: None,
        survives: false,
    };

    const fn of(owner: usize) -> Self {
        Self {
            owner: Some(owner),
            ..Self::FREE
        }
    }

    const fn under(self, key: &'static str) -> Self {
        Self {
            key: Some(key),
            ..self
        }
    }

    const fn surviving(self) -> Self {
        Self {
            survives: true,
            ..self
        }
    }
}

/// A timer to arm. Times are in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub(crate) delay: u64,
    /// Zero for a one-shot timer.
    pub(crate) interval: u64,
    /// Zero for no limit.
    pub(crate) times: u32,
    pub(crate) missed_ticks: MissedTicks,
    pub(crate) clock: usize,
    /// Whether it is inserted together with `Paused`.
    pub(crate) paused: bool,
}

/// An operation on the entity at a place, or on a clock. Times are in ticks, speeds in quarters.
/// Arming a timer spawns the entity of its place and the owner if they do not exist.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Arm(usize, Spec),
    /// Arms with `set_timer`, at a place that has a key.
    Set(usize, Spec),
    Remove(usize),
    Despawn(usize),
    PauseTimers(usize),
    ResumeTimers(usize),
    CancelKey(usize),
    CancelDeletable(usize),
    CancelAll(usize),
    Reschedule(usize, u64),
    DelayBy(usize, u64),
    DelayAllBy(usize, u64),
    /// Spawns a clock, or replaces the one with this number.
    SpawnClock {
        clock: usize,
        parent: usize,
        quarters: u32,
    },
    DespawnClock(usize),
    SetSpeed(usize, u32),
    PauseClock(usize),
    ResumeClock(usize),
    AdvanceBy(usize, u64),
    SetNow(usize, u64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Do(Op),
    /// Runs a frame of this many ticks.
    Frame(u64),
}

/// The operations of the handler at the n-th firing of the timer at a place.
pub(crate) type Script = HashMap<(usize, u64), Vec<Op>>;

/// An entry in the log. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LogEntry {
    Fired {
        place: usize,
        deadline: i64,
        lateness: i64,
        count: u64,
        missed: u64,
        last: bool,
    },
    Cancelled(usize, CancelReason),
    /// The place had no timer to move or cancel.
    Refused(usize),
}

impl LogEntry {
    pub(crate) fn is_fired(&self) -> bool {
        matches!(self, Self::Fired { .. })
    }

    fn place(&self) -> usize {
        match *self {
            Self::Fired { place, .. } | Self::Cancelled(place, _) | Self::Refused(place) => place,
        }
    }
}

/// Sorts the log of one operation by place: timers cancelled together are logged in any order.
pub(crate) fn sort_by_place(log: &mut [LogEntry]) {
    log.sort_by_key(LogEntry::place);
}

/// The status of an armed timer. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Armed {
    pub(crate) place: usize,
    pub(crate) clock: usize,
    pub(crate) deadline: i64,
    pub(crate) count: u64,
    pub(crate) paused: bool,
}

fn any_spec() -> impl Strategy<Value = Spec> {
    let missed_ticks = prop_oneof![
        2 => Just(MissedTicks::Burst),
        1 => Just(MissedTicks::Delay),
        1 => Just(MissedTicks::Skip),
    ];
    (
        0..12_u64,
        prop_oneof![Just(0), 1..8_u64],
        0..5_u32,
        missed_ticks,
        prop_oneof![2 => Just(0), 3 => 0..CLOCKS],
        prop::bool::weighted(0.1),
    )
        .prop_map(
            |(delay, interval, times, missed_ticks, clock, paused)| Spec {
                delay,
                interval,
                times,
                missed_ticks,
                clock,
                paused,
            },
        )
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => any_timer_op(),
        1 => any_clock_op(),
    ]
}

fn any_timer_op() -> impl Strategy<Value = Op> {
    let place = 0..PLACES.len();
    let owner = 0..OWNERS;
    prop_oneof![
        8 => (place.clone(), any_spec()).prop_map(|(place, spec)| Op::Arm(place, spec)),
        3 => (KEYED, any_spec()).prop_map(|(place, spec)| Op::Set(place, spec)),
        1 => place.clone().prop_map(Op::Remove),
        1 => place.clone().prop_map(Op::Despawn),
        2 => place.clone().prop_map(Op::PauseTimers),
        2 => place.clone().prop_map(Op::ResumeTimers),
        1 => KEYED.prop_map(Op::CancelKey),
        1 => owner.clone().prop_map(Op::CancelDeletable),
        1 => owner.clone().prop_map(Op::CancelAll),
        2 => (place.clone(), 0..60_u64).prop_map(|(place, to)| Op::Reschedule(place, to)),
        2 => (place, 0..12_u64).prop_map(|(place, by)| Op::DelayBy(place, by)),
        1 => (owner, 0..12_u64).prop_map(|(owner, by)| Op::DelayAllBy(owner, by)),
    ]
}

fn any_clock_op() -> impl Strategy<Value = Op> {
    let clock = 0..CLOCKS;
    let own = 1..CLOCKS;
    let quarters = prop::sample::select(vec![0_u32, 1, 2, 4, 8]);
    let spawn = (own.clone(), clock.clone(), quarters.clone());
    prop_oneof![
        2 => spawn.prop_map(|(clock, parent, quarters)| Op::SpawnClock { clock, parent, quarters }),
        1 => own.prop_map(Op::DespawnClock),
        2 => (clock.clone(), quarters).prop_map(|(clock, speed)| Op::SetSpeed(clock, speed)),
        5 => clock.clone().prop_map(Op::PauseClock),
        7 => clock.clone().prop_map(Op::ResumeClock),
        1 => (clock.clone(), 0..20_u64).prop_map(|(clock, by)| Op::AdvanceBy(clock, by)),
        1 => (clock, 0..60_u64).prop_map(|(clock, to)| Op::SetNow(clock, to)),
    ]
}

pub(crate) fn any_script() -> impl Strategy<Value = Script> {
    let when = (0..PLACES.len(), 1..6_u64);
    prop::collection::hash_map(when, prop::collection::vec(any_op(), 1..4), 0..20)
}

pub(crate) fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => any_op().prop_map(Step::Do),
        2 => (0..40_u64).prop_map(Step::Frame),
    ];
    prop::collection::vec(step, 0..50)
}

//! What is done in a game, and what is seen of it.

use std::collections::HashMap;

use bevy_due::{CancelReason, MissedTicks};
use proptest::prelude::*;

/// The clock of the game, and three of our own.
pub(crate) const CLOCKS: usize = 4;

/// In nanoseconds. It can be quartered ten times.
pub(crate) const TICK: u64 = 1 << 20;

/// Where there can be a timer.
pub(crate) const PLACES: [Place; 9] = [
    Place::FREE,
    Place::FREE,
    Place::FREE,
    Place::of(0),
    Place::of(0).that_survives(),
    Place::of(1),
    Place::of(0).under("a"),
    Place::of(0).under("b").that_survives(),
    Place::of(1).under("a"),
];

/// The places that own others.
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

    const fn that_survives(self) -> Self {
        Self {
            survives: true,
            ..self
        }
    }
}

/// Times are in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub(crate) delay: u64,
    /// Zero for a timer that fires once.
    pub(crate) interval: u64,
    /// Zero for ever.
    pub(crate) times: u32,
    pub(crate) missed_ticks: MissedTicks,
    pub(crate) clock: usize,
    /// Whether it is inserted together with `Paused`.
    pub(crate) held: bool,
}

/// Something done to the entity at a place, or to a clock. Times are in ticks, speeds in
/// quarters. A place or an owner whose entity is gone gets a new one when something is armed there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Arm(usize, Spec),
    /// Arms by `set_timer`, at a place that has a key.
    Set(usize, Spec),
    Remove(usize),
    Despawn(usize),
    Hold(usize),
    Release(usize),
    CancelKey(usize),
    CancelDeletable(usize),
    CancelAll(usize),
    Reschedule(usize, u64),
    DelayBy(usize, u64),
    DelayAllBy(usize, u64),
    /// Spawns a clock, or puts another one in its place.
    SpawnClock {
        clock: usize,
        parent: usize,
        quarters: u32,
    },
    DespawnClock(usize),
    SetSpeed(usize, u32),
    Pause(usize),
    Unpause(usize),
    AdvanceBy(usize, u64),
    SetNow(usize, u64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Do(Op),
    /// Runs a frame that takes so many ticks.
    Frame(u64),
}

/// What the handler does at the n-th firing of the timer at a place.
pub(crate) type Script = HashMap<(usize, u64), Vec<Op>>;

/// Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Happened {
    Fired {
        place: usize,
        deadline: i64,
        lateness: i64,
        count: u64,
        missed: u64,
        last: bool,
    },
    Cancelled(usize, CancelReason),
    /// There was no timer to move or to cancel there.
    Refused(usize),
}

impl Happened {
    pub(crate) fn is_fired(&self) -> bool {
        matches!(self, Self::Fired { .. })
    }

    fn place(&self) -> usize {
        match *self {
            Self::Fired { place, .. } | Self::Cancelled(place, _) | Self::Refused(place) => place,
        }
    }
}

/// Timers that go together go in any order. Orders what one operation has logged by places.
pub(crate) fn sort_by_place(log: &mut [Happened]) {
    log.sort_by_key(Happened::place);
}

/// What is known of an armed timer. Times are in nanoseconds.
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
        .prop_map(|(delay, interval, times, missed_ticks, clock, held)| Spec {
            delay,
            interval,
            times,
            missed_ticks,
            clock,
            held,
        })
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
        2 => place.clone().prop_map(Op::Hold),
        2 => place.clone().prop_map(Op::Release),
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
        5 => clock.clone().prop_map(Op::Pause),
        7 => clock.clone().prop_map(Op::Unpause),
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

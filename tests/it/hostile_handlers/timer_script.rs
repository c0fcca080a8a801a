//! The random script of a game with timers: its operations, and the reactions of its handlers.

use bevy_due::{ClockId, MissedTicks, Timer};
use core::time::Duration;
use proptest::{collection::vec, option::weighted, prelude::*, sample::select};

pub(crate) const TIMERS: usize = 10;
pub(crate) const OWNERS: usize = 4;
pub(crate) const CLOCKS: usize = 4;

pub(crate) const BUILT_IN_CLOCKS: [ClockId; 4] = [
    ClockId::Virtual,
    ClockId::Real,
    ClockId::Frames,
    ClockId::Fixed,
];

const MAX_FRAMES: usize = 40;

/// A timer to arm.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) timer: Timer,
    /// The custom clock of the timer, if any.
    pub(crate) clock: Option<usize>,
}

/// An operation on the timer, owner or clock with this index.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Timer(usize, TimerOp),
    Owner(usize, OwnerOp),
    Clock(usize, ClockOp),
    BuiltInClock(usize, BuiltInClockOp),
    FastForward(Duration),
    /// Runs the timers and callbacks of the fixed schedule, inside whatever runs now.
    RunFixedStep,
}

#[derive(Clone, Debug)]
pub(crate) enum TimerOp {
    Arm(Spec),
    /// Arms a timer with an action that plays a reaction.
    ArmWithAction(Spec),
    AddAction,
    Remove,
    Despawn,
    Pause,
    Resume,
    Disable,
    Enable,
    JoinOwner(usize),
    LeaveOwner,
    MoveToClock(usize),
    Reschedule(Duration),
    DelayBy(Duration),
}

#[derive(Clone, Debug)]
pub(crate) enum OwnerOp {
    Despawn,
    /// Spawns a new owner if this one is gone.
    Respawn,
    Pause,
    Disable,
    ResumeAndEnable,
    CancelTimers,
    /// Arms a timer with `set_timer`, and lets the index refer to it.
    SetTimer(usize, Spec),
    /// Spawns an owned timer even if the owner is gone, and lets the index refer to it.
    SpawnTimer(usize, Spec),
}

#[derive(Clone, Debug)]
pub(crate) enum ClockOp {
    Despawn,
    Spawn,
    Remove,
    Insert(Parent),
    InsertManual,
    SetParent(Parent),
    /// Swaps the component with that of another clock.
    Swap(usize),
    Pause,
    Resume,
    /// Sets the speed to zero.
    Stop,
    /// Sets the speed to two.
    Double,
    AdvanceBy(Duration),
    SkipBy(Duration),
    FastForward(Duration),
}

/// The parent of a clock.
#[derive(Clone, Debug)]
pub(crate) enum Parent {
    Default,
    BuiltIn(usize),
    /// The entity of an owner, which has no clock.
    Owner(usize),
    /// Another clock, or the same one.
    Clock(usize),
}

#[derive(Clone, Debug)]
pub(crate) enum BuiltInClockOp {
    Pause,
    Resume,
    /// Sets the time to one second.
    SetNow,
}

/// The behaviour of a handler in one of its calls. Without operations, it does nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reaction {
    pub(crate) ops: Vec<Op>,
    pub(crate) panic: Option<PanicIn>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PanicIn {
    Handler,
    /// A command that the handler queues after its operations.
    Command,
}

/// Repairs the timer, and the owner and the clocks if there are any with the same index.
#[derive(Clone, Debug)]
pub(crate) struct Repair {
    pub(crate) enable_timer: bool,
    pub(crate) enable_owner: bool,
    /// The timer to arm if there is none, and its owner.
    pub(crate) spec: Spec,
    pub(crate) owner: Option<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// Played first, so that later frames are not empty: one for each timer.
    pub(crate) repairs: Vec<Option<Repair>>,
    /// Played before the frame runs.
    pub(crate) ops: Vec<Op>,
    pub(crate) millis: u64,
    /// Used by one firing or action each. Firings after the last one do nothing.
    pub(crate) on_firings: Vec<Reaction>,
    /// Used by one cancellation each.
    pub(crate) on_cancellations: Vec<Reaction>,
    /// Used by one inserted or removed timer each.
    pub(crate) on_changes: Vec<Option<Op>>,
}

fn any_millis(range: core::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_millis)
}

fn any_spec() -> impl Strategy<Value = Spec> {
    let timer = prop_oneof![
        1 => any_millis(0..30).prop_map(Timer::after),
        1 => any_millis(1..21).prop_map(Timer::every),
        2 => (any_millis(1..13), 1..6_u32)
            .prop_map(|(interval, times)| Timer::every(interval).times(times)),
    ];
    let missed_ticks = select(vec![
        MissedTicks::Burst,
        MissedTicks::Skip,
        MissedTicks::Delay,
    ]);
    let when_done = prop_oneof![
        6 => Just((|timer| timer) as fn(Timer) -> Timer),
        1 => Just(Timer::keep_when_done as fn(Timer) -> Timer),
        1 => Just(Timer::despawn_when_done as fn(Timer) -> Timer),
    ];
    let built_in = weighted(0.6, select(BUILT_IN_CLOCKS.to_vec()));
    let clock = weighted(0.17, 0..CLOCKS);
    (timer, missed_ticks, when_done, built_in, clock).prop_map(
        |(timer, missed_ticks, when_done, built_in, clock)| {
            let timer = when_done(timer.with_missed_ticks(missed_ticks));
            let timer = match built_in {
                Some(id) => timer.on(id),
                None => timer,
            };
            Spec { timer, clock }
        },
    )
}

fn any_timer_op() -> impl Strategy<Value = TimerOp> {
    prop_oneof![
        2 => any_spec().prop_map(TimerOp::Arm),
        1 => any_spec().prop_map(TimerOp::ArmWithAction),
        8 => select(vec![
            TimerOp::AddAction,
            TimerOp::Remove,
            TimerOp::Despawn,
            TimerOp::Pause,
            TimerOp::Resume,
            TimerOp::Disable,
            TimerOp::Enable,
            TimerOp::LeaveOwner,
        ]),
        1 => (0..OWNERS).prop_map(TimerOp::JoinOwner),
        1 => (0..CLOCKS).prop_map(TimerOp::MoveToClock),
        1 => (0..4_u64).prop_map(|n| TimerOp::Reschedule(Duration::from_millis(n * 30))),
        1 => (0..4_u64).prop_map(|n| TimerOp::DelayBy(Duration::from_millis(n * 7))),
    ]
}

fn any_owner_op() -> impl Strategy<Value = OwnerOp> {
    prop_oneof![
        6 => select(vec![
            OwnerOp::Respawn,
            OwnerOp::Pause,
            OwnerOp::ResumeAndEnable,
            OwnerOp::Disable,
            OwnerOp::CancelTimers,
            OwnerOp::Despawn,
        ]),
        1 => (0..TIMERS, any_spec()).prop_map(|(timer, spec)| OwnerOp::SetTimer(timer, spec)),
        1 => (0..TIMERS, any_spec()).prop_map(|(timer, spec)| OwnerOp::SpawnTimer(timer, spec)),
    ]
}

fn any_clock_op() -> impl Strategy<Value = ClockOp> {
    let parent = prop_oneof![
        1 => Just(Parent::Default),
        2 => (0..BUILT_IN_CLOCKS.len()).prop_map(Parent::BuiltIn),
        1 => (0..OWNERS).prop_map(Parent::Owner),
        2 => (0..CLOCKS).prop_map(Parent::Clock),
    ]
    .boxed();
    let change = select(vec![
        ClockOp::Resume,
        ClockOp::Pause,
        ClockOp::Stop,
        ClockOp::Double,
    ]);
    prop_oneof![
        Just(ClockOp::Spawn),
        Just(ClockOp::Despawn),
        Just(ClockOp::Remove),
        parent.clone().prop_map(ClockOp::Insert),
        Just(ClockOp::InsertManual),
        parent.prop_map(ClockOp::SetParent),
        (0..CLOCKS).prop_map(ClockOp::Swap),
        change,
        any_fast_forward().prop_map(ClockOp::AdvanceBy),
        any_fast_forward().prop_map(ClockOp::SkipBy),
        any_fast_forward().prop_map(ClockOp::FastForward),
    ]
}

fn any_built_in_clock_op() -> impl Strategy<Value = BuiltInClockOp> {
    prop_oneof![
        3 => Just(BuiltInClockOp::Resume),
        3 => Just(BuiltInClockOp::SetNow),
        1 => Just(BuiltInClockOp::Pause),
    ]
}

fn any_fast_forward() -> impl Strategy<Value = Duration> {
    (0..4_u64).prop_map(|n| Duration::from_millis(n * 10))
}

fn any_op() -> BoxedStrategy<Op> {
    let built_in = 0..BUILT_IN_CLOCKS.len();
    prop_oneof![
        15 => (0..TIMERS, any_timer_op()).prop_map(|(timer, op)| Op::Timer(timer, op)),
        8 => (0..OWNERS, any_owner_op()).prop_map(|(owner, op)| Op::Owner(owner, op)),
        5 => (0..CLOCKS, any_clock_op()).prop_map(|(clock, op)| Op::Clock(clock, op)),
        2 => (built_in, any_built_in_clock_op()).prop_map(|(clock, op)| Op::BuiltInClock(clock, op)),
        1 => any_fast_forward().prop_map(Op::FastForward),
        1 => Just(Op::RunFixedStep),
    ]
    .boxed()
}

/// Returns reactions of a firing or an action: one operation on average.
fn any_firing_reaction() -> impl Strategy<Value = Reaction> {
    let panic = select(vec![PanicIn::Handler, PanicIn::Command]);
    (vec(any_op(), 0..3), weighted(0.13, panic)).prop_map(|(ops, panic)| Reaction { ops, panic })
}

/// Returns reactions to a cancellation, which mostly do nothing.
fn any_cancel_reaction() -> impl Strategy<Value = Reaction> {
    let panic = weighted(0.05, Just(PanicIn::Handler));
    (weighted(0.1, any_op()), panic).prop_map(|(op, panic)| Reaction {
        ops: op.into_iter().collect(),
        panic,
    })
}

fn any_repair() -> impl Strategy<Value = Repair> {
    let third = || prop::bool::weighted(0.33);
    (third(), third(), any_spec(), weighted(0.5, 0..OWNERS)).prop_map(
        |(enable_timer, enable_owner, spec, owner)| Repair {
            enable_timer,
            enable_owner,
            spec,
            owner,
        },
    )
}

fn any_frame() -> impl Strategy<Value = Frame> {
    (
        vec(weighted(0.95, any_repair()), TIMERS),
        vec(any_op(), 0..8),
        0..60_u64,
        vec(any_firing_reaction(), 0..24),
        vec(any_cancel_reaction(), 0..24),
        vec(weighted(0.05, any_op()), 0..48),
    )
        .prop_map(
            |(repairs, ops, millis, on_firings, on_cancellations, on_changes)| Frame {
                repairs,
                ops,
                millis,
                on_firings,
                on_cancellations,
                on_changes,
            },
        )
}

pub(crate) fn any_frames() -> impl Strategy<Value = Vec<Frame>> {
    vec(any_frame(), 1..MAX_FRAMES)
}

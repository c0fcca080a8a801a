//! The random script of a game, and of how it is interrupted.

use bevy_due::MissedTicks;
use proptest::{collection::vec, option::weighted, prelude::*, sample::select};

/// The groups of entities. A group moves to another world as a whole.
pub(crate) const PARTIES: usize = 2;

/// The entities of a party. The first one owns all others, directly or not, and always exists.
pub(crate) const SLOTS: usize = 10;

pub(crate) const KEYS: [&str; 3] = ["a", "b", "c"];

pub(crate) type Slot = usize;

/// A game. All times are in milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// Whether observers log the events, or the log reads the messages.
    pub(crate) is_observed: bool,
    /// The seed of random delays.
    pub(crate) seed: u64,
    /// Timers of the second party without a slot.
    pub(crate) crowd: Vec<Spec>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) interruptions: Vec<Interruption>,
}

#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// Changes of built-in clocks, in all worlds.
    pub(crate) clocks: Vec<(usize, ClockChange)>,
    /// Played before the frame runs, each by a party.
    pub(crate) ops: Vec<(usize, Op)>,
    /// What the handlers of each party do, in order. Later handlers do nothing.
    pub(crate) reactions: Vec<Vec<Op>>,
    pub(crate) millis: u64,
}

/// What happens to the entity in a slot, which is spawned first if there is none. Only an entity in a
/// lower slot can own it, or be paused or driven by it. The first entity neither despawns nor has an owner.
pub(crate) type Op = (Slot, Act);

#[derive(Clone, Debug)]
pub(crate) enum Act {
    Arm(Spec),
    /// Sets a timer of a lower entity under a key. The new entity takes the slot.
    ArmKeyed(Slot, usize, Spec),
    CancelKey(usize),
    Change(Change),
    Disarm,
    Despawn,
    /// Changes the owner, and gets a key.
    Belong(Slot, Option<usize>),
    Live(u64),
    Pause(bool),
    Disable(bool),
    PauseFor(u64),
    /// Pauses a lower entity, which may be its owner.
    Pauses(Slot),
    /// Removes the oldest pause.
    EndPause,
    On(At),
    /// Gets a clock with this parent and speed.
    Clock(At, f64),
    ChangeClock(ClockChange),
    /// Changes the speed of a lower entity's clock.
    Modify(Slot, f64),
    /// Gets a cooldown with two charges on a clock. It ends with the next change of the clock.
    Cool(At, u64),
    /// Uses a charge.
    Use,
    /// Gets a packet, or a message of a type.
    Hear(u8, bool),
    /// Asks an entity, which may reply, until a time-out.
    Ask(Slot, bool, u64),
}

impl Act {
    /// Returns `true` if a timer that waits for its first run may get another clock. A timer that was loaded
    /// before its first run keeps the clock that it had.
    fn chooses_clock(&self) -> bool {
        matches!(
            self,
            Self::Belong(..) | Self::Clock(..) | Self::Cool(..) | Self::Modify(..) | Self::On(_)
        )
    }
}

/// A timer to arm.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) delay: u64,
    pub(crate) jitter: u64,
    /// Zero for a one-shot timer.
    pub(crate) interval: u64,
    /// The longest random addition to each interval.
    pub(crate) span: u64,
    pub(crate) slack: u64,
    pub(crate) times: Option<u32>,
    pub(crate) missed: MissedTicks,
    /// Whether the entity despawns after the last firing, if the owner does not decide.
    pub(crate) despawns: Option<bool>,
    pub(crate) on: Option<At>,
    /// Whether a handler is called.
    pub(crate) acts: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Change {
    Pause,
    Resume,
    Restart,
    Refresh,
    SetLeft(u32),
    SetInterval(u64),
    SetRemaining(u64),
    DelayBy(u64),
    SetClock(At),
}

#[derive(Clone, Debug)]
pub(crate) enum ClockChange {
    Pause(bool),
    Speed(f64),
    Advance(u64),
    /// Only of a clock of a party.
    SetNow(u64),
    /// Only of a clock of a party.
    SetParent(At),
}

/// A clock: a built-in one, or that of a party's entity.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At {
    BuiltIn(usize),
    Own(Slot),
}

/// What happens before a frame.
#[derive(Clone, Debug)]
pub(crate) struct Interruption {
    /// It happens before this frame, or before a later one if the game has gone on.
    pub(crate) frame: usize,
    pub(crate) way: Way,
}

#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// All worlds are saved, and loaded into new apps.
    Save(Format),
    /// A party moves to the other world.
    Move(usize, Format),
    /// A party moves to the other world, which refuses it.
    Return(usize, Format),
    /// Some frames are played with the inputs of others, and then rolled back.
    Predict { inputs: usize, frames: usize },
    /// Keeps a snapshot.
    Mark,
    /// The game goes back to one of the snapshots, and goes on from there. Later ones stay.
    Back(usize),
    /// A timer, a callback and a follower that belong to no party panic in the next frame.
    Panic,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Format {
    Ron,
    Postcard,
}

fn any_slot() -> impl Strategy<Value = Slot> {
    0..SLOTS
}

/// A multiple of ten, so that equal deadlines are common.
fn any_span(most: u64) -> impl Strategy<Value = u64> {
    (0..most / 10).prop_map(|tens| 10 * tens)
}

fn any_at() -> impl Strategy<Value = At> {
    prop_oneof![
        1 => (0..4_usize).prop_map(At::BuiltIn),
        1 => any_slot().prop_map(At::Own),
    ]
}

fn any_ratio() -> impl Strategy<Value = f64> {
    select(vec![0.0, 0.25, 1.0 / 3.0, 1.0, 1.0, 1.7, 3.0])
}

fn any_spec() -> impl Strategy<Value = Spec> {
    let rarely = || prop_oneof![4 => Just(0), 1 => any_span(100)];
    let interval = prop_oneof![1 => Just(0), 2 => any_span(200).prop_map(|span| span + 10)];
    let missed = select(vec![
        MissedTicks::Burst,
        MissedTicks::Burst,
        MissedTicks::Skip,
        MissedTicks::Delay,
    ]);
    (
        (any_span(300), rarely(), interval, rarely(), rarely()),
        weighted(0.4, 1..6_u32),
        missed,
        weighted(0.3, any::<bool>()),
        weighted(0.5, any_at()),
        any::<bool>(),
    )
        .prop_map(
            |((delay, jitter, interval, span, slack), times, missed, despawns, on, acts)| Spec {
                delay,
                jitter,
                interval,
                span,
                slack,
                times,
                missed,
                despawns,
                on,
                acts,
            },
        )
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        Just(Change::Pause),
        Just(Change::Resume),
        Just(Change::Restart),
        Just(Change::Refresh),
        (1..5_u32).prop_map(Change::SetLeft),
        any_span(200).prop_map(|span| Change::SetInterval(span + 10)),
        any_span(200).prop_map(Change::SetRemaining),
        any_span(200).prop_map(Change::DelayBy),
        any_at().prop_map(Change::SetClock),
    ]
}

fn any_built_in_change() -> impl Strategy<Value = ClockChange> {
    prop_oneof![
        2 => Just(ClockChange::Pause(false)),
        1 => Just(ClockChange::Pause(true)),
        2 => any_ratio().prop_map(ClockChange::Speed),
        2 => any_span(300).prop_map(ClockChange::Advance),
    ]
}

fn any_clock_change() -> impl Strategy<Value = ClockChange> {
    prop_oneof![
        7 => any_built_in_change(),
        2 => any_span(1000).prop_map(ClockChange::SetNow),
        2 => any_at().prop_map(ClockChange::SetParent),
    ]
}

fn any_op() -> BoxedStrategy<Op> {
    let key = || 0..KEYS.len();
    let rarely = || prop::bool::weighted(0.3);
    let timers = prop_oneof![
        8 => any_spec().prop_map(Act::Arm),
        3 => (any_slot(), key(), any_spec())
            .prop_map(|(owner, key, spec)| Act::ArmKeyed(owner, key, spec)),
        1 => key().prop_map(Act::CancelKey),
        4 => any_change().prop_map(Act::Change),
        1 => Just(Act::Disarm),
        1 => Just(Act::Despawn),
        3 => (any_slot(), weighted(0.5, key())).prop_map(|(owner, key)| Act::Belong(owner, key)),
        2 => any_span(500).prop_map(Act::Live),
        1 => (any_at(), any_span(300)).prop_map(|(at, span)| Act::Cool(at, span)),
        1 => Just(Act::Use),
    ];
    let pauses = prop_oneof![
        4 => rarely().prop_map(Act::Pause),
        3 => rarely().prop_map(Act::Disable),
        2 => any_span(200).prop_map(Act::PauseFor),
        2 => any_slot().prop_map(Act::Pauses),
        2 => Just(Act::EndPause),
    ];
    let clocks = prop_oneof![
        3 => (any_at(), any_ratio()).prop_map(|(parent, speed)| Act::Clock(parent, speed)),
        2 => any_at().prop_map(Act::On),
        4 => any_clock_change().prop_map(Act::ChangeClock),
        2 => (any_slot(), any_ratio()).prop_map(|(clock, factor)| Act::Modify(clock, factor)),
    ];
    let mail = prop_oneof![
        2 => any::<(u8, bool)>().prop_map(|(word, is_packet)| Act::Hear(word, is_packet)),
        2 => (any_slot(), any::<bool>(), any_span(200))
            .prop_map(|(to, replies, span)| Act::Ask(to, replies, span)),
    ];
    let act = prop_oneof![6 => timers, 2 => pauses, 3 => clocks, 2 => mail];
    (any_slot(), act).boxed()
}

fn any_frame() -> impl Strategy<Value = Frame> {
    (
        vec((0..4_usize, any_built_in_change()), 0..2),
        vec((0..PARTIES, any_op()), 0..6),
        vec(vec(any_op(), 0..3), 0..6),
        select(vec![0, 7, 10, 16, 33, 40, 100, 250]),
    )
        .prop_map(|(clocks, ops, reactions, millis)| Frame {
            clocks,
            ops,
            reactions,
            millis,
        })
}

fn any_interruption(last: usize) -> impl Strategy<Value = Interruption> {
    let format = || select(vec![Format::Ron, Format::Postcard]);
    let way = prop_oneof![
        2 => format().prop_map(Way::Save),
        3 => (0..PARTIES, format()).prop_map(|(party, format)| Way::Move(party, format)),
        1 => (0..PARTIES, format()).prop_map(|(party, format)| Way::Return(party, format)),
        3 => (0..last, 1..8_usize)
            .prop_map(|(inputs, frames)| Way::Predict { inputs, frames }),
        2 => Just(Way::Mark),
        2 => (0..8_usize).prop_map(Way::Back),
        1 => Just(Way::Panic),
    ];
    (0..last, way).prop_map(|(frame, way)| Interruption { frame, way })
}

/// Returns scripts with up to `frames` frames, and with a crowd of this many timers.
pub(crate) fn any_script(frames: usize, crowd: usize) -> impl Strategy<Value = Script> {
    (
        any::<bool>(),
        any::<u64>(),
        vec(any_spec(), crowd),
        vec(any_frame(), 1..frames),
        vec(any_interruption(frames), 0..12),
    )
        .prop_map(
            |(is_observed, seed, crowd, mut frames, mut interruptions)| {
                interruptions.sort_by_key(|it| it.frame);
                for (nth, frame) in frames.iter_mut().enumerate() {
                    let loads = |way: &Way| matches!(way, Way::Save(_) | Way::Move(..));
                    if interruptions
                        .iter()
                        .any(|it| it.frame == nth && loads(&it.way))
                    {
                        frame.ops.retain(|(_, (_, act))| !act.chooses_clock());
                    }
                }
                Script {
                    is_observed,
                    seed,
                    crowd,
                    frames,
                    interruptions,
                }
            },
        )
}

//! Random scripts.

use bevy_due::MissedTicks;
use proptest::{collection::vec, option::weighted, prelude::*, sample::select};

use crate::op::{
    ALL_TOPICS, Action, At, Change, Done, KEYS, OWNERS, Op, Ratio, SLOTS, SNAPSHOTS, Slot, Spec,
    Then, To, Topic, Topics,
};

/// The weights of the operations in a script: on timers, entities, pauses, clocks, updates and
/// messages.
type Weights = [u32; 6];

const EVEN: Weights = [16, 4, 4, 5, 2, 8];
const MOSTLY_TIMERS: Weights = [20, 3, 2, 2, 1, 1];
const MOSTLY_CLOCKS: Weights = [10, 1, 1, 12, 3, 1];
const MOSTLY_CALLBACKS: Weights = [2, 1, 4, 1, 3, 20];

/// Returns scripts of any kind of operations, or mostly of one kind.
pub(crate) fn any_script() -> BoxedStrategy<Vec<Op>> {
    prop_oneof![
        2 => any_script_of(EVEN),
        2 => any_script_of(MOSTLY_TIMERS),
        1 => any_script_of(MOSTLY_CLOCKS),
        2 => any_script_of(MOSTLY_CALLBACKS),
        2 => any_script_of_letters(),
    ]
    .boxed()
}

fn any_script_of(weights: Weights) -> BoxedStrategy<Vec<Op>> {
    let step = prop_oneof![
        27 => any_op(weights),
        15 => (any_span(), any_then(weights)).prop_map(|(by, then)| Op::Frame(by, then)),
        3 => any_forward(weights),
        4 => any_rollback(),
        2 => any_slot().prop_map(Op::Export),
        2 => Just(Op::Stay),
        1 => (any_span(), any_then(weights)).prop_map(|(by, then)| Op::Reload(by, then)),
        2 => (any_slot(), any_span(), any_then(weights))
            .prop_map(|(slot, by, then)| Op::Revive(slot, by, then)),
        2 => (any_slot(), any_span(), any_span(), any_then(weights))
            .prop_map(|(slot, on_the_way, by, then)| Op::Move(slot, on_the_way, by, then)),
    ];
    vec(step, 1..100).boxed()
}

/// Returns scripts with many messages per frame, so that turns come round again.
fn any_script_of_letters() -> BoxedStrategy<Vec<Op>> {
    let slot = || 0..5_usize;
    let op = move || {
        let topic = select(vec![Topic::Packet0, Topic::Packet0, Topic::Packet1]);
        prop_oneof![
            3 => (slot(), 0..4_u8).prop_map(|(slot, topics)| Op::Follow(slot, Topics(topics))),
            1 => slot().prop_map(Op::Unfollow),
            1 => slot().prop_map(Op::Despawn),
            3 => (slot(), any::<bool>()).prop_map(|(slot, is)| Op::Disable(slot, is)),
            10 => (any_to(), topic).prop_map(|(to, topic)| Op::Send(to, topic)),
        ]
    };
    let then = vec(vec(op(), 0..2), 0..20).prop_map(Then);
    let step = prop_oneof![7 => op(), 1 => then.prop_map(|then| Op::Frame(1, then))];
    vec(step, 1..120).boxed()
}

fn any_forward(weights: Weights) -> BoxedStrategy<Op> {
    prop_oneof![
        2 => (any_at(), any_span(), any_then(weights))
            .prop_map(|(at, span, then)| Op::Forward(at, span, then)),
        1 => (any_at(), any_then(weights)).prop_map(|(at, then)| Op::ForwardToNext(at, then)),
    ]
    .boxed()
}

fn any_rollback() -> BoxedStrategy<Op> {
    prop_oneof![Just(Op::Snapshot), (0..SNAPSHOTS).prop_map(Op::Restore),].boxed()
}

fn any_then(weights: Weights) -> impl Strategy<Value = Then> {
    let op = prop_oneof![30 => any_op(weights), 1 => Just(Op::Panic)];
    vec(vec(op, 0..3), 0..10).prop_map(Then)
}

fn any_op(weights: Weights) -> BoxedStrategy<Op> {
    let [timers, entities, pauses, clocks, updates, messages] = weights;
    prop_oneof![
        timers => any_timer_op(),
        entities => any_entity_op(),
        pauses => any_pause_op(),
        clocks => any_clock_op(),
        updates => any_update_op(),
        messages => any_message_op(),
    ]
    .boxed()
}

fn any_timer_op() -> BoxedStrategy<Op> {
    let keyed = || (any_owner(), any_key());
    prop_oneof![
        10 => (any_slot(), any_spec()).prop_map(|(slot, spec)| Op::Arm(slot, spec)),
        1 => any_slot().prop_map(Op::Disarm),
        4 => (any_pair(), any_key(), any_spec())
            .prop_map(|((slot, owner), key, spec)| Op::SetTimer(owner, key, slot, spec)),
        1 => (any_pair(), any_key(), any_spec())
            .prop_map(|((slot, owner), key, spec)| Op::RefreshTimer(owner, key, slot, spec)),
        1 => keyed().prop_map(|(owner, key)| Op::CancelKey(owner, key)),
        1 => any_owner().prop_map(Op::CancelAll),
        6 => (any_slot(), any_change()).prop_map(|(slot, change)| Op::Change(slot, change)),
        2 => (keyed(), any_change())
            .prop_map(|((owner, key), change)| Op::ChangeKey(owner, key, change)),
        1 => (any_owner(), any_span()).prop_map(|(owner, by)| Op::DelayAll(owner, by)),
        2 => (any_slot(), weighted(0.8, any_span())).prop_map(|(slot, life)| Op::Live(slot, life)),
        3 => (any_slot(), weighted(0.8, any_action()))
            .prop_map(|(slot, action)| Op::Act(slot, action)),
    ]
    .boxed()
}

fn any_entity_op() -> BoxedStrategy<Op> {
    prop_oneof![
        1 => any_slot().prop_map(Op::Spawn),
        2 => any_slot().prop_map(Op::Despawn),
        4 => any_pair().prop_map(|(slot, owner)| Op::Belong(slot, Some(owner))),
        2 => any_slot().prop_map(|slot| Op::Belong(slot, None)),
        1 => any_slot().prop_map(Op::Orphan),
        2 => (any_slot(), weighted(0.8, any_key())).prop_map(|(slot, key)| Op::Key(slot, key)),
    ]
    .boxed()
}

fn any_pause_op() -> BoxedStrategy<Op> {
    prop_oneof![
        6 => (any_slot(), any_mostly(false)).prop_map(|(slot, is)| Op::Pause(slot, is)),
        3 => (any_slot(), any_mostly(false)).prop_map(|(slot, is)| Op::Disable(slot, is)),
        2 => (any_slot(), any_span()).prop_map(|(slot, span)| Op::PauseFor(slot, span)),
        1 => any_slot().prop_map(Op::EndPause),
        1 => prop::bool::weighted(0.2).prop_map(Op::PauseGame),
    ]
    .boxed()
}

fn any_clock_op() -> BoxedStrategy<Op> {
    prop_oneof![
        5 => (any_owner(), any_at(), any_ratio())
            .prop_map(|(slot, parent, speed)| Op::Clock(slot, parent, speed)),
        1 => any_owner().prop_map(Op::RemoveClock),
        2 => (any_slot(), weighted(0.7, any_at())).prop_map(|(slot, at)| Op::On(slot, at)),
        2 => (any_at(), any_ratio()).prop_map(|(at, speed)| Op::Speed(at, speed)),
        3 => (any_at(), prop::bool::weighted(0.25)).prop_map(|(at, is)| Op::PauseClock(at, is)),
        2 => (any_owner(), any_at()).prop_map(|(slot, parent)| Op::SetParent(slot, parent)),
        1 => (any_at(), any_span()).prop_map(|(at, shown)| Op::SetNow(at, shown)),
        2 => (any_at(), any_span()).prop_map(|(at, by)| Op::Advance(at, by)),
        2 => (any_pair(), any_ratio())
            .prop_map(|((slot, clock), factor)| Op::Modify(slot, Some((clock, factor)))),
        1 => any_slot().prop_map(|slot| Op::Modify(slot, None)),
        1 => (any_owner(), any_mostly(true)).prop_map(|(slot, is)| Op::Hold(slot, is)),
        2 => any_mostly(true).prop_map(Op::Condition),
    ]
    .boxed()
}

fn any_update_op() -> BoxedStrategy<Op> {
    prop_oneof![
        6 => (any_slot(), -1..3_i32, weighted(0.5, any_at()))
            .prop_map(|(slot, priority, on)| Op::Update(slot, priority, on)),
        1 => any_slot().prop_map(Op::StopUpdate),
        1 => weighted(0.4, -1..3_i32).prop_map(Op::PauseUpdates),
    ]
    .boxed()
}

fn any_message_op() -> BoxedStrategy<Op> {
    let topics = || prop_oneof![2 => Just(31), 3 => 0..32_u8].prop_map(Topics);
    prop_oneof![
        5 => (any_slot(), topics()).prop_map(|(slot, topics)| Op::Follow(slot, topics)),
        1 => any_slot().prop_map(Op::Unfollow),
        6 => (any_to(), any_topic()).prop_map(|(to, topic)| Op::Send(to, topic)),
        1 => Just(Op::Write),
        4 => (any_slot(), any_to(), any_spec())
            .prop_map(|(slot, to, spec)| Op::Ask(slot, to, spec)),
        1 => any_slot().prop_map(Op::Withdraw),
        3 => prop::bool::weighted(0.2).prop_map(|keep| Op::Reply { keep }),
    ]
    .boxed()
}

fn any_topic() -> BoxedStrategy<Topic> {
    prop_oneof![
        2 => Just(Topic::Packet0),
        3 => select(ALL_TOPICS.to_vec()),
    ]
    .boxed()
}

fn any_to() -> BoxedStrategy<To> {
    prop_oneof![
        2 => any_slot().prop_map(To::One),
        1 => Just(To::All),
        2 => Just(To::InTurn),
    ]
    .boxed()
}

fn any_change() -> BoxedStrategy<Change> {
    prop_oneof![
        Just(Change::PauseTimer),
        Just(Change::ResumeTimer),
        Just(Change::Restart),
        Just(Change::Refresh),
        (1..4_u32).prop_map(Change::SetLeft),
        any_interval().prop_map(Change::SetInterval),
        any_span().prop_map(Change::SetRemaining),
        any_time().prop_map(Change::Reschedule),
        any_span().prop_map(Change::DelayBy),
        any_at().prop_map(Change::SetClock),
    ]
    .boxed()
}

fn any_spec() -> impl Strategy<Value = Spec> {
    let missed = select(vec![
        MissedTicks::Burst,
        MissedTicks::Burst,
        MissedTicks::Skip,
        MissedTicks::Delay,
    ]);
    let done = prop_oneof![
        5 => Just(Done::ByOwner),
        1 => Just(Done::Keeps),
        1 => Just(Done::Despawns),
    ];
    let delay = (any_span(), weighted(0.1, any_time()), any_rare(any_span()));
    let rhythm = (any_rare(any_interval()), any_rare(any_interval()), 0..4_u32);
    let rhythm = prop_oneof![
        1 => rhythm.boxed(),
        2 => (any_interval(), any_rare(any_interval()), 0..4_u32).boxed(),
    ];
    (delay, rhythm, missed, done, weighted(0.6, any_at())).prop_map(
        |((delay, since, jitter), (interval, span, times), missed, done, on)| Spec {
            delay,
            since,
            jitter,
            interval,
            // A one-shot timer has neither.
            span: if interval > 0 { span } else { 0 },
            times: if interval > 0 { times } else { 0 },
            missed,
            done,
            on,
        },
    )
}

/// Returns zero in most cases.
fn any_rare(number: impl Strategy<Value = u64> + 'static) -> BoxedStrategy<u64> {
    prop_oneof![5 => Just(0), 1 => number].boxed()
}

fn any_mostly(is: bool) -> impl Strategy<Value = bool> {
    prop::bool::weighted(if is { 0.7 } else { 0.3 })
}

/// Returns mostly short spans, so that many are equal.
fn any_span() -> BoxedStrategy<u64> {
    prop_oneof![
        8 => 0..12_u64,
        3 => 0..60_u64,
        1 => 0..500_u64,
    ]
    .boxed()
}

fn any_interval() -> BoxedStrategy<u64> {
    prop_oneof![6 => 1..8_u64, 1 => 1..100_u64].boxed()
}

fn any_time() -> BoxedStrategy<u64> {
    prop_oneof![4 => 0..100_u64, 1 => 0..1000_u64].boxed()
}

fn any_slot() -> impl Strategy<Value = Slot> {
    0..SLOTS
}

fn any_owner() -> impl Strategy<Value = Slot> {
    0..OWNERS
}

/// Returns a slot and a lower one.
fn any_pair() -> impl Strategy<Value = (Slot, Slot)> {
    let pairs = (1..SLOTS).flat_map(|slot| (0..slot.min(OWNERS)).map(move |owner| (slot, owner)));
    select(pairs.collect::<Vec<_>>())
}

fn any_key() -> impl Strategy<Value = usize> {
    0..KEYS.len()
}

fn any_at() -> BoxedStrategy<At> {
    prop_oneof![
        1 => Just(At::Real),
        3 => Just(At::Virtual),
        1 => Just(At::Frames),
        2 => Just(At::Fixed),
        6 => any_owner().prop_map(At::Own),
    ]
    .boxed()
}

fn any_ratio() -> impl Strategy<Value = Ratio> {
    select(vec![
        Ratio::Zero,
        Ratio::Quarter,
        Ratio::Third,
        Ratio::Same,
        Ratio::Same,
        Ratio::Double,
        Ratio::Three,
    ])
}

fn any_action() -> impl Strategy<Value = Action> {
    select(vec![
        Action::Nothing,
        Action::DespawnTimer,
        Action::DespawnOwner,
        Action::Named,
        Action::Named,
        Action::Named,
        Action::Named,
    ])
}

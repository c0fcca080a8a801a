//! The values in random scripts.

use bevy_due::MissedTicks;
use proptest::{option::weighted, prelude::*, sample::select};

use crate::op::{
    ALL_TOPICS, Action, At, Change, Done, FIRED, KEYS, OWNERS, Ratio, SLOTS, Slot, Spec, To, Topic,
};

pub(super) fn any_topic() -> BoxedStrategy<Topic> {
    prop_oneof![
        2 => Just(Topic::Packet0),
        3 => select(ALL_TOPICS.to_vec()),
    ]
    .boxed()
}

pub(super) fn any_to() -> BoxedStrategy<To> {
    prop_oneof![
        2 => any_slot().prop_map(To::One),
        1 => Just(To::All),
        2 => Just(To::InTurn),
    ]
    .boxed()
}

pub(super) fn any_change() -> BoxedStrategy<Change> {
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
        any_span().prop_map(Change::HastenBy),
        any_at().prop_map(Change::SetClock),
    ]
    .boxed()
}

pub(super) fn any_spec() -> impl Strategy<Value = Spec> {
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
    (
        delay,
        rhythm,
        any_rare(any_span()),
        missed,
        done,
        weighted(0.6, any_at()),
    )
        .prop_map(
            |((delay, since, jitter), (interval, span, times), slack, missed, done, on)| {
                Spec {
                    delay,
                    since,
                    jitter,
                    interval,
                    // A one-shot timer has neither.
                    span: if interval > 0 { span } else { 0 },
                    slack,
                    times: if interval > 0 { times } else { 0 },
                    missed,
                    done,
                    on,
                }
            },
        )
}

/// Returns zero in most cases.
pub(super) fn any_rare(number: impl Strategy<Value = u64> + 'static) -> BoxedStrategy<u64> {
    prop_oneof![5 => Just(0), 1 => number].boxed()
}

pub(super) fn any_mostly(is: bool) -> impl Strategy<Value = bool> {
    prop::bool::weighted(if is { 0.7 } else { 0.3 })
}

/// Returns mostly short spans, so that many are equal.
pub(super) fn any_span() -> BoxedStrategy<u64> {
    prop_oneof![
        8 => 0..12_u64,
        3 => 0..60_u64,
        1 => 0..500_u64,
    ]
    .boxed()
}

pub(super) fn any_interval() -> BoxedStrategy<u64> {
    prop_oneof![6 => 1..8_u64, 1 => 1..100_u64].boxed()
}

pub(super) fn any_time() -> BoxedStrategy<u64> {
    prop_oneof![4 => 0..100_u64, 1 => 0..1000_u64].boxed()
}

pub(super) fn any_slot() -> impl Strategy<Value = Slot> {
    0..SLOTS
}

pub(super) fn any_owner() -> impl Strategy<Value = Slot> {
    0..OWNERS
}

/// Returns a slot and a lower one.
pub(super) fn any_pair() -> impl Strategy<Value = (Slot, Slot)> {
    let pairs = (1..FIRED).flat_map(|slot| (0..slot.min(OWNERS)).map(move |owner| (slot, owner)));
    select(pairs.collect::<Vec<_>>())
}

pub(super) fn any_key() -> impl Strategy<Value = usize> {
    0..KEYS.len()
}

pub(super) fn any_at() -> BoxedStrategy<At> {
    prop_oneof![
        1 => Just(At::Real),
        3 => Just(At::Virtual),
        1 => Just(At::Frames),
        2 => Just(At::Fixed),
        6 => any_owner().prop_map(At::Own),
    ]
    .boxed()
}

pub(super) fn any_ratio() -> impl Strategy<Value = Ratio> {
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

pub(super) fn any_action() -> impl Strategy<Value = Action> {
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

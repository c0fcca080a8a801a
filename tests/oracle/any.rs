//! Random scripts.

mod values;

use proptest::{collection::vec, option::weighted, prelude::*, sample::select, strategy::Union};

use crate::op::{Op, SNAPSHOTS, Then, Topic, Topics};
use values::{
    any_action, any_at, any_change, any_key, any_mostly, any_owner, any_pair, any_ratio, any_slot,
    any_span, any_spec, any_time, any_to, any_topic,
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
    let scripts = any_steps().map(|steps| vec(steps, 1..100).boxed());
    Union::new_weighted([2, 2, 1, 2, 2].into_iter().zip(scripts).collect()).boxed()
}

/// Returns the steps of scripts, one strategy for each kind of script.
pub(crate) fn any_steps() -> [BoxedStrategy<Op>; 5] {
    [
        any_step_of(EVEN),
        any_step_of(MOSTLY_TIMERS),
        any_step_of(MOSTLY_CLOCKS),
        any_step_of(MOSTLY_CALLBACKS),
        any_step_of_letters(),
    ]
}

fn any_step_of(weights: Weights) -> BoxedStrategy<Op> {
    prop_oneof![
        27 => any_op(weights),
        15 => (any_span(), any_then(weights)).prop_map(|(by, then)| Op::Frame(by, then)),
        3 => any_forward(weights),
        4 => any_rollback(),
        1 => (any_span(), any_then(weights)).prop_map(|(by, then)| Op::Reload(by, then)),
        2 => (any_slot(), any_span(), any_then(weights))
            .prop_map(|(slot, by, then)| Op::Revive(slot, by, then)),
        2 => (any_slot(), any_span(), any_span(), any_then(weights))
            .prop_map(|(slot, on_the_way, by, then)| Op::Move(slot, on_the_way, by, then)),
    ]
    .boxed()
}

/// Returns the steps of scripts with many messages per frame, so that turns come round again.
fn any_step_of_letters() -> BoxedStrategy<Op> {
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
    prop_oneof![7 => op(), 1 => then.prop_map(|then| Op::Frame(1, then))].boxed()
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
    let reaction = prop_oneof![
        20 => vec(op, 0..3),
        1 => any_at().prop_map(|at| vec![Op::PauseClock(at, true), Op::PauseClock(at, false)]),
    ];
    vec(reaction, 0..10).prop_map(Then)
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
        1 => (any_slot(), any_span(), any_time())
            .prop_map(|(slot, delay, since)| Op::LiveSince(slot, delay, since)),
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
        2 => any_pair().prop_map(|(slot, parent)| Op::Child(slot, Some(parent))),
        1 => any_slot().prop_map(|slot| Op::Child(slot, None)),
        2 => (any_slot(), weighted(0.8, any_key())).prop_map(|(slot, key)| Op::Key(slot, key)),
    ]
    .boxed()
}

fn any_pause_op() -> BoxedStrategy<Op> {
    prop_oneof![
        6 => (any_slot(), any_mostly(false)).prop_map(|(slot, is)| Op::Pause(slot, is)),
        3 => (any_slot(), any_mostly(false)).prop_map(|(slot, is)| Op::Disable(slot, is)),
        3 => (any_slot(), any::<bool>()).prop_map(|(slot, runs)| Op::RunWhilePaused(slot, runs)),
        2 => (any_slot(), any_span()).prop_map(|(slot, span)| Op::PauseFor(slot, span)),
        1 => any_slot().prop_map(Op::EndPause),
        2 => any_pair().prop_map(|(slot, target)| Op::Pauses(slot, Some(target))),
        1 => any_slot().prop_map(|slot| Op::Pauses(slot, None)),
        1 => prop::bool::weighted(0.2).prop_map(Op::PauseGame),
    ]
    .boxed()
}

fn any_clock_op() -> BoxedStrategy<Op> {
    prop_oneof![
        5 => (any_owner(), any_at(), any_ratio())
            .prop_map(|(slot, parent, speed)| Op::Clock(slot, parent, speed)),
        1 => any_owner().prop_map(Op::ManualClock),
        1 => any_owner().prop_map(Op::RemoveClock),
        3 => (any_slot(), weighted(0.7, any_at())).prop_map(|(slot, at)| Op::On(slot, at)),
        2 => (any_at(), any_ratio()).prop_map(|(at, speed)| Op::Speed(at, speed)),
        3 => (any_at(), prop::bool::weighted(0.25)).prop_map(|(at, is)| Op::PauseClock(at, is)),
        2 => (any_owner(), any_at()).prop_map(|(slot, parent)| Op::SetParent(slot, parent)),
        1 => (any_at(), any_span()).prop_map(|(at, shown)| Op::SetNow(at, shown)),
        2 => (any_at(), any_span()).prop_map(|(at, by)| Op::Advance(at, by)),
        1 => (any_at(), any_time()).prop_map(|(at, shown)| Op::AdvanceTo(at, shown)),
        2 => (any_at(), any_span()).prop_map(|(at, by)| Op::SkipTime(at, by)),
        2 => (any_pair(), any_ratio(), weighted(0.5, 0..2_usize)).prop_map(
            |((slot, clock), factor, group)| Op::Modify(slot, Some((clock, factor, group)))
        ),
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
        1 => (0..3_u64).prop_map(Op::Seed),
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

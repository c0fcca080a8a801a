//! Scripts on which the app and the model once differed, as the search printed them.

#![allow(unused_imports, reason = "a script that is added finds all names")]

use bevy_due::MissedTicks::*;

use crate::{
    play::check,
    op::{Action::*, At::*, Change::*, Done::*, Op::*, Ratio::*, To::*, Topic::*, *},
    rules::Rules,
};

#[test]
fn a_time_out_that_an_observer_withdraws_is_not_announced() {
    let rules = Rules { unit: 1666667, burst_limit: 1000, seed: 0, step: 10, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Spawn(3),
        Ask(3, One(0), Spec { delay: 1, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Forward(Virtual, 1, then(&[&[Despawn(3)]])),
    ]);
}

#[test]
fn a_written_message_is_counted_if_its_last_follower_leaves() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Write,
        Follow(4, Topics(31)),
        Send(One(4), Packet0),
        Frame(0, then(&[&[], &[Despawn(4)]])),
        Follow(5, Topics(31)),
        Write,
        Frame(0, then(&[])),
    ]);
}

#[test]
fn a_written_message_is_heard_once_even_if_a_panic_breaks_it_off() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Follow(0, Topics(31)),
        Follow(1, Topics(31)),
        Write,
        Frame(0, then(&[&[], &[Panic]])),
        Send(All, Word),
        Frame(0, then(&[&[Follow(0, Topics(31))]])),
        Frame(0, then(&[])),
    ]);
}

#[test]
fn the_timers_of_a_lost_clock_are_cancelled_in_the_order_of_arming() {
    let rules = Rules { unit: 1666667, burst_limit: 1000, seed: 0, step: 10, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(1, Own(0), Zero),
        Act(0, None),
        Update(2, 0, None),
        Frame(0, then(&[&[Update(3, 0, None)]])),
        Frame(2, then(&[&[Arm(2, Spec { delay: 0, since: None, jitter: 0, interval: 1, span: 0, slack: 0, times: 3, missed: Skip, done: Despawns, on: None })]])),
        Frame(8, then(&[&[Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None })], &[SetTimer(0, 0, 2, Spec { delay: 0, since: None, jitter: 0, interval: 1, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None })], &[Ask(2, One(0), Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: Some(Own(1)) })]])),
        Frame(1, then(&[&[Change(2, SetClock(Own(1)))]])),
        RemoveClock(1),
        Frame(0, then(&[])),
    ]);
}

#[test]
fn a_clock_waits_for_a_parent_that_arrives_before_the_next_run() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: false, exact_frames: false };
    check(rules, &[
        Update(3, 0, None),
        Clock(0, Own(3), Same),
        Clock(3, Real, Same),
        Frame(1, then(&[])),
    ]);
}

#[test]
fn a_due_timer_fires_in_a_fast_forward_even_if_its_clock_is_ahead_of_the_parent() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 0, ahead: 16140901064495857362, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(0, Real, Zero),
        Clock(0, Fixed, Quarter),
        Arm(1, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Frame(0, then(&[&[Clock(2, Own(0), Quarter)]])),
        Arm(1, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Frame(0, then(&[])),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Arm(2, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Forward(Own(0), 0, then(&[])),
    ]);
}

#[test]
fn cancelling_the_timers_of_an_owner_keeps_one_that_loses_its_clock() {
    let rules = Rules { unit: 1666667, burst_limit: 1000, seed: 0, step: 10, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Update(0, 0, None),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Update(1, 0, None),
        Arm(0, Spec { delay: 2, since: None, jitter: 0, interval: 6, span: 0, slack: 0, times: 3, missed: Burst, done: ByOwner, on: None }),
        Arm(1, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Frame(0, then(&[&[RefreshTimer(0, 1, 2, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None })]])),
        Clock(2, Real, Zero),
        SetTimer(0, 0, 6, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: Keeps, on: Some(Own(2)) }),
        Frame(0, then(&[&[CancelAll(0)]])),
    ]);
}

#[test]
fn an_entity_whose_timer_finished_before_it_lost_its_owner_despawns_after_loading() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Arm(2, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Frame(0, then(&[])),
        Orphan(2),
        Reload(0, then(&[])),
    ]);
}

#[test]
fn a_clock_without_a_parent_can_be_loaded() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(0, Own(0), Same),
        Spawn(2),
        Clock(1, Own(2), Same),
        Clock(3, Real, Same),
        Clock(2, Own(3), Same),
        Arm(2, Spec { delay: 2, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Frame(1, then(&[])),
        RemoveClock(3),
        Reload(1, then(&[])),
        SetParent(2, Virtual),
        Frame(5, then(&[])),
    ]);
}

#[test]
fn a_loaded_clock_may_come_before_its_parent() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 1, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Revive(0, 0, then(&[])),
        Clock(3, Real, Zero),
        Update(0, 0, None),
        Frame(3, then(&[&[Clock(0, Real, Zero)], &[Clock(3, Own(0), Quarter)], &[], &[]])),
        Modify(3, Some((0, Quarter, None))),
        Frame(0, then(&[&[Clock(0, Real, Quarter)]])),
        Revive(0, 0, then(&[])),
        Arm(0, Spec { delay: 1, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: Some(Own(3)) }),
    ]);
}

#[test]
fn a_timer_that_was_due_while_its_clock_stood_still_is_loaded_late() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(0, Virtual, Same),
        Arm(1, Spec { delay: 5, since: None, jitter: 0, interval: 4, span: 3, slack: 0, times: 0, missed: Skip, done: ByOwner, on: Some(Own(0)) }),
        Frame(3, then(&[])),
        PauseClock(Own(0), true),
        Advance(Own(0), 9),
        Reload(2, then(&[])),
        PauseClock(Own(0), false),
        Frame(20, then(&[])),
    ]);
}

#[test]
fn an_entity_that_got_an_owner_in_time_does_not_despawn_after_loading() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Spawn(0),
        Arm(2, Spec { delay: 50, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Orphan(2),
        Belong(2, Some(0)),
        Key(2, Some(0)),
        Revive(0, 0, then(&[])),
        Frame(13, then(&[])),
        Belong(2, None),
        Reload(0, then(&[])),
        Frame(13, then(&[])),
    ]);
}

#[test]
fn an_entity_that_lost_its_owner_after_its_last_firing_despawns_after_loading() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Spawn(0),
        SetTimer(0, 0, 2, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Frame(0, then(&[])),
        Orphan(2),
        Reload(0, then(&[])),
    ]);
}

#[test]
fn an_owned_speed_modifier_keeps_its_place_among_the_entities_of_its_owner() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(0, Real, Same),
        Spawn(1),
        Spawn(4),
        Belong(4, Some(1)),
        Spawn(5),
        Belong(5, Some(1)),
        Modify(5, Some((0, Double, None))),
        Reload(0, then(&[])),
    ]);
}

#[test]
fn an_entity_that_was_spawned_again_and_has_lost_its_timer_does_not_outlive_another_restore() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Arm(3, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: Some(Own(0)) }),
        Snapshot,
        Frame(0, then(&[])),
        Snapshot,
        Snapshot,
        Revive(3, 0, then(&[])),
        Restore(2),
        Frame(0, then(&[])),
        Restore(0),
    ]);
}

#[test]
fn a_request_that_has_timed_out_completes_after_loading() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Spawn(3),
        Ask(3, One(0), Spec { delay: 2, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Ask(3, One(0), Spec { delay: 1, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Forward(Virtual, 2, then(&[])),
        Disable(3, true),
        Reload(0, then(&[])),
        Revive(3, 0, then(&[])),
        Follow(3, Topics(31)),
        Disable(3, false),
        Frame(0, then(&[])),
    ]);
}

#[test]
fn a_loaded_clock_shows_a_jump_of_its_parent_no_earlier_than_in_its_next_run() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 0, ahead: 16140901064495857362, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(0, Own(0), Quarter),
        Frame(0, then(&[])),
        SetParent(0, Fixed),
        Revive(0, 0, then(&[])),
    ]);
}

#[test]
fn a_clock_under_a_loaded_clock_follows_it_when_the_fixed_step_comes() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(0, Fixed, Double),
        Clock(1, Own(0), Third),
        Arm(1, Spec { delay: 9, since: None, jitter: 0, interval: 2, span: 0, slack: 0, times: 3, missed: Skip, done: ByOwner, on: Some(Own(1)) }),
        Frame(14, then(&[])),
        Advance(Fixed, 5),
        Revive(1, 1, then(&[])),
        Advance(Own(0), 4),
        Revive(0, 1, then(&[])),
        Reload(1, then(&[])),
        Frame(20, then(&[])),
    ]);
}

#[test]
fn a_request_whose_periodic_timer_has_fired_twice_completes_once_after_loading() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Follow(0, Topics(31)),
        Ask(0, One(1), Spec { delay: 1, since: None, jitter: 0, interval: 2, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Ask(0, One(1), Spec { delay: 2, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Forward(Virtual, 5, then(&[])),
        Disable(0, true),
        Reload(0, then(&[])),
        Follow(0, Topics(31)),
        Disable(0, false),
        Frame(0, then(&[])),
    ]);
}

#[test]
fn a_loaded_timer_whose_deadline_saturates_waits_for_its_whole_delay() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 0, ahead: 16140901064495857362, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(0, Real, Zero),
        Frame(250, then(&[])),
        Arm(1, Spec { delay: 60, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: Some(Own(0)) }),
        Arm(2, Spec { delay: 60, since: None, jitter: 3, interval: 5, span: 0, slack: 0, times: 0, missed: Skip, done: ByOwner, on: None }),
        Revive(2, 0, then(&[])),
    ]);
}

#[test]
fn a_clock_below_a_loaded_clock_with_a_speed_modifier_is_behind_by_the_right_time() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(0, Fixed, Same),
        Clock(1, Own(0), Same),
        Clock(2, Fixed, Same),
        Clock(3, Own(2), Same),
        Spawn(4),
        Modify(4, Some((0, Double, None))),
        Disable(2, true),
        Frame(14, then(&[])),
        Advance(Fixed, 5),
        Reload(0, then(&[])),
        Disable(2, false),
        Frame(14, then(&[])),
    ]);
}

#[test]
fn a_loaded_clock_that_is_behind_by_decades_knows_its_speed_modifier() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 0, ahead: 16140901064495857362, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(0, Fixed, Double),
        Clock(0, Virtual, Quarter),
        Clock(1, Own(0), Same),
        Spawn(4),
        Modify(4, Some((0, Third, None))),
        Arm(5, Spec { delay: 9, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: Some(Own(1)) }),
        Reload(3, then(&[])),
        Frame(3, then(&[])),
    ]);
}

#[test]
fn a_clock_that_is_loaded_before_its_parent_does_not_see_an_earlier_jump() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Spawn(0),
        Clock(1, Fixed, Same),
        Key(1, Some(0)),
        Frame(14, then(&[])),
        Advance(Fixed, 5),
        Clock(0, Own(1), Same),
        Reload(0, then(&[])),
        Frame(14, then(&[])),
    ]);
}

#[test]
fn a_loaded_timer_counts_the_decades_that_its_clock_has_not_seen_once() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 0, ahead: 16140901064495857362, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(0, Own(0), Zero),
        Clock(0, Real, Quarter),
        Live(0, Some(0)),
        Reload(0, then(&[])),
    ]);
}

#[test]
fn a_timer_that_is_loaded_on_a_clock_whose_parent_has_jumped_keeps_its_deadline() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: false, exact_frames: false };
    check(rules, &[
        Clock(0, Virtual, Same),
        Arm(7, Spec { delay: 0, since: None, jitter: 0, interval: 1, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: Some(Own(0)) }),
        Update(0, 0, None),
        Frame(0, then(&[&[Advance(Virtual, 1)]])),
        Revive(7, 0, then(&[])),
    ]);
}

#[test]
fn an_entity_that_was_spawned_again_twice_is_the_same() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Arm(1, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Snapshot,
        Snapshot,
        Snapshot,
        Revive(1, 0, then(&[])),
        Restore(0),
        Snapshot,
        Snapshot,
        Revive(1, 0, then(&[])),
        Restore(2),
        Snapshot,
        Restore(1),
    ]);
}

#[test]
fn a_reference_to_an_entity_that_was_spawned_again_and_is_gone_leads_to_its_last_name() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(2, Real, Zero),
        Act(2, Some(DespawnTimer)),
        Arm(2, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: Some(Real) }),
        Snapshot,
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Frame(0, then(&[])),
        Snapshot,
        Arm(3, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: Some(Own(2)) }),
        Snapshot,
        Restore(2),
        Restore(0),
        Frame(0, then(&[])),
    ]);
}

#[test]
fn a_clock_that_has_caught_up_is_not_behind_when_it_is_saved_again() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 0, ahead: 16140901064495857362, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(1, Own(0), Quarter),
        SetParent(1, Real),
        Reload(0, then(&[])),
        Reload(0, then(&[])),
    ]);
}

#[test]
fn a_loaded_timer_that_finished_in_a_fixed_step_with_a_panic_ends_in_a_fixed_step() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Spawn(1),
        SetTimer(1, 0, 4, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: Some(Fixed) }),
        Frame(13, then(&[&[Panic]])),
        Reload(0, then(&[])),
        Frame(13, then(&[])),
    ]);
}

#[test]
fn what_moves_along_follows_messages_in_the_order_of_the_data() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Follow(4, Topics(31)),
        Follow(0, Topics(31)),
        Modify(4, Some((0, Zero, None))),
        Move(0, 0, 0, then(&[])),
        Send(All, Packet0),
        Frame(0, then(&[])),
    ]);
}

#[test]
fn a_reply_finds_a_request_that_a_restore_has_spawned_again() {
    let rules = Rules { unit: 1666667, burst_limit: 1000, seed: 0, step: 10, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Update(0, 0, None),
        Follow(0, Topics(31)),
        Ask(4, All, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Frame(0, then(&[&[], &[], &[], &[], &[Follow(4, Topics(31))]])),
        Snapshot,
        Frame(0, then(&[&[Panic], &[Reply { keep: false }]])),
        Restore(0),
        Frame(0, then(&[])),
    ]);
}

#[test]
fn a_clock_that_moved_to_one_at_the_end_of_time_is_loaded_at_its_time() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 0, ahead: 16140901064495857362, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(2, Real, Double),
        Arm(2, Spec { delay: 0, since: None, jitter: 0, interval: 1, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Frame(0, then(&[&[Clock(2, Fixed, Quarter)]])),
        Reload(0, then(&[])),
    ]);
}

#[test]
fn an_entity_that_owned_new_entities_only_stays_disabled_in_a_restore() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Disarm(0),
        Follow(2, Topics(31)),
        Snapshot,
        Ask(2, One(0), Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: Some(Fixed) }),
        Frame(0, then(&[&[Disable(2, true)]])),
        Frame(13, then(&[&[Disable(2, true)]])),
        Frame(0, then(&[&[Disable(2, true)]])),
        Restore(0),
        Ask(2, One(0), Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
    ]);
}

#[test]
fn a_paused_timer_on_its_own_clock_keeps_its_wait_when_the_clock_gets_a_parent() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 0, ahead: 16140901064495857362, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(3, Own(0), Zero),
        Arm(3, Spec { delay: 1, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Clock(3, Real, Quarter),
        Disable(3, true),
    ]);
}

#[test]
fn a_timer_on_a_clock_that_is_gone_names_it_after_a_snapshot() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Move(0, 0, 5, then(&[])),
        Frame(415, then(&[])),
        Update(1, 0, None),
        Update(4, 0, Some(Fixed)),
        Frame(11, then(&[&[Clock(0, Fixed, Quarter)]])),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Frame(2, then(&[&[]])),
        Frame(88, then(&[])),
        Update(0, 0, Some(Real)),
        Frame(7, then(&[&[], &[]])),
        Frame(43, then(&[&[Arm(2, Spec { delay: 0, since: None, jitter: 0, interval: 1, span: 0, slack: 0, times: 2, missed: Skip, done: ByOwner, on: None })]])),
        Frame(29, then(&[&[Update(7, 0, None)]])),
        Frame(3, then(&[&[], &[], &[], &[Arm(0, Spec { delay: 8, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None })]])),
        Frame(11, then(&[])),
        Frame(6, then(&[])),
        Frame(4, then(&[])),
        Frame(28, then(&[&[], &[], &[], &[SetTimer(0, 0, 6, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None })], &[], &[Arm(6, Spec { delay: 4, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None })]])),
        Frame(6, then(&[])),
        Frame(2, then(&[&[], &[], &[]])),
        Snapshot,
        CancelKey(0, 0),
        Modify(4, Some((0, Quarter, None))),
        Frame(3, then(&[&[], &[], &[Belong(1, Some(0))], &[]])),
        Frame(0, then(&[&[Update(3, 0, None)]])),
        Frame(0, then(&[&[Modify(3, Some((1, Zero, None)))]])),
        Frame(0, then(&[&[Modify(4, Some((1, Zero, None)))]])),
        Reload(0, then(&[])),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: Some(Own(3)) }),
        Revive(0, 0, then(&[])),
    ]);
}

#[test]
fn a_clock_whose_parent_is_back_follows_it() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(2, Real, Same),
        Clock(3, Own(2), Quarter),
        Frame(0, then(&[])),
        RemoveClock(2),
        Frame(0, then(&[])),
        Clock(2, Real, Same),
        SetParent(3, Own(0)),
        Frame(4, then(&[])),
    ]);
}

#[test]
fn a_clock_whose_parent_is_back_is_saved_under_it() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(2, Real, Same),
        Clock(3, Own(2), Quarter),
        Frame(0, then(&[])),
        RemoveClock(2),
        Frame(0, then(&[])),
        Clock(2, Real, Same),
        Speed(Own(3), Double),
        Reload(4, then(&[])),
    ]);
}

#[test]
fn what_an_entity_takes_along_despawns_in_one_order_in_every_world() {
    let rules = Rules { unit: 1666667, burst_limit: 1000, seed: 0, step: 10, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(3, Real, Zero),
        Clock(0, Real, Zero),
        Spawn(2),
        Modify(3, Some((0, Zero, None))),
        Reload(1, then(&[])),
        SetTimer(0, 0, 5, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: Some(Own(3)) }),
        Frame(0, then(&[])),
        Despawn(0),
    ]);
}

#[test]
fn a_timer_resumed_by_a_pause_that_loses_its_clock_fires_in_the_next_run() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 0, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Arm(4, Spec { delay: 0, since: None, jitter: 0, interval: 1, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Spawn(3),
        On(3, Some(Own(0))),
        Frame(5, then(&[&[Belong(4, Some(3)), PauseFor(3, 0)]])),
        Frame(0, then(&[])),
        Frame(0, then(&[])),
    ]);
}

#[test]
fn a_delivery_without_messages_does_not_show_counts() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 0, ahead: 16140901064495857362, is_observed: true, exact_frames: false };
    check(rules, &[
        Update(0, 0, None),
        Frame(0, then(&[&[Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: Some(Fixed) })]])),
        Reload(0, then(&[])),
        Follow(0, Topics(31)),
        ForwardToNext(Fixed, then(&[&[Update(3, 0, None), Update(0, 0, None)]])),
        Send(One(1), Packet0),
        Move(1, 0, 0, then(&[&[], &[Send(InTurn, Packet0)], &[Panic]])),
        Revive(0, 0, then(&[&[]])),
    ]);
}

#[test]
fn mail_of_a_move_waits_behind_a_message_that_a_panic_broke_off() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Follow(2, Topics(29)),
        Spawn(0),
        Send(All, Packet0),
        Frame(0, then(&[&[Update(6, 0, None)]])),
        Write,
        Send(One(2), Packet0),
        Update(0, 0, None),
        Spawn(0),
        Frame(0, then(&[&[Follow(7, Topics(31))], &[], &[Follow(3, Topics(31))], &[Ask(2, InTurn, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None })], &[PauseUpdates(Some(0))], &[Ask(6, All, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None })]])),
        Frame(0, then(&[&[], &[Follow(6, Topics(31))], &[], &[Panic]])),
        Move(6, 0, 0, then(&[])),
    ]);
}

#[test]
fn a_restored_clock_finds_a_parent_that_came_before_the_snapshot() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Update(0, 0, None),
        Frame(0, then(&[&[Update(3, 0, None), Clock(1, Own(3), Quarter)]])),
        Frame(0, then(&[])),
        Clock(3, Real, Quarter),
        Pauses(1, Some(0)),
        Snapshot,
        EndPause(0),
        Restore(0),
        Reload(16, then(&[])),
    ]);
}

#[test]
fn an_entity_with_only_a_lifetime_is_cancelled_by_its_key() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 0, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Spawn(3),
        SetTimer(3, 1, 7, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: Keeps, on: None }),
        Live(7, Some(7)),
        Frame(0, then(&[])),
        CancelKey(3, 1),
        Frame(0, then(&[])),
    ]);
}

#[test]
fn loaded_clocks_take_over_settings_in_their_saved_order() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 0, ahead: 16140901064495857362, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(2, Real, Zero),
        Clock(0, Real, Zero),
        Reload(0, then(&[])),
        Update(0, 0, Some(Real)),
        Frame(0, then(&[&[Update(3, 0, None), Clock(2, Own(0), Zero)]])),
        Move(4, 0, 0, then(&[&[Clock(0, Own(2), Quarter)], &[]])),
        Clock(2, Frames, Zero),
        Revive(0, 4, then(&[])),
    ]);
}

#[test]
fn time_passes_in_a_move_for_a_timer_that_is_not_on_the_held_clock_of_its_entity() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Update(0, 0, None),
        Spawn(0),
        Condition(false),
        Frame(0, then(&[&[Hold(0, true)]])),
        Clock(0, Real, Zero),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 1, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: Some(Fixed) }),
        Frame(0, then(&[])),
        Move(0, 1, 13, then(&[])),
    ]);
}

#[test]
fn an_entity_whose_timer_is_over_and_that_stays_is_no_part_of_a_snapshot() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 0, ahead: 16140901064495857362, is_observed: true, exact_frames: false };
    check(rules, &[
        Arm(1, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Frame(0, then(&[])),
        Snapshot,
        Arm(1, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: Despawns, on: None }),
        Frame(0, then(&[])),
        Frame(0, then(&[])),
        Restore(0),
        Arm(1, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Restore(0),
    ]);
}

#[test]
fn clocks_jump_from_the_time_that_they_show() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(1, Frames, Quarter),
        Frame(0, then(&[])),
        Advance(Frames, 4),
        SetNow(Own(1), 0),
        Frame(0, then(&[])),
    ]);
}

#[test]
fn a_child_jumps_from_the_time_that_it_shows_also_after_its_parent() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(1, Frames, Same),
        Clock(2, Own(1), Quarter),
        Frame(0, then(&[])),
        Advance(Own(1), 4),
        SetNow(Own(2), 0),
        Frame(0, then(&[])),
    ]);
}

#[test]
fn an_entity_takes_its_pauses_along_before_what_it_owns() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 0, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(3, Real, Zero),
        Spawn(0),
        Pauses(3, Some(0)),
        SetTimer(0, 0, 1, Spec { delay: 1, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: Some(Own(3)) }),
        Despawn(0),
    ]);
}

#[test]
fn an_entity_has_the_clock_of_its_speed_modifiers_before_it_loses_its_owner_to_move() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Arm(3, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Clock(0, Real, Zero),
        SetTimer(0, 0, 2, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Modify(3, Some((2, Zero, None))),
        Move(2, 0, 0, then(&[])),
    ]);
}

#[test]
fn an_entity_that_stays_after_its_last_firing_also_stays_once_it_is_loaded_with_an_owner() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 0, ahead: 16140901064495857362, is_observed: true, exact_frames: false };
    check(rules, &[
        Update(0, 0, None),
        Frame(0, then(&[&[Arm(1, Spec { delay: 0, since: Some(0), jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: Some(Fixed) })]])),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Forward(Fixed, 0, then(&[&[Panic]])),
        Belong(1, Some(0)),
        Reload(0, then(&[])),
    ]);
}

#[test]
fn a_new_timer_starts_again_on_a_clock_that_a_modifier_brings_at_the_end_of_time() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 0, ahead: 16140901064495857362, is_observed: true, exact_frames: false };
    check(rules, &[
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Frame(0, then(&[&[Arm(2, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None })]])),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 1, span: 0, slack: 0, times: 2, missed: Burst, done: ByOwner, on: None }),
        Frame(1, then(&[&[SetTimer(0, 0, 1, Spec { delay: 0, since: Some(0), jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None })]])),
        Modify(2, Some((0, Zero, None))),
        Frame(0, then(&[])),
    ]);
}

#[test]
fn a_new_timer_counts_since_a_time_of_the_clock_that_a_modifier_brings() {
    let rules = Rules { unit: 1666667, burst_limit: 1000, seed: 0, step: 10, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Frame(10, then(&[])),
        Arm(1, Spec { delay: 0, since: Some(0), jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Spawn(2),
        Modify(2, Some((1, Zero, None))),
        Frame(0, then(&[])),
    ]);
}

#[test]
fn a_new_timer_that_has_lost_its_clock_starts_on_the_next_one() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Update(5, 0, None),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Revive(0, 0, then(&[&[]])),
        Revive(0, 0, then(&[])),
        Frame(0, then(&[&[Clock(1, Real, Zero)]])),
        Clock(0, Real, Zero),
        Frame(0, then(&[&[Modify(5, Some((1, Quarter, None)))]])),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        RefreshTimer(1, 0, 2, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        RemoveClock(1),
        Reload(4, then(&[])),
    ]);
}

#[test]
fn a_modifier_that_belongs_to_another_entity_does_not_move_along() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Spawn(0),
        Arm(1, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        SetTimer(0, 0, 4, Spec { delay: 0, since: Some(7), jitter: 0, interval: 0, span: 0, slack: 2, times: 0, missed: Burst, done: ByOwner, on: None }),
        Frame(0, then(&[&[Modify(4, Some((1, Zero, None)))]])),
        Move(1, 0, 0, then(&[])),
    ]);
}

#[test]
fn a_modifier_that_pauses_another_entity_does_not_move_along() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Frame(0, then(&[&[Spawn(3)]])),
        Clock(1, Real, Zero),
        Arm(5, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Pauses(5, Some(0)),
        Modify(5, Some((3, Double, None))),
        Move(3, 0, 1, then(&[])),
    ]);
}

#[test]
fn a_clock_that_is_stopped_in_its_fast_forward_fires_nothing_more() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(2, Virtual, Same),
        Arm(0, Spec { delay: 2, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: Some(Own(2)) }),
        Arm(1, Spec { delay: 2, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: Some(Own(2)) }),
        Forward(Own(2), 5, then(&[&[PauseClock(Own(2), true)]])),
        Forward(Own(2), 5, then(&[])),
    ]);
}

#[test]
fn a_timer_that_is_moved_as_soon_as_it_is_armed_stays_in_its_chain() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: true };
    let once = Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: Keeps, on: None };
    let arm = [Arm(0, once), Change(0, SetRemaining(0))];
    check(rules, &[
        Arm(0, once),
        Frame(1, then(&[&arm, &arm, &arm, &arm, &arm])),
        Frame(1, then(&[&arm, &arm, &arm])),
    ]);
}

#[test]
fn a_new_timer_that_loses_its_clock_keeps_its_place() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    let once = Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: Keeps, on: None };
    check(rules, &[
        Arm(0, once),
        Arm(1, once),
        On(0, Some(Own(2))),
        Clock(2, Virtual, Same),
        On(1, Some(Own(2))),
        Frame(1, then(&[])),
    ]);
}

#[test]
fn an_armed_timer_without_a_clock_can_be_loaded() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    let every = Spec { delay: 5, since: None, jitter: 0, interval: 9, span: 0, slack: 0, times: 0, missed: Burst, done: Keeps, on: None };
    check(rules, &[
        Arm(0, every),
        Frame(7, then(&[])),
        On(0, Some(Own(2))),
        Clock(2, Virtual, Same),
        Reload(1, then(&[])),
        Frame(9, then(&[])),
        On(0, Some(Own(3))),
        Reload(1, then(&[])),
        Frame(9, then(&[])),
    ]);
}

#[test]
fn a_time_that_is_skipped_stays_skipped() {
    let rules = Rules { unit: 1, burst_limit: 30, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    let every = Spec { delay: 0, since: Some(1), jitter: 0, interval: 9, span: 0, slack: 0, times: 0, missed: Burst, done: Keeps, on: None };
    check(rules, &[
        Arm(0, every),
        Frame(1, then(&[])),
        SkipTime(Virtual, 100),
        Frame(1, then(&[])),
        Frame(100, then(&[])),
        Arm(1, every),
        Frame(1, then(&[])),
    ]);
}

#[test]
fn a_pause_that_stays_behind_a_move_ends() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Update(0, 0, None),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        SetTimer(0, 1, 6, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: Keeps, on: None }),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Move(0, 0, 0, then(&[&[SetTimer(0, 0, 3, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None })]])),
        Pauses(6, Some(3)),
        Move(3, 0, 0, then(&[])),
    ]);
}

#[test]
fn a_changed_timer_stays_on_the_clock_of_an_owner_that_it_has_lost() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 1, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Move(0, 0, 2, then(&[&[Clock(2, Own(0), Zero)]])),
        SetTimer(2, 0, 4, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Move(4, 0, 0, then(&[])),
        Change(4, PauseTimer),
    ]);
}

#[test]
fn a_callback_on_a_modifier_is_on_the_parent_of_the_clock_that_the_modifier_brings() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: false, exact_frames: false };
    check(rules, &[
        Arm(2, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Update(7, 0, None),
        Frame(0, then(&[&[Belong(7, Some(2)), Modify(7, Some((2, Zero, None)))]])),
        Frame(0, then(&[])),
    ]);
}

#[test]
fn a_callback_whose_clock_is_gone_does_not_follow_an_entity_that_stays_where_it_is() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: true };
    check(rules, &[
        Move(0, 0, 6, then(&[])),
        Frame(5, then(&[])),
        Arm(1, Spec { delay: 0, since: None, jitter: 0, interval: 1, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Move(0, 0, 6, then(&[])),
        Frame(12, then(&[&[Update(0, 0, None)]])),
        Frame(0, then(&[&[Clock(0, Own(0), Zero)]])),
        Arm(2, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        RemoveClock(0),
        Frame(0, then(&[&[On(0, None)]])),
    ]);
}

#[test]
fn a_modifier_in_a_fast_forward_brings_its_clock_before_the_next_deadline() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 0, ahead: 16140901064495857362, is_observed: true, exact_frames: false };
    check(rules, &[
        Update(3, 0, None),
        Arm(4, Spec { delay: 0, since: Some(1), jitter: 0, interval: 1, span: 0, slack: 0, times: 2, missed: Burst, done: ByOwner, on: Some(Fixed) }),
        Forward(Fixed, 1, then(&[&[Modify(4, Some((3, Zero, None)))]])),
    ]);
}

#[test]
fn a_timer_that_resumes_because_another_one_has_lost_its_clock_fires_at_the_same_instant() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: true };
    check(rules, &[
        Arm(0, Spec { delay: 53, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Arm(4, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 1, times: 0, missed: Burst, done: ByOwner, on: Some(Fixed) }),
        Arm(1, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Frame(3, then(&[&[Arm(7, Spec { delay: 112, since: None, jitter: 1, interval: 0, span: 0, slack: 9, times: 0, missed: Burst, done: ByOwner, on: None })]])),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Frame(10, then(&[])),
        Belong(4, Some(0)),
        Frame(5, then(&[])),
        Arm(4, Spec { delay: 0, since: None, jitter: 0, interval: 1, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Arm(5, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Frame(0, then(&[&[Pauses(5, Some(0))]])),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Frame(0, then(&[])),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Act(0, None),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Frame(101, then(&[&[Arm(5, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: Despawns, on: Some(Own(0)) })]])),
    ]);
}

#[test]
fn a_pause_of_the_game_ends_a_fast_forward_of_its_clock() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: true };
    check(rules, &[
        Arm(0, Spec { delay: 5, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Move(1, 0, 0, then(&[])),
        Forward(Virtual, 6, then(&[&[PauseGame(true)]])),
    ]);
}

#[test]
fn a_new_timer_on_the_clock_of_an_owner_that_goes_with_another_one_is_cancelled_there() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(1, Real, Zero),
        SetTimer(1, 0, 4, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Arm(1, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: Despawns, on: Some(Own(2)) }),
        Frame(0, then(&[])),
    ]);
}

#[test]
fn a_timer_that_waits_for_the_next_exact_frame_keeps_its_remaining_time_on_another_clock() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: true };
    check(rules, &[
        Arm(5, Spec { delay: 0, since: None, jitter: 0, interval: 1, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Update(0, 0, None),
        Act(5, Some(Named)),
        Arm(0, Spec { delay: 8, since: None, jitter: 0, interval: 1, span: 0, slack: 0, times: 2, missed: Burst, done: Despawns, on: None }),
        Move(1, 0, 9, then(&[&[], &[], &[], &[], &[], &[Ask(0, One(0), Spec { delay: 4, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None })], &[Clock(0, Real, Zero)]])),
    ]);
}

#[test]
fn what_is_on_a_new_modifier_follows_the_new_clock_at_once() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 0, ahead: 16140901064495857362, is_observed: true, exact_frames: false };
    check(rules, &[
        Update(0, 0, None),
        ManualClock(2),
        Revive(1, 0, then(&[&[Arm(3, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: Some(Fixed) })]])),
        Frame(0, then(&[&[RefreshTimer(2, 0, 5, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }), Modify(5, Some((0, Zero, None)))]])),
        Revive(4, 1, then(&[])),
    ]);
}

#[test]
fn a_timer_on_a_modifier_follows_a_clock_that_comes_with_a_load() {
    let rules = Rules { unit: 1666667, burst_limit: 1000, seed: 0, step: 10, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(1, Real, Third),
        Arm(0, Spec { delay: 20, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Move(0, 0, 0, then(&[])),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Disarm(0),
        Update(1, 0, None),
        Frame(4, then(&[&[SetTimer(0, 0, 2, Spec { delay: 0, since: None, jitter: 0, interval: 1, span: 0, slack: 0, times: 0, missed: Skip, done: ByOwner, on: None })]])),
        Frame(5, then(&[])),
        Frame(6, then(&[&[Update(3, 0, None)], &[]])),
        Update(0, 0, None),
        Arm(7, Spec { delay: 25, since: None, jitter: 1, interval: 1, span: 0, slack: 0, times: 2, missed: Skip, done: ByOwner, on: None }),
        Clock(0, Real, Quarter),
        Frame(10, then(&[&[Update(2, 0, Some(Fixed))], &[Clock(2, Real, Third)]])),
        Frame(4, then(&[])),
        Move(1, 0, 11, then(&[&[SetTimer(1, 0, 3, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None })]])),
        Reload(10, then(&[&[Modify(7, Some((3, Zero, None)))]])),
    ]);
}

#[test]
fn what_lost_its_clock_ends_in_the_order_of_arming() {
    let rules = Rules { unit: 1666667, burst_limit: 1000, seed: 0, step: 10, ahead: 0, is_observed: true, exact_frames: false };
    check(rules, &[
        Clock(0, Own(1), Zero),
        Arm(0, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Arm(7, Spec { delay: 0, since: None, jitter: 0, interval: 1, span: 0, slack: 0, times: 2, missed: Skip, done: ByOwner, on: None }),
        Frame(0, then(&[&[]])),
        LiveSince(7, 0, 0),
        Modify(7, Some((0, Zero, None))),
        Frame(0, then(&[])),
    ]);
}

#[test]
fn the_successor_of_an_entity_that_was_bare_stays() {
    let rules = Rules { unit: 1, burst_limit: 3, seed: 7, step: 13, ahead: 0, is_observed: true, exact_frames: true };
    check(rules, &[
        Follow(8, Topics(31)),
        Snapshot,
        Snapshot,
        Act(8, Some(Nothing)),
        Snapshot,
        Arm(8, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: Despawns, on: None }),
        SetTimer(0, 0, 1, Spec { delay: 0, since: None, jitter: 0, interval: 0, span: 0, slack: 0, times: 0, missed: Burst, done: ByOwner, on: None }),
        Frame(0, then(&[])),
        Restore(0),
        Restore(1),
        Restore(1),
    ]);
}

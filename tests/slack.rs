//! `Timer::slack`: timers spread over the frames of a window.

mod support;

use core::time::Duration;
use std::collections::BTreeMap;

use bevy_app::App;
use bevy_due::{ArmedTimers, ClockId, MissedTicks, Timer, TimerMut, TimerStatus, prelude::*};
use bevy_ecs::{prelude::*, system::SystemState};
use bevy_time::{Time, Virtual};
use support::*;

/// The length of a slot.
const SLOT: Duration = Duration::from_nanos(1_000_000_000 / 64);

fn slots(slots: u32) -> Duration {
    SLOT * slots
}

/// Runs frames of one slot, and returns the number of firings in each.
fn loads(app: &mut App, frames: usize) -> Vec<usize> {
    let mut load = || {
        advance(app, SLOT);
        fired(app).len()
    };
    (0..frames).map(|_| load()).collect()
}

fn deadlines(app: &mut App) -> Vec<Duration> {
    let firings = firings(app).into_iter();
    firings.map(|fired| fired.deadline()).collect()
}

fn spawn_all(app: &mut App, timers: usize, timer: &Timer) -> Vec<Entity> {
    (0..timers)
        .map(|_| spawn(app, "x", timer.clone()))
        .collect()
}

fn status(app: &mut App, timer: Entity) -> TimerStatus {
    let mut state = SystemState::<ArmedTimers>::new(app.world_mut());
    let timers = state.get(app.world()).unwrap();
    timers.get(timer).expect("it is armed")
}

fn remaining(app: &mut App, timer: Entity) -> Duration {
    status(app, timer).remaining
}

/// Returns the number of the slot in which a time lies.
fn slot(time: Duration) -> u128 {
    time.as_nanos() / SLOT.as_nanos()
}

#[test]
fn timers_that_are_armed_together_fire_apart() {
    let mut app = app();
    let timer = Timer::after(slots(10)).slack(slots(4));
    spawn_all(&mut app, 10, &timer);
    assert_eq!(loads(&mut app, 16)[8..], [0, 3, 3, 2, 2, 0, 0, 0]);
}

#[test]
fn a_thousand_periodic_timers_stay_apart() {
    let mut app = app();
    let timer = Timer::every(1.0).slack(Duration::from_secs(1));
    spawn_all(&mut app, 1000, &timer);
    let loads = loads(&mut app, 64 * 20);
    let (max, all) = (loads.iter().max().unwrap(), loads.iter().sum::<usize>());
    assert!(all > 18_000, "each fires about once per second: {all}");
    assert!((16..=17).contains(max), "{max} in a frame, 15.6 on average");
}

#[test]
fn a_timer_fires_within_its_window_and_its_windows_do_not_drift() {
    let mut app = app();
    let interval = ms(300);
    // Eight others keep half of the slots busy.
    for first in 0..8 {
        let other = Timer::every(ms(400))
            .first_after(slots(2 * first))
            .slack(slots(1));
        app.world_mut().spawn(other);
    }
    let timer = spawn(&mut app, "x", Timer::every(interval).slack(ms(120)));
    (0..600).for_each(|_| advance_ms(&mut app, 16));
    let firings: Vec<_> = firings(&mut app);
    let mine: Vec<_> = firings.iter().filter(|it| it.entity() == timer).collect();
    assert!(mine.len() >= 30, "{} firings", mine.len());
    let mut is_moved = false;
    for (nth, fired) in (1..).zip(mine) {
        let start = interval * nth;
        let shift = fired
            .deadline()
            .checked_sub(start)
            .expect("not before its window");
        assert!(
            shift < ms(120),
            "firing {nth} is {shift:?} after the start of its window"
        );
        is_moved |= shift > Duration::ZERO;
    }
    assert!(
        is_moved,
        "at least one choice differs from the start of the window"
    );
}

#[test]
fn the_slot_with_the_fewest_timers_wins_and_the_earliest_on_a_tie() {
    let mut app = app();
    // One timer in the second slot, two in the first and the third one.
    for slot in [10, 10, 11, 12, 12] {
        spawn(
            &mut app,
            "x",
            Timer::after(slots(slot)).slack(Duration::from_nanos(1)),
        );
    }
    let chooses = |app: &mut App| {
        let timer = spawn(app, "new", Timer::after(slots(10)).slack(slots(3)));
        advance(app, Duration::ZERO);
        remaining(app, timer)
    };
    assert_eq!(chooses(&mut app), slots(11), "the emptiest");
    assert_eq!(chooses(&mut app), slots(10), "all have two");
}

#[test]
fn timers_without_slack_and_on_other_clocks_do_not_count() {
    let mut app = app();
    spawn(&mut app, "x", Timer::after(slots(10)));
    spawn(
        &mut app,
        "x",
        Timer::after(slots(10)).slack(slots(5)).on(ClockId::Real),
    );
    let timer = spawn(&mut app, "x", Timer::after(slots(10)).slack(slots(5)));
    advance(&mut app, Duration::ZERO);
    assert_eq!(remaining(&mut app, timer), slots(10));
}

#[test]
fn a_cancelled_timer_leaves_its_slot() {
    let mut app = app();
    let timer = Timer::after(slots(10)).slack(slots(2));
    let first = spawn(&mut app, "x", timer.clone());
    advance(&mut app, Duration::ZERO);
    app.world_mut().despawn(first);
    let second = spawn(&mut app, "x", timer.clone());
    let third = spawn(&mut app, "x", timer);
    advance(&mut app, Duration::ZERO);
    assert_eq!(remaining(&mut app, second), slots(10));
    assert_eq!(remaining(&mut app, third), slots(11));
}

#[test]
fn a_paused_timer_does_not_count_and_keeps_its_remaining_time() {
    let mut app = app();
    let timer = Timer::after(slots(10)).slack(slots(3));
    let timers = spawn_all(&mut app, 2, &timer);
    advance(&mut app, Duration::ZERO);
    assert_eq!(remaining(&mut app, timers[1]), slots(11));
    app.world_mut().entity_mut(timers[1]).insert(Paused);
    advance(&mut app, slots(5));
    let new = spawn(&mut app, "x", Timer::after(slots(6)).slack(slots(3)));
    advance(&mut app, Duration::ZERO);
    assert_eq!(remaining(&mut app, new), slots(6), "the slot is free");
    app.world_mut().entity_mut(timers[1]).remove::<Paused>();
    advance(&mut app, Duration::ZERO);
    assert_eq!(remaining(&mut app, timers[1]), slots(11));
}

#[test]
fn timers_that_are_armed_while_paused_choose_when_the_pause_ends() {
    let mut app = app();
    let timer = Timer::after(slots(10)).slack(slots(3));
    let timers = [(); 3].map(|()| spawn(&mut app, "x", timer.clone()));
    for timer in timers {
        app.world_mut().entity_mut(timer).insert(Paused);
    }
    advance(&mut app, slots(7));
    for timer in timers {
        assert_eq!(remaining(&mut app, timer), slots(10), "no choice yet");
        app.world_mut().entity_mut(timer).remove::<Paused>();
    }
    advance(&mut app, Duration::ZERO);
    let chosen = [10, 11, 12].map(slots);
    assert_eq!(timers.map(|timer| remaining(&mut app, timer)), chosen);
}

#[test]
fn a_moved_deadline_is_the_start_of_a_new_window() {
    let mut app = app();
    spawn(&mut app, "x", Timer::after(slots(20)).slack(slots(1)));
    let timer = spawn(&mut app, "x", Timer::after(slots(5)).slack(slots(3)));
    advance(&mut app, Duration::ZERO);
    let mut moved = |change: fn(&mut TimerMut)| {
        app.world_mut().change_timer(timer, change).unwrap();
        advance(&mut app, Duration::ZERO);
        remaining(&mut app, timer)
    };
    assert_eq!(moved(|it| it.set_remaining(slots(20))), slots(21));
    for _ in 0..3 {
        assert_eq!(
            moved(|it| it.delay_by(Duration::ZERO)),
            slots(21),
            "no drift"
        );
    }
    assert_eq!(moved(|it| it.reschedule(slots(30))), slots(30));
    assert_eq!(moved(|it| it.restart()), slots(5));
}

#[test]
fn missed_deadlines_count_from_window_to_window() {
    for (policy, expected) in [
        (MissedTicks::Burst, vec![(10, 0), (20, 0), (30, 0), (40, 0)]),
        (MissedTicks::Skip, vec![(10, 3)]),
        (MissedTicks::Delay, vec![(10, 3)]),
    ] {
        let mut app = app();
        let timer = Timer::every(slots(10))
            .slack(slots(4))
            .with_missed_ticks(policy);
        let timer = spawn(&mut app, "x", timer);
        advance(&mut app, slots(45));
        let firings = firings(&mut app).into_iter();
        let firings: Vec<_> = firings
            .map(|it| (slot(it.deadline()), it.missed()))
            .collect();
        assert_eq!(firings, expected, "{policy:?}");
        let next = if policy == MissedTicks::Delay { 10 } else { 5 };
        assert_eq!(remaining(&mut app, timer), slots(next), "{policy:?}");
    }
}

#[test]
fn on_the_clock_of_frames_a_slot_is_a_frame() {
    let mut app = app();
    let frames = |frames| Duration::from_secs(frames);
    let timer = Timer::after_frames(3).slack(frames(2));
    spawn_all(&mut app, 6, &timer);
    let mut loads = Vec::new();
    for _ in 0..6 {
        advance_ms(&mut app, 16);
        loads.push(fired(&mut app).len());
    }
    assert_eq!(loads, [0, 0, 3, 3, 0, 0]);
}

#[test]
fn the_wait_is_as_long_as_the_choice_makes_it() {
    let mut app = app();
    let timer = Timer::every(slots(10)).slack(slots(5));
    let timers = spawn_all(&mut app, 3, &timer);
    advance(&mut app, slots(6));
    let status = self::status(&mut app, timers[2]);
    assert_eq!((status.remaining, status.wait), (slots(6), slots(12)));
    advance(&mut app, slots(6));
    let status = self::status(&mut app, timers[2]);
    assert_eq!(status.count, 1);
    assert_eq!(status.wait, status.remaining, "it begins at the firing");
}

#[test]
fn extreme_slack_is_quiet() {
    let mut app = app();
    for delay in [Duration::ZERO, ms(1), Duration::MAX] {
        for slack in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            spawn(&mut app, "x", Timer::after(delay).slack(slack));
            spawn(
                &mut app,
                "x",
                Timer::every(ms(1)).first_after(delay).slack(slack).times(3),
            );
        }
    }
    advance(&mut app, Duration::from_secs(1));
    advance(&mut app, Duration::from_secs(1 << 33));
    // Two of three delays are reached, with one and with three firings.
    assert_eq!(deadlines(&mut app).len(), 2 * 3 * (1 + 3));
}

#[test]
fn equal_inputs_give_equal_choices() {
    let run = || {
        let mut app = app();
        for nth in 0..50_u64 {
            let timer = Timer::every(ms(40 + nth % 7))
                .slack(ms(nth % 5 * 20))
                .with_jitter(ms(30));
            spawn(&mut app, "x", timer);
        }
        for _ in 0..100 {
            advance_ms(&mut app, 16);
        }
        deadlines(&mut app)
    };
    assert_eq!(run(), run());
}

/// Many random changes, then a recount: no slot has lost or kept a timer.
#[test]
fn slots_stay_exact_through_every_change() {
    let mut app = app();
    let any = |nth: u64| Timer::every(ms(100)).slack(ms(40 * (nth % 4)));
    let timers: Vec<_> = (0..40).map(|nth| spawn(&mut app, "x", any(nth))).collect();
    for step in 0..400_u64 {
        let timer = timers[(step * 7 % 40) as usize];
        let mut entity = app.world_mut().entity_mut(timer);
        match step % 6 {
            0 => _ = entity.insert(Paused),
            1 | 2 => _ = entity.remove::<Paused>(),
            3 => _ = entity.change_own_timer(|it| it.delay_by(ms(7))),
            4 => _ = entity.insert(any(step)),
            _ => _ = entity.change_own_timer(|it| it.restart()),
        }
        advance_ms(&mut app, 5);
    }
    for &timer in &timers {
        app.world_mut().entity_mut(timer).remove::<Paused>();
    }
    advance(&mut app, Duration::ZERO);
    // A new timer chooses the slot that is emptiest by a count of all deadlines.
    let mut counts: BTreeMap<u128, usize> = BTreeMap::new();
    for &timer in &timers {
        if app.world().get::<Timer>(timer) != Some(&Timer::every(ms(100))) {
            *counts
                .entry(slot(status(&mut app, timer).deadline))
                .or_default() += 1;
        }
    }
    let start = app.world().resource::<Time<Virtual>>().elapsed() + ms(20);
    let count = |slot: &u128| (counts.get(slot).copied().unwrap_or(0), *slot);
    let emptiest = (slot(start)..=slot(start + ms(80) - Duration::from_nanos(1))).min_by_key(count);
    let new = spawn(&mut app, "new", Timer::after(ms(20)).slack(ms(80)));
    advance(&mut app, Duration::ZERO);
    let chosen = slot(status(&mut app, new).deadline);
    assert_eq!(Some(chosen), emptiest, "{counts:?}");
}

#[test]
fn a_choice_is_no_lateness_and_no_drift_under_any_policy() {
    for policy in [MissedTicks::Burst, MissedTicks::Skip, MissedTicks::Delay] {
        let mut app = app();
        let timer = Timer::every(1.0)
            .slack(Duration::from_secs(1))
            .with_missed_ticks(policy);
        spawn_all(&mut app, 640, &timer);
        let mut count = 0;
        // The frame in which the next window begins is left out.
        for _ in 0..30 * 64 - 1 {
            advance(&mut app, SLOT);
            let firings = firings(&mut app);
            count += firings.len();
            assert!(
                firings.iter().all(|fired| fired.missed() == 0),
                "{policy:?}"
            );
        }
        // The first second passes before the first window.
        assert_eq!(count, 640 * 29, "{policy:?}");
    }
}

#[test]
fn deadlines_go_forward_even_with_more_slack_than_interval() {
    let mut app = app();
    for _ in 0..200 {
        app.world_mut().spawn(Timer::every(ms(700)).slack(ms(300)));
    }
    let timer = spawn(&mut app, "x", Timer::every(ms(100)).slack(ms(1000)));
    (0..600).for_each(|_| advance(&mut app, SLOT));
    let mine: Vec<_> = firings(&mut app)
        .into_iter()
        .filter(|it| it.entity() == timer)
        .collect();
    assert!(mine.len() > 80, "{} firings in 9.4 s", mine.len());
    let slots: Vec<_> = mine.iter().map(|fired| slot(fired.deadline())).collect();
    assert!(slots.is_sorted_by(|a, b| a < b), "{slots:?}");
}

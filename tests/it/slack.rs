//! `Timer::slack`: timers spread over a window.

use core::time::Duration;

use crate::support::*;
use bevy_app::App;
use bevy_due::{Clock, MissedTicks, Timer, prelude::*, timer::TimerMut};
use bevy_ecs::prelude::*;

/// A frame.
const FRAME: Duration = Duration::from_nanos(1_000_000_000 / 64);

fn frames(frames: u32) -> Duration {
    FRAME * frames
}

/// Runs frames, and returns the number of firings in each.
fn loads(app: &mut App, frames: usize) -> Vec<usize> {
    let mut load = || {
        advance(app, FRAME);
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

fn remaining(app: &mut App, timer: Entity) -> Duration {
    status(app, timer).remaining
}

/// Returns the fewest and the most deadlines in any part of a window.
fn spread(deadlines: &[Duration], start: Duration, length: Duration, parts: u32) -> (usize, usize) {
    let part = length / parts;
    let counts = (0..parts).map(|nth| {
        let range = start + part * nth..start + part * (nth + 1);
        deadlines.iter().filter(|it| range.contains(it)).count()
    });
    let counts: Vec<usize> = counts.collect();
    (*counts.iter().min().unwrap(), *counts.iter().max().unwrap())
}

#[test]
fn timers_that_are_armed_together_spread_evenly_however_many_there_are() {
    for (timers, parts) in [(10, 4), (100, 10), (1000, 64), (5000, 64)] {
        let mut app = app();
        let timer = Timer::after(ms(500)).slack(ms(2000));
        spawn_all(&mut app, timers, &timer);
        advance_ms(&mut app, 3000);
        let deadlines = deadlines(&mut app);
        assert_eq!(deadlines.len(), timers);
        let (min, max) = spread(&deadlines, ms(500), ms(2000), parts);
        assert!(max - min <= 4, "{timers} timers: {min} to {max}");
    }
}

#[test]
fn a_thousand_periodic_timers_stay_apart() {
    let mut app = app();
    let timer = Timer::every(1.0).slack(Duration::from_secs(1));
    spawn_all(&mut app, 1000, &timer);
    let loads = loads(&mut app, 64 * 20);
    let (max, all) = (loads.iter().max().unwrap(), loads.iter().sum::<usize>());
    assert!(all > 18_000, "each fires about once per second: {all}");
    assert!((16..=18).contains(max), "{max} in a frame, 15.6 on average");
}

#[test]
fn kinds_of_timers_that_are_armed_in_turn_spread_too() {
    let mut app = app();
    let kinds = [1, 2, 3].map(|secs| Timer::after(secs as f32).slack(ms(1000)));
    for nth in 0..600 {
        spawn(&mut app, "x", kinds[nth % 3].clone());
    }
    advance_ms(&mut app, 5000);
    let deadlines = deadlines(&mut app);
    for secs in [1, 2, 3] {
        let (min, max) = spread(&deadlines, ms(1000 * secs), ms(1000), 20);
        assert!(max - min <= 4, "{min} to {max}");
    }
}

#[test]
fn a_timer_fires_within_its_window_and_does_not_drift() {
    for policy in [MissedTicks::Burst, MissedTicks::Skip] {
        let mut app = app();
        let timer = Timer::every(ms(300)).slack(ms(120));
        let timers = spawn_all(&mut app, 9, &timer.with_missed_ticks(policy));
        (0..600).for_each(|_| advance_ms(&mut app, 16));
        let firings = firings(&mut app);
        for timer in timers {
            let mine = firings.iter().filter(|it| it.entity() == timer);
            let mine: Vec<Duration> = mine.map(|it| it.deadline()).collect();
            assert!(mine.len() >= 30, "{} firings", mine.len());
            assert!((ms(300)..ms(420)).contains(&mine[0]), "{:?}", mine[0]);
            for pair in mine.windows(2) {
                assert_eq!(pair[1] - pair[0], ms(300), "exact intervals");
            }
        }
    }
}

#[test]
fn the_wait_tells_the_part_of_the_slack() {
    let mut app = app();
    let timer = Timer::every(frames(10)).slack(frames(5));
    let timers = spawn_all(&mut app, 3, &timer);
    for &timer in &timers {
        let first = status(&mut app, timer);
        assert_eq!(first.remaining, first.wait);
        assert!((frames(10)..frames(15)).contains(&first.wait));
    }
    advance(&mut app, frames(15));
    for timer in timers {
        assert_eq!(status(&mut app, timer).wait, frames(10));
    }
}

#[test]
fn a_paused_timer_keeps_its_remaining_time() {
    let mut app = app();
    let timer = spawn(&mut app, "x", Timer::after(frames(10)).slack(frames(3)));
    let paused = spawn(&mut app, "x", Timer::after(frames(10)).slack(frames(3)));
    app.world_mut().entity_mut(paused).insert(Paused);
    let before = [timer, paused].map(|it| remaining(&mut app, it));
    advance(&mut app, frames(4));
    app.world_mut().entity_mut(paused).remove::<Paused>();
    let after = [timer, paused].map(|it| remaining(&mut app, it));
    assert_eq!(after, [before[0] - frames(4), before[1]]);
}

#[test]
fn a_deadline_that_is_set_is_exact_and_a_restart_spreads_again() {
    let mut app = app();
    let timer = spawn(&mut app, "x", Timer::after(frames(5)).slack(frames(3)));
    let mut moved = |change: fn(&mut TimerMut)| {
        app.world_mut().change_timer(timer, change).unwrap();
        advance(&mut app, Duration::ZERO);
        remaining(&mut app, timer)
    };
    assert_eq!(moved(|it| it.set_remaining(frames(20))), frames(20));
    assert_eq!(moved(|it| it.delay_by(frames(1))), frames(21));
    assert_eq!(moved(|it| it.delay_by(Duration::ZERO)), frames(21));
    assert_eq!(moved(|it| it.reschedule(frames(30))), frames(30));
    let restarts = [(); 2].map(|()| moved(|it| it.restart()));
    assert_ne!(restarts[0], restarts[1]);
    for restarted in restarts {
        assert!((frames(5)..frames(8)).contains(&restarted));
    }
}

#[test]
fn a_timer_whose_clock_arrives_later_spreads_as_well() {
    let mut app = app();
    let clock = app.world_mut().spawn_empty().id();
    let timer = Timer::after(ms(100)).slack(ms(1000)).on(clock);
    let timers = spawn_all(&mut app, 20, &timer);
    app.world_mut().entity_mut(clock).insert(Clock::new());
    advance_ms(&mut app, 0);
    let waits: Vec<Duration> = timers.iter().map(|&it| remaining(&mut app, it)).collect();
    let (min, max) = spread(&waits, ms(100), ms(1000), 5);
    assert!(max - min <= 3, "{waits:?}");
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
    // Two of three delays are reached within a short slack, with one and with three firings.
    assert!(deadlines(&mut app).len() >= 2 * 2 * (1 + 3));
}

#[test]
fn equal_inputs_give_equal_deadlines() {
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

//! Promise 9: zero delays, the longest `Duration`, clock jumps and years of uptime never panic,
//! overflow or fire out of order.

use core::time::Duration;

use crate::support::{errors::*, *};
use bevy_app::App;
use bevy_due::{Clock, ClockId, DuePlugin, Timer, TimerFired, clock::ClockMut};
use bevy_ecs::{error::FallbackErrorHandler, message::Messages};
use bevy_time::{Time, TimePlugin, TimeUpdateStrategy, Virtual};

const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

#[test]
fn extreme_delays_and_clock_jumps_fire_in_order() {
    let mut app = app();
    spawn(&mut app, "never", Timer::after(Duration::MAX));
    spawn(&mut app, "rarely", Timer::every(Duration::MAX));
    spawn(&mut app, "century", Timer::after(YEAR * 100));
    spawn(&mut app, "second", Timer::every(1.0));
    spawn(&mut app, "now", Timer::after(Duration::ZERO));
    spawn(&mut app, "year", Timer::after(YEAR));
    advance(&mut app, YEAR * 1000);

    let firings = firings(&mut app);
    assert_eq!(firings.len(), 1 + 1000 + 1 + 1);
    assert!(firings.is_sorted_by_key(|fired| fired.deadline()));
    assert_eq!(firings[0].deadline(), Duration::ZERO);
    assert_eq!(firings[1000].deadline(), Duration::from_secs(1000));
    assert!(
        firings[1000].missed() > 16_000_000_000,
        "the skipped deadlines should be counted"
    );
    assert_eq!(firings[1001].deadline(), YEAR);
    assert_eq!(firings[1002].deadline(), YEAR * 100);

    // The clock has reached the end of representable time, so a new timer is never due.
    spawn(&mut app, "late", Timer::every(1.0));
    advance(&mut app, YEAR * 1000);
    advance(&mut app, Duration::ZERO);
    assert!(crate::support::firings(&mut app).is_empty());
}

#[test]
fn a_clock_that_leaps_past_the_end_of_time_goes_on() {
    let leaps: [fn(&mut ClockMut); 3] = [
        |clock| clock.skip_by(YEAR * 1000),
        |clock| clock.advance_by(YEAR * 1000),
        |clock| clock.advance_to(Duration::MAX),
    ];
    for leap in leaps {
        for is_own in [true, false] {
            let mut app = app();
            let clock = match is_own {
                true => spawn_clock(&mut app, Clock::new()).into(),
                false => ClockId::Virtual,
            };
            spawn(&mut app, "before", Timer::after(YEAR).on(clock));
            change_clock(&mut app, clock, leap);
            advance_ms(&mut app, 10);
            assert_eq!(fired(&mut app), ["before"]);
            change_clock(&mut app, clock, |clock| clock.set_now(ms(0)));
            spawn(&mut app, "after", Timer::after(0.1).on(clock));
            for (millis, expected) in [(99, &[][..]), (1, &[("after", 100)][..])] {
                advance_ms(&mut app, millis);
                assert_eq!(fired_at(&mut app), expected);
            }
            assert_eq!(now(&app, clock), ms(100));
        }
    }
}

#[test]
fn a_world_that_ran_for_a_century_is_as_exact_as_a_new_one() {
    let mut app = app();
    advance(&mut app, YEAR * 100);
    spawn(&mut app, "a", Timer::every(ms(10)));
    spawn(&mut app, "b", Timer::every(ms(15)));
    advance_ms(&mut app, 30);
    assert_eq!(fired(&mut app), ["a", "b", "a", "a", "b"]);
}

#[test]
fn the_shortest_interval_respects_the_burst_limit() {
    let mut app = app();
    spawn(&mut app, "x", Timer::every(Duration::from_nanos(1)));
    advance_ms(&mut app, 1);
    assert_eq!(fired(&mut app).len(), 1000);
    advance_ms(&mut app, 1);
    assert_eq!(fired(&mut app).len(), 1000);
}

#[test]
fn a_clock_that_is_set_back_fires_nothing_early() {
    let mut app = app();
    spawn(&mut app, "x", Timer::every(ms(10)));
    advance_ms(&mut app, 95);
    fired(&mut app);
    let mut restarted = Time::<Virtual>::default();
    restarted.set_max_delta(Duration::MAX);
    app.insert_resource(restarted);
    advance_ms(&mut app, 99);
    assert!(fired(&mut app).is_empty());
    advance_ms(&mut app, 1);
    assert_eq!(fired_at(&mut app), [("x", 100)]);
}

#[test]
fn huge_and_tiny_numbers_of_seconds_saturate() {
    assert_eq!(Timer::after(1e300), Timer::after(Duration::MAX));
    assert_eq!(
        Timer::every(1e-300).interval(),
        Some(Duration::from_nanos(1)),
        "a positive interval should never round to zero"
    );
    assert_eq!(Timer::after(-0.0).delay(), Duration::ZERO);
}

#[test]
fn a_chain_of_thousands_of_clocks_does_not_overflow_the_stack() {
    const LEN: usize = 3000;

    // Children first, as a scene may load them.
    let mut app = App::new();
    let clocks: Vec<_> = app.world_mut().spawn_batch((0..LEN).map(|_| ())).collect();
    for pair in clocks.windows(2).rev() {
        app.world_mut()
            .entity_mut(pair[1])
            .insert(Clock::of(pair[0]));
    }
    app.world_mut().entity_mut(clocks[0]).insert(Clock::new());
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .insert_resource(TimeUpdateStrategy::ManualDuration(ms(10)));
    app.update();

    let last = clocks[LEN - 1];
    let timer = app.world_mut().spawn(Timer::after(ms(20)).on(last)).id();
    app.update();
    assert!(app.world().entity(timer).contains::<Timer>());
    app.update();
    assert!(!app.world().entity(timer).contains::<Timer>());
}

#[test]
fn the_messages_of_a_long_pause_take_bounded_memory_and_the_dropped_ones_are_reported() {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(record));
    for _ in 0..1000 {
        app.world_mut().spawn(Timer::every_frames(1));
    }
    let mut time = app.world_mut().resource_mut::<Time<Virtual>>();
    time.pause();
    for _ in 0..200 {
        advance_ms(&mut app, 1);
    }
    let messages = app.world().resource::<Messages<TimerFired>>();
    assert!(
        messages.len() <= (1 << 16) + 2000,
        "{} are kept",
        messages.len()
    );
    assert!(
        messages.len() >= 2000,
        "those of the last two frames are there"
    );
    let reported = errors();
    let counts = reported.iter().map(|error| {
        let count = error.split_whitespace().next();
        count.and_then(|count| count.parse::<usize>().ok())
    });
    let dropped: Option<usize> = counts.sum();
    assert_eq!(
        dropped,
        Some(messages.oldest_message_count()),
        "{reported:?}"
    );
    assert!(
        (2..10).contains(&reported.len()),
        "one report in a run that drops: {reported:?}"
    );
}

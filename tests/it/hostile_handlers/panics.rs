//! Panics in handlers, observers and commands: timers still end, and later runs are complete.

use super::*;
use crate::support::*;
use bevy_due::TimerFired;
use bevy_ecs::lifecycle::Remove;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

#[test]
fn a_burst_that_a_panic_cut_off_does_not_shorten_the_next() {
    let mut app = app_with(burst_limit(10));
    ignore_errors(&mut app);
    spawn(&mut app, "timer", Timer::every(ms(10)));
    app.add_observer(|fired: On<TimerFired>| assert!(fired.count() != 5));
    advance_ms(&mut app, 100);
    firings(&mut app);
    advance_ms(&mut app, 50);
    let firings = firings(&mut app);
    assert_eq!(firings.len(), 10, "the next burst should be full");
    assert!(
        firings.iter().all(|fired| fired.missed() == 0),
        "no firing should be missed"
    );
}

#[test]
fn a_panic_while_the_timers_of_a_dead_clock_end_leaves_no_timer_behind() {
    let mut app = app();
    ignore_errors(&mut app);
    let clock = app.world_mut().spawn(Clock::new()).id();
    let timers = ["a", "b", "c"].map(|tag| spawn(&mut app, tag, Timer::after(ms(10)).on(clock)));
    app.add_observer(move |removed: On<Remove<Timer>>| assert!(removed.entity != timers[0]));
    app.world_mut().despawn(clock);
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 10);
    assert_eq!(cancelled(&mut app).len(), 3, "every timer should end");
    let left = timers[1..]
        .iter()
        .filter(|&&timer| app.world().get::<Timer>(timer).is_some());
    assert_eq!(left.count(), 0, "no `Timer` should stay without its clock");
}

#[test]
fn a_timer_ends_even_if_its_removal_after_the_last_firing_panics() {
    let mut app = app();
    ignore_errors(&mut app);
    let timers = ["a", "b"].map(|tag| spawn(&mut app, tag, Timer::after(ms(10))));
    app.add_observer(
        move |removed: On<Remove<Timer>>, mut removals: Local<u32>| {
            *removals += 1;
            assert!(*removals > 1 || removed.entity != timers[0]);
        },
    );
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 0);
    advance_ms(&mut app, 0);
    assert_eq!(fired(&mut app), ["a", "b"], "each timer should fire once");
    for timer in timers {
        assert!(
            app.world().get::<Timer>(timer).is_none(),
            "each timer should be removed"
        );
    }
    assert!(
        cancelled(&mut app).is_empty(),
        "a finished timer should not count as cancelled"
    );
}

#[test]
fn a_panic_in_a_fast_forward_does_not_block_the_next() {
    let mut app = app();
    spawn(&mut app, "timer", Timer::every(ms(10)));
    app.add_observer(|fired: On<TimerFired>| assert!(fired.count() != 2, "a handler"));
    let caught = catch_unwind(AssertUnwindSafe(|| {
        app.world_mut().fast_forward(ClockId::Virtual, ms(20))
    }));
    assert!(caught.is_err(), "the panic should reach the caller");
    firings(&mut app);
    let stats = app
        .world_mut()
        .fast_forward(ClockId::Virtual, ms(20))
        .unwrap();
    assert_eq!(
        (stats.fired, firings(&mut app).len()),
        (2, 2),
        "the next fast-forward should fire both ticks"
    );
}

/// With Bevy's default error handler, a panic in one command also drops the commands after it.
#[test]
fn the_timers_of_a_dead_clock_end_even_if_another_command_panics() {
    let mut app = app();
    let clock = app.world_mut().spawn(Clock::new()).id();
    let timer = spawn(&mut app, "timer", Timer::after(ms(10)).on(clock));
    advance_ms(&mut app, 1);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let world = app.world_mut();
        world
            .commands()
            .queue(|_: &mut World| panic!("another command"));
        world.despawn(clock);
    }));
    assert!(caught.is_err(), "the panic should reach the caller");
    advance_ms(&mut app, 10);
    assert!(
        app.world().get_entity(clock).is_err(),
        "the clock should be gone"
    );
    assert_eq!(
        cancel_messages(&app),
        [(timer, CancelReason::ClockGone)],
        "its timer should end once"
    );
}

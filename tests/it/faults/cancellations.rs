//! Panics while timers are cancelled, removed and replaced.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use bevy_app::App;
use bevy_due::{
    CancelReason, Clock, OwnedTimerCancelled, Timer, TimerCancelled, prelude::*, timer::Keyed,
};
use bevy_ecs::{
    error::{FallbackErrorHandler, ignore},
    lifecycle::Remove,
    message::Messages,
    prelude::*,
};

use super::game::check_counts;
use crate::support::*;

/// Creates an app in which the first handler of a cancellation panics.
fn app_with_cancel_handler() -> App {
    let mut app = unobserved_app();
    app.insert_resource(FallbackErrorHandler(ignore));
    app.add_observer(|_: On<TimerCancelled>, mut calls: Local<u32>| {
        *calls += 1;
        assert!(*calls != 1, "the first cancellation");
    });
    app
}

/// Runs two frames, and returns the reasons of all cancellations and the number of firings.
fn reasons(app: &mut App) -> (Vec<CancelReason>, usize) {
    let (mut reasons, mut firings) = (Vec::new(), 0);
    for millis in [0, 100] {
        advance_ms(app, millis);
        let mut messages = app.world_mut().resource_mut::<Messages<TimerCancelled>>();
        reasons.extend(messages.drain().map(|cancelled| cancelled.reason()));
        let mut messages = app.world_mut().resource_mut::<Messages<TimerFired>>();
        firings += messages.drain().count();
        check_counts(app.world_mut());
    }
    (reasons, firings)
}

#[test]
fn a_removed_timer_whose_cancel_handler_panics_never_fires() {
    let mut app = app_with_cancel_handler();
    let timers = [(); 2].map(|()| app.world_mut().spawn(Timer::after(ms(10))).id());
    for timer in timers {
        app.world_mut().commands().entity(timer).remove::<Timer>();
    }
    app.world_mut().flush();
    assert_eq!(reasons(&mut app), (vec![CancelReason::Removed; 2], 0));
}

#[test]
fn a_despawned_timer_whose_cancel_handler_panics_never_fires() {
    let mut app = app_with_cancel_handler();
    let timers = [(); 2].map(|()| app.world_mut().spawn(Timer::after(ms(10))).id());
    for timer in timers {
        app.world_mut().commands().entity(timer).despawn();
    }
    app.world_mut().flush();
    assert_eq!(reasons(&mut app), (vec![CancelReason::Despawned; 2], 0));
    for timer in timers {
        assert!(
            app.world().get_entity(timer).is_err(),
            "{timer} should be gone"
        );
    }
}

#[test]
fn a_timer_that_replaces_one_whose_cancel_handler_panics_fires_once() {
    let mut app = app_with_cancel_handler();
    let timer = app.world_mut().spawn(Timer::after(ms(10))).id();
    let mut commands = app.world_mut().commands();
    commands.entity(timer).insert(Timer::after(ms(20)));
    app.world_mut().flush();
    assert_eq!(reasons(&mut app), (vec![CancelReason::Replaced], 1));
}

#[test]
fn a_keyed_timer_whose_cancel_handler_panics_is_cancelled_once() {
    let mut app = app_with_cancel_handler();
    app.add_observer(|_: On<OwnedTimerCancelled>| panic!("the handler of the owner"));
    let owner = app.world_mut().spawn_empty().id();
    let bundle = (OwnedBy(owner), Keyed::new("burn"), Timer::every(ms(10)));
    let timer = app.world_mut().spawn(bundle).id();
    let mut commands = app.world_mut().commands();
    commands
        .entity(owner)
        .cancel_timer("burn")
        .cancel_timer("burn");
    app.world_mut().flush();
    assert_eq!(reasons(&mut app), (vec![CancelReason::Cancelled], 0));
    assert!(
        app.world().get_entity(timer).is_err(),
        "the timer should despawn"
    );
    app.world_mut()
        .entity_mut(owner)
        .set_timer("burn", Timer::after(ms(10)));
    assert_eq!(reasons(&mut app), (vec![], 1), "the key should be free");
}

#[test]
fn timers_of_a_missing_clock_are_cancelled_once_if_their_handlers_panic_at_the_swap() {
    let mut app = app_with_cancel_handler();
    app.add_observer(|removed: On<Remove<Timer>>, mut calls: Local<u32>| {
        *calls += 1;
        assert!(*calls != 2, "the second removal, of {}", removed.entity);
    });
    let dead = app.world_mut().spawn(Clock::new()).id();
    app.world_mut().despawn(dead);
    for delay in 0..4 {
        app.world_mut().spawn(Timer::after(ms(delay)).on(dead));
    }
    let alive = app.world_mut().spawn(Timer::after(ms(5))).id();
    advance_ms(&mut app, 10);
    let (reasons, firings) = reasons(&mut app);
    assert_eq!(reasons, [CancelReason::ClockGone; 4]);
    assert_eq!(firings, 1, "the other timer should fire once");
    assert!(app.world().get::<Timer>(alive).is_none(), "it is done");
}

/// If an observer of the removal itself panics, Bevy stops in the middle and keeps the component.
#[test]
fn a_timer_whose_removal_panics_never_fires_and_can_be_armed_again() {
    let mut app = unobserved_app();
    app.add_observer(|_: On<Remove<Timer>>, mut calls: Local<u32>| {
        *calls += 1;
        assert!(*calls != 1, "the first removal");
    });
    let timer = app.world_mut().spawn(Timer::after(ms(10))).id();
    let removal = catch_unwind(AssertUnwindSafe(|| {
        app.world_mut().entity_mut(timer).remove::<Timer>();
    }));
    assert!(removal.is_err(), "the panic should reach the caller");
    for _ in 0..3 {
        advance_ms(&mut app, 10);
    }
    let fired = app.world().resource::<Messages<TimerFired>>();
    assert!(fired.is_empty(), "a cancelled timer should not fire");
    let mut cancelled = app.world_mut().resource_mut::<Messages<TimerCancelled>>();
    assert_eq!(cancelled.drain().count(), 1, "it should be cancelled once");
    app.world_mut()
        .entity_mut(timer)
        .insert(Timer::after(ms(10)));
    let (reasons, firings) = reasons(&mut app);
    assert!(reasons.is_empty(), "nothing should be cancelled twice");
    assert_eq!(firings, 1, "the new timer should fire");
}

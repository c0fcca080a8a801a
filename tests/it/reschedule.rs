//! `reschedule`, `delay_by`, `delay_timers_by` and `since`: moving deadlines.

use crate::support::*;
use bevy_due::{OwnedBy, Timer, TimerFired, prelude::*, timer::NoSuchTimer};
use bevy_ecs::{
    error::{BevyError, ErrorContext, FallbackErrorHandler, Severity},
    prelude::*,
};
use core::sync::atomic::{AtomicU32, Ordering};

#[test]
fn a_deadline_can_be_moved_in_both_directions() {
    let mut app = app();
    let [a, b] = ["a", "b"].map(|tag| spawn(&mut app, tag, Timer::after(ms(50))));
    advance_ms(&mut app, 10);
    app.world_mut()
        .change_timer(a, |timer| timer.reschedule(ms(80)))
        .unwrap();
    app.world_mut()
        .change_timer(b, |timer| timer.reschedule(ms(20)))
        .unwrap();
    for _ in 0..8 {
        advance_ms(&mut app, 10);
    }
    assert_eq!(fired_at(&mut app), [("b", 20), ("a", 80)]);
    assert!(
        cancelled(&mut app).is_empty(),
        "moving a deadline is not a cancellation"
    );
}

#[test]
fn a_deadline_in_the_past_fires_in_the_next_run() {
    let mut app = app();
    let x = spawn(&mut app, "x", Timer::after(ms(500)));
    advance_ms(&mut app, 100);
    app.world_mut()
        .change_timer(x, |timer| timer.reschedule(ms(30)))
        .unwrap();
    assert!(
        fired(&mut app).is_empty(),
        "should not fire inside the call"
    );
    advance_ms(&mut app, 0);
    let fired = firings(&mut app)[0];
    assert_eq!((fired.deadline(), fired.lateness()), (ms(30), ms(70)));
}

#[test]
fn a_periodic_timer_continues_from_its_new_deadline_and_keeps_its_count() {
    let mut app = app();
    let x = spawn(&mut app, "x", Timer::every(ms(10)).times(4));
    advance_ms(&mut app, 20);
    app.world_mut()
        .change_timer(x, |timer| timer.delay_by(ms(5)))
        .unwrap();
    advance_ms(&mut app, 100);
    let firings = firings(&mut app);
    let deadlines = firings.iter().map(|fired| fired.deadline());
    assert!(deadlines.eq([10, 20, 35, 45].map(ms)));
    assert_eq!(firings[3].count(), 4);
}

#[test]
fn rescheduling_moves_a_timer_behind_equal_deadlines() {
    let mut app = app();
    let [a, _] = ["a", "b"].map(|tag| spawn(&mut app, tag, Timer::after(ms(10))));
    app.world_mut()
        .change_timer(a, |timer| timer.reschedule(ms(10)))
        .unwrap();
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["b", "a"]);
}

#[test]
fn a_handler_may_postpone_its_own_timer_and_other_due_timers() {
    let mut app = app();
    spawn(&mut app, "a", Timer::every(ms(10)));
    let b = spawn(&mut app, "b", Timer::after(ms(10)));
    app.add_observer(move |fired: On<TimerFired>, mut commands: Commands| {
        if fired.deadline() == ms(10) {
            commands.entity(fired.entity()).delay_by(ms(60));
            commands.entity(b).reschedule(ms(75));
        }
    });
    advance_ms(&mut app, 50);
    assert_eq!(fired_at(&mut app), [("a", 10)]);
    advance_ms(&mut app, 30);
    assert_eq!(fired_at(&mut app), [("b", 75), ("a", 80)]);
}

#[test]
fn a_paused_timer_stays_paused_when_it_is_delayed() {
    let mut app = app();
    let x = spawn(&mut app, "x", Timer::after(ms(50)));
    app.world_mut().entity_mut(x).insert(Paused);
    advance_ms(&mut app, 10);
    app.world_mut()
        .change_timer(x, |timer| timer.delay_by(ms(20)))
        .unwrap();
    advance_ms(&mut app, 100);
    assert_eq!(status(&mut app, x).remaining, ms(70));
    app.world_mut().entity_mut(x).remove::<Paused>();
    advance_ms(&mut app, 70);
    assert_eq!(fired_at(&mut app), [("x", 180)]);
}

#[test]
fn delaying_a_timer_extends_its_wait() {
    let mut app = app();
    let x = spawn(&mut app, "x", Timer::after(ms(30)));
    advance_ms(&mut app, 20);
    app.world_mut()
        .change_timer(x, |timer| timer.delay_by(ms(10)))
        .unwrap();
    let status = status(&mut app, x);
    assert_eq!((status.elapsed, status.wait), (ms(20), ms(40)));
}

#[test]
fn all_timers_of_an_owner_can_be_delayed() {
    let mut app = app();
    let boss = spawn(&mut app, "boss", Timer::after(ms(10)));
    let timer = (Tag("owned"), OwnedBy(boss), Timer::after(ms(20)));
    app.world_mut().spawn(timer);
    app.world_mut().spawn(OwnedBy(boss));
    app.world_mut().entity_mut(boss).delay_timers_by(ms(100));
    advance_ms(&mut app, 109);
    assert!(fired(&mut app).is_empty());
    advance_ms(&mut app, 11);
    assert_eq!(fired_at(&mut app), [("boss", 110), ("owned", 120)]);
}

#[test]
fn moving_an_unarmed_timer_is_an_error_and_through_commands_a_warning() {
    static WARNINGS: AtomicU32 = AtomicU32::new(0);
    fn warned(error: BevyError, _: ErrorContext) {
        assert_eq!(error.severity(), Severity::Warning);
        assert!(error.is::<NoSuchTimer>());
        WARNINGS.fetch_add(1, Ordering::Relaxed);
    }

    let mut app = app();
    app.insert_resource(FallbackErrorHandler(warned));
    let x = spawn(&mut app, "x", Timer::after(ms(10)));
    advance_ms(&mut app, 10);
    assert_eq!(
        app.world_mut()
            .change_timer(x, |timer| timer.reschedule(ms(50))),
        Err(NoSuchTimer {
            entity: x,
            key: None,
            clock: None
        })
    );
    assert_eq!(
        app.world_mut()
            .change_timer(x, |timer| timer.delay_by(ms(50))),
        Err(NoSuchTimer {
            entity: x,
            key: None,
            clock: None
        })
    );
    let mut commands = app.world_mut().commands();
    commands.entity(x).reschedule(ms(50)).delay_by(ms(50));
    commands.entity(x).delay_timers_by(ms(50));
    app.world_mut().flush();
    assert_eq!(WARNINGS.load(Ordering::Relaxed), 2);
}

#[test]
fn a_chain_that_counts_from_its_own_deadlines_does_not_drift() {
    let mut app = app();
    spawn(&mut app, "x", Timer::after(ms(10)));
    app.add_observer(|fired: On<TimerFired>, mut commands: Commands| {
        let next = Timer::after(ms(10)).since(fired.deadline());
        commands.entity(fired.entity()).insert(next);
    });
    for _ in 0..10 {
        advance_ms(&mut app, 7);
    }
    let deadlines = firings(&mut app).into_iter().map(|fired| fired.deadline());
    assert!(deadlines.eq((1..=7).map(|link| ms(10 * link))));
}

//! Clocks that go during a run, and conditions that panic.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use bevy_app::{App, First};
use bevy_due::{
    CancelReason, Clock, Timer, TimerCancelled, clock::ClockError, conditions::run_clock_if,
    prelude::*,
};
use bevy_ecs::{message::Messages, prelude::*};

use super::{
    fault::{Fault, Place},
    game::{check_counts, faulty_app},
};
use crate::support::*;

/// Creates an app in which the first firing despawns the clock.
fn app_without_a_future(panics: bool) -> (App, Entity) {
    let mut app = faulty_app(Fault::at(
        Place::GlobalObserver,
        if panics { 0 } else { u64::MAX },
    ));
    let clock = app.world_mut().spawn(Clock::new()).id();
    let child = app.world_mut().spawn(Clock::of(clock)).id();
    app.world_mut()
        .spawn((Tag("root"), Timer::every(ms(10)).on(clock)));
    app.world_mut()
        .spawn((Tag("child"), Timer::every(ms(15)).on(child)));
    app.world_mut().spawn((Tag("game"), Timer::after(ms(5))));
    let end = TimerAction::call(move |world: &mut World, _| {
        world.try_despawn(clock).ok();
        world.flush();
        world.resource::<Fault>().strike(Place::GlobalObserver);
    });
    app.world_mut()
        .spawn((Tag("end"), Timer::after(ms(25)).on(clock), end));
    (app, clock)
}

fn counts(app: &mut App) -> (usize, Vec<CancelReason>) {
    let world = app.world_mut();
    let fired = world.resource_mut::<Messages<TimerFired>>().drain().count();
    let mut cancelled = world.resource_mut::<Messages<TimerCancelled>>();
    (
        fired,
        cancelled
            .drain()
            .map(|cancelled| cancelled.reason())
            .collect(),
    )
}

#[test]
fn a_fast_forward_ends_when_a_handler_despawns_its_root_clock() {
    for panics in [false, true] {
        let (mut app, clock) = app_without_a_future(panics);
        let forward = || app.world_mut().fast_forward(clock, ms(100));
        let ended = catch_unwind(AssertUnwindSafe(forward));
        match panics {
            true => assert!(ended.is_err(), "the panic should reach the caller"),
            false => {
                let stats = ended.expect("nothing panics").expect("the clock was there");
                assert_eq!(stats.fired, 4, "twice, once on the child, and the end");
            }
        }
        let again = app.world_mut().fast_forward(clock, ms(100));
        let gone = ClockError::NoSuchClock(clock.into());
        assert_eq!(again, Err(gone));
        advance_ms(&mut app, 4);
        assert_eq!(counts(&mut app), (4, vec![CancelReason::ClockGone]));
        check_counts(app.world_mut());
        advance_ms(&mut app, 10);
        assert_eq!(counts(&mut app), (1, vec![]), "the game clock should go on");
        advance_ms(&mut app, 100);
        assert_eq!(
            counts(&mut app),
            (0, vec![]),
            "the child clock stands still"
        );
        check_counts(app.world_mut());
    }
}

#[derive(Component)]
struct Level;

#[test]
fn a_condition_of_a_clock_that_panics_loses_no_deadline() {
    for nth in 0..4 {
        let mut app = faulty_app(Fault::at(Place::ClockCondition, nth));
        let is_running = |fault: Res<Fault>, mut frames: Local<u32>| {
            fault.strike(Place::ClockCondition);
            *frames += 1;
            frames.is_multiple_of(2)
        };
        app.add_systems(First, run_clock_if::<Level, _>(is_running));
        let clock = app.world_mut().spawn((Level, Clock::new())).id();
        app.world_mut()
            .spawn(Timer::every(ms(4)).times(9).on(clock));
        let mut deadlines = Vec::new();
        for _ in 0..20 {
            advance_ms(&mut app, 10);
            let mut fired = app.world_mut().resource_mut::<Messages<TimerFired>>();
            let fired = fired.drain().map(|fired| fired.deadline());
            let before = deadlines.len();
            deadlines.extend(fired);
            let now = now(&app, clock);
            let mut new = deadlines[before..].iter();
            assert!(
                new.all(|&deadline| deadline <= now),
                "nothing should be early"
            );
            check_counts(app.world_mut());
        }
        let fault = app.world().resource::<Fault>();
        assert!(fault.is_struck(), "call {nth} should panic");
        assert!(deadlines.into_iter().eq((1..=9).map(|k| ms(4 * k))));
    }
}

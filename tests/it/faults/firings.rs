//! Every call of every handler of timers panics once.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use bevy_app::App;
use bevy_due::{Clocks, prelude::*};
use bevy_ecs::system::SystemState;

use super::{
    fault::{Fault, Place},
    game::{Outcome, add_timers, faulty_app, outcome, play_out},
};
use crate::support::*;

#[test]
fn every_deadline_is_served_once_after_a_panic_in_a_frame() {
    let games = search(advance_ms, &[]);
    assert!(games > 150, "only {games} games");
}

#[test]
fn every_deadline_is_served_once_after_a_panic_in_a_fast_forward() {
    // A condition does not run in a fast-forward.
    let games = search(forward, &[Place::RunCondition]);
    assert!(games > 150, "only {games} games");
}

/// Compares the game without a fault with all games that have one, and returns their number.
fn search(advance: fn(&mut App, u64), skipped: &[Place]) -> u64 {
    let (expected, faultless) = play(Fault::default(), advance);
    let firings = expected.firings.len();
    assert!(firings > 30, "too little happens in {expected:?}");
    let mut games = 0;
    for (place, calls) in faultless.made() {
        for nth in (0..calls).filter(|_| !skipped.contains(&place)) {
            let (outcome, fault) = play(Fault::at(place, nth), advance);
            assert!(fault.is_struck(), "call {nth} of {place:?} should panic");
            let differences = outcome.differences(&expected);
            assert!(
                differences.is_empty(),
                "after a panic in call {nth} of {place:?}: {differences:#?}"
            );
            games += 1;
        }
    }
    games
}

/// Plays the game with a fault, and returns its end and the calls of its handlers.
fn play(fault: Fault, advance: fn(&mut App, u64)) -> (Outcome, Fault) {
    let mut app = faulty_app(fault.clone());
    add_timers(&mut app);
    play_out(&mut app, advance);
    (outcome(&mut app), fault)
}

/// Fast-forwards the game clock, then runs a frame for the other clocks. After a panic, it goes on
/// from where the clock stands.
fn forward(app: &mut App, millis: u64) {
    let target = now(app) + ms(millis);
    loop {
        let left = target - now(app);
        let forward = || app.world_mut().fast_forward(ClockId::Virtual, left);
        let done = catch_unwind(AssertUnwindSafe(forward));
        if let Ok(stats) = done {
            stats.expect("the clock runs");
            break;
        }
    }
    advance_ms(app, 0);
}

fn now(app: &mut App) -> core::time::Duration {
    let mut state = SystemState::<Clocks>::new(app.world_mut());
    let clocks = state.get(app.world()).expect("the plugin is there");
    clocks.now(ClockId::Virtual).expect("a built-in clock")
}

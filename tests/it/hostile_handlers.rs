//! Handlers that panic, nest runs, and replace or remove the timers, owners and clocks that fire.
//!
//! Each of the first modules pins single cases. The game plays random scripts, also with runs inside
//! handlers, and checks after each frame what must hold whatever the handlers do.

mod callbacks;
mod clocks;
mod messages;
mod panics;
mod replacements;
mod reports;

mod timer_game;
mod timer_ledger;
mod timer_ops;
mod timer_script;

use crate::support::ms;
use bevy_app::App;
use bevy_due::{
    ArmedTimers, CancelReason, ClockId, Timer, TimerCancelled, clock::ClockMut, prelude::*,
};
use bevy_ecs::{
    error::{FallbackErrorHandler, ignore},
    message::Messages,
    prelude::*,
    system::SystemState,
};
use bevy_time::{Fixed, Time};
use proptest::{prelude::ProptestConfig, test_runner::FileFailurePersistence};

/// Ignores errors and caught panics, so that the app continues after a panic in a handler.
fn ignore_errors(app: &mut App) {
    app.insert_resource(FallbackErrorHandler(ignore));
}

fn set_fixed_step(app: &mut App, millis: u64) {
    app.world_mut()
        .resource_mut::<Time<Fixed>>()
        .set_timestep(ms(millis));
}

fn spawn_owned(app: &mut App, owner: Entity, timer: Timer) -> Entity {
    app.world_mut().spawn((OwnedBy(owner), timer)).id()
}

/// Changes a clock, which may be a built-in one.
fn change_clock(world: &mut World, clock: impl Into<ClockId>, change: impl FnOnce(&mut ClockMut)) {
    // It may be gone.
    _ = world.change_clock(clock, change);
}

/// The counters of the last run of timers.
#[derive(Debug, PartialEq)]
struct LastRun {
    armed: u64,
    fired: u64,
    missed: u64,
    cancelled: u64,
}

fn last_run(app: &mut App) -> LastRun {
    let mut state = SystemState::<ArmedTimers>::new(app.world_mut());
    let stats = state.get(app.world_mut()).unwrap().last_run();
    LastRun {
        armed: stats.armed,
        fired: stats.fired,
        missed: stats.missed,
        cancelled: stats.cancelled,
    }
}

/// Returns the messages about cancellations that are still in their buffer, in order.
fn cancel_messages(app: &App) -> Vec<(Entity, CancelReason)> {
    let messages = app.world().resource::<Messages<TimerCancelled>>();
    let mut cursor = messages.get_cursor();
    cursor
        .read(messages)
        .map(|cancelled| (cancelled.entity(), cancelled.reason()))
        .collect()
}

/// The settings of the game. A game is long, so there are fewer cases than by default, unless
/// `PROPTEST_CASES` sets their number.
fn game_config() -> ProptestConfig {
    let failures = FileFailurePersistence::Direct("proptest-regressions/hostile_handlers.txt");
    let cases = std::env::var("PROPTEST_CASES").ok();
    ProptestConfig {
        cases: cases.map_or(16, |cases| cases.parse().expect("a number of games")),
        max_shrink_iters: 4096,
        failure_persistence: Some(Box::new(failures)),
        ..ProptestConfig::default()
    }
}

//! Clocks that are replaced, paused or despawned while timers and callbacks run on them.

use super::*;
use crate::support::{advance_ms, app, app_with, burst_limit, cancelled, fired, firings, spawn};
use bevy_due::{ClocksMut, MissedTicks, TimerFired};

#[test]
fn a_timer_inserted_before_its_clock_is_replaced_stays_armed() {
    let mut app = app();
    let clock = app.world_mut().spawn(Clock::new()).id();
    app.world_mut().spawn(Timer::after(ms(10)).on(clock));
    app.world_mut().entity_mut(clock).insert(Clock::new());
    assert_eq!(cancelled(&mut app), [], "nothing should be cancelled");
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app).len(), 1, "the timer should fire");
}

#[test]
fn a_burst_continues_after_a_handler_pauses_its_clock() {
    let mut paused = BurstOnPausedClock::new(MissedTicks::Burst);
    let before = paused.firings_until_resumed();
    let after = firings(&mut paused.app);
    assert_eq!(
        (before, after.len()),
        (3, 3),
        "the rest of the burst should fire when the clock runs again"
    );
    assert!(
        after.iter().all(|fired| fired.missed() == 0),
        "no firing of a burst should be missed"
    );
    let left = paused.firings_until_done();
    assert_eq!(before + after.len() + left, 8, "every firing should happen");
}

#[test]
fn a_timer_that_merges_missed_ticks_fires_every_time_after_its_clock_was_paused() {
    for missed_ticks in [MissedTicks::Skip, MissedTicks::Delay] {
        let mut paused = BurstOnPausedClock::new(missed_ticks);
        let before = paused.firings_until_resumed();
        let left = paused.firings_until_done();
        assert_eq!(
            before + left,
            8,
            "every firing should happen with {missed_ticks:?}"
        );
    }
}

#[test]
fn a_timer_owned_by_its_clock_reports_that_its_owner_is_gone() {
    let mut app = app();
    let clock = app.world_mut().spawn(Clock::new()).id();
    let timer = spawn_owned(&mut app, clock, Timer::after(ms(10)));
    app.world_mut().despawn(clock);
    assert_eq!(
        cancelled(&mut app),
        [(timer, CancelReason::OwnerGone)],
        "the end of the owner should come first"
    );
}

#[test]
fn a_fast_forward_of_either_cadence_despawns_finished_timers() {
    let mut app = app();
    set_fixed_step(&mut app, 10);
    let owner = app.world_mut().spawn_empty().id();
    let clocks = [ClockId::Virtual, ClockId::Fixed];
    let timers = clocks.map(|clock| spawn_owned(&mut app, owner, Timer::after(ms(5)).on(clock)));
    for clock in clocks {
        app.world_mut().fast_forward(clock, ms(20)).unwrap();
    }
    assert_eq!(firings(&mut app).len(), 2, "both timers should fire");
    advance_ms(&mut app, 10);
    for timer in timers {
        assert!(
            app.world().get_entity(timer).is_err(),
            "an owned timer should despawn when it is done"
        );
    }
}

/// A timer with eight firings whose clock is paused at the third one, in the middle of a burst.
struct BurstOnPausedClock {
    app: App,
    clock: Entity,
}

impl BurstOnPausedClock {
    fn new(missed_ticks: MissedTicks) -> Self {
        let mut app = app_with(burst_limit(4));
        let clock = app.world_mut().spawn(Clock::new()).id();
        let timer = Timer::every(ms(10))
            .times(8)
            .with_missed_ticks(missed_ticks)
            .on(clock);
        spawn(&mut app, "timer", timer);
        app.add_observer(move |fired: On<TimerFired>, mut clocks: ClocksMut| {
            if fired.count() == 3 {
                clocks.get_mut(clock).unwrap().pause();
            }
        });
        Self { app, clock }
    }

    /// Runs two frames, the second one with a paused clock, and counts their firings. Then it
    /// resumes the clock and runs an empty frame, whose firings are left in the log.
    fn firings_until_resumed(&mut self) -> usize {
        advance_ms(&mut self.app, 60);
        advance_ms(&mut self.app, 60);
        self.resume();
        let before = firings(&mut self.app).len();
        advance_ms(&mut self.app, 0);
        before
    }

    /// Runs ten frames with a running clock and counts the firings in the log.
    fn firings_until_done(&mut self) -> usize {
        for _ in 0..10 {
            advance_ms(&mut self.app, 10);
            self.resume();
        }
        firings(&mut self.app).len()
    }

    fn resume(&mut self) {
        change_clock(self.app.world_mut(), self.clock, |clock| clock.unpause());
    }
}

//! The timers and clocks of a script, as the crate knows them.

use bevy_due::{
    ClockId, ClocksMut, MissedTicks, Timer, TimerAction, clock::ClockMut, timer::TimerMut,
};
use bevy_ecs::{prelude::*, system::SystemState};

use super::{Shared, handlers::NAME};
use crate::op::{Action, Change, Done, Spec};

pub(super) fn timer(shared: &Shared, spec: Spec) -> Timer {
    let span = |units| shared.rules.span(units);
    let timer = match (spec.interval, spec.span) {
        (0, _) => Timer::after(span(spec.delay)),
        (interval, 0) => Timer::every(span(interval)),
        (interval, extra) => Timer::every_between(span(interval)..=span(interval) + span(extra)),
    };
    let mut timer = timer.first_after(span(spec.delay));
    if spec.jitter > 0 {
        timer = timer.with_jitter(span(spec.jitter));
    }
    if let Some(since) = spec.since {
        timer = timer.since(span(since));
    }
    if spec.slack > 0 {
        timer = timer.slack(span(spec.slack));
    }
    if spec.interval > 0 && spec.times > 0 {
        timer = timer.times(spec.times);
    }
    if spec.missed != MissedTicks::Burst {
        timer = timer.with_missed_ticks(spec.missed);
    }
    if let Some(on) = spec.on {
        timer = timer.on(shared.cast().clock(on));
    }
    match spec.done {
        Done::ByOwner => timer,
        Done::Keeps => timer.keep_when_done(),
        Done::Despawns => timer.despawn_when_done(),
    }
}

pub(super) fn action(action: Action) -> TimerAction {
    match action {
        Action::Nothing => TimerAction::default(),
        Action::DespawnTimer => TimerAction::despawn(),
        Action::DespawnOwner => TimerAction::despawn_owner(),
        Action::Named => TimerAction::named(NAME),
    }
}

/// Returns `false` if there is no clock to move the timer to.
pub(super) fn change(timer: &mut TimerMut, change: Change, shared: &Shared) -> bool {
    let span = |units| shared.rules.span(units);
    match change {
        Change::PauseTimer => timer.pause(),
        Change::ResumeTimer => timer.resume(),
        Change::Restart => timer.restart(),
        Change::Refresh => timer.refresh(),
        Change::SetLeft(left) => timer.set_left(left),
        Change::SetInterval(interval) => timer.set_interval(span(interval)),
        Change::SetRemaining(remaining) => timer.set_remaining(span(remaining)),
        Change::Reschedule(shown) => timer.reschedule(span(shown)),
        Change::DelayBy(by) => timer.delay_by(span(by)),
        Change::HastenBy(by) => {
            let left = timer.remaining();
            timer.hasten_by(span(by));
            assert_eq!(timer.remaining(), left.saturating_sub(span(by)));
        }
        Change::SetClock(clock) => {
            let clock = shared.cast().clock(clock);
            return timer.set_clock(clock).is_ok();
        }
    }
    true
}

/// Changes a clock as a system does, if it exists.
pub(super) fn change_clock(world: &mut World, clock: ClockId, change: impl FnOnce(&mut ClockMut)) {
    let mut state = SystemState::<ClocksMut>::new(world);
    let mut clocks = state.get_mut(world).expect("the app has the plugin");
    if let Ok(mut clock) = clocks.get_mut(clock) {
        change(&mut clock);
    }
    state.apply(world);
}

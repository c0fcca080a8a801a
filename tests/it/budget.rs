//! `TimerBudget`: deferrable timers wait for a later frame, and all others fire on time.

use core::time::Duration;
use std::{collections::BTreeSet, time::Instant};

use crate::support::*;
use bevy_app::{App, prelude::*};
use bevy_due::{
    ArmedTimers, Clock, ClockId, DueWorldExt, MissedTicks, Timer, prelude::*,
    rollback::RollbackWorldExt, timer::TimerBudget,
};
use bevy_ecs::{prelude::*, system::SystemState};
use bevy_time::{Fixed, Time, Virtual};

fn app_with_budget(budget: TimerBudget) -> App {
    let mut app = app();
    app.insert_resource(budget);
    app
}

/// Runs a frame of ten milliseconds, and returns what fired.
fn frame(app: &mut App) -> Vec<&'static str> {
    advance_ms(app, 10);
    fired(app)
}

fn deferred(app: &mut App) -> usize {
    let mut state = SystemState::<ArmedTimers>::new(app.world_mut());
    state.get(app.world()).unwrap().deferred()
}

fn once(priority: i32) -> Timer {
    Timer::after(ms(10)).deferrable(priority)
}

#[test]
fn a_budget_limits_the_firings_of_deferrable_timers_in_a_frame() {
    let mut app = app_with_budget(TimerBudget::Firings(3));
    for _ in 0..7 {
        spawn(&mut app, "x", once(0));
    }
    let frames = [(); 4].map(|()| (frame(&mut app).len(), deferred(&mut app)));
    assert_eq!(frames, [(3, 4), (3, 1), (1, 0), (0, 0)]);
}

#[test]
fn all_other_timers_fire_on_time_and_first() {
    let mut app = app_with_budget(TimerBudget::Firings(1));
    spawn(&mut app, "deferrable", once(-9));
    spawn(&mut app, "deferrable", once(-9));
    for _ in 0..3 {
        spawn(&mut app, "on time", Timer::after(ms(10)));
    }
    spawn(
        &mut app,
        "on another clock",
        Timer::after(ms(10)).on(ClockId::Real),
    );
    let first = frame(&mut app);
    assert_eq!(
        first[..4],
        ["on another clock", "on time", "on time", "on time"]
    );
    assert_eq!(first[4..], ["deferrable"]);
}

#[test]
fn without_a_budget_deferrable_timers_fire_like_all_others() {
    let mut app = app();
    spawn(&mut app, "a", once(5));
    spawn(&mut app, "b", Timer::after(ms(10)));
    spawn(&mut app, "c", once(-5));
    assert_eq!(frame(&mut app), ["a", "b", "c"]);
}

#[test]
fn lower_priorities_fire_first_and_equal_ones_in_the_order_of_deadlines() {
    let mut app = app_with_budget(TimerBudget::Firings(2));
    spawn(&mut app, "late b", Timer::after(ms(9)).deferrable(1));
    spawn(&mut app, "late a", Timer::after(ms(8)).deferrable(1));
    spawn(&mut app, "late c", Timer::after(ms(9)).deferrable(1));
    spawn(&mut app, "early", once(0));
    spawn(&mut app, "first", once(-1));
    let frames = [(); 3].map(|()| frame(&mut app));
    assert_eq!(
        frames,
        [
            vec!["first", "early"],
            vec!["late a", "late b"],
            vec!["late c"]
        ]
    );
}

#[test]
fn priorities_count_across_clocks() {
    let mut app = app_with_budget(TimerBudget::Firings(1));
    let clock = app.world_mut().spawn(Clock::new()).id();
    spawn(&mut app, "virtual", once(1));
    spawn(&mut app, "own", once(0).on(clock));
    spawn(&mut app, "real", once(2).on(ClockId::Real));
    let frames = [(); 3].map(|()| frame(&mut app));
    assert_eq!(frames.concat(), ["own", "virtual", "real"]);
}

#[test]
fn no_timer_starves() {
    let mut app = app_with_budget(TimerBudget::Firings(1));
    // Every frame, a timer of the best priority is due. It uses the whole budget.
    spawn(&mut app, "greedy", Timer::every(ms(10)).deferrable(0));
    spawn(&mut app, "patient", once(3));
    let frames = (0..200).map(|_| frame(&mut app));
    let turn = frames
        .into_iter()
        .position(|fired| fired.contains(&"patient"));
    // Three priorities are worth 48 frames.
    assert!((46..=50).contains(&turn.unwrap()), "in frame {turn:?}");
}

#[test]
fn the_lateness_counts_the_wait() {
    let mut app = app_with_budget(TimerBudget::Firings(1));
    for _ in 0..3 {
        spawn(&mut app, "x", once(0));
    }
    (0..3).for_each(|_| advance_ms(&mut app, 10));
    let lateness: Vec<_> = firings(&mut app).iter().map(|it| it.lateness()).collect();
    assert_eq!(lateness, [ms(0), ms(10), ms(20)]);
}

#[test]
fn at_least_one_timer_fires_in_each_frame() {
    for budget in [TimerBudget::Firings(0), TimerBudget::Time(Duration::ZERO)] {
        let mut app = app_with_budget(budget);
        spawn(&mut app, "x", once(0));
        spawn(&mut app, "x", once(0));
        let frames = [(); 2].map(|()| frame(&mut app).len());
        assert_eq!(frames, [1, 1], "{budget:?}");
    }
}

#[test]
fn a_budget_in_time_ends_with_the_handler_that_exceeds_it() {
    let mut app = app_with_budget(TimerBudget::Time(ms(5)));
    app.add_observer(|_: On<TimerFired>| {
        // Works for two milliseconds: three firings take six.
        let start = Instant::now();
        while start.elapsed() < ms(2) {}
    });
    for _ in 0..6 {
        spawn(&mut app, "x", once(0));
    }
    let first = frame(&mut app).len();
    // A slow machine may take longer for each.
    assert!((1..=3).contains(&first), "{first} firings");
    (0..6).for_each(|_| advance_ms(&mut app, 10));
    let mut timers = app.world_mut().query::<&Timer>();
    assert_eq!(timers.iter(app.world()).count(), 0, "all have fired");
}

#[test]
fn the_messages_are_written_when_the_timers_fire() {
    #[derive(Resource, Default)]
    struct Read(Vec<usize>);
    let mut app = unobserved_app();
    app.insert_resource(TimerBudget::Firings(4))
        .init_resource::<Read>()
        .add_systems(
            Update,
            |mut fired: MessageReader<TimerFired>, mut read: ResMut<Read>| {
                read.0.push(fired.read().count());
            },
        );
    for _ in 0..10 {
        app.world_mut()
            .spawn(Timer::every(1.0).first_after(ms(10)).deferrable(0));
    }
    (0..4).for_each(|_| advance_ms(&mut app, 10));
    assert_eq!(app.world().resource::<Read>().0, [4, 4, 2, 0]);
}

#[test]
fn a_waiting_timer_can_be_cancelled_paused_and_moved() {
    let mut app = app_with_budget(TimerBudget::Firings(1));
    let names = ["fires", "despawned", "removed", "paused", "moved", "waits"];
    let timers = names.map(|name| spawn(&mut app, name, once(0)));
    assert_eq!(frame(&mut app), ["fires"]);
    assert_eq!(deferred(&mut app), 5);
    let world = app.world_mut();
    world.despawn(timers[1]);
    world.entity_mut(timers[2]).remove::<Timer>();
    world.entity_mut(timers[3]).insert(Paused);
    let moved = world.change_timer(timers[4], |it| it.set_remaining(ms(50)));
    moved.unwrap();
    assert_eq!(deferred(&mut app), 1);
    assert_eq!(frame(&mut app), ["waits"]);
    assert!(frame(&mut app).is_empty());
    app.world_mut().entity_mut(timers[3]).remove::<Paused>();
    assert_eq!(frame(&mut app), ["paused"], "it stays overdue");
    let rest: Vec<_> = (0..5).flat_map(|_| frame(&mut app)).collect();
    assert_eq!(rest, ["moved"]);
}

#[test]
fn handlers_may_cancel_and_re_arm_waiting_timers() {
    let mut app = app_with_budget(TimerBudget::Firings(3));
    let [first, second, third] =
        ["first", "second", "third"].map(|it| spawn(&mut app, it, once(0)));
    app.world_mut()
        .entity_mut(first)
        .observe(move |_: On<TimerFired>, mut commands: Commands| {
            commands.entity(second).remove::<Timer>();
            commands.entity(third).insert(once(0));
        });
    assert_eq!(frame(&mut app), ["first"]);
    assert_eq!(frame(&mut app), ["third"]);
}

#[test]
fn a_stopped_clock_fires_no_waiting_timer() {
    let mut app = app_with_budget(TimerBudget::Firings(1));
    let clock = app.world_mut().spawn(Clock::new()).id();
    for _ in 0..2 {
        spawn(&mut app, "own", once(0).on(clock));
    }
    assert_eq!(frame(&mut app), ["own"]);
    app.world_mut().get_mut::<Clock>(clock).unwrap().pause();
    assert!(frame(&mut app).is_empty());
    app.world_mut().get_mut::<Clock>(clock).unwrap().unpause();
    assert_eq!(frame(&mut app), ["own"]);
}

#[test]
fn a_periodic_timer_serves_its_missed_deadlines_from_the_budget() {
    for (policy, expected) in [
        (MissedTicks::Burst, vec![5, 2]),
        (MissedTicks::Skip, vec![1, 1]),
        (MissedTicks::Delay, vec![1, 1]),
    ] {
        let mut app = app_with_budget(TimerBudget::Firings(5));
        let timer = Timer::every(ms(10)).deferrable(0).with_missed_ticks(policy);
        spawn(&mut app, "x", timer);
        advance_ms(&mut app, 60);
        let first = fired(&mut app).len();
        let frames = vec![first, frame(&mut app).len()];
        assert_eq!(frames, expected, "{policy:?}");
    }
}

#[test]
fn the_steps_of_the_fixed_schedule_share_the_budget_of_their_frame() {
    let mut app = app_with_budget(TimerBudget::Firings(3));
    app.insert_resource(Time::<Fixed>::from_duration(ms(5)));
    for _ in 0..6 {
        spawn(
            &mut app,
            "fixed",
            Timer::after(ms(5)).on(ClockId::Fixed).deferrable(0),
        );
    }
    spawn(&mut app, "frame", once(9));
    let frames = [(); 4].map(|()| frame(&mut app).len());
    assert_eq!(frames, [3, 3, 1, 0]);
}

#[test]
fn timers_in_the_frame_do_not_starve_those_on_the_fixed_clock() {
    let mut app = app_with_budget(TimerBudget::Firings(1));
    app.insert_resource(Time::<Fixed>::from_duration(ms(5)));
    spawn(&mut app, "greedy", Timer::every(ms(1)).deferrable(-9));
    let fixed = Timer::after(ms(5)).on(ClockId::Fixed).deferrable(9);
    spawn(&mut app, "fixed", fixed.clone());
    spawn(&mut app, "fixed", fixed);
    assert_eq!(frame(&mut app), ["greedy", "fixed"]);
    assert_eq!(frame(&mut app), ["greedy", "fixed"]);
    assert_eq!(frame(&mut app), ["greedy"]);
}

#[test]
fn a_budget_can_come_and_go() {
    let mut app = app_with_budget(TimerBudget::Firings(1));
    for name in ["a", "b", "c", "d"] {
        spawn(&mut app, name, once(0));
    }
    assert_eq!(frame(&mut app), ["a"]);
    app.insert_resource(TimerBudget::Unlimited);
    assert_eq!(frame(&mut app), ["b", "c", "d"]);
    assert_eq!(deferred(&mut app), 0);
    app.world_mut().remove_resource::<TimerBudget>();
    spawn(&mut app, "e", once(0));
    assert_eq!(frame(&mut app), ["e"]);
}

#[test]
fn fast_forward_ignores_the_budget_and_keeps_the_order() {
    let mut app = app_with_budget(TimerBudget::Firings(1));
    let timer = |delay| Timer::after(ms(delay)).deferrable(0);
    for (name, delay) in [("a", 10), ("b", 10), ("c", 30), ("d", 20)] {
        spawn(&mut app, name, timer(delay));
    }
    assert_eq!(frame(&mut app), ["a"]);
    let stats = app
        .world_mut()
        .fast_forward(ClockId::Virtual, ms(100))
        .unwrap();
    assert_eq!((stats.fired, fired(&mut app)), (3, vec!["b", "d", "c"]));
}

#[test]
fn a_snapshot_keeps_who_waits() {
    let mut app = app_with_budget(TimerBudget::Firings(1));
    for name in ["a", "b", "c", "d"] {
        spawn(&mut app, name, once(0));
    }
    assert_eq!(frame(&mut app), ["a"]);
    let time = *app.world().resource::<Time<Virtual>>();
    let snapshot = app.world_mut().snapshot_timers();
    assert_eq!([frame(&mut app), frame(&mut app)].concat(), ["b", "c"]);
    app.world_mut()
        .restore_timers(&snapshot, &mut Default::default());
    app.insert_resource(time);
    assert_eq!(deferred(&mut app), 3);
    let again: Vec<_> = (0..4).flat_map(|_| frame(&mut app)).collect();
    assert_eq!(again, ["b", "c", "d"]);
}

#[test]
fn a_budget_in_firings_is_deterministic() {
    let run = || {
        let mut app = app_with_budget(TimerBudget::Firings(4));
        for nth in 0..60_u64 {
            let timer = Timer::every(ms(30 + nth % 7 * 10)).deferrable(nth as i32 % 3);
            app.world_mut()
                .spawn((Tag("x"), timer.slack(ms(nth % 4 * 8))));
        }
        (0..100).for_each(|_| advance_ms(&mut app, 10));
        let firings = firings(&mut app).into_iter();
        let firings: Vec<_> = firings.map(|it| (it.entity(), it.deadline())).collect();
        assert!(
            (4 * 96..=4 * 98).contains(&firings.len()),
            "the budget is used up after a few frames: {} firings",
            firings.len()
        );
        let entities: BTreeSet<_> = firings.iter().map(|(entity, _)| *entity).collect();
        assert_eq!(entities.len(), 60, "every timer has had its turn");
        firings
    };
    assert_eq!(run(), run());
}

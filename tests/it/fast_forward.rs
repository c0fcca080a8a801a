//! `fast_forward` and `fast_forward_to_next`: running timers without waiting for them.

use core::{panic::AssertUnwindSafe, time::Duration};
use std::panic::catch_unwind;

use crate::support::*;
use bevy_app::{App, PreUpdate};
use bevy_due::{ClocksMut, Timer, TimerAction, TimerFired, clock::ClockError, prelude::*};
use bevy_ecs::{
    error::{FallbackErrorHandler, ignore},
    prelude::*,
};
use bevy_time::{Time, Virtual};

const HOUR: Duration = Duration::from_secs(3600);

fn forward(app: &mut App, by: Duration) -> u64 {
    let stats = app.world_mut().fast_forward(ClockId::Virtual, by);
    stats.expect("should run").fired
}

#[test]
fn each_deadline_is_served_by_its_own_run() {
    let mut app = app();
    spawn(&mut app, "a", Timer::every(ms(20)));
    spawn(&mut app, "b", Timer::every(ms(30)));
    spawn(&mut app, "late", Timer::after(ms(61)));
    assert_eq!(forward(&mut app, ms(60)), 5);
    let firings = firings(&mut app);
    assert!(
        firings
            .iter()
            .all(|fired| fired.lateness().is_zero() && fired.missed() == 0)
    );
    let deadlines = firings.iter().map(|fired| fired.deadline());
    assert!(deadlines.eq([20, 30, 40, 60, 60].map(ms)));
    let elapsed = app.world().resource::<Time<Virtual>>().elapsed();
    assert_eq!(elapsed, ms(0), "should not move Bevy's time");
    advance_ms(&mut app, 1);
    assert_eq!(
        fired_at(&mut app),
        [("late", 61)],
        "normal frames should continue from there"
    );
}

#[test]
fn timers_armed_by_handlers_fire_during_the_fast_forward() {
    let mut app = app();
    spawn(&mut app, "x", Timer::after(ms(10)));
    app.add_observer(|fired: On<TimerFired>, mut commands: Commands| {
        let twice = Timer::after(fired.deadline());
        commands.entity(fired.entity()).insert(twice);
    });
    forward(&mut app, ms(100));
    assert_eq!(
        fired_at(&mut app),
        [("x", 10), ("x", 20), ("x", 40), ("x", 80)]
    );
}

#[test]
fn child_clocks_advance_with_their_parent_in_order() {
    let mut app = app();
    let world = app.world_mut();
    let fast = world.spawn(Clock::new().with_speed(3.0)).id();
    let slow = world.spawn(Clock::of(fast).with_speed(0.125)).id();
    let other = world.spawn(Clock::of(ClockId::Real)).id();
    let paused = world.spawn(Clock::new().paused()).id();
    for (tag, every, clock) in [
        ("fast", 30, fast),
        ("slow", 15, slow),
        ("other", 1, other),
        ("paused", 1, paused),
    ] {
        spawn(&mut app, tag, Timer::every(ms(every)).on(clock));
    }
    spawn(&mut app, "game", Timer::every(ms(25)));
    forward(&mut app, ms(40));
    assert_eq!(
        fired_at(&mut app),
        [
            ("fast", 30),
            ("fast", 60),
            ("game", 25),
            ("fast", 90),
            ("fast", 120),
            ("slow", 15)
        ]
    );
    let now = |clock| now(&app, clock);
    assert_eq!(
        [fast, slow, other, paused].map(now),
        [120, 15, 0, 0].map(ms)
    );
}

#[test]
fn a_child_clock_can_be_fast_forwarded_alone() {
    let mut app = app();
    let slow = app.world_mut().spawn(Clock::new().with_speed(0.5)).id();
    spawn(&mut app, "slow", Timer::after(HOUR).on(slow));
    spawn(&mut app, "game", Timer::after(ms(10)));
    app.world_mut().fast_forward(slow, HOUR).unwrap();
    assert_eq!(
        fired(&mut app),
        ["slow"],
        "should take an hour on the slow clock, and fire nothing else"
    );
}

#[test]
fn a_child_clock_can_be_fast_forwarded_while_its_parent_is_paused() {
    let mut app = app();
    let world = app.world_mut();
    let parent = world.spawn(Clock::new().paused()).id();
    let child = world.spawn(Clock::of(parent)).id();
    let grandchild = world.spawn(Clock::of(child)).id();
    spawn(&mut app, "child", Timer::every(ms(20)).on(child));
    spawn(&mut app, "grandchild", Timer::every(ms(30)).on(grandchild));
    app.world_mut().fast_forward(child, ms(60)).unwrap();
    assert_eq!(
        fired(&mut app),
        ["child", "grandchild", "child", "child", "grandchild"]
    );
    assert_eq!(
        app.world_mut().fast_forward_to_next(child),
        Ok(Some(ms(20)))
    );
    assert_eq!(fired(&mut app), ["child"]);
    advance_ms(&mut app, 100);
    assert!(fired(&mut app).is_empty(), "the parent is still paused");
}

#[test]
fn a_handler_that_rearms_with_zero_delay_cannot_loop_forever() {
    let mut app = app();
    spawn(&mut app, "x", Timer::after(ms(0)));
    app.add_observer(|fired: On<TimerFired>, mut commands: Commands| {
        commands.entity(fired.entity()).insert(Timer::after(ms(0)));
    });
    assert_eq!(
        forward(&mut app, Duration::from_secs(1)),
        65,
        "should fire at the start and then 64 times a second"
    );
}

#[test]
fn an_error_in_a_handler_does_not_stop_the_fast_forward() {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(ignore));
    app.add_observer(|_: On<TimerFired>| -> Result { Err("no luck".into()) });
    let failing = TimerAction::named("unheard of");
    let failing = (Tag("x"), Timer::every(ms(10)), failing);
    app.world_mut().spawn(failing);
    assert_eq!(forward(&mut app, ms(50)), 5);
}

#[test]
fn paused_timers_do_not_fire() {
    let mut app = app();
    let x = spawn(&mut app, "x", Timer::after(ms(10)));
    app.world_mut().entity_mut(x).insert(Paused);
    assert_eq!(forward(&mut app, HOUR), 0);
    app.world_mut().entity_mut(x).remove::<Paused>();
    assert_eq!(forward(&mut app, ms(10)), 1);
}

#[test]
fn a_stopped_clock_can_be_fast_forwarded_alone() {
    for stopped in [Clock::new().paused(), Clock::new().with_speed(0.0)] {
        let mut app = app();
        let clock = app.world_mut().spawn(stopped).id();
        let below = app.world_mut().spawn(Clock::of(clock)).id();
        spawn(&mut app, "x", Timer::every(ms(10)).on(clock));
        spawn(&mut app, "below", Timer::after(ms(15)).on(below));
        let stats = app.world_mut().fast_forward(clock, ms(25));
        assert_eq!(stats.map(|stats| stats.fired), Ok(3));
        assert_eq!(fired_at(&mut app), [("x", 10), ("below", 15), ("x", 20)]);
        assert_eq!(app.world_mut().fast_forward_to_next(clock), Ok(Some(ms(5))));
        assert_eq!(fired_at(&mut app), [("x", 30)]);
        advance_ms(&mut app, 100);
        assert_eq!(fired(&mut app), [""; 0], "it is still stopped");
        assert_eq!(now(&app, clock), ms(30));
    }
}

#[test]
fn fast_forwarding_a_missing_clock_is_an_error() {
    let mut app = app();
    let clock = app.world_mut().spawn(Clock::new()).id();
    app.world_mut().despawn(clock);
    let unknown = ClockError::NoSuchClock(clock.into());
    let error = app.world_mut().fast_forward(clock, HOUR);
    assert_eq!(error, Err(unknown.clone()));
    let error = app.world_mut().fast_forward_to_next(clock);
    assert_eq!(error, Err(unknown));
}

#[test]
fn fast_forwarding_from_a_handler_is_an_error_and_the_run_continues() {
    let mut app = app();
    let nested = TimerAction::call(|world: &mut World, _| {
        let result = world.fast_forward(ClockId::Virtual, HOUR);
        assert_eq!(result, Err(ClockError::Running));
    });
    let timer = (Tag("x"), Timer::every(ms(10)), nested);
    app.world_mut().spawn(timer);
    advance_ms(&mut app, 20);
    assert_eq!(forward(&mut app, ms(20)), 2);
    assert_eq!(fired(&mut app).len(), 4);
}

#[test]
fn a_handler_that_pauses_the_clock_ends_the_fast_forward() {
    let mut app = app();
    let clock = app.world_mut().spawn(Clock::new()).id();
    spawn(&mut app, "x", Timer::every(ms(10)).on(clock));
    app.add_observer(move |fired: On<TimerFired>, mut clocks: ClocksMut| {
        if fired.count() == 2 {
            clocks.get_mut(clock).unwrap().pause();
        }
    });
    app.world_mut().fast_forward(clock, ms(100)).unwrap();
    assert_eq!(fired_at(&mut app), [("x", 10), ("x", 20)]);
    let now = now(&app, clock);
    assert_eq!(now, ms(20), "no time passes on a paused clock");
}

#[test]
fn a_handler_that_despawns_the_parent_of_the_clock_does_not_end_the_fast_forward() {
    let mut app = app();
    let parent = app.world_mut().spawn(Clock::new()).id();
    let child = app.world_mut().spawn(Clock::of(parent)).id();
    for tag in ["a", "b"] {
        spawn(&mut app, tag, Timer::after(ms(10)).on(child));
    }
    app.add_observer(move |_: On<TimerFired>, mut commands: Commands| {
        commands.entity(parent).try_despawn();
    });
    let stats = app.world_mut().fast_forward(child, ms(100));
    assert_eq!(stats.map(|stats| stats.fired), Ok(2));
    assert_eq!(fired(&mut app), ["a", "b"]);
}

#[test]
fn fast_forward_to_next_moves_from_deadline_to_deadline() {
    let mut app = app();
    let slow = app.world_mut().spawn(Clock::new().with_speed(0.5)).id();
    spawn(&mut app, "slow", Timer::after(ms(20)).on(slow));
    spawn(&mut app, "game", Timer::after(ms(15)));
    spawn(&mut app, "now", Timer::after(ms(0)));
    let mut next = || {
        app.world_mut()
            .fast_forward_to_next(ClockId::Virtual)
            .unwrap()
    };
    let steps = [next(), next(), next(), next()];
    assert_eq!(steps, [Some(ms(0)), Some(ms(15)), Some(ms(25)), None]);
    assert_eq!(fired(&mut app), ["now", "game", "slow"]);
}

#[test]
fn the_limit_on_zero_delay_runs_ignores_the_speed_of_the_clock() {
    let mut app = app();
    let fast = app.world_mut().spawn(Clock::new().with_speed(1e6)).id();
    spawn(&mut app, "x", Timer::after(ms(0)).on(fast));
    app.add_observer(move |fired: On<TimerFired>, mut commands: Commands| {
        let again = Timer::after(ms(0)).on(fast);
        commands.entity(fired.entity()).insert(again);
    });
    let count = forward(&mut app, ms(1000));
    assert!(
        (60..70).contains(&count),
        "should fire about 64 times a second, got {count}"
    );
}

#[test]
fn a_handler_can_not_fast_forward_after_it_has_run_pre_update() {
    #[derive(Resource, Default)]
    struct Refused(Option<ClockError>);

    let mut app = app();
    app.init_resource::<Refused>();
    app.world_mut().spawn(Timer::after(ms(10))).observe(
        |_: On<TimerFired>, mut commands: Commands| {
            commands.run_schedule(PreUpdate);
            commands.queue(|world: &mut World| {
                let inner = world.fast_forward(ClockId::Real, ms(1));
                world.resource_mut::<Refused>().0 = inner.err();
            });
        },
    );
    forward(&mut app, ms(15));
    let refused = &app.world().resource::<Refused>().0;
    assert_eq!(*refused, Some(ClockError::Running));
}

#[test]
fn a_fast_forward_counts_the_timers_that_it_arms_on_all_clocks() {
    let mut app = app();
    let other = app.world_mut().spawn(Clock::new()).id();
    spawn(&mut app, "x", Timer::after(ms(10)));
    spawn(&mut app, "y", Timer::after(ms(3)).on(other));
    let stats = app.world_mut().fast_forward(other, ms(5));
    let stats = stats.expect("should run");
    assert_eq!((stats.armed, stats.fired), (2, 1));
    advance_ms(&mut app, 10);
    let stats = app.world_mut().with_timers(|timers| timers.last_run());
    assert_eq!((stats.armed, stats.fired), (0, 1), "each is counted once");
}

#[test]
fn the_errors_say_why_a_clock_can_not_be_fast_forwarded() {
    let text = ClockError::Running.to_string();
    assert!(
        text.starts_with("can't fast-forward from a timer handler"),
        "{text}"
    );
    let text = ClockError::NoSuchClock(Entity::PLACEHOLDER.into()).to_string();
    assert!(text.contains("insert a `Clock` there first"), "{text}");
}

#[test]
fn a_handler_that_pauses_the_game_ends_a_fast_forward_of_its_clock() {
    let mut app = app();
    for nth in 1..=3 {
        spawn(&mut app, "x", Timer::after(ms(10 * nth)));
        spawn(&mut app, "x", Timer::after(ms(10 * nth)));
    }
    app.add_observer(|_: On<TimerFired>, mut time: ResMut<Time<Virtual>>| time.pause());
    assert_eq!(forward(&mut app, ms(100)), 1);
    assert_eq!(forward(&mut app, ms(100)), 5, "it was paused at the start");
}

#[test]
fn a_panic_in_a_fast_forward_leaves_the_clock_alive() {
    let mut app = app();
    let own = spawn_clock(&mut app, Clock::new());
    let timer = spawn(&mut app, "x", Timer::every(ms(10)).on(own));
    app.world_mut()
        .entity_mut(timer)
        .observe(|fired: On<TimerFired>| assert!(fired.count() != 2, "the second one"));
    let forward = || app.world_mut().fast_forward(own, ms(25));
    catch_unwind(AssertUnwindSafe(forward)).expect_err("the observer panics");
    fired(&mut app);
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 10);
    assert_eq!(fired_at(&mut app), [("x", 30), ("x", 40)]);
}

//! `change_timer`, `change_own_timer` and `refresh_timer`: changing armed timers.

use crate::support::*;
use bevy_app::App;
use bevy_due::{
    Clock, Timer, TimerKey,
    clock::ClockError,
    prelude::*,
    timer::{NoSuchTimer, TimerMut},
};
use bevy_ecs::prelude::*;

#[derive(Component)]
struct Poison(u32);

impl TimerKey for Poison {
    const NAME: &'static str = "poison";
}

fn change(app: &mut App, timer: Entity, change: impl FnOnce(&mut TimerMut)) {
    app.world_mut()
        .change_timer(timer, change)
        .expect("it is armed");
}

#[test]
fn a_new_interval_counts_from_the_next_deadline() {
    let mut app = app();
    let x = spawn(&mut app, "x", Timer::every(ms(10)));
    advance_ms(&mut app, 15);
    change(&mut app, x, |x| x.set_interval(ms(7)));
    assert_eq!(status(&mut app, x).interval, Some(ms(7)));
    advance_ms(&mut app, 20);
    assert_eq!(
        fired_at(&mut app),
        [("x", 10), ("x", 20), ("x", 27), ("x", 34)]
    );
}

#[test]
fn a_refresh_keeps_the_deadline_and_the_place_among_equal_ones() {
    let mut app = app();
    let first = spawn(&mut app, "first", Timer::every(ms(10)).times(2));
    spawn(&mut app, "second", Timer::every(ms(10)));
    advance_ms(&mut app, 15);
    change(&mut app, first, |first| first.refresh());
    assert_eq!(status(&mut app, first).left, Some(2));
    assert_eq!(status(&mut app, first).total_remaining(), Some(ms(15)));
    fired(&mut app);
    for _ in 0..3 {
        advance_ms(&mut app, 10);
    }
    let expected = ["first", "second", "first", "second", "second"];
    assert_eq!(fired(&mut app), expected, "its last is the third in all");
}

#[test]
fn refresh_timer_sets_the_timer_first_and_renews_it_then() {
    let mut app = app();
    let hero = app.world_mut().spawn_empty().id();
    let poison = || (Timer::every(ms(10)).times(3), Tag("poison"));
    for _ in 0..4 {
        let mut hero = app.world_mut().entity_mut(hero);
        hero.refresh_timer(Poison(1), poison());
        advance_ms(&mut app, 8);
    }
    // The last refresh was at 24 ms.
    advance_ms(&mut app, 68);
    let at = [10, 20, 30, 40, 50].map(|at| ("poison", at));
    assert_eq!(fired_at(&mut app), at);
    assert_eq!(cancelled(&mut app), [], "a renewal cancels nothing");
    // It has ended, so it is set again.
    app.world_mut()
        .entity_mut(hero)
        .refresh_timer(Poison(2), poison());
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["poison"]);
}

#[test]
fn a_refreshed_one_shot_timer_waits_for_its_whole_delay_again() {
    let mut app = app();
    let x = spawn(&mut app, "x", Timer::after(ms(20)));
    let hero = app.world_mut().spawn_empty().id();
    let buff = || (Timer::after(ms(20)), Tag("buff"));
    for _ in 0..2 {
        let mut hero = app.world_mut().entity_mut(hero);
        hero.refresh_timer("buff", buff());
        advance_ms(&mut app, 6);
    }
    advance_ms(&mut app, 2);
    change(&mut app, x, |x| x.refresh());
    advance_ms(&mut app, 40);
    assert_eq!(fired_at(&mut app), [("buff", 26), ("x", 34)]);
    assert_eq!(cancelled(&mut app), [], "a renewal cancels nothing");
}

#[test]
fn a_new_remaining_time_takes_a_new_place_among_equal_deadlines() {
    let mut app = app();
    let first = spawn(&mut app, "first", Timer::after(ms(10)));
    spawn(&mut app, "second", Timer::after(ms(10)));
    advance_ms(&mut app, 4);
    change(&mut app, first, |first| first.set_remaining(ms(6)));
    let status = status(&mut app, first);
    assert_eq!((status.remaining, status.wait), (ms(6), ms(6)));
    advance_ms(&mut app, 6);
    assert_eq!(fired(&mut app), ["second", "first"]);
}

#[test]
fn a_restart_begins_with_the_first_delay_and_the_first_count() {
    let mut app = app();
    let timer = Timer::every(ms(10)).first_after(ms(5)).times(2);
    let x = spawn(&mut app, "x", timer);
    advance_ms(&mut app, 7);
    change(&mut app, x, |x| {
        x.set_interval(ms(1));
        x.restart();
    });
    assert_eq!(status(&mut app, x).count, 0);
    advance_ms(&mut app, 30);
    let firings = firings(&mut app);
    let counts: Vec<_> = firings.iter().map(|fired| fired.count()).collect();
    let at: Vec<_> = firings.iter().map(|fired| fired.deadline()).collect();
    assert_eq!(counts, [1, 1, 2]);
    assert_eq!(at, [ms(5), ms(12), ms(22)]);
}

#[test]
fn the_number_of_firings_left_can_be_set() {
    let mut app = app();
    let x = spawn(&mut app, "x", Timer::every(ms(10)));
    advance_ms(&mut app, 10);
    change(&mut app, x, |x| x.set_left(2));
    advance_ms(&mut app, 100);
    assert_eq!(fired(&mut app).len(), 3);
    assert!(app.world().get::<Timer>(x).is_none());
}

#[test]
#[should_panic(expected = "cancel the timer instead")]
fn no_firings_left_is_a_panic() {
    let mut app = app();
    let x = spawn(&mut app, "x", Timer::every(ms(10)));
    change(&mut app, x, |x| x.set_left(0));
}

#[test]
fn a_timer_moves_to_another_clock_with_its_remaining_time() {
    let mut app = app();
    let slow = Clock::new().with_speed(0.5).with_now(ms(500));
    let slow = app.world_mut().spawn(slow).id();
    let x = spawn(&mut app, "x", Timer::every(ms(10)));
    advance_ms(&mut app, 14);
    change(&mut app, x, |x| x.set_clock(slow).expect("it exists"));
    let moved = status(&mut app, x);
    assert_eq!((moved.clock, moved.count), (slow.into(), 1));
    assert_eq!((moved.remaining, moved.elapsed), (ms(6), ms(4)));
    fired(&mut app);
    advance_ms(&mut app, 11);
    assert_eq!(fired(&mut app), [""; 0]);
    advance_ms(&mut app, 1);
    assert_eq!(fired(&mut app), ["x"], "six milliseconds take twelve");

    let nowhere = ClockId::Own(x);
    change(&mut app, x, |x| {
        assert_eq!(x.set_clock(nowhere), Err(ClockError::NoSuchClock(nowhere)));
    });
    advance_ms(&mut app, 20);
    assert_eq!(fired(&mut app), ["x"], "it stays on its clock");
}

#[test]
fn a_keyed_timer_is_paused_resumed_and_queried_by_key() {
    let mut app = app();
    let hero = spawn(&mut app, "own", Timer::every(ms(10)));
    let mut entity = app.world_mut().entity_mut(hero);
    entity.set_timer(Poison(3), (Timer::every(ms(10)), Tag("poison")));
    app.world_mut()
        .change_keyed_timer(hero, Poison(0), |poison| poison.pause())
        .unwrap();
    let mut marked = app.world_mut().query::<&Poison>();
    let poison = marked.single(app.world()).unwrap();
    assert_eq!(poison.0, 3, "the key is a component of the timer");
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["own"]);
    let keyed = |app: &mut App| {
        let keyed = app
            .world_mut()
            .with_timers(|timers| timers.keyed(hero, Poison(0)));
        keyed.expect("it is paused")
    };
    assert!(keyed(&mut app).paused);
    app.world_mut()
        .change_keyed_timer(hero, "poison", |poison| poison.resume())
        .unwrap();
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["own", "poison"]);
}

#[test]
fn a_change_without_a_timer_is_an_error_that_names_it() {
    let mut app = app();
    let hero = app.world_mut().spawn_empty().id();
    let error = app
        .world_mut()
        .change_timer(hero, |_| panic!())
        .unwrap_err();
    assert_eq!(
        error,
        NoSuchTimer {
            entity: hero,
            key: None,
            clock: None
        }
    );
    let error = app
        .world_mut()
        .change_keyed_timer(hero, Poison(0), |_| panic!())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("entity {hero} has no armed timer \"poison\"")
    );
}

#[test]
fn a_change_of_a_timer_without_a_clock_is_an_error_that_names_the_clock() {
    let mut app = app();
    let gone = app.world_mut().spawn_empty().id();
    let timer = Timer::after(ms(10)).on(gone);
    let hero = app.world_mut().spawn_empty().id();
    let mut entity = app.world_mut().entity_mut(hero);
    entity.set_timer("poison", timer.clone());
    let timer = app.world_mut().spawn(timer).id();
    let world = app.world_mut();
    let by_entity = world.change_timer(timer, |_| panic!()).unwrap_err();
    let by_key = world.change_keyed_timer(hero, "poison", |_| panic!());
    let clock = ClockError::NoSuchClock(gone.into());
    let timers = [
        (by_entity, format!("the timer on entity {timer}")),
        (
            by_key.unwrap_err(),
            format!("the timer \"poison\" of entity {hero}"),
        ),
    ];
    for (error, timer) in timers {
        assert_eq!(error.to_string(), format!("can't change {timer}: {clock}"));
    }
    world.entity_mut(gone).insert(Clock::new());
    assert_eq!(
        world.change_timer(timer, |timer| timer.delay_by(ms(5))),
        Ok(())
    );
}

#[test]
fn a_pending_timer_can_be_changed_and_keeps_its_place() {
    let mut app = app();
    let a = spawn(&mut app, "a", Timer::every(ms(10)));
    spawn(&mut app, "b", Timer::every(ms(10)));
    change(&mut app, a, |a| a.set_interval(ms(5)));
    advance_ms(&mut app, 15);
    assert_eq!(fired(&mut app), ["a", "b", "a"]);
}

//! Promise 5: handlers may arm, re-arm, cancel and despawn timers and owners, their own included.

use crate::support::*;
use bevy_due::{CancelReason, Clock, OwnedBy, Timer, TimerAction, TimerFired};
use bevy_ecs::{
    error::{FallbackErrorHandler, ignore},
    message::Messages,
    prelude::*,
};

#[test]
fn a_timer_inserted_during_the_last_firing_stays() {
    let mut app = app();
    let entity = spawn(&mut app, "x", Timer::after(ms(10)));
    app.add_observer(|fired: On<TimerFired>, mut commands: Commands| {
        assert!(fired.is_last());
        if fired.deadline() < ms(30) {
            commands.entity(fired.entity()).insert(Timer::after(ms(10)));
        }
    });
    for _ in 0..5 {
        advance_ms(&mut app, 10);
    }
    assert_eq!(fired_at(&mut app), [("x", 10), ("x", 20), ("x", 30)]);
    assert!(!app.world().entity(entity).contains::<Timer>());
    assert!(cancelled(&mut app).is_empty(), "nothing was cancelled");
}

#[test]
fn a_handler_may_despawn_its_own_timer() {
    let mut app = app();
    let entity = spawn(&mut app, "x", Timer::every(ms(10)));
    app.add_observer(|fired: On<TimerFired>, mut commands: Commands| {
        commands.entity(fired.entity()).despawn();
    });
    advance_ms(&mut app, 100);
    assert_eq!(fired(&mut app).len(), 1);
    assert_eq!(cancelled(&mut app), [(entity, CancelReason::Despawned)]);
}

#[test]
fn a_handler_may_despawn_the_owner() {
    let mut app = app();
    let owner = app.world_mut().spawn_empty().id();
    let timers = ["a", "b"].map(|tag| {
        let timer = Timer::every(ms(10));
        app.world_mut()
            .spawn((Tag(tag), OwnedBy(owner), timer))
            .id()
    });
    app.add_observer(|fired: On<TimerFired>, mut commands: Commands| {
        commands.entity(fired.owner()).despawn();
    });
    advance_ms(&mut app, 100);
    assert_eq!(fired(&mut app), ["a"]);
    let gone = timers.map(|timer| (timer, CancelReason::OwnerGone));
    assert_eq!(cancelled(&mut app), gone);
}

#[test]
fn a_handler_may_rearm_another_timer() {
    let mut app = app();
    spawn(&mut app, "a", Timer::after(ms(10)));
    let b = spawn(&mut app, "b", Timer::after(ms(20)));
    app.add_observer(
        move |fired: On<TimerFired>, tags: Query<&Tag>, mut commands: Commands| {
            if tags.get(fired.entity()).unwrap().0 == "a" {
                commands.entity(b).insert(Timer::after(ms(20)));
            }
        },
    );
    advance_ms(&mut app, 30);
    assert_eq!(fired_at(&mut app), [("a", 10)], "`b` was postponed");
    advance_ms(&mut app, 20);
    assert_eq!(fired_at(&mut app), [("b", 50)]);
}

#[test]
fn a_handler_may_change_the_interval_of_its_own_timer() {
    let mut app = app();
    let entity = spawn(&mut app, "x", Timer::every(ms(10)));
    app.add_observer(|fired: On<TimerFired>, mut commands: Commands| {
        if fired.deadline() == ms(20) {
            commands.entity(fired.entity()).insert(Timer::every(ms(30)));
        }
    });
    advance_ms(&mut app, 20);
    advance_ms(&mut app, 60);
    assert_eq!(
        fired_at(&mut app),
        [("x", 10), ("x", 20), ("x", 50), ("x", 80)]
    );
    assert_eq!(cancelled(&mut app), [(entity, CancelReason::Replaced)]);
}

#[test]
fn removing_a_timer_during_its_last_firing_is_not_a_cancellation() {
    let mut app = app();
    spawn(&mut app, "x", Timer::after(ms(10)));
    app.add_observer(|fired: On<TimerFired>, mut commands: Commands| {
        commands.entity(fired.entity()).remove::<Timer>();
    });
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["x"]);
    assert!(cancelled(&mut app).is_empty());
}

#[test]
fn a_new_timer_in_a_reused_slot_is_not_mistaken_for_the_finished_one() {
    let mut app = app();
    let entity = spawn(&mut app, "old", Timer::after(ms(10)));
    app.add_observer(move |fired: On<TimerFired>, mut commands: Commands| {
        if fired.entity() == entity {
            commands.entity(entity).despawn();
            commands.spawn((Tag("new"), Timer::after(ms(10))));
        }
    });
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 10);
    assert_eq!(fired_at(&mut app), [("old", 10), ("new", 20)]);
}

#[test]
fn an_error_in_a_handler_stops_no_timer() {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(ignore));
    app.add_observer(|_: On<TimerFired>| -> Result { Err("no luck".into()) });
    spawn(&mut app, "a", Timer::every(ms(10)));
    spawn(&mut app, "b", Timer::every(ms(10)));
    advance_ms(&mut app, 20);
    assert_eq!(fired(&mut app), ["a", "b", "a", "b"]);
}

#[test]
fn an_observer_of_the_final_removal_may_despawn_entities() {
    let mut app = app();
    let owner = app.world_mut().spawn_empty().id();
    app.add_observer(move |removed: On<Remove<Timer>>, mut commands: Commands| {
        commands.entity(removed.entity).try_despawn();
        commands.entity(owner).try_despawn();
    });
    spawn(&mut app, "a", Timer::after(ms(10)));
    app.world_mut()
        .spawn((Tag("b"), OwnedBy(owner), Timer::after(ms(20))));
    app.world_mut()
        .spawn((Tag("c"), OwnedBy(owner), Timer::after(ms(30))));
    spawn(&mut app, "d", Timer::after(ms(40)));
    advance_ms(&mut app, 100);
    assert_eq!(
        fired(&mut app),
        ["a", "d"],
        "`b` and `c` died with their owner"
    );
    advance_ms(&mut app, 0);
}

#[test]
fn the_last_firing_removes_the_timer() {
    let mut app = app();
    let entity = spawn(&mut app, "x", Timer::every(ms(10)).times(2));
    advance_ms(&mut app, 10);
    assert!(app.world().entity(entity).contains::<Timer>());
    advance_ms(&mut app, 10);
    assert!(!app.world().entity(entity).contains::<Timer>());
    advance_ms(&mut app, 10);
    assert!(
        app.world().get_entity(entity).is_ok(),
        "the entity itself should stay"
    );
}

#[test]
fn without_observers_finished_timers_are_removed_as_well() {
    let mut app = unobserved_app();
    let timers = [10, 10, 20].map(|at| app.world_mut().spawn(Timer::after(ms(at))).id());
    let owner = app.world_mut().spawn_empty().id();
    let owned = app
        .world_mut()
        .spawn((OwnedBy(owner), Timer::after(ms(15))))
        .id();
    advance_ms(&mut app, 30);
    let messages = app.world().resource::<Messages<TimerFired>>();
    let fired = messages
        .get_cursor()
        .read(messages)
        .map(|m| m.entity())
        .collect::<Vec<_>>();
    assert_eq!(fired, [timers[0], timers[1], owned, timers[2]]);
    for timer in timers {
        assert!(!app.world().entity(timer).contains::<Timer>());
    }
    advance_ms(&mut app, 0);
    assert!(app.world().get_entity(owned).is_err());
}

/// Bevy passes a panic in a system to the error handler, which may let the app continue.
#[test]
fn a_panicking_handler_loses_no_firing() {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(ignore));
    let periodic = spawn(&mut app, "periodic", Timer::every(ms(10)));
    let once = spawn(&mut app, "once", Timer::after(ms(10)));
    app.add_observer(|fired: On<TimerFired>| {
        assert!(
            fired.deadline() > ms(10),
            "handlers of the first deadline panic on purpose"
        );
    });
    let mut cursor = app.world().resource::<Messages<TimerFired>>().get_cursor();
    let mut written = Vec::new();
    for _ in 0..4 {
        advance_ms(&mut app, 10);
        let messages = app.world().resource::<Messages<TimerFired>>();
        let fired = cursor.read(messages);
        written.extend(fired.map(|fired| (fired.entity(), fired.deadline().as_millis())));
    }
    let late = (once, 10);
    assert!(written.contains(&late), "{written:?}");
    written.retain(|fired| *fired != late);
    assert_eq!(written, [10, 20, 30, 40].map(|at| (periodic, at)));
    assert!(
        !app.world().entity(once).contains::<Timer>(),
        "it has fired for the last time"
    );
}

#[test]
fn an_observer_that_an_action_adds_sees_the_later_firings_of_the_run() {
    #[derive(Resource, Default)]
    struct Seen(Vec<Entity>);

    let mut app = unobserved_app();
    app.init_resource::<Seen>();
    let clock = spawn_clock(&mut app, Clock::new());
    let observe = TimerAction::call(|world: &mut World, _| {
        world.add_observer(|fired: On<TimerFired>, mut seen: ResMut<Seen>| {
            seen.0.push(fired.entity());
        });
    });
    app.world_mut().spawn((Timer::after(ms(10)), observe));
    let later = [
        Timer::after(ms(10)),
        Timer::after(ms(20)),
        Timer::after(ms(10)).on(clock),
        Timer::after(ms(20)).on(clock),
    ];
    let later = later.map(|timer| app.world_mut().spawn(timer).id());
    advance_ms(&mut app, 0);
    advance_ms(&mut app, 30);
    assert_eq!(app.world().resource::<Seen>().0, later);
    let fired = app.world_mut().resource_mut::<Messages<TimerFired>>();
    assert_eq!(fired.len(), 5);
}

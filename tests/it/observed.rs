//! What observers do to the timer that fires, and which observers are called.

use crate::support::*;
use bevy_app::{App, Update};
use bevy_due::{
    Clocks, ClocksMut, OnClock, OwnedTimerFired, Timer, TimerFired, prelude::*,
    rollback::RollbackWorldExt,
};
use bevy_ecs::{entity::EntityHashMap, message::Messages, prelude::*};

#[derive(Resource, Default)]
struct Heard(Vec<String>);

fn hear(world: &mut World, what: impl Into<String>) {
    world.resource_mut::<Heard>().0.push(what.into());
}

/// Takes what was heard, in order.
fn heard(app: &mut App) -> Vec<String> {
    core::mem::take(&mut app.world_mut().resource_mut::<Heard>().0)
}

/// Returns an app in which nothing is observed.
fn hearing_app() -> App {
    let mut app = unobserved_app();
    app.init_resource::<Heard>();
    app
}

fn say(what: &'static str) -> TimerAction {
    TimerAction::call(move |world, _| hear(world, what))
}

fn observe(app: &mut App, entity: Entity, what: &'static str) {
    let observer = move |_: On<TimerFired>, mut heard: ResMut<Heard>| heard.0.push(what.into());
    app.world_mut().entity_mut(entity).observe(observer);
}

#[test]
fn an_action_that_an_observer_replaces_runs_from_the_next_firing_on() {
    let mut app = hearing_app();
    app.world_mut()
        .spawn((Timer::every(ms(10)), say("first")))
        .observe(|fired: On<TimerFired>, mut commands: Commands| {
            if fired.count() == 2 {
                commands.entity(fired.entity()).insert(say("second"));
            }
        });
    advance_ms(&mut app, 30);
    assert_eq!(heard(&mut app), ["first", "first", "second"]);
}

#[test]
fn an_action_that_an_observer_adds_runs_from_the_next_firing_on() {
    let mut app = hearing_app();
    app.world_mut().spawn(Timer::every(ms(10))).observe(
        |fired: On<TimerFired>, mut commands: Commands| {
            commands.entity(fired.entity()).insert(say("added"));
        },
    );
    advance_ms(&mut app, 20);
    assert_eq!(heard(&mut app), ["added"]);
}

#[test]
fn an_observer_that_removes_the_action_or_the_timer_skips_the_action() {
    let removals: [fn(EntityCommands); 4] = [
        |mut entity| _ = entity.remove::<TimerAction>(),
        |mut entity| _ = entity.remove::<Timer>(),
        |mut entity| _ = entity.insert(Timer::after(ms(50))),
        |mut entity| entity.despawn(),
    ];
    for (nth, remove) in removals.into_iter().enumerate() {
        let mut app = hearing_app();
        app.world_mut()
            .spawn((Timer::every(ms(10)), say("action")))
            .observe(move |fired: On<TimerFired>, mut commands: Commands| {
                remove(commands.entity(fired.entity()));
            });
        advance_ms(&mut app, 10);
        assert_eq!(heard(&mut app), [""; 0], "removal {nth}");
    }
}

#[test]
fn an_observer_that_moves_the_timer_to_another_clock_does_not_skip_the_action() {
    let moves: [fn(EntityCommands, Entity); 3] = [
        |mut entity, clock| {
            entity.change_own_timer(move |timer| timer.set_clock(clock).unwrap());
        },
        |mut entity, clock| _ = entity.insert(OnClock::new(clock)),
        |mut entity, _| _ = entity.insert(Clock::new().with_speed(0.5)),
    ];
    for (nth, to_clock) in moves.into_iter().enumerate() {
        for times in [1, 2] {
            let mut app = hearing_app();
            let slow = spawn_clock(&mut app, Clock::new().with_speed(0.5));
            app.world_mut()
                .spawn((Timer::every(ms(10)).times(times), say("action")))
                .observe(move |fired: On<TimerFired>, mut commands: Commands| {
                    if fired.count() == 1 {
                        to_clock(commands.entity(fired.entity()), slow);
                    }
                });
            advance_ms(&mut app, 10);
            assert_eq!(heard(&mut app), ["action"], "move {nth}");
            advance_ms(&mut app, 19);
            assert_eq!(heard(&mut app), [""; 0], "move {nth}: the clock is slow");
            advance_ms(&mut app, 1);
            assert_eq!(heard(&mut app).len() as u32, times - 1, "move {nth}");
        }
    }
}

#[test]
fn an_observer_that_overwrites_the_event_changes_nothing_for_others() {
    let mut app = hearing_app();
    let owner = app.world_mut().spawn_empty().id();
    let other = app.world_mut().spawn_empty().id();
    let action = TimerAction::call(|world, fired| hear(world, format!("{:?}", fired.entity())));
    let timer = app
        .world_mut()
        .spawn((OwnedBy(owner), Timer::every(ms(10)).times(2), action))
        .observe(move |mut fired: On<TimerFired>| *fired.event_mut() = TimerFired::new(other))
        .id();
    app.world_mut().entity_mut(owner).observe(
        |fired: On<OwnedTimerFired>, mut heard: ResMut<Heard>| {
            heard.0.push(format!("{:?}", fired.entity()));
        },
    );
    advance_ms(&mut app, 20);
    assert_eq!(heard(&mut app), vec![format!("{timer:?}"); 4]);
    let messages = app.world().resource::<Messages<TimerFired>>();
    let mut cursor = messages.get_cursor();
    let counts = cursor
        .read(messages)
        .map(|fired| (fired.entity(), fired.count()));
    assert!(counts.eq([(timer, 1), (timer, 2)]));
    assert!(app.world().get::<Timer>(timer).is_none(), "it has ended");
}

#[test]
fn a_system_reads_clocks_changes_them_and_asks_about_timers_at_once() {
    fn slow_down(clocks: Clocks, mut changed: ClocksMut, timers: ArmedTimers) {
        for timer in timers.iter() {
            let speed = clocks.speed(timer.clock).unwrap();
            let mut clock = changed.get_mut(timer.clock).unwrap();
            clock.set_speed(speed / 2.0);
            assert_eq!(
                clocks.speed(timer.clock),
                Ok(speed),
                "the change comes later"
            );
        }
    }

    let mut app = app();
    let own = spawn_clock(&mut app, Clock::new());
    spawn(&mut app, "x", Timer::every(ms(10)).on(own));
    app.add_systems(Update, slow_down);
    advance_ms(&mut app, 0);
    assert_eq!(clock(&mut app, own).speed(), 0.5);
    let observer = |_: On<TimerFired>, clocks: Clocks, changed: ClocksMut, timers: ArmedTimers| {
        slow_down(clocks, changed, timers);
    };
    app.add_observer(observer);
    advance_ms(&mut app, 40);
    assert_eq!(fired_at(&mut app), [("x", 10), ("x", 20)]);
    assert_eq!(
        clock(&mut app, own).speed(),
        0.0625,
        "twice by observers, once by the system"
    );
}

#[test]
fn an_observer_that_is_added_after_the_timer_was_armed_is_called() {
    let mut app = hearing_app();
    let timer = app.world_mut().spawn(Timer::every(ms(10))).id();
    let other = app.world_mut().spawn(Timer::every(ms(10))).id();
    advance_ms(&mut app, 10);
    assert_eq!(heard(&mut app), [""; 0]);
    observe(&mut app, timer, "observed");
    advance_ms(&mut app, 10);
    assert_eq!(heard(&mut app), ["observed"]);
    let global = |fired: On<TimerFired>, mut heard: ResMut<Heard>| {
        heard.0.push(format!("{:?}", fired.entity()));
    };
    let global = app.world_mut().add_observer(global).id();
    advance_ms(&mut app, 10);
    let expected = [
        format!("{timer:?}"),
        "observed".into(),
        format!("{other:?}"),
    ];
    assert_eq!(heard(&mut app), expected);
    app.world_mut().despawn(global);
    advance_ms(&mut app, 10);
    assert_eq!(heard(&mut app), ["observed"]);
}

#[test]
fn an_observer_that_is_added_in_a_run_is_called_in_this_run() {
    let mut app = hearing_app();
    let observed = app.world_mut().spawn(Timer::every(ms(10))).id();
    let action = TimerAction::call(move |world: &mut World, _| {
        let observer = |_: On<TimerFired>, mut heard: ResMut<Heard>| heard.0.push("heard".into());
        world.entity_mut(observed).observe(observer);
    });
    app.world_mut().spawn((Timer::after(ms(10)), action));
    advance_ms(&mut app, 20);
    assert_eq!(heard(&mut app), ["heard"]);
}

#[test]
fn an_observer_of_the_owner_that_is_added_later_is_called() {
    let mut app = hearing_app();
    let owner = app.world_mut().spawn_empty().id();
    let timer = (OwnedBy(owner), Timer::every(ms(10)));
    let timer = app.world_mut().spawn(timer).id();
    advance_ms(&mut app, 10);
    let observer = |fired: On<OwnedTimerFired>, mut heard: ResMut<Heard>| {
        heard.0.push(format!("{:?}", fired.entity()));
    };
    app.world_mut().entity_mut(owner).observe(observer);
    advance_ms(&mut app, 10);
    assert_eq!(heard(&mut app), [format!("{timer:?}")]);

    // A timer that the owner gets later is observed, too.
    let late = app.world_mut().spawn(Timer::every(ms(100))).id();
    advance_ms(&mut app, 1);
    app.world_mut().entity_mut(late).insert(OwnedBy(owner));
    app.world_mut().entity_mut(timer).remove::<OwnedBy>();
    advance_ms(&mut app, 99);
    assert_eq!(heard(&mut app), [format!("{late:?}")]);
}

#[test]
fn observers_are_called_after_a_restore() {
    let mut app = hearing_app();
    let owner = app.world_mut().spawn_empty().id();
    let [early, late, lost] = [(); 3].map(|()| {
        let timer = (OwnedBy(owner), Timer::after(ms(10)).keep_when_done());
        app.world_mut().spawn(timer).id()
    });
    observe(&mut app, early, "early");
    advance_ms(&mut app, 1);
    let snapshot = app.world_mut().snapshot_timers();
    observe(&mut app, late, "late");
    app.world_mut().despawn(lost);
    let mut map = EntityHashMap::default();
    app.world_mut().restore_timers(&snapshot, &mut map);
    advance_ms(&mut app, 10);
    assert_eq!(heard(&mut app), ["early", "late"]);

    app.world_mut().restore_timers(&snapshot, &mut map);
    // Bevy's observers of an entity despawn with it.
    observe(&mut app, map[&lost], "found");
    let of_owner = |_: On<OwnedTimerFired>, mut heard: ResMut<Heard>| heard.0.push("owner".into());
    app.world_mut().entity_mut(owner).observe(of_owner);
    advance_ms(&mut app, 10);
    let expected = ["early", "owner", "late", "owner", "found", "owner"];
    assert_eq!(heard(&mut app), expected);
}

//! `Clock`: custom clocks and the built-in ones.

use core::time::Duration;

use crate::support::{errors::*, *};
use bevy_app::prelude::*;
use bevy_due::{
    ArmedTimers, CancelReason, ClocksMut, DueSystems, OnClock, OwnedBy, Timer, TimerFired,
    clock::ClockError, prelude::*,
};
use bevy_ecs::{
    entity::{EntityHashMap, MapEntities},
    entity_disabling::Disabled,
    error::{FallbackErrorHandler, Severity},
    prelude::*,
};
use bevy_time::{Fixed, Time, Virtual};

const HOUR: Duration = Duration::from_secs(3600);

/// Returns the id of a despawned entity.
fn despawned_entity(app: &mut App) -> Entity {
    let entity = app.world_mut().spawn_empty().id();
    app.world_mut().despawn(entity);
    entity
}

#[test]
fn a_scaled_clock_does_not_drift_over_an_hour_of_uneven_frames() {
    let mut app = app();
    let slow = spawn_clock(&mut app, Clock::new().with_speed(0.1));
    spawn(&mut app, "x", Timer::every(1.0).on(slow));
    let mut left = HOUR;
    for step in [16_666_667, 1_700_000_003, 2_997_911_011]
        .into_iter()
        .cycle()
    {
        let step = Duration::from_nanos(step).min(left);
        if step.is_zero() {
            break;
        }
        left -= step;
        advance(&mut app, step);
    }
    assert_eq!(now(&app, slow), HOUR / 10);
    let deadlines = fired_at(&mut app).into_iter().map(|(_, at)| at);
    assert!(deadlines.eq((1..=360).map(|second| second * 1000)));
}

#[test]
fn a_clock_can_run_on_another_clock() {
    let mut app = app();
    let parent = spawn_clock(&mut app, Clock::new().with_speed(2.0));
    let child = spawn_clock(&mut app, Clock::of(parent).with_speed(0.25));
    let grandchild = spawn_clock(&mut app, Clock::of(child).with_speed(4.0));
    spawn(&mut app, "child", Timer::every(ms(10)).on(child));
    spawn(&mut app, "grandchild", Timer::every(ms(100)).on(grandchild));
    advance_ms(&mut app, 60);
    assert_eq!(
        fired_at(&mut app),
        [
            ("child", 10),
            ("child", 20),
            ("child", 30),
            ("grandchild", 100)
        ],
        "clocks should fire one after another, parents first"
    );
    change_clock(&mut app, parent, |clock| clock.pause());
    spawn(&mut app, "zero", Timer::after(ms(0)).on(grandchild));
    advance_ms(&mut app, 1000);
    assert!(
        fired(&mut app).is_empty(),
        "a paused parent should stop all clocks below it"
    );
    change_clock(&mut app, parent, |clock| clock.unpause());
    advance_ms(&mut app, 20);
    assert_eq!(fired(&mut app), ["child", "zero"]);
}

const STOPS: [fn(&mut World, Entity); 3] = [
    |world, clock| world.change_clock(clock, |clock| clock.pause()).unwrap(),
    |world, clock| {
        world
            .change_clock(clock, |clock| clock.set_speed(0.0))
            .unwrap();
    },
    |world, clock| _ = world.entity_mut(clock).insert(Disabled),
];

/// Stops a clock from a handler and returns the tags fired in this run and the next.
fn fired_after_stop(stop: fn(&mut World, Entity), on_other_clock: bool) -> Vec<&'static str> {
    let mut app = app();
    let stopped = spawn_clock(&mut app, Clock::new());
    let mut stopper = Timer::after(ms(10));
    if !on_other_clock {
        stopper = stopper.on(stopped);
    }
    let stopper = spawn(&mut app, "stopper", stopper);
    spawn(&mut app, "x", Timer::every(ms(10)).on(stopped));
    app.world_mut().entity_mut(stopper).observe(
        move |_: On<TimerFired>, mut commands: Commands| {
            commands.queue(move |world: &mut World| stop(world, stopped));
        },
    );
    advance_ms(&mut app, 25);
    advance_ms(&mut app, 25);
    fired(&mut app)
}

#[test]
fn stopping_the_current_clock_ends_its_firings_immediately() {
    for (nth, stop) in STOPS.into_iter().enumerate() {
        assert_eq!(fired_after_stop(stop, false), ["stopper"], "stop {nth}");
    }
}

#[test]
fn stopping_a_later_clock_skips_it_in_the_same_run() {
    for (nth, stop) in STOPS.into_iter().enumerate() {
        assert_eq!(fired_after_stop(stop, true), ["stopper"], "stop {nth}");
    }
}

/// Takes the messages of an app without observers: the tag of each firing, in order.
fn fired_unobserved(app: &mut App) -> Vec<&'static str> {
    let world = app.world_mut();
    let fired: Vec<_> = world
        .resource_mut::<Messages<TimerFired>>()
        .drain()
        .collect();
    let tags = fired
        .iter()
        .filter_map(|fired| world.get::<Tag>(fired.entity()));
    tags.map(|tag| tag.0).collect()
}

/// The clock that a system stops in this frame, after the clocks were read.
#[derive(Resource, Default)]
struct Stopped(Option<(Entity, fn(&mut World, Entity))>);

#[test]
fn a_system_stops_a_clock_after_the_reading_and_before_the_run() {
    for (nth, stop) in STOPS.into_iter().enumerate() {
        let mut app = unobserved_app();
        app.init_resource::<Stopped>().add_systems(
            PreUpdate,
            (|world: &mut World| {
                if let Some((clock, stop)) = world.resource_mut::<Stopped>().0.take() {
                    stop(world, clock);
                }
            })
            .before(DueSystems::Timers),
        );
        let clocks = ["first", "second", "third"].map(|tag| {
            let clock = spawn_clock(&mut app, Clock::new());
            spawn(&mut app, tag, Timer::every(ms(10)).on(clock));
            clock
        });
        advance_ms(&mut app, 10);
        assert_eq!(
            fired_unobserved(&mut app),
            ["first", "second", "third"],
            "stop {nth}"
        );
        app.world_mut().resource_mut::<Stopped>().0 = Some((clocks[1], stop));
        for _ in 0..2 {
            advance_ms(&mut app, 10);
            assert_eq!(fired_unobserved(&mut app), ["first", "third"], "stop {nth}");
        }
    }
}

/// The queries of the plugin don't find the entity of the clock.
#[test]
fn a_clock_on_an_entity_that_the_game_hides_changes_at_once() {
    #[derive(Component)]
    struct Hidden;

    let mut app = unobserved_app();
    app.world_mut().register_disabling_component::<Hidden>();
    let clock = app.world_mut().spawn((Clock::new(), Hidden)).id();
    spawn(&mut app, "x", Timer::every(ms(10)).on(clock));
    advance_ms(&mut app, 10);
    assert_eq!(fired_unobserved(&mut app), ["x"]);
    change_clock(&mut app, clock, |clock| clock.set_speed(2.0));
    advance_ms(&mut app, 10);
    assert_eq!(fired_unobserved(&mut app), ["x", "x"]);
    change_clock(&mut app, clock, |clock| clock.pause());
    for _ in 0..3 {
        advance_ms(&mut app, 10);
        assert_eq!(fired_unobserved(&mut app), [""; 0]);
    }
    app.world_mut()
        .entity_mut(clock)
        .insert(Clock::new().with_speed(3.0));
    advance_ms(&mut app, 10);
    assert_eq!(fired_unobserved(&mut app), ["x", "x", "x"]);
}

#[test]
fn an_action_stops_a_later_clock_in_the_same_run() {
    for (nth, stop) in STOPS.into_iter().enumerate() {
        let mut app = unobserved_app();
        let clocks = [(); 4].map(|()| spawn_clock(&mut app, Clock::new()));
        let tags = ["first", "second", "third", "fourth"];
        for (tag, clock) in tags.into_iter().zip(clocks) {
            spawn(&mut app, tag, Timer::every(ms(10)).on(clock));
        }
        advance_ms(&mut app, 10);
        assert_eq!(fired_unobserved(&mut app), tags, "stop {nth}");
        let stopped = clocks[2];
        let action = TimerAction::call(move |world: &mut World, _| stop(world, stopped));
        let stopper = Timer::after(ms(10)).on(clocks[0]);
        app.world_mut().spawn((stopper, action));
        advance_ms(&mut app, 15);
        assert_eq!(
            fired_unobserved(&mut app),
            ["first", "second", "fourth"],
            "stop {nth}"
        );
    }
}

#[test]
fn real_and_frame_timers_fire_while_the_game_is_paused() {
    let mut app = app();
    app.world_mut().resource_mut::<Time<Virtual>>().pause();
    spawn(&mut app, "game", Timer::after(ms(0)));
    spawn(&mut app, "frames", Timer::every_frames(2).times(2));
    spawn(&mut app, "next", Timer::after_frames(1));
    spawn(&mut app, "real", Timer::after(ms(30)).on(ClockId::Real));
    let frames = [(); 4].map(|()| {
        advance_ms(&mut app, 10);
        fired(&mut app)
    });
    assert_eq!(
        frames,
        [vec!["next"], vec!["frames"], vec!["real"], vec!["frames"]]
    );
}

#[test]
fn fixed_timers_fire_in_step_with_the_fixed_schedule() {
    #[derive(Resource, Default)]
    struct Seen(Vec<(&'static str, Duration)>);

    let mut app = app();
    app.init_resource::<Seen>()
        .insert_resource(Time::<Fixed>::from_duration(ms(10)))
        .add_systems(FixedUpdate, |time: Res<Time>, mut seen: ResMut<Seen>| {
            seen.0.push(("step", time.elapsed()));
        })
        .add_observer(
            |fired: On<TimerFired>, time: Res<Time>, tags: Query<&Tag>, mut seen: ResMut<Seen>| {
                assert_eq!(fired.lateness(), Duration::ZERO);
                seen.0
                    .push((tags.get(fired.entity()).unwrap().0, time.elapsed()));
            },
        );
    let fast = spawn_clock(&mut app, Clock::of(ClockId::Fixed).with_speed(2.0));
    spawn(&mut app, "timer", Timer::every(ms(20)).on(ClockId::Fixed));
    spawn(&mut app, "fast", Timer::after(ms(60)).on(fast));
    advance_ms(&mut app, 35);
    let seen = app.world_mut().remove_resource::<Seen>().unwrap().0;
    let seen: Vec<_> = seen
        .iter()
        .map(|(name, at)| (*name, at.as_millis()))
        .collect();
    assert_eq!(
        seen,
        [
            ("step", 10),
            ("timer", 20),
            ("step", 20),
            ("fast", 30),
            ("step", 30)
        ]
    );
}

#[test]
fn a_despawned_clock_cancels_its_timers() {
    let mut app = app();
    let arena = spawn_clock(&mut app, Clock::new());
    let owner = app.world_mut().spawn_empty().id();
    let waiting = spawn(&mut app, "waiting", Timer::every(ms(10)).on(arena));
    let paused = spawn(&mut app, "paused", Timer::every(ms(10)).on(arena));
    app.world_mut().entity_mut(paused).insert(Paused);
    advance_ms(&mut app, 5);
    let timer = (OwnedBy(owner), Timer::every(ms(10)).on(arena));
    let owned = app.world_mut().spawn(timer).id();
    advance_ms(&mut app, 0);
    spawn(&mut app, "other", Timer::every(ms(10)));
    app.world_mut().despawn(arena);
    app.world_mut().flush();
    let gone = |timer| (timer, CancelReason::ClockGone);
    let cancelled = cancelled(&mut app);
    let expected = [waiting, paused, owned].map(gone);
    assert_eq!(cancelled.len(), expected.len());
    assert!(expected.iter().all(|gone| cancelled.contains(gone)));
    for timer in [waiting, paused] {
        assert!(!app.world().entity(timer).contains::<Timer>());
    }
    assert!(
        app.world().get_entity(owned).is_err(),
        "an owned timer should be despawned with its clock"
    );
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["other"]);
}

#[test]
fn the_timers_of_a_despawned_clock_are_cancelled_in_the_order_of_arming() {
    let mut app = app();
    let arena = spawn_clock(&mut app, Clock::new());
    let timer = |app: &mut App| spawn(app, "", Timer::every(ms(10)).on(arena));
    let [first, second, third] = [(); 3].map(|()| timer(&mut app));
    advance_ms(&mut app, 1);
    // Their places in the queue are free for others.
    app.world_mut().despawn(first);
    app.world_mut().despawn(second);
    let [fourth, fifth] = [(); 2].map(|()| timer(&mut app));
    advance_ms(&mut app, 1);
    cancelled(&mut app);
    app.world_mut().despawn(arena);
    let gone = [third, fourth, fifth].map(|timer| (timer, CancelReason::ClockGone));
    assert_eq!(cancelled(&mut app), gone);
}

#[test]
fn a_clock_despawned_by_its_own_timer_fires_nothing_more() {
    let mut app = app();
    let arena = spawn_clock(&mut app, Clock::new());
    let a = spawn(&mut app, "a", Timer::every(ms(10)).on(arena));
    let b = spawn(&mut app, "b", Timer::every(ms(10)).on(arena));
    app.add_observer(move |_: On<TimerFired>, mut commands: Commands| {
        commands.entity(arena).despawn();
    });
    advance_ms(&mut app, 100);
    assert_eq!(fired(&mut app), ["a"]);
    let gone = [a, b].map(|timer| (timer, CancelReason::ClockGone));
    assert_eq!(cancelled(&mut app), gone);
}

#[test]
fn a_missing_clock_logs_a_warning_and_cancels_the_timer() {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(record));
    let missing = despawned_entity(&mut app);
    let timer = spawn(&mut app, "x", Timer::after(ms(10)).on(missing));
    advance_ms(&mut app, 0);
    assert_eq!(cancelled(&mut app), [(timer, CancelReason::ClockGone)]);
    assert!(!app.world().entity(timer).contains::<Timer>());

    let orphan = spawn_clock(&mut app, Clock::of(missing));
    spawn(&mut app, "y", Timer::after(ms(0)).on(orphan));
    advance_ms(&mut app, 100);
    assert!(
        fired(&mut app).is_empty(),
        "a clock without a parent should stand still"
    );
    let warning = (
        Severity::Warning,
        ClockError::NoSuchClock(missing.into()).to_string(),
    );
    assert_eq!(
        reports(),
        [warning.clone(), warning],
        "one warning for the timer and one for the clock"
    );
}

#[test]
fn an_orphaned_clock_stands_still_even_if_a_new_clock_is_spawned() {
    let mut app = app();
    let parent = spawn_clock(&mut app, Clock::new());
    let child = spawn_clock(&mut app, Clock::of(parent));
    spawn(&mut app, "x", Timer::every(ms(10)).on(child));
    app.world_mut().despawn(parent);
    let stranger = spawn_clock(&mut app, Clock::new().with_speed(5.0));
    spawn(&mut app, "stranger", Timer::after(ms(50)).on(stranger));
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 100);
    assert_eq!(fired(&mut app), ["stranger"]);
}

#[test]
fn a_timer_takes_its_clock_from_itself_then_its_entity_then_its_owner() {
    let mut app = app();
    let [on_timer, on_entity, on_owner] = [(); 3].map(|()| spawn_clock(&mut app, Clock::new()));
    let owner = app.world_mut().spawn(OnClock::new(on_owner)).id();
    let world = app.world_mut();
    let plain = || Timer::after(ms(10));
    let all = (
        OwnedBy(owner),
        OnClock::new(on_entity),
        plain().on(on_timer),
    );
    let timers = [
        world.spawn(all).id(),
        world
            .spawn((OwnedBy(owner), OnClock::new(on_entity), plain()))
            .id(),
        world.spawn((OwnedBy(owner), plain())).id(),
        world.spawn((OwnedBy(on_entity), plain())).id(),
        world.spawn(plain()).id(),
    ];
    let clock_entity = world
        .spawn((Clock::new(), OnClock::new(on_entity), plain()))
        .id();
    let mut state = bevy_ecs::system::SystemState::<ArmedTimers>::new(world);
    let armed = state.get(world).unwrap();
    let clocks = timers.map(|timer| armed.get(timer).unwrap().clock);
    let [on_timer, on_entity, on_owner] = [on_timer, on_entity, on_owner].map(ClockId::Own);
    assert_eq!(
        clocks,
        [on_timer, on_entity, on_owner, on_entity, ClockId::Virtual]
    );
    let clock = armed.get(clock_entity).unwrap().clock;
    assert_eq!(
        clock,
        clock_entity.into(),
        "a timer on the entity of a clock should run on that clock"
    );
}

#[test]
fn deadlines_passed_by_advance_by_fire_in_order_in_the_next_run() {
    let mut app = app();
    let jobs = spawn_clock(&mut app, Clock::new());
    let day = 24 * HOUR;
    spawn(&mut app, "weekly", Timer::every(7 * day).on(jobs));
    spawn(&mut app, "daily", Timer::every(2 * day).on(jobs));
    change_clock(&mut app, jobs, |clock| clock.advance_by(8 * day));
    assert!(
        fired(&mut app).is_empty(),
        "should not fire inside the call"
    );
    advance_ms(&mut app, 0);
    let expected = ["daily", "daily", "daily", "weekly", "daily"];
    assert_eq!(fired(&mut app), expected);
}

#[test]
fn set_now_keeps_the_remaining_times() {
    let mut app = app();
    let sun = spawn_clock(&mut app, Clock::new());
    spawn(&mut app, "before", Timer::after(ms(100)).on(sun));
    advance_ms(&mut app, 60);
    change_clock(&mut app, sun, |clock| clock.set_now(HOUR));
    advance_ms(&mut app, 0);
    spawn(&mut app, "at", Timer::at(HOUR + ms(30)).on(sun));
    spawn(&mut app, "past", Timer::at(ms(70)).on(sun));
    advance_ms(&mut app, 39);
    let hour = HOUR.as_millis();
    let past = ("past", 60);
    let fired = fired_at(&mut app);
    assert_eq!(fired[1..], [("at", hour + 30)]);
    assert_eq!(fired[0].0, past.0);
    advance_ms(&mut app, 1);
    assert_eq!(fired_at(&mut app), [("before", hour + 40)]);
    change_clock(&mut app, sun, |clock| clock.set_now(ms(0)));
    advance_ms(&mut app, 0);
    assert_eq!(now(&app, sun), ms(0), "a clock can also be set back");
}

#[test]
fn a_disabled_clock_counts_as_paused() {
    let mut app = app();
    let arena = spawn_clock(&mut app, Clock::new());
    spawn(&mut app, "x", Timer::after(ms(20)).on(arena));
    advance_ms(&mut app, 15);
    app.world_mut().entity_mut(arena).insert(Disabled);
    for _ in 0..3 {
        advance_ms(&mut app, 100);
    }
    assert!(fired(&mut app).is_empty());
    app.world_mut().entity_mut(arena).remove::<Disabled>();
    advance_ms(&mut app, 4);
    assert!(fired(&mut app).is_empty(), "should keep its remaining time");
    advance_ms(&mut app, 1);
    assert_eq!(fired_at(&mut app), [("x", 20)]);
}

/// Clocks with the same components lie together. A group in which nothing was written is not searched.
#[test]
fn a_changed_clock_is_found_among_all_others() {
    #[derive(Component)]
    struct Marker;

    let mut app = app();
    app.insert_resource(Time::<Fixed>::from_duration(ms(10)));
    let plain = [(); 3].map(|()| spawn_clock(&mut app, Clock::new()));
    let marked = [(); 3].map(|()| app.world_mut().spawn((Clock::new(), Marker)).id());
    let disabled = app.world_mut().spawn((Clock::new(), Disabled)).id();
    let clocks: Vec<Entity> = plain.into_iter().chain(marked).chain([disabled]).collect();
    let mut speeds = vec![1.0; clocks.len()];
    let mut expected = vec![ms(0); clocks.len()];
    for step in 0..40_u32 {
        let nth = step as usize % clocks.len();
        speeds[nth] = f64::from(step % 5);
        match step % 3 {
            0 => change_clock(&mut app, clocks[nth], |clock| clock.set_speed(speeds[nth])),
            1 => {
                // It moves to another group before the next reading.
                change_clock(&mut app, clocks[nth], |clock| clock.set_speed(speeds[nth]));
                let mut entity = app.world_mut().entity_mut(clocks[nth]);
                match entity.contains::<Marker>() {
                    true => _ = entity.remove::<Marker>(),
                    false => _ = entity.insert(Marker),
                }
            }
            _ => {
                let new = Clock::new().with_speed(speeds[nth]);
                app.world_mut().entity_mut(clocks[nth]).insert(new);
            }
        }
        advance_ms(&mut app, 10);
        for (nth, &clock) in clocks.iter().enumerate() {
            if clock != disabled {
                expected[nth] += ms(10).mul_f64(speeds[nth]);
            }
            assert_eq!(
                now(&app, clock),
                expected[nth],
                "clock {nth} in step {step}"
            );
        }
    }
    app.world_mut().entity_mut(disabled).remove::<Disabled>();
    advance_ms(&mut app, 10);
    let speed = *speeds.last().unwrap();
    assert_eq!(now(&app, disabled), ms(10).mul_f64(speed));
}

#[test]
fn a_clock_hidden_by_nothing_is_found_if_the_game_can_hide_entities() {
    #[derive(Component)]
    #[component(storage = "SparseSet")]
    struct Hidden;

    let mut app = app();
    app.world_mut().register_disabling_component::<Hidden>();
    let own = spawn_clock(&mut app, Clock::new());
    advance_ms(&mut app, 10);
    change_clock(&mut app, own, |clock| clock.set_speed(3.0));
    advance_ms(&mut app, 10);
    assert_eq!(now(&app, own), ms(40));
}

#[test]
fn a_timer_rearmed_on_another_clock_during_its_last_firing_stays_armed() {
    let mut app = app();
    let other = spawn_clock(&mut app, Clock::new());
    let timer = spawn(&mut app, "x", Timer::after(ms(10)));
    app.world_mut().entity_mut(timer).observe(
        move |fired: On<TimerFired>, mut commands: Commands| {
            if fired.count() == 1 && fired.deadline() == ms(10) {
                let next = Timer::after(ms(15)).on(other);
                commands.entity(fired.entity()).insert(next);
            }
        },
    );
    advance_ms(&mut app, 10);
    assert!(app.world().entity(timer).contains::<Timer>());
    advance_ms(&mut app, 15);
    assert_eq!(fired_at(&mut app), [("x", 10), ("x", 25)]);
}

#[test]
fn deadlines_before_the_first_reading_of_a_clock_fire_late_and_in_order() {
    let mut app = app();
    let calendar = spawn_clock(&mut app, Clock::new().with_now(18 * HOUR));
    let noon = Timer::every(24 * HOUR)
        .first_after(9 * HOUR)
        .since(3 * HOUR);
    spawn(&mut app, "noon", noon.on(calendar));
    spawn(&mut app, "four", Timer::at(4 * HOUR).on(calendar));
    spawn(&mut app, "three", Timer::at(3 * HOUR).on(calendar));
    advance(&mut app, Duration::ZERO);
    let fired: Vec<_> = firings(&mut app)
        .iter()
        .map(|fired| (fired.deadline(), fired.lateness()))
        .collect();
    let missed = [3, 4, 12].map(|hour| (hour * HOUR, (18 - hour) * HOUR));
    assert_eq!(fired, missed, "should be in order, and on the grid");
    advance(&mut app, 18 * HOUR);
    assert_eq!(firings(&mut app)[0].deadline(), 36 * HOUR);
}

#[test]
fn a_daily_timer_whose_hour_has_passed_first_fires_on_the_next_day() {
    let mut app = app();
    let calendar = spawn_clock(&mut app, Clock::new().with_now(80 * HOUR));
    for (tag, hour) in [("seven", 7), ("eight", 8), ("nine", 9)] {
        let daily = Timer::every(24 * HOUR).first_at(hour * HOUR);
        spawn(&mut app, tag, daily.on(calendar));
    }
    advance(&mut app, Duration::ZERO);
    let deadlines = |app: &mut App| {
        let fired = firings(app);
        fired.iter().map(TimerFired::deadline).collect::<Vec<_>>()
    };
    assert_eq!(
        deadlines(&mut app),
        [80 * HOUR],
        "it is eight on the fourth day"
    );
    advance(&mut app, 24 * HOUR);
    assert_eq!(deadlines(&mut app), [81, 103, 104].map(|hour| hour * HOUR));

    // A restart begins like the insertion.
    let seven = spawn(
        &mut app,
        "again",
        Timer::every(24 * HOUR).first_at(7 * HOUR).on(calendar),
    );
    app.world_mut()
        .change_timer(seven, |timer| timer.restart())
        .unwrap();
    advance(&mut app, HOUR);
    assert_eq!(deadlines(&mut app), [105 * HOUR], "nine");
}

#[test]
fn a_built_in_clock_can_be_slowed() {
    let mut app = app();
    let slow = |mut clocks: ClocksMut| clocks.get_mut(ClockId::Virtual).unwrap().set_speed(0.5);
    app.world_mut().run_system_cached(slow).unwrap();
    spawn(&mut app, "x", Timer::after(ms(10)));
    advance_ms(&mut app, 19);
    assert!(fired(&mut app).is_empty());
    advance_ms(&mut app, 1);
    assert_eq!(fired(&mut app), ["x"]);
}

#[test]
fn the_first_fixed_timer_is_on_time_even_if_a_fixed_system_arms_it() {
    let mut app = app();
    app.insert_resource(Time::<Fixed>::from_duration(ms(10)))
        .add_systems(
            FixedUpdate,
            |mut done: Local<bool>, mut commands: Commands| {
                if !*done {
                    *done = true;
                    commands.spawn(Timer::after(ms(10)).on(ClockId::Fixed));
                }
            },
        );
    advance_ms(&mut app, 30);
    let firings = firings(&mut app);
    assert_eq!(firings.len(), 1);
    assert_eq!(firings[0].lateness(), ms(0));
}

#[test]
fn a_first_delay_counts_from_arming_even_if_it_replaces_a_first_deadline() {
    let mut app = app();
    advance_ms(&mut app, 1000);
    let timer = Timer::every(ms(100)).first_at(ms(5000)).first_after(ms(50));
    spawn(&mut app, "x", timer);
    advance_ms(&mut app, 0);
    assert!(fired(&mut app).is_empty(), "50 ms have not passed yet");
    advance_ms(&mut app, 50);
    assert_eq!(fired_at(&mut app), [("x", 1050)]);
}

#[test]
fn clocks_are_equal_if_they_show_the_same_time_and_advance_in_the_same_way() {
    let clock = || Clock::new().with_speed(2.0).with_now(ms(5));
    assert_eq!(clock(), clock());
    let others = [
        clock().with_speed(3.0),
        clock().with_now(ms(6)),
        Clock::of(ClockId::Real).with_speed(2.0).with_now(ms(5)),
        Clock::manual().with_speed(2.0).with_now(ms(5)),
        clock().paused(),
    ];
    for other in others {
        assert_ne!(clock(), other);
    }
}

#[test]
fn a_clock_that_names_game_time_leaves_the_clock_of_its_entity() {
    let mut app = app();
    let world = app.world_mut();
    let slow = world.spawn(Clock::new().with_speed(0.5)).id();
    let stays = world.spawn((Clock::new(), OnClock::new(slow))).id();
    let leaves = world.spawn((Clock::of(ClockId::Virtual), OnClock::new(slow)));
    let leaves = leaves.id();
    advance(&mut app, ms(2000));
    let now = |clock: Entity| app.world().clock_now(clock).unwrap();
    assert_eq!((now(stays), now(leaves)), (ms(1000), ms(2000)));
    let copy = app.world().get::<Clock>(leaves).unwrap().clone();
    app.world_mut()
        .entity_mut(leaves)
        .insert(copy.with_speed(2.0));
    advance(&mut app, ms(1000));
    advance(&mut app, ms(1000));
    assert_eq!(clock(&mut app, leaves).parent(), Some(ClockId::Virtual));
}

#[test]
fn the_parent_of_a_clock_is_mapped() {
    let mut world = World::new();
    let [from, to] = [(); 2].map(|()| world.spawn_empty().id());
    let mut mapper = EntityHashMap::default();
    mapper.insert(from, to);
    let mut clock = Clock::of(from);
    MapEntities::map_entities(&mut clock, &mut mapper);
    assert_eq!(clock.parent(), Some(ClockId::Own(to)));
}

//! The features of cocos2d-x's scheduler, one by one.

use core::time::Duration;
use std::thread::{self, ThreadId};

use crate::support::{updates::*, *};
use bevy_app::App;
use bevy_due::{
    ArmedTimers, ClocksMut, MissedTicks, Timer, UpdateComponent, message::MessageWorldExt,
    prelude::*, timer::TimerStatus,
};
use bevy_ecs::{
    prelude::*,
    system::{RunSystemOnce, SystemState},
};

/// Returns the status of the timer of `target` under `key`.
fn keyed(app: &mut App, target: Entity, key: &'static str) -> Option<TimerStatus> {
    let mut state = SystemState::<ArmedTimers>::new(app.world_mut());
    state.get(app.world()).unwrap().keyed(target, key)
}

/// Schedules a timer under `key`, which is also its name in the log.
fn schedule(app: &mut App, target: Entity, key: &'static str, timer: Timer) -> Entity {
    set_timer(app.world_mut(), target, key, timer)
}

/// Spawns a target that carries a timer, logged under `name`.
fn spawn_target(app: &mut App, name: &'static str) -> Entity {
    spawn(app, name, Timer::every(ms(10)))
}

fn set_speed(app: &mut App, clock: impl Into<ClockId>, speed: f64) {
    let clock = clock.into();
    let set = move |mut clocks: ClocksMut| clocks.get_mut(clock).unwrap().set_speed(speed);
    app.world_mut().run_system_once(set).unwrap();
}

/// Interval, repeat, delay and forever, in all combinations.
#[test]
fn interval_repeat_delay_and_forever_combine() {
    let every = || Timer::every(ms(10));
    let combinations: [(Timer, &[u64]); 7] = [
        (every(), &[10, 20, 30, 40, 50]),
        (every().times(3), &[10, 20, 30]),
        (every().first_after(ms(25)), &[25, 35, 45, 55]),
        (every().first_after(ms(25)).times(2), &[25, 35]),
        (every().immediately().times(2), &[0, 10]),
        (every().times(1), &[10]),
        (Timer::after(ms(25)), &[25]),
    ];
    for (timer, deadlines) in combinations {
        for frames in [1, 7, 56] {
            let mut app = app();
            let target = app.world_mut().spawn_empty().id();
            schedule(&mut app, target, "x", timer.clone());
            for _ in 0..frames {
                advance_ms(&mut app, 56 / frames);
            }
            let fired: Vec<Duration> = firings(&mut app).iter().map(|it| it.deadline()).collect();
            let expected: Vec<Duration> = deadlines.iter().copied().map(ms).collect();
            assert_eq!(fired, expected, "{timer:?} in {frames} frames");
            let is_endless = timer.max_firings().is_none();
            assert_eq!(
                keyed(&mut app, target, "x").is_some(),
                is_endless,
                "{timer:?}"
            );
        }
    }
}

/// Interval 0: every frame.
#[test]
fn a_callback_without_an_interval_runs_every_frame() {
    let mut app = update_app();
    let target = spawn_target(&mut app, "own");
    app.world_mut()
        .entity_mut(target)
        .insert((Ticks::default(), note_time()));
    for frame in [3, 0, 90] {
        advance_ms(&mut app, frame);
    }
    assert_eq!(times(&mut app, target), [(3, 3), (0, 3), (90, 93)]);
}

/// Per-frame updates by priority: negative, zero, positive; equal priorities in insertion order.
#[test]
fn updates_run_by_priority_then_in_insertion_order() {
    let mut app = update_app();
    let priorities = [("e", 1), ("c", 0), ("a", -2), ("b", -1), ("d", 0), ("f", 1)];
    let targets = priorities.map(|(what, priority)| {
        let update = say(what).with_priority(priority);
        app.world_mut().spawn(update).id()
    });
    for _ in 0..2 {
        advance_ms(&mut app, 10);
        assert_eq!(called(&mut app), ["a", "b", "c", "d", "e", "f"]);
    }
    let [e, c, ..] = targets;
    app.world_mut().entity_mut(c).insert(say("c"));
    app.world_mut()
        .entity_mut(e)
        .insert(say("e").with_priority(-1));
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "b", "e", "d", "c", "f"]);
}

/// Unschedule all updates from a priority up, even from inside a callback.
#[test]
fn all_updates_from_a_priority_up_can_be_unscheduled() {
    fn unschedule_from(world: &mut World, priority: i32) {
        let mut updates = world.query::<(Entity, &UpdateComponent)>();
        let from_priority: Vec<_> = updates
            .iter(world)
            .filter_map(|(target, update)| (update.priority() >= priority).then_some(target))
            .collect();
        for target in from_priority {
            world.entity_mut(target).remove::<UpdateComponent>();
        }
    }

    let mut app = update_app();
    for (what, priority) in [("a", -1), ("b", 0), ("c", 1), ("d", 2)] {
        app.world_mut().spawn(say(what).with_priority(priority));
    }
    unschedule_from(app.world_mut(), 2);
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "b", "c"]);
    let inside = doing("inside", |world, _| unschedule_from(world, 0));
    app.world_mut().spawn(inside.with_priority(-1));
    advance_ms(&mut app, 10);
    assert_eq!(
        called(&mut app),
        ["a", "inside"],
        "should take effect immediately"
    );
    app.world_mut().spawn(say("new"));
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "inside"]);
}

/// Scheduling again under the same key changes the interval, even from the timer's own last
/// callback: cocos2d-x issue 11147.
#[test]
fn scheduling_again_under_the_same_key_changes_the_interval() {
    let mut app = app();
    let target = app.world_mut().spawn_empty().id();
    let other = app.world_mut().spawn_empty().id();
    schedule(&mut app, target, "x", Timer::every(ms(10)));
    schedule(&mut app, target, "y", Timer::every(ms(100)));
    schedule(&mut app, other, "x", Timer::every(ms(100)));
    advance_ms(&mut app, 15);
    let last = schedule(&mut app, target, "x", Timer::every(ms(7)).times(2));
    advance_ms(&mut app, 7);
    assert_eq!(fired_at(&mut app), [("x", 10), ("x", 22)]);

    app.world_mut()
        .entity_mut(last)
        .observe(|fired: On<TimerFired>, mut commands: Commands| {
            if fired.is_last() {
                let slower = (Timer::every(ms(30)), Tag("x"));
                commands.entity(fired.owner()).set_timer("x", slower);
            }
        });
    advance_ms(&mut app, 7);
    advance_ms(&mut app, 30);
    advance_ms(&mut app, 30);
    assert_eq!(fired_at(&mut app), [("x", 29), ("x", 59), ("x", 89)]);
    let interval = keyed(&mut app, target, "x").map(|timer| timer.wait);
    assert_eq!(interval, Some(ms(30)), "should be scheduled once");
    assert_eq!(app.world().get::<Owned>(target).unwrap().len(), 2);
    advance_ms(&mut app, 11);
    assert_eq!(
        fired(&mut app),
        ["y", "x"],
        "other timers should be unaffected"
    );
}

/// Unschedule one timer or all timers of a target.
#[test]
fn one_or_all_timers_of_a_target_can_be_unscheduled() {
    let mut app = app();
    let (target, other) = (
        spawn_target(&mut app, "own"),
        spawn_target(&mut app, "other"),
    );
    for key in ["a", "b", "c"] {
        schedule(&mut app, target, key, Timer::every(ms(10)));
        schedule(&mut app, other, key, Timer::every(ms(1000)));
    }
    assert!(app.world_mut().cancel_timer(target, "b"));
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["own", "other", "a", "c"]);

    app.world_mut().entity_mut(target).cancel_timers();
    assert_eq!(cancelled(&mut app).len(), 4);
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["other"]);
    assert!(keyed(&mut app, other, "b").is_some());

    schedule(&mut app, target, "a", Timer::every(ms(10)));
    advance_ms(&mut app, 10);
    assert_eq!(
        fired(&mut app),
        ["other", "a"],
        "should fire when scheduled again"
    );
}

/// Unschedule from inside a callback, even in a catch-up loop: cocos2d-x issues 17611, 17898 and
/// 17431.
#[test]
fn a_callback_can_unschedule_its_own_another_or_all_timers_of_its_target() {
    fn fired_if_b_runs_at_20(act: fn(&mut World, Entity)) -> Vec<(&'static str, u128)> {
        let mut app = app();
        let target = app.world_mut().spawn_empty().id();
        for key in ["a", "b", "c"] {
            schedule(&mut app, target, key, Timer::every(ms(10)));
        }
        app.add_observer(
            move |fired: On<TimerFired>, tags: Query<&Tag>, mut commands: Commands| {
                let is_b = tags.get(fired.entity()).is_ok_and(|tag| tag.0 == "b");
                if is_b && fired.deadline() == ms(20) {
                    let target = fired.owner();
                    commands.queue(move |world: &mut World| act(world, target));
                }
            },
        );
        advance_ms(&mut app, 30);
        fired_at(&mut app).split_off(3)
    }

    let itself = fired_if_b_runs_at_20(|world, target| {
        assert!(world.cancel_timer(target, "b"));
    });
    let expected = [("a", 20), ("b", 20), ("c", 20), ("a", 30), ("c", 30)];
    assert_eq!(itself, expected);

    let another = fired_if_b_runs_at_20(|world, target| {
        assert!(world.cancel_timer(target, "c"));
    });
    assert_eq!(another, [("a", 20), ("b", 20), ("a", 30), ("b", 30)]);

    let all = fired_if_b_runs_at_20(|world, target| {
        world.entity_mut(target).cancel_timers();
    });
    assert_eq!(all, [("a", 20), ("b", 20)]);
}

/// Pause and resume a target with all its timers.
#[test]
fn pausing_a_target_pauses_all_its_timers() {
    let mut app = app();
    let target = spawn_target(&mut app, "own");
    spawn_target(&mut app, "other");
    schedule(&mut app, target, "a", Timer::after(ms(25)));
    schedule(&mut app, target, "b", Timer::after(ms(15)));
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["own", "other"]);

    app.world_mut().entity_mut(target).insert(Paused);
    schedule(&mut app, target, "c", Timer::after(ms(5)));
    advance_ms(&mut app, 100);
    assert_eq!(
        fired(&mut app),
        ["other"; 10],
        "should not fire while paused"
    );
    for (key, remaining) in [("a", 15), ("b", 5), ("c", 5)] {
        let timer = keyed(&mut app, target, key).expect("a paused timer should stay scheduled");
        assert!(timer.paused);
        assert_eq!(timer.remaining, ms(remaining), "{key}");
    }
    assert!(cancelled(&mut app).is_empty());

    app.world_mut().entity_mut(target).remove::<Paused>();
    advance_ms(&mut app, 20);
    let expected = [
        ("b", 115),
        ("c", 115),
        ("own", 120),
        ("other", 120),
        ("a", 125),
        ("own", 130),
        ("other", 130),
    ];
    assert_eq!(fired_at(&mut app), expected);

    let pause = TimerAction::call(|world, fired| {
        world.entity_mut(fired.owner()).insert(Paused);
    });
    let tired = schedule(&mut app, target, "tired", Timer::after(ms(15)));
    app.world_mut().entity_mut(tired).insert(pause);
    advance_ms(&mut app, 30);
    let expected = [
        ("own", 140),
        ("other", 140),
        ("tired", 145),
        ("other", 150),
        ("other", 160),
    ];
    assert_eq!(
        fired_at(&mut app),
        expected,
        "a pause from a callback should take effect immediately"
    );
}

/// Is it scheduled?
#[test]
fn a_scheduled_timer_can_be_found_by_its_key_at_any_time() {
    #[derive(Resource, Default)]
    struct InCallback(Vec<bool>);

    let mut app = app();
    app.init_resource::<InCallback>().add_observer(
        |fired: On<TimerFired>, timers: ArmedTimers, mut answers: ResMut<InCallback>| {
            answers.0.push(timers.keyed(fired.owner(), "x").is_some());
        },
    );
    let target = app.world_mut().spawn_empty().id();
    let is_scheduled = |app: &mut App| {
        let keyed = keyed(app, target, "x").is_some();
        let found = app.world_mut().query::<&Timer>().iter(app.world()).count();
        assert_eq!(found, usize::from(keyed), "an armed timer is a `Timer`");
        keyed
    };
    assert!(!is_scheduled(&mut app), "not scheduled yet");
    schedule(&mut app, target, "x", Timer::every(ms(10)).times(2));
    assert!(is_scheduled(&mut app), "scheduled immediately");
    assert!(
        keyed(&mut app, target, "y").is_none(),
        "another key is not scheduled"
    );
    advance_ms(&mut app, 10);
    assert!(is_scheduled(&mut app), "one firing is left");
    app.world_mut().entity_mut(target).insert(Paused);
    assert!(is_scheduled(&mut app), "a paused timer stays scheduled");
    app.world_mut().entity_mut(target).remove::<Paused>();
    advance_ms(&mut app, 10);
    assert!(!is_scheduled(&mut app), "it has fired for the last time");
    assert_eq!(app.world().resource::<InCallback>().0, [true, false]);

    schedule(&mut app, target, "x", Timer::every(ms(10)));
    assert!(is_scheduled(&mut app), "scheduled again");
    app.world_mut().cancel_timer(target, "x");
    assert!(!is_scheduled(&mut app), "cancelled");
    schedule(&mut app, target, "x", Timer::every(ms(10)));
    app.world_mut().despawn(target);
    assert!(!is_scheduled(&mut app), "despawned with its target");
}

/// Time scale.
#[test]
fn time_can_be_scaled() {
    let mut app = app();
    let arena = app.world_mut().spawn(Clock::new()).id();
    let bubble = app.world_mut().spawn(Clock::of(arena).with_speed(0.5)).id();
    spawn(&mut app, "game", Timer::every(ms(10)));
    spawn(&mut app, "arena", Timer::every(ms(10)).on(arena));
    spawn(&mut app, "bubble", Timer::every(ms(10)).on(bubble));
    spawn(&mut app, "real", Timer::every(ms(10)).on(ClockId::Real));
    let mut advance = |clock: ClockId, speed: f64, millis: u64| {
        set_speed(&mut app, clock, speed);
        advance_ms(&mut app, millis);
        let fired = fired(&mut app);
        let count = |tag| fired.iter().filter(|&&fired| fired == tag).count();
        ["real", "game", "arena", "bubble"].map(count)
    };
    let (arena, game) = (arena.into(), ClockId::Virtual);
    assert_eq!(advance(arena, 0.5, 10), [1, 1, 0, 0], "slow motion");
    assert_eq!(
        advance(arena, 1.0, 10),
        [1, 1, 1, 0],
        "arena 15, bubble 7.5"
    );
    assert_eq!(
        advance(arena, 4.0, 10),
        [1, 1, 4, 2],
        "arena 55, bubble 27.5"
    );
    assert_eq!(advance(arena, 0.0, 100), [10, 10, 0, 0], "frozen");
    assert_eq!(advance(game, 2.0, 100), [10, 20, 0, 0], "the whole game");
    assert_eq!(
        advance(arena, 0.5, 10),
        [1, 2, 1, 1],
        "arena 65, bubble 32.5"
    );
    assert_eq!(
        advance(game, 0.0, 100),
        [10, 0, 0, 0],
        "everything except real time"
    );
}

/// Run a function on the game thread from another thread, safely.
#[test]
fn another_thread_can_run_a_function_on_the_game_thread() {
    #[derive(Resource, Default)]
    struct Ran(Vec<(u32, ThreadId)>);

    let mut app = app();
    app.init_resource::<Ran>();
    let target = spawn_target(&mut app, "x");
    let sender = app.world_mut().message_sender();
    let other = thread::spawn(move || {
        for nth in 0..3 {
            let function = move |world: &mut World| {
                let ran = (nth, thread::current().id());
                world.resource_mut::<Ran>().0.push(ran);
            };
            sender.run(function).unwrap();
        }
        // The function has full access to the world.
        let unschedule = move |world: &mut World| _ = world.despawn(target);
        sender.run(unschedule).unwrap();
        sender
    });
    let sender = other.join().unwrap();
    assert_eq!(
        app.world().resource::<Ran>().0,
        [],
        "should not run on the other thread"
    );
    advance_ms(&mut app, 0);
    let here = thread::current().id();
    let expected = [0, 1, 2].map(|nth| (nth, here));
    assert_eq!(app.world().resource::<Ran>().0, expected, "in order");
    advance_ms(&mut app, 100);
    assert!(fired(&mut app).is_empty());
    assert_eq!(
        app.world().resource::<Ran>().0.len(),
        3,
        "each should run once"
    );

    drop(app);
    let refused = sender.run(|_: &mut World| unreachable!());
    assert!(refused.is_err(), "the app no longer exists");
}

/// Elapsed time passed to the callback.
#[test]
fn a_callback_can_compute_the_elapsed_time() {
    /// The reading of the clock at the last firing.
    #[derive(Component)]
    struct Last(Duration);

    #[derive(Resource, Default)]
    struct Elapsed(Vec<(Duration, Duration)>);

    let mut app = app();
    app.init_resource::<Elapsed>().add_observer(
        |fired: On<TimerFired>,
         mut timers: Query<(&Timer, &mut Last)>,
         mut elapsed: ResMut<Elapsed>| {
            let (timer, mut last) = timers.get_mut(fired.entity()).unwrap();
            let now = fired.deadline() + fired.lateness();
            let intervals = 1 + u32::try_from(fired.missed()).unwrap();
            let on_the_grid = timer.interval().unwrap() * intervals;
            elapsed.0.push((now - last.0, on_the_grid));
            last.0 = now;
        },
    );
    let timer = Timer::every(ms(10)).with_missed_ticks(MissedTicks::Skip);
    app.world_mut().spawn((timer, Last(Duration::ZERO)));
    for frame in [10, 35, 5, 60] {
        advance_ms(&mut app, frame);
    }
    let elapsed = &app.world().resource::<Elapsed>().0;
    let expected = [(10, 10), (35, 30), (5, 10), (60, 60)];
    assert_eq!(*elapsed, expected.map(|(real, grid)| (ms(real), ms(grid))));
    let total: Duration = elapsed.iter().map(|(_, on_the_grid)| *on_the_grid).sum();
    assert_eq!(total, ms(110), "no time should be lost");
}

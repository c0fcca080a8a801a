//! The features of `BigWorld`'s time queue, script timers and controllers, one by one.

use core::time::Duration;

use crate::support::*;
use allocation_counter::measure;
use bevy_app::{App, FixedUpdate, Update};
use bevy_due::{
    ArmedTimers, CancelReason, Clocks, MissedTicks, OwnedTimerFired, Timer, TimerCancelled,
    prelude::*,
    queue::{Key, TimerQueue},
    timer::{Keyed, TimerStatus},
};
use bevy_ecs::{
    prelude::*,
    system::{EntityCommands, SystemState},
};
use bevy_time::{Fixed, Time};

const DAY: Duration = Duration::from_secs(24 * 3600);
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

/// `BigWorld`'s user argument, which the handler reads beside the firing.
#[derive(Component, Clone, Copy)]
struct UserData(u32);

/// Reads the status of the armed timers.
fn timers<R>(app: &mut App, read: impl FnOnce(ArmedTimers) -> R) -> R {
    let mut state = SystemState::<ArmedTimers>::new(app.world_mut());
    read(state.get(app.world()).unwrap())
}

fn is_alive(app: &App, entity: Entity) -> bool {
    app.world().get_entity(entity).is_ok()
}

/// Start, interval, handler, user data, name.
#[test]
fn a_timer_has_a_start_an_interval_a_handler_user_data_and_a_name() {
    #[derive(Resource, Default)]
    struct Calls(Vec<(String, u32, Duration)>);

    fn heal(
        In(fired): In<TimerFired>,
        timers: Query<(&Name, &UserData)>,
        mut calls: ResMut<Calls>,
    ) {
        let (name, data) = timers.get(fired.entity()).unwrap();
        calls.0.push((name.to_string(), data.0, fired.deadline()));
    }

    let mut app = app();
    app.init_resource::<Calls>();
    app.world_mut().add_timer_handler("heal", heal);
    app.world_mut().spawn((
        Timer::every(ms(10)).first_at(ms(25)),
        TimerAction::named("heal"),
        UserData(7),
        Name::new("regeneration"),
    ));
    let listing = timers(&mut app, |timers| timers.to_string());
    assert!(listing.contains("regeneration"), "{listing}");
    for _ in 0..5 {
        advance_ms(&mut app, 10);
    }
    let expected = [25, 35, 45].map(|at| ("regeneration".to_string(), 7, ms(at)));
    assert_eq!(app.world().resource::<Calls>().0, expected);
}

/// A handle that cancels, even inside its own callback.
#[test]
fn a_handle_can_be_cancelled_inside_its_own_callback() {
    let ways: [fn(EntityCommands); 2] = [
        |mut handle| {
            handle.remove::<Timer>();
        },
        |mut handle| handle.despawn(),
    ];
    for cancel in ways {
        for frames in [1, 10] {
            let mut app = app();
            let outside = spawn(&mut app, "outside", Timer::every(ms(10)));
            spawn(&mut app, "inside", Timer::every(ms(10)));
            cancel(app.world_mut().commands().entity(outside));
            app.add_observer(move |fired: On<TimerFired>, mut commands: Commands| {
                if fired.count() == 2 {
                    cancel(commands.entity(fired.entity()));
                }
            });
            for _ in 0..frames {
                advance_ms(&mut app, 100 / frames);
            }
            assert_eq!(fired_at(&mut app), [("inside", 10), ("inside", 20)]);
            assert_eq!(cancelled(&mut app).len(), 2);
        }
    }
}

/// Pending / executing / cancelled.
#[test]
fn a_timer_is_pending_then_executing_then_cancelled_or_finished() {
    #[derive(Resource, Default)]
    struct Executing(Vec<Option<u64>>);

    let mut app = app();
    app.init_resource::<Executing>().add_observer(
        |fired: On<TimerFired>, timers: ArmedTimers, mut executing: ResMut<Executing>| {
            let status = timers.get(fired.entity());
            executing.0.push(status.map(|timer| timer.count));
        },
    );
    let timer = spawn(&mut app, "x", Timer::every(ms(10)).times(2));
    let count = |app: &mut App| timers(app, |timers| timers.get(timer).map(|timer| timer.count));

    assert_eq!(count(&mut app), Some(0), "pending");
    advance_ms(&mut app, 10);
    assert_eq!(count(&mut app), Some(1), "pending again");
    advance_ms(&mut app, 10);
    assert_eq!(count(&mut app), None, "finished");
    assert_eq!(
        app.world().resource::<Executing>().0,
        [Some(1), None],
        "a timer that is firing for the last time is no longer armed"
    );

    app.world_mut()
        .entity_mut(timer)
        .insert(Timer::after(ms(10)));
    assert_eq!(count(&mut app), Some(0), "pending");
    app.world_mut().entity_mut(timer).remove::<Timer>();
    assert_eq!(count(&mut app), None, "cancelled");
    assert_eq!(cancelled(&mut app), [(timer, CancelReason::Removed)]);
}

/// Cancelling twice is harmless.
#[test]
fn cancelling_twice_is_harmless() {
    fn cancel_twice(world: &mut World, timer: Entity) {
        for _ in 0..2 {
            if let Ok(mut timer) = world.get_entity_mut(timer) {
                timer.remove::<Timer>().remove::<Timer>();
            }
            world.try_despawn(timer).ok();
        }
    }

    let mut app = app();
    let pending = spawn(&mut app, "pending", Timer::after(ms(10)));
    let executing = spawn(&mut app, "executing", Timer::every(ms(10)));
    let finished = spawn(&mut app, "finished", Timer::after(ms(10)));
    let owner = app.world_mut().spawn_empty().id();
    app.world_mut()
        .entity_mut(owner)
        .set_timer("keyed", Timer::after(ms(10)));
    app.world_mut().entity_mut(executing).observe(
        |fired: On<TimerFired>, mut commands: Commands| {
            let timer = fired.entity();
            commands.queue(move |world: &mut World| cancel_twice(world, timer));
        },
    );

    cancel_twice(app.world_mut(), pending);
    assert!(app.world_mut().cancel_timer(owner, "keyed"));
    assert!(!app.world_mut().cancel_timer(owner, "keyed"));
    cancelled(&mut app);
    let bystander = spawn(&mut app, "bystander", Timer::after(ms(30)));
    advance_ms(&mut app, 20);
    cancel_twice(app.world_mut(), finished);
    cancel_twice(app.world_mut(), pending);
    assert_eq!(cancelled(&mut app), [(executing, CancelReason::Removed)]);
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["executing", "finished", "bystander"]);
    assert!(
        is_alive(&app, bystander),
        "a stale handle should not affect another entity"
    );
}

/// Purge when most timers are dead.
#[test]
fn cancelled_timers_are_purged() {
    let mut app = app();
    let armed: Vec<Entity> = (0..5000)
        .map(|n| spawn(&mut app, "x", Timer::after(ms(60_000 + n))))
        .collect();
    advance_ms(&mut app, 1);
    for (_, &timer) in armed.iter().enumerate().filter(|(n, _)| n % 10 > 0) {
        app.world_mut().despawn(timer);
    }
    assert_eq!(timers(&mut app, |timers| timers.count()), 500);
    advance_ms(&mut app, 70_000);
    let survivors: Vec<Entity> = firings(&mut app)
        .iter()
        .map(|fired| fired.entity())
        .collect();
    assert_eq!(survivors, armed.into_iter().step_by(10).collect::<Vec<_>>());

    let mut queue = TimerQueue::new();
    let mut now = 0;
    let mut arm_and_cancel = || {
        let arm = |n| queue.insert(now + 60_000_000_000 + n, ());
        let keys: Vec<Key> = (0..10_000).map(arm).collect();
        for key in keys.into_iter().skip(100) {
            queue.cancel(key);
        }
        now += 16_000_000;
        assert!(queue.pop_due(now).is_none());
    };
    let first = measure(&mut arm_and_cancel).bytes_max;
    let later = measure(|| (0..50).for_each(|_| arm_and_cancel())).bytes_current;
    assert_eq!(queue.len(), 51 * 100);
    assert!(
        later.cast_unsigned() <= first,
        "half a million cancelled timers should take no more memory than 10,000: {later}, {first}"
    );
}

/// `process(now)` returns how many fired.
#[test]
fn a_run_reports_how_many_timers_fired() {
    let mut app = app();
    let last_run = |app: &mut App| timers(app, |timers| timers.last_run());
    spawn(&mut app, "a", Timer::every(ms(10)));
    spawn(
        &mut app,
        "b",
        Timer::every(ms(10)).with_missed_ticks(MissedTicks::Skip),
    );
    spawn(&mut app, "c", Timer::after(ms(25)));

    advance_ms(&mut app, 9);
    let stats = last_run(&mut app);
    assert_eq!((stats.armed, stats.fired), (3, 0));
    advance_ms(&mut app, 21);
    let stats = last_run(&mut app);
    assert_eq!(
        (stats.fired, stats.missed),
        (5, 2),
        "a, b, a, c, a at 30 ms"
    );
    assert_eq!(
        firings(&mut app).len(),
        5,
        "should match the observed firings"
    );

    let stats = app.world_mut().fast_forward(ClockId::Virtual, ms(100));
    assert_eq!(stats.unwrap().fired, 20);
    advance_ms(&mut app, 0);
    assert_eq!(last_run(&mut app).fired, 0, "should count one run only");
}

/// `process(now)` returns how many fired: in fixed steps, where each step is a run.
#[test]
fn a_fixed_run_reports_how_many_timers_fired() {
    let mut app = app();
    app.insert_resource(Time::<Fixed>::from_hz(10.0));
    spawn(
        &mut app,
        "a",
        Timer::every(ms(50)).times(3).on(ClockId::Fixed),
    );
    spawn(&mut app, "b", Timer::after(ms(200)).on(ClockId::Fixed));
    let fired = [(); 4].map(|()| {
        advance_ms(&mut app, 100);
        timers(&mut app, |timers| timers.last_fixed_run().fired)
    });
    assert_eq!(fired, [2, 2, 0, 0], "should count one run only");
}

/// Times rounded to at least one tick; tick rate: a clock in frames never rounds to zero.
#[test]
fn the_frame_clock_rounds_times_up_to_at_least_one_frame() {
    let mut app = app();
    for short in [
        Timer::after(0.0),
        Timer::after(1e-12),
        Timer::after(ms(400)),
    ] {
        app.world_mut()
            .spawn((Tag("short"), short.on(ClockId::Frames)))
            .observe(|fired: On<TimerFired>, mut commands: Commands| {
                let again = Timer::after(1e-12).on(ClockId::Frames);
                commands.entity(fired.entity()).insert(again);
            });
    }
    let periodic = Timer::try_every(1e-12).expect("should not be rounded to zero");
    let every_frame = periodic
        .on(ClockId::Frames)
        .with_missed_ticks(MissedTicks::Skip);
    spawn(&mut app, "every frame", every_frame);
    spawn(&mut app, "every second frame", Timer::every_frames(2));
    for frame in 1..=6 {
        advance_ms(&mut app, 0);
        let fired = fired(&mut app);
        let count_of = |tag| fired.iter().filter(|&&fired| fired == tag).count();
        assert_eq!(count_of("short"), 3, "frame {frame}");
        assert_eq!(count_of("every frame"), 1, "frame {frame}");
        assert_eq!(count_of("every second frame"), usize::from(frame % 2 == 0));
    }
}

/// Times rounded to at least one tick; tick rate: a clock in fixed steps never rounds to zero.
#[test]
fn the_fixed_clock_rounds_times_up_to_at_least_one_tick() {
    let mut app = app();
    app.insert_resource(Time::<Fixed>::from_hz(10.0));
    spawn(&mut app, "once", Timer::after(ms(1)).on(ClockId::Fixed));
    let each_tick = Timer::every(ms(1))
        .on(ClockId::Fixed)
        .with_missed_ticks(MissedTicks::Skip);
    spawn(&mut app, "each", each_tick);
    spawn(&mut app, "1.5", Timer::every(ms(150)).on(ClockId::Fixed));

    let mut tick = |by| {
        advance_ms(&mut app, by);
        fired(&mut app)
    };
    assert!(tick(99).is_empty(), "no tick yet");
    assert_eq!(tick(1), ["once", "each"], "100 ms");
    assert_eq!(tick(100), ["each", "1.5"], "200 ms: the tick after 150 ms");
    assert_eq!(tick(100), ["each", "1.5"], "300 ms");
    assert_eq!(tick(100), ["each"], "400 ms");
    assert_eq!(tick(200), ["each", "1.5", "each", "1.5"], "500 and 600 ms");
}

/// Tick rate: the time in each tick, even while no timer uses it.
#[test]
fn the_fixed_clock_shows_the_time_of_each_tick() {
    #[derive(Resource, Default)]
    struct Shown(Vec<Duration>);

    let mut app = app();
    app.insert_resource(Time::<Fixed>::from_hz(10.0))
        .init_resource::<Shown>()
        .add_systems(FixedUpdate, |clocks: Clocks, mut shown: ResMut<Shown>| {
            shown.0.push(clocks.now(ClockId::Fixed).unwrap());
        });
    advance_ms(&mut app, 200);
    spawn(&mut app, "x", Timer::after(ms(1)).on(ClockId::Fixed));
    advance_ms(&mut app, 200);
    let expected = [100, 200, 300, 400].map(ms);
    assert_eq!(app.world().resource::<Shown>().0, expected);
}

/// Per-entity timers with ids, delete one, cancel all when the entity dies.
#[test]
fn an_entity_has_timers_with_ids_that_die_with_it() {
    let mut app = app();
    let spawn_avatar = |app: &mut App| {
        let timers = related!(Owned[
            (Tag("a"), Timer::every(ms(10))),
            (Tag("b"), Timer::every(ms(10))),
            (Tag("c"), Timer::every(ms(10))),
        ]);
        app.world_mut().spawn(timers).id()
    };
    let (avatar, other) = (spawn_avatar(&mut app), spawn_avatar(&mut app));
    let [a, b, c] = owned(app.world(), avatar)[..] else {
        panic!("should have three timers");
    };
    advance_ms(&mut app, 10);
    let ids: Vec<Entity> = firings(&mut app)
        .iter()
        .map(|fired| fired.entity())
        .collect();
    assert_eq!(ids[..3], [a, b, c]);

    app.world_mut().despawn(b);
    assert_eq!(cancelled(&mut app), [(b, CancelReason::Despawned)]);
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["a", "c", "a", "b", "c"]);

    // The first timer despawns the avatar while the other timers are due.
    app.world_mut()
        .entity_mut(a)
        .insert(TimerAction::despawn_owner());
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["a", "a", "b", "c"]);
    let gone = [a, c].map(|timer| (timer, CancelReason::OwnerGone));
    assert_eq!(cancelled(&mut app), gone);
    assert!(!is_alive(&app, a) && !is_alive(&app, c));
    assert_eq!(timers(&mut app, |timers| timers.of(other).count()), 3);
}

/// Callback gets id and user argument.
#[test]
fn a_callback_gets_the_id_and_the_user_argument() {
    #[derive(Resource, Default)]
    struct Calls(Vec<(Entity, Entity, u32)>);

    let mut app = app();
    app.init_resource::<Calls>();
    let avatar = app
        .world_mut()
        .spawn(related!(Owned[
            (UserData(1), Timer::after(ms(20))),
            (UserData(2), Timer::after(ms(10))),
        ]))
        .observe(
            |fired: On<OwnedTimerFired>, data: Query<&UserData>, mut calls: ResMut<Calls>| {
                let UserData(argument) = *data.get(fired.entity()).unwrap();
                calls.0.push((fired.owner(), fired.entity(), argument));
            },
        )
        .id();
    let ids = owned(app.world(), avatar);
    advance_ms(&mut app, 30);
    assert_eq!(
        app.world().resource::<Calls>().0,
        [(avatar, ids[1], 2), (avatar, ids[0], 1)]
    );
}

/// Release notification.
#[test]
fn every_timer_is_released_exactly_once() {
    #[derive(Resource, Default)]
    struct Read(Vec<(Entity, CancelReason)>);

    let mut app = app();
    app.init_resource::<Read>().add_systems(
        Update,
        |mut released: MessageReader<TimerCancelled>, mut read: ResMut<Read>| {
            read.0
                .extend(released.read().map(|it| (it.entity(), it.reason())));
        },
    );
    let clock = app.world_mut().spawn(Clock::new()).id();
    let mortal = app.world_mut().spawn_empty().id();
    let keyed = app.world_mut().spawn_empty().id();
    let finished = spawn(&mut app, "finished", Timer::every(ms(10)).times(2));
    let removed = spawn(&mut app, "removed", Timer::after(ms(100)));
    let despawned = spawn(&mut app, "despawned", Timer::after(ms(100)));
    let clockless = spawn(&mut app, "clockless", Timer::after(ms(100)).on(clock));
    let world = app.world_mut();
    let orphan = world.spawn((OwnedBy(mortal), Timer::after(ms(100)))).id();
    let replaced = set_timer(world, keyed, "key", Timer::after(ms(100)));

    advance_ms(&mut app, 50);
    let world = app.world_mut();
    world.entity_mut(removed).remove::<Timer>();
    world.despawn(despawned);
    world.despawn(clock);
    world.despawn(mortal);
    set_timer(world, keyed, "key", Timer::after(ms(50)));
    let expected = [
        (removed, CancelReason::Removed),
        (despawned, CancelReason::Despawned),
        (clockless, CancelReason::ClockGone),
        (orphan, CancelReason::OwnerGone),
        (replaced, CancelReason::Replaced),
    ];
    assert_eq!(
        cancelled(&mut app),
        expected,
        "observers should be notified immediately"
    );
    advance_ms(&mut app, 50);
    assert_eq!(
        app.world().resource::<Read>().0,
        expected,
        "messages should be readable in the next run"
    );
    advance_ms(&mut app, 50);
    let last = firings(&mut app)
        .into_iter()
        .filter(|fired| fired.is_last());
    let last: Vec<Entity> = last.map(|fired| fired.entity()).collect();
    assert_eq!(
        last[0], finished,
        "a timer that finishes is released by its last firing"
    );
    assert_eq!(
        last.len(),
        2,
        "the replacement should finish with its last firing, too"
    );
    assert!(
        cancelled(&mut app).is_empty(),
        "a timer that finishes should not also be cancelled"
    );
    assert_eq!(app.world().resource::<Read>().0, expected);
}

/// Shift the clock so daily and weekly jobs can be tested: advancing it fires the deadlines passed.
#[test]
fn advancing_a_clock_by_a_week_runs_daily_and_weekly_jobs() {
    let mut app = app();
    spawn(&mut app, "real", Timer::after(DAY).on(ClockId::Real));
    spawn(&mut app, "daily", Timer::every(DAY));
    spawn(&mut app, "weekly", Timer::every(WEEK));
    spawn(&mut app, "some day", Timer::after(DAY / 2 * 5));
    change_clock(&mut app, ClockId::Virtual, |clock| clock.advance_by(WEEK));
    advance_ms(&mut app, 0);
    let days = |days| (DAY * days).as_millis();
    let expected = [
        ("daily", days(1)),
        ("daily", days(2)),
        ("some day", days(5) / 2),
        ("daily", days(3)),
        ("daily", days(4)),
        ("daily", days(5)),
        ("daily", days(6)),
        ("daily", days(7)),
        ("weekly", days(7)),
    ];
    assert_eq!(fired_at(&mut app), expected);
}

/// Shift the clock so daily and weekly jobs can be tested: setting it adjusts the deadlines of all
/// timers, which keep their remaining times.
#[test]
fn setting_a_clock_to_saturday_night_adjusts_all_timers() {
    let saturday_night = WEEK - ms(1000);
    let mut app = app();
    spawn(&mut app, "fuse", Timer::after(ms(3000)));
    spawn(&mut app, "pulse", Timer::every(ms(2000)));
    advance_ms(&mut app, 500);
    let all = |app: &mut App| {
        let status = |timer: TimerStatus| (timer.entity, timer.remaining, timer.deadline);
        timers(app, |timers| timers.iter().map(status).collect::<Vec<_>>())
    };
    let before = all(&mut app);
    assert_eq!(before.len(), 2);
    change_clock(&mut app, ClockId::Virtual, |clock| {
        clock.set_now(saturday_night);
    });
    advance_ms(&mut app, 0);
    let shift = saturday_night - ms(500);
    let adjusted = before
        .into_iter()
        .map(|(timer, remaining, deadline)| (timer, remaining, deadline + shift))
        .collect::<Vec<_>>();
    assert_eq!(all(&mut app), adjusted);

    spawn(&mut app, "weekly", Timer::every(WEEK).first_at(WEEK));
    advance_ms(&mut app, 999);
    assert!(fired(&mut app).is_empty());
    advance_ms(&mut app, 1);
    assert_eq!(fired_at(&mut app), [("weekly", WEEK.as_millis())]);
    advance_ms(&mut app, 1500);
    let shift = shift.as_millis();
    let expected = [("pulse", shift + 2000), ("fuse", shift + 3000)];
    assert_eq!(fired_at(&mut app), expected);
}

/// Exclusive category: adding replaces the earlier of that category.
#[test]
fn a_new_timer_in_a_category_replaces_the_earlier_one() {
    let mut app = app();
    let [hero, other] = [(); 2].map(|()| app.world_mut().spawn_empty().id());
    let world = app.world_mut();
    let walk = set_timer(world, hero, "movement", Timer::every(ms(10)));
    world.entity_mut(walk).insert(Tag("walk"));
    let mut hero_mut = world.entity_mut(hero);
    hero_mut.set_timer("vision", (Timer::every(ms(20)), Tag("look")));
    let mut other = world.entity_mut(other);
    other.set_timer("movement", (Timer::every(ms(20)), Tag("other")));
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["walk"]);

    // Inserting the component replaces the timer as well, even in the middle of a long frame.
    let run = (Tag("run"), Timer::every(ms(10)));
    let run = app
        .world_mut()
        .spawn((OwnedBy(hero), Keyed::new("movement"), run))
        .observe(|fired: On<TimerFired>, mut commands: Commands| {
            let rest = (Timer::after(ms(10)), Tag("rest"));
            commands.entity(fired.owner()).set_timer("movement", rest);
        })
        .id();
    app.world_mut().flush();
    assert_eq!(cancelled(&mut app), [(walk, CancelReason::Replaced)]);
    assert!(!is_alive(&app, walk));
    advance_ms(&mut app, 30);
    assert_eq!(fired(&mut app), ["look", "other", "run", "look", "other"]);
    assert_eq!(cancelled(&mut app), [(run, CancelReason::Replaced)]);
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["rest"]);
}

//! Replacing a clock, or its parent: the time and everything on the clock stay.

use crate::support::{errors::*, updates::*, *};
use bevy_app::App;
use bevy_due::{
    ArmedTimers, CancelReason, Clocks, ClocksMut, Timer,
    clock::{ClockError, ClockMut},
    prelude::*,
};
use bevy_ecs::{
    error::{FallbackErrorHandler, Severity},
    prelude::*,
};
use bevy_time::{Fixed, Time};

fn insert(app: &mut App, entity: Entity, clock: Clock) {
    app.world_mut().entity_mut(entity).insert(clock);
}

fn set_parent(app: &mut App, clock: Entity, parent: impl Into<ClockId>) -> Result<(), ClockError> {
    let set = |clock: &mut ClockMut| clock.set_parent(parent);
    app.world_mut().change_clock(clock, set)?
}

#[test]
fn a_replaced_clock_keeps_its_time_its_timers_and_its_callbacks() {
    let mut app = update_app();
    let own = spawn_clock(&mut app, Clock::new().with_speed(1.0 / 3.0));
    let callback = (Ticks::default(), note_time().on(own));
    let callback = app.world_mut().spawn(callback).id();
    spawn(&mut app, "x", Timer::every(ms(10)).on(own));
    advance_ms(&mut app, 25);
    let saved = Clock::new().with_speed(2.0).with_now(ms(5000));
    insert(&mut app, own, saved);
    advance_ms(&mut app, 5);
    advance_ms(&mut app, 5);
    let now = now(&app, own);
    assert_eq!(now, ms(25) / 3 + ms(20), "the time should go on");
    assert_eq!(clock(&mut app, own).speed(), 2.0);
    let ticks = ticks(&mut app, callback);
    let elapsed: Vec<_> = ticks.iter().map(|tick| tick.elapsed).collect();
    assert_eq!(elapsed, [ms(25) / 3, ms(25) / 3 + ms(10), now]);
    assert_eq!(ticks[1].delta, ms(10));
    assert_eq!(cancelled(&mut app), [], "no timer should be cancelled");
    assert_eq!(fired_at(&mut app), [("x", 10), ("x", 20)]);
}

#[test]
fn a_replaced_clock_keeps_the_fraction_of_a_nanosecond() {
    let mut app = app();
    let [a, b] = [(); 2].map(|()| spawn_clock(&mut app, Clock::new().with_speed(0.3)));
    for _ in 0..10 {
        advance(&mut app, core::time::Duration::from_nanos(1));
        insert(&mut app, a, Clock::new().with_speed(0.3));
    }
    advance_ms(&mut app, 0);
    let expected = now(&app, b);
    assert_eq!(
        expected.as_nanos(),
        2,
        "ten times 0.3, rounded down by the speed"
    );
    assert_eq!(now(&app, a), expected);
}

#[test]
fn a_replaced_clock_takes_over_pause_and_parent() {
    let mut app = app();
    let fast = spawn_clock(&mut app, Clock::new().with_speed(3.0));
    let own = spawn_clock(&mut app, Clock::new());
    change_clock(&mut app, own, |clock| clock.pause());
    advance_ms(&mut app, 10);
    insert(&mut app, own, Clock::of(fast));
    advance_ms(&mut app, 10);
    assert!(!clock(&mut app, own).is_paused());
    assert_eq!(clock(&mut app, own).parent(), Some(fast.into()));
    assert_eq!(now(&app, own), ms(30));
}

#[test]
fn a_clock_inserted_where_there_is_none_brings_its_time() {
    let mut app = app();
    let entity = app.world_mut().spawn_empty().id();
    insert(&mut app, entity, Clock::new().with_now(ms(700)));
    advance_ms(&mut app, 10);
    assert_eq!(now(&app, entity), ms(710));
    let copy = clock(&mut app, entity);
    app.world_mut().entity_mut(entity).remove::<Clock>();
    advance_ms(&mut app, 10);
    insert(&mut app, entity, copy);
    advance_ms(&mut app, 10);
    assert_eq!(now(&app, entity), ms(720));
}

#[test]
fn a_child_goes_on_when_its_parent_is_replaced() {
    let mut app = app();
    let arena = spawn_clock(&mut app, Clock::new());
    let spell = spawn_clock(&mut app, Clock::of(arena));
    let echo = spawn_clock(&mut app, Clock::of(spell));
    spawn(&mut app, "echo", Timer::every(ms(10)).on(echo));
    advance_ms(&mut app, 10);
    insert(&mut app, arena, Clock::new().with_speed(2.0));
    advance_ms(&mut app, 10);
    assert_eq!(
        fired_at(&mut app),
        [("echo", 10), ("echo", 20), ("echo", 30)]
    );
}

#[test]
fn swapped_clocks_exchange_their_settings() {
    let mut app = app();
    let a = spawn_clock(&mut app, Clock::new());
    let b = spawn_clock(&mut app, Clock::new().with_speed(5.0));
    spawn(&mut app, "a", Timer::every(ms(10)).on(a));
    advance_ms(&mut app, 10);
    let [first, second] = [a, b].map(|it| clock(&mut app, it));
    insert(&mut app, a, second);
    insert(&mut app, b, first.paused());
    advance_ms(&mut app, 10);
    let speed = |clock: Clock| (clock.speed(), clock.is_paused());
    assert_eq!(speed(clock(&mut app, a)), (5.0, false));
    assert_eq!(speed(clock(&mut app, b)), (1.0, true));
    assert_eq!((now(&app, a), now(&app, b)), (ms(60), ms(50)));
    assert_eq!(fired(&mut app).len(), 6, "timers stay with their entity");
}

#[test]
fn a_clock_can_get_another_parent() {
    let mut app = app();
    let [slow, fast] =
        [0.5, 4.0].map(|speed| spawn_clock(&mut app, Clock::new().with_speed(speed)));
    // A child may be older than its parent.
    let own = spawn_clock(&mut app, Clock::of(slow));
    let late = spawn_clock(&mut app, Clock::new().with_speed(10.0));
    spawn(&mut app, "x", Timer::after(ms(190)).on(own));
    let mut expected = ms(0);
    for (parent, passed) in [(slow, 5), (fast, 40), (late, 100), (slow, 5), (fast, 40)] {
        set_parent(&mut app, own, parent).unwrap();
        assert_eq!(clock(&mut app, own).parent(), Some(parent.into()));
        assert!(fired(&mut app).is_empty(), "at {expected:?}");
        advance_ms(&mut app, 10);
        expected += ms(passed);
        assert_eq!(now(&app, own), expected);
    }
    assert_eq!(fired_at(&mut app), [("x", 190)]);
}

#[test]
fn a_clock_without_a_parent_runs_again_on_another_one() {
    let mut app = app();
    let parent = spawn_clock(&mut app, Clock::new());
    let own = spawn_clock(&mut app, Clock::of(parent));
    spawn(&mut app, "x", Timer::after(ms(20)).on(own));
    advance_ms(&mut app, 10);
    app.world_mut().despawn(parent);
    advance_ms(&mut app, 100);
    set_parent(&mut app, own, ClockId::Virtual).unwrap();
    advance_ms(&mut app, 9);
    assert!(fired(&mut app).is_empty());
    advance_ms(&mut app, 1);
    assert_eq!(fired_at(&mut app), [("x", 20)]);
}

#[test]
fn a_cycle_is_an_error_that_names_the_clocks() {
    let mut app = app();
    let a = spawn_clock(&mut app, Clock::new());
    let b = spawn_clock(&mut app, Clock::of(a));
    let c = spawn_clock(&mut app, Clock::of(b));
    let error = set_parent(&mut app, a, c).unwrap_err();
    assert_eq!(error, ClockError::Cycle(vec![a, c, b]));
    let text = format!(
        "a clock can't drive itself: {a} would run on {c}, which runs on {b}, which runs on {a}"
    );
    assert_eq!(error.to_string(), text);
    let error = set_parent(&mut app, a, a).unwrap_err();
    assert_eq!(error, ClockError::Cycle(vec![a]));
    assert_eq!(clock(&mut app, a).parent(), Some(ClockId::Virtual));
    advance_ms(&mut app, 10);
    assert_eq!(now(&app, c), ms(10), "the clocks run as before");
}

#[test]
fn a_clock_that_has_lost_its_parent_can_be_a_parent() {
    let mut app = app();
    let gone = spawn_clock(&mut app, Clock::new());
    let parent = spawn_clock(&mut app, Clock::of(gone));
    let own = spawn_clock(&mut app, Clock::new());
    advance_ms(&mut app, 10);
    app.world_mut().despawn(gone);
    let missing = ClockError::NoSuchClock(gone.into());
    assert_eq!(set_parent(&mut app, own, gone), Err(missing));
    assert_eq!(set_parent(&mut app, own, parent), Ok(()));
    let cycle = ClockError::Cycle(vec![parent, own]);
    assert_eq!(set_parent(&mut app, parent, own), Err(cycle));
    advance_ms(&mut app, 10);
    assert_eq!(clock(&mut app, own).parent(), Some(parent.into()));
    assert_eq!(now(&app, own), ms(10), "it stands still with its parent");
}

#[test]
fn a_replacement_with_a_bad_parent_is_a_warning_and_keeps_the_parent() {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(record));
    let a = spawn_clock(&mut app, Clock::new());
    let b = spawn_clock(&mut app, Clock::of(a));
    let missing = spawn_clock(&mut app, Clock::new());
    app.world_mut().despawn(missing);
    let cycle = ClockError::Cycle(vec![a, b]).to_string();
    let missing = (missing, ClockError::NoSuchClock(missing.into()).to_string());
    for (parent, error) in [(b, cycle), missing] {
        insert(&mut app, a, Clock::of(parent).with_speed(2.0));
        advance_ms(&mut app, 10);
        assert_eq!(reports(), [(Severity::Warning, error)]);
        assert_eq!(clock(&mut app, a).parent(), Some(ClockId::Virtual));
    }
    assert_eq!(now(&app, a), ms(40));
}

#[test]
fn a_new_clock_that_drives_itself_is_a_warning() {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(record));
    let own = app.world_mut().spawn_empty().id();
    insert(&mut app, own, Clock::of(own));
    advance_ms(&mut app, 10);
    let cycle = ClockError::Cycle(vec![own]).to_string();
    assert_eq!(reports(), [(Severity::Warning, cycle)]);
    assert_eq!(now(&app, own), ms(0), "it stands still");
}

#[test]
fn a_clock_can_move_to_the_fixed_schedule_and_back() {
    let mut app = update_app();
    app.insert_resource(Time::<Fixed>::from_duration(ms(10)));
    let own = spawn_clock(&mut app, Clock::new());
    let child = spawn_clock(&mut app, Clock::of(own).with_speed(2.0));
    let callbacks = [own, child].map(|clock| {
        let callback = (Ticks::default(), note_time().on(clock));
        app.world_mut().spawn(callback).id()
    });
    spawn(&mut app, "x", Timer::every(ms(10)).on(child));
    let take = |app: &mut App, millis: u64| {
        advance_ms(app, millis);
        let times = callbacks.map(|callback| times(app, callback));
        (times, fired_at(app))
    };
    assert_eq!(
        take(&mut app, 12),
        ([vec![(12, 12)], vec![(24, 24)]], vec![("x", 10), ("x", 20)])
    );
    set_parent(&mut app, own, ClockId::Fixed).unwrap();
    // The next fixed steps are at 20 and 30 ms.
    assert_eq!(
        take(&mut app, 20),
        (
            [vec![(10, 22), (10, 32)], vec![(20, 44), (20, 64)]],
            vec![("x", 30), ("x", 40), ("x", 50), ("x", 60)]
        )
    );
    set_parent(&mut app, own, ClockId::Virtual).unwrap();
    assert_eq!(
        take(&mut app, 3),
        ([vec![(3, 35)], vec![(6, 70)]], vec![("x", 70)])
    );
}

#[test]
fn built_in_clocks_are_not_entities() {
    let mut app = app();
    let mut clocks = app.world_mut().query::<&Clock>();
    assert_eq!(clocks.iter(app.world()).count(), 0);
    let mut names = app.world_mut().query::<&Name>();
    assert_eq!(names.iter(app.world()).count(), 0);
}

#[test]
fn a_built_in_clock_that_changes_keeps_its_timers_its_callbacks_and_its_children() {
    let mut app = update_app();
    spawn(&mut app, "x", Timer::every(ms(10)));
    let child = spawn_clock(&mut app, Clock::new());
    let callback = app.world_mut().spawn((Ticks::default(), note_time())).id();
    advance_ms(&mut app, 10);
    change_clock(&mut app, ClockId::Virtual, |clock| clock.set_speed(2.0));
    advance_ms(&mut app, 10);
    assert_eq!(times(&mut app, callback), [(10, 10), (20, 30)]);
    assert_eq!(fired_at(&mut app), [("x", 10), ("x", 20), ("x", 30)]);
    assert_eq!(now(&app, child), ms(30));
    change_clock(&mut app, ClockId::Virtual, |clock| {
        let error = ClockError::BuiltIn(ClockId::Virtual);
        assert_eq!(clock.set_parent(ClockId::Real), Err(error));
        clock.pause();
    });
    advance_ms(&mut app, 10);
    assert!(fired(&mut app).is_empty(), "the clock is paused");
}

#[test]
fn reading_clocks_and_timers_does_not_conflict_with_changing_clocks() {
    #[derive(Component)]
    struct Enemy;

    let mut app = app();
    let enemy = app.world_mut().spawn((Enemy, Clock::new())).id();
    let slow = |enemies: Query<Entity, With<Enemy>>,
                clocks: Clocks,
                mut changed: ClocksMut,
                timers: ArmedTimers| {
        for enemy in enemies {
            let speed = clocks.get(ClockId::Virtual).unwrap().speed() / 2.0;
            changed.get_mut(enemy).unwrap().set_speed(speed);
        }
        timers.count()
    };
    assert_eq!(app.world_mut().run_system_cached(slow).unwrap(), 0);
    advance_ms(&mut app, 10);
    assert_eq!(now(&app, enemy), ms(5));
}

#[test]
fn a_removed_clock_cancels_its_timers() {
    let mut app = app();
    let own = spawn_clock(&mut app, Clock::new());
    let timer = spawn(&mut app, "x", Timer::every(ms(10)).on(own));
    advance_ms(&mut app, 0);
    app.world_mut().entity_mut(own).remove::<Clock>();
    app.world_mut().flush();
    assert_eq!(cancelled(&mut app), [(timer, CancelReason::ClockGone)]);
}

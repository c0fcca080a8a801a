//! `OnClock`: inserting it moves what is on an entity by default, and removing it moves it back.

use core::time::Duration;

use crate::support::{errors::*, updates::*, *};
use bevy_app::App;
use bevy_due::{
    CancelReason, OnClock, Timer,
    clock::{ClockError, SpeedModifier},
    prelude::*,
};
use bevy_ecs::{
    error::{FallbackErrorHandler, Severity},
    prelude::*,
};

fn half(app: &mut App) -> Entity {
    spawn_clock(app, Clock::new().with_speed(0.5))
}

/// Returns the clock of a timer, and its remaining time.
fn left(app: &mut App, timer: Entity) -> (ClockId, Duration) {
    let shown = status(app, timer);
    (shown.clock, shown.remaining)
}

fn lifetime(app: &mut App, entity: Entity) -> Option<Duration> {
    app.world_mut()
        .with_timers(|timers| timers.lifetime(entity))
}

fn enter(app: &mut App, unit: Entity, clock: impl Into<ClockId>) {
    let on = OnClock::new(clock);
    app.world_mut().entity_mut(unit).insert(on);
}

fn leave(app: &mut App, unit: Entity) {
    app.world_mut().entity_mut(unit).remove::<OnClock>();
}

#[test]
fn inserting_it_moves_timers_lifetimes_callbacks_and_keyed_timers_with_their_remaining_time() {
    let mut app = update_app();
    let arena = half(&mut app);
    let life = DespawnAfter::new(ms(200));
    let unit = (Timer::every(ms(100)), life, Ticks::default(), note_time());
    let unit = app.world_mut().spawn(unit).id();
    let keyed = set_timer(app.world_mut(), unit, "key", Timer::after(ms(150)));
    advance_ms(&mut app, 30);
    enter(&mut app, unit, arena);
    let on_arena = |millis| (ClockId::Own(arena), ms(millis));
    assert_eq!(left(&mut app, unit), on_arena(70));
    assert_eq!(left(&mut app, keyed), on_arena(120));
    assert_eq!(lifetime(&mut app, unit), Some(ms(170)));
    advance_ms(&mut app, 20);
    assert_eq!(left(&mut app, unit), on_arena(60));
    assert_eq!(left(&mut app, keyed), on_arena(110));
    assert_eq!(lifetime(&mut app, unit), Some(ms(160)));
    let ticks = ticks(&mut app, unit);
    let shown = ticks.iter().map(|tick| (tick.clock, tick.delta));
    assert!(shown.eq([(ClockId::Virtual, ms(30)), (arena.into(), ms(10))]));
    assert_eq!(cancelled(&mut app), []);
}

#[test]
fn another_one_moves_everything_again() {
    let mut app = app();
    let [a, b] = [(); 2].map(|()| half(&mut app));
    let unit = (OnClock::new(a), Timer::after(ms(100)));
    let unit = app.world_mut().spawn(unit).id();
    advance_ms(&mut app, 40);
    for clock in [b.into(), ClockId::Real, a.into()] {
        enter(&mut app, unit, clock);
        assert_eq!(left(&mut app, unit), (clock, ms(80)));
    }
}

#[test]
fn removing_it_moves_everything_back() {
    let mut app = update_app();
    let [arena, of_owner] = [(); 2].map(|()| half(&mut app));
    let owner = app.world_mut().spawn(OnClock::new(of_owner)).id();
    let unit = || (OnClock::new(arena), Timer::after(ms(100)), Ticks::default());
    let free = app.world_mut().spawn((unit(), note_time())).id();
    let owned = app.world_mut().spawn((unit(), OwnedBy(owner))).id();
    let keyed = set_timer(app.world_mut(), free, "key", Timer::after(ms(100)));
    advance_ms(&mut app, 20);
    for unit in [free, owned] {
        leave(&mut app, unit);
    }
    assert_eq!(left(&mut app, free), (ClockId::Virtual, ms(90)));
    assert_eq!(left(&mut app, keyed), (ClockId::Virtual, ms(90)));
    assert_eq!(left(&mut app, owned), (of_owner.into(), ms(90)));
    advance_ms(&mut app, 20);
    let last = ticks(&mut app, free).pop().expect("it was called");
    assert_eq!((last.clock, last.delta), (ClockId::Virtual, ms(20)));
}

#[test]
fn a_new_timer_starts_its_delay_on_the_new_clock() {
    let mut app = app();
    let arena = spawn_clock(&mut app, Clock::of(ClockId::Real).with_now(ms(5000)));
    let life = DespawnAfter::new(ms(200));
    let unit = app.world_mut().spawn((Timer::after(ms(100)), life)).id();
    change_clock(&mut app, ClockId::Virtual, |clock| clock.advance_by(ms(40)));
    assert_eq!(left(&mut app, unit), (ClockId::Virtual, ms(60)));
    enter(&mut app, unit, arena);
    assert_eq!(left(&mut app, unit), (arena.into(), ms(100)));
    assert_eq!(lifetime(&mut app, unit), Some(ms(200)));
    advance_ms(&mut app, 100);
    let deadlines = firings(&mut app).into_iter().map(|fired| fired.deadline());
    assert!(deadlines.eq([ms(5100)]));
}

#[test]
fn a_timer_that_chose_its_clock_stays() {
    let mut app = app();
    let [arena, other] = [(); 2].map(|()| half(&mut app));
    let unit = app.world_mut().spawn_empty().id();
    let named = (OwnedBy(unit), Timer::after(ms(100)).on(ClockId::Real));
    let named = app.world_mut().spawn(named).id();
    let moved = set_timer(app.world_mut(), unit, "moved", Timer::after(ms(100)));
    advance_ms(&mut app, 10);
    let set_clock = app
        .world_mut()
        .change_timer(moved, |timer| timer.set_clock(other).unwrap());
    assert_eq!(set_clock, Ok(()));
    let enters: fn(&mut App, Entity, Entity) = |app, unit, arena| enter(app, unit, arena);
    for change in [enters, |app, unit, _| leave(app, unit)] {
        change(&mut app, unit, arena);
        assert_eq!(left(&mut app, named), (ClockId::Real, ms(90)));
        assert_eq!(left(&mut app, moved), (other.into(), ms(90)));
    }
}

#[test]
fn a_timer_that_moves_takes_a_new_place_among_equal_deadlines() {
    let mut app = app();
    let arena = spawn_clock(&mut app, Clock::new());
    let unit = spawn(&mut app, "moved", Timer::after(ms(10)));
    spawn(&mut app, "there", Timer::after(ms(10)).on(arena));
    advance_ms(&mut app, 5);
    enter(&mut app, unit, arena);
    advance_ms(&mut app, 5);
    assert_eq!(fired(&mut app), ["there", "moved"]);
}

#[test]
fn a_slowed_unit_moves_with_its_clock() {
    let mut app = app();
    let arena = half(&mut app);
    let slowed = spawn(&mut app, "", Timer::after(ms(100)));
    let own = app
        .world_mut()
        .spawn((Clock::new().with_speed(0.5), Timer::after(ms(100))))
        .id();
    let chosen = spawn_clock(&mut app, Clock::of(ClockId::Virtual).with_speed(0.5));
    app.world_mut().spawn(SpeedModifier::new(slowed, 0.5));
    advance_ms(&mut app, 0);
    advance_ms(&mut app, 20);
    let units = [slowed, own, chosen];
    assert_eq!(units.map(|unit| now(&app, unit)), [ms(10); 3]);
    for unit in units {
        enter(&mut app, unit, arena);
    }
    assert_eq!(left(&mut app, slowed), (slowed.into(), ms(90)));
    advance_ms(&mut app, 20);
    assert_eq!(units.map(|unit| now(&app, unit)), [15, 15, 20].map(ms));
    assert_eq!(left(&mut app, slowed), (slowed.into(), ms(85)));
    assert_eq!(left(&mut app, own), (own.into(), ms(85)));
    for unit in units {
        leave(&mut app, unit);
    }
    advance_ms(&mut app, 20);
    assert_eq!(
        units.map(|unit| now(&app, unit)),
        [25, 25, 30].map(ms),
        "back on the clock of the game"
    );
}

#[test]
fn a_modifier_on_an_entity_in_an_arena_counts_on_the_arena() {
    let mut app = app();
    let arena = half(&mut app);
    let slow = (Timer::after(ms(100)), OnClock::new(arena));
    let slow = app.world_mut().spawn(slow).id();
    advance_ms(&mut app, 20);
    let unit = spawn_clock(&mut app, Clock::new());
    let modifier = SpeedModifier::new(unit, 0.5);
    app.world_mut().entity_mut(slow).insert(modifier);
    assert_eq!(
        left(&mut app, slow),
        (arena.into(), ms(90)),
        "`OnClock` comes first"
    );
    leave(&mut app, slow);
    assert_eq!(left(&mut app, slow), (ClockId::Virtual, ms(90)));
}

/// Returns an app, an entity without a clock, and an armed timer and a new one that were put on that clock.
fn timers_on_a_missing_clock() -> (App, Entity, [Entity; 2]) {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(record));
    let arena = app.world_mut().spawn_empty().id();
    let armed = spawn(&mut app, "armed", Timer::after(ms(100)));
    advance_ms(&mut app, 30);
    let new = spawn(&mut app, "new", Timer::after(ms(100)));
    for unit in [armed, new] {
        enter(&mut app, unit, arena);
    }
    (app, arena, [armed, new])
}

#[test]
fn timers_on_a_missing_clock_wait_for_it_until_the_next_run() {
    let (mut app, arena, [armed, new]) = timers_on_a_missing_clock();
    app.world_mut().entity_mut(arena).insert(Clock::new());
    advance_ms(&mut app, 0);
    assert_eq!(left(&mut app, armed), (arena.into(), ms(70)));
    assert_eq!(left(&mut app, new), (arena.into(), ms(100)));
    assert_eq!(reports(), []);
    assert_eq!(cancelled(&mut app), []);
}

#[test]
fn timers_on_a_clock_that_does_not_come_are_cancelled_with_a_warning() {
    let (mut app, arena, [armed, new]) = timers_on_a_missing_clock();
    assert_eq!(cancelled(&mut app), [], "the clock may still come");
    advance_ms(&mut app, 0);
    // The armed one has taken a new place when it moved.
    let gone = [new, armed].map(|timer| (timer, CancelReason::ClockGone));
    assert_eq!(cancelled(&mut app), gone);
    let error = ClockError::NoSuchClock(arena.into()).to_string();
    let warning = (Severity::Warning, error);
    assert_eq!(reports(), [warning.clone(), warning]);
}

/// The effect ends on time, although the clock of the old arena goes.
#[test]
fn a_slow_ends_after_its_unit_has_left_a_lost_arena() {
    for is_lost_first in [false, true] {
        let mut app = app();
        let [arena, next] = [0, 1].map(|_| spawn_clock(&mut app, Clock::new()));
        let unit = spawn(&mut app, "x", Timer::every(1));
        app.world_mut().entity_mut(unit).insert(OnClock::new(arena));
        let slow = (SpeedModifier::new(unit, 0.5), DespawnAfter::new(2));
        let slow = app.world_mut().spawn(slow).id();
        advance_ms(&mut app, 500);
        if is_lost_first {
            app.world_mut().despawn(arena);
        }
        app.world_mut().entity_mut(unit).insert(OnClock::new(next));
        if !is_lost_first {
            app.world_mut().despawn(arena);
        }
        let is_slow = |app: &App| app.world().get_entity(slow).is_ok();
        // Without its clock, the effect is over.
        assert_eq!(is_slow(&app), !is_lost_first);
        advance_ms(&mut app, 1_490);
        assert_eq!(is_slow(&app), !is_lost_first);
        advance_ms(&mut app, 10);
        assert!(!is_slow(&app));
    }
}

//! Manual clocks: they move only when they are told.

use core::time::Duration;

use crate::support::{updates::*, *};
use bevy_app::App;
use bevy_due::{PausedBy, Timer, clock::SpeedModifier, prelude::*};
use bevy_ecs::{prelude::*, system::RunSystemOnce};
use bevy_time::{Time, Virtual};

fn pause_game(app: &mut App) {
    app.world_mut().resource_mut::<Time<Virtual>>().pause();
}

/// Takes the log: the tag, the deadline and the lateness of each firing, in milliseconds.
fn late(app: &mut App) -> Vec<(u128, u128)> {
    let firings = firings(app).into_iter();
    firings
        .map(|fired| (fired.deadline().as_millis(), fired.lateness().as_millis()))
        .collect()
}

#[test]
fn a_manual_clock_stands_still_while_the_game_runs_and_while_it_is_paused() {
    let mut app = app();
    let turns = spawn_clock(&mut app, Clock::manual().with_speed(3.0));
    let below = spawn_clock(&mut app, Clock::of(turns));
    assert_eq!(clock(&mut app, turns).parent(), None);
    spawn(&mut app, "x", Timer::after(ms(10)).on(turns));
    spawn(&mut app, "below", Timer::after(ms(10)).on(below));
    for pauses in [false, true] {
        if pauses {
            pause_game(&mut app);
        }
        advance_ms(&mut app, 100);
        assert_eq!([turns, below].map(|clock| now(&app, clock)), [ms(0); 2]);
        assert!(fired(&mut app).is_empty());
    }
    let speed = move |clocks: Clocks| clocks.speed(turns);
    let speed = app.world_mut().run_system_once(speed).unwrap();
    assert_eq!(speed, Ok(0.0));
}

#[test]
fn what_a_manual_clock_passes_fires_in_the_next_frame_with_its_lateness() {
    for pauses in [false, true] {
        let mut app = app();
        let turns = spawn_clock(&mut app, Clock::manual());
        spawn(&mut app, "x", Timer::every(ms(20)).on(turns));
        spawn(&mut app, "y", Timer::after(ms(30)).on(turns));
        if pauses {
            pause_game(&mut app);
        }
        change_clock(&mut app, turns, |clock| clock.advance_by(ms(50)));
        assert_eq!(now(&app, turns), ms(50), "it shows at once");
        assert_eq!(late(&mut app), [], "nothing fires inside the call");
        advance_ms(&mut app, 1);
        assert_eq!(late(&mut app), [(20, 30), (30, 20), (40, 10)]);
        advance_ms(&mut app, 100);
        assert_eq!(late(&mut app), []);
        change_clock(&mut app, turns, |clock| clock.advance_to(ms(60)));
        advance_ms(&mut app, 1);
        assert_eq!(late(&mut app), [(60, 0)]);
        spawn(&mut app, "zero", Timer::after(ms(0)).on(turns));
        advance_ms(&mut app, 1);
        assert_eq!(late(&mut app), [(60, 0)], "a zero delay needs no time");
    }
}

#[test]
fn a_manual_clock_that_goes_back_takes_the_deadlines_along() {
    let mut app = app();
    let song = spawn_clock(&mut app, Clock::manual().with_now(ms(500)));
    let timer = spawn(&mut app, "x", Timer::after(ms(100)).on(song));
    advance_ms(&mut app, 1);
    change_clock(&mut app, song, |clock| clock.advance_to(ms(550)));
    change_clock(&mut app, song, |clock| clock.advance_to(ms(10)));
    assert_eq!(now(&app, song), ms(550), "a position that jitters");
    change_clock(&mut app, song, |clock| clock.set_now(ms(10)));
    assert_eq!(now(&app, song), ms(10));
    let shown = status(&mut app, timer);
    assert_eq!((shown.remaining, shown.deadline), (ms(50), ms(60)));
    change_clock(&mut app, song, |clock| clock.advance_to(ms(59)));
    advance_ms(&mut app, 1);
    assert_eq!(late(&mut app), []);
    change_clock(&mut app, song, |clock| clock.advance_to(ms(61)));
    advance_ms(&mut app, 1);
    assert_eq!(late(&mut app), [(60, 1)]);
}

#[test]
fn clocks_below_a_manual_clock_follow_it() {
    let mut app = app();
    let turns = spawn_clock(&mut app, Clock::manual());
    let fast = spawn_clock(&mut app, Clock::of(turns).with_speed(2.0));
    let below = spawn_clock(&mut app, Clock::of(fast).with_speed(0.25));
    spawn(&mut app, "below", Timer::after(ms(5)).on(below));
    spawn(&mut app, "fast", Timer::every(ms(8)).on(fast));
    change_clock(&mut app, turns, |clock| clock.advance_by(ms(10)));
    assert_eq!([fast, below].map(|clock| now(&app, clock)), [20, 5].map(ms));
    advance_ms(&mut app, 1);
    assert_eq!(
        fired_at(&mut app),
        [("fast", 8), ("fast", 16), ("below", 5)]
    );
    change_clock(&mut app, fast, |clock| clock.pause());
    change_clock(&mut app, turns, |clock| clock.advance_by(ms(10)));
    advance_ms(&mut app, 1);
    assert_eq!([fast, below].map(|clock| now(&app, clock)), [20, 5].map(ms));
    assert_eq!(fired_at(&mut app), []);
}

#[test]
fn a_paused_manual_clock_fires_nothing() {
    for stopped in [Clock::manual().paused(), Clock::manual().with_speed(0.0)] {
        let mut app = app();
        let turns = spawn_clock(&mut app, stopped);
        spawn(&mut app, "x", Timer::after(ms(10)).on(turns));
        change_clock(&mut app, turns, |clock| clock.advance_by(ms(15)));
        advance_ms(&mut app, 100);
        assert_eq!(late(&mut app), []);
        change_clock(&mut app, turns, |clock| {
            clock.unpause();
            clock.set_speed(1.0);
        });
        advance_ms(&mut app, 100);
        assert_eq!(late(&mut app), [(10, 5)]);
    }
}

#[test]
fn time_that_a_manual_clock_skips_fires_each_timer_once() {
    let mut app = app();
    let turns = spawn_clock(&mut app, Clock::manual());
    let below = spawn_clock(&mut app, Clock::of(turns));
    for clock in [turns, below] {
        spawn(&mut app, "x", Timer::every(ms(10)).on(clock));
    }
    change_clock(&mut app, turns, |clock| clock.skip_by(ms(35)));
    change_clock(&mut app, turns, |clock| clock.advance_by(ms(10)));
    advance_ms(&mut app, 1);
    let fired = firings(&mut app);
    let missed = fired.iter().map(|fired| (fired.deadline(), fired.missed()));
    let expected = [(ms(10), 2), (ms(40), 0), (ms(10), 2), (ms(40), 0)];
    assert!(missed.eq(expected), "{fired:?}");
}

#[test]
fn the_delta_of_a_manual_clock_is_what_it_was_advanced_by_since_the_last_frame() {
    let mut app = update_app();
    let turns = spawn_clock(&mut app, Clock::manual());
    let below = spawn_clock(&mut app, Clock::of(turns).with_speed(2.0));
    let callbacks = [turns, below].map(|clock| {
        let callback = (Ticks::default(), note_time().on(clock));
        app.world_mut().spawn(callback).id()
    });
    advance_ms(&mut app, 10);
    change_clock(&mut app, turns, |clock| clock.advance_by(ms(30)));
    change_clock(&mut app, turns, |clock| clock.advance_by(ms(5)));
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 10);
    let [turns, below] = callbacks.map(|callback| times(&mut app, callback));
    assert_eq!(turns, [(0, 0), (35, 35), (0, 35)]);
    assert_eq!(below, [(0, 0), (70, 70), (0, 70)]);
}

#[test]
fn a_manual_clock_can_be_fast_forwarded() {
    for start in [Clock::manual(), Clock::manual().paused()] {
        let mut app = app();
        let turns = spawn_clock(&mut app, start);
        let below = spawn_clock(&mut app, Clock::of(turns).with_speed(0.5));
        spawn(&mut app, "turns", Timer::every(ms(10)).on(turns));
        spawn(&mut app, "below", Timer::after(ms(6)).on(below));
        spawn(&mut app, "game", Timer::after(ms(1)));
        let stats = app.world_mut().fast_forward(turns, ms(25));
        assert_eq!(stats.map(|stats| stats.fired), Ok(3));
        let fired = firings(&mut app);
        let deadlines = fired
            .iter()
            .map(|fired| (fired.deadline(), fired.lateness()));
        let expected = [10, 6, 20].map(|deadline| (ms(deadline), ms(0)));
        assert!(deadlines.eq(expected), "{fired:?}");
        assert_eq!(now(&app, turns), ms(25));
        let next = app.world_mut().fast_forward_to_next(turns);
        assert_eq!(next, Ok(Some(ms(5))));
        assert_eq!(late(&mut app), [(30, 0)]);
    }
}

#[test]
fn a_clock_becomes_manual_and_back() {
    let mut app = app();
    let own = spawn_clock(&mut app, Clock::new());
    spawn(&mut app, "x", Timer::every(ms(10)).on(own));
    advance_ms(&mut app, 15);
    assert_eq!(late(&mut app), [(10, 5)]);
    app.world_mut().entity_mut(own).insert(Clock::manual());
    advance_ms(&mut app, 100);
    change_clock(&mut app, own, |clock| clock.advance_by(ms(10)));
    advance_ms(&mut app, 100);
    assert_eq!(late(&mut app), [(20, 5)]);
    change_clock(&mut app, own, |clock| {
        clock.set_parent(ClockId::Real).unwrap();
    });
    advance_ms(&mut app, 5);
    assert_eq!(late(&mut app), [(30, 0)]);
    assert_eq!(now(&app, own), ms(30));
}

#[test]
fn a_system_advances_a_manual_clock_before_the_timers_run() {
    use bevy_app::PreUpdate;
    use bevy_due::{ClocksMut, DueSystems};

    let mut app = app();
    let song = spawn_clock(&mut app, Clock::manual());
    let follow = move |mut clocks: ClocksMut, mut position: Local<Duration>| {
        *position += ms(25);
        clocks.get_mut(song).unwrap().advance_to(*position);
    };
    app.add_systems(PreUpdate, follow.before(DueSystems::Timers));
    spawn(&mut app, "beat", Timer::every(ms(20)).on(song));
    advance_ms(&mut app, 1);
    assert_eq!(
        late(&mut app),
        [(20, 5)],
        "in the frame in which the song gets there"
    );
    advance_ms(&mut app, 1);
    assert_eq!(late(&mut app), [(40, 10)]);
}

#[cfg(feature = "serialize")]
#[test]
fn a_saved_manual_clock_is_manual_and_goes_on_from_its_time() {
    use bevy_due::save::SaveWorldExt;
    use bevy_ecs::entity::EntityHashMap;

    let mut before = app();
    let turns = spawn_clock(&mut before, Clock::manual());
    let below = spawn_clock(&mut before, Clock::of(turns).with_speed(1.0 / 3.0));
    let timers = [turns, below].map(|clock| spawn(&mut before, "", Timer::every(ms(20)).on(clock)));
    change_clock(&mut before, turns, |clock| clock.advance_by(ms(50)));
    advance_ms(&mut before, 10);
    firings(&mut before);
    change_clock(&mut before, turns, |clock| clock.skip_by(ms(45)));
    let saved = before.world_mut().save_timers().expect("it is data");

    let mut after = app();
    let mut map = EntityHashMap::default();
    let loaded = after.world_mut().load_timers(&saved, &mut map);
    assert_eq!(loaded, Ok(()));
    assert_eq!(clock(&mut after, map[&turns]).parent(), None);
    for by in [0, 0, 7, 300] {
        for (app, turns) in [(&mut before, turns), (&mut after, map[&turns])] {
            change_clock(app, turns, |clock| clock.advance_by(ms(by)));
            advance_ms(app, 100);
        }
        for clock in [turns, below] {
            assert_eq!(now(&after, map[&clock]), now(&before, clock));
        }
        let expected = firings(&mut before).into_iter();
        let expected = expected.map(|it| (map[&it.entity()], it.deadline(), it.missed()));
        let shown = firings(&mut after).into_iter();
        let shown = shown.map(|it| (it.entity(), it.deadline(), it.missed()));
        assert_eq!(shown.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
    assert!(timers.iter().all(|timer| map.contains_key(timer)));
}

#[cfg(feature = "serialize")]
#[test]
fn a_manual_clock_survives_serde() {
    let clock = Clock::manual().with_now(ms(70)).with_speed(0.5).paused();
    let text = ron::to_string(&clock).expect("it is data");
    assert_eq!(ron::from_str::<Clock>(&text), Ok(clock));
}

/// On the clock itself, a factor of zero would hold up its own end.
#[test]
fn what_affects_a_manual_clock_ends_on_the_game_clock() {
    let mut app = app();
    let turns = spawn_clock(&mut app, Clock::manual());
    spawn(&mut app, "x", Timer::after(ms(10)).on(turns));
    let stop = (SpeedModifier::new(turns, 0.0), DespawnAfter::new(ms(50)));
    let stop = app.world_mut().spawn(stop).id();
    app.world_mut().entity_mut(turns).pause_for(ms(30));
    change_clock(&mut app, turns, |clock| clock.advance_by(ms(10)));
    advance_ms(&mut app, 30);
    assert!(app.world().get::<PausedBy>(turns).is_none());
    assert_eq!(late(&mut app), []);
    advance_ms(&mut app, 20);
    assert!(app.world().get_entity(stop).is_err());
    advance_ms(&mut app, 1);
    assert_eq!(late(&mut app), [(10, 0)]);
}

#[test]
fn time_that_passes_after_a_skip_is_not_skipped() {
    let mut app = app();
    let sun = spawn_clock(&mut app, Clock::new());
    spawn(&mut app, "x", Timer::every(1).on(sun));
    app.update();
    change_clock(&mut app, sun, |clock| clock.skip_by(10));
    advance_ms(&mut app, 3_000);
    let shown: Vec<_> = firings(&mut app)
        .iter()
        .map(|fired| (fired.deadline().as_secs(), fired.missed()))
        .collect();
    assert_eq!(shown, [(1, 9), (11, 0), (12, 0), (13, 0)]);
}

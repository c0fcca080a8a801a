//! Calls that games ask for.

use std::{env, process::Command};

use crate::support::{errors::*, *};
use bevy_app::App;
use bevy_due::{Timer, prelude::*, timer::TimerStatus};
use bevy_ecs::prelude::*;

#[derive(Resource, Default, PartialEq, Debug)]
struct Log(Vec<(&'static str, u64)>);

fn note(app: &mut App, name: &'static str, timer: Timer) -> Entity {
    app.init_resource::<Log>();
    let mut timer = app.world_mut().spawn(timer);
    let note = move |fired: On<TimerFired>, mut log: ResMut<Log>| {
        log.0.push((name, fired.deadline().as_secs()));
    };
    timer.observe(note).id()
}

/// The bed: a handler of a timer lets three days pass, and the merchant comes on each of them.
#[test]
fn a_handler_lets_days_pass() {
    let mut app = app();
    let sun = app.world_mut().spawn(Clock::new()).id();
    note(&mut app, "merchant", Timer::every(24).on(sun));
    let bed = note(&mut app, "bed", Timer::after(1).on(sun));
    let sleep = move |_: On<TimerFired>, mut commands: Commands| commands.fast_forward(sun, 72);
    app.world_mut().entity_mut(bed).observe(sleep);
    note(&mut app, "later in the run", Timer::after(1).on(sun));
    advance(&mut app, ms(1000));
    let days = [24, 48, 72].map(|hour| ("merchant", hour));
    let mut expected = vec![("bed", 1), ("later in the run", 1)];
    expected.extend(days);
    assert_eq!(app.world().resource::<Log>().0, expected);
    assert_eq!(app.world().clock_now(sun), Ok(ms(73_000)));
}

/// Each skip would lead to the next one.
#[test]
fn a_handler_that_skips_to_itself_does_not_loop() {
    let mut app = app();
    let sun = app.world_mut().spawn(Clock::new()).id();
    let bed = note(&mut app, "bed", Timer::every(1).on(sun));
    let sleep = move |_: On<TimerFired>, mut commands: Commands| commands.fast_forward(sun, 1);
    app.world_mut().entity_mut(bed).observe(sleep);
    advance(&mut app, ms(1000));
    assert_eq!(app.world().resource::<Log>().0, [("bed", 1), ("bed", 2)]);
    advance(&mut app, ms(0));
    assert_eq!(app.world().resource::<Log>().0.len(), 3);
}

#[test]
fn a_skip_without_a_clock_is_an_error_that_names_it() {
    let mut app = crate::errors::error_app();
    let nowhere = app.world_mut().spawn_empty().id();
    reports();
    app.world_mut().commands().fast_forward(nowhere, 1);
    app.world_mut().flush();
    let (_, text) = reports().pop().expect("it is reported");
    assert!(text.contains(&nowhere.to_string()), "{text}");
}

#[test]
fn a_new_game_in_the_same_app_draws_the_same_delays() {
    let mut app = app();
    let mut game = |seed: Option<u64>| {
        let world = app.world_mut();
        if let Some(seed) = seed {
            world.set_delay_seed(seed);
        }
        let timers = || Timer::every_between(1.0..=9.0).slack(3.0);
        let timers = [(); 5].map(|()| world.spawn(timers()).id());
        let waits = world.with_timers(|all| timers.map(|timer| all.get(timer).unwrap().remaining));
        timers
            .into_iter()
            .for_each(|timer| _ = world.despawn(timer));
        waits
    };
    let first = game(Some(3));
    assert_ne!(game(None), first, "the sequence goes on");
    assert_eq!(game(Some(3)), first);
    assert_ne!(game(Some(4)), first);
}

#[test]
fn a_closure_that_changes_a_timer_reads_it() {
    let mut app = app();
    let timer = app.world_mut().spawn(Timer::every(4)).id();
    advance(&mut app, ms(0));
    advance(&mut app, ms(5000));
    let world = app.world_mut();
    let changed = world.change_timer(timer, |timer| {
        assert_eq!((timer.count(), timer.remaining()), (1, ms(3000)));
        timer.hasten_by(2);
        assert_eq!(timer.remaining(), ms(1000));
        timer.hasten_by(2);
        assert_eq!(timer.remaining(), ms(0));
    });
    assert_eq!(changed, Ok(()));
    advance(&mut app, ms(0));
    let status = app.world_mut().with_timers(|timers| timers.get(timer));
    assert_eq!(
        status.map(|it| (it.count, it.remaining)),
        Some((2, ms(3000)))
    );
}

#[test]
fn an_effect_is_extended_or_starts() {
    fn enrage(hero: &mut EntityWorldMut) {
        let extend = |world: &mut World, hero| {
            world
                .change_keyed_timer(hero, "rage", |rage| rage.delay_by(3))
                .is_ok()
        };
        let id = hero.id();
        if !hero.world_scope(|world| extend(world, id)) {
            hero.set_timer("rage", Timer::after(3));
        }
    }
    let mut app = app();
    let hero = app.world_mut().spawn_empty().id();
    let has = |app: &mut App| {
        app.world_mut()
            .with_timers(|timers| timers.has(hero, "rage"))
    };
    assert!(!has(&mut app));
    enrage(&mut app.world_mut().entity_mut(hero));
    advance(&mut app, ms(1000));
    enrage(&mut app.world_mut().entity_mut(hero));
    advance(&mut app, ms(4900));
    assert!(has(&mut app));
    advance(&mut app, ms(100));
    assert!(!has(&mut app));
}

/// A server has sent the state. This world has the timer of another entity only.
#[test]
fn a_status_from_elsewhere_stays_and_a_local_one_ends() {
    let mut app = app();
    let mut sent = TimerStatus::done(app.world_mut().spawn_empty().id());
    (sent.remaining, sent.wait, sent.left) = (ms(700), ms(1000), Some(3));
    let remote = app.world_mut().spawn(sent).id();
    let local = (Timer::after(1), TimerStatus::default());
    let local = app.world_mut().spawn(local).id();
    advance(&mut app, ms(500));
    let status = |app: &App, entity| *app.world().get::<TimerStatus>(entity).unwrap();
    assert_eq!(status(&app, remote), sent);
    assert_eq!(status(&app, local).remaining, ms(500));
    advance(&mut app, ms(500));
    assert_eq!(status(&app, local), TimerStatus::done(local));
    let mut newer = sent;
    newer.remaining = ms(600);
    *app.world_mut().get_mut::<TimerStatus>(remote).unwrap() = newer;
    advance(&mut app, ms(500));
    assert_eq!(status(&app, remote), newer);
}

/// The README's example has no logger. The test runs itself to see what it prints.
#[test]
fn without_a_logger_a_misspelt_key_is_seen_once() {
    let play = || {
        let mut app = app();
        let boss = app.world_mut().spawn_empty().id();
        for _ in 0..3 {
            let mut commands = app.world_mut().commands();
            let mut boss = commands.entity(boss);
            boss.change_timer("enarge", |timer| timer.restart());
            app.update();
        }
    };
    if let Some(shown) = shown_by("without_a_logger_a_misspelt_key_is_seen_once", play) {
        for text in [
            "no timer has had the key \"enarge\"",
            "has no armed timer \"enarge\"",
        ] {
            assert_eq!(shown.matches(text).count(), 1, "{shown}");
        }
    }
}

/// Returns what a test of this module shows on standard error. It plays in a process of its own, where this function
/// returns `None`.
fn shown_by(test: &str, play: impl FnOnce()) -> Option<String> {
    if env::var_os("PLAYS_ALONE").is_some() {
        play();
        return None;
    }
    let mut program = Command::new(env::current_exe().expect("it runs"));
    let name = format!("designers::calls::{test}");
    program
        .args(["--exact", &name, "--nocapture"])
        .env("PLAYS_ALONE", "1");
    let shown = program.output().expect("it runs").stderr;
    Some(String::from_utf8_lossy(&shown).into_owned())
}

//! Probable mistakes are reported once, with the timer and the place in the code that armed it.

mod support;

use core::{cell::RefCell, time::Duration};

use bevy_app::prelude::*;
use bevy_due::{
    ClockId, DueCommandsExt, DueEntityCommandsExt, DueWorldExt, Keyed, OwnedBy, Timer, TimerFired,
};
use bevy_ecs::{
    change_detection::MaybeLocation,
    error::{BevyError, ErrorContext, FallbackErrorHandler, Severity},
    prelude::*,
};
use bevy_time::{Fixed, Time, Virtual};
use support::*;

thread_local!(static REPORTS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) });

fn record(error: BevyError, _: ErrorContext) {
    assert_eq!(error.severity(), Severity::Warning);
    let text = error.to_string().lines().next().unwrap_or("").to_owned();
    REPORTS.with_borrow_mut(|reports| reports.push(text));
}

fn warning_app() -> App {
    let mut app = unobserved_app();
    app.insert_resource(FallbackErrorHandler(record));
    app
}

/// Runs frames of 16 ms, each after an `act`.
fn play(app: &mut App, frames: usize, mut act: impl FnMut(&mut World, usize)) {
    for frame in 0..frames {
        act(app.world_mut(), frame);
        app.world_mut().flush();
        advance_ms(app, 16);
    }
}

/// Takes the only warning so far.
#[track_caller]
fn only_warning() -> String {
    let reports = REPORTS.take();
    assert_eq!(reports.len(), 1, "one warning, not {reports:#?}");
    reports.into_iter().next().unwrap()
}

#[track_caller]
fn assert_no_warning() {
    assert_eq!(REPORTS.take(), [""; 0]);
}

/// Asserts that a text has all these parts, and the place in the code if Bevy tracks it.
#[track_caller]
fn assert_names(text: &str, parts: &[String], place: MaybeLocation) {
    for part in parts {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    let place = place.into_option();
    let place = place.map(|at| format!("armed at {}:{}:", at.file(), at.line()));
    assert_eq!(
        place.is_some(),
        text.contains("armed at"),
        "a place in: {text}"
    );
    if let Some(place) = place {
        assert!(text.contains(&place), "{place} is not in: {text}");
    }
}

const SECOND: usize = 1000 / 16 + 1;
const LONG: usize = 20 * SECOND;

#[test]
fn a_timer_that_is_inserted_again_in_every_frame_is_reported_once() {
    let mut app = warning_app();
    let bomb = app.world_mut().spawn(Name::new("bomb")).id();
    let mut place = MaybeLocation::caller();
    play(&mut app, 2 * LONG, |world, _| {
        let mut bomb = world.entity_mut(bomb);
        #[rustfmt::skip]
        let _ = (place = MaybeLocation::caller(), bomb.insert(Timer::after(1.0)));
    });
    let parts = ["\"bomb\"".to_owned(), bomb.to_string()];
    let parts = [&parts[..], &["the clock virtual".to_owned()]].concat();
    assert_names(&only_warning(), &parts, place);
}

#[test]
fn a_timer_that_is_set_again_in_every_frame_is_reported_with_its_key() {
    type Set = fn(&mut World, Entity) -> MaybeLocation;
    #[rustfmt::skip]
    let ways: [Set; 3] = [
        |world, mage| {
            let mut commands = world.commands();
            let mut mage = commands.entity(mage);
            let (here, _) = (MaybeLocation::caller(), mage.set_timer("cast", Timer::after(0.5)));
            here
        },
        |world, mage| {
            let mut mage = world.entity_mut(mage);
            let (here, _) = (MaybeLocation::caller(), mage.set_timer("cast", Timer::after(0.5)));
            here
        },
        |world, mage| {
            let cast = (OwnedBy(mage), Keyed::new("cast"), Timer::after(0.5));
            let (here, _) = (MaybeLocation::caller(), world.spawn(cast));
            here
        },
    ];
    for set in ways {
        let mut app = warning_app();
        let mage = app.world_mut().spawn(Name::new("mage")).id();
        let mut place = MaybeLocation::caller();
        play(&mut app, LONG, |world, _| place = set(world, mage));
        let parts = ["\"cast\"", "\"mage\""].map(str::to_owned);
        assert_names(&only_warning(), &parts, place);
    }
}

#[test]
fn a_timer_that_is_rearmed_for_a_while_is_not_reported() {
    let mut app = warning_app();
    let idle = app.world_mut().spawn_empty().id();
    // The player holds a stick, but not for the whole delay.
    play(&mut app, LONG, |world, _| {
        world.entity_mut(idle).insert(Timer::after(60.0));
    });
    play(&mut app, 61 * SECOND, |_, _| {});
    // Input now and then, with a pause in between.
    play(&mut app, 2 * LONG, |world, frame| {
        if !frame.is_multiple_of(SECOND) {
            world.entity_mut(idle).insert(Timer::after(0.3));
        }
    });
    assert_no_warning();
}

#[test]
fn a_timer_that_is_rearmed_in_every_second_frame_is_not_reported() {
    let mut app = warning_app();
    let timer = app.world_mut().spawn_empty().id();
    play(&mut app, 2 * LONG, |world, frame| {
        if frame % 2 == 0 {
            world.entity_mut(timer).insert(Timer::after(0.5));
        }
    });
    assert_no_warning();
}

#[test]
fn timers_of_many_entities_are_not_reported() {
    let mut app = warning_app();
    let [one, two] = [(); 2].map(|()| app.world_mut().spawn_empty().id());
    play(&mut app, LONG, |world, frame| {
        world.spawn(Timer::after(1.0));
        let entity = if frame % 4 < 2 { one } else { two };
        world.entity_mut(entity).insert(Timer::after(0.5));
    });
    assert_no_warning();
}

#[test]
fn a_timer_that_fires_before_it_is_rearmed_is_not_reported() {
    let mut app = warning_app();
    let [periodic, short] = [(); 2].map(|()| app.world_mut().spawn_empty().id());
    play(&mut app, LONG, |world, _| {
        let every_step = Timer::every(ms(16));
        world.entity_mut(periodic).insert(every_step);
        world.entity_mut(short).insert(Timer::after(ms(10)));
    });
    assert_no_warning();
}

#[test]
fn a_timer_with_the_same_deadline_in_every_frame_fires_and_is_not_reported() {
    let mut app = warning_app();
    let timer = app.world_mut().spawn_empty().id();
    play(&mut app, 700, |world, _| {
        world.entity_mut(timer).insert(Timer::at(ms(16 * 700)));
    });
    play(&mut app, 5, |_, _| {});
    assert!(
        !app.world().entity(timer).contains::<Timer>(),
        "it has fired"
    );
    assert_no_warning();
}

#[test]
fn a_timer_that_is_restarted_on_purpose_is_not_reported() {
    let mut app = warning_app();
    let coyote = app.world_mut().spawn(Timer::after(0.1)).id();
    let zone = app.world_mut().spawn_empty().id();
    play(&mut app, LONG, |world, _| {
        let mut commands = world.commands();
        commands
            .entity(coyote)
            .change_own_timer(|timer| timer.restart());
        commands
            .entity(zone)
            .insert_for(0.5, Name::new("in the zone"));
    });
    assert_no_warning();
}

#[test]
fn an_owner_that_keeps_growing_is_reported_once() {
    let mut app = warning_app();
    let boss = app.world_mut().spawn(Name::new("boss")).id();
    let mut place = MaybeLocation::caller();
    play(&mut app, 4200, |world, _| {
        let poison = (OwnedBy(boss), Name::new("poison"), Timer::every(1.0));
        #[rustfmt::skip]
        let _ = (place = MaybeLocation::caller(), world.spawn(poison));
    });
    let parts = ["\"boss\"", "2048", "\"poison\"", "clock virtual"].map(str::to_owned);
    assert_names(&only_warning(), &parts, place);
}

#[test]
fn an_owner_with_many_timers_is_not_reported() {
    let mut app = warning_app();
    let [boss, level] = [(); 2].map(|()| app.world_mut().spawn_empty().id());
    play(&mut app, 3 * SECOND, |world, frame| {
        if frame % SECOND == 0 {
            // A boss that gets its timers at once, whatever it had before.
            let timers = if frame == 0 { 600 } else { 2500 };
            for _ in 0..timers {
                world.spawn((OwnedBy(boss), Timer::after(9.0)));
            }
        }
    });
    // Timers that end: there are never many.
    play(&mut app, 4000, |world, _| {
        world.spawn((OwnedBy(level), Timer::after(5.0)));
    });
    assert_no_warning();
}

/// Without `track_location`, all places are equal.
#[test]
fn bevy_tracks_the_caller_of_the_crate() {
    let mut app = warning_app();
    let world = app.world_mut();
    let (hero, data) = (world.spawn_empty().id(), Name::new("data"));
    let mut commands = world.commands();
    #[rustfmt::skip]
    let (place, armed) = (MaybeLocation::caller(), [
        commands.after(1.0).queue(|_| {}).id(), commands.every(1.0).run(|| {}).id()
    ]);
    #[rustfmt::skip]
    let (here, _) = (MaybeLocation::caller(), commands.entity(hero).insert_for(1.0, data.clone()));
    world.flush();
    let expected = line(place).map(|(file, line)| (file, line + 1));
    assert_eq!(
        armed.map(|timer| line_of::<Timer>(world, timer)),
        [expected; 2]
    );
    assert_eq!(line_of::<Name>(world, hero), line(here));

    let mut commands = world.commands();
    #[rustfmt::skip]
    let (here, _) = (MaybeLocation::caller(), commands.entity(hero).refresh_timer("key", Timer::after(1.0)));
    world.flush();
    let refreshed = world.with_timers(|timers| timers.keyed(hero, "key").unwrap().entity);
    assert_eq!(line_of::<Timer>(world, refreshed), line(here));

    let mut hero_mut = world.entity_mut(hero);
    let (here, _) = (MaybeLocation::caller(), hero_mut.insert_for(ms(9), data));
    assert_eq!(line_of::<Name>(world, hero), line(here));
}

type Line = Option<(&'static str, u32)>;

fn line(place: MaybeLocation) -> Line {
    let place = place.into_option();
    place.map(|place| (place.file(), place.line()))
}

/// Returns the line that inserted a component.
fn line_of<C: Component>(world: &World, entity: Entity) -> Line {
    line(world.entity(entity).get_ref::<C>().unwrap().changed_by())
}

fn pause(app: &mut App) {
    app.world_mut().resource_mut::<Time<Virtual>>().pause();
}

fn tick(world: &mut World) -> (Entity, MaybeLocation) {
    let tick = (
        Name::new("tick"),
        Timer::every(Duration::from_micros(20)).on(ClockId::Real),
    );
    let (place, tick) = (MaybeLocation::caller(), world.spawn(tick).id());
    (tick, place)
}

#[test]
fn messages_that_pile_up_during_a_pause_are_reported_once() {
    let mut app = warning_app();
    let (ticker, place) = tick(app.world_mut());
    pause(&mut app);
    play(&mut app, 300, |_, _| {});
    let parts = ["TimerFired", "\"tick\"", "clock real"].map(str::to_owned);
    let parts = [&parts[..], &[ticker.to_string()]].concat();
    assert_names(&only_warning(), &parts, place);
}

#[test]
fn messages_of_a_short_pause_are_not_reported() {
    let mut app = warning_app();
    tick(app.world_mut());
    pause(&mut app);
    play(&mut app, 50, |_, _| {});
    assert_no_warning();
}

#[test]
fn messages_that_are_dropped_in_time_are_not_reported() {
    let mut app = warning_app();
    app.insert_resource(Time::<Fixed>::from_duration(ms(16)))
        .init_resource::<Read>()
        .add_systems(Update, read);
    tick(app.world_mut());
    play(&mut app, 300, |_, _| {});
    assert_no_warning();
    assert!(app.world().resource::<Read>().0 > 100_000);
}

#[derive(Resource, Default)]
struct Read(usize);

fn read(mut fired: MessageReader<TimerFired>, mut read: ResMut<Read>) {
    read.0 += fired.read().count();
}

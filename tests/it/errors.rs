//! Errors reach Bevy's error handler in one way: with the cause, the place and the entity.

use std::panic::catch_unwind;

use core::panic::AssertUnwindSafe;

use crate::support::{errors::*, *};
use bevy_app::App;
use bevy_due::{
    ArmedTimers, Clocks, ClocksMut, Timer,
    clock::ClockError,
    message::{Delivery, MessageCommandsExt},
    prelude::*,
};
use bevy_ecs::{
    error::{FallbackErrorHandler, Severity},
    prelude::*,
    resource::IsResource,
    system::RunSystemOnce,
};
use bevy_time::TimePlugin;

pub(crate) fn error_app() -> App {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(record));
    app
}

#[derive(Component)]
struct Missing;

fn fails() -> Result {
    Err("no luck".into())
}

fn is_skipped(_: Single<&Missing>) {}

#[test]
fn errors_of_callbacks_name_the_cause_the_place_and_the_entity() {
    let mut app = error_app();
    app.world_mut()
        .add_timer_handler("fails", |_: In<TimerFired>| fails());
    let named = (Timer::after(ms(10)), TimerAction::named("fails"));
    let named = app.world_mut().spawn(named).id();
    let closure = TimerAction::call(|_, _| fails());
    let closure = app.world_mut().spawn((Timer::after(ms(10)), closure)).id();
    let mut commands = app.world_mut().commands();
    let system = commands.after(ms(10)).run(fails).id();
    let capture = String::from("no luck");
    let capture = move || -> Result { Err(capture.clone().into()) };
    let capture = commands.after(ms(10)).run(capture).id();
    let update = app.world_mut().spawn(UpdateComponent::new(|_| fails()));
    let update = update.id();
    advance_ms(&mut app, 10);
    let reports = reports();
    let expected = [
        (named, "timer handler \"fails\""),
        (closure, "{{closure}}"),
        (system, "errors::fails"),
        (capture, "{{closure}}"),
        (update, "UpdateComponent"),
    ];
    assert_eq!(reports.len(), expected.len(), "{reports:?}");
    for (report, (entity, place)) in reports.iter().zip(expected) {
        assert_eq!(report.0, Severity::Panic, "{report:?}");
        let text = &report.1;
        let end = format!("{place} of {entity}: no luck");
        assert!(text.ends_with(&end), "{text:?} should end with {end:?}");
    }
}

#[test]
fn a_system_without_its_parameters_is_skipped_without_a_report() {
    let mut app = error_app();
    app.world_mut()
        .add_timer_handler("skip", |_: In<TimerFired>, _: Single<&Missing>| {});
    let named = (Timer::every(ms(10)), TimerAction::named("skip"));
    app.world_mut().spawn(named);
    let captured = String::new();
    let mut commands = app.world_mut().commands();
    commands.every(ms(10)).run(is_skipped);
    commands.every(ms(10)).run(move |_: Single<&Missing>| {
        _ = &captured;
    });
    advance_ms(&mut app, 30);
    assert_eq!(reports(), []);
}

/// A world that records errors and has no plugin.
fn bare_world() -> World {
    let mut world = World::new();
    world.insert_resource(FallbackErrorHandler(record));
    world
}

#[test]
fn the_first_use_of_a_world_without_the_plugin_is_reported_once() {
    let uses: [(&str, fn(&mut World)); 6] = [
        ("a `Timer`", |world| {
            world.spawn(Timer::after(ms(10)));
        }),
        ("a `Timer`", |world| {
            world.commands().after(ms(10)).run(fails);
        }),
        ("a `Timer`", |world| {
            let entity = world.spawn_empty().id();
            let mut commands = world.commands();
            let mut entity = commands.entity(entity);
            entity.set_timer("key", Timer::after(ms(10)));
        }),
        ("an `UpdateComponent`", |world| {
            world.spawn(UpdateComponent::new(|_| ()));
        }),
        ("a `MessageComponent`", |world| {
            world.spawn(MessageComponent::new());
        }),
        ("a message", |world| {
            world.commands().send(Delivery::All, Note);
        }),
    ];
    for (what, used) in uses {
        let mut world = bare_world();
        for _ in 0..3 {
            used(&mut world);
            world.flush();
        }
        let reports = reports();
        let [report] = &*reports else {
            panic!("{what}: {reports:?}");
        };
        assert_eq!(report.0, Severity::Warning);
        assert!(report.1.starts_with(what), "{report:?}");
        assert!(report.1.contains("`DuePlugin`"), "{report:?}");
    }
}

#[derive(Message)]
struct Note;

#[test]
fn a_world_with_the_plugin_is_not_reported() {
    let mut app = App::new();
    app.insert_resource(FallbackErrorHandler(record))
        .add_plugins((TimePlugin, DuePlugin::default()));
    app.world_mut().spawn(Timer::after(ms(10)));
    app.world_mut().spawn(UpdateComponent::new(|_| ()));
    app.world_mut().spawn(MessageComponent::new());
    app.update();
    assert_eq!(reports(), []);
}

/// A resource is a component of its own entity. The run holds resources, so it can't hand out their entities.
#[test]
fn a_callback_on_the_entity_of_a_resource_is_reported() {
    let mut app = error_app();
    let world = app.world_mut();
    let mut resources = world.query_filtered::<Entity, With<IsResource>>();
    let resources: Vec<Entity> = resources.iter(world).collect();
    let update = || UpdateComponent::new(|_| -> Result { fails() });
    let ears = || MessageComponent::new().on(|_, _: &Note| -> Result { fails() });
    for resource in resources {
        world.entity_mut(resource).insert((update(), ears()));
        world.spawn((OwnedBy(resource), update()));
        world.flush();
        let reports = reports();
        let of = |component: &str| {
            let text = format!(
                "the `{component}` is never called, because entity {resource} holds a resource: use another entity"
            );
            (Severity::Warning, text)
        };
        let [update, ears] = ["UpdateComponent", "MessageComponent"].map(of);
        assert_eq!(reports, [update.clone(), ears, update]);
    }
}

#[test]
fn a_parameter_without_the_plugin_names_the_plugin() {
    let mut world = bare_world();
    let errors = [
        world
            .run_system_cached(|_: ArmedTimers| ())
            .unwrap_err()
            .to_string(),
        world
            .run_system_cached(|_: Clocks| ())
            .unwrap_err()
            .to_string(),
        world
            .run_system_cached(|_: ClocksMut| ())
            .unwrap_err()
            .to_string(),
    ];
    for error in errors {
        assert!(error.contains("`DuePlugin`"), "{error}");
    }
    let asks = AssertUnwindSafe(|| world.with_timers(|timers| timers.count()));
    let panic = catch_unwind(asks).unwrap_err();
    let panic = panic.downcast::<String>().unwrap();
    assert!(panic.contains("`DuePlugin`"), "{panic}");
}

#[test]
fn an_unknown_handler_is_reported_before_the_timer_fires() {
    let mut app = error_app();
    let spawn = |app: &mut App, name: &'static str| {
        let timer = (Timer::after(ms(30)), TimerAction::named(name));
        app.world_mut().spawn(timer).id()
    };
    let combo = spawn(&mut app, "combo ends");
    let gone = spawn(&mut app, "combo ends");
    spawn(&mut app, "grow");
    app.world_mut().despawn(gone);
    app.world_mut()
        .add_timer_handler("grow", |_: In<TimerFired>| {});
    spawn(&mut app, "grow");
    advance_ms(&mut app, 10);
    let [report] = &*reports() else {
        panic!("one action has no handler");
    };
    assert_eq!(report.0, Severity::Warning);
    assert!(report.1.contains("\"combo ends\""), "{report:?}");
    assert!(report.1.contains(&format!("of {combo}:")), "{report:?}");

    advance_ms(&mut app, 10);
    assert_eq!(reports(), [], "reported once");
    advance_ms(&mut app, 10);
    let [report] = &*reports() else {
        panic!("the firing is an error");
    };
    assert_eq!(report.0, Severity::Panic);
    assert!(report.1.contains(&format!("of {combo}:")), "{report:?}");
}

#[test]
fn an_unknown_handler_from_before_the_plugin_is_reported() {
    let mut app = App::new();
    app.insert_resource(FallbackErrorHandler(record));
    let timer = (TimerAction::named("unheard of"), Timer::after(ms(30)));
    app.world_mut().spawn(timer);
    reports();
    app.add_plugins((TimePlugin, DuePlugin::default()));
    app.update();
    let reports = reports();
    assert!(reports[0].1.contains("\"unheard of\""), "{reports:?}");
}

#[test]
fn a_change_of_a_clock_that_fails_later_is_reported() {
    let mut app = error_app();
    let [own, parent] = [(); 2].map(|()| app.world_mut().spawn(Clock::new()).id());
    app.world_mut()
        .run_system_once(move |mut commands: Commands, mut clocks: ClocksMut| {
            commands.entity(parent).despawn();
            assert_eq!(clocks.get_mut(own).unwrap().set_parent(parent), Ok(()));
            commands
                .entity(own)
                .change_clock(|clock| clock.try_set_speed(-1.0));
        })
        .unwrap();
    let reports = reports().into_iter();
    let mut reports: Vec<_> = reports
        .map(|(severity, text)| (severity == Severity::Warning, text))
        .collect();
    reports.sort_unstable();
    let gone = ClockError::NoSuchClock(parent.into()).to_string();
    let invalid = Clock::new().try_with_speed(-1.0).unwrap_err().to_string();
    let mut expected = [(true, gone), (true, invalid)];
    expected.sort_unstable();
    assert_eq!(reports, expected);
}

//! Setting up the plugin: its requirements, its error messages and its system sets.

use crate::support::*;
use bevy_app::{ScheduleRunnerPlugin, TaskPoolPlugin, prelude::*};
use bevy_due::{
    Clock, DuePlugin, DueSystems, OwnedBy, Paused, Timer, TimerFired, clock::SpeedModifier,
    timer::Keyed,
};
use bevy_ecs::{prelude::*, resource::IsResource};
use bevy_time::{Time, TimePlugin, TimeUpdateStrategy, Virtual};

#[test]
#[should_panic(expected = "`DuePlugin` needs `Time<Virtual>`: add `bevy_time::TimePlugin`")]
fn a_missing_time_plugin_panics_and_names_the_plugin_to_add() {
    App::new().add_plugins(DuePlugin::default()).update();
}

#[test]
#[should_panic(expected = "`DuePlugin` needs `Time<Virtual>`: add `bevy_time::TimePlugin`")]
fn a_missing_time_plugin_panics_before_the_first_frame() {
    App::new()
        .add_plugins((DuePlugin::default(), ScheduleRunnerPlugin::run_once()))
        .add_systems(First, || panic!("should panic before the first frame"))
        .run();
}

#[test]
#[should_panic(expected = "plugin was already added")]
fn adding_the_plugin_twice_panics() {
    App::new().add_plugins((TimePlugin, DuePlugin::default(), DuePlugin::default()));
}

#[test]
fn the_order_of_plugins_does_not_matter() {
    let exit = App::new()
        .insert_resource(TimeUpdateStrategy::ManualDuration(ms(10)))
        .add_plugins((
            DuePlugin::default(),
            TaskPoolPlugin::default(),
            TimePlugin,
            ScheduleRunnerPlugin::default(),
        ))
        .add_systems(Startup, |mut commands: Commands| {
            commands.spawn(Timer::after(ms(1)));
        })
        .add_observer(|_: On<TimerFired>, mut exit: MessageWriter<AppExit>| {
            exit.write(AppExit::Success);
        })
        .run();
    assert!(exit.is_success());
}

#[derive(Component)]
struct Hidden;

#[test]
fn timers_spawned_before_the_plugin_are_armed_when_it_is_added() {
    let mut app = App::new();
    app.world_mut().spawn(Timer::after(ms(10)));
    app.world_mut().register_disabling_component::<Hidden>();
    app.world_mut().spawn((Hidden, Timer::after(ms(10))));
    app.add_plugins((TimePlugin, DuePlugin::default()));
    advance_ms(&mut app, 0); // Bevy's first frame takes no time.
    advance_ms(&mut app, 10);
    let fired = app.world().resource::<Messages<TimerFired>>();
    assert_eq!(fired.len(), 2);
}

#[test]
fn a_plugin_added_late_counts_delays_from_the_current_time() {
    let mut app = App::new();
    app.add_plugins(TimePlugin);
    app.world_mut()
        .resource_mut::<Time<Virtual>>()
        .advance_by(ms(10_000));
    app.world_mut().spawn(Timer::after(ms(50)));
    app.add_plugins(DuePlugin::default());
    advance_ms(&mut app, 0);
    advance_ms(&mut app, 49);
    assert_eq!(app.world().resource::<Messages<TimerFired>>().len(), 0);
    advance_ms(&mut app, 1);
    assert_eq!(app.world().resource::<Messages<TimerFired>>().len(), 1);
}

#[test]
fn without_the_plugin_timers_are_plain_data() {
    let mut world = World::new();
    let entity = world.spawn(Timer::after(ms(10))).id();
    world.entity_mut(entity).insert(Timer::after(ms(20)));
    let timer = world.entity_mut(entity).take::<Timer>();
    assert_eq!(timer, Some(Timer::after(ms(20))));
    world.spawn(Timer::after(ms(10))).despawn();
}

#[test]
fn systems_can_be_ordered_before_and_after_the_timers() {
    #[derive(Resource, Default)]
    struct Seen(Vec<(&'static str, usize)>);

    fn look(name: &'static str) -> impl Fn(Res<Messages<TimerFired>>, ResMut<Seen>) {
        move |fired, mut seen| seen.0.push((name, fired.len()))
    }

    let mut app = app();
    app.init_resource::<Seen>().add_systems(
        PreUpdate,
        (
            look("before").before(DueSystems::Timers),
            look("after").after(DueSystems::Timers),
        ),
    );
    spawn(&mut app, "x", Timer::after(ms(10)));
    advance_ms(&mut app, 10);
    assert_eq!(
        app.world().resource::<Seen>().0,
        [("before", 0), ("after", 1)]
    );
}

#[test]
fn a_cloned_entity_gets_its_own_timer() {
    let mut app = app();
    let original = spawn(&mut app, "x", Timer::after(ms(30)));
    advance_ms(&mut app, 10);
    app.world_mut().entity_mut(original).clone_and_spawn();
    app.world_mut().despawn(original);
    advance_ms(&mut app, 30);
    assert_eq!(firings(&mut app)[0].deadline(), ms(40));
}

fn despawn_everything(world: &mut World) {
    let mut all = world.query_filtered::<Entity, Without<IsResource>>();
    let all: Vec<Entity> = all.iter(world).collect();
    for entity in all {
        world.try_despawn(entity).ok();
    }
}

#[test]
fn a_pause_counts_in_the_frame_of_a_cleanup() {
    let mut app = app();
    let [paused, resumed] = [0, 1].map(|_| app.world_mut().spawn(Timer::after(ms(30))).id());
    app.world_mut().entity_mut(resumed).insert(Paused);
    advance_ms(&mut app, 10);
    let world = app.world_mut();
    let mut others = world.query_filtered::<Entity, (Without<IsResource>, Without<Timer>)>();
    for other in others.iter(world).collect::<Vec<_>>() {
        world.despawn(other);
    }
    world.entity_mut(paused).insert(Paused);
    world.entity_mut(resumed).remove::<Paused>();
    advance_ms(&mut app, 30);
    let is_armed = |app: &App, timer: Entity| app.world().get::<Timer>(timer).is_some();
    assert!(is_armed(&app, paused), "it was paused");
    advance_ms(&mut app, 0);
    assert!(!is_armed(&app, resumed), "it was resumed");
    app.world_mut().entity_mut(paused).remove::<Paused>();
    advance_ms(&mut app, 19);
    assert!(is_armed(&app, paused), "20 ms were left");
    advance_ms(&mut app, 1);
    assert!(!is_armed(&app, paused), "its delay is over");
}

#[test]
fn a_cleanup_that_despawns_a_clock_cancels_its_timers() {
    let mut app = app();
    let clock = app.world_mut().spawn(Clock::new()).id();
    let kept = app.world_mut().spawn(Timer::after(ms(10)).on(clock)).id();
    advance_ms(&mut app, 0);
    let world = app.world_mut();
    let mut others = world.query_filtered::<Entity, (Without<IsResource>, Without<Timer>)>();
    // The observers of the plugin are older than the clock.
    for other in others.iter(world).collect::<Vec<_>>() {
        world.despawn(other);
    }
    app.world_mut().flush();
    assert!(
        app.world().get::<Timer>(kept).is_none(),
        "its clock is gone"
    );
    let clock = app.world_mut().spawn(Clock::new()).id();
    app.world_mut().spawn(Timer::after(ms(20)).on(clock));
    app.add_observer(move |fired: On<TimerFired>| assert_ne!(fired.entity(), kept));
    advance_ms(&mut app, 0);
    advance_ms(&mut app, 20);
}

#[test]
fn a_cleanup_keeps_modifiers_of_clocks_right() {
    let mut app = app();
    let clock = app.world_mut().spawn(Clock::new()).id();
    let slow = app.world_mut().spawn(SpeedModifier::new(clock, 0.5)).id();
    advance_ms(&mut app, 0);
    let world = app.world_mut();
    let mut others = world.query_filtered::<Entity, (Without<IsResource>, Without<Clock>)>();
    for other in others.iter(world).collect::<Vec<_>>() {
        world.despawn(other);
    }
    assert!(world.get_entity(slow).is_err());
    advance_ms(&mut app, 10);
    assert_eq!(now(&app, clock), ms(10), "nothing slows it any more");
}

#[test]
fn the_plugin_survives_a_cleanup_that_despawns_every_entity() {
    let mut app = app();
    spawn(&mut app, "old", Timer::every(ms(10)));
    despawn_everything(app.world_mut());
    app.update();
    app.add_observer(
        |fired: On<TimerFired>, tags: Query<&Tag>, mut log: ResMut<Seen>| {
            log.0.extend(tags.get(fired.entity()).map(|tag| tag.0));
        },
    );
    app.init_resource::<Seen>();

    let owner = app.world_mut().spawn_empty().id();
    for tag in ["replaced", "new"] {
        let keyed = (Tag(tag), OwnedBy(owner), Keyed::new("key"));
        app.world_mut().spawn((keyed, Timer::every(ms(10))));
    }
    app.world_mut().flush();
    advance_ms(&mut app, 10);
    app.world_mut().entity_mut(owner).insert(Paused);
    advance_ms(&mut app, 10);
    app.world_mut().entity_mut(owner).remove::<Paused>();
    advance_ms(&mut app, 10);
    assert_eq!(app.world().resource::<Seen>().0, ["new", "new"]);
}

#[derive(Resource, Default)]
struct Seen(Vec<&'static str>);

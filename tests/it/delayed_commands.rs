//! `Commands::after` and `Commands::every`: commands that run later.

use std::{panic::catch_unwind, sync::Arc};

use crate::support::{errors::*, *};
use bevy_app::App;
use bevy_due::{OnClock, Timer, TimerFired, prelude::*, timer::TimedCommands};
use bevy_ecs::{
    error::{FallbackErrorHandler, ignore},
    prelude::*,
    system::EntityCommands,
};
use core::panic::AssertUnwindSafe;

/// The names of the commands that ran, in order.
#[derive(Resource, Default)]
struct Ran(Vec<&'static str>);

fn delayed_app() -> App {
    let mut app = app();
    app.init_resource::<Ran>();
    app
}

fn ran(app: &mut App) -> Vec<&'static str> {
    core::mem::take(&mut app.world_mut().resource_mut::<Ran>().0)
}

fn log(name: &'static str) -> impl Fn(&mut Commands) + Send + Sync {
    move |commands| {
        commands.queue(move |world: &mut World| world.resource_mut::<Ran>().0.push(name));
    }
}

fn with_commands(app: &mut App, issue: impl FnOnce(&mut Commands) -> Entity) -> Entity {
    let entity = issue(&mut app.world_mut().commands());
    app.world_mut().flush();
    entity
}

fn id(commands: EntityCommands) -> Entity {
    commands.id()
}

#[test]
fn delayed_commands_run_in_order_with_all_other_timers() {
    let mut app = delayed_app();
    app.add_observer(|_: On<TimerFired>, mut ran: ResMut<Ran>| ran.0.push("|"));
    with_commands(&mut app, |commands| {
        commands.after(ms(20)).queue(log("c"));
        commands.after(ms(10)).queue(log("a"));
        commands.after(0.01_f32).queue(log("b"));
        commands.every(ms(15)).times(2).queue(log("x"));
        let waves = Timer::every(ms(25)).immediately().times(2);
        id(commands.on_timer(waves).queue(log("now")))
    });
    advance_ms(&mut app, 100);
    let expected = ["now", "a", "b", "x", "c", "now", "x"];
    let expected: Vec<_> = expected.iter().flat_map(|&name| ["|", name]).collect();
    assert_eq!(ran(&mut app), expected);
}

#[test]
fn the_entity_of_a_delayed_command_is_despawned_after_it_runs() {
    let mut app = delayed_app();
    let once = with_commands(&mut app, |commands| {
        id(commands.after(ms(10)).queue(log("x")))
    });
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 0);
    assert!(app.world().get_entity(once).is_err());
    assert_eq!(ran(&mut app), ["x"]);
}

#[test]
fn delayed_commands_can_be_cancelled() {
    let mut app = delayed_app();
    let every = with_commands(&mut app, |commands| {
        id(commands.every(ms(10)).queue(log("x")))
    });
    with_commands(&mut app, |commands| {
        let cancel = move |commands: &mut Commands| commands.entity(every).despawn();
        id(commands.after(ms(20)).queue(cancel))
    });
    advance_ms(&mut app, 100);
    assert_eq!(
        ran(&mut app),
        ["x", "x"],
        "the second is due together with the cancellation, but was armed first"
    );
}

#[test]
fn a_closure_keeps_its_state_between_calls() {
    let mut app = delayed_app();
    with_commands(&mut app, |commands| {
        let mut left = vec!["c", "b", "a"];
        id(commands.every(ms(10)).times(3).queue(move |commands| {
            log(left.pop().unwrap())(commands);
        }))
    });
    advance_ms(&mut app, 100);
    assert_eq!(ran(&mut app), ["a", "b", "c"]);
}

#[test]
fn a_system_can_run_later() {
    fn system(mut ran: ResMut<Ran>, mut count: Local<u32>) {
        *count += 1;
        ran.0.push(if *count == 1 { "first" } else { "again" });
    }

    let mut app = delayed_app();
    with_commands(&mut app, |commands| {
        id(commands.every(ms(10)).times(2).run(system))
    });
    advance_ms(&mut app, 100);
    assert_eq!(ran(&mut app), ["first", "again"]);
}

#[test]
fn a_closure_that_captures_can_run_as_a_system() {
    let mut app = delayed_app();
    with_commands(&mut app, |commands| {
        let (first, again) = ("first", String::from("again"));
        let system = move |mut ran: ResMut<Ran>, mut count: Local<u32>| {
            *count += 1;
            ran.0.push(if *count == 1 {
                first
            } else {
                again.clone().leak()
            });
        };
        id(commands.every(ms(10)).times(2).run(system))
    });
    advance_ms(&mut app, 100);
    assert_eq!(ran(&mut app), ["first", "again"]);
}

#[test]
fn a_system_that_captures_sees_each_change_once() {
    #[derive(Component)]
    struct Score(u32);

    #[derive(Resource, Default)]
    struct Seen(Vec<u32>);

    let mut app = delayed_app();
    app.init_resource::<Seen>();
    let scores = [1, 2].map(|score| app.world_mut().spawn(Score(score)).id());
    let factor = 10;
    let system = move |scores: Query<&Score, Changed<Score>>, mut seen: ResMut<Seen>| {
        seen.0.extend(scores.iter().map(|score| score.0 * factor));
    };
    with_commands(&mut app, |commands| id(commands.every(ms(10)).run(system)));
    let seen_after_next_run = |app: &mut App| {
        advance_ms(app, 10);
        core::mem::take(&mut app.world_mut().resource_mut::<Seen>().0)
    };
    assert_eq!(seen_after_next_run(&mut app), [10, 20], "all are new");
    assert_eq!(seen_after_next_run(&mut app), [], "nothing has changed");
    app.world_mut().get_mut::<Score>(scores[1]).unwrap().0 = 3;
    assert_eq!(seen_after_next_run(&mut app), [30]);
    assert_eq!(seen_after_next_run(&mut app), []);
}

#[test]
fn a_system_that_captures_goes_with_its_timer() {
    let mut app = delayed_app();
    let captured = Arc::new(());
    let held = captured.clone();
    let every = with_commands(&mut app, |commands| {
        id(commands.every(ms(10)).run(move || _ = &held))
    });
    advance_ms(&mut app, 10);
    assert_eq!(Arc::strong_count(&captured), 2);
    let entities = app.world().entities().count_spawned();
    app.world_mut().despawn(every);
    assert_eq!(Arc::strong_count(&captured), 1);
    assert_eq!(app.world().entities().count_spawned(), entities - 1);
}

#[test]
fn commands_that_run_the_same_system_share_its_state() {
    fn count_runs(mut ran: ResMut<Ran>, mut count: Local<usize>, mut commands: Commands) {
        ran.0.push(["first", "second", "third"][*count]);
        *count += 1;
        if *count < 3 {
            commands.after(ms(10)).run(count_runs);
        }
    }

    let mut app = delayed_app();
    with_commands(&mut app, |commands| {
        id(commands.after(ms(10)).run(count_runs))
    });
    for _ in 0..4 {
        advance_ms(&mut app, 10);
    }
    assert_eq!(ran(&mut app), ["first", "second", "third"]);
}

#[test]
fn a_delayed_command_can_delay_another_one() {
    let mut app = delayed_app();
    with_commands(&mut app, |commands| {
        id(commands.after(ms(10)).queue(|commands| {
            commands.after(ms(0)).queue(log("nested"));
            log("outer")(commands);
        }))
    });
    advance_ms(&mut app, 100);
    assert_eq!(ran(&mut app), ["outer"]);
    advance_ms(&mut app, 0);
    assert_eq!(ran(&mut app), ["nested"]);
}

#[test]
fn delayed_commands_die_and_pause_with_their_owner() {
    let mut app = delayed_app();
    let owner = app.world_mut().spawn(Paused).id();
    let queue_owned = |app: &mut App| {
        with_commands(app, |commands| {
            id(commands.after(ms(10)).of(owner).queue(log("x")))
        })
    };
    queue_owned(&mut app);
    advance_ms(&mut app, 50);
    assert!(ran(&mut app).is_empty(), "the owner is paused");
    app.world_mut().entity_mut(owner).remove::<Paused>();
    advance_ms(&mut app, 10);
    assert_eq!(ran(&mut app), ["x"]);

    queue_owned(&mut app);
    app.world_mut().entity_mut(owner).cancel_timers();
    queue_owned(&mut app);
    app.world_mut().despawn(owner);
    advance_ms(&mut app, 50);
    assert!(ran(&mut app).is_empty());
}

#[test]
fn delayed_commands_run_on_their_own_clock_or_their_owners() {
    let mut app = delayed_app();
    let slow = app.world_mut().spawn(Clock::new().with_speed(0.5)).id();
    let owner = app.world_mut().spawn(OnClock::new(slow)).id();
    with_commands(&mut app, |commands| {
        commands.after(ms(10)).queue(log("game"));
        commands.after(ms(10)).of(owner).queue(log("owner"));
        commands
            .after(ms(30))
            .of(owner)
            .on(ClockId::Real)
            .queue(log("real"));
        id(commands.after(ms(20)).on(slow).queue(log("slow")))
    });
    let runs = [(); 4].map(|()| {
        advance_ms(&mut app, 10);
        ran(&mut app)
    });
    assert_eq!(
        runs,
        [vec!["game"], vec!["owner"], vec!["real"], vec!["slow"]]
    );
}

#[test]
fn repeated_commands_go_on_after_a_panic() {
    let mut app = delayed_app();
    app.insert_resource(FallbackErrorHandler(ignore));
    with_commands(&mut app, |commands| {
        let mut runs = 0;
        id(commands.every(ms(10)).times(4).queue(move |commands| {
            runs += 1;
            assert_ne!(runs, 2, "a bug in the second run");
            log("ran")(commands);
        }))
    });
    for _ in 0..4 {
        advance_ms(&mut app, 10);
    }
    assert_eq!(ran(&mut app), ["ran"; 3]);
}

#[test]
fn a_system_that_captures_goes_on_after_a_panic() {
    let mut app = delayed_app();
    app.insert_resource(FallbackErrorHandler(ignore));
    with_commands(&mut app, |commands| {
        let bug = 2;
        let system = move |mut runs: Local<u32>, mut ran: ResMut<Ran>| {
            *runs += 1;
            assert_ne!(*runs, bug, "a bug in the second run");
            ran.0.push("ran");
        };
        id(commands.every(ms(10)).times(4).run(system))
    });
    for _ in 0..4 {
        let frame = AssertUnwindSafe(|| advance_ms(&mut app, 10));
        catch_unwind(frame).ok();
    }
    assert_eq!(ran(&mut app), ["ran"; 3]);
}

/// Bevy's systems keep their state for one world.
#[test]
fn a_copied_command_is_an_error_in_a_second_world() {
    fn noted(mut ran: ResMut<Ran>) {
        ran.0.push("function");
    }

    let (mut first, mut second) = (delayed_app(), delayed_app());
    second.insert_resource(FallbackErrorHandler(record));
    let captured = "closure";
    let closure = move |mut ran: ResMut<Ran>| ran.0.push(captured);
    let mut commands = first.world_mut().commands();
    let timers = [
        commands.after(ms(10)).run(noted).id(),
        commands.after(ms(10)).run(closure).id(),
    ];
    first.world_mut().flush();
    let actions = timers.map(|it| first.world().get::<TimerAction>(it).unwrap().clone());
    advance_ms(&mut first, 10);
    assert_eq!(ran(&mut first), ["function", "closure"]);
    for action in actions {
        second.world_mut().spawn((Timer::after(ms(10)), action));
    }
    advance_ms(&mut second, 10);
    assert_eq!(ran(&mut second), [""; 0]);
    let reports = errors();
    assert_eq!(reports.len(), 2, "{reports:?}");
    for (report, name) in reports.iter().zip(["noted", "closure"]) {
        assert!(report.contains("another world"), "{report}");
        assert!(report.contains(name), "{report}");
    }
    second.world_mut().commands().after(ms(10)).run(noted);
    second.world_mut().flush();
    advance_ms(&mut second, 10);
    assert_eq!(ran(&mut second), ["function"], "its own command runs");
}

#[test]
fn a_builder_of_delayed_commands_can_be_returned() {
    type Once<'a, 'w, 's> = TimedCommands<'a, 'w, 's, false>;
    type Repeatedly<'a, 'w, 's> = TimedCommands<'a, 'w, 's, true>;

    fn soon<'a, 'w, 's>(commands: &'a mut Commands<'w, 's>) -> Once<'a, 'w, 's> {
        commands.after(ms(10))
    }
    fn twice<'a, 'w, 's>(commands: &'a mut Commands<'w, 's>) -> Repeatedly<'a, 'w, 's> {
        commands.every(ms(10)).times(2)
    }

    let mut app = delayed_app();
    soon(&mut app.world_mut().commands()).queue(log("soon"));
    twice(&mut app.world_mut().commands()).queue(log("twice"));
    app.world_mut().flush();
    advance_ms(&mut app, 20);
    assert_eq!(ran(&mut app), ["soon", "twice", "twice"]);
}

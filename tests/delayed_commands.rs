//! `Commands::after` and `Commands::every`: commands that are run later.

mod support;

use bevy_app::App;
use bevy_due::{OnClock, Timer, TimerFired, prelude::*};
use bevy_ecs::{prelude::*, system::EntityCommands};
use support::*;

/// What has run, in order.
#[derive(Resource, Default)]
struct Done(Vec<&'static str>);

fn delayed_app() -> App {
    let mut app = app();
    app.init_resource::<Done>();
    app
}

fn done(app: &mut App) -> Vec<&'static str> {
    core::mem::take(&mut app.world_mut().resource_mut::<Done>().0)
}

fn say(what: &'static str) -> impl Fn(&mut Commands) + Send + Sync {
    move |commands| {
        commands.queue(move |world: &mut World| world.resource_mut::<Done>().0.push(what));
    }
}

fn command(app: &mut App, give: impl FnOnce(&mut Commands) -> Entity) -> Entity {
    let entity = give(&mut app.world_mut().commands());
    app.world_mut().flush();
    entity
}

fn id(commands: EntityCommands) -> Entity {
    commands.id()
}

#[test]
fn they_run_in_order_among_all_other_timers() {
    let mut app = delayed_app();
    app.add_observer(|_: On<TimerFired>, mut done: ResMut<Done>| done.0.push("|"));
    command(&mut app, |commands| {
        commands.after(ms(20)).queue(say("c"));
        commands.after(ms(10)).queue(say("a"));
        commands.after_secs(0.01).queue(say("b"));
        commands.every(ms(15)).times(2).queue(say("x"));
        let waves = Timer::every(ms(25)).immediately().times(2);
        id(commands.on_timer(waves).queue(say("now")))
    });
    advance_ms(&mut app, 100);
    let expected = ["now", "a", "b", "x", "c", "now", "x"];
    let expected: Vec<_> = expected.iter().flat_map(|&what| ["|", what]).collect();
    assert_eq!(done(&mut app), expected);
}

#[test]
fn what_they_are_is_despawned_when_they_have_run() {
    let mut app = delayed_app();
    let once = command(&mut app, |commands| {
        id(commands.after(ms(10)).queue(say("x")))
    });
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 0);
    assert!(app.world().get_entity(once).is_err());
    assert_eq!(done(&mut app), ["x"]);
}

#[test]
fn they_can_be_cancelled() {
    let mut app = delayed_app();
    let every = command(&mut app, |commands| {
        id(commands.every(ms(10)).queue(say("x")))
    });
    command(&mut app, |commands| {
        let cancel = move |commands: &mut Commands| commands.entity(every).despawn();
        id(commands.after(ms(20)).queue(cancel))
    });
    advance_ms(&mut app, 100);
    assert_eq!(
        done(&mut app),
        ["x", "x"],
        "the second at the same time, but before"
    );
}

#[test]
fn a_closure_keeps_what_it_remembers() {
    let mut app = delayed_app();
    command(&mut app, |commands| {
        let mut left = vec!["c", "b", "a"];
        id(commands.every(ms(10)).times(3).queue(move |commands| {
            say(left.pop().unwrap())(commands);
        }))
    });
    advance_ms(&mut app, 100);
    assert_eq!(done(&mut app), ["a", "b", "c"]);
}

#[test]
fn a_system_can_be_run_later() {
    fn system(mut done: ResMut<Done>, mut count: Local<u32>) {
        *count += 1;
        done.0.push(if *count == 1 { "first" } else { "again" });
    }

    let mut app = delayed_app();
    command(&mut app, |commands| {
        id(commands.every(ms(10)).times(2).run(system))
    });
    advance_ms(&mut app, 100);
    assert_eq!(done(&mut app), ["first", "again"]);
}

#[test]
fn they_may_give_others_which_run_in_a_later_run() {
    let mut app = delayed_app();
    command(&mut app, |commands| {
        id(commands.after(ms(10)).queue(|commands| {
            commands.after(ms(0)).queue(say("nested"));
            say("outer")(commands);
        }))
    });
    advance_ms(&mut app, 100);
    assert_eq!(done(&mut app), ["outer"]);
    advance_ms(&mut app, 0);
    assert_eq!(done(&mut app), ["nested"]);
}

#[test]
fn they_die_with_their_owner_and_pause_with_it() {
    let mut app = delayed_app();
    let owner = app.world_mut().spawn(Paused).id();
    let of = |app: &mut App| {
        command(app, |commands| {
            id(commands.after(ms(10)).of(owner).queue(say("x")))
        })
    };
    of(&mut app);
    advance_ms(&mut app, 50);
    assert!(done(&mut app).is_empty(), "the owner is paused");
    app.world_mut().entity_mut(owner).remove::<Paused>();
    advance_ms(&mut app, 10);
    assert_eq!(done(&mut app), ["x"]);

    of(&mut app);
    app.world_mut().entity_mut(owner).cancel_timers();
    of(&mut app);
    app.world_mut().despawn(owner);
    advance_ms(&mut app, 50);
    assert!(done(&mut app).is_empty());
}

#[test]
fn they_run_on_the_clock_that_they_are_put_on_or_their_owners() {
    let mut app = delayed_app();
    let slow = app.world_mut().spawn(Clock::new().with_speed(0.5)).id();
    let owner = app.world_mut().spawn(OnClock::new(slow)).id();
    command(&mut app, |commands| {
        commands.after(ms(10)).queue(say("game"));
        commands.after(ms(10)).of(owner).queue(say("owner"));
        commands
            .after(ms(30))
            .of(owner)
            .on(ClockId::Real)
            .queue(say("real"));
        id(commands.after(ms(20)).on(slow).queue(say("slow")))
    });
    let runs = [(); 4].map(|()| {
        advance_ms(&mut app, 10);
        done(&mut app)
    });
    assert_eq!(
        runs,
        [vec!["game"], vec!["owner"], vec!["real"], vec!["slow"]]
    );
}

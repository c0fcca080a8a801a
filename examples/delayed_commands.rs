//! Fireworks, made of commands that run later: in order, again and again, on a clock, and cancelled
//! by their entity or with their owner.
//!
//! ```text
//! cargo run --example delayed_commands
//! ```

use core::time::Duration;

use bevy_app::{ScheduleRunnerPlugin, prelude::*};
use bevy_due::prelude::*;
use bevy_ecs::prelude::*;
use bevy_time::{Time, TimePlugin, TimeUpdateStrategy, Virtual};

/// The time that each frame takes here. A game leaves this out, and lives in real time.
const FRAME: Duration = Duration::from_millis(100);

fn main() -> AppExit {
    App::new()
        .add_plugins((
            TimePlugin,
            DuePlugin::default(),
            ScheduleRunnerPlugin::default(),
        ))
        .insert_resource(TimeUpdateStrategy::ManualDuration(FRAME))
        .add_systems(
            Startup,
            (count_down, launch, play_music, burn, finish).chain(),
        )
        .add_observer(|show: On<Show>, time: Res<Time<Virtual>>| {
            println!("{:5.2}s  {}", time.elapsed_secs(), show.0);
        })
        .run()
}

/// Something for the audience.
#[derive(Event)]
struct Show(String);

/// Shows it when its time has come.
fn show(what: &'static str) -> impl Fn(&mut Commands) {
    move |commands| commands.trigger(Show(what.into()))
}

/// Again and again, and the commands remember how often they have run.
fn count_down(mut commands: Commands) {
    let mut number = 3;
    commands.every_secs(1.0).times(3).queue(move |commands| {
        commands.trigger(Show(format!("{number}!")));
        number -= 1;
    });
}

/// All three are due in the frame at four seconds, and go up in their order.
fn launch(mut commands: Commands) {
    commands.after_secs(3.99).queue(show("a golden rocket"));
    commands.after_secs(3.93).queue(show("a red rocket"));
    commands.after_secs(3.96).queue(show("a blue rocket"));
}

/// The orchestra plays by a clock of its own, and that is too slow.
fn play_music(mut commands: Commands) {
    let baton = commands.spawn(Clock::new().with_speed(0.5)).id();
    commands
        .every_secs(1.0)
        .on(baton)
        .times(4)
        .queue(show("    the orchestra plays a note"));
}

fn burn(mut commands: Commands) {
    // Commands that stand for themselves are cancelled by their entity.
    let fountain = commands.after_secs(6.0).queue(show("a fountain")).id();
    commands.after_secs(5.5).queue(move |commands| {
        commands.trigger(Show("the fuse of the fountain is wet".into()));
        commands.entity(fountain).despawn();
    });

    // Those that belong to an entity are cancelled with it.
    let barge = commands.spawn_empty().id();
    commands
        .every_secs(0.5)
        .of(barge)
        .queue(show("        a wheel turns on the barge"));
    commands.after_secs(2.2).queue(move |commands| {
        commands.trigger(Show("        the barge sinks".into()));
        commands.entity(barge).despawn();
    });
}

/// One command may be many, and these may be delayed in turn.
fn finish(mut commands: Commands) {
    commands.after_secs(9.0).queue(|commands| {
        commands.every_secs(0.25).times(5).queue(show("a star"));
        commands.after_secs(1.5).queue(|commands| {
            commands.trigger(Show("good night".into()));
            commands.write_message(AppExit::Success);
        });
    });
}

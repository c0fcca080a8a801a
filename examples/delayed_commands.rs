//! A firework show of delayed commands: in exact order, repeated, on another clock, and cancelled
//! through their entity or their owner.
//!
//! ```text
//! cargo run --example delayed_commands
//! ```

use core::time::Duration;

use bevy_app::{ScheduleRunnerPlugin, prelude::*};
use bevy_due::prelude::*;
use bevy_ecs::prelude::*;
use bevy_time::{Time, TimePlugin, TimeUpdateStrategy, Virtual};

/// The time per frame. A game leaves this out and runs in real time.
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
            (
                count_down,
                launch,
                play_music,
                light_fountain,
                sail_barge,
                finish,
            )
                .chain(),
        )
        .add_observer(|show: On<Show>, time: Res<Time<Virtual>>| {
            println!("{:5.2}s  {}", time.elapsed_secs(), show.0);
        })
        .run()
}

/// A line for the audience.
#[derive(Event)]
struct Show(String);

/// Returns commands that show a line.
fn show(line: &'static str) -> impl Fn(&mut Commands) {
    move |commands| commands.trigger(Show(line.into()))
}

/// Repeats commands. The closure keeps its state between the runs.
fn count_down(mut commands: Commands) {
    let mut number = 3;
    commands.every(1.0).times(3).queue(move |commands| {
        commands.trigger(Show(format!("{number}!")));
        number -= 1;
    });
}

/// All three rockets are due in the frame at four seconds. They go up in the order of their deadlines.
fn launch(mut commands: Commands) {
    commands.after(3.99).queue(show("a golden rocket"));
    commands.after(3.93).queue(show("a red rocket"));
    commands.after(3.96).queue(show("a blue rocket"));
}

/// The orchestra plays on its own clock, at half speed.
fn play_music(mut commands: Commands) {
    let baton = commands.spawn(Clock::new().with_speed(0.5)).id();
    commands
        .every(1.0)
        .on(baton)
        .times(4)
        .queue(show("    the orchestra plays a note"));
}

/// Despawning the entity of delayed commands cancels them.
fn light_fountain(mut commands: Commands) {
    let fountain = commands.after(6.0).queue(show("a fountain")).id();
    commands.after(5.5).queue(move |commands| {
        commands.trigger(Show("the fuse of the fountain gets wet".into()));
        commands.entity(fountain).despawn();
    });
}

/// Despawning the owner of delayed commands cancels them too.
fn sail_barge(mut commands: Commands) {
    let barge = commands.spawn_empty().id();
    commands
        .every(0.5)
        .of(barge)
        .queue(show("        a wheel spins on the barge"));
    commands.after(2.2).queue(move |commands| {
        commands.trigger(Show("        the barge sinks".into()));
        commands.entity(barge).despawn();
    });
}

/// Delayed commands can delay more commands.
fn finish(mut commands: Commands) {
    commands.after(9.0).queue(|commands| {
        commands.every(0.25).times(5).queue(show("a star"));
        commands.after(1.5).queue(|commands| {
            commands.trigger(Show("good night".into()));
            commands.write_message(AppExit::Success);
        });
    });
}

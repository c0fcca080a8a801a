//! A dash with two charges. Each takes two seconds to come back, and the player keeps pressing the
//! button.
//!
//! ```text
//! cargo run --example dash_cooldown
//! ```

use core::{fmt::Display, time::Duration};

use bevy_app::{ScheduleRunnerPlugin, prelude::*};
use bevy_due::{Clocks, Timer, prelude::*, timer::Keyed};
use bevy_ecs::{prelude::*, system::SystemParam};
use bevy_time::{Time, TimePlugin, TimeUpdateStrategy, Virtual};

/// The time per frame. A game leaves this out and runs in real time.
const FRAME: Duration = Duration::from_millis(50);

fn main() -> AppExit {
    App::new()
        .add_plugins((
            TimePlugin,
            DuePlugin::default(),
            ScheduleRunnerPlugin::default(),
        ))
        .insert_resource(TimeUpdateStrategy::ManualDuration(FRAME))
        .add_systems(Startup, start)
        .run()
}

/// Nothing ticks a cooldown. It stores a time, and you ask it.
#[derive(Component)]
struct Dash(Cooldown);

/// A throttle is a cooldown too: the hero complains at most once per second.
#[derive(Component)]
struct Complaint(Cooldown);

fn start(mut commands: Commands) {
    commands.spawn((
        Dash(Cooldown::new(2.0).with_charges(2)),
        Complaint(Cooldown::new(1.0)),
    ));
    let button = Timer::every(0.3).first_after(0.9).times(12);
    commands.spawn(button).observe(press);

    let redraw = Timer::every(0.5).immediately();
    commands.spawn(redraw).observe(draw);

    commands.after(7.5).queue(|commands| {
        commands.write_message(AppExit::Success);
    });
}

fn press(
    _: On<TimerFired>,
    hero: Single<(Entity, &mut Dash, &mut Complaint)>,
    screen: Screen,
    mut commands: Commands,
) -> Result {
    let (hero, mut dash, mut complaint) = hero.into_inner();
    let now = screen.clocks.now(ClockId::Virtual)?;
    if dash.0.try_use(now) {
        screen.print("The hero dashes");
        if !dash.0.is_ready(now) {
            let ready = (OwnedBy(hero), Keyed::new("dash"), dash.0.ready_timer());
            commands
                .spawn(ready)
                .observe(|_: On<TimerFired>, screen: Screen| screen.print("*ding*"));
        }
    } else if complaint.0.try_use(now) {
        let secs = dash.0.remaining(now).as_secs_f32();
        screen.print(format_args!("\"Not yet! {secs:.2} s to go\""));
    }
    Ok(())
}

fn draw(_: On<TimerFired>, dash: Single<&Dash>, screen: Screen) -> Result {
    let now = screen.clocks.now(ClockId::Virtual)?;
    let charges = "o".repeat(dash.0.charges(now) as usize);
    let bar = "=".repeat((dash.0.fraction(now) * 20.0) as usize);
    screen.print(format_args!("    [{bar:<20}] {charges}"));
    Ok(())
}

/// Prints a line with the game time.
#[derive(SystemParam)]
struct Screen<'w> {
    clocks: Clocks<'w>,
    time: Res<'w, Time<Virtual>>,
}

impl Screen<'_> {
    fn print(&self, line: impl Display) {
        println!("{:4.2}s  {line}", self.time.elapsed_secs());
    }
}

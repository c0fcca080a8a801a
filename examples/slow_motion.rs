//! A spell slows all monsters in an arena, but not the hero: the monsters use the clock of the arena,
//! and one write slows it down.
//!
//! ```text
//! cargo run --example slow_motion
//! ```

use core::time::Duration;

use bevy_app::{ScheduleRunnerPlugin, prelude::*};
use bevy_due::{Clocks, ClocksMut, OnClock, Timer, prelude::*};
use bevy_ecs::prelude::*;
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
        .add_systems(Startup, (enter_arena, plan_the_fight).chain())
        .add_observer(report)
        .run()
}

#[derive(Component)]
struct Arena;

/// The attack of a fighter whenever its timer fires.
#[derive(Component)]
struct Attack(&'static str);

fn enter_arena(mut commands: Commands) {
    println!("  game   arena");
    commands.spawn((Attack("the hero strikes"), Timer::every(1.0)));

    let arena = commands.spawn((Arena, Clock::new())).id();
    commands.spawn((
        Attack("    the ogre swings its club"),
        Timer::every(1.0),
        OnClock::new(arena),
    ));
    // The wolf is fast. Its own clock always runs at twice the speed of the arena.
    commands.spawn((
        Attack("        the wolf bites"),
        Timer::every(1.0),
        Clock::of(arena).with_speed(2.0),
    ));
}

/// Schedules the hero's spells. Like the hero, they are on the game clock.
fn plan_the_fight(mut commands: Commands) {
    commands.after(2.2).run(slow_down);
    commands.after(6.2).run(stop_time);
    commands.after(8.2).run(end_spells);
    commands.after(10.2).queue(|commands| {
        commands.write_message(AppExit::Success);
    });
}

fn slow_down(arena: Single<Entity, With<Arena>>, mut clocks: ClocksMut) -> Result {
    println!("-- The arena slows down to a quarter of its speed");
    clocks.get_mut(*arena)?.set_speed(0.25);
    Ok(())
}

fn stop_time(arena: Single<Entity, With<Arena>>, mut clocks: ClocksMut) -> Result {
    println!("-- Time stands still in the arena");
    clocks.get_mut(*arena)?.pause();
    Ok(())
}

fn end_spells(arena: Single<Entity, With<Arena>>, mut clocks: ClocksMut) -> Result {
    println!("-- The spells end, and everyone continues with the remaining time");
    let mut arena = clocks.get_mut(*arena)?;
    arena.unpause();
    arena.set_speed(1.0);
    Ok(())
}

fn report(
    fired: On<TimerFired>,
    fighters: Query<&Attack>,
    game: Res<Time<Virtual>>,
    arena: Single<Entity, With<Arena>>,
    clocks: Clocks,
) -> Result {
    if let Ok(Attack(attack)) = fighters.get(fired.entity()) {
        let (game, arena) = (game.elapsed_secs(), clocks.now(*arena)?.as_secs_f32());
        println!("{game:5.2}s  {arena:5.2}s  {attack}");
    }
    Ok(())
}

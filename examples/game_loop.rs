//! A headless boss fight: everything that happens in it is a timer.
//!
//! ```text
//! cargo run --example game_loop                       ten seconds at 60 Hz
//! cargo run --example game_loop -- --fast             the same fight as fast as it can
//! cargo run --example game_loop -- --encounter FILE   another boss: see examples/encounters
//! ```

use core::{fmt::Display, num::NonZeroU32, time::Duration};
use std::{fs, path::PathBuf, process::ExitCode};

use bevy_app::{ScheduleRunnerPlugin, TaskPoolPlugin, prelude::*};
use bevy_due::{Timer, prelude::*};
use bevy_ecs::{prelude::*, system::SystemParam};
use bevy_time::{Time, TimePlugin, TimeUpdateStrategy, Virtual};
use ron::{error::Position, extensions::Extensions};
use serde::Deserialize;

const FRAME: Duration = Duration::from_nanos(16_666_667);

fn main() -> ExitCode {
    let (fast, encounter) = match from_command_line() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let mut app = App::new();
    app.add_plugins((TaskPoolPlugin::default(), TimePlugin, DuePlugin))
        .insert_resource(encounter)
        .init_resource::<Tally>()
        .add_systems(Startup, start_fight)
        .add_systems(Update, poison)
        .add_systems(
            Last,
            (count_frames, sum_up.run_if(on_message::<AppExit>)).chain(),
        )
        .add_observer(|_: On<TimerFired>, mut tally: ResMut<Tally>| tally.fired += 1)
        .add_observer(|_: On<TimerCancelled>, mut tally: ResMut<Tally>| tally.cancelled += 1);
    if fast {
        app.insert_resource(TimeUpdateStrategy::ManualDuration(FRAME))
            .add_plugins(ScheduleRunnerPlugin::default());
    } else {
        app.add_plugins(ScheduleRunnerPlugin::run_loop(FRAME));
    }
    match app.run() {
        AppExit::Success => ExitCode::SUCCESS,
        AppExit::Error(code) => ExitCode::from(code.get()),
    }
}

#[derive(Component)]
struct Hero;

#[derive(Component)]
struct Health(u32);

#[derive(Component)]
struct Minion;

#[derive(Component)]
struct Wave;

#[derive(Component)]
struct Poison(u32);

#[derive(Component)]
struct Cast {
    damage: u32,
}

fn start_fight(mut commands: Commands, encounter: Res<Encounter>) {
    // One entity carries one timer. For many, spawn them as the timers of their owner: when the
    // boss falls, all that it was up to is cancelled with it.
    let boss = commands.spawn(Name::new(encounter.boss.clone())).id();
    for ability in &encounter.abilities {
        commands
            .spawn((TimerOf(boss), ability.clone(), ability.timer()))
            .observe(use_ability);
    }
    let hero = commands.spawn((Hero, Health(500))).id();
    commands
        .spawn((TimerOf(hero), Timer::every_secs(3.4)))
        .observe(throw_bomb);
    commands
        .spawn((TimerOf(hero), Timer::every_secs(6.0)))
        .observe(raise_shield);

    commands
        .spawn((Wave, Timer::after_secs(0.5)))
        .observe(summon_wave);
    commands.spawn(Timer::after_secs(10.0)).observe(end_fight);
}

fn use_ability(
    fired: On<TimerFired>,
    abilities: Query<&Ability>,
    hero: Single<Entity, With<Hero>>,
    mut fight: Fight,
    mut commands: Commands,
) -> Result {
    let ability = abilities.get(fired.entity)?;
    match ability.effect {
        Effect::Hit(damage) => fight.hurt(&ability.name, damage),
        Effect::Poison(damage) => {
            fight.log(format_args!("{}: the hero is poisoned", ability.name));
            // A delay of its own for the first firing, and an end after so many.
            let timer = Timer::every_secs(1.0).first_after_secs(0.5).times(5);
            commands.spawn((TimerOf(*hero), Poison(damage), timer));
        }
        Effect::Cast { time, damage } => {
            fight.log(format_args!("{}: the boss starts to cast", ability.name));
            commands
                .spawn((TimerOf(fired.owner), Cast { damage }, Timer::after(time.0)))
                .observe(finish_cast)
                .observe(interrupt_cast);
        }
    }
    Ok(())
}

fn finish_cast(fired: On<TimerFired>, casts: Query<&Cast>, mut fight: Fight) -> Result {
    fight.hurt("The cast", casts.get(fired.entity)?.damage);
    Ok(())
}

fn interrupt_cast(cancelled: On<TimerCancelled>, fight: Fight) {
    fight.log(format_args!(
        "The cast is interrupted: {:?}",
        cancelled.reason
    ));
}

fn raise_shield(
    _: On<TimerFired>,
    casts: Query<Entity, With<Cast>>,
    fight: Fight,
    mut commands: Commands,
) {
    fight.log("The hero raises the shield");
    for cast in &casts {
        // That is all it takes to cancel.
        commands.entity(cast).despawn();
    }
}

/// Poison in the style of a system, which takes all that fired in this frame at once.
fn poison(mut fired: MessageReader<TimerFired>, poisons: Query<&Poison>, mut fight: Fight) {
    for fired in fired.read() {
        if let Ok(Poison(damage)) = poisons.get(fired.entity) {
            fight.hurt("Poison", *damage);
            if fired.last {
                fight.log("The poison has worn off");
            }
        }
    }
}

fn summon_wave(_: On<TimerFired>, fight: Fight, mut commands: Commands) {
    fight.log("Three minions join the fight");
    for nth in 0..3 {
        let bite = Timer::every_secs(0.9).first_after_secs(0.3 + 0.2 * f64::from(nth));
        commands
            .spawn((Minion, bite))
            .observe(|_: On<TimerFired>, mut fight: Fight| fight.hurt("A minion", 2));
    }
}

/// The bomb kills minions in the middle of their own timers: none of them bites again, not even
/// if it was due in this very frame.
fn throw_bomb(
    _: On<TimerFired>,
    minions: Query<Entity, With<Minion>>,
    wave: Single<Entity, With<Wave>>,
    fight: Fight,
    mut commands: Commands,
) {
    fight.log(format_args!("The bomb kills {} minions", minions.count()));
    for minion in &minions {
        commands.entity(minion).despawn();
    }
    // The wave's timer has fired its last, so the entity has none: a new one arms it again.
    commands.entity(*wave).insert(Timer::after_secs(1.0));
}

fn end_fight(_: On<TimerFired>, mut fight: Fight) {
    fight.log("The bell ends the fight");
    fight.exit.write(AppExit::Success);
}

/// The fight's clock and its hero.
#[derive(SystemParam)]
struct Fight<'w, 's> {
    time: Res<'w, Time<Virtual>>,
    hero: Single<'w, 's, &'static mut Health, With<Hero>>,
    exit: MessageWriter<'w, AppExit>,
}

impl Fight<'_, '_> {
    fn log(&self, what: impl Display) {
        println!("{:7.3}  {what}", self.time.elapsed_secs_f64());
    }

    fn hurt(&mut self, what: impl Display, damage: u32) {
        if self.hero.0 == 0 {
            return;
        }
        self.hero.0 = self.hero.0.saturating_sub(damage);
        self.log(format_args!(
            "{what} hits for {damage}: {} left",
            self.hero.0
        ));
        if self.hero.0 == 0 {
            self.log("The hero falls");
            self.exit.write(AppExit::Success);
        }
    }
}

#[derive(Resource, Default)]
struct Tally {
    frames: u32,
    fired: u32,
    cancelled: u32,
}

fn count_frames(mut tally: ResMut<Tally>) {
    tally.frames += 1;
}

fn sum_up(tally: Res<Tally>, armed: Query<(), With<Timer>>) {
    println!(
        "frames {}, fired {}, cancelled {}, still armed {}",
        tally.frames,
        tally.fired,
        tally.cancelled,
        armed.count()
    );
}

/// A boss, read from a file.
#[derive(Resource, Deserialize)]
#[serde(deny_unknown_fields)]
struct Encounter {
    boss: String,
    abilities: Vec<Ability>,
}

#[derive(Component, Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct Ability {
    name: String,
    first: Delay,
    every: Interval,
    /// How often, or for ever.
    #[serde(default)]
    times: Option<NonZeroU32>,
    effect: Effect,
}

#[derive(Deserialize, Clone, Copy)]
enum Effect {
    Hit(u32),
    Poison(u32),
    Cast { time: Delay, damage: u32 },
}

/// Seconds from zero up. The `try_` constructors check what comes from data, and serde says where
/// in the file it was refused.
#[derive(Deserialize, Clone, Copy)]
#[serde(try_from = "f64")]
struct Delay(Duration);

impl TryFrom<f64> for Delay {
    type Error = InvalidTimer;

    fn try_from(secs: f64) -> Result<Self, InvalidTimer> {
        Ok(Self(Timer::try_after_secs(secs)?.delay()))
    }
}

/// Seconds above zero.
#[derive(Deserialize, Clone)]
#[serde(try_from = "f64")]
struct Interval(Timer);

impl TryFrom<f64> for Interval {
    type Error = InvalidTimer;

    fn try_from(secs: f64) -> Result<Self, InvalidTimer> {
        Ok(Self(Timer::try_every_secs(secs)?))
    }
}

impl Ability {
    fn timer(&self) -> Timer {
        let timer = self.every.0.clone().first_after(self.first.0);
        match self.times {
            Some(times) => timer.times(times.get()),
            None => timer,
        }
    }
}

fn from_command_line() -> Result<(bool, Encounter), Box<dyn core::error::Error>> {
    use lexopt::prelude::*;

    let mut fast = false;
    let mut file = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/examples/encounters/gorvath.ron"
    ));
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("fast") => fast = true,
            Long("encounter") => file = arguments.value()?.into(),
            _ => return Err(argument.unexpected().into()),
        }
    }
    let name = file.display();
    let text = fs::read_to_string(&file).map_err(|error| format!("{name}: {error}"))?;
    let encounter = ron::Options::default()
        .with_default_extension(Extensions::IMPLICIT_SOME)
        .from_str(&text)
        .map_err(|error| {
            let Position { line, col } = error.span.start;
            let at = value_at(&text, line, col);
            format!("{name}:{line}:{col}: {}, at `{at}`", error.code)
        })?;
    Ok((fast, encounter))
}

fn value_at(text: &str, line: usize, col: usize) -> &str {
    let line = text.lines().nth(line - 1).unwrap_or_default();
    let start = line
        .char_indices()
        .nth(col - 1)
        .map_or(line.len(), |(at, _)| at);
    let rest = line[start..].trim_start();
    rest.split(&[',', '(', ')', '[', ']'])
        .next()
        .unwrap_or(rest)
}

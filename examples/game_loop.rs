//! A headless boss fight: everything that happens in it is a timer.
//!
//! ```text
//! cargo run --example game_loop                       ten seconds at 60 Hz
//! cargo run --example game_loop -- --fast             the same fight as fast as it can
//! cargo run --example game_loop -- --encounter FILE   another boss: see examples/encounters
//! ```

use core::{fmt::Display, num::NonZeroU32, time::Duration};
use std::{fs, path::PathBuf};

use bevy_app::{ScheduleRunnerPlugin, TaskPoolPlugin, prelude::*};
use bevy_due::{Timer, prelude::*};
use bevy_ecs::{prelude::*, system::SystemParam};
use bevy_time::{Time, TimePlugin, TimeUpdateStrategy, Virtual};
use ron::{error::Position, extensions::Extensions};
use serde::{Deserialize, Deserializer, de::Error};

const FRAME: Duration = Duration::from_nanos(16_666_667);

fn main() -> AppExit {
    let (fast, encounter) = match from_command_line() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}");
            return AppExit::error();
        }
    };
    let mut app = App::new();
    app.add_plugins((TaskPoolPlugin::default(), TimePlugin, DuePlugin))
        .insert_resource(encounter)
        .init_resource::<Tally>()
        .add_systems(Startup, start_fight)
        .add_systems(Update, poison)
        .add_systems(First, |mut tally: ResMut<Tally>| tally.frames += 1)
        .add_systems(Last, sum_up.run_if(on_message::<AppExit>))
        .add_observer(|_: On<TimerFired>, mut tally: ResMut<Tally>| tally.fired += 1)
        .add_observer(|_: On<TimerCancelled>, mut tally: ResMut<Tally>| tally.cancelled += 1);
    if fast {
        app.insert_resource(TimeUpdateStrategy::ManualDuration(FRAME))
            .add_plugins(ScheduleRunnerPlugin::default());
    } else {
        app.add_plugins(ScheduleRunnerPlugin::run_loop(FRAME));
    }
    app.run()
}

#[derive(Component)]
struct Boss;

#[derive(Component)]
struct Minion;

#[derive(Component)]
struct Hero {
    health: u32,
    shield: Cooldown,
}

#[derive(Component)]
struct Poison(u32);

fn start_fight(mut commands: Commands, encounter: Res<Encounter>) {
    // The boss carries a clock, and all its timers are on that.
    let boss = commands.spawn((Boss, Clock::new())).id();
    learn(&encounter.abilities, boss, &mut commands);
    if let Some(Enraged { after, .. }) = encounter.enraged {
        let mut boss = commands.entity(boss);
        boss.set_timer("rage", Timer::after(after)).observe(enrage);
    }
    let shield = Cooldown::secs(5.0);
    let health = 500;
    let mut hero = commands.spawn(Hero { health, shield });
    hero.set_timer("bomb", Timer::every_secs(3.4))
        .observe(throw_bomb);
    hero.set_timer("warp", Timer::after_secs(4.5))
        .observe(warp_time);

    commands.after_secs(0.5).run(summon_wave);
    commands.after_secs(10.0).run(end_fight);
}

/// One entity carries one timer. The many of a boss belong to it: when it falls, all that it was up
/// to is cancelled.
fn learn(abilities: &[Ability], boss: Entity, commands: &mut Commands) {
    for ability in abilities {
        commands
            .spawn((TimerOf(boss), ability.clone(), ability.timer()))
            .observe(use_ability);
    }
}

/// The second phase: the boss gives up all that it was up to. Its minions go on.
fn enrage(fired: On<TimerFired>, encounter: Res<Encounter>, mut fight: Fight) {
    fight.log(format_args!("{} is enraged", encounter.boss));
    fight.commands.entity(fired.owner).cancel_timers();
    if let Some(Enraged { abilities, .. }) = &encounter.enraged {
        learn(abilities, fired.owner, &mut fight.commands);
    }
}

fn use_ability(fired: On<TimerFired>, abilities: Query<&Ability>, mut fight: Fight) -> Result {
    let Ability { name, effect, .. } = abilities.get(fired.entity)?;
    match *effect {
        Effect::Hit(damage) => fight.hurt(name, damage),
        Effect::Poison(damage) => {
            fight.log(format_args!("{name}: the hero is poisoned"));
            // Another poison takes the place of the first.
            let timer = Timer::every_secs(1.0).first_after_secs(0.5).times(5);
            let mut hero = fight.commands.entity(fight.hero.0);
            hero.set_timer("poison", (Poison(damage), timer));
        }
        Effect::Cast { time, damage } => {
            fight.log(format_args!("{name}: the boss starts to cast"));
            let mut boss = fight.commands.entity(fired.owner);
            boss.set_timer("cast", Timer::after(time))
                .observe(move |_: On<TimerFired>, mut fight: Fight| fight.hurt("The cast", damage))
                .observe(|cancelled: On<TimerCancelled>, fight: Fight| {
                    let reason = cancelled.reason;
                    fight.log(format_args!("The cast is interrupted: {reason:?}"));
                });
            // The hero needs a moment.
            fight.commands.after_secs(0.3).run(raise_shield);
        }
    }
    Ok(())
}

fn raise_shield(mut fight: Fight) {
    let now = fight.time.elapsed();
    match fight.hero.1.shield.try_use(now) {
        Ok(()) => {
            fight.log("The hero raises the shield");
            fight.commands.entity(fight.boss.0).cancel_timer("cast");
        }
        Err(not_ready) => {
            let secs = not_ready.remaining.as_secs_f32();
            fight.log(format_args!("The shield takes another {secs:.1} s"));
        }
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

/// Minions live on the clock of the boss, but are not its timers.
fn summon_wave(mut fight: Fight) {
    fight.log("Three minions join the fight");
    let clock = OnClock::new(fight.boss.0);
    for nth in 0..3 {
        let bite = Timer::every_secs(0.9).first_after_secs(0.3 + 0.2 * f64::from(nth));
        let mut minion = fight.commands.spawn((Minion, clock, bite));
        minion.observe(|_: On<TimerFired>, mut fight: Fight| fight.hurt("A minion", 2));
    }
}

/// The bomb kills minions in the middle of their own timers: none of them bites again, not even
/// if it was due in this very frame.
fn throw_bomb(_: On<TimerFired>, minions: Query<Entity, With<Minion>>, mut fight: Fight) {
    fight.log(format_args!("The bomb kills {} minions", minions.count()));
    for minion in &minions {
        fight.commands.entity(minion).despawn();
    }
    fight.commands.after_secs(1.0).run(summon_wave);
}

/// For two seconds, whatever the boss and the minions do takes four times as long: in one write.
fn warp_time(_: On<TimerFired>, mut fight: Fight) {
    fight.log("The hero slows down time for the boss and the minions");
    fight.boss.1.set_speed(0.25);
    fight.commands.after_secs(2.0).run(end_warp);
}

fn end_warp(mut fight: Fight) {
    fight.log("The boss and the minions are as fast as before");
    fight.boss.1.set_speed(1.0);
}

fn end_fight(mut fight: Fight) {
    fight.log("The bell ends the fight");
    fight.exit.write(AppExit::Success);
}

/// Who is in the fight.
#[derive(SystemParam)]
struct Fight<'w, 's> {
    time: Res<'w, Time<Virtual>>,
    boss: Single<'w, 's, (Entity, &'static mut Clock), With<Boss>>,
    hero: Single<'w, 's, (Entity, &'static mut Hero)>,
    commands: Commands<'w, 's>,
    exit: MessageWriter<'w, AppExit>,
}

impl Fight<'_, '_> {
    fn log(&self, what: impl Display) {
        println!("{:7.3}  {what}", self.time.elapsed_secs_f64());
    }

    fn hurt(&mut self, what: impl Display, damage: u32) {
        let health = self.hero.1.health;
        if health == 0 {
            return;
        }
        let left = health.saturating_sub(damage);
        self.hero.1.health = left;
        self.log(format_args!("{what} hits for {damage}: {left} left"));
        if left == 0 {
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

fn sum_up(tally: Res<Tally>, timers: ArmedTimers) {
    println!(
        "frames {}, fired {}, cancelled {}, still armed {}",
        tally.frames,
        tally.fired,
        tally.cancelled,
        timers.count()
    );
}

/// A boss, read from a file.
#[derive(Resource, Deserialize)]
#[serde(deny_unknown_fields)]
struct Encounter {
    boss: String,
    abilities: Vec<Ability>,
    enraged: Option<Enraged>,
}

/// What it does instead after a while.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Enraged {
    #[serde(deserialize_with = "delay")]
    after: Duration,
    abilities: Vec<Ability>,
}

#[derive(Component, Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct Ability {
    name: String,
    #[serde(deserialize_with = "delay")]
    first: Duration,
    #[serde(deserialize_with = "every")]
    every: Timer,
    /// How often, or for ever.
    times: Option<NonZeroU32>,
    effect: Effect,
}

#[derive(Deserialize, Clone, Copy)]
enum Effect {
    Hit(u32),
    Poison(u32),
    Cast {
        #[serde(deserialize_with = "delay")]
        time: Duration,
        damage: u32,
    },
}

/// Reads seconds from zero up. The `try_` constructors check what comes from data, and serde says
/// where in the file it was refused.
fn delay<'de, D: Deserializer<'de>>(data: D) -> Result<Duration, D::Error> {
    let timer = Timer::try_after_secs(f64::deserialize(data)?);
    Ok(timer.map_err(D::Error::custom)?.delay())
}

/// Reads seconds above zero.
fn every<'de, D: Deserializer<'de>>(data: D) -> Result<Timer, D::Error> {
    Timer::try_every_secs(f64::deserialize(data)?).map_err(D::Error::custom)
}

impl Ability {
    fn timer(&self) -> Timer {
        let timer = self.every.clone().first_after(self.first);
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

fn value_at(text: &str, line: usize, col: usize) -> String {
    let line = text.lines().nth(line - 1).unwrap_or_default();
    let rest = line.chars().skip(col - 1).skip_while(|c| c.is_whitespace());
    rest.take_while(|&c| !",()[]".contains(c)).collect()
}

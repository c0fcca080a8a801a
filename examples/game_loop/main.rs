//! A headless boss fight in which every event is a timer.
//!
//! ```text
//! cargo run --example game_loop                       ten seconds at 60 Hz
//! cargo run --example game_loop -- --fast             the same fight, as fast as possible
//! cargo run --example game_loop -- --encounter FILE   another boss from examples/encounters
//! ```

mod encounter;

use core::{fmt::Display, time::Duration};

use bevy_app::{ScheduleRunnerPlugin, TaskPoolPlugin, prelude::*};
use bevy_due::{
    ArmedTimers, Clocks, OnClock, Timer, TimerCancelled, clock::SpeedModifier, prelude::*,
    timer::Keyed,
};
use bevy_ecs::{prelude::*, system::SystemParam};
use bevy_time::{Time, TimePlugin, TimeUpdateStrategy, Virtual};
use encounter::{Ability, Effect, Encounter, Enraged};

const FRAME: Duration = Duration::from_nanos(16_666_667);

fn main() -> AppExit {
    let (fast, encounter) = match Encounter::from_command_line() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}");
            return AppExit::error();
        }
    };
    let mut app = App::new();
    app.add_plugins((TaskPoolPlugin::default(), TimePlugin, DuePlugin::default()))
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
    // The boss carries a clock, and all its timers use it.
    let boss = commands.spawn((Boss, Clock::new())).id();
    learn(&encounter.abilities, boss, &mut commands);
    if let Some(Enraged { after, .. }) = encounter.enraged {
        let rage = (OwnedBy(boss), Timer::after(after));
        commands.spawn(rage).observe(enrage);
    }
    let shield = Cooldown::new(5.0);
    let health = 500;
    let hero = OwnedBy(commands.spawn(Hero { health, shield }).id());
    let bombs = (hero, Timer::every(3.4));
    commands.spawn(bombs).observe(throw_bomb);
    let warp = (hero, Timer::after(4.5));
    commands.spawn(warp).observe(warp_time);

    commands.after(0.5).run(summon_wave);
    commands.after(10.0).run(end_fight);
}

/// Gives the boss one owned timer per ability. When the boss despawns, all of them are cancelled.
fn learn(abilities: &[Ability], boss: Entity, commands: &mut Commands) {
    for ability in abilities {
        commands
            .spawn((OwnedBy(boss), ability.clone(), ability.timer()))
            .observe(use_ability);
    }
}

/// Starts the second phase: the boss forgets its abilities and learns new ones. Its minions fight on.
fn enrage(fired: On<TimerFired>, encounter: Res<Encounter>, mut fight: Fight) {
    fight.log(format_args!("{} is enraged", encounter.boss));
    fight.commands.entity(fired.owner()).cancel_timers();
    if let Some(Enraged { abilities, .. }) = &encounter.enraged {
        learn(abilities, fired.owner(), &mut fight.commands);
    }
}

fn use_ability(fired: On<TimerFired>, abilities: Query<&Ability>, mut fight: Fight) -> Result {
    let Ability { name, effect, .. } = abilities.get(fired.entity())?;
    match *effect {
        Effect::Hit(damage) => fight.hurt(name, damage),
        Effect::Poison(damage) => {
            fight.log(format_args!("{name}: the hero is poisoned"));
            // A new poison replaces the one before.
            let timer = Timer::every(1.0).first_after(0.5).times(5);
            let mut hero = fight.commands.entity(fight.hero.0);
            hero.set_timer("poison", (timer, Poison(damage)));
        }
        Effect::Cast { time, damage } => {
            fight.log(format_args!("{name}: the boss starts to cast"));
            let cast = (OwnedBy(fired.owner()), Keyed::new("cast"));
            let mut cast = fight.commands.spawn((cast, Timer::after(time)));
            cast.observe(move |_: On<TimerFired>, mut fight: Fight| fight.hurt("The cast", damage))
                .observe(|cancelled: On<TimerCancelled>, fight: Fight| {
                    let reason = cancelled.reason();
                    fight.log(format_args!("The cast is interrupted: {reason:?}"));
                });
            // The hero needs a moment to react.
            fight.commands.after(0.3).run(raise_shield);
        }
    }
    Ok(())
}

fn raise_shield(mut fight: Fight, clocks: Clocks) -> Result {
    let now = clocks.now(ClockId::Virtual)?;
    if fight.hero.1.shield.try_use(now) {
        fight.log("The hero raises the shield");
        fight.commands.entity(*fight.boss).cancel_timer("cast");
    } else {
        let secs = fight.hero.1.shield.remaining(now).as_secs_f32();
        fight.log(format_args!("The shield takes another {secs:.1} s"));
    }
    Ok(())
}

/// Handles all poison ticks of this frame in one system.
fn poison(mut fired: MessageReader<TimerFired>, poisons: Query<&Poison>, mut fight: Fight) {
    for fired in fired.read() {
        if let Ok(Poison(damage)) = poisons.get(fired.entity()) {
            fight.hurt("Poison", *damage);
            if fired.is_last() {
                fight.log("The poison has worn off");
            }
        }
    }
}

/// Spawns minions on the clock of the boss. Their timers do not belong to the boss.
fn summon_wave(mut fight: Fight) {
    fight.log("Three minions join the fight");
    let clock = OnClock::new(*fight.boss);
    for nth in 0..3 {
        let bite = Timer::every(0.9).first_after(0.3 + 0.2 * f64::from(nth));
        let mut minion = fight.commands.spawn((Minion, clock, bite));
        minion.observe(|_: On<TimerFired>, mut fight: Fight| fight.hurt("A minion", 2));
    }
}

/// Despawns the minions. None of them bites again, not even one that was due in this frame.
fn throw_bomb(_: On<TimerFired>, minions: Query<Entity, With<Minion>>, mut fight: Fight) {
    fight.log(format_args!("The bomb kills {} minions", minions.count()));
    for minion in &minions {
        fight.commands.entity(minion).despawn();
    }
    fight.commands.after(1.0).run(summon_wave);
}

/// Slows down the boss and the minions for two seconds, with one entity.
fn warp_time(_: On<TimerFired>, mut fight: Fight) {
    fight.log("The hero slows down time for the boss and the minions");
    let slow = SpeedModifier::new(*fight.boss, 0.25);
    fight.commands.spawn((slow, DespawnAfter::new(2.0)));
    fight.commands.after(2.0).run(end_warp);
}

fn end_warp(fight: Fight) {
    fight.log("The boss and the minions are back to normal speed");
}

fn end_fight(mut fight: Fight) {
    fight.log("The bell ends the fight");
    fight.exit.write(AppExit::Success);
}

/// The fighters, and what most systems of the fight need.
#[derive(SystemParam)]
struct Fight<'w, 's> {
    time: Res<'w, Time<Virtual>>,
    boss: Single<'w, 's, Entity, With<Boss>>,
    hero: Single<'w, 's, (Entity, &'static mut Hero)>,
    commands: Commands<'w, 's>,
    exit: MessageWriter<'w, AppExit>,
}

impl Fight<'_, '_> {
    fn log(&self, line: impl Display) {
        println!("{:7.3}  {line}", self.time.elapsed_secs_f64());
    }

    fn hurt(&mut self, attack: impl Display, damage: u32) {
        let health = self.hero.1.health;
        if health == 0 {
            return;
        }
        let left = health.saturating_sub(damage);
        self.hero.1.health = left;
        self.log(format_args!("{attack} hits for {damage}: {left} left"));
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

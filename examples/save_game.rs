//! A fight is saved in the middle of everything: poison, a stun, a cooldown, haste, a slowed arena,
//! the timers of a boss, and an open question. A new app loads it. Both apps continue, and print the
//! same.
//!
//! ```text
//! cargo run --example save_game --features serialize
//! ```
//!
//! The recipe for your game:
//!
//! 1. Register your components with `World::add_saved_component`, and the handlers of your timers with
//!    `World::add_timer_handler`, in each app.
//! 2. `World::save_timers` returns all of it as data: your components, and timers with their actions, owners and
//!    keys, cooldowns, pauses, clocks and open requests.
//! 3. To load, make a new app with the same plugins, components and handlers, and call
//!    `World::load_timers`. A `MessageComponent` contains closures. A component that requires it brings it along.

use core::{fmt::Display, mem, time::Duration};

use bevy_app::prelude::*;
use bevy_due::{
    ClockId, Clocks, OnClock, PausedBy, Timer, TimerAction,
    clock::SpeedModifier,
    message::{MessageEntityCommandsExt, NoAnswer},
    prelude::*,
    save::SaveWorldExt,
};
use bevy_ecs::{entity::EntityHashMap, prelude::*, system::SystemParam};
use bevy_time::{TimePlugin, TimeUpdateStrategy};
use serde::{Deserialize, Serialize};

/// The time per frame. A game leaves this out and runs in real time.
const FRAME: Duration = Duration::from_millis(100);

fn main() -> Result {
    let mut game = new_app();
    game.world_mut().run_system_cached(start)?;
    println!("-- The fight begins");
    print(&play(&mut game, 30));

    let text = save(game.world_mut())?;
    println!("-- Saved as {} bytes of RON", text.len());
    let mut loaded = new_app();
    load(loaded.world_mut(), &text)?;

    let uninterrupted = play(&mut game, 100);
    let continued = play(&mut loaded, 100);
    println!("-- Loaded into a new app");
    print(&continued);
    assert_eq!(continued, uninterrupted, "both games go on in the same way");
    println!("-- The saved game went on in the same way");
    Ok(())
}

/// Returns an app without a game. Everything that is not data belongs here.
fn new_app() -> App {
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .insert_resource(TimeUpdateStrategy::ManualDuration(FRAME))
        .init_resource::<Log>()
        .add_systems(Update, strike);
    let world = app.world_mut();
    world.add_saved_component::<Creature>("creature");
    world.add_saved_component::<Hero>("hero");
    world.add_saved_component::<Enraged>("enraged");
    world.add_timer_handler("poison", poison);
    world.add_timer_handler("bite", bite);
    world.add_timer_handler("summon", summon);
    world.add_timer_handler("enrage", enrage);
    world.add_timer_handler("stun", stun);
    app.update(); // Bevy's first frame takes no time.
    app
}

#[derive(Component, Clone, Serialize, Deserialize)]
struct Creature {
    name: String,
    health: i32,
}

/// The callbacks of the hero are code. A loaded hero brings them along.
#[derive(Component, Clone, Serialize, Deserialize)]
#[require(MessageComponent = hears_answers())]
struct Hero;

/// Bites are twice as bad.
#[derive(Component, Clone, Serialize, Deserialize)]
struct Enraged;

#[derive(Message)]
struct WillIWin;

fn start(mut commands: Commands) {
    let arena = commands.spawn(Clock::new().with_speed(0.5)).id();
    let haste = SpeedModifier::new(arena, 1.5);
    commands.spawn((haste, DespawnAfter::new(4.0)));

    let mut boss = commands.spawn((creature(BOSS, 120), OnClock::new(arena)));
    let two_wolves = TimerAction::named_with("summon", [2]);
    boss.set_timer("summon", (Timer::every(1.5).times(3), two_wolves))
        .set_timer("bite", bites(0.7, 6))
        .set_timer("enrage", after(2.0, "enrage"));

    let dash = Cooldown::new(0.9).with_charges(2);
    let mut hero = commands.spawn((Hero, creature(HERO, 150), dash));
    let poison = Timer::every_between(0.4..=1.6).times(6);
    hero.set_timer("poison", (poison, TimerAction::named_with("poison", [3])))
        .set_timer("stun", after(2.7, "stun"));

    let hero = hero.id();
    let oracle = commands.spawn_empty().id();
    let mut hero = commands.entity(hero);
    hero.ask(oracle, WillIWin, Timer::after(5.0));
}

const HERO: &str = "the hero";
const BOSS: &str = "the boss";

fn creature(name: &str, health: i32) -> Creature {
    let name = name.to_owned();
    Creature { name, health }
}

fn after(secs: f32, action: &'static str) -> (Timer, TimerAction) {
    (Timer::after(secs), TimerAction::named(action))
}

/// Bites the hero again and again. The damage is the data of the action.
fn bites(secs: f32, damage: u8) -> (Timer, TimerAction) {
    let action = TimerAction::named_with("bite", [damage]);
    (Timer::every(secs), action)
}

fn hears_answers() -> MessageComponent {
    MessageComponent::new().on(|mut me, _: &NoAnswer| {
        let silence = |mut fight: Fight| fight.log("The oracle is silent");
        me.commands.run_system_cached(silence);
    })
}

fn save(world: &mut World) -> Result<String> {
    Ok(ron::to_string(&world.save_timers()?)?)
}

fn load(world: &mut World, text: &str) -> Result {
    // A game that needs the new ids finds them in the map.
    let mut entities = EntityHashMap::default();
    Ok(world.load_timers(&ron::from_str(text)?, &mut entities)?)
}

fn play(app: &mut App, frames: usize) -> Vec<String> {
    for _ in 0..frames {
        app.update();
    }
    mem::take(&mut app.world_mut().resource_mut::<Log>().0)
}

fn print(lines: &[String]) {
    for line in lines {
        println!("{line}");
    }
}

/// The lines that the game prints.
#[derive(Resource, Default)]
struct Log(Vec<String>);

/// Changes and reports the fight.
#[derive(SystemParam)]
struct Fight<'w, 's> {
    clocks: Clocks<'w>,
    log: ResMut<'w, Log>,
    creatures: Query<'w, 's, (&'static mut Creature, Has<Enraged>)>,
    actions: Query<'w, 's, &'static TimerAction>,
}

impl Fight<'_, '_> {
    /// Adds a line with the game time, which a loaded game continues.
    fn log(&mut self, line: impl Display) {
        let now = self.clocks.now(ClockId::Virtual);
        let now = now.map_or(0.0, |now| now.as_secs_f32());
        self.log.0.push(format!("{now:5.1}s  {line}"));
    }

    fn wound(&mut self, name: &str, damage: i32, how: impl Display) {
        let mut creatures = self.creatures.iter_mut();
        if let Some((mut target, _)) = creatures.find(|(it, _)| it.name == name) {
            target.health -= damage;
            let health = target.health;
            self.log(format_args!("{how}: {name} has {health} health left"));
        }
    }

    /// Returns the number in the action of a timer.
    fn number(&self, fired: TimerFired) -> u8 {
        let action = self.actions.get(fired.entity());
        action.map_or(0, |action| action.data()[0])
    }
}

fn poison(In(fired): In<TimerFired>, mut fight: Fight) {
    let damage = fight.number(fired);
    fight.wound(HERO, damage.into(), "Poison");
}

fn bite(In(fired): In<TimerFired>, mut fight: Fight) -> Result {
    let (biter, is_enraged) = fight.creatures.get(fired.owner())?;
    let how = match is_enraged {
        true => format!("In rage, {} bites", biter.name),
        false => format!("{} bites", biter.name),
    };
    let damage = fight.number(fired) << u8::from(is_enraged);
    fight.wound(HERO, damage.into(), how);
    Ok(())
}

fn summon(In(fired): In<TimerFired>, mut fight: Fight, mut commands: Commands) {
    for nth in 1..=fight.number(fired) {
        let name = format!("wolf {}.{nth}", fired.count());
        fight.log(format_args!("{name} appears for three seconds"));
        let wolf = (creature(&name, 5), DespawnAfter::new(3.0));
        commands.spawn(wolf).set_timer("bite", bites(0.8, nth));
    }
}

fn enrage(In(fired): In<TimerFired>, mut fight: Fight, mut commands: Commands) {
    fight.log("The boss is enraged");
    let mut boss = commands.entity(fired.owner());
    boss.insert_for(2.0, Enraged);
}

fn stun(In(fired): In<TimerFired>, mut fight: Fight, mut commands: Commands) {
    fight.log("The hero is stunned");
    commands.entity(fired.owner()).pause_for(1.5);
}

/// The hero strikes whenever the cooldown allows it, except when stunned.
fn strike(heroes: Query<&mut Cooldown, Without<PausedBy>>, mut fight: Fight) -> Result {
    let now = fight.clocks.now(ClockId::Virtual)?;
    for mut strike in heroes {
        if strike.try_use(now) {
            fight.wound(BOSS, 5, "The hero strikes");
        }
    }
    Ok(())
}

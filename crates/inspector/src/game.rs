//! A small busy game: a boss fight in an arena beside a village, on five clocks of their own.

use core::time::Duration;

use bevy_app::prelude::*;
use bevy_due::{
    ClockId, Clocks, Cooldown, DespawnAfter, OnClock, Timer, clock::SpeedModifier, prelude::*,
};
use bevy_ecs::prelude::*;

pub(crate) fn plugin(app: &mut App) {
    app.add_systems(Startup, (build_arena, build_village, build_menu));
}

#[derive(Component)]
struct Boss;

/// The abilities of a hero are entities with a [`Cooldown`].
#[derive(Component)]
struct Hero {
    arena: Entity,
}

fn build_arena(mut commands: Commands) {
    let arena = commands.spawn((Name::new("arena"), Clock::new())).id();
    build_boss(&mut commands, arena);
    let hero = (Name::new("hero"), Hero { arena }, OnClock::new(arena));
    let hero = commands.spawn(hero).observe(use_ability).id();
    commands.entity(hero).set_timer("think", Timer::every(1.4));
    for (name, cooldown) in [
        ("dash", Cooldown::new(3.0).with_charges(2)),
        ("fireball", Cooldown::new(2.0)),
        ("shield", Cooldown::new(5.0)),
    ] {
        commands.spawn((Name::new(name), OwnedBy(hero), cooldown));
    }
    let meteor = Timer::after(4.0)
        .with_jitter(Duration::from_secs(5))
        .on(arena);
    commands
        .spawn((Name::new("meteor"), meteor.clone()))
        .observe(move |fired: On<TimerFired>, mut commands: Commands| {
            commands.entity(fired.entity()).insert(meteor.clone());
        });
}

/// The boss has a clock of its own, so that its rage speeds up all it does.
fn build_boss(commands: &mut Commands, arena: Entity) {
    commands
        .spawn((Name::new("boss"), Boss, Clock::of(arena)))
        .observe(fight)
        .set_timer("swing", Timer::every(1.2))
        .set_timer("summon", Timer::every(6.0))
        .set_timer("enrage", Timer::after(20.0));
}

fn fight(fired: On<OwnedTimerFired>, heroes: Query<(Entity, &Hero)>, mut commands: Commands) {
    let boss = fired.owner();
    if fired.has_key("summon") {
        for (_, hero) in &heroes {
            summon_minion(&mut commands, hero.arena);
        }
    } else if fired.has_key("swing") {
        let bleeding = Timer::every(0.4).times(4);
        for (hero, _) in &heroes {
            commands
                .entity(hero)
                .refresh_timer("bleeding", bleeding.clone());
        }
    } else if fired.has_key("enrage") {
        commands.spawn((SpeedModifier::new(boss, 2.0), DespawnAfter::new(6.0)));
        commands
            .entity(boss)
            .set_timer("enrage", Timer::after(20.0));
    }
}

fn summon_minion(commands: &mut Commands, arena: Entity) {
    let minion = (
        Name::new("minion"),
        OnClock::new(arena),
        DespawnAfter::new(9.0),
    );
    commands.spawn(minion).set_timer("bite", Timer::every(0.7));
}

/// Uses the first ability that is ready. The cooldowns run on the clock of the arena, as their owner does.
fn use_ability(
    fired: On<OwnedTimerFired>,
    heroes: Query<(&Hero, &Owned)>,
    mut cooldowns: Query<&mut Cooldown>,
    clocks: Clocks,
) -> Result {
    if fired.has_key("think") {
        let (hero, owned) = heroes.get(fired.owner())?;
        let now = clocks.now(hero.arena)?;
        for ability in owned.iter() {
            if let Ok(mut cooldown) = cooldowns.get_mut(ability)
                && cooldown.try_use(now)
            {
                break;
            }
        }
    }
    Ok(())
}

fn build_village(mut commands: Commands) {
    let village = (Name::new("village"), Clock::new().with_speed(0.5));
    let village = commands
        .spawn(village)
        .set_timer("bread", Timer::every(4.0))
        .set_timer("market day", Timer::every(15.0))
        .id();
    let between = Duration::from_secs(2)..=Duration::from_secs(9);
    commands
        .spawn((Name::new("weather"), Clock::of(village).with_speed(2.0)))
        .set_timer("thunder", Timer::every_between(between));
}

/// The menu goes on while the game is paused.
fn build_menu(mut commands: Commands) {
    commands
        .spawn((Name::new("menu"), Clock::of(ClockId::Real)))
        .set_timer("autosave", Timer::every(30.0))
        .set_timer("blink", Timer::every(0.5));
}

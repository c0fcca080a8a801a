//! A saved game: the components of the game, and beside them the timers.

use bevy_due::save::{SaveWorldExt, SavedTimers};
use bevy_ecs::{entity::EntityHashMap, prelude::*};
use serde::{Deserialize, Serialize};

use crate::{
    castle::Castle,
    enemies::{Arena, Enemy, walking},
    spells::PlayerSpell,
    towers::Tower,
    waves::Waves,
};

/// The cooldowns of towers and spells, the clocks, the slows and the stuns are all in `timers`.
#[derive(Serialize, Deserialize)]
struct SavedGame {
    castle: Castle,
    arena: Entity,
    waves: Vec<(Entity, Waves)>,
    enemies: Vec<(Entity, Enemy)>,
    towers: Vec<(Entity, Tower)>,
    spells: Vec<(Entity, PlayerSpell)>,
    timers: SavedTimers,
}

/// Returns the game as text.
///
/// # Errors
///
/// Fails if there is no game, or if the reaction to a timer is a closure.
pub fn save(world: &mut World) -> Result<String> {
    let mut arena = world.query_filtered::<Entity, With<Arena>>();
    let game = SavedGame {
        castle: world.resource::<Castle>().clone(),
        arena: arena.single(world)?,
        waves: all(world),
        enemies: all(world),
        towers: all(world),
        spells: all(world),
        timers: world.save_timers()?,
    };
    Ok(ron::to_string(&game)?)
}

/// Loads a game into a world without one.
///
/// # Errors
///
/// Fails if the text is not a saved game.
pub fn load(world: &mut World, text: &str) -> Result {
    let game: SavedGame = ron::from_str(text)?;
    world.insert_resource(game.castle);
    let mut entities = EntityHashMap::default();
    entities.insert(game.arena, world.spawn(Arena).id());
    spawn(world, game.waves, &mut entities);
    spawn(world, game.towers, &mut entities);
    spawn(world, game.spells, &mut entities);
    let enemies = spawn(world, game.enemies, &mut entities);
    world.load_timers(&game.timers, &mut entities)?;
    // Callbacks are code, which is not saved.
    for enemy in enemies {
        world.entity_mut(enemy).insert(walking());
    }
    Ok(())
}

fn all<C: Component + Clone>(world: &mut World) -> Vec<(Entity, C)> {
    let mut all = world.query::<(Entity, &C)>();
    let all = all.iter(world);
    all.map(|(entity, component)| (entity, component.clone()))
        .collect()
}

/// Spawns saved components, and notes which entity stands for which saved one.
fn spawn<C: Component>(
    world: &mut World,
    saved: Vec<(Entity, C)>,
    entities: &mut EntityHashMap<Entity>,
) -> Vec<Entity> {
    let spawn = |(saved, component)| {
        let entity = world.spawn(component).id();
        entities.insert(saved, entity);
        entity
    };
    saved.into_iter().map(spawn).collect()
}

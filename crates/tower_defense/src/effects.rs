//! Effects on enemies: poison, frost and stuns.

use bevy_due::{Timer, TimerKey, clock::SpeedModifier, prelude::*};
use bevy_ecs::prelude::*;

use crate::{
    boss::Cast,
    enemies::Enemy,
    map::Cell,
    towers::{Tower, TowerKind},
};

/// The key of the timer of a poison.
#[derive(Component, Debug)]
pub struct Poison;

impl TimerKey for Poison {
    const NAME: &'static str = "poison";
}

/// Adds a stack of poison. The poison lasts longer, and its next tick stays where it is.
pub fn poison(enemy: &mut Enemy, mut entity: EntityCommands) {
    enemy.poison += 1;
    entity.refresh_timer(Poison, Timer::every(0.5).times(8));
}

pub fn tick_poison(mut fired: MessageReader<TimerFired>, mut enemies: Query<&mut Enemy>) {
    for fired in fired.read().filter(|fired| fired.has_key(Poison)) {
        if let Ok(mut enemy) = enemies.get_mut(fired.owner()) {
            let damage = enemy.poison;
            enemy.hurt(damage);
            if fired.is_last() {
                enemy.poison = 0;
            }
        }
    }
}

/// Keeps a slow for each enemy in each field of frost. It ends when the enemy leaves, and dies with the
/// enemy or the tower.
pub fn chill(
    towers: Query<(Entity, &Tower)>,
    enemies: Query<(Entity, &Enemy)>,
    slows: Query<(Entity, &SpeedModifier, &OwnedBy)>,
    mut commands: Commands,
) {
    let fields = towers
        .iter()
        .filter(|(_, tower)| tower.kind == TowerKind::Frost);
    for (field, tower) in fields {
        for (entity, enemy) in &enemies {
            let mut slows = slows.iter();
            let slow = slows.find(|(_, slow, owner)| slow.clock() == entity && owner.0 == field);
            match (tower.reaches(enemy), slow) {
                (true, None) => {
                    commands.spawn((SpeedModifier::new(entity, 0.5), OwnedBy(field)));
                }
                (false, Some((slow, ..))) => commands.entity(slow).despawn(),
                _ => {}
            }
        }
    }
}

/// Stops an enemy and everything on it for a while. Stuns may overlap. A cast is lost.
pub fn stun(mut enemy: EntityCommands, secs: f32) {
    enemy.cancel_timer(Cast).pause_for(secs);
}

/// A flash where something hits.
#[derive(Component, Debug)]
pub struct Flash(pub Cell);

#[must_use]
pub fn flash(cell: Cell) -> impl Bundle {
    (Flash(cell), DespawnAfter::new(0.15))
}

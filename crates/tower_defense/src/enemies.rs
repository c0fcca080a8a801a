//! Enemies: they walk to the gate, each on a clock of its own.

use bevy_due::prelude::*;
use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{
    boss::Spell,
    castle::Castle,
    log::Story,
    map::{Place, on_road, road_length},
};

/// The clock of all enemies and waves. Slow motion slows it down.
#[derive(Component, Debug)]
pub struct Arena;

#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Enemy {
    pub kind: EnemyKind,
    pub health: u32,
    pub max_health: u32,
    /// The number of cells that it has walked.
    pub walked: f32,
    /// The number of stacks of poison.
    pub poison: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EnemyKind {
    Runner,
    Brute,
    Warlock,
}

impl EnemyKind {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Runner => "runner",
            Self::Brute => "brute",
            Self::Warlock => "warlock",
        }
    }

    fn health(self) -> u32 {
        match self {
            Self::Runner => 22,
            Self::Brute => 60,
            Self::Warlock => 420,
        }
    }

    /// The number of cells per second.
    fn speed(self) -> f32 {
        match self {
            Self::Runner => 2.2,
            Self::Brute => 1.4,
            Self::Warlock => 1.0,
        }
    }

    fn bounty(self) -> u32 {
        match self {
            Self::Runner => 8,
            Self::Brute => 15,
            Self::Warlock => 80,
        }
    }

    /// The number of lives that it takes at the gate.
    fn damage(self) -> u32 {
        match self {
            Self::Runner => 1,
            Self::Brute => 2,
            Self::Warlock => 10,
        }
    }
}

impl Enemy {
    /// Creates an enemy. Each wave is a tenth stronger than the one before.
    #[must_use]
    pub fn new(kind: EnemyKind, wave: u32) -> Self {
        let health = kind.health() + kind.health() * wave / 10;
        Self {
            kind,
            health,
            max_health: health,
            walked: 0.0,
            poison: 0,
        }
    }

    #[must_use]
    pub fn place(&self) -> Place {
        on_road(self.walked)
    }

    pub fn hurt(&mut self, damage: u32) {
        self.health = self.health.saturating_sub(damage);
    }
}

/// Spawns an enemy on a clock of its own, so that frost can slow it down.
pub fn spawn_enemy(commands: &mut Commands, arena: Entity, enemy: Enemy) {
    let is_boss = enemy.kind == EnemyKind::Warlock;
    let mut enemy = commands.spawn((enemy, Clock::of(arena), walking()));
    if is_boss {
        enemy.set_timer(Spell, Spell::timer());
    }
}

/// The walk of an enemy: a callback per frame with the time that has passed on its clock. It is code, so
/// a loaded game inserts it again.
#[must_use]
pub fn walking() -> UpdateComponent {
    UpdateComponent::new(|mut me| {
        let secs = me.delta.as_secs_f32();
        if let Some(mut enemy) = me.entity.get_mut::<Enemy>() {
            enemy.walked += enemy.kind.speed() * secs;
        }
    })
}

/// Removes the dead. Their timers, clocks, pauses and slows go with them.
pub fn bury(
    enemies: Query<(Entity, &Enemy)>,
    mut castle: ResMut<Castle>,
    mut story: Story,
    mut commands: Commands,
) {
    for (entity, enemy) in enemies.iter().filter(|(_, enemy)| enemy.health == 0) {
        castle.gold += enemy.kind.bounty();
        castle.kills += 1;
        story.tell(format_args!("A {} falls", enemy.kind.name()));
        commands.entity(entity).despawn();
    }
}

pub fn reach_gate(
    enemies: Query<(Entity, &Enemy)>,
    mut castle: ResMut<Castle>,
    mut story: Story,
    mut commands: Commands,
) {
    for (entity, enemy) in &enemies {
        if enemy.walked >= road_length() {
            commands.entity(entity).despawn();
            story.tell(format_args!("A {} gets through", enemy.kind.name()));
            castle.lose_lives(enemy.kind.damage(), &mut story, &mut commands);
        }
    }
}

//! Waves: each comes sooner than the one before, and its enemies follow each other faster.

use bevy_due::{Clocks, OnClock, Timer, TimerKey, prelude::*};
use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{
    enemies::{Arena, Enemy, EnemyKind, spawn_enemy},
    log::Story,
    orders::Order,
};

/// The waves. The timer on this entity is the next one.
#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waves {
    pub number: u32,
}

/// The key of the timer that lets the enemies of a wave march in, one by one.
#[derive(Component, Debug)]
pub struct March;

impl TimerKey for March {
    const NAME: &'static str = "march";
}

impl Waves {
    /// Returns the seconds until the wave after this one.
    fn interval(&self) -> f32 {
        (14.0 * 0.92_f32.powi(self.number as i32)).max(5.0)
    }

    fn size(&self) -> u32 {
        5 + self.number
    }

    fn has_boss(&self) -> bool {
        self.number.is_multiple_of(3)
    }

    fn kind(&self) -> EnemyKind {
        match self.number % 2 {
            0 => EnemyKind::Brute,
            _ => EnemyKind::Runner,
        }
    }

    /// Lets all enemies of a wave march in before the next wave begins.
    fn march(&self) -> Timer {
        let secs = self.interval() * 0.6 / self.size() as f32;
        Timer::every(secs).immediately().times(self.size())
    }
}

/// Starts a game: everything that a saved game brings along instead.
pub fn start(mut commands: Commands) {
    let arena = commands.spawn((Arena, Clock::new())).id();
    let first = Timer::after(3.0);
    commands.spawn((Waves { number: 0 }, OnClock::new(arena), first));
}

/// Begins a wave and arms the next one. Its wait counts from the deadline of this one, not from the
/// frame, so the waves do not drift.
pub fn next_wave(
    mut fired: MessageReader<TimerFired>,
    mut waves: Query<&mut Waves>,
    arena: Single<Entity, With<Arena>>,
    mut story: Story,
    mut commands: Commands,
) {
    for fired in fired.read() {
        let Ok(mut waves) = waves.get_mut(fired.entity()) else {
            continue;
        };
        waves.number += 1;
        story.tell(format_args!("Wave {} is coming", waves.number));
        if waves.has_boss() {
            story.tell("A warlock leads it");
            let boss = Enemy::new(EnemyKind::Warlock, waves.number);
            spawn_enemy(&mut commands, *arena, boss);
        }
        let next = Timer::after(waves.interval()).since(fired.deadline());
        let mut entity = commands.entity(fired.entity());
        entity.insert(next).set_timer(March, waves.march());
    }
}

/// Lets the next enemy of a wave march in.
pub fn march(
    mut fired: MessageReader<TimerFired>,
    waves: Query<&Waves>,
    arena: Single<Entity, With<Arena>>,
    mut commands: Commands,
) {
    for fired in fired.read().filter(|fired| fired.has_key(March)) {
        if let Ok(waves) = waves.get(fired.owner()) {
            let enemy = Enemy::new(waves.kind(), waves.number);
            spawn_enemy(&mut commands, *arena, enemy);
        }
    }
}

/// Calls the next wave early. It is due now, and the wave after it counts from now.
pub fn call_early(
    mut orders: MessageReader<Order>,
    waves: Single<Entity, With<Waves>>,
    arena: Single<Entity, With<Arena>>,
    clocks: Clocks,
    mut commands: Commands,
) -> Result {
    if orders.read().any(|order| *order == Order::NextWave) {
        commands.entity(*waves).reschedule(clocks.now(*arena)?);
    }
    Ok(())
}

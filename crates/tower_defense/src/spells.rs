//! The spells of the player: a bolt that stuns, and slow motion.

use bevy_due::{Clocks, clock::SpeedModifier, prelude::*};
use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{
    effects::{flash, stun},
    enemies::{Arena, Enemy},
    log::Story,
    map::{cell_at, distance},
    orders::Order,
    towers::Hand,
};

/// A spell. The cooldown is on the same entity.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlayerSpell {
    Bolt,
    SlowMotion,
}

impl PlayerSpell {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bolt => "bolt",
            Self::SlowMotion => "slow motion",
        }
    }
}

pub fn learn(mut commands: Commands) {
    let bolt = Cooldown::new(9.0).with_charges(2);
    commands.spawn((PlayerSpell::Bolt, bolt));
    commands.spawn((PlayerSpell::SlowMotion, Cooldown::new(15.0)));
}

pub fn cast(
    mut orders: MessageReader<Order>,
    mut spells: Query<(&PlayerSpell, &mut Cooldown)>,
    clocks: Clocks,
    mut story: Story,
    mut commands: Commands,
) -> Result {
    let now = clocks.now(ClockId::Virtual)?;
    for order in orders.read() {
        let &Order::Cast(wanted) = order else {
            continue;
        };
        let mut spells = spells.iter_mut();
        let Some((_, mut cooldown)) = spells.find(|(spell, _)| **spell == wanted) else {
            continue;
        };
        if !cooldown.try_use(now) {
            let secs = cooldown.remaining(now).as_secs_f32();
            story.tell(format_args!("{} takes {secs:.1} s", wanted.name()));
            continue;
        }
        story.tell(format_args!("You cast {}", wanted.name()));
        match wanted {
            PlayerSpell::Bolt => commands.run_system_cached(strike),
            PlayerSpell::SlowMotion => commands.run_system_cached(slow_down),
        }
    }
    Ok(())
}

/// Stuns the enemies around the hand.
fn strike(hand: Res<Hand>, enemies: Query<(Entity, &Enemy)>, mut commands: Commands) {
    commands.spawn(flash(hand.cell));
    for (entity, enemy) in &enemies {
        if distance(hand.cell.center(), enemy.place()) <= 2.0 {
            commands.spawn(flash(cell_at(enemy.place())));
            stun(commands.entity(entity), 2.0);
        }
    }
}

/// Slows the arena down for four seconds of the game.
fn slow_down(arena: Single<Entity, With<Arena>>, mut commands: Commands) {
    let slow = SpeedModifier::new(*arena, 0.3);
    commands.spawn((slow, DespawnAfter::new(4.0)));
}

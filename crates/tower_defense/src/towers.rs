//! Towers: the player builds them, and they shoot when their cooldowns allow it.

use bevy_due::{Clocks, prelude::*};
use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{
    castle::Castle,
    effects::{flash, poison, stun},
    enemies::Enemy,
    log::Story,
    map::{Cell, cell, cell_at, distance},
    orders::Order,
};

#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tower {
    pub kind: TowerKind,
    pub cell: Cell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TowerKind {
    Archer,
    Venom,
    Frost,
    Bell,
}

/// The hand of the player: where it points, and what it builds.
#[derive(Resource, Debug)]
pub struct Hand {
    pub cell: Cell,
    pub kind: TowerKind,
}

impl Default for Hand {
    fn default() -> Self {
        Self {
            cell: cell(8, 5),
            kind: TowerKind::Archer,
        }
    }
}

impl TowerKind {
    pub const ALL: [Self; 4] = [Self::Archer, Self::Venom, Self::Frost, Self::Bell];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Archer => "archer",
            Self::Venom => "venom",
            Self::Frost => "frost",
            Self::Bell => "bell",
        }
    }

    #[must_use]
    pub fn price(self) -> u32 {
        match self {
            Self::Archer => 30,
            Self::Venom => 45,
            Self::Frost => 40,
            Self::Bell => 60,
        }
    }

    /// How far it reaches, in cells.
    #[must_use]
    pub fn reach(self) -> f32 {
        match self {
            Self::Archer => 3.7,
            Self::Venom => 3.2,
            Self::Frost | Self::Bell => 2.3,
        }
    }

    /// The time between two shots. An archer saves up three arrows. Frost is always on.
    fn cooldown(self) -> Cooldown {
        match self {
            Self::Archer => Cooldown::new(0.7).with_charges(3),
            Self::Venom => Cooldown::new(1.2),
            Self::Frost => Cooldown::default(),
            Self::Bell => Cooldown::new(7.0),
        }
    }
}

impl Tower {
    #[must_use]
    pub fn reaches(&self, enemy: &Enemy) -> bool {
        distance(self.cell.center(), enemy.place()) <= self.kind.reach()
    }
}

/// Lets each tower shoot at the enemy that is closest to the gate. The cooldowns run on the game clock,
/// so the towers are as fast as ever in slow motion.
pub fn shoot(
    mut towers: Query<(&Tower, &mut Cooldown)>,
    mut enemies: Query<(Entity, &mut Enemy)>,
    clocks: Clocks,
    mut commands: Commands,
) -> Result {
    let now = clocks.now(ClockId::Virtual)?;
    for (tower, mut cooldown) in &mut towers {
        let targets = enemies.iter_mut();
        let targets = targets.filter(|(_, enemy)| enemy.health > 0 && tower.reaches(enemy));
        let first = targets.max_by(|(_, a), (_, b)| a.walked.total_cmp(&b.walked));
        let Some((entity, mut enemy)) = first else {
            continue;
        };
        if tower.kind == TowerKind::Frost || !cooldown.try_use(now) {
            continue;
        }
        commands.spawn(flash(cell_at(enemy.place())));
        let target = commands.entity(entity);
        match tower.kind {
            TowerKind::Archer => enemy.hurt(6),
            TowerKind::Venom => poison(&mut enemy, target),
            TowerKind::Bell => stun(target, 1.0),
            TowerKind::Frost => {}
        }
    }
    Ok(())
}

/// Moves the hand, and chooses what it builds.
pub fn point(mut orders: MessageReader<Order>, mut hand: ResMut<Hand>) {
    for order in orders.read() {
        match *order {
            Order::Move(x, y) => hand.cell = hand.cell.step(x, y),
            Order::Point(cell) => hand.cell = cell,
            Order::Select(kind) => hand.kind = kind,
            _ => {}
        }
    }
}

/// Builds and sells towers.
pub fn build(
    mut orders: MessageReader<Order>,
    hand: Res<Hand>,
    towers: Query<(Entity, &Tower)>,
    mut castle: ResMut<Castle>,
    mut story: Story,
    mut commands: Commands,
) {
    let &Hand { cell, kind } = &*hand;
    for order in orders.read() {
        let here = towers.iter().find(|(_, tower)| tower.cell == cell);
        match (order, here) {
            (Order::Build, None) if !cell.is_road() && castle.gold >= kind.price() => {
                castle.gold -= kind.price();
                story.tell(format_args!("New tower: {}", kind.name()));
                commands.spawn((Tower { kind, cell }, kind.cooldown()));
            }
            (Order::Build, _) => story.tell("You cannot build here"),
            (Order::Sell, Some((entity, tower))) => {
                castle.gold += tower.kind.price() / 2;
                story.tell(format_args!("Sold tower: {}", tower.kind.name()));
                commands.entity(entity).despawn();
            }
            _ => {}
        }
    }
}

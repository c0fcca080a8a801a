//! A game whose time moves by hand.

use bevy_app::prelude::*;
use bevy_due::prelude::*;
use bevy_ecs::prelude::*;
use tower_defense::{
    GamePlugin,
    boss::Spell,
    enemies::{Arena, Enemy, EnemyKind, spawn_enemy},
    log::Log,
    orders::Order,
    script::{RATE, by_hand},
    spells, waves,
};

/// Returns an app without a game in it.
pub(crate) fn app() -> App {
    let mut app = App::new();
    app.add_plugins(GamePlugin);
    by_hand(&mut app);
    app.update(); // Bevy's first frame takes no time.
    app
}

/// Starts a game.
pub(crate) fn game() -> App {
    let mut app = app();
    app.world_mut().run_system_cached(spells::learn).unwrap();
    app.world_mut().run_system_cached(waves::start).unwrap();
    app
}

/// Starts a game without waves.
pub(crate) fn arena() -> App {
    let mut app = game();
    let world = app.world_mut();
    let waves = the::<waves::Waves>(world).0;
    world.despawn(waves);
    app
}

pub(crate) fn play(app: &mut App, secs: f32) {
    for _ in 0..(secs * RATE as f32).round() as u32 {
        app.update();
    }
}

/// Gives an order, and lets a frame pass.
pub(crate) fn order(app: &mut App, order: Order) {
    app.world_mut().write_message(order);
    app.update();
}

/// Spawns an enemy that has walked some cells, with so much health that it survives the test.
pub(crate) fn spawn(app: &mut App, kind: EnemyKind, walked: f32) -> Entity {
    let world = app.world_mut();
    let arena = world
        .query_filtered::<Entity, With<Arena>>()
        .single(world)
        .unwrap();
    let mut enemy = Enemy::new(kind, 0);
    enemy.max_health = 10_000;
    enemy.health = 10_000;
    enemy.walked = walked;
    spawn_enemy(&mut world.commands(), arena, enemy);
    world.flush();
    let mut enemies = world.query_filtered::<Entity, With<Enemy>>();
    enemies.iter(world).max().unwrap()
}

/// Lets a boss cast at once.
pub(crate) fn cast_now(app: &mut App, boss: Entity) {
    let world = app.world_mut();
    world.commands().entity(boss).change_timer(Spell, |spell| {
        spell.set_remaining(core::time::Duration::ZERO);
    });
    world.flush();
    app.update();
}

pub(crate) fn the<C: Component + Clone>(world: &mut World) -> (Entity, C) {
    let mut all = world.query::<(Entity, &C)>();
    let (entity, component) = all.single(world).unwrap();
    (entity, component.clone())
}

pub(crate) fn enemy(app: &App, entity: Entity) -> &Enemy {
    app.world().get(entity).expect("the enemy lives")
}

pub(crate) fn log(app: &App) -> &[String] {
    &app.world().resource::<Log>().0
}

pub(crate) fn has_told(app: &App, line: &str) -> bool {
    log(app).iter().any(|told| told.contains(line))
}

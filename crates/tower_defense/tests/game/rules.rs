//! The rules of the game, each through an app whose time moves by hand.

use crate::support::*;
use bevy_due::{ArmedTimers, prelude::*};
use bevy_ecs::prelude::*;
use tower_defense::{
    boss::Cast,
    castle::Castle,
    effects::{Poison, poison, stun},
    enemies::{Enemy, EnemyKind},
    map::cell,
    menu::{GAME_OVER, Menu, PAUSE},
    orders::Order,
    spells::PlayerSpell,
    towers::{Hand, Tower, TowerKind},
    waves::Waves,
};

fn hit_with_poison(In(victim): In<Entity>, mut enemies: Query<&mut Enemy>, mut commands: Commands) {
    let mut enemy = enemies.get_mut(victim).unwrap();
    poison(&mut enemy, commands.entity(victim));
}

fn hit_with_stun(In(victim): In<Entity>, mut commands: Commands) {
    stun(commands.entity(victim), 2.0);
}

#[test]
fn a_second_hit_adds_a_stack_and_keeps_the_rhythm() {
    let mut app = arena();
    let brute = spawn(&mut app, EnemyKind::Brute, 0.0);
    let world = app.world_mut();
    world
        .run_system_cached_with(hit_with_poison, brute)
        .unwrap();
    app.update(); // The timer joins.
    play(&mut app, 0.8);
    assert_eq!(
        enemy(&app, brute).health,
        9_999,
        "a tick after half a second"
    );
    app.world_mut()
        .run_system_cached_with(hit_with_poison, brute)
        .unwrap();
    play(&mut app, 0.2);
    assert_eq!(
        enemy(&app, brute).health,
        9_997,
        "the next tick is on time, with two stacks"
    );
    play(&mut app, 10.0);
    assert_eq!(
        enemy(&app, brute).health,
        9_997 - 7 * 2,
        "eight ticks since the second hit"
    );
    assert_eq!(enemy(&app, brute).poison, 0);
    let is_poisoned = |timers: ArmedTimers| timers.keyed(brute, Poison).is_some();
    assert!(!app.world_mut().with_timers(is_poisoned));
}

#[test]
fn a_curse_takes_lives_unless_a_stun_interrupts_it() {
    for is_stunned in [false, true] {
        let mut app = arena();
        let boss = spawn(&mut app, EnemyKind::Warlock, 0.0);
        app.update();
        cast_now(&mut app, boss);
        play(&mut app, 1.5);
        let cast = app
            .world_mut()
            .with_timers(|timers| timers.keyed(boss, Cast));
        let fraction = cast.expect("the boss casts").fraction();
        assert!(
            (0.45..0.6).contains(&fraction),
            "half of the cast bar, got {fraction}"
        );
        if is_stunned {
            app.world_mut()
                .run_system_cached_with(hit_with_stun, boss)
                .unwrap();
        }
        play(&mut app, 3.0);
        let lives = if is_stunned { 20 } else { 15 };
        assert_eq!(app.world().resource::<Castle>().lives, lives);
        assert_eq!(has_told(&app, "The curse is interrupted"), is_stunned);
        assert_eq!(has_told(&app, "The curse strikes"), !is_stunned);
    }
}

#[test]
fn a_stunned_enemy_stands_still_and_then_walks_on() {
    let mut app = arena();
    let runner = spawn(&mut app, EnemyKind::Runner, 0.0);
    play(&mut app, 1.0);
    app.world_mut()
        .run_system_cached_with(hit_with_stun, runner)
        .unwrap();
    let walked = enemy(&app, runner).walked;
    play(&mut app, 1.9);
    assert_eq!(enemy(&app, runner).walked, walked);
    play(&mut app, 1.1);
    assert!(enemy(&app, runner).walked > walked + 1.0);
}

#[test]
fn frost_slows_who_is_in_it_and_releases_who_leaves() {
    let mut app = arena();
    let tower = Tower {
        kind: TowerKind::Frost,
        cell: cell(3, 1),
    };
    let field = app.world_mut().spawn((tower, Cooldown::default())).id();
    let mut speed_at = |walked: f32| {
        let runner = spawn(&mut app, EnemyKind::Runner, walked);
        play(&mut app, 0.2);
        let before = enemy(&app, runner).walked;
        play(&mut app, 0.2);
        let speed = (enemy(&app, runner).walked - before) / 0.2;
        app.world_mut().despawn(runner);
        speed
    };
    let (outside, inside) = (speed_at(20.0), speed_at(3.0));
    assert!((2.1..2.3).contains(&outside), "full speed, got {outside}");
    assert!((1.0..1.2).contains(&inside), "half the speed, got {inside}");

    // One that walks through is released, and so is one whose field is sold.
    let walker = spawn(&mut app, EnemyKind::Runner, 3.0);
    play(&mut app, 4.0);
    let before = enemy(&app, walker).walked;
    assert!(before > 6.0, "it has left the field");
    play(&mut app, 1.0);
    assert!((2.1..2.3).contains(&(enemy(&app, walker).walked - before)));
    let stuck = spawn(&mut app, EnemyKind::Runner, 2.0);
    play(&mut app, 0.2);
    app.world_mut().despawn(field);
    let before = enemy(&app, stuck).walked;
    play(&mut app, 0.5);
    assert!((1.0..1.2).contains(&(enemy(&app, stuck).walked - before)));
}

#[test]
fn slow_motion_slows_the_enemies_and_not_the_towers() {
    let mut app = arena();
    let brute = spawn(&mut app, EnemyKind::Brute, 2.0);
    let tower = Tower {
        kind: TowerKind::Archer,
        cell: cell(3, 1),
    };
    app.world_mut().spawn((tower, Cooldown::new(0.5)));
    order(&mut app, Order::Cast(PlayerSpell::SlowMotion));
    app.update();
    let (walked, health) = (enemy(&app, brute).walked, enemy(&app, brute).health);
    play(&mut app, 3.0);
    let walked = enemy(&app, brute).walked - walked;
    assert!(
        (1.2..1.35).contains(&walked),
        "1.4 * 0.3 cells per second, got {walked}"
    );
    assert_eq!(
        health - enemy(&app, brute).health,
        6 * 6,
        "six arrows in three seconds"
    );
    play(&mut app, 1.5);
    let before = enemy(&app, brute).walked;
    play(&mut app, 1.0);
    assert!(enemy(&app, brute).walked - before > 1.3, "it is over");
}

#[test]
fn the_menu_stops_the_game_and_blinks_on() {
    let mut app = game();
    play(&mut app, 2.0);
    order(&mut app, Order::Menu);
    let mut lit = Vec::new();
    for _ in 0..4 {
        play(&mut app, 0.4);
        lit.push(the::<Menu>(app.world_mut()).1.is_lit);
    }
    assert_eq!(lit, [false, true, false, true]);
    play(&mut app, 10.0);
    assert_eq!(the::<Waves>(app.world_mut()).1.number, 0, "the wave waits");
    order(&mut app, Order::Menu);
    play(&mut app, 1.1);
    assert_eq!(
        the::<Waves>(app.world_mut()).1.number,
        1,
        "a second was left"
    );
}

#[test]
fn waves_come_faster_and_one_that_is_called_early_brings_no_others_along() {
    let mut app = game();
    let wave = |app: &mut bevy_app::App| the::<Waves>(app.world_mut()).1.number;
    app.world_mut().resource_mut::<Castle>().lives = 100_000;
    play(&mut app, 60.0);
    let first = wave(&mut app);
    play(&mut app, 60.0);
    let second = wave(&mut app) - first;
    assert!(
        second > first,
        "{first} waves in the first minute, {second} in the second"
    );
    play(&mut app, 0.5);
    let before = wave(&mut app);
    order(&mut app, Order::NextWave);
    play(&mut app, 1.0);
    assert_eq!(wave(&mut app), before + 1);
}

#[test]
fn a_tower_costs_gold_and_is_not_built_on_the_road() {
    let mut app = arena();
    let gold = |app: &bevy_app::App| app.world().resource::<Castle>().gold;
    app.world_mut().resource_mut::<Castle>().gold = 70;
    order(&mut app, Order::Select(TowerKind::Bell));
    for place in [cell(3, 2), cell(3, 3), cell(3, 3), cell(4, 3)] {
        order(&mut app, Order::Point(place));
        order(&mut app, Order::Build);
    }
    let (_, tower) = the::<Tower>(app.world_mut());
    assert_eq!(
        tower,
        Tower {
            kind: TowerKind::Bell,
            cell: cell(3, 3)
        }
    );
    assert_eq!(gold(&app), 10);
    assert_eq!(app.world().resource::<Hand>().cell, cell(4, 3));
    order(&mut app, Order::Point(cell(3, 3)));
    order(&mut app, Order::Sell);
    assert_eq!(gold(&app), 40);
}

#[test]
fn the_game_is_over_without_lives_and_only_then_the_menu_stays_open() {
    let mut app = game();
    order(&mut app, Order::Menu);
    assert_eq!(the::<Menu>(app.world_mut()).1.page, PAUSE);
    order(&mut app, Order::Menu);
    app.world_mut().resource_mut::<Castle>().lives = 3;
    play(&mut app, 40.0);
    assert_eq!(the::<Menu>(app.world_mut()).1.page, GAME_OVER);
    assert!(has_told(&app, "The castle has fallen"));
    let lines = log(&app).len();
    order(&mut app, Order::Menu);
    play(&mut app, 20.0);
    assert_eq!(the::<Menu>(app.world_mut()).1.page, GAME_OVER);
    assert_eq!(log(&app).len(), lines, "nothing happens any more");
}

//! A game that is saved and loaded goes on as if nothing had happened.

use std::{env, path::PathBuf, process};

use crate::support::*;
use bevy_app::prelude::*;
use bevy_due::{Clocks, prelude::*};
use bevy_ecs::prelude::*;
use tower_defense::{
    castle::Castle,
    enemies::Enemy,
    map::cell,
    orders::Order,
    save,
    script::by_hand,
    session::{Frame, Session},
    spells::PlayerSpell,
    towers::TowerKind,
    waves::Waves,
};

/// Plays until everything is under way: poison, frost, a stun, slow motion and a cast.
fn busy_game() -> App {
    let mut app = game();
    let mut castle = app.world_mut().resource_mut::<Castle>();
    (castle.gold, castle.lives) = (1000, 1000);
    for (kind, place) in [
        (TowerKind::Archer, cell(8, 4)),
        (TowerKind::Venom, cell(9, 7)),
        (TowerKind::Frost, cell(7, 8)),
        (TowerKind::Bell, cell(5, 8)),
        (TowerKind::Frost, cell(8, 8)),
    ] {
        order(&mut app, Order::Select(kind));
        order(&mut app, Order::Point(place));
        order(&mut app, Order::Build);
    }
    play(&mut app, 31.0);
    order(&mut app, Order::Cast(PlayerSpell::SlowMotion));
    order(&mut app, Order::Point(cell(6, 3)));
    play(&mut app, 1.0);
    order(&mut app, Order::Cast(PlayerSpell::Bolt));
    app
}

/// What a player can tell two games apart by.
type State = (Castle, u32, Vec<(f32, u32, u32)>, Vec<f32>);

fn state(world: &mut World) -> State {
    let waves = the::<Waves>(world).1.number;
    let mut enemies = world.query::<&Enemy>();
    let enemies = enemies.iter(world);
    let mut enemies: Vec<_> = enemies
        .map(|enemy| (enemy.walked, enemy.health, enemy.poison))
        .collect();
    enemies.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
    let ask = |cooldowns: Query<&Cooldown>, clocks: Clocks| {
        let now = clocks.now(ClockId::Virtual).unwrap();
        let mut fractions: Vec<f32> = cooldowns
            .iter()
            .map(|cooldown| cooldown.fraction(now))
            .collect();
        fractions.sort_by(f32::total_cmp);
        fractions
    };
    let cooldowns = world.run_system_cached(ask).unwrap();
    (
        world.resource::<Castle>().clone(),
        waves,
        enemies,
        cooldowns,
    )
}

#[test]
fn a_loaded_game_goes_on_as_the_saved_one_does() {
    let mut game = busy_game();
    let mut all = String::new();
    for _ in 0..8 {
        play(&mut game, 1.0);
        let text = save::save(game.world_mut()).unwrap();
        let mut loaded = app();
        save::load(loaded.world_mut(), &text).unwrap();
        assert_eq!(state(game.world_mut()), state(loaded.world_mut()));
        let told = log(&game).len();
        for frame in 0..60 {
            game.update();
            loaded.update();
            let (game, loaded) = (state(game.world_mut()), state(loaded.world_mut()));
            assert_eq!(game, loaded, "{frame} frames after loading");
        }
        assert_eq!(log(&game)[told..], *log(&loaded));
        all += &text;
    }
    for part in [
        "\"cast\"",
        "\"poison\"",
        "\"march\"",
        "Pauses",
        "SpeedModifier",
    ] {
        assert!(all.contains(part), "{part} was saved");
    }
}

fn file(name: &str) -> PathBuf {
    env::temp_dir().join(format!("tower_defense_{name}_{}.ron", process::id()))
}

#[test]
fn a_session_saves_to_its_file_and_loads_into_a_new_game() {
    let mut session = Session::new(file("session"), by_hand).unwrap();
    for _ in 0..100 {
        session.update().unwrap();
    }
    session.send(Order::Save);
    assert_eq!(session.update().unwrap(), Frame::SameGame);
    let saved = state(session.world());
    for _ in 0..200 {
        session.update().unwrap();
    }
    assert_ne!(state(session.world()), saved);
    session.send(Order::Load);
    assert_eq!(session.update().unwrap(), Frame::NewGame);
    assert_eq!(state(session.world()), saved);
    session.send(Order::Restart);
    assert_eq!(session.update().unwrap(), Frame::NewGame);
    assert_eq!(the::<Waves>(session.world()).1.number, 0);
    std::fs::remove_file(file("session")).unwrap();
}

#[test]
fn without_a_file_the_game_goes_on() {
    let mut session = Session::new(file("none"), by_hand).unwrap();
    let before = state(session.world());
    session.send(Order::Load);
    assert_eq!(session.update().unwrap(), Frame::SameGame);
    assert_eq!(state(session.world()).1, before.1);
    session.send(Order::Quit);
    assert_eq!(session.update().unwrap(), Frame::End);
}

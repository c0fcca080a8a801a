//! The picture, as a terminal shows it.

use crate::support::*;
use bevy_app::prelude::*;
use bevy_due::prelude::*;
use ratatui::{Terminal, backend::TestBackend, buffer::Buffer};
use tower_defense::{
    boss::Cast, effects::stun, enemies::EnemyKind, map::cell, orders::Order, towers::TowerKind,
    view,
};

fn draw(app: &mut App, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let draw = |frame: &mut ratatui::Frame| {
        view::draw(app.world_mut(), frame.buffer_mut()).unwrap();
    };
    terminal.draw(draw).unwrap();
    terminal.backend().buffer().clone()
}

fn lines(app: &mut App) -> Vec<String> {
    let buffer = draw(app, 80, 24);
    let rows = buffer.content.chunks(80);
    rows.map(|row| row.iter().map(|cell| cell.symbol()).collect())
        .collect()
}

fn shows(app: &mut App, text: &str) -> bool {
    lines(app).iter().any(|line| line.contains(text))
}

#[test]
fn a_new_game_shows_the_castle_the_shop_and_the_first_wave() {
    let mut app = game();
    play(&mut app, 0.5);
    let lines = lines(&mut app);
    assert!(
        lines[0].starts_with("╭ wave 0 · next in 2.5 s ─"),
        "{}",
        lines[0]
    );
    assert!(lines[0].contains("♥ 20  ◆ 260  ✝ 0"), "{}", lines[0]);
    assert!(lines[17].starts_with("│▶1 archer   ◆ 30"), "{}", lines[17]);
    assert!(lines[1].contains("armed               1"), "{}", lines[1]);
    assert!(
        lines[10].contains("2.5 ━─── wave   wave 0"),
        "{}",
        lines[10]
    );
}

#[test]
fn the_map_shows_towers_enemies_and_the_hand() {
    let mut app = arena();
    spawn(&mut app, EnemyKind::Runner, 3.0);
    order(&mut app, Order::Point(cell(20, 1)));
    order(&mut app, Order::Select(TowerKind::Frost));
    order(&mut app, Order::Build);
    order(&mut app, Order::Point(cell(10, 1)));
    let buffer = draw(&mut app, 80, 24);
    let symbol = |x: u16, y: u16| buffer[(1 + 2 * x, 1 + y)].symbol();
    assert_eq!(
        (symbol(20, 1), symbol(10, 1), symbol(3, 2)),
        ("F", "[", "●")
    );
}

#[test]
fn a_cast_has_a_bar_and_a_stun_takes_it_away() {
    let mut app = arena();
    let boss = spawn(&mut app, EnemyKind::Warlock, 0.0);
    app.update();
    cast_now(&mut app, boss);
    play(&mut app, 1.5);
    let line = lines(&mut app).swap_remove(15);
    assert!(
        line.contains("the warlock casts ████████──────── 1.5 s"),
        "{line}"
    );
    assert!(shows(&mut app, "cast   warlock"));
    let mut commands = app.world_mut().commands();
    stun(commands.entity(boss), 2.0);
    app.update();
    let is_casting = app
        .world_mut()
        .with_timers(|timers| timers.keyed(boss, Cast).is_some());
    assert!(!is_casting && !shows(&mut app, "the warlock casts"));
    assert!(shows(&mut app, "stun   warlock"));
}

#[test]
fn the_menu_shows_its_items_above_the_map() {
    let mut app = game();
    assert!(!shows(&mut app, "Resume"));
    order(&mut app, Order::Menu);
    order(&mut app, Order::Browse(1));
    for item in [
        " Pause ",
        "Resume",
        "▶ Save",
        "Load",
        "Restart",
        "Quit",
        "blink  menu",
    ] {
        assert!(shows(&mut app, item), "{item}");
    }
}

#[test]
fn a_larger_screen_has_the_picture_in_the_middle_and_a_small_one_says_so() {
    let mut app = game();
    let buffer = draw(&mut app, 100, 40);
    assert_eq!(buffer[(10, 8)].symbol(), "╭");
    let buffer = draw(&mut app, 60, 24);
    let first: String = (0..42).map(|x| buffer[(x, 0)].symbol()).collect();
    assert_eq!(first, "This game needs 80 x 24 characters.       ");
}

//! The picture: map, shop, log, panel and menu.

mod board;
mod colors;
mod shop;

use bevy_ecs::{prelude::*, system::SystemParam};
use ratatui::{
    buffer::Buffer,
    layout::{Constraint, Layout, Position, Rect},
    style::Style,
    text::Line,
    widgets::{Block, BorderType, Clear, Paragraph, Widget},
};

use crate::{
    log::Log,
    map::{self, Cell, cell},
    menu::Menu,
    panel::Panel,
};
use board::Board;
pub use colors::*;
use shop::Shop;

/// The size of the picture in characters.
pub const SIZE: (u16, u16) = (80, 24);

/// Each cell of the map is two characters wide, which makes it a square.
const CELL: u16 = 2;

/// Everything that the player sees.
#[derive(SystemParam)]
struct Picture<'w, 's> {
    board: Board<'w, 's>,
    shop: Shop<'w, 's>,
    log: Res<'w, Log>,
    panel: Panel<'w, 's>,
    menus: Query<'w, 's, &'static Menu>,
}

/// Draws the game into the middle of a buffer.
///
/// # Errors
///
/// Fails in a world without the game.
pub fn draw(world: &mut World, buffer: &mut Buffer) -> Result {
    Ok(world.run_system_cached_with(paint, buffer)?)
}

fn paint(InMut(buffer): InMut<Buffer>, picture: Picture) {
    let area = buffer.area;
    if area.width < SIZE.0 || area.height < SIZE.1 {
        let (width, height) = SIZE;
        let size = format!("This game needs {width} x {height} characters.");
        Paragraph::new(size).render(area, buffer);
        return;
    }
    let Areas {
        board,
        shop,
        log,
        panel,
    } = Areas::of(area);
    picture.board.render(board, buffer);
    picture.shop.render(shop, buffer);
    lines(&picture.log, log).render(log, buffer);
    picture.panel.render(panel, buffer);
    if let Ok(menu) = picture.menus.single() {
        show_menu(menu, menu_area(area, menu.page.1.len()), buffer);
    }
}

fn lines(log: &Log, area: Rect) -> Paragraph<'_> {
    let frame = block(" log ");
    let first = log
        .0
        .len()
        .saturating_sub(usize::from(frame.inner(area).height));
    let lines = log.0[first..]
        .iter()
        .map(|line| Line::styled(line.as_str(), TEXT));
    Paragraph::new(lines.collect::<Vec<_>>()).block(frame)
}

fn show_menu(menu: &Menu, area: Rect, buffer: &mut Buffer) {
    let (title, items) = menu.page;
    let item = |(number, (name, _)): (usize, &(&'static str, _))| {
        let is_chosen = number == menu.chosen;
        let mark = if is_chosen && menu.is_lit { "▶" } else { " " };
        let color = if is_chosen { GOLD } else { TEXT };
        Line::styled(format!(" {mark} {name}"), color)
    };
    let items: Vec<Line> = items.iter().enumerate().map(item).collect();
    Clear.render(area, buffer);
    let frame = block(title).style(Style::new().bg(NIGHT));
    Paragraph::new(items).block(frame).render(area, buffer);
}

/// Returns a block with the frame that all parts of the picture have.
#[must_use]
pub fn block(title: &str) -> Block<'_> {
    Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(DIM)
        .title(Line::styled(title, WHITE))
        .style(Style::new().bg(NIGHT))
}

/// The parts of the picture.
struct Areas {
    board: Rect,
    shop: Rect,
    log: Rect,
    panel: Rect,
}

impl Areas {
    fn of(area: Rect) -> Self {
        let area = centered(area, SIZE);
        let width = map::WIDTH as u16 * CELL + 2;
        let height = map::HEIGHT as u16 + 2;
        let [left, panel] =
            Layout::horizontal([Constraint::Length(width), Constraint::Fill(1)]).areas(area);
        let [board, below] =
            Layout::vertical([Constraint::Length(height), Constraint::Fill(1)]).areas(left);
        let [shop, log] =
            Layout::horizontal([Constraint::Length(22), Constraint::Fill(1)]).areas(below);
        Self {
            board,
            shop,
            log,
            panel,
        }
    }
}

fn centered(area: Rect, (width, height): (u16, u16)) -> Rect {
    area.centered(Constraint::Length(width), Constraint::Length(height))
}

fn menu_area(area: Rect, items: usize) -> Rect {
    centered(Areas::of(area).board, (20, items as u16 + 2))
}

/// Returns the cell of the map at a position on the screen.
#[must_use]
pub fn cell_under(screen: Rect, position: Position) -> Option<Cell> {
    let board = block("").inner(Areas::of(screen).board);
    board.contains(position).then(|| {
        let (x, y) = ((position.x - board.x) / CELL, position.y - board.y);
        cell(x as i16, y as i16)
    })
}

/// Returns the number of the item at a position on the screen, if a menu has so many.
#[must_use]
pub fn item_under(screen: Rect, items: usize, position: Position) -> Option<usize> {
    let menu = block("").inner(menu_area(screen, items));
    menu.contains(position)
        .then(|| usize::from(position.y - menu.y))
}

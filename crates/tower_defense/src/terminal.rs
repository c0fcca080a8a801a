//! The terminal: keys and the mouse become orders, and the screen is restored whatever happens.

use core::time::Duration;
use std::{
    io::{self, stdout},
    panic, thread,
    time::Instant,
};

use crossterm::{
    event::{
        self, DisableMouseCapture, EnableMouseCapture, Event, KeyCode, KeyEvent, KeyEventKind,
        KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
    },
    execute,
};
use ratatui::{
    DefaultTerminal, Frame,
    layout::{Position, Rect},
};

use crate::{menu::Menu, orders::Order, spells::PlayerSpell, towers::TowerKind, view};

/// The screen of the game. When it is dropped, the terminal is as it was.
#[derive(Debug)]
pub struct Screen(DefaultTerminal);

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    ///
    /// Fails if this is not a terminal.
    pub fn open() -> io::Result<Self> {
        // Also installs a panic hook that restores all but the mouse.
        let screen = Self(ratatui::try_init()?);
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            release_mouse();
            hook(panic);
        }));
        execute!(stdout(), EnableMouseCapture)?;
        Ok(screen)
    }

    /// Draws a frame.
    ///
    /// # Errors
    ///
    /// Fails if the terminal does.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame)) -> io::Result<()> {
        self.0.draw(draw).map(|_| ())
    }

    /// Waits for the next frame, and returns the orders that the player has given meanwhile.
    ///
    /// # Errors
    ///
    /// Fails if the terminal does.
    pub fn orders(&mut self, frame: Duration, menu: Option<&Menu>) -> io::Result<Vec<Order>> {
        let screen: Rect = self.0.size()?.into();
        let mut orders = Vec::new();
        let start = Instant::now();
        while event::poll(frame.saturating_sub(start.elapsed()))? {
            orders.extend(orders_of(&event::read()?, screen, menu));
        }
        Ok(orders)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // In a panic, the hook has done this already. Twice would hide the message.
        if !thread::panicking() {
            release_mouse();
            ratatui::restore();
        }
    }
}

/// There is nobody to tell if this fails: the terminal is gone.
fn release_mouse() {
    let _ = execute!(stdout(), DisableMouseCapture);
}

/// Translates what the player does.
#[must_use]
pub fn orders_of(event: &Event, screen: Rect, menu: Option<&Menu>) -> Vec<Order> {
    match (event, menu) {
        (Event::Key(key), _) if key.kind == KeyEventKind::Release => Vec::new(),
        (Event::Key(key), _) if is_control_c(key) => vec![Order::Quit],
        (Event::Key(key), Some(_)) => in_menu(key.code).into_iter().collect(),
        (Event::Key(key), None) => in_field(key.code).into_iter().collect(),
        (Event::Mouse(mouse), Some(menu)) => on_item(mouse, screen, menu).into_iter().collect(),
        (Event::Mouse(mouse), None) => on_map(mouse, screen),
        _ => Vec::new(),
    }
}

fn is_control_c(key: &KeyEvent) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c')
}

fn in_field(key: KeyCode) -> Option<Order> {
    Some(match key {
        KeyCode::Left => Order::Move(-1, 0),
        KeyCode::Right => Order::Move(1, 0),
        KeyCode::Up => Order::Move(0, -1),
        KeyCode::Down => Order::Move(0, 1),
        KeyCode::Char(digit @ '1'..='4') => {
            Order::Select(TowerKind::ALL[digit as usize - '1' as usize])
        }
        KeyCode::Enter | KeyCode::Char(' ') => Order::Build,
        KeyCode::Char('x') => Order::Sell,
        KeyCode::Char('b') => Order::Cast(PlayerSpell::Bolt),
        KeyCode::Char('t') => Order::Cast(PlayerSpell::SlowMotion),
        KeyCode::Char('n') => Order::NextWave,
        KeyCode::Char('p') | KeyCode::Esc => Order::Menu,
        KeyCode::Char('s') => Order::Save,
        KeyCode::Char('l') => Order::Load,
        KeyCode::Char('r') => Order::Restart,
        KeyCode::Char('q') => Order::Quit,
        _ => return None,
    })
}

fn in_menu(key: KeyCode) -> Option<Order> {
    Some(match key {
        KeyCode::Up => Order::Browse(-1),
        KeyCode::Down => Order::Browse(1),
        KeyCode::Enter | KeyCode::Char(' ') => Order::Confirm,
        KeyCode::Char('p') | KeyCode::Esc => Order::Menu,
        KeyCode::Char('q') => Order::Quit,
        _ => return None,
    })
}

fn on_map(mouse: &MouseEvent, screen: Rect) -> Vec<Order> {
    let Some(cell) = view::cell_under(screen, position(mouse)) else {
        return Vec::new();
    };
    let then = match mouse.kind {
        MouseEventKind::Moved => None,
        MouseEventKind::Down(MouseButton::Left) => Some(Order::Build),
        MouseEventKind::Down(MouseButton::Right) => Some(Order::Sell),
        MouseEventKind::Down(MouseButton::Middle) => Some(Order::Cast(PlayerSpell::Bolt)),
        _ => return Vec::new(),
    };
    [Order::Point(cell)].into_iter().chain(then).collect()
}

fn on_item(mouse: &MouseEvent, screen: Rect, menu: &Menu) -> Option<Order> {
    let item = view::item_under(screen, menu.page.1.len(), position(mouse))?;
    (mouse.kind == MouseEventKind::Down(MouseButton::Left)).then_some(Order::Pick(item))
}

fn position(mouse: &MouseEvent) -> Position {
    Position::new(mouse.column, mouse.row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{map::cell, menu::PAUSE};

    const SCREEN: Rect = Rect::new(0, 0, 100, 40);

    fn orders(event: impl Into<Event>, menu: Option<&Menu>) -> Vec<Order> {
        orders_of(&event.into(), SCREEN, menu)
    }

    fn key(code: KeyCode) -> Event {
        Event::Key(code.into())
    }

    fn mouse(kind: MouseEventKind, (column, row): (u16, u16)) -> Event {
        let modifiers = KeyModifiers::NONE;
        Event::Mouse(MouseEvent {
            kind,
            column,
            row,
            modifiers,
        })
    }

    #[test]
    fn a_key_means_something_else_in_the_menu() {
        let menu = Menu {
            page: PAUSE,
            chosen: 0,
            is_lit: true,
        };
        assert_eq!(orders(key(KeyCode::Down), None), [Order::Move(0, 1)]);
        assert_eq!(orders(key(KeyCode::Down), Some(&menu)), [Order::Browse(1)]);
        assert_eq!(orders(key(KeyCode::Char('x')), None), [Order::Sell]);
        assert_eq!(orders(key(KeyCode::Char('x')), Some(&menu)), []);
    }

    #[test]
    fn a_click_builds_where_the_map_is_drawn() {
        // The picture is in the middle of the screen: its left upper corner is at (10, 8).
        let click = MouseEventKind::Down(MouseButton::Left);
        let at = |x: u16, y: u16| (10 + 1 + 2 * x, 8 + 1 + y);
        let built = orders(mouse(click, at(3, 5)), None);
        assert_eq!(built, [Order::Point(cell(3, 5)), Order::Build]);
        let moved = orders(mouse(MouseEventKind::Moved, at(25, 13)), None);
        assert_eq!(moved, [Order::Point(cell(25, 13))]);
        assert_eq!(
            orders(mouse(click, at(26, 5)), None),
            [],
            "that is the frame"
        );
    }

    #[test]
    fn a_click_takes_the_item_that_is_drawn_there() {
        let menu = Menu {
            page: PAUSE,
            chosen: 0,
            is_lit: true,
        };
        let click = MouseEventKind::Down(MouseButton::Left);
        let save = orders(mouse(click, (40, 8 + 5 + 2)), Some(&menu));
        assert_eq!(save, [Order::Pick(1)]);
        assert_eq!(orders(mouse(click, (12, 10)), Some(&menu)), []);
    }
}

//! The terminal.

use core::time::Duration;
use std::{io, thread, time::Instant};

use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, Frame};

/// The screen. When it is dropped, the terminal is as it was.
pub struct Screen(DefaultTerminal);

/// What the user wants.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// Kills a shard, counted from zero.
    Kill(usize),
    End,
}

impl Screen {
    pub fn open() -> io::Result<Self> {
        ratatui::try_init().map(Self)
    }

    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame)) -> io::Result<()> {
        self.0.draw(draw).map(|_| ())
    }

    /// Waits, and returns the orders that the user has given meanwhile.
    pub fn orders(&mut self, time: Duration) -> io::Result<Vec<Order>> {
        let mut orders = Vec::new();
        let start = Instant::now();
        while event::poll(time.saturating_sub(start.elapsed()))? {
            orders.extend(order_of(&event::read()?));
        }
        Ok(orders)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // In a panic, the hook of `try_init` has done this already.
        if !thread::panicking() {
            ratatui::restore();
        }
    }
}

fn order_of(event: &Event) -> Option<Order> {
    let Event::Key(key) = event else {
        return None;
    };
    if key.kind == KeyEventKind::Release {
        return None;
    }
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Order::End),
        KeyCode::Char('q') | KeyCode::Esc => Some(Order::End),
        KeyCode::Char(digit @ '1'..='9') => Some(Order::Kill(digit as usize - '1' as usize)),
        _ => None,
    }
}

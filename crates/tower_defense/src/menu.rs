//! The menu. The game stands still while it is open, but the menu blinks: its timer runs on real time.

use bevy_due::{ClockId, Timer};
use bevy_ecs::prelude::*;
use bevy_time::{Time, Virtual};

use crate::{log::tell, orders::Order};

/// An open menu.
#[derive(Component, Clone, Debug)]
pub struct Menu {
    pub page: Page,
    pub chosen: usize,
    pub is_lit: bool,
}

/// A title, and items with their orders.
pub type Page = (&'static str, &'static [(&'static str, Order)]);

pub const PAUSE: Page = (
    " Pause ",
    &[
        ("Resume", Order::Menu),
        ("Save", Order::Save),
        ("Load", Order::Load),
        ("Restart", Order::Restart),
        ("Quit", Order::Quit),
    ],
);

pub const GAME_OVER: Page = (
    " Game over ",
    &[
        ("Restart", Order::Restart),
        ("Load", Order::Load),
        ("Quit", Order::Quit),
    ],
);

/// Returns a menu with the timer of its blinking choice.
#[must_use]
pub fn menu(page: Page) -> impl Bundle {
    let menu = Menu {
        page,
        chosen: 0,
        is_lit: true,
    };
    (menu, Timer::every(0.4).on(ClockId::Real))
}

pub fn blink(mut menu: Single<&mut Menu>) {
    menu.is_lit = !menu.is_lit;
}

/// Moves the choice, and sends the order of the item that the player takes.
pub fn choose(
    mut orders: MessageReader<Order>,
    menu: Option<Single<(Entity, &mut Menu)>>,
    mut commands: Commands,
) {
    let Some((entity, mut menu)) = menu.map(Single::into_inner) else {
        orders.clear();
        return;
    };
    let items = menu.page.1;
    for order in orders.read() {
        let taken = match *order {
            Order::Browse(by) => {
                let chosen = menu.chosen.saturating_add_signed(by);
                menu.chosen = chosen.min(items.len() - 1);
                None
            }
            Order::Confirm => items.get(menu.chosen),
            Order::Pick(item) => items.get(item),
            _ => None,
        };
        if let Some(&(_, order)) = taken {
            commands.entity(entity).despawn();
            if order != Order::Menu {
                commands.write_message(order);
            }
        }
    }
}

/// Opens the menu, or closes it if it is not the end of the game.
pub fn open(
    mut orders: MessageReader<Order>,
    open: Option<Single<(Entity, &Menu)>>,
    mut commands: Commands,
) {
    if !orders.read().any(|order| *order == Order::Menu) {
        return;
    }
    match open.as_deref() {
        None => {
            commands.spawn(menu(PAUSE));
        }
        Some((entity, open)) if open.page == PAUSE => commands.entity(*entity).despawn(),
        Some(_) => {}
    }
}

/// Stops the game clock while a menu is open, and everything of the game with it.
pub fn stop_time(
    menus: Query<(), With<Menu>>,
    mut time: ResMut<Time<Virtual>>,
    mut commands: Commands,
) {
    match (menus.is_empty(), time.is_paused()) {
        (false, false) => {
            time.pause();
            commands.run_system_cached_with(tell, "Time stands still".to_owned());
        }
        (true, true) => {
            time.unpause();
            commands.run_system_cached_with(tell, "Time goes on".to_owned());
        }
        _ => {}
    }
}

//! Orders of the player. Keys, the mouse and the script all become these messages.

use bevy_ecs::prelude::*;

use crate::{map::Cell, spells::PlayerSpell, towers::TowerKind};

#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Moves the hand by a number of cells to the right and down.
    Move(i16, i16),
    Point(Cell),
    Select(TowerKind),
    Build,
    Sell,
    Cast(PlayerSpell),
    NextWave,
    /// Opens the menu, or closes it.
    Menu,
    /// Moves the choice in the menu by a number of items.
    Browse(isize),
    /// Takes the item of the menu with this number.
    Pick(usize),
    /// Takes the chosen item.
    Confirm,
    Save,
    Load,
    Restart,
    Quit,
}

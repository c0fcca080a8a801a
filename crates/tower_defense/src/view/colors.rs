//! The colors, from the palette of 256 that every terminal has.

use ratatui::style::Color;

pub const NIGHT: Color = Color::Indexed(234);
pub const DIM: Color = Color::Indexed(242);
pub const TEXT: Color = Color::Indexed(250);
pub const WHITE: Color = Color::Indexed(255);
pub const GOLD: Color = Color::Indexed(221);
pub const GREEN: Color = Color::Indexed(114);
pub const BLUE: Color = Color::Indexed(117);
pub const PINK: Color = Color::Indexed(212);
pub const RED: Color = Color::Indexed(203);
pub const GRASS: Color = Color::Indexed(235);
pub const LIT_GRASS: Color = Color::Indexed(237);
pub const TUFT: Color = Color::Indexed(65);
pub const ROAD: Color = Color::Indexed(94);
pub const LIT_ROAD: Color = Color::Indexed(136);
pub const ICE: Color = Color::Indexed(24);
pub const BLACK: Color = Color::Indexed(16);

//! The extension traits: what users call on commands, entities and worlds.

mod commands;
mod entity_commands;
mod world;

pub use commands::DueCommandsExt;
pub use entity_commands::DueEntityCommandsExt;
pub use world::DueWorldExt;

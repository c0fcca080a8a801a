//! The extension traits: what users call on commands, entities and worlds.

mod commands;
mod entity_commands;
mod entity_world;
mod world;

pub use commands::DueCommandsExt;
pub use entity_commands::DueEntityCommandsExt;
pub use entity_world::DueEntityWorldMutExt;
pub use world::DueWorldExt;

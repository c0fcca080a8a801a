//! What a save contains, in which order, and what it refuses. `interrupted.rs` plays saved games on.

mod components;
mod errors;
mod hostile;
mod mail;
mod order;

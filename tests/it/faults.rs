//! Every promise under faults: a handler panics, and Bevy's error handler swallows the panic.
//!
//! The searches play a scripted game once without faults, then once for every call of every handler
//! in it, and let that call panic. The game must end in the same way each time. The other tests pin
//! single cases. `panicking_systems.rs` and `hostile_handlers/panics.rs` have more of them, and
//! `hostile_handlers/timer_game.rs` plays random games with panics.

mod calls;
mod cancellations;
mod clocks;
mod fault;
mod firings;
mod game;

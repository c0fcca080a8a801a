//! Durable entities in several zones.

mod cluster;
mod mail;
mod moves;
#[path = "../support/random.rs"]
mod random;
mod restart;
mod simulation;

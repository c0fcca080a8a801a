//! Durable entities in several zones.

mod cluster;
mod forged;
mod keys;
mod lost;
mod mail;
mod moves;
#[path = "../support/random.rs"]
mod random;
mod restart;
mod simulation;
mod store;

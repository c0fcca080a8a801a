//! Durable entities in several zones.

mod announced;
mod cluster;
mod copies;
mod effects;
mod faults;
mod forged;
mod keys;
mod lost;
mod mail;
mod moves;
mod random;
mod restart;
mod simulation;
mod store;
mod versions;

//! Durable entities in several zones.

mod cluster;
mod mail;
mod moves;
mod restart;

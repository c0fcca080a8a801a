//! Joins the [worlds](bevy_due::worlds::WorldGroups) of several processes and machines over a
//! [NATS](https://nats.io) server.
//!
//! `groups.join(nats_link(config))` is all: see [`nats_link`] and [`NatsConfig`]. The page
//! [`bevy_due::worlds::link`] says what holds between processes. With the feature `ownership`, `NatsOwners` keeps
//! the owners of entities on the same server.

#![warn(clippy::unwrap_used)]

mod client;
mod config;
mod connection;
mod invalid;
mod link;
#[cfg(feature = "ownership")]
mod owners;
mod process;
mod send;
#[cfg(feature = "ownership")]
mod store;
mod subjects;

pub use config::NatsConfig;
pub use link::nats_link;
#[cfg(feature = "ownership")]
pub use store::{NatsOwners, NatsOwnersConfig};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! Joins the [worlds](bevy_due::worlds::WorldGroups) of several processes and machines over a
//! [NATS](https://nats.io) server.
//!
//! `groups.join(nats_link(config))` is all: see [`nats_link`] and [`NatsConfig`]. The page
//! [`bevy_due::worlds::link`] says what holds between processes. The [`NatsStore`] keeps small values on the same
//! server, which only one of several processes can change.

#![warn(clippy::unwrap_used)]

mod client;
mod config;
mod link;
#[cfg(feature = "ownership")]
mod owners;
mod process;
mod send;
mod store;
mod subjects;

pub use async_nats::ConnectOptions;
pub use config::NatsConfig;
pub use link::nats_link;
pub use store::{Entry, Lost, NatsStore, NatsStoreConfig, Unreachable};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

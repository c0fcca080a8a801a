//! Joins the [worlds](bevy_due::worlds::WorldGroups) of several processes and machines over
//! [zenoh](https://zenoh.io), peer to peer.
//!
//! `groups.join(zenoh_link(config))` is all: see [`zenoh_link`] and [`ZenohConfig`]. The page
//! [`bevy_due::worlds::link`] says what holds between processes.

#![warn(clippy::unwrap_used)]

mod config;
mod keys;
mod link;
mod send;

pub use config::ZenohConfig;
pub use link::zenoh_link;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! Entities that survive a crash, and live in exactly one world of a cluster.
//!
//! | name | what it is |
//! |---|---|
//! | [`Shard`] | a process with a file |
//! | [`ZonePlugin`] | makes a world a zone: its entities with a [`StableKey`](bevy_due::worlds::StableKey) are durable |
//! | [`move_to`](DurableEntityCommandsExt::move_to) | moves an entity to another zone, exactly once |
//! | [`mail`](DurableEntityCommandsExt::mail) | sends a letter to a durable entity, exactly once and in order |
//! | [`after_commit`](DurableCommandsExt::after_commit) | tells players what is durable |
//!
//! The README of the package has a first example, `DESIGN.md` says how it works, and
//! `docs/across_processes.md` in the repository what you may rely on.
//! `docs/thousand_shards.md` in the repository says what a cluster costs by its size, and where the design ends.

mod changes;
mod committer;
mod error;
mod events;
mod ext;
mod ids;
mod item;
mod journal;
mod outbox;
mod outboxes;
mod owners;
mod plugin;
mod report;
mod routes;
mod shard;
mod stored;
mod streams;
mod unrouted;
mod wire;
mod zone;
mod zone_clock;

pub use committer::Stall;
pub use error::JournalError;
pub use events::{Arrived, MailReturned, MoveFailed};
pub use ext::{DurableCommandsExt, DurableEntityCommandsExt};
pub use ids::{JournalId, ZoneId};
#[cfg(feature = "simulated-disk")]
pub use journal::SimulatedDisk;
pub use owners::{Owner, OwnerStore, Unreachable};
pub use plugin::ZonePlugin;
pub use shard::Shard;
pub use zone::Zone;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

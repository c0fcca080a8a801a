//! Prints what a cluster costs, by its size:
//! `cargo run --release -p bevy_due_ownership --example cluster_size -- [mesh] [star] [rest] [storm] [zones]`.
//!
//! All processes of the cluster run in this one. Links in memory join them, and count what they carry.
//! `docs/thousand_shards.md` has the figures.

mod cluster;
mod fit;
mod mesh;
mod process;
mod rest;
mod star;
mod storm;
mod wire;
mod zones;

use std::env;

use bevy_ecs::error::Result;

fn main() -> Result {
    let parts: Vec<String> = env::args().skip(1).collect();
    let wants = |part: &str| parts.is_empty() || parts.iter().any(|it| it == part);
    if wants("mesh") {
        mesh::print(&[4, 8, 16, 32, 64, 128])?;
    }
    if wants("star") {
        star::print(&[
            (10, 1_000),
            (100, 1_000),
            (300, 1_000),
            (999, 1_000),
            (999, 10_000),
        ])?;
    }
    if wants("rest") {
        rest::print(&[50, 100, 250, 500, 999])?;
    }
    if wants("storm") {
        storm::print(&[(999, 1_000), (999, 10_000)])?;
    }
    if wants("zones") {
        zones::print(&[4, 8, 16, 32, 64], 1_000)?;
    }
    Ok(())
}

//! Builds of a game that store their components in other ways.

use std::sync::Mutex;

use bevy_app::prelude::*;
use bevy_due::{
    DuePlugin,
    save::SaveWorldExt,
    worlds::{StableKey, WorldGroups},
};
use bevy_due_ownership::{Shard, SimulatedDisk, Zone, ZonePlugin};
use bevy_ecs::{
    error::{BevyError, FallbackErrorHandler},
    prelude::*,
};
use bevy_time::TimePlugin;
use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;

const HERO: StableKey = StableKey(7);

#[derive(Component, Clone, Serialize, Deserialize)]
struct Gold(u64);

/// What became of [`Gold`].
#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Purse {
    gold: u64,
    silver: u64,
}

/// Registers the components of a build of the game.
type Build = fn(&mut World);

/// Starts a build of the game.
fn start(disk: &SimulatedDisk, build: Build) -> (WorldGroups, App) {
    let shard = Shard::open_simulated(disk.after_kill()).unwrap();
    start_shard(&shard, build, |zone| zone)
}

fn start_shard(
    shard: &Shard,
    build: Build,
    set: impl Fn(ZonePlugin) -> ZonePlugin,
) -> (WorldGroups, App) {
    static REPORTED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .insert_resource(FallbackErrorHandler(|error: BevyError, _| {
            REPORTED.lock().unwrap().push(error.to_string());
        }))
        .add_plugins(set(shard.zone(StableKey(1))));
    build(app.world_mut());
    let groups = WorldGroups::new();
    groups.add("zones", &mut app);
    app.update();
    (groups, app)
}

/// A disk with a hero whom the first build has stored.
fn stored() -> SimulatedDisk {
    let disk = SimulatedDisk::new(1);
    let shard = Shard::open_simulated(disk.clone()).unwrap();
    let (groups, mut app) = start_shard(&shard, first, |zone| zone);
    assert!(app.world().resource::<Zone>().is_new());
    app.world_mut().spawn((HERO, Gold(1000)));
    app.update();
    shard.wait().unwrap();
    drop((groups, app));
    disk
}

fn first(world: &mut World) {
    world.add_saved_component::<Gold>("gold");
}

fn second(world: &mut World) {
    world.add_versioned_component("gold", 2, |older| {
        assert_eq!(older.version(), 1);
        let Gold(gold) = older.read()?;
        Ok(Purse { gold, silver: 0 })
    });
}

#[test]
fn a_later_build_reads_what_an_older_one_has_stored() {
    let (_groups, mut app) = start(&stored(), second);
    let zone = app.world().resource::<Zone>();
    assert!(!zone.is_new());
    let hero = zone.entity(HERO).unwrap();
    let expected = Purse {
        gold: 1000,
        silver: 0,
    };
    assert_eq!(app.world_mut().get::<Purse>(hero), Some(&expected));
}

#[test]
fn a_build_that_cannot_load_an_entity_ends_its_world() {
    let disk = stored();
    let (_groups, app) = start(&disk, |world| world.add_saved_component::<Purse>("gold"));
    assert_eq!(app.should_exit(), Some(AppExit::error()));
    let (_groups, app) = start(&disk, |_| ());
    assert_eq!(app.should_exit(), Some(AppExit::error()));
    let (_groups, app) = start(&disk, first);
    assert_eq!(app.should_exit(), None);
}

#[test]
fn an_older_build_can_go_on_without_what_it_does_not_know() {
    let disk = stored();
    let upgraded = Shard::open_simulated(disk.clone()).unwrap();
    let (groups, mut app) = start_shard(&upgraded, second, |zone| zone);
    let hero = app.world().resource::<Zone>().entity(HERO).unwrap();
    app.world_mut().get_mut::<Purse>(hero).unwrap().silver = 3;
    app.update();
    upgraded.wait().unwrap();
    drop((groups, app, upgraded));

    let back = Shard::open_simulated(disk.clone()).unwrap();
    let (groups, mut app) = start_shard(&back, first, ZonePlugin::allow_unloadable);
    assert_eq!(app.should_exit(), None);
    let zone = app.world().resource::<Zone>();
    assert_eq!(zone.entity(HERO), None);
    assert!(zone.unloadable().eq([HERO]));
    app.update();
    back.wait().unwrap();
    drop((groups, app, back));

    let (_groups, app) = start(&disk, second);
    let hero = app.world().resource::<Zone>().entity(HERO).unwrap();
    let expected = Purse {
        gold: 1000,
        silver: 3,
    };
    assert_eq!(app.world().get::<Purse>(hero), Some(&expected));
}

#[test]
fn what_two_builds_have_stored_comes_back_together() {
    let mut cluster = Cluster::new(1);
    for key in 1..=5 {
        cluster.spawn(0, StableKey(key), ());
    }
    cluster.update();
    cluster.stop(0);
    cluster.nodes[0].knows_ledgers = false;
    cluster.start(0);
    // Their world names its entities as the first one did.
    for key in 6..=10 {
        cluster.spawn(0, StableKey(key), ());
    }
    cluster.update();
    cluster.stop(0);
    cluster.nodes[0].knows_ledgers = true;
    cluster.start(0);
    let unloadable = cluster.world(0).resource::<Zone>().unloadable().count();
    assert_eq!(unloadable, 0);
    for key in 1..=10 {
        assert_eq!(cluster.find(StableKey(key)), Some(0));
    }
}

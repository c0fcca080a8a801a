//! Shards that are restored from a copy.

use bevy_app::prelude::*;
use bevy_due::{
    DuePlugin, OwnedBy,
    save::SaveWorldExt,
    worlds::{StableKey, WorldGroups},
};
use bevy_due_ownership::{DurableEntityCommandsExt, Shard, SimulatedDisk, Zone};
use bevy_ecs::error::FallbackErrorHandler;
use bevy_time::{TimePlugin, TimeUpdateStrategy};

use crate::{
    cluster::{Cluster, FRAME, Ledger, zone},
    store::{MemoryStore, with_hero},
};

const HERO: StableKey = StableKey(7);
const BANK: StableKey = StableKey(8);
const LORD: StableKey = StableKey(9);

/// Restores the first shard from what is on its disk. Nobody gives the lost one up.
fn restore_first(cluster: &mut Cluster) {
    cluster.lose_power(0, 0);
    Shard::restore_simulated(cluster.nodes[0].disk.clone()).unwrap();
    cluster.start(0);
    cluster.wait_for_answers();
}

#[test]
fn a_shard_can_be_restored_from_a_copy() {
    let mut cluster = Cluster::acquainted(HERO, BANK);
    let guard = StableKey(9);
    cluster.spawn(1, guard, ());
    cluster.update();
    cluster.move_to(BANK, 0);
    cluster.run_until("rest", Cluster::is_at_rest);
    // A letter of the copy waits for its receipt, and the bank has gone there and back again since.
    cluster.lose_power(0, 0);
    cluster.start(0);
    cluster.move_to(BANK, 1);
    cluster.mail(guard, HERO, 1);
    cluster.update_one(1);
    let copy = cluster.nodes[1].disk.after_kill();
    cluster.run_until("the letter", |cluster| cluster.ledger(HERO).gold == 1);
    cluster.move_to(BANK, 0);
    cluster.run_until("rest", Cluster::is_at_rest);

    cluster.restore(1, copy);
    cluster.run(3);
    assert_eq!(cluster.find(BANK), Some(0), "the copy of the bank is gone");
    assert_eq!(cluster.find(guard), Some(1));
    cluster.mail(guard, HERO, 2);
    cluster.send_to(HERO, 1);
    cluster.run_until("the move and the letter", |cluster| {
        cluster.find(HERO) == Some(1) && cluster.ledger(HERO).letters == [1, 2]
    });
    cluster.run_until("rest", Cluster::is_at_rest);
}

#[test]
fn a_copy_that_moves_on_before_it_hears_of_its_original_is_dropped() {
    let mut cluster = Cluster::new(3);
    for (nth, key) in [(0, HERO), (1, BANK), (2, StableKey(9))] {
        cluster.spawn(nth, key, ());
    }
    cluster.update();
    for to in [BANK, StableKey(9)] {
        cluster.mail(HERO, to, 1);
    }
    cluster.run_until("the letters", |cluster| cluster.ledger(BANK).gold == 1);
    cluster.run_until("rest", Cluster::is_at_rest);
    let copy = cluster.nodes[0].disk.after_kill();
    for to in [2, 0, 2] {
        cluster.move_to(HERO, to);
    }
    cluster.run_until("rest", Cluster::is_at_rest);
    cluster.restore(0, copy);
    // The zone of the original hangs.
    let hero = cluster.entity(0, HERO);
    cluster.world(0).commands().entity(hero).move_to(zone(1));
    let has_hero = |cluster: &mut Cluster, nth| {
        let found = cluster.world(nth).resource::<Zone>().entity(HERO);
        found.is_some()
    };
    while !has_hero(&mut cluster, 1) {
        cluster.update_one(0);
        cluster.update_one(1);
    }
    cluster.run(10);
    assert_eq!(cluster.find(HERO), Some(2));
}

#[test]
fn the_last_letters_of_an_entity_go_on_from_a_copy() {
    let mut cluster = Cluster::acquainted(HERO, BANK);
    cluster.stop(1);
    for gold in 2..5 {
        cluster.mail(HERO, BANK, gold);
        cluster.update();
    }
    cluster.despawn(0, HERO);
    cluster.update();
    cluster.lose_power(0, 0);
    let lost = Shard::restore_simulated(cluster.nodes[0].disk.clone()).unwrap();
    cluster.start(1);
    cluster.shard(1).reclaim(lost);
    cluster.update();
    cluster.start(0);
    cluster.run_until("rest", Cluster::is_at_rest);
    // The first of the three was on its way when the copy was made.
    assert_eq!(cluster.ledger(BANK).letters, [1, 3, 4]);
    cluster.lose_power(0, 0);
    cluster.start(0);
    assert!(cluster.is_at_rest(), "nothing is left of the hero");
}

/// The copy of an entity that has another owner elsewhere by now, as a part of another entity.
#[test]
fn a_copy_of_an_entity_that_is_owned_elsewhere_by_now_is_dropped() {
    let mut cluster = Cluster::three(None);
    cluster.spawn(0, HERO, ());
    let lord = cluster.spawn(1, LORD, ());
    cluster.update();
    let copy = cluster.nodes[0].disk.after_kill();
    cluster.move_to(HERO, 1);
    cluster.run_until("rest", Cluster::is_at_rest);
    let hero = cluster.entity(1, HERO);
    cluster.world(1).entity_mut(hero).insert(OwnedBy(lord));
    cluster.update();
    cluster.restore(0, copy);
    cluster.run(100);
    assert!(cluster.world(1).get_entity(hero).is_ok());
    assert_eq!(cluster.find(HERO), None, "it is a part of the lord");
}

#[test]
fn a_shard_that_is_restored_from_a_copy_keeps_what_the_store_gave_the_lost_one() {
    let store = MemoryStore::new(8);
    let mut cluster = with_hero(2, &store);
    restore_first(&mut cluster);
    assert_eq!(cluster.find(HERO), Some(0));
    cluster.run_until("the move", |cluster| {
        // It fails while the store does not answer.
        if cluster.find(HERO) == Some(0) {
            cluster.send_to(HERO, 1);
        }
        std::thread::sleep(core::time::Duration::from_millis(1));
        cluster.find(HERO) == Some(1)
    });
}

#[test]
fn a_key_can_be_used_again_in_a_shard_that_was_restored() {
    let store = MemoryStore::new(20);
    let mut cluster = with_hero(2, &store);
    restore_first(&mut cluster);
    assert_eq!(cluster.find(HERO), Some(0));
    // Before and after the store knows that the key is free.
    for waits in [false, true] {
        let hero = cluster.entity(0, HERO);
        cluster.world(0).despawn(hero);
        match waits {
            true => cluster.wait_for_answers(),
            false => cluster.update(),
        }
        cluster.spawn(0, HERO, ());
        cluster.wait_for_answers();
        assert_eq!(cluster.find(HERO), Some(0), "it has logged in again");
        let owner = store.owner_of(HERO);
        assert_eq!(owner.zone.journal, cluster.shard(0).journal_id());
    }
}

/// A pet that is owned for a while, and free again, in a shard that was restored once.
#[test]
fn an_entity_that_is_freed_in_a_restored_shard_with_a_store_stays() {
    let store = MemoryStore::new(23);
    let mut cluster = Cluster::with_store(1, Some(store));
    cluster.spawn(0, HERO, ());
    cluster.spawn(0, LORD, ());
    cluster.wait_for_answers();
    restore_first(&mut cluster);
    let (hero, lord) = (cluster.entity(0, HERO), cluster.entity(0, LORD));
    cluster.world(0).entity_mut(hero).insert(OwnedBy(lord));
    cluster.wait_for_answers();
    cluster.world(0).entity_mut(hero).remove::<OwnedBy>();
    cluster.wait_for_answers();
    assert_eq!(cluster.find(HERO), Some(0), "it is free");
}

/// Two zones of one shard.
fn start_two(disk: &SimulatedDisk, store: Option<MemoryStore>) -> (Shard, WorldGroups, [App; 2]) {
    let mut shard = Shard::open_simulated(disk.clone()).unwrap();
    if let Some(store) = store {
        shard = shard.with_owners(store).unwrap();
    }
    let groups = WorldGroups::new();
    let apps = [0, 1].map(|nth| {
        let mut app = App::new();
        app.add_plugins((TimePlugin, DuePlugin::default()))
            .add_plugins(shard.zone(zone(nth)))
            .insert_resource(TimeUpdateStrategy::ManualDuration(FRAME))
            .insert_resource(FallbackErrorHandler(|error, context| {
                eprintln!("{context}: {error}");
            }));
        app.world_mut().add_saved_component::<Ledger>("ledger");
        groups.add("zones", &mut app);
        app.update();
        app
    });
    (shard, groups, apps)
}

fn run(shard: &Shard, apps: &mut [App; 2], frames: u32) {
    for _ in 0..frames {
        apps.iter_mut().for_each(App::update);
        shard.wait().unwrap();
        std::thread::sleep(core::time::Duration::from_millis(1));
    }
}

fn is_here(apps: &[App; 2], nth: usize) -> bool {
    let zone = apps[nth].world().resource::<Zone>();
    zone.entity(HERO).is_some()
}

/// The copy of a shard with two zones, between which an entity has moved since, with a store.
#[test]
fn an_entity_that_has_moved_within_its_shard_since_the_copy_is_not_lost() {
    let store = MemoryStore::new(24);
    let disk = SimulatedDisk::new(5);
    let (shard, groups, mut apps) = start_two(&disk, Some(store.clone()));
    let hero = apps[0].world_mut().spawn((HERO, Ledger::default())).id();
    run(&shard, &mut apps, 500);
    let copy = disk.after_kill();
    for nth in 0..2000 {
        if is_here(&apps, 1) {
            break;
        }
        if nth % 200 == 0 && is_here(&apps, 0) {
            let commands = &mut apps[0].world_mut().commands();
            commands.entity(hero).move_to(zone(1));
        }
        run(&shard, &mut apps, 1);
    }
    assert!(is_here(&apps, 1));
    run(&shard, &mut apps, 100);
    drop((apps, groups, shard));
    Shard::restore_simulated(copy.clone()).unwrap();
    let (shard, _groups, mut apps) = start_two(&copy, Some(store));
    run(&shard, &mut apps, 1000);
    assert!(
        is_here(&apps, 0) || is_here(&apps, 1),
        "it is on its way to a zone of the lost shard, on_the_way: {}",
        apps[0].world().resource::<Zone>().on_the_way()
    );
}

/// Zones of the same shard: a copy of the file has what is between them.
#[test]
fn what_was_between_two_zones_of_a_shard_is_in_its_copy() {
    let disk = SimulatedDisk::new(5);
    let (shard, groups, mut apps) = start_two(&disk, None);
    let hero = apps[0].world_mut().spawn((HERO, Ledger::default())).id();
    run(&shard, &mut apps, 5);
    let commands = &mut apps[0].world_mut().commands();
    commands.entity(hero).move_to(zone(1));
    while is_here(&apps, 0) {
        apps[1].update();
        shard.wait().unwrap();
        apps[0].update();
        shard.wait().unwrap();
    }
    assert!(!is_here(&apps, 1));
    let copy = disk.after_kill();
    drop((apps, groups, shard));
    Shard::restore_simulated(copy.clone()).unwrap();
    let (shard, _groups, mut apps) = start_two(&copy, None);
    run(&shard, &mut apps, 200);
    assert!(
        is_here(&apps, 0) || is_here(&apps, 1),
        "it was on its way between zones of one shard"
    );
}

#[test]
fn a_copy_does_not_arrive_where_its_original_has_gone_on() {
    let mut cluster = Cluster::three(None);
    cluster.spawn(0, HERO, ());
    cluster.update();
    let copy = cluster.nodes[0].disk.after_kill();
    for to in [1, 2] {
        cluster.move_to(HERO, to);
        cluster.run_until("rest", Cluster::is_at_rest);
    }
    cluster.restore(0, copy);
    // The zone of the original hangs.
    let hero = cluster.entity(0, HERO);
    cluster.world(0).commands().entity(hero).move_to(zone(1));
    while cluster.has(0, HERO) {
        cluster.update_one(0);
        cluster.update_one(1);
    }
    for _ in 0..10 {
        cluster.update_one(0);
        cluster.update_one(1);
    }
    assert!(!cluster.has(1, HERO));
    assert!(cluster.has(2, HERO));
}

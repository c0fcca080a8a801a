//! Stable keys that are inserted again, replaced or swapped.

use bevy_due::worlds::StableKey;
use bevy_ecs::{entity_disabling::Disabled, prelude::*};

use crate::cluster::{Cluster, Ledger};

const HERO: StableKey = StableKey(7);
const BANK: StableKey = StableKey(8);

fn set_gold(cluster: &mut Cluster, entity: Entity, gold: u64) {
    let world = cluster.world(0);
    world.get_mut::<Ledger>(entity).unwrap().gold = gold;
}

fn crash(cluster: &mut Cluster) {
    cluster.update();
    cluster.lose_power(0, 0);
    cluster.start(0);
}

#[test]
fn a_key_that_is_inserted_again_keeps_its_entity() {
    let mut cluster = Cluster::new(1);
    let hero = cluster.spawn(0, HERO, ());
    cluster.update();
    cluster.world(0).entity_mut(hero).insert(HERO);
    crash(&mut cluster);
    assert_eq!(cluster.find(HERO), Some(0));
}

#[test]
fn an_entity_with_another_key_is_stored() {
    let mut cluster = Cluster::new(1);
    let hero = cluster.spawn(0, HERO, ());
    cluster.update();
    cluster.world(0).entity_mut(hero).insert(BANK);
    cluster.update();
    set_gold(&mut cluster, hero, 5);
    crash(&mut cluster);
    assert_eq!(cluster.find(HERO), None);
    assert_eq!(cluster.ledger(BANK).gold, 5);
}

#[test]
fn entities_that_swap_their_keys_are_stored() {
    let mut cluster = Cluster::new(1);
    let hero = cluster.spawn(0, HERO, ());
    let bank = cluster.spawn(0, BANK, ());
    cluster.update();
    cluster.world(0).entity_mut(hero).insert(BANK);
    cluster.world(0).entity_mut(bank).insert(HERO);
    cluster.update();
    set_gold(&mut cluster, hero, 5);
    set_gold(&mut cluster, bank, 6);
    crash(&mut cluster);
    assert_eq!(cluster.ledger(BANK).gold, 5);
    assert_eq!(cluster.ledger(HERO).gold, 6);
}

#[test]
fn a_disabled_entity_is_durable() {
    let mut cluster = Cluster::new(1);
    cluster.spawn(0, HERO, Disabled);
    crash(&mut cluster);
    assert_eq!(cluster.find(HERO), Some(0));
}

#[test]
fn a_disabled_entity_that_despawns_stays_away() {
    let mut cluster = Cluster::new(1);
    let hero = cluster.spawn(0, HERO, ());
    cluster.update();
    cluster.world(0).entity_mut(hero).insert(Disabled);
    cluster.update();
    cluster.world(0).despawn(hero);
    crash(&mut cluster);
    assert_eq!(cluster.find(HERO), None);
}

//! Packets between zones that no zone has sent.

use core::time::Duration;

use bevy_due::{
    message::Packet,
    worlds::{Parcel, ParcelCommandsExt, StableKey},
};
use bevy_due_ownership::Zone;
use serde::Serialize;

use crate::cluster::{Cluster, zone};

const HERO: StableKey = StableKey(7);
const BANK: StableKey = StableKey(8);

/// Sends a packet of the protocol to the first zone.
fn forge(cluster: &mut Cluster, message: &impl Serialize) {
    let version = 0_u8;
    let message = postcard::to_allocvec(&(version, message)).unwrap();
    let packet = Packet::new(u32::from_be_bytes(*b"DUEZ"), message);
    let parcel = Parcel::new("zones", zone(0), packet);
    cluster.world(1).commands().post(parcel);
}

/// Sends an entity with a later owner, whose data is damaged.
fn send_damaged(cluster: &mut Cluster, first: u64, epoch: u64) {
    let mail = (0_u8, Vec::<u8>::new());
    let (left, waited) = (Duration::ZERO, Duration::ZERO);
    let data = vec![1_u8, 2, 3];
    let (birth, not_refused) = (5_u64, false);
    let entity = (
        0_u8,
        (HERO, birth),
        epoch,
        data,
        mail,
        left,
        waited,
        not_refused,
    );
    let items = 0_u8;
    let (from, session, acked) = ((5_u128, 4000_u64), 77_u64, 0_u64);
    let message = (
        items,
        from,
        session,
        None::<u64>,
        first,
        acked,
        vec![entity],
        Vec::<u128>::new(),
    );
    forge(cluster, &message);
}

#[test]
fn a_damaged_entity_replaces_nothing() {
    let mut cluster = Cluster::new(2);
    cluster.spawn(0, HERO, ());
    cluster.update();
    for (first, epoch) in [(1, 9), (2, u64::MAX)] {
        send_damaged(&mut cluster, first, epoch);
        for _ in 0..5 {
            cluster.update();
        }
    }
    assert_eq!(cluster.find(HERO), Some(0));
    let on_the_way = cluster.world(0).resource::<Zone>().on_the_way();
    assert_eq!(on_the_way, 2, "both go back");
}

#[test]
fn no_packet_of_another_member_ends_a_zone() {
    let mut cluster = Cluster::acquainted(HERO, BANK);
    let journals = [0, 1].map(|nth| cluster.shard(nth).journal_id().0);
    let other = (journals[1], zone(1));
    let none = None::<u64>;
    // "Your journal is given up": without its session, and with a wrong one.
    forge(&mut cluster, &(4_u8, journals[0], none));
    forge(&mut cluster, &(4_u8, journals[0], Some(1_u64)));
    // "I have your item number a million."
    forge(&mut cluster, &(1_u8, other, 1_000_000_u64, 1_u64));
    // "You have taken a million of mine."
    let (first, acked, no_items) = (1_000_001_u64, 1_000_000_u64, Vec::<u8>::new());
    let no_dead = Vec::<u128>::new();
    let message = (0_u8, other, 1_u64, none, first, acked, no_items, no_dead);
    forge(&mut cluster, &message);
    // "Your journal is given up", with items.
    for session in [None, Some(1_u64)] {
        let (first, acked, no_items) = (1_u64, 0_u64, Vec::<u8>::new());
        let dead = vec![journals[0]];
        let message = (0_u8, other, 1_u64, session, first, acked, no_items, dead);
        forge(&mut cluster, &message);
    }
    for _ in 0..50 {
        cluster.update();
        assert!(!cluster.has_ended(0));
    }
    cluster.mail(HERO, BANK, 2);
    cluster.mail(BANK, HERO, 3);
    cluster.run_until("the letters", |cluster| {
        cluster.ledger(BANK).letters == [1, 2] && cluster.ledger(HERO).letters == [3]
    });
}

#[test]
fn a_zone_whose_journal_was_given_up_hears_of_it_when_it_asks() {
    let mut cluster = Cluster::acquainted(HERO, BANK);
    let lost = cluster.shard(0).journal_id();
    // It had no network when the other shard gave it up.
    let disk = cluster.nodes[0].disk.after_kill();
    cluster.lose_power(0, 0);
    cluster.shard(1).reclaim(lost);
    cluster.update();
    cluster.nodes[0].disk = disk;
    cluster.start(0);
    cluster.shard(1).reclaim(lost);
    cluster.run_until("the end", |cluster| cluster.has_ended(0));
}

//! Packets between zones that no zone has sent.

use core::time::Duration;

use bevy_due::{
    message::Packet,
    worlds::{Parcel, ParcelCommandsExt, StableKey},
};
use bevy_due_ownership::Zone;

use crate::cluster::{Cluster, zone};

const HERO: StableKey = StableKey(7);

/// Sends an entity with a later owner to the first zone, whose data is damaged.
fn send_damaged(cluster: &mut Cluster, first: u64, epoch: u64) {
    let mail = (0_u8, Vec::<u8>::new());
    let (left, waited) = (Duration::ZERO, Duration::ZERO);
    let data = vec![1_u8, 2, 3];
    let entity = (0_u8, HERO, epoch, data, mail, left, waited, false);
    let (version, items) = (0_u8, 0_u8);
    let (from, session, acked) = ((5_u128, 4000_u64), 77_u64, 0_u64);
    let message = (version, items, from, session, first, acked, vec![entity]);
    let message = postcard::to_allocvec(&message).unwrap();
    let packet = Packet::new(u32::from_be_bytes(*b"DUEZ"), message);
    let parcel = Parcel::new("zones", zone(0), packet);
    cluster.world(1).commands().post(parcel);
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

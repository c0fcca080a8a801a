//! Journals that are lost, or older than they should be.

use bevy_due::{message::MessageWorldExt, worlds::StableKey};
use bevy_due_ownership::{DurableEntityCommandsExt, JournalId, Shard, SimulatedDisk, Zone};

use crate::cluster::{Cluster, Failures, zone};

const HERO: StableKey = StableKey(7);
const BANK: StableKey = StableKey(8);

/// Loses the second of two zones while the hero is on the way there. Returns its journal.
fn lost_on_the_way() -> (Cluster, JournalId) {
    let mut cluster = Cluster::acquainted(HERO, BANK);
    cluster.send_to(HERO, 1);
    while cluster.find(HERO).is_some() {
        cluster.update_one(0);
    }
    let lost = cluster.shard(1).journal_id();
    cluster.lose_power(1, 0);
    (cluster, lost)
}

#[test]
fn an_entity_on_its_way_to_a_lost_journal_can_be_reclaimed() {
    let (mut cluster, lost) = lost_on_the_way();
    cluster.shard(0).reclaim(lost);
    cluster.run_until("the hero", |cluster| cluster.find(HERO) == Some(0));
    let failures = &cluster.world(0).resource::<Failures>().moves;
    assert!(failures[0].1.contains("lost"), "{failures:?}");

    // The zone begins anew with an empty disk. What this one has is durable.
    cluster.update();
    cluster.lose_power(0, 0);
    cluster.start(0);
    assert_eq!(cluster.find(HERO), Some(0));
    cluster.nodes[1].disk = SimulatedDisk::new(99);
    cluster.start(1);
    cluster.send_to(HERO, 1);
    cluster.run_until("the move", |cluster| cluster.find(HERO) == Some(1));
    cluster.run_until("rest", Cluster::is_at_rest);
}

#[test]
fn a_zone_with_another_journal_gets_nothing_before_the_old_one_is_given_up() {
    let mut cluster = Cluster::acquainted(HERO, BANK);
    let lost = cluster.shard(1).journal_id();
    cluster.lose_power(1, 0);
    cluster.nodes[1].disk = SimulatedDisk::new(99);
    cluster.start(1);
    // The old one has just answered.
    for _ in 0..80 {
        cluster.update();
    }
    cluster.send_to(HERO, 1);
    cluster.run_until("the failure", |cluster| {
        !cluster.world(0).resource::<Failures>().moves.is_empty()
    });
    assert_eq!(cluster.find(HERO), Some(0));
    cluster.shard(0).reclaim(lost);
    cluster.update();
    cluster.send_to(HERO, 1);
    cluster.run_until("the move", |cluster| cluster.find(HERO) == Some(1));
}

#[test]
fn a_zone_with_an_old_copy_of_its_journal_ends() {
    let mut cluster = Cluster::acquainted(HERO, BANK);
    let copy = cluster.nodes[0].disk.after_kill();
    for gold in [2, 3] {
        cluster.mail(HERO, BANK, gold);
        cluster.run_until("the letter", |cluster| {
            cluster.is_at_rest() && cluster.ledger(BANK).letters.len() == usize::from(gold)
        });
    }
    cluster.lose_power(0, 0);
    cluster.nodes[0].disk = copy;
    cluster.start(0);
    // The numbers of its next letters were used before.
    for gold in [4, 5] {
        cluster.mail(HERO, BANK, gold);
        cluster.update();
    }
    cluster.run_until("the end", |cluster| cluster.has_ended(0));
    for _ in 0..100 {
        cluster.update();
    }
    assert_eq!(cluster.ledger(BANK).letters, [1, 2, 3]);
}

#[test]
fn journals_that_are_mixed_up_lose_nothing() {
    let mut cluster = Cluster::new(2);
    cluster.spawn(0, HERO, ());
    cluster.update();
    let disks = [0, 1].map(|nth| {
        cluster.stop(nth);
        cluster.nodes[nth].disk.after_kill()
    });
    for (nth, disk) in disks.iter().rev().enumerate() {
        cluster.nodes[nth].disk = disk.clone();
    }
    cluster.start(0);
    cluster.start(1);
    // The game begins anew, as it finds nothing.
    cluster.spawn(1, HERO, ());
    cluster.update();
    let disks = [1, 0].map(|nth| {
        cluster.stop(nth);
        cluster.nodes[nth].disk.after_kill()
    });
    for (nth, disk) in disks.into_iter().enumerate() {
        cluster.nodes[nth].disk = disk;
    }
    cluster.start(0);
    assert_eq!(cluster.find(HERO), Some(0));
}

#[test]
fn letters_come_back_when_a_journal_is_given_up() {
    // The first letter is on its way, was taken, or was taken and its receipt is on its way.
    for (steps, is_restarted) in [2, 6, 7]
        .into_iter()
        .flat_map(|it| [(it, false), (it, true)])
    {
        let mut cluster = Cluster::new(2);
        cluster.spawn(0, HERO, ());
        cluster.spawn(1, BANK, ());
        cluster.update();
        cluster.mail(HERO, BANK, 1);
        for step in 0..steps {
            cluster.update_one(step % 2);
        }
        let lost = cluster.shard(1).journal_id();
        cluster.lose_power(1, 0);
        cluster.update();
        if is_restarted {
            // It no longer knows where the bank was.
            cluster.lose_power(0, 0);
            cluster.start(0);
        }
        cluster.shard(0).reclaim(lost);
        cluster.update();
        cluster.mail(HERO, BANK, 2);
        cluster.nodes[1].disk = SimulatedDisk::new(99);
        cluster.start(1);
        cluster.run_until("the letter", |cluster| {
            let returned = &cluster.world(0).resource::<Failures>().mail;
            returned.iter().any(|(_, letter)| letter.payload() == [2])
        });
        cluster.update();
        assert!(cluster.is_at_rest(), "after {steps} steps, {is_restarted}");
    }
}

#[test]
fn a_shard_can_be_restored_from_a_copy() {
    let mut cluster = Cluster::acquainted(HERO, BANK);
    let guard = StableKey(9);
    cluster.spawn(1, guard, ());
    cluster.update();
    cluster.send_to(BANK, 0);
    cluster.run_until("the bank", |cluster| cluster.find(BANK) == Some(0));
    cluster.run_until("rest", Cluster::is_at_rest);
    // A letter of the copy waits for its receipt, and the bank has gone there and back again since.
    cluster.lose_power(0, 0);
    cluster.start(0);
    cluster.send_to(BANK, 1);
    cluster.run_until("the bank", |cluster| cluster.find(BANK) == Some(1));
    cluster.mail(guard, HERO, 1);
    cluster.update_one(1);
    let copy = cluster.nodes[1].disk.after_kill();
    cluster.run_until("the letter", |cluster| cluster.ledger(HERO).gold == 1);
    cluster.send_to(BANK, 0);
    cluster.run_until("the bank", |cluster| cluster.find(BANK) == Some(0));
    cluster.run_until("rest", Cluster::is_at_rest);

    cluster.lose_power(1, 0);
    let lost = Shard::restore_simulated(copy.clone()).unwrap();
    cluster.shard(0).reclaim(lost);
    cluster.update();
    cluster.nodes[1].disk = copy;
    cluster.start(1);
    for _ in 0..3 {
        cluster.update();
    }
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
        cluster.send_to(HERO, to);
        cluster.run_until("the move", |cluster| {
            cluster.find(HERO) == Some(to as usize)
        });
    }
    cluster.run_until("rest", Cluster::is_at_rest);
    cluster.lose_power(0, 0);
    let lost = Shard::restore_simulated(copy.clone()).unwrap();
    for nth in [1, 2] {
        cluster.shard(nth).reclaim(lost);
        cluster.update_one(nth);
    }
    cluster.nodes[0].disk = copy;
    cluster.start(0);
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
    for _ in 0..10 {
        cluster.update();
    }
    assert_eq!(cluster.find(HERO), Some(2));
}

#[test]
fn a_journal_can_be_given_up_while_the_inbox_of_a_zone_is_full() {
    let (mut cluster, lost) = lost_on_the_way();
    let sender = cluster.world(0).message_sender();
    while sender.run(|_| {}).is_ok() {}
    cluster.shard(0).reclaim(lost);
    cluster.run_until("the hero", |cluster| cluster.find(HERO) == Some(0));
}

#[test]
fn the_last_letters_of_an_entity_go_on_from_a_copy() {
    let mut cluster = Cluster::acquainted(HERO, BANK);
    cluster.stop(1);
    for gold in 2..5 {
        cluster.mail(HERO, BANK, gold);
        cluster.update();
    }
    let hero = cluster.entity(0, HERO);
    cluster.world(0).despawn(hero);
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

#[test]
fn a_zone_can_lose_its_journal_more_than_once() {
    let mut cluster = Cluster::acquainted(HERO, BANK);
    for seed in 90..93 {
        let lost = cluster.shard(1).journal_id();
        cluster.lose_power(1, 0);
        cluster.shard(0).reclaim(lost);
        cluster.update();
        cluster.nodes[1].disk = SimulatedDisk::new(seed);
        cluster.start(1);
        for to in [1, 0] {
            cluster.send_to(HERO, to);
            cluster.run_until("the move", |cluster| {
                cluster.find(HERO) == Some(to as usize)
            });
        }
        cluster.run_until("rest", Cluster::is_at_rest);
        cluster.lose_power(0, 0);
        cluster.start(0);
        cluster.spawn(1, BANK, ());
        cluster.update();
        cluster.mail(HERO, BANK, 1);
        cluster.run_until("the letter", |cluster| cluster.ledger(BANK).gold == 1);
    }
}

//! Journals that are lost, or older than they should be.

use bevy_due::{message::MessageWorldExt, worlds::StableKey};
use bevy_due_ownership::JournalId;
use bevy_ecs::entity_disabling::Disabled;

use crate::cluster::{Cluster, Failures, Ledger};

const HERO: StableKey = StableKey(7);
const BANK: StableKey = StableKey(8);
const LORD: StableKey = StableKey(9);

/// Loses the second of two zones while the hero is on the way there. Returns its journal.
fn lost_on_the_way() -> (Cluster, JournalId) {
    let mut cluster = Cluster::acquainted(HERO, BANK);
    cluster.let_leave(HERO, 1);
    let lost = cluster.lose(1);
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
    cluster.begin_anew(1, 99);
    cluster.move_to(HERO, 1);
    cluster.run_until("rest", Cluster::is_at_rest);
}

#[test]
fn a_zone_with_another_journal_gets_nothing_before_the_old_one_is_given_up() {
    let mut cluster = Cluster::acquainted(HERO, BANK);
    let lost = cluster.lose(1);
    cluster.begin_anew(1, 99);
    // The old one has just answered.
    cluster.run(80);
    cluster.send_to(HERO, 1);
    cluster.run_until("the failure", |cluster| {
        !cluster.world(0).resource::<Failures>().moves.is_empty()
    });
    assert_eq!(cluster.find(HERO), Some(0));
    cluster.shard(0).reclaim(lost);
    cluster.update();
    cluster.move_to(HERO, 1);
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
    cluster.run(100);
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
        let lost = cluster.lose(1);
        cluster.update();
        if is_restarted {
            // It no longer knows where the bank was.
            cluster.lose_power(0, 0);
            cluster.start(0);
        }
        cluster.shard(0).reclaim(lost);
        cluster.update();
        cluster.mail(HERO, BANK, 2);
        cluster.begin_anew(1, 99);
        cluster.run_until("the letter", |cluster| {
            let returned = &cluster.world(0).resource::<Failures>().mail;
            returned.iter().any(|(_, letter)| letter.payload() == [2])
        });
        cluster.update();
        assert!(cluster.is_at_rest(), "after {steps} steps, {is_restarted}");
    }
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
fn a_zone_can_lose_its_journal_more_than_once() {
    let mut cluster = Cluster::acquainted(HERO, BANK);
    for seed in 90..93 {
        let lost = cluster.lose(1);
        cluster.shard(0).reclaim(lost);
        cluster.update();
        cluster.begin_anew(1, seed);
        for to in [1, 0] {
            cluster.move_to(HERO, to);
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

/// The receipt of a letter whose sender is lost with its shard has nobody to go to.
#[test]
fn a_receipt_for_a_lost_sender_ends() {
    let mut cluster = Cluster::acquainted(HERO, BANK);
    cluster.mail(HERO, BANK, 2);
    cluster.update_one(0);
    cluster.update_one(1);
    assert_eq!(cluster.ledger(BANK).letters, [1, 2]);
    let lost = cluster.lose(0);
    cluster.shard(1).reclaim(lost);
    // Two minutes.
    for _ in 0..8000 {
        cluster.app(1).update();
    }
    cluster.update();
    assert!(cluster.is_at_rest(), "the receipt waits forever");
}

/// The acknowledgement of an entity and the word of a lost journal come in the same frame.
#[test]
fn what_was_acknowledged_in_the_frame_of_a_reclaim_is_not_sent_again() {
    let mut cluster = Cluster::three(None);
    cluster.spawn(0, HERO, ());
    cluster.update();
    cluster.let_leave(HERO, 1);
    cluster.update_one(1);
    assert!(cluster.has(1, HERO));
    // It goes on to the third zone. The first one has yet to read the acknowledgement.
    cluster.let_leave(HERO, 2);
    cluster.let_arrive(HERO, 2);
    let lost = cluster.lose(1);
    cluster.shard(2).reclaim(lost);
    cluster.update_one(2);
    cluster.run(50);
    assert_eq!(cluster.find(HERO), Some(2));
    assert!(cluster.is_at_rest(), "the move was acknowledged");
    cluster.lose_power(0, 0);
    cluster.start(0);
    cluster.begin_anew(1, 99);
    cluster.run(300);
    assert_eq!(cluster.find(HERO), Some(2));
    cluster.run_until("rest", Cluster::is_at_rest);
}

/// A letter that counts as delivered comes again.
#[test]
fn a_letter_that_was_acknowledged_in_the_frame_of_a_reclaim_is_not_sent_again() {
    let mut cluster = Cluster::three(None);
    cluster.spawn(0, HERO, ());
    cluster.spawn(2, BANK, ());
    cluster.spawn(1, LORD, ());
    cluster.update();
    // The first zone believes the bank in the second one.
    cluster.move_to(BANK, 1);
    cluster.acquaint(HERO, BANK);
    cluster.mail(HERO, BANK, 2);
    cluster.update_one(0);
    cluster.update_one(1);
    assert_eq!(cluster.ledger(BANK).letters, [1, 2]);
    // The bank takes the letter along to the third zone.
    cluster.send_to(BANK, 2);
    cluster.update_one(1);
    cluster.update_one(2);
    assert!(cluster.has(2, BANK));
    let lost = cluster.lose(1);
    cluster.shard(2).reclaim(lost);
    cluster.update_one(2);
    cluster.run(50);
    cluster.lose_power(0, 0);
    cluster.start(0);
    cluster.begin_anew(1, 99);
    cluster.run(300);
    assert_eq!(cluster.ledger(BANK).letters, [1, 2]);
}

/// A move back that was taken proves that the move there was taken.
#[test]
fn an_entity_that_has_come_back_is_not_taken_back() {
    let mut cluster = Cluster::three(None);
    cluster.spawn(0, HERO, ());
    cluster.update();
    cluster.let_leave(HERO, 1);
    cluster.lose_power(0, 0);
    // The disk of the second zone is slow, so what it says comes to the next session of the first.
    cluster.nodes[1]
        .disk
        .set_sync_time(core::time::Duration::from_millis(600));
    cluster.app(1).update();
    assert!(cluster.has(1, HERO));
    cluster.send_to(HERO, 0);
    cluster.app(1).update();
    assert!(!cluster.has(1, HERO));
    cluster.start(0);
    cluster.wait();
    cluster.nodes[1]
        .disk
        .set_sync_time(core::time::Duration::ZERO);
    cluster.update_one(0);
    cluster.wait();
    assert!(cluster.has(0, HERO), "it is back");
    let lost = cluster.lose(1);
    for _ in 0..100 {
        cluster.update_one(0);
        cluster.update_one(2);
    }
    cluster.move_to(HERO, 2);
    cluster.shard(0).reclaim(lost);
    cluster.run(50);
    assert_eq!(cluster.find(HERO), Some(2));
}

/// A reclaim of a shard that has nothing to do with two entities changes no order between them.
#[test]
fn a_reclaim_does_not_change_the_order_of_letters_of_others() {
    order_of_letters(true);
}

/// The same without a reclaim.
#[test]
fn letters_of_others_are_in_order() {
    order_of_letters(false);
}

fn order_of_letters(reclaims: bool) {
    let mut cluster = Cluster::new(4);
    cluster.spawn(0, HERO, ());
    let bank = cluster.spawn(2, BANK, ());
    cluster.spawn(1, LORD, ());
    cluster.spawn(3, StableKey(10), ());
    cluster.update();
    for (from, to) in [(HERO, LORD), (BANK, LORD), (HERO, StableKey(10))] {
        cluster.mail(from, to, 9);
    }
    cluster.run_until("the letters", |cluster| {
        cluster.is_at_rest() && cluster.ledger(LORD).letters.len() == 2
    });
    cluster
        .world(2)
        .entity_mut(bank)
        .remove::<bevy_due::message::MessageComponent>();
    cluster.mail(HERO, BANK, 1);
    cluster.run(60);
    assert!(cluster.ledger(BANK).letters.is_empty(), "it waits");
    cluster.mail(HERO, BANK, 2);
    cluster.mail(LORD, BANK, 7);
    cluster.run(60);
    // The bank moves, and its old zone stops before it can pass the letter on.
    cluster.send_to(BANK, 1);
    while cluster.has(2, BANK) {
        cluster.update_one(1);
        cluster.update_one(2);
    }
    cluster.stop(2);
    cluster.update_one(1);
    assert!(cluster.has(1, BANK));
    cluster.run(20);
    cluster.lose_power(0, 0);
    cluster.start(0);
    let lost = cluster.lose(3);
    if reclaims {
        cluster.shard(0).reclaim(lost);
    }
    cluster.run(100);
    cluster.start(2);
    cluster.run_until("rest", Cluster::is_at_rest);
    let letters = cluster.ledger(BANK).letters;
    let of_hero: Vec<_> = letters.into_iter().filter(|&it| it < 7).collect();
    assert_eq!(of_hero, [1, 2]);
}

/// The disk of the zone that takes back is behind when the acknowledgement comes, so its journal has both.
#[test]
fn what_was_acknowledged_while_the_disk_was_behind_is_not_sent_again() {
    let mut cluster = Cluster::three(None);
    cluster.spawn(0, HERO, ());
    cluster.update();
    cluster.let_leave(HERO, 1);
    // Frames are in flight, so the one that hears the acknowledgement is not stored.
    cluster.nodes[0]
        .disk
        .set_sync_time(core::time::Duration::from_millis(300));
    let other = cluster.entity(0, StableKey(100));
    for gold in 100..104 {
        cluster.world(0).get_mut::<Ledger>(other).unwrap().gold = gold;
        cluster.app(0).update();
    }
    let update = |cluster: &mut Cluster, nth| {
        cluster.app(nth).update();
        cluster.shard(nth).wait().unwrap();
    };
    update(&mut cluster, 1);
    cluster.send_to(HERO, 2);
    while cluster.has(1, HERO) {
        update(&mut cluster, 1);
    }
    while !cluster.has(2, HERO) {
        update(&mut cluster, 2);
    }
    cluster.app(0).update();
    let lost = cluster.lose(1);
    cluster.shard(0).reclaim(lost);
    cluster.app(0).update();
    cluster.nodes[0]
        .disk
        .set_sync_time(core::time::Duration::ZERO);
    cluster.run(50);
    assert_eq!(cluster.find(HERO), Some(2));
    cluster.lose_power(0, 0);
    cluster.start(0);
    cluster.begin_anew(1, 99);
    cluster.run(300);
    assert_eq!(cluster.find(HERO), Some(2));
}

/// A lost shard had passed a letter on, and the sender knows where the recipient is by now.
#[test]
fn letters_go_on_when_a_lost_shard_had_one_to_pass_on() {
    let mut cluster = Cluster::three(None);
    cluster.spawn(0, HERO, ());
    cluster.spawn(1, BANK, ());
    cluster.update();
    cluster.acquaint(HERO, BANK);
    cluster.move_to(BANK, 2);
    cluster.run_until("rest", Cluster::is_at_rest);
    cluster.stop(2);
    cluster.mail(HERO, BANK, 2);
    for _ in 0..5 {
        cluster.update_one(0);
        cluster.update_one(1);
    }
    let lost = cluster.lose(1);
    cluster.start(2);
    for nth in [0, 2] {
        cluster.shard(nth).reclaim(lost);
    }
    for gold in 3..6 {
        cluster.update();
        cluster.mail(HERO, BANK, gold);
    }
    // A minute.
    for _ in 0..4000 {
        cluster.update_worlds();
    }
    cluster.update();
    let returned = cluster.world(0).resource::<Failures>().mail.len();
    let letters = cluster.ledger(BANK).letters;
    assert!(
        letters.ends_with(&[3, 4, 5]),
        "{letters:?}, and {returned} came back"
    );
    assert!(cluster.is_at_rest());
}

/// A letter that a lost zone had counts as delivered, also if its sender was on the way there.
#[test]
fn letters_go_on_when_their_sender_is_taken_back() {
    let mut cluster = Cluster::acquainted(HERO, BANK);
    cluster.disable(1, BANK);
    cluster.mail(HERO, BANK, 2);
    cluster.run(20);
    cluster.let_leave(HERO, 1);
    let lost = cluster.lose(1);
    cluster.shard(0).reclaim(lost);
    cluster.run_until("the hero", |cluster| cluster.find(HERO) == Some(0));
    cluster.begin_anew(1, 99);
    cluster.spawn(1, BANK, ());
    cluster.update();
    cluster.mail(HERO, BANK, 3);
    cluster.run_until("the letter", |cluster| cluster.ledger(BANK).letters == [3]);
    cluster.run_until("rest", Cluster::is_at_rest);
}

/// A receipt waits for a zone that is only down, although a journal was given up once.
#[test]
fn a_receipt_waits_for_a_zone_that_is_down() {
    let mut cluster = Cluster::three(None);
    let lost = cluster.lose(2);
    cluster.spawn(0, HERO, ());
    cluster.spawn(1, BANK, ());
    cluster.update();
    for nth in [0, 1] {
        cluster.shard(nth).reclaim(lost);
    }
    cluster.update();
    cluster.disable(1, BANK);
    cluster.mail(HERO, BANK, 1);
    cluster.run(20);
    // The zone of the bank forgets where the hero is, which is down for more than 30 seconds.
    cluster.lose_power(1, 0);
    cluster.start(1);
    cluster.stop(0);
    let bank = cluster.entity(1, BANK);
    cluster.world(1).entity_mut(bank).remove::<Disabled>();
    cluster.run(4000);
    cluster.start(0);
    cluster.mail(HERO, BANK, 2);
    cluster.run_until("the letters", |cluster| {
        cluster.ledger(BANK).letters == [1, 2]
    });
}

/// Nobody knows any more that a lost zone had the letter: the sender has forgotten where the recipient was.
#[test]
fn letters_go_on_when_one_was_lost_behind_its_first_zone() {
    let mut cluster = Cluster::three(None);
    cluster.spawn(0, HERO, ());
    cluster.spawn(1, BANK, ());
    cluster.update();
    cluster.acquaint(HERO, BANK);
    cluster.move_to(BANK, 2);
    cluster.disable(2, BANK);
    cluster.mail(HERO, BANK, 2);
    cluster.run(20);
    cluster.lose_power(0, 0);
    cluster.start(0);
    let lost = cluster.lose(2);
    for nth in [0, 1] {
        cluster.shard(nth).reclaim(lost);
    }
    cluster.update();
    goes_on(&mut cluster);
}

/// Its next zone gives the journal up, which had its letter, before the sender arrives.
#[test]
fn letters_go_on_when_their_sender_arrives_after_a_reclaim() {
    let mut cluster = Cluster::three(None);
    cluster.spawn(0, HERO, ());
    cluster.spawn(2, BANK, ());
    cluster.update();
    cluster.acquaint(HERO, BANK);
    cluster.disable(2, BANK);
    cluster.mail(HERO, BANK, 2);
    cluster.run(20);
    cluster.let_leave(HERO, 1);
    let lost = cluster.lose(2);
    // The zone reads what has come after it has given the journal up.
    cluster.shard(1).reclaim(lost);
    cluster.let_arrive(HERO, 1);
    goes_on(&mut cluster);
}

/// Zones of which the first one has a letter that only the lost third one had. The first one gives that up while the
/// second is down.
#[test]
fn letters_go_on_when_their_sender_moves_to_a_zone_that_was_down() {
    let mut cluster = Cluster::three(None);
    cluster.spawn(0, HERO, ());
    cluster.spawn(2, BANK, ());
    cluster.update();
    cluster.disable(2, BANK);
    cluster.mail(HERO, BANK, 2);
    cluster.run(20);
    cluster.stop(1);
    let lost = cluster.lose(2);
    cluster.shard(0).reclaim(lost);
    cluster.update_one(0);
    cluster.start(1);
    cluster.move_to(HERO, 1);
    goes_on(&mut cluster);
}

/// For more than a minute after the sender has given a journal up.
#[test]
fn a_letter_that_a_zone_still_has_is_not_given_up() {
    keep_a_letter(false);
}

#[test]
fn a_letter_that_a_zone_which_is_down_still_has_is_not_given_up() {
    keep_a_letter(true);
}

fn keep_a_letter(is_down: bool) {
    let mut cluster = Cluster::new(4);
    cluster.spawn(0, HERO, ());
    cluster.spawn(1, BANK, ());
    cluster.spawn(3, LORD, ());
    cluster.update();
    cluster.acquaint(HERO, BANK);
    cluster.acquaint(HERO, LORD);
    cluster.move_to(BANK, 2);
    cluster.run_until("rest", Cluster::is_at_rest);
    cluster.stop(2);
    cluster.mail(HERO, BANK, 2);
    cluster.run(20);
    if is_down {
        cluster.stop(1);
    }
    let lost = cluster.lose(3);
    cluster.shard(0).reclaim(lost);
    cluster.run(5000);
    if !is_down {
        cluster.stop(1);
    }
    cluster.start(2);
    cluster.mail(HERO, BANK, 3);
    cluster.run(200);
    assert_eq!(cluster.ledger(BANK).letters, [1]);
    cluster.start(1);
    cluster.run_until("the letters", |cluster| {
        cluster.ledger(BANK).letters == [1, 2, 3]
    });
}

/// Sends a letter to an entity whose zone was lost with an earlier letter, and begins anew.
#[track_caller]
fn goes_on(cluster: &mut Cluster) {
    cluster.begin_anew(2, 99);
    cluster.spawn(2, BANK, ());
    cluster.update();
    cluster.mail(HERO, BANK, 3);
    cluster.run_until("the letter", |cluster| cluster.ledger(BANK).letters == [3]);
    cluster.run_until("rest", Cluster::is_at_rest);
}

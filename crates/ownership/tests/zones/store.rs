//! Zones with a store of owners.

use core::time::Duration;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    thread,
};

use bevy_due::{OwnedBy, worlds::StableKey};
use bevy_due_ownership::{
    DurableEntityCommandsExt, JournalId, Owner, OwnerStore, Shard, SimulatedDisk, Unreachable,
    ZoneId,
};
use bevy_ecs::error::{BevyError, FallbackErrorHandler};

use crate::{
    cluster::{Cluster, Failures, zone},
    random::Random,
};

/// A store in memory, which loses every fifth question or answer.
#[derive(Clone)]
pub(crate) struct MemoryStore(Arc<Mutex<Content>>);

struct Content {
    owners: HashMap<StableKey, Owner>,
    random: Random,
    is_down: bool,
    /// Only changes to an owner of this birth are answered.
    only: Option<u64>,
}

impl MemoryStore {
    pub(crate) fn new(seed: u64) -> Self {
        let content = Content {
            owners: HashMap::new(),
            random: Random(seed),
            is_down: false,
            only: None,
        };
        Self(Arc::new(Mutex::new(content)))
    }

    pub(crate) fn set_down(&self, is_down: bool) {
        self.0.lock().unwrap().is_down = is_down;
    }

    fn answer_only(&self, birth: Option<u64>) {
        self.0.lock().unwrap().only = birth;
    }

    pub(crate) fn owner_of(&self, key: StableKey) -> Owner {
        self.0.lock().unwrap().owners[&key]
    }

    /// Gives an entity to another zone.
    pub(crate) fn give(&self, key: StableKey, zone: ZoneId, epoch: u64) {
        let owner = Owner {
            zone,
            epoch,
            ..self.owner_of(key)
        };
        self.0.lock().unwrap().owners.insert(key, owner);
    }
}

impl Content {
    fn lose(&mut self) -> Result<(), Unreachable> {
        match self.random.below(10) {
            _ if self.is_down => Err(Unreachable("down".into())),
            0 => Err(Unreachable("lost".into())),
            _ => Ok(()),
        }
    }

    fn change(
        &mut self,
        key: StableKey,
        from: Option<Owner>,
        to: Owner,
    ) -> Result<Option<Owner>, Unreachable> {
        self.lose()?;
        if self.only.is_some_and(|birth| to.birth != Some(birth)) {
            return Err(Unreachable("slow".into()));
        }
        if self.owners.get(&key).copied() == from {
            self.owners.insert(key, to);
        }
        self.lose()?;
        Ok(self.owners.get(&key).copied())
    }
}

impl OwnerStore for MemoryStore {
    fn change(
        &mut self,
        key: StableKey,
        from: Option<Owner>,
        to: Owner,
    ) -> Result<Option<Owner>, Unreachable> {
        self.0.lock().unwrap().change(key, from, to)
    }
}

const HERO: StableKey = StableKey(7);

/// A zone of another process.
const ELSEWHERE: ZoneId = ZoneId {
    journal: JournalId(5),
    zone: StableKey(9999),
};

/// Zones of which the first one owns the hero, as the store knows.
pub(crate) fn with_hero(zones: u64, store: &MemoryStore) -> Cluster {
    let mut cluster = Cluster::with_store(zones, Some(store.clone()));
    cluster.spawn(0, HERO, ());
    cluster.run_until("the claim", |_| {
        store.0.lock().unwrap().owners.contains_key(&HERO)
    });
    cluster
}

/// Moves the hero. The frames of a test take less time than a question, so a move may fail.
fn move_hero(cluster: &mut Cluster, from: usize, to: usize) {
    cluster.send_to(HERO, to as u64);
    let mut failures = cluster.world(from).resource::<Failures>().moves.len();
    cluster.run_until("the move", |cluster| {
        let failed = cluster.world(from).resource::<Failures>().moves.len();
        if failed > failures && cluster.find(HERO) == Some(from) {
            failures = failed;
            cluster.send_to(HERO, to as u64);
        }
        cluster.find(HERO) == Some(to)
    });
}

#[test]
fn an_owner_that_has_lost_an_entity_drops_it_when_it_moves() {
    let store = MemoryStore::new(1);
    let mut cluster = with_hero(2, &store);
    // With the number 2, it would be a move that this zone has asked for.
    store.give(HERO, ELSEWHERE, 3);
    cluster.send_to(HERO, 1);
    cluster.run_until("the loss", |cluster| cluster.find(HERO).is_none());
    cluster.run(20);
    assert_eq!(cluster.find(HERO), None);
    assert!(cluster.is_at_rest(), "it is not on its way either");
}

#[test]
fn an_owner_that_has_lost_an_entity_drops_it_when_it_starts() {
    let store = MemoryStore::new(2);
    let mut cluster = with_hero(1, &store);
    cluster.stop(0);
    store.give(HERO, ELSEWHERE, 5);
    cluster.start(0);
    cluster.run_until("the loss", |cluster| cluster.find(HERO).is_none());
    cluster.update();
    cluster.stop(0);
    cluster.start(0);
    assert_eq!(cluster.find(HERO), None, "the loss is durable");
}

#[test]
fn a_journal_that_others_have_given_up_keeps_what_it_owns() {
    let store = MemoryStore::new(3);
    let mut cluster = Cluster::with_store(3, Some(store.clone()));
    cluster.spawn(0, HERO, ());
    cluster.update();
    move_hero(&mut cluster, 0, 1);
    move_hero(&mut cluster, 1, 2);
    cluster.run_until("rest", Cluster::is_at_rest);
    let lost = cluster.shard(1).journal_id();
    cluster.shard(0).reclaim(lost);
    cluster.run(100);
    assert_eq!(cluster.find(HERO), Some(2));
}

#[test]
fn a_store_that_cannot_be_reached_is_reported() {
    static ERRORS: Mutex<Vec<String>> = Mutex::new(Vec::new());
    // It loses every fifth question or answer.
    let mut cluster = Cluster::with_store(1, Some(MemoryStore::new(4)));
    let note = |error: BevyError, _| ERRORS.lock().unwrap().push(error.to_string());
    cluster.world(0).insert_resource(FallbackErrorHandler(note));
    for key in 0..30 {
        cluster.spawn(0, StableKey(key), ());
    }
    let text = "the store of owners can't be reached: lost";
    cluster.run_until("an error", |_| {
        let errors = ERRORS.lock().unwrap();
        errors.iter().any(|error| error.contains(text))
    });
}

/// A move fails while the store is silent. Its late answer moves nothing, and a later move succeeds.
#[test]
fn a_move_fails_while_the_store_is_silent() {
    let store = MemoryStore::new(5);
    let mut cluster = with_hero(2, &store);
    store.set_down(true);
    for nth in 1..=3 {
        cluster.send_to(HERO, 1);
        cluster.run_until("the failure", |cluster| {
            cluster.world(0).resource::<Failures>().moves.len() == nth
        });
    }
    let reason = cluster.world(0).resource::<Failures>().moves[0].1.clone();
    assert!(
        reason.contains("store of owners has not answered"),
        "{reason}"
    );
    store.set_down(false);
    cluster.run_until("the late answer", |_| store.owner_of(HERO).epoch == 3);
    assert_eq!(
        cluster.find(HERO),
        Some(0),
        "it stays, and the store knows it"
    );
    move_hero(&mut cluster, 0, 1);
}

/// Lets the hero leave the first zone for the second one, which takes nothing.
fn leave_for_nowhere(cluster: &mut Cluster) {
    for nth in 0.. {
        if nth % 100 == 0 {
            // It must answer once.
            cluster.update();
            cluster.send_to(HERO, 1);
        }
        cluster.update_one(0);
        if cluster.find(HERO).is_none() {
            return;
        }
        std::thread::sleep(core::time::Duration::from_millis(1));
    }
}

/// The store has agreed to a move, and the process has ended before the hero could leave.
fn decided(store: &MemoryStore, cluster: &Cluster) {
    let zone = ZoneId {
        journal: cluster.shard(1).journal_id(),
        zone: cluster.nodes[1].key,
    };
    store.give(HERO, zone, 2);
}

#[test]
fn an_entity_that_was_to_leave_and_that_this_build_cannot_load_is_not_lost() {
    let store = MemoryStore::new(6);
    let mut cluster = with_hero(2, &store);
    cluster.stop(0);
    decided(&store, &cluster);
    cluster.nodes[0].knows_ledgers = false;
    cluster.start(0);
    cluster.wait_for_answers();
    cluster.stop(0);
    cluster.nodes[0].knows_ledgers = true;
    cluster.start(0);
    cluster.wait_for_answers();
    assert!(cluster.find(HERO).is_some());
}

#[test]
fn the_last_letters_of_an_entity_that_was_to_leave_are_not_lost() {
    const BANK: StableKey = StableKey(8);
    let store = MemoryStore::new(7);
    let mut cluster = with_hero(2, &store);
    cluster.spawn(1, BANK, ());
    cluster.wait_for_answers();
    cluster.acquaint(HERO, BANK);
    decided(&store, &cluster);
    cluster.stop(1);
    for gold in 2..4 {
        cluster.mail(HERO, BANK, gold);
        cluster.update();
    }
    cluster.despawn(0, HERO);
    cluster.update();
    cluster.stop(0);
    cluster.start(0);
    cluster.wait_for_answers();
    cluster.start(1);
    cluster.wait_for_answers();
    assert_eq!(cluster.ledger(BANK).letters, [1, 2, 3]);
}

#[test]
fn a_key_can_be_used_again_while_the_store_names_an_earlier_entity() {
    let store = MemoryStore::new(9);
    let mut cluster = with_hero(2, &store);
    move_hero(&mut cluster, 0, 1);
    cluster.run_until("rest", Cluster::is_at_rest);
    cluster.despawn(1, HERO);
    cluster.update();
    let before = store.owner_of(HERO);
    cluster.spawn(0, HERO, ());
    cluster.wait_for_answers();
    assert_eq!(cluster.find(HERO), Some(0), "it goes nowhere by itself");
    assert_eq!(store.owner_of(HERO).zone.zone, cluster.nodes[0].key);
    assert_ne!(store.owner_of(HERO).birth, before.birth);
    cluster.stop(0);
    cluster.start(0);
    cluster.wait_for_answers();
    move_hero(&mut cluster, 0, 1);
}

#[test]
fn an_entity_does_not_leave_for_a_journal_that_is_being_given_up() {
    let store = MemoryStore::new(10);
    let mut cluster = with_hero(2, &store);
    move_hero(&mut cluster, 0, 1);
    move_hero(&mut cluster, 1, 0);
    cluster.run_until("rest", Cluster::is_at_rest);
    let other = StableKey(8);
    cluster.spawn(0, other, ());
    cluster.wait_for_answers();
    // The zone takes nothing any more. One entity is on its way there, and one has asked the store.
    let lost = cluster.shard(1).journal_id();
    leave_for_nowhere(&mut cluster);
    store.set_down(true);
    cluster.send_to(other, 1);
    cluster.update_one(0);
    cluster.lose_power(1, 0);
    cluster.shard(0).reclaim(lost);
    cluster.run(10);
    assert_eq!(cluster.find(HERO), None, "the store decides");
    assert_eq!(cluster.find(other), Some(0));
    store.set_down(false);
    cluster.wait_for_answers();
    assert_eq!(cluster.find(HERO), Some(0));
    assert_eq!(cluster.find(other), Some(0));
    for key in [HERO, other] {
        assert_eq!(
            store.owner_of(key).zone.journal,
            cluster.shard(0).journal_id()
        );
    }
    cluster.run_until("rest", Cluster::is_at_rest);
}

#[test]
fn an_entity_that_the_store_does_not_know_can_be_reclaimed() {
    let store = MemoryStore::new(11);
    let mut cluster = with_hero(2, &store);
    move_hero(&mut cluster, 0, 1);
    move_hero(&mut cluster, 1, 0);
    cluster.run_until("rest", Cluster::is_at_rest);
    leave_for_nowhere(&mut cluster);
    // The store was lost, too.
    store.0.lock().unwrap().owners.clear();
    let lost = cluster.lose(1);
    cluster.shard(0).reclaim(lost);
    cluster.wait_for_answers();
    assert_eq!(cluster.find(HERO), Some(0));
    assert_eq!(store.owner_of(HERO).zone.zone, cluster.nodes[0].key);
}

#[test]
fn an_entity_that_was_to_leave_for_another_journal_stays() {
    let store = MemoryStore::new(12);
    let mut cluster = with_hero(2, &store);
    cluster.stop(0);
    decided(&store, &cluster);
    cluster.lose_power(1, 0);
    cluster.begin_anew(1, 99);
    store.set_down(true);
    cluster.start(0);
    cluster.spawn(1, StableKey(8), ());
    cluster.update();
    cluster.mail(StableKey(8), HERO, 1);
    cluster.run_until("a letter from the new journal", |cluster| {
        !cluster.ledger(HERO).letters.is_empty()
    });
    store.set_down(false);
    cluster.wait_for_answers();
    assert_eq!(cluster.find(HERO), Some(0));
    assert_eq!(store.owner_of(HERO).zone.zone, cluster.nodes[0].key);
}

#[test]
fn of_two_entities_with_one_key_the_first_keeps_it_until_it_despawns() {
    static ERRORS: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let store = MemoryStore::new(13);
    let mut cluster = with_hero(2, &store);
    let note = |error: BevyError, _| ERRORS.lock().unwrap().push(error.to_string());
    cluster.world(1).insert_resource(FallbackErrorHandler(note));
    let first = store.owner_of(HERO);
    cluster.spawn(1, HERO, ());
    cluster.wait_for_answers();
    cluster.run(300);
    assert_eq!(store.owner_of(HERO), first);
    for nth in [0, 1] {
        cluster.entity(nth, HERO);
    }
    let errors = ERRORS.lock().unwrap().clone();
    let text =
        "the store of owners has another entity with the stable key 7: despawn one of the two";
    assert!(
        errors.iter().any(|error| error.contains(text)),
        "{errors:?}"
    );
    cluster.despawn(0, HERO);
    cluster.wait_for_answers();
    assert_eq!(store.owner_of(HERO).zone.zone, cluster.nodes[1].key);
    move_hero(&mut cluster, 1, 0);
}

#[test]
fn a_key_is_free_although_the_zone_crashed_before_the_store_heard_so() {
    let store = MemoryStore::new(14);
    let mut cluster = with_hero(2, &store);
    cluster.wait_for_answers();
    store.set_down(true);
    cluster.despawn(0, HERO);
    cluster.update();
    cluster.lose_power(0, 0);
    store.set_down(false);
    assert!(store.owner_of(HERO).birth.is_some());
    cluster.start(0);
    cluster.wait_for_answers();
    assert_eq!(store.owner_of(HERO).birth, None);
    cluster.stop(0);
    let shard = Shard::open_simulated(cluster.nodes[0].disk.after_kill()).unwrap();
    assert_eq!(shard.unopened().0, [], "nothing is left of the hero");
}

#[test]
fn a_key_is_not_free_before_the_end_of_its_entity_is_durable() {
    let store = MemoryStore::new(15);
    let mut cluster = with_hero(2, &store);
    cluster.wait_for_answers();
    cluster.nodes[0].disk.crash_after(0);
    cluster.despawn(0, HERO);
    cluster.update_worlds();
    std::thread::sleep(core::time::Duration::from_millis(200));
    cluster.lose_power(0, 0);
    assert!(store.owner_of(HERO).birth.is_some());
    cluster.start(0);
    assert_eq!(cluster.find(HERO), Some(0));
}

#[test]
fn a_key_that_a_lost_journal_owned_is_free() {
    let store = MemoryStore::new(21);
    let mut cluster = with_hero(2, &store);
    move_hero(&mut cluster, 0, 1);
    cluster.run_until("rest", Cluster::is_at_rest);
    let lost = cluster.lose(1);
    cluster.shard(0).reclaim(lost);
    cluster.update();
    cluster.spawn(0, HERO, ());
    cluster.wait_for_answers();
    assert_eq!(store.owner_of(HERO).zone.zone, cluster.nodes[0].key);
}

#[test]
fn the_store_does_not_hear_of_an_entity_before_it_is_durable() {
    let store = MemoryStore::new(22);
    let mut cluster = Cluster::with_store(2, Some(store.clone()));
    cluster.nodes[0].disk.crash_after(0);
    cluster.spawn(0, HERO, ());
    cluster.update_worlds();
    std::thread::sleep(core::time::Duration::from_millis(200));
    cluster.lose_power(0, 0);
    assert!(store.0.lock().unwrap().owners.is_empty());
    cluster.spawn(1, HERO, ());
    cluster.wait_for_answers();
    assert_eq!(store.owner_of(HERO).zone.zone, cluster.nodes[1].key);
}

#[test]
fn the_key_of_an_entity_that_came_back_is_free_when_it_has_despawned() {
    let store = MemoryStore::new(23);
    let mut cluster = with_hero(2, &store);
    cluster.wait_for_answers();
    // The second zone can't load the hero.
    cluster.stop(1);
    cluster.nodes[1].knows_ledgers = false;
    cluster.start(1);
    let mut failures = 0;
    cluster.run_until("the refusal", |cluster| {
        let failed = &cluster.world(0).resource::<Failures>().moves;
        let is_back = failed.iter().any(|(_, reason)| reason.contains("ledger"));
        if failed.len() >= failures && cluster.find(HERO) == Some(0) && !is_back {
            failures = failed_moves(cluster) + 1;
            cluster.send_to(HERO, 1);
        }
        is_back
    });
    cluster.despawn(0, HERO);
    cluster.wait_for_answers();
    assert_eq!(store.owner_of(HERO).birth, None);
}

fn failed_moves(cluster: &mut Cluster) -> usize {
    cluster.world(0).resource::<Failures>().moves.len()
}

/// The same with a store, which answers a frame later.
#[test]
fn what_was_acknowledged_in_the_frame_of_a_reclaim_is_not_sent_again_with_a_store() {
    let store = MemoryStore::new(21);
    let mut cluster = Cluster::three(Some(store));
    cluster.spawn(0, HERO, ());
    cluster.wait_for_answers();
    for nth in 0.. {
        if nth % 150 == 0 && cluster.has(0, HERO) {
            cluster.update();
            cluster.send_to(HERO, 1);
        }
        if !cluster.has(0, HERO) {
            break;
        }
        cluster.update_one(0);
        std::thread::sleep(core::time::Duration::from_millis(1));
    }
    cluster.let_arrive(HERO, 1);
    let lost = cluster.shard(1).journal_id();
    for nth in 0.. {
        if nth % 150 == 0 && cluster.has(1, HERO) {
            cluster.update_one(2);
            cluster.update_one(1);
            cluster.send_to(HERO, 2);
        }
        if !cluster.has(1, HERO) {
            break;
        }
        cluster.update_one(1);
        cluster.update_one(2);
        std::thread::sleep(core::time::Duration::from_millis(1));
    }
    cluster.let_arrive(HERO, 2);
    cluster.lose_power(1, 0);
    cluster.shard(2).reclaim(lost);
    cluster.update_one(2);
    cluster.wait_for_answers();
    assert_eq!(cluster.find(HERO), Some(2));
    cluster.lose_power(0, 0);
    cluster.start(0);
    cluster.begin_anew(1, 99);
    cluster.wait_for_answers();
    assert_eq!(cluster.find(HERO), Some(2));
}

/// A shard is lost that had asked the store to pass an entity on, before it had stored that it has it.
#[test]
fn an_entity_that_a_lost_shard_only_wanted_to_pass_on_is_taken_back() {
    let store = MemoryStore::new(25);
    let mut cluster = Cluster::three(Some(store.clone()));
    cluster.spawn(0, HERO, ());
    cluster.wait_for_answers();
    for from in 0..2 {
        for to in 0..3 {
            cluster.mail(StableKey(100 + from), StableKey(100 + to), 1);
        }
    }
    cluster.run_until("the letters", |cluster| {
        cluster.is_at_rest() && cluster.ledger(StableKey(102)).gold == 5
    });
    cluster.send_to(HERO, 1);
    for _ in 0..100 {
        cluster.update_one(0);
        pause();
    }
    assert!(!cluster.has(0, HERO));
    cluster.nodes[1]
        .disk
        .set_sync_time(core::time::Duration::from_secs(3));
    cluster.app(1).update();
    assert!(cluster.has(1, HERO));
    cluster.send_to(HERO, 2);
    cluster.app(1).update();
    for _ in 0..60 {
        pause();
    }
    assert_eq!(store.owner_of(HERO).epoch, 2, "the arrival is not durable");
    let lost = cluster.lose(1);
    for nth in [0, 2] {
        cluster.shard(nth).reclaim(lost);
    }
    cluster.wait_for_answers();
    assert!(
        cluster.find(HERO).is_some(),
        "no disk has it: {:?}",
        store.owner_of(HERO)
    );
}

/// Moves, crashes and lost shards, with a store: what no lost disk had is in one zone.
#[test]
fn lost_shards_lose_what_they_had_and_double_nothing_with_a_store() {
    let count = std::env::var("SEEDS").ok().and_then(|it| it.parse().ok());
    for seed in 0..count.unwrap_or(1) {
        let store = MemoryStore::new(seed);
        let mut random = Random(seed * 15_485_863 + 5);
        let mut cluster = Cluster::three(Some(store.clone()));
        let keys = 1..=8;
        for key in keys.clone() {
            cluster.spawn((key % 3) as usize, StableKey(key), ());
        }
        cluster.wait_for_answers();
        let mut may_be_lost = std::collections::BTreeSet::new();
        let mut disks = 1000 + seed * 100;
        for _ in 0..400 {
            let key = StableKey(1 + random.below(8));
            let nth = random.below(3) as usize;
            if cluster.has(nth, key) {
                let entity = cluster.entity(nth, key);
                let to = zone(random.below(3));
                cluster.world(nth).commands().entity(entity).move_to(to);
            }
            let some = random.below(3) as usize;
            match random.below(40) {
                0 => {
                    let seed = random.next();
                    cluster.lose_power(some, seed);
                    cluster.start(some);
                }
                1 => {
                    let lost = cluster.shard(some).journal_id();
                    let seed = random.next();
                    cluster.lose_power(some, seed);
                    let disk = cluster.nodes[some].disk.clone();
                    let shard = Shard::open_simulated(disk).unwrap();
                    let (keys, items) = shard.unopened();
                    may_be_lost.extend(keys);
                    if items > 0 {
                        // Those that were on their way from there.
                        for key in 1..=8 {
                            let key = StableKey(key);
                            if (0..3).all(|nth| nth == some || !cluster.has(nth, key))
                                && store.owner_of(key).zone.journal != lost
                            {
                                may_be_lost.insert(key);
                            }
                        }
                    }
                    drop(shard);
                    for other in (0..3).filter(|&it| it != some) {
                        cluster.shard(other).reclaim(lost);
                    }
                    disks += 1;
                    cluster.nodes[some].disk = SimulatedDisk::new(disks);
                    cluster.start(some);
                }
                2 => store.set_down(true),
                3 | 4 => store.set_down(false),
                _ => {}
            }
            for nth in 0..3 {
                if random.below(3) > 0 {
                    cluster.app(nth).update();
                }
            }
            if random.below(2) > 0 {
                cluster.wait();
                std::thread::sleep(core::time::Duration::from_millis(random.below(4)));
            }
        }
        store.set_down(false);
        for nth in 0..3 {
            let seed = random.next();
            cluster.wait();
            cluster.lose_power(nth, seed);
            cluster.start(nth);
        }
        for _ in 0..6 {
            cluster.wait_for_answers();
        }
        let lost: Vec<_> = keys
            .map(StableKey)
            .filter(|&key| cluster.find(key).is_none())
            .filter(|key| !may_be_lost.contains(key))
            .collect();
        assert!(
            lost.is_empty(),
            "seed {seed}: {lost:?} are lost, {may_be_lost:?} may be"
        );
    }
}

/// Lets the thread of the store run.
pub(crate) fn pause() {
    std::thread::sleep(core::time::Duration::from_millis(5));
}

#[test]
fn an_entity_that_the_lost_shard_had_claimed_again_is_taken_back() {
    let store = MemoryStore::new(26);
    let mut cluster = with_hero(2, &store);
    let zone = ZoneId {
        journal: cluster.shard(1).journal_id(),
        zone: cluster.nodes[1].key,
    };
    leave_for_nowhere(&mut cluster);
    // It arrived there, and could not move on. The acknowledgement was lost.
    store.give(HERO, zone, 4);
    let lost = cluster.lose(1);
    cluster.shard(0).reclaim(lost);
    cluster.wait_for_answers();
    assert_eq!(cluster.find(HERO), Some(0));
}

#[test]
fn the_end_of_an_old_copy_does_not_free_the_key_of_its_original() {
    let store = MemoryStore::new(27);
    let mut cluster = with_hero(1, &store);
    cluster.stop(0);
    store.give(HERO, ELSEWHERE, 5);
    let original = store.owner_of(HERO);
    store.set_down(true);
    cluster.start(0);
    cluster.despawn(0, HERO);
    cluster.update();
    store.set_down(false);
    cluster.wait_for_answers();
    assert_eq!(store.owner_of(HERO), original);
}

#[test]
fn an_entity_that_belonged_to_another_one_when_the_store_agreed_to_its_move_is_not_lost() {
    let store = MemoryStore::new(28);
    let mut cluster = with_hero(2, &store);
    let lord = cluster.spawn(0, StableKey(9), ());
    cluster.wait_for_answers();
    store.set_down(true);
    let hero = cluster.entity(0, HERO);
    cluster.world(0).entity_mut(hero).insert(OwnedBy(lord));
    cluster.update();
    cluster.world(0).entity_mut(hero).remove::<OwnedBy>();
    cluster.update();
    // The store has heard of the move, and of nothing since.
    decided(&store, &cluster);
    cluster.lose_power(0, 0);
    store.set_down(false);
    cluster.start(0);
    cluster.wait_for_answers();
    assert!(cluster.find(HERO).is_some());
}

/// The game changes its mind while the store is asked.
#[test]
fn a_later_move_replaces_an_earlier_one_that_waits_for_the_store() {
    let store = MemoryStore::new(1);
    let mut cluster = Cluster::three(Some(store.clone()));
    cluster.spawn(0, HERO, ());
    cluster.wait_for_answers();
    store.set_down(true);
    cluster.send_to(HERO, 1);
    cluster.run(20);
    cluster.send_to(HERO, 2);
    cluster.run(20);
    store.set_down(false);
    cluster.run_until("the move", |cluster| cluster.find(HERO) == Some(2));
    cluster.wait_for_answers();
    assert_eq!(cluster.find(HERO), Some(2));
    assert_eq!(store.owner_of(HERO).zone.zone, zone(2));
}

/// Runs frames for less than two seconds, and lets the store answer meanwhile.
fn run_and_wait(cluster: &mut Cluster, frames: u32) {
    for _ in 0..frames {
        cluster.update();
        thread::sleep(Duration::from_millis(10));
    }
}

/// What the store says of an entity that has despawned is no answer for the next one with its key.
#[test]
fn an_answer_for_an_earlier_entity_lets_no_other_one_leave() {
    let store = MemoryStore::new(1);
    let mut cluster = Cluster::three(Some(store.clone()));
    cluster.spawn(0, HERO, ());
    cluster.wait_for_answers();
    let birth = store.owner_of(HERO).birth;
    store.set_down(true);
    cluster.send_to(HERO, 1);
    cluster.run(20);
    cluster.despawn(0, HERO);
    cluster.spawn(0, HERO, ());
    cluster.run(2);
    cluster.send_to(HERO, 1);
    cluster.run(2);
    store.answer_only(birth);
    store.set_down(false);
    run_and_wait(&mut cluster, 60);
    assert_eq!(
        cluster.find(HERO),
        Some(0),
        "the store was not asked for it"
    );
    store.answer_only(None);
    cluster.wait_for_answers();
    let found = store.owner_of(HERO).birth;
    assert!(found.is_some() && found != birth);
}

/// The store agrees to a move that has failed, while the zone of the next move is dead.
#[test]
fn a_late_answer_sends_no_entity_to_a_dead_zone() {
    let store = MemoryStore::new(1);
    let mut cluster = with_hero(2, &store);
    store.set_down(true);
    cluster.send_to(HERO, 1);
    cluster.run_until("the failure", |cluster| failed_moves(cluster) == 1);
    cluster.stop(1);
    cluster.run(130);
    cluster.send_to(HERO, 1);
    cluster.run(5);
    store.set_down(false);
    run_and_wait(&mut cluster, 150);
    assert_eq!(cluster.find(HERO), Some(0));
    assert_eq!(failed_moves(&mut cluster), 2);
}

/// The entity gets another key while the agreement to its move is on the way.
#[test]
fn an_agreement_for_one_key_lets_no_other_key_leave() {
    const OTHER: StableKey = StableKey(70);
    let store = MemoryStore::new(1);
    let mut cluster = with_hero(2, &store);
    cluster.send_to(HERO, 1);
    while store.owner_of(HERO).epoch == 1 {
        cluster.update();
        thread::sleep(Duration::from_millis(20));
    }
    // The answer may be lost a few times.
    thread::sleep(Duration::from_millis(500));
    assert_eq!(cluster.find(HERO), Some(0), "it has yet to read the answer");
    let hero = cluster.entity(0, HERO);
    cluster.world(0).entity_mut(hero).insert(OTHER);
    cluster.update();
    assert!(cluster.has(0, OTHER), "the store was not asked for it");
    cluster.wait_for_answers();
    let home = cluster.find(OTHER).unwrap() as u64;
    assert_eq!(store.owner_of(OTHER).zone.zone, zone(home));
}

//! Sequences that try to break the promises of zones.

use bevy_app::prelude::*;
use bevy_due::{
    Clock, ClockId, DuePlugin, OnClock, OwnedBy, PausedBy, Timer,
    clock::SpeedModifier,
    timer::Pauses,
    worlds::{StableKey, WorldGroups},
};
use bevy_due_ownership::{DurableEntityCommandsExt, Shard, SimulatedDisk, Zone};
use bevy_ecs::{
    entity_disabling::Disabled, error::FallbackErrorHandler, prelude::*, relationship::Relationship,
};
use bevy_time::{TimePlugin, TimeUpdateStrategy};

use crate::{
    cluster::{Cluster, FRAME, Failures, Ledger, zone},
    random::Random,
    store::MemoryStore,
};

const HERO: StableKey = StableKey(7);
const BANK: StableKey = StableKey(8);
const LORD: StableKey = StableKey(9);

fn wait_for_answers(cluster: &mut Cluster) {
    for _ in 0..500 {
        cluster.update();
        std::thread::sleep(core::time::Duration::from_millis(1));
    }
}

fn has(cluster: &mut Cluster, nth: usize, key: StableKey) -> bool {
    cluster.world(nth).resource::<Zone>().entity(key).is_some()
}

/// Three zones of which each has spoken with each.
fn three(store: Option<MemoryStore>) -> Cluster {
    let mut cluster = Cluster::with_store(3, store);
    for nth in 0..3 {
        cluster.spawn(nth, StableKey(100 + nth as u64), ());
    }
    for _ in 0..3 {
        cluster.update();
    }
    for from in 0..3 {
        for to in 0..3 {
            cluster.mail(StableKey(100 + from), StableKey(100 + to), 1);
        }
    }
    cluster.run_until("the letters", |cluster| {
        (0..3).all(|nth| cluster.ledger(StableKey(100 + nth)).gold == 3)
    });
    cluster.run_until("rest", Cluster::is_at_rest);
    cluster
}

/// The receipt of a letter whose sender is lost with its shard has nobody to go to.
#[test]
fn a_receipt_for_a_lost_sender_ends() {
    let mut cluster = Cluster::acquainted(HERO, BANK);
    cluster.mail(HERO, BANK, 2);
    cluster.update_one(0);
    cluster.update_one(1);
    assert_eq!(cluster.ledger(BANK).letters, [1, 2]);
    let lost = cluster.shard(0).journal_id();
    cluster.lose_power(0, 0);
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
    let mut cluster = three(None);
    cluster.spawn(0, HERO, ());
    cluster.update();
    cluster.send_to(HERO, 1);
    while has(&mut cluster, 0, HERO) {
        cluster.update_one(0);
    }
    cluster.update_one(1);
    assert!(has(&mut cluster, 1, HERO));
    // It goes on to the third zone. The first one has yet to read the acknowledgement.
    cluster.send_to(HERO, 2);
    while has(&mut cluster, 1, HERO) {
        cluster.update_one(1);
    }
    while !has(&mut cluster, 2, HERO) {
        cluster.update_one(2);
    }
    let lost = cluster.shard(1).journal_id();
    cluster.lose_power(1, 0);
    cluster.shard(2).reclaim(lost);
    cluster.update_one(2);
    for _ in 0..50 {
        cluster.update();
    }
    assert_eq!(cluster.find(HERO), Some(2));
    assert!(cluster.is_at_rest(), "the move was acknowledged");
    cluster.lose_power(0, 0);
    cluster.start(0);
    cluster.nodes[1].disk = SimulatedDisk::new(99);
    cluster.start(1);
    for _ in 0..300 {
        cluster.update();
    }
    assert_eq!(cluster.find(HERO), Some(2));
    cluster.run_until("rest", Cluster::is_at_rest);
}

/// The same with a store, which answers a frame later.
#[test]
fn what_was_acknowledged_in_the_frame_of_a_reclaim_is_not_sent_again_with_a_store() {
    let store = MemoryStore::new(21);
    let mut cluster = three(Some(store));
    cluster.spawn(0, HERO, ());
    wait_for_answers(&mut cluster);
    for nth in 0.. {
        if nth % 150 == 0 && has(&mut cluster, 0, HERO) {
            cluster.update();
            cluster.send_to(HERO, 1);
        }
        if !has(&mut cluster, 0, HERO) {
            break;
        }
        cluster.update_one(0);
        std::thread::sleep(core::time::Duration::from_millis(1));
    }
    while !has(&mut cluster, 1, HERO) {
        cluster.update_one(1);
    }
    let lost = cluster.shard(1).journal_id();
    for nth in 0.. {
        if nth % 150 == 0 && has(&mut cluster, 1, HERO) {
            cluster.update_one(2);
            cluster.update_one(1);
            cluster.send_to(HERO, 2);
        }
        if !has(&mut cluster, 1, HERO) {
            break;
        }
        cluster.update_one(1);
        cluster.update_one(2);
        std::thread::sleep(core::time::Duration::from_millis(1));
    }
    while !has(&mut cluster, 2, HERO) {
        cluster.update_one(2);
    }
    cluster.lose_power(1, 0);
    cluster.shard(2).reclaim(lost);
    cluster.update_one(2);
    wait_for_answers(&mut cluster);
    assert_eq!(cluster.find(HERO), Some(2));
    cluster.lose_power(0, 0);
    cluster.start(0);
    cluster.nodes[1].disk = SimulatedDisk::new(99);
    cluster.start(1);
    wait_for_answers(&mut cluster);
    assert_eq!(cluster.find(HERO), Some(2));
}

/// A letter that counts as delivered comes again.
#[test]
fn a_letter_that_was_acknowledged_in_the_frame_of_a_reclaim_is_not_sent_again() {
    let mut cluster = three(None);
    cluster.spawn(0, HERO, ());
    cluster.spawn(2, BANK, ());
    cluster.spawn(1, LORD, ());
    cluster.update();
    // The first zone believes the bank in the second one.
    cluster.send_to(BANK, 1);
    cluster.run_until("the bank", |cluster| cluster.find(BANK) == Some(1));
    cluster.mail(HERO, BANK, 1);
    cluster.run_until("the letter", |cluster| {
        cluster.is_at_rest() && cluster.ledger(BANK).gold == 1
    });
    cluster.mail(HERO, BANK, 2);
    cluster.update_one(0);
    cluster.update_one(1);
    assert_eq!(cluster.ledger(BANK).letters, [1, 2]);
    // The bank takes the letter along to the third zone.
    cluster.send_to(BANK, 2);
    cluster.update_one(1);
    cluster.update_one(2);
    assert!(has(&mut cluster, 2, BANK));
    let lost = cluster.shard(1).journal_id();
    cluster.lose_power(1, 0);
    cluster.shard(2).reclaim(lost);
    cluster.update_one(2);
    for _ in 0..50 {
        cluster.update();
    }
    cluster.lose_power(0, 0);
    cluster.start(0);
    cluster.nodes[1].disk = SimulatedDisk::new(99);
    cluster.start(1);
    for _ in 0..300 {
        cluster.update();
    }
    assert_eq!(cluster.ledger(BANK).letters, [1, 2]);
}

/// The same player at the next login, in a shard that was restored once.
#[test]
fn a_key_can_be_used_again_in_a_restored_shard_with_a_store() {
    let store = MemoryStore::new(22);
    let mut cluster = Cluster::with_store(1, Some(store));
    cluster.spawn(0, HERO, ());
    wait_for_answers(&mut cluster);
    cluster.lose_power(0, 0);
    Shard::restore_simulated(cluster.nodes[0].disk.clone()).unwrap();
    cluster.start(0);
    wait_for_answers(&mut cluster);
    assert_eq!(cluster.find(HERO), Some(0));
    let hero = cluster.entity(0, HERO);
    cluster.world(0).despawn(hero);
    wait_for_answers(&mut cluster);
    cluster.spawn(0, HERO, ());
    wait_for_answers(&mut cluster);
    assert_eq!(cluster.find(HERO), Some(0), "it has logged in again");
}

/// A pet that is owned for a while, and free again, in a shard that was restored once.
#[test]
fn an_entity_that_is_freed_in_a_restored_shard_with_a_store_stays() {
    let store = MemoryStore::new(23);
    let mut cluster = Cluster::with_store(1, Some(store));
    cluster.spawn(0, HERO, ());
    cluster.spawn(0, LORD, ());
    wait_for_answers(&mut cluster);
    cluster.lose_power(0, 0);
    Shard::restore_simulated(cluster.nodes[0].disk.clone()).unwrap();
    cluster.start(0);
    wait_for_answers(&mut cluster);
    let (hero, lord) = (cluster.entity(0, HERO), cluster.entity(0, LORD));
    cluster.world(0).entity_mut(hero).insert(OwnedBy(lord));
    wait_for_answers(&mut cluster);
    cluster.world(0).entity_mut(hero).remove::<OwnedBy>();
    wait_for_answers(&mut cluster);
    assert_eq!(cluster.find(HERO), Some(0), "it is free");
}

/// Letters stay in order although their sender belongs to another entity for a while.
#[test]
fn letters_of_an_entity_that_was_owned_for_a_while_stay_in_order() {
    let mut cluster = Cluster::acquainted(HERO, BANK);
    let lord = cluster.spawn(0, LORD, ());
    cluster.update();
    let hero = cluster.entity(0, HERO);
    cluster.stop(1);
    for gold in 2..5 {
        cluster.mail(HERO, BANK, gold);
        cluster.update();
    }
    cluster.world(0).entity_mut(hero).insert(OwnedBy(lord));
    cluster.update();
    cluster.world(0).entity_mut(hero).remove::<OwnedBy>();
    cluster.update();
    cluster.mail(HERO, BANK, 5);
    cluster.update();
    cluster.start(1);
    cluster.run_until("rest", Cluster::is_at_rest);
    assert_eq!(cluster.ledger(BANK).letters, [1, 2, 3, 4, 5]);
}

/// Gold in a letter to nobody comes back, although its sender belonged to another entity for a while.
#[test]
fn a_letter_comes_back_to_an_entity_that_was_owned_for_a_while() {
    let mut cluster = Cluster::new(1);
    let lord = cluster.spawn(0, LORD, ());
    let hero = cluster.spawn(0, HERO, ());
    cluster.update();
    cluster.mail(HERO, StableKey(4242), 5);
    cluster.update();
    cluster.world(0).entity_mut(hero).insert(OwnedBy(lord));
    cluster.update();
    cluster.world(0).entity_mut(hero).remove::<OwnedBy>();
    for _ in 0..2500 {
        cluster.app(0).update();
    }
    cluster.update();
    assert!(cluster.is_at_rest());
    assert_eq!(cluster.world(0).resource::<Failures>().mail.len(), 1);
}

/// The copy of an entity that has another owner elsewhere by now, as a part of another entity.
#[test]
fn a_copy_of_an_entity_that_is_owned_elsewhere_by_now_is_dropped() {
    let mut cluster = three(None);
    cluster.spawn(0, HERO, ());
    let lord = cluster.spawn(1, LORD, ());
    cluster.update();
    let copy = cluster.nodes[0].disk.after_kill();
    cluster.send_to(HERO, 1);
    cluster.run_until("the move", |cluster| cluster.find(HERO) == Some(1));
    cluster.run_until("rest", Cluster::is_at_rest);
    let hero = cluster.entity(1, HERO);
    cluster.world(1).entity_mut(hero).insert(OwnedBy(lord));
    cluster.update();
    cluster.lose_power(0, 0);
    let lost = Shard::restore_simulated(copy.clone()).unwrap();
    for nth in [1, 2] {
        cluster.shard(nth).reclaim(lost);
        cluster.update_one(nth);
    }
    cluster.nodes[0].disk = copy;
    cluster.start(0);
    for _ in 0..100 {
        cluster.update();
    }
    assert!(cluster.world(1).get_entity(hero).is_ok());
    assert_eq!(cluster.find(HERO), None, "it is a part of the lord");
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
            .add_plugins(shard.zone(zone(nth)).component::<Ledger>("ledger"))
            .insert_resource(TimeUpdateStrategy::ManualDuration(FRAME))
            .insert_resource(FallbackErrorHandler(|error, context| {
                eprintln!("{context}: {error}");
            }));
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

/// A move back that was taken proves that the move there was taken.
#[test]
fn an_entity_that_has_come_back_is_not_taken_back() {
    let mut cluster = three(None);
    cluster.spawn(0, HERO, ());
    cluster.update();
    cluster.send_to(HERO, 1);
    while has(&mut cluster, 0, HERO) {
        cluster.update_one(0);
    }
    cluster.lose_power(0, 0);
    // The disk of the second zone is slow, so what it says comes to the next session of the first.
    cluster.nodes[1]
        .disk
        .set_sync_time(core::time::Duration::from_millis(600));
    cluster.app(1).update();
    assert!(has(&mut cluster, 1, HERO));
    cluster.send_to(HERO, 0);
    cluster.app(1).update();
    assert!(!has(&mut cluster, 1, HERO));
    cluster.start(0);
    cluster.wait();
    cluster.nodes[1]
        .disk
        .set_sync_time(core::time::Duration::ZERO);
    cluster.update_one(0);
    cluster.wait();
    assert!(has(&mut cluster, 0, HERO), "it is back");
    let lost = cluster.shard(1).journal_id();
    cluster.lose_power(1, 0);
    for _ in 0..100 {
        cluster.update_one(0);
        cluster.update_one(2);
    }
    cluster.send_to(HERO, 2);
    cluster.run_until("the move", |cluster| cluster.find(HERO) == Some(2));
    cluster.shard(0).reclaim(lost);
    for _ in 0..50 {
        cluster.update();
    }
    assert_eq!(cluster.find(HERO), Some(2));
}

/// Returns each effect: its number, the key of its owner, the keys of what it pauses and of what it speeds up.
type Effect = (u64, Option<u64>, Option<u64>, Option<u64>, bool);

fn effects(world: &mut World) -> Vec<Effect> {
    let mut found = world.query::<(
        &Ledger,
        Option<&OwnedBy>,
        Option<&Pauses>,
        Option<&SpeedModifier>,
        Option<&OnClock>,
    )>();
    let key = |entity: Entity| world.get::<StableKey>(entity).map(|key| key.0);
    let mut all: Vec<_> = found
        .iter(world)
        .filter(|(ledger, ..)| ledger.gold > 0)
        .map(|(ledger, owner, pauses, speeds, clock)| {
            (
                ledger.gold,
                owner.and_then(|it| key(it.0)),
                pauses.and_then(|it| key(it.0)),
                speeds.and_then(|it| key(it.get())),
                clock.is_some(),
            )
        })
        .collect();
    all.sort_unstable();
    all
}

/// Effects change their owners and targets, and entities come and go. A crash shows what was there before.
#[test]
fn effects_are_after_a_crash_as_before() {
    for seed in 0..8 {
        let mut random = Random(seed * 7919 + 1);
        let mut cluster = Cluster::new(1);
        for key in 1..=4 {
            cluster.spawn(0, StableKey(key), (Clock::new(), Timer::after(600.0)));
        }
        for _ in 0..3 {
            cluster.update();
        }
        let mut number = 0;
        let mut log = Vec::new();
        for step in 0..120 {
            let (first, second) = (1 + random.below(4), 1 + random.below(4));
            let [one, other] = [first, second].map(|key| {
                let zone = cluster.world(0).resource::<Zone>();
                zone.entity(StableKey(key))
            });
            let (Some(one), Some(other)) = (one, other) else {
                cluster.update();
                continue;
            };
            let world = cluster.world(0);
            let all: Vec<Entity> = world
                .query::<(Entity, &Ledger)>()
                .iter(world)
                .filter(|(_, ledger)| ledger.gold > 0)
                .map(|(entity, _)| entity)
                .collect();
            let effect = match all.len() as u64 {
                0 => None,
                count => Some(all[random.below(count) as usize]),
            };
            let what = random.below(12);
            log.push((step, what, first, second, effect));
            let with_gold = |number: &mut u64| {
                *number += 1;
                Ledger {
                    gold: *number,
                    ..Ledger::default()
                }
            };
            match (what, effect) {
                (0, _) => {
                    let gold = with_gold(&mut number);
                    world.spawn((gold, Pauses(one)));
                }
                (1, _) => {
                    let gold = with_gold(&mut number);
                    world.spawn((gold, Pauses(one), SpeedModifier::new(other, 2.0)));
                }
                (2, _) => {
                    let gold = with_gold(&mut number);
                    world.spawn((gold, OwnedBy(one), SpeedModifier::new(other, 2.0)));
                }
                (3, Some(effect)) => {
                    world.entity_mut(effect).insert(OwnedBy(one));
                }
                // Without anything to hold it, it is not durable.
                (4, Some(effect))
                    if world.get::<Pauses>(effect).is_some()
                        || world.get::<SpeedModifier>(effect).is_some() =>
                {
                    world.entity_mut(effect).remove::<OwnedBy>();
                }
                (5, Some(effect)) => {
                    world.entity_mut(effect).insert(Pauses(one));
                }
                (6, Some(effect)) => {
                    world
                        .entity_mut(effect)
                        .insert(SpeedModifier::new(one, 3.0));
                }
                (7, Some(effect)) => {
                    world.despawn(effect);
                }
                (8, Some(effect)) => {
                    world
                        .entity_mut(effect)
                        .insert((Timer::after(600.0), OnClock(ClockId::Own(one))));
                }
                (9, _) if random.below(3) == 0 => {
                    world.despawn(one);
                    cluster.spawn(0, StableKey(first), (Clock::new(), Timer::after(600.0)));
                }
                _ => {}
            }
            if random.below(3) > 0 {
                cluster.update();
            }
            if random.below(8) == 0 {
                cluster.update();
                cluster.update();
                let before = effects(cluster.world(0));
                // What leads to no durable entity is not stored.
                let before: Vec<_> = before
                    .into_iter()
                    .filter(|it| it.1.is_some() || it.2.is_some() || it.3.is_some())
                    .collect();
                cluster.lose_power(0, 0);
                cluster.start(0);
                let after = effects(cluster.world(0));
                assert_eq!(before, after, "seed {seed}, step {step}: {log:?}");
                for key in 1..=4 {
                    let Some(entity) = cluster.world(0).resource::<Zone>().entity(StableKey(key))
                    else {
                        panic!("seed {seed}: {key} is gone");
                    };
                    let world = cluster.world(0);
                    let paused = world
                        .get::<PausedBy>(entity)
                        .map_or(0, |it| it.iter().count());
                    let expected = after.iter().filter(|it| it.2 == Some(key)).count();
                    assert_eq!(paused, expected);
                }
            }
        }
    }
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
    for _ in 0..60 {
        cluster.update();
    }
    assert!(cluster.ledger(BANK).letters.is_empty(), "it waits");
    cluster.mail(HERO, BANK, 2);
    cluster.mail(LORD, BANK, 7);
    for _ in 0..60 {
        cluster.update();
    }
    // The bank moves, and its old zone stops before it can pass the letter on.
    cluster.send_to(BANK, 1);
    while has(&mut cluster, 2, BANK) {
        cluster.update_one(1);
        cluster.update_one(2);
    }
    cluster.stop(2);
    cluster.update_one(1);
    assert!(has(&mut cluster, 1, BANK));
    for _ in 0..20 {
        cluster.update();
    }
    cluster.lose_power(0, 0);
    cluster.start(0);
    let lost = cluster.shard(3).journal_id();
    cluster.lose_power(3, 0);
    if reclaims {
        cluster.shard(0).reclaim(lost);
    }
    for _ in 0..100 {
        cluster.update();
    }
    cluster.start(2);
    cluster.run_until("rest", Cluster::is_at_rest);
    let letters = cluster.ledger(BANK).letters;
    let of_hero: Vec<_> = letters.into_iter().filter(|&it| it < 7).collect();
    assert_eq!(of_hero, [1, 2]);
}

/// Effects in two zones, between which their owners and targets move.
#[test]
fn effects_are_after_a_crash_as_before_when_entities_move() {
    for seed in 0..8 {
        let mut random = Random(seed * 104_729 + 3);
        let mut cluster = Cluster::new(2);
        for key in 1..=4 {
            cluster.spawn(0, StableKey(key), (Clock::new(), Timer::after(600.0)));
        }
        cluster.spawn(1, StableKey(50), ());
        cluster.update();
        cluster.mail(StableKey(1), StableKey(50), 0);
        cluster.mail(StableKey(50), StableKey(1), 0);
        for _ in 0..10 {
            cluster.update();
        }
        let mut number = 0;
        let mut log = Vec::new();
        for step in 0..100 {
            let nth = random.below(2) as usize;
            let (first, second) = (1 + random.below(4), 1 + random.below(4));
            let [one, other] = [first, second].map(|key| {
                let zone = cluster.world(nth).resource::<Zone>();
                zone.entity(StableKey(key))
            });
            if let (Some(one), Some(other)) = (one, other) {
                let world = cluster.world(nth);
                let all: Vec<Entity> = world
                    .query::<(Entity, &Ledger)>()
                    .iter(world)
                    .filter(|(entity, ledger)| {
                        ledger.gold > 0 && world.get::<StableKey>(*entity).is_none()
                    })
                    .map(|(entity, _)| entity)
                    .collect();
                let effect = match all.len() as u64 {
                    0 => None,
                    count => Some(all[random.below(count) as usize]),
                };
                let what = random.below(10);
                log.push((step, nth, what, first, second, effect));
                number += 1;
                let gold = Ledger {
                    gold: number,
                    ..Ledger::default()
                };
                match (what, effect) {
                    (0, _) => _ = world.spawn((gold, Pauses(one))),
                    (1, _) => {
                        world.spawn((gold, Pauses(one), SpeedModifier::new(other, 2.0)));
                    }
                    (2, _) => {
                        world.spawn((gold, OwnedBy(one), SpeedModifier::new(other, 2.0)));
                    }
                    (3, Some(effect)) => _ = world.entity_mut(effect).insert(OwnedBy(one)),
                    (4, Some(effect)) if world.get::<Pauses>(effect).is_some() => {
                        world.entity_mut(effect).remove::<OwnedBy>();
                    }
                    (5, Some(effect)) => _ = world.entity_mut(effect).insert(Pauses(one)),
                    (6, Some(effect)) => _ = world.despawn(effect),
                    (7 | 8, _) => {
                        world.commands().entity(one).move_to(zone(1 - nth as u64));
                    }
                    _ => {}
                }
            }
            for _ in 0..random.below(4) {
                cluster.update();
            }
            if random.below(8) == 0 {
                for _ in 0..8 {
                    cluster.update();
                }
                let before = effects(cluster.world(nth));
                let before: Vec<_> = before
                    .into_iter()
                    .filter(|it| it.1.is_some() || it.2.is_some() || it.3.is_some())
                    .collect();
                cluster.lose_power(nth, 0);
                cluster.start(nth);
                let after = effects(cluster.world(nth));
                assert_eq!(before, after, "seed {seed}, step {step}: {log:?}");
                let all = [0, 1].map(|nth| effects(cluster.world(nth)));
                let mut numbers: Vec<_> = all.iter().flatten().map(|it| it.0).collect();
                let count = numbers.len();
                numbers.sort_unstable();
                numbers.dedup();
                assert_eq!(numbers.len(), count, "seed {seed}, step {step}: {all:?}");
            }
        }
    }
}

/// The disk of the zone that takes back is behind when the acknowledgement comes, so its journal has both.
#[test]
fn what_was_acknowledged_while_the_disk_was_behind_is_not_sent_again() {
    let mut cluster = three(None);
    cluster.spawn(0, HERO, ());
    cluster.update();
    cluster.send_to(HERO, 1);
    while has(&mut cluster, 0, HERO) {
        cluster.update_one(0);
    }
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
    while has(&mut cluster, 1, HERO) {
        update(&mut cluster, 1);
    }
    while !has(&mut cluster, 2, HERO) {
        update(&mut cluster, 2);
    }
    cluster.app(0).update();
    let lost = cluster.shard(1).journal_id();
    cluster.lose_power(1, 0);
    cluster.shard(0).reclaim(lost);
    cluster.app(0).update();
    cluster.nodes[0]
        .disk
        .set_sync_time(core::time::Duration::ZERO);
    for _ in 0..50 {
        cluster.update();
    }
    assert_eq!(cluster.find(HERO), Some(2));
    cluster.lose_power(0, 0);
    cluster.start(0);
    cluster.nodes[1].disk = SimulatedDisk::new(99);
    cluster.start(1);
    for _ in 0..300 {
        cluster.update();
    }
    assert_eq!(cluster.find(HERO), Some(2));
}

fn pause() {
    std::thread::sleep(core::time::Duration::from_millis(5));
}

/// A shard is lost that had asked the store to pass an entity on, before it had stored that it has it.
#[test]
fn an_entity_that_a_lost_shard_only_wanted_to_pass_on_is_taken_back() {
    let store = MemoryStore::new(25);
    let mut cluster = three(Some(store.clone()));
    cluster.spawn(0, HERO, ());
    wait_for_answers(&mut cluster);
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
    assert!(!has(&mut cluster, 0, HERO));
    cluster.nodes[1]
        .disk
        .set_sync_time(core::time::Duration::from_secs(3));
    cluster.app(1).update();
    assert!(has(&mut cluster, 1, HERO));
    cluster.send_to(HERO, 2);
    cluster.app(1).update();
    for _ in 0..60 {
        pause();
    }
    assert_eq!(store.owner_of(HERO).epoch, 2, "the arrival is not durable");
    let lost = cluster.shard(1).journal_id();
    cluster.lose_power(1, 0);
    for nth in [0, 2] {
        cluster.shard(nth).reclaim(lost);
    }
    wait_for_answers(&mut cluster);
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
        let mut cluster = three(Some(store.clone()));
        let keys = 1..=8;
        for key in keys.clone() {
            cluster.spawn((key % 3) as usize, StableKey(key), ());
        }
        wait_for_answers(&mut cluster);
        let mut may_be_lost = std::collections::BTreeSet::new();
        let mut disks = 1000 + seed * 100;
        for _ in 0..400 {
            let key = StableKey(1 + random.below(8));
            let nth = random.below(3) as usize;
            if has(&mut cluster, nth, key) {
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
                            if (0..3).all(|nth| nth == some || !has(&mut cluster, nth, key))
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
            wait_for_answers(&mut cluster);
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

/// A player who moves, logs out and in again in one frame, while the store comes and goes and zones crash.
fn log_out_and_in(seed: u64, store: Option<MemoryStore>) {
    let mut random = Random(seed * 32_452_843 + 11);
    let mut cluster = three(store.clone());
    cluster.spawn(2, BANK, ());
    cluster.spawn(0, HERO, ());
    wait_for_answers(&mut cluster);
    let (mut life, mut sent, mut received, mut heard) = (0_u64, 0_u64, 0_u64, Vec::<u8>::new());
    for _ in 0..400 {
        if let Some(nth) = cluster.find(HERO) {
            let hero = cluster.entity(nth, HERO);
            let what = random.below(12);
            if what < 4 {
                let to = random.below(3);
                cluster.send_to(HERO, to);
            }
            if what == 4 || what == 5 {
                let ledger = cluster.ledger(HERO);
                assert_eq!(
                    ledger.gold - sum(&ledger.letters),
                    life << 32,
                    "seed {seed}"
                );
                heard.extend(ledger.letters);
                cluster.world(nth).despawn(hero);
                life += 1;
                let new = cluster.spawn(nth, HERO, ());
                cluster.world(nth).get_mut::<Ledger>(new).unwrap().gold = life << 32;
                // Sometimes the next one is in the same frame.
                cluster.update_one(nth);
            }
            if what == 6 {
                received += 1;
                cluster.mail(HERO, BANK, 1);
                cluster.update();
            }
        }
        if random.below(3) == 0 && cluster.find(BANK).is_some() {
            cluster.mail(BANK, HERO, sent as u8);
            sent += 1;
            if random.below(6) == 0 {
                let to = random.below(3);
                cluster.send_to(BANK, to);
            }
        }
        for nth in 0..3 {
            if random.below(4) > 0 {
                cluster.update_one(nth);
            }
        }
        match random.below(30) {
            0 | 1 => {
                cluster.update();
                let nth = random.below(3) as usize;
                cluster.lose_power(nth, 0);
                cluster.start(nth);
            }
            2 => {
                if let Some(store) = &store {
                    store.set_down(true);
                }
            }
            3..6 => {
                if let Some(store) = &store {
                    store.set_down(false);
                }
            }
            _ => {}
        }
        if store.is_some() && random.below(3) == 0 {
            pause();
        }
    }
    if let Some(store) = &store {
        store.set_down(false);
    }
    for _ in 0..3 {
        wait_for_answers(&mut cluster);
    }
    cluster.run_until("rest", Cluster::is_at_rest);
    let ledger = cluster.ledger(HERO);
    assert_eq!(ledger.gold >> 32, life, "seed {seed}");
    heard.extend(ledger.letters);
    let expected: Vec<_> = (0..sent).map(|it| it as u8).collect();
    assert_eq!(heard, expected, "seed {seed}");
    assert_eq!(
        cluster.ledger(BANK).letters.len() as u64,
        received,
        "seed {seed}"
    );
}

fn sum(letters: &[u8]) -> u64 {
    letters.iter().map(|&it| u64::from(it)).sum()
}

#[test]
fn somebody_who_logs_out_and_in_is_there_once() {
    for seed in 0..2 {
        log_out_and_in(seed, None);
    }
}

#[test]
fn somebody_who_logs_out_and_in_is_there_once_with_a_store() {
    for seed in 0..2 {
        log_out_and_in(seed, Some(MemoryStore::new(seed)));
    }
}

/// A lost shard had passed a letter on, and the sender knows where the recipient is by now.
#[test]
fn letters_go_on_when_a_lost_shard_had_one_to_pass_on() {
    let mut cluster = three(None);
    cluster.spawn(0, HERO, ());
    cluster.spawn(1, BANK, ());
    cluster.update();
    cluster.mail(HERO, BANK, 1);
    cluster.run_until("the letter", |cluster| {
        cluster.is_at_rest() && cluster.ledger(BANK).gold == 1
    });
    cluster.send_to(BANK, 2);
    cluster.run_until("the move", |cluster| cluster.find(BANK) == Some(2));
    cluster.run_until("rest", Cluster::is_at_rest);
    cluster.stop(2);
    cluster.mail(HERO, BANK, 2);
    for _ in 0..5 {
        cluster.update_one(0);
        cluster.update_one(1);
    }
    let lost = cluster.shard(1).journal_id();
    cluster.lose_power(1, 0);
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
    let bank = cluster.entity(1, BANK);
    cluster.world(1).entity_mut(bank).insert(Disabled);
    cluster.mail(HERO, BANK, 2);
    for _ in 0..20 {
        cluster.update();
    }
    cluster.send_to(HERO, 1);
    while cluster.find(HERO).is_some() {
        cluster.update_one(0);
    }
    let lost = cluster.shard(1).journal_id();
    cluster.lose_power(1, 0);
    cluster.shard(0).reclaim(lost);
    cluster.run_until("the hero", |cluster| cluster.find(HERO) == Some(0));
    cluster.nodes[1].disk = SimulatedDisk::new(99);
    cluster.start(1);
    cluster.spawn(1, BANK, ());
    cluster.update();
    cluster.mail(HERO, BANK, 3);
    cluster.run_until("the letter", |cluster| cluster.ledger(BANK).letters == [3]);
    cluster.run_until("rest", Cluster::is_at_rest);
}

/// A receipt waits for a zone that is only down, although a journal was given up once.
#[test]
fn a_receipt_waits_for_a_zone_that_is_down() {
    let mut cluster = three(None);
    let lost = cluster.shard(2).journal_id();
    cluster.lose_power(2, 0);
    cluster.spawn(0, HERO, ());
    cluster.spawn(1, BANK, ());
    cluster.update();
    for nth in [0, 1] {
        cluster.shard(nth).reclaim(lost);
    }
    cluster.update();
    let bank = cluster.entity(1, BANK);
    cluster.world(1).entity_mut(bank).insert(Disabled);
    cluster.mail(HERO, BANK, 1);
    for _ in 0..20 {
        cluster.update();
    }
    // The zone of the bank forgets where the hero is, which is down for more than 30 seconds.
    cluster.lose_power(1, 0);
    cluster.start(1);
    cluster.stop(0);
    let bank = cluster.entity(1, BANK);
    cluster.world(1).entity_mut(bank).remove::<Disabled>();
    for _ in 0..4000 {
        cluster.update();
    }
    cluster.start(0);
    cluster.mail(HERO, BANK, 2);
    cluster.run_until("the letters", |cluster| {
        cluster.ledger(BANK).letters == [1, 2]
    });
}

//! Stable keys that are inserted again, replaced, swapped or used again.

use bevy_due::{Owned, OwnedBy, worlds::StableKey};
use bevy_ecs::{entity_disabling::Disabled, prelude::*};

use crate::{
    cluster::{Cluster, Failures, Ledger},
    random::Random,
    store::{MemoryStore, pause},
};

const HERO: StableKey = StableKey(7);
const BANK: StableKey = StableKey(8);
const LORD: StableKey = StableKey(9);

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

#[test]
fn all_letters_arrive_although_their_sender_logs_out_and_in() {
    const LETTERS: u8 = 3;
    let mut cluster = Cluster::new(3);
    cluster.spawn(2, BANK, ());
    let mut expected = Vec::new();
    for login in 0..60_u8 {
        let home = usize::from(login % 2);
        let hero = cluster.spawn(home, HERO, ());
        cluster.update();
        for nth in 0..LETTERS {
            let number = LETTERS * login + nth;
            cluster.mail(HERO, BANK, number);
            expected.push(number);
            cluster.update();
        }
        cluster.world(home).despawn(hero);
        // Sometimes the next login is in the same frame.
        if login % 3 > 0 {
            cluster.update();
        }
        if login == 30 {
            cluster.update();
            cluster.lose_power(0, 0);
            cluster.start(0);
        }
    }
    cluster.run_until("the letters", |cluster| {
        cluster.ledger(BANK).letters.len() >= expected.len() && cluster.is_at_rest()
    });
    let letters = cluster.ledger(BANK).letters;
    for login in 0..60 {
        let of_login = letters.iter().filter(|&number| number / LETTERS == login);
        let numbers = LETTERS * login..LETTERS * (login + 1);
        assert!(
            of_login.copied().eq(numbers),
            "of login {login}: {letters:?}"
        );
    }
    assert!(cluster.world(2).resource::<Failures>().mail.is_empty());
}

#[test]
fn letters_find_the_entity_that_has_the_key_now() {
    let mut cluster = Cluster::new(3);
    cluster.spawn(2, BANK, ());
    for login in 0..20_u8 {
        let home = usize::from(login % 2);
        let hero = cluster.spawn(home, HERO, ());
        cluster.update();
        // Its own letters may be on their way when it despawns.
        cluster.mail(HERO, BANK, login);
        cluster.mail(BANK, HERO, login);
        cluster.run_until("the letter", |cluster| {
            cluster.ledger(HERO).letters == [login]
        });
        cluster.world(home).despawn(hero);
        cluster.update();
    }
    assert!(cluster.world(2).resource::<Failures>().mail.is_empty());
}

#[test]
fn an_entity_moves_to_where_one_with_its_key_has_left_letters() {
    let mut cluster = Cluster::new(3);
    let hero = cluster.spawn(0, HERO, ());
    cluster.spawn(2, BANK, ());
    cluster.update();
    cluster.stop(2);
    cluster.mail(HERO, BANK, 1);
    cluster.update();
    cluster.world(0).despawn(hero);
    cluster.spawn(1, HERO, ());
    cluster.update();
    cluster.mail(HERO, BANK, 2);
    cluster.move_to(HERO, 0);
    cluster.start(2);
    cluster.run_until("the letters", |cluster| {
        cluster.ledger(BANK).letters.len() == 2 && cluster.is_at_rest()
    });
    assert_eq!(cluster.find(HERO), Some(0));
}

#[test]
fn an_entity_with_a_key_follows_whoever_owns_its_owner() {
    let mut cluster = Cluster::new(1);
    let player = cluster.spawn(0, HERO, ());
    let bag = cluster.world(0).spawn_empty().id();
    cluster.spawn(0, BANK, OwnedBy(bag));
    let count = |cluster: &mut Cluster| {
        let world = cluster.world(0);
        let mut keys = world.query::<&StableKey>();
        keys.iter(world).filter(|&&key| key == BANK).count()
    };
    cluster.update();
    assert_eq!(cluster.find(BANK), Some(0));
    cluster.world(0).entity_mut(bag).insert(OwnedBy(player));
    crash(&mut cluster);
    assert_eq!(cluster.find(BANK), None, "it belongs to the player");
    assert_eq!(count(&mut cluster), 1);
    let player = cluster.entity(0, HERO);
    let bag = cluster.world(0).get::<Owned>(player).unwrap();
    let bag = bag.iter().next().unwrap();
    cluster.world(0).entity_mut(bag).remove::<OwnedBy>();
    crash(&mut cluster);
    assert_eq!(cluster.find(BANK), Some(0));
    assert_eq!(count(&mut cluster), 1);
}

#[test]
fn no_letter_is_lost_on_somebody_who_logs_out_and_in() {
    let mut cluster = Cluster::new(3);
    cluster.spawn(2, BANK, ());
    cluster.update();
    let (mut sent, mut heard) = (0_u8, Vec::new());
    for login in 0..40 {
        let home = login % 2;
        let hero = cluster.spawn(home, HERO, ());
        for _ in 0..5 {
            cluster.mail(BANK, HERO, sent);
            sent += 1;
            cluster.update();
        }
        let ledger = cluster.world(home).get::<Ledger>(hero).unwrap();
        heard.extend(ledger.letters.clone());
        cluster.world(home).despawn(hero);
        cluster.update();
    }
    let hero = cluster.spawn(0, HERO, ());
    cluster.run_until("the letters", |cluster| {
        let ledger = cluster.world(0).get::<Ledger>(hero).unwrap();
        heard.len() + ledger.letters.len() >= usize::from(sent) && cluster.is_at_rest()
    });
    heard.extend(cluster.ledger(HERO).letters);
    assert!(heard.iter().copied().eq(0..sent), "{heard:?}");
    assert!(cluster.world(2).resource::<Failures>().mail.is_empty());
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

/// A player who moves, logs out and in again in one frame, while the store comes and goes and zones crash.
fn log_out_and_in(seed: u64, store: Option<MemoryStore>) {
    let mut random = Random(seed * 32_452_843 + 11);
    let mut cluster = Cluster::three(store.clone());
    cluster.spawn(2, BANK, ());
    cluster.spawn(0, HERO, ());
    cluster.wait_for_answers();
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
        cluster.wait_for_answers();
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

//! Letters between entities.

use core::time::Duration;
use std::sync::Mutex;

use bevy_app::prelude::*;
use bevy_due::{
    TimerFired,
    message::{MessageComponent, Packet},
    worlds::StableKey,
};
use bevy_due_ownership::{DurableEntityCommandsExt, MailReturned, Zone};
use bevy_ecs::{
    error::{BevyError, FallbackErrorHandler},
    message::Messages,
    prelude::*,
};
use bevy_time::TimeUpdateStrategy;

use crate::cluster::{Cluster, Failures, GOLD, Ledger};

const HERO: StableKey = StableKey(7);
const BANK: StableKey = StableKey(8);

fn two() -> Cluster {
    let mut cluster = Cluster::new(3);
    cluster.spawn(0, HERO, ());
    cluster.spawn(1, BANK, ());
    cluster.update();
    cluster
}

#[test]
fn letters_arrive_in_order() {
    let mut cluster = two();
    for gold in 1..=20 {
        cluster.mail(HERO, BANK, gold);
        if gold % 3 == 0 {
            cluster.update();
        }
    }
    cluster.run_until("the letters", |cluster| {
        cluster.ledger(BANK).letters.len() == 20
    });
    assert!(cluster.ledger(BANK).letters.into_iter().eq(1..=20));
    cluster.run_until("rest", Cluster::is_at_rest);
}

#[test]
fn letters_follow_an_entity_that_moves() {
    let mut cluster = two();
    for gold in 1..=60 {
        cluster.mail(HERO, BANK, gold);
        if gold % 10 == 0 && cluster.find(BANK).is_some() {
            cluster.send_to(BANK, u64::from(gold / 10 % 3));
        }
        if gold % 25 == 0 && cluster.find(HERO).is_some() {
            cluster.send_to(HERO, 2);
        }
        for _ in 0..3 {
            cluster.update();
        }
        cluster.run_until("the sender", |cluster| cluster.find(HERO).is_some());
    }
    cluster.run_until("rest", Cluster::is_at_rest);
    cluster.update();
    assert!(cluster.ledger(BANK).letters.into_iter().eq(1..=60));
}

#[test]
fn letters_wait_for_a_zone_that_is_down() {
    let mut cluster = two();
    cluster.mail(HERO, BANK, 1);
    cluster.run_until("the letter", |cluster| {
        cluster.ledger(BANK).letters.len() == 1
    });
    cluster.lose_power(1, 1);
    for gold in 2..=9 {
        cluster.mail(HERO, BANK, gold);
        cluster.update();
    }
    cluster.start(1);
    cluster.run_until("rest", |cluster| {
        cluster.is_at_rest() && cluster.ledger(BANK).letters.len() == 9
    });
    assert!(cluster.ledger(BANK).letters.into_iter().eq(1..=9));
}

#[test]
fn a_zone_knows_at_its_start_what_is_on_the_way() {
    #[derive(Resource)]
    struct AtStart(usize);

    let mut cluster = two();
    cluster.stop(1);
    cluster.mail(HERO, BANK, 1);
    cluster.update();
    cluster.lose_power(0, 0);
    cluster.game = |app| {
        let count = |zone: Res<Zone>, mut commands: Commands| {
            commands.insert_resource(AtStart(zone.on_the_way()));
        };
        app.add_systems(Startup, count);
    };
    cluster.start(0);
    assert!(cluster.world(0).resource::<AtStart>().0 > 0);
}

#[test]
fn letters_that_were_lost_come_again_while_others_follow() {
    let mut cluster = two();
    let senders: Vec<_> = (100..200).map(StableKey).collect();
    for &sender in &senders {
        cluster.spawn(0, sender, ());
    }
    cluster.mail(HERO, BANK, 1);
    cluster.run_until("the first letter", |cluster| {
        cluster.ledger(BANK).letters == [1]
    });
    cluster.lose_power(1, 1);
    cluster.mail(HERO, BANK, 2);
    cluster.update();
    cluster.start(1);
    for &sender in &senders {
        cluster.mail(sender, BANK, 3);
        cluster.update();
    }
    assert!(
        cluster.ledger(BANK).letters.len() > 50,
        "{:?} arrived within 1.6 seconds",
        cluster.ledger(BANK).letters
    );
}

#[test]
fn letters_to_nobody_come_back() {
    let mut cluster = two();
    cluster.mail(HERO, StableKey(99), 5);
    cluster.run_until("the letter", |cluster| {
        !cluster.world(0).resource::<Failures>().mail.is_empty()
    });
    let failures = cluster.world(0).resource::<Failures>();
    assert_eq!(failures.mail, [(StableKey(99), Packet::new(GOLD, [5]))]);
    cluster.update();
    assert!(cluster.is_at_rest());
}

#[test]
fn letters_wait_for_an_entity_that_comes_later() {
    const CHILD: StableKey = StableKey(9);
    let mut cluster = two();
    cluster.mail(HERO, CHILD, 5);
    for _ in 0..60 {
        cluster.update();
    }
    cluster.spawn(2, CHILD, ());
    for _ in 0..60 {
        cluster.update();
    }
    assert_eq!(cluster.ledger(CHILD).letters, [5]);
}

/// A zone that starts later has not heard the first question for its entities.
#[test]
fn letters_find_an_entity_whose_zone_starts_later() {
    let mut cluster = two();
    cluster.stop(1);
    cluster.mail(HERO, BANK, 1);
    for _ in 0..60 {
        cluster.update();
    }
    cluster.start(1);
    for _ in 0..60 {
        cluster.update();
    }
    assert_eq!(cluster.ledger(BANK).letters, [1]);
}

#[test]
fn letters_wait_for_somebody_who_takes_them() {
    let mut cluster = two();
    let bank = cluster.entity(1, BANK);
    let ears = cluster
        .world(1)
        .entity_mut(bank)
        .take::<MessageComponent>()
        .unwrap();
    cluster.mail(HERO, BANK, 5);
    for _ in 0..50 {
        cluster.update();
    }
    cluster.lose_power(1, 0);
    cluster.start(1);
    cluster.run_until("the letter", |cluster| cluster.ledger(BANK).letters == [5]);
    drop(ears);
}

#[test]
fn what_a_game_does_when_a_letter_comes_back_is_stored_with_it() {
    const FRIEND: StableKey = StableKey(9);
    let mut cluster = Cluster::new(1);
    cluster.spawn(0, HERO, ());
    let friend = cluster.spawn(0, FRIEND, ());
    let bank = cluster.spawn(0, BANK, ());
    cluster.app(0).add_observer(
        move |returned: On<MailReturned>,
              mut ledgers: Query<&mut Ledger>,
              mut commands: Commands| {
            ledgers.get_mut(friend).unwrap().gold += 1;
            let letter = returned.letter.clone();
            commands.entity(returned.entity).mail(FRIEND, letter);
        },
    );
    cluster.update();
    // A letter to nobody keeps the outbox of the bank, so that the zone knows that the bank has gone.
    cluster.mail(BANK, StableKey(99), 1);
    cluster.update();
    cluster.world(0).despawn(bank);
    cluster.update();
    cluster.mail(HERO, BANK, 5);
    cluster.run_until("the return", |cluster| {
        !cluster.world(0).resource::<Failures>().mail.is_empty()
    });
    cluster.lose_power(0, 0);
    cluster.start(0);
    for _ in 0..5 {
        cluster.update();
    }
    assert_eq!(cluster.ledger(FRIEND).gold, 6);
}

#[test]
fn a_letter_to_an_entity_without_callbacks_is_reported_and_waits() {
    static ERRORS: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut cluster = two();
    let note = |error: BevyError, _| ERRORS.lock().unwrap().push(error.to_string());
    cluster.world(1).insert_resource(FallbackErrorHandler(note));
    let bank = cluster.entity(1, BANK);
    let ears = cluster.world(1).entity_mut(bank).take::<MessageComponent>();
    cluster.mail(HERO, BANK, 5);
    cluster.run_until("the report", |_| {
        let errors = ERRORS.lock().unwrap();
        errors
            .iter()
            .any(|error| error.contains("stable key 8") && error.contains("`MessageComponent`"))
    });
    assert_eq!(ERRORS.lock().unwrap().len(), 1);
    cluster.world(1).entity_mut(bank).insert(ears.unwrap());
    cluster.run_until("the letter", |cluster| cluster.ledger(BANK).gold == 5);
}

#[test]
fn letters_wait_for_an_entity_that_is_on_its_way_for_long() {
    let mut cluster = Cluster::new(3);
    cluster.spawn(0, HERO, ());
    cluster.spawn(2, BANK, ());
    cluster.update();
    cluster.send_to(HERO, 1);
    loop {
        cluster.update_one(0);
        if cluster.find(HERO).is_none() {
            break;
        }
        cluster.update_one(1);
    }
    cluster.lose_power(1, 0);
    cluster.mail(BANK, HERO, 1);
    // More than the 30 seconds after which letters to nobody come back.
    for nth in [0, 2] {
        let long = TimeUpdateStrategy::ManualDuration(Duration::from_millis(500));
        cluster.world(nth).insert_resource(long);
    }
    for _ in 0..120 {
        cluster.update();
    }
    assert!(cluster.world(2).resource::<Failures>().mail.is_empty());
    cluster.start(1);
    cluster.run_until("the letter", |cluster| {
        cluster.find(HERO) == Some(1) && cluster.ledger(HERO).letters == [1]
    });
}

#[test]
fn zones_that_believe_an_entity_in_a_circle_find_it() {
    let mut cluster = Cluster::new(4);
    cluster.spawn(0, HERO, ());
    cluster.spawn(1, BANK, ());
    cluster.update();
    cluster.mail(HERO, BANK, 1);
    cluster.run_until("the first letter", |cluster| {
        cluster.ledger(BANK).letters == [1] && cluster.is_at_rest()
    });
    // So that each zone is near to the next one when it matters.
    for to in [2, 3, 1, 2, 3] {
        cluster.send_to(BANK, to);
        cluster.run_until("the move", |cluster| {
            cluster.find(BANK) == Some(to as usize) && cluster.is_at_rest()
        });
    }
    // Zone 1 forgets what it knows, and hears of the hero from zone 0, which still believes the bank there.
    cluster.mail(HERO, BANK, 2);
    cluster.update_one(0);
    cluster.update_one(1);
    // The bank leaves zone 3 before the letter is there.
    cluster.send_to(BANK, 1);
    cluster.update_one(3);
    cluster.update_one(2);
    cluster.stop(1);
    cluster.start(1);
    // The letter goes from 1 over 2 and 3 to 1, and the receipt never comes to 0.
    cluster.run_until("rest", |cluster| {
        cluster.is_at_rest() && cluster.find(BANK) == Some(1)
    });
    assert_eq!(cluster.ledger(BANK).letters, [1, 2]);
}

#[test]
fn a_letter_that_nobody_follows_comes_back() {
    let mut cluster = two();
    let hero = cluster.entity(0, HERO);
    let letter = Packet::new(99, []);
    let world = cluster.world(0);
    world.commands().entity(hero).mail(BANK, letter.clone());
    cluster.run_until("the letter", |cluster| {
        let returned = &cluster.world(0).resource::<Failures>().mail;
        *returned == [(BANK, letter.clone())]
    });
}

#[test]
fn a_zone_fires_no_timer_of_its_own() {
    let mut cluster = two();
    for _ in 0..200 {
        cluster.update();
        let fired = cluster.world(0).resource_mut::<Messages<TimerFired>>();
        assert!(fired.is_empty());
    }
}

#[test]
fn a_letter_that_finds_no_room_lets_no_other_letter_go() {
    let mut cluster = two();
    cluster.mail(HERO, BANK, 1);
    cluster.run_until("rest", |cluster| {
        cluster.ledger(BANK).letters.len() == 1 && cluster.is_at_rest()
    });
    cluster.stop(1);
    cluster.mail(HERO, BANK, 1);
    cluster.update();
    let before = cluster.world(0).resource::<Zone>().on_the_way();
    for _ in 0..1025 {
        cluster.mail(HERO, BANK, 2);
    }
    for _ in 0..3 {
        cluster.update();
    }
    assert_eq!(cluster.world(0).resource::<Failures>().mail.len(), 1);
    let after = cluster.world(0).resource::<Zone>().on_the_way();
    assert_eq!(before, after, "the batch before has not arrived");
}

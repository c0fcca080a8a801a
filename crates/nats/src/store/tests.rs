//! The store on a server of its own, through the calls that only the crate has.

use core::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use std::{sync::Barrier, thread};

use bevy_due::worlds::StableKey;
use bevy_due_link_testing::nats_server::NatsServer;
use bevy_due_ownership::{JournalId, Owner, OwnerStore, ZoneId};

use crate::{NatsOwners, NatsOwnersConfig, store::Entry};

fn store(server: &NatsServer) -> NatsOwners {
    let config = NatsOwnersConfig {
        servers: vec![server.address.clone()],
        patience: Duration::from_secs(20),
        ..NatsOwnersConfig::default()
    };
    NatsOwners::open(config).expect("it opens")
}

fn entry(value: &[u8], revision: u64) -> Option<Entry> {
    let value = value.to_vec();
    Some(Entry { value, revision })
}

#[test]
fn a_key_has_the_value_of_the_last_change() {
    let server = NatsServer::start(&["-js"]);
    let store = store(&server);
    let swap = |key, expected, value: &[u8]| store.compare_and_swap(key, expected, value);
    assert_eq!(store.get(7).expect("it answers"), None);
    let first = swap(7, None, b"a").expect("it answers").expect("it is new");
    assert_eq!(store.get(7).expect("it answers"), entry(b"a", first));
    let second = swap(7, Some(first), b"b").expect("it answers");
    let second = second.expect("the revision is right");
    assert!(second > first);
    assert_eq!(store.get(7).expect("it answers"), entry(b"b", second));
    assert_eq!(store.get(8).expect("it answers"), None, "another key");

    // A stale revision, no revision, and one of the future.
    for expected in [Some(first), None, Some(second + 1)] {
        let lost = swap(7, expected, b"c").expect("it answers");
        let lost = lost.expect_err("the revision is wrong");
        assert_eq!(lost.current, entry(b"b", second), "{expected:?}");
    }
    let lost = swap(9, Some(first), b"c").expect("it answers");
    assert_eq!(lost.expect_err("there is none").current, None);

    // A repeated call.
    assert_eq!(swap(7, Some(first), b"b").expect("it answers"), Ok(second));
}

#[test]
fn one_of_two_wins_each_of_a_thousand_races() {
    const ROUNDS: u64 = 1000;

    let server = NatsServer::start(&["-js"]);
    let barrier = Barrier::new(2);
    // Each has a connection of its own, and begins each round with the revision of the last one.
    let race = |me: &'static str| {
        let (store, barrier) = (store(&server), &barrier);
        move || {
            let mut expected = None;
            let mut won = Vec::new();
            for round in 0..ROUNDS {
                barrier.wait();
                let value = format!("{me} {round}");
                let swapped = store.compare_and_swap(1, expected, value.as_bytes());
                expected = Some(match swapped.expect("it answers") {
                    Ok(revision) => {
                        won.push((round, revision));
                        revision
                    }
                    Err(lost) => {
                        let current = lost.current.expect("the other one has won");
                        assert!(!current.value.starts_with(me.as_bytes()));
                        current.revision
                    }
                });
            }
            won
        }
    };
    let [a, b] = thread::scope(|scope| {
        let racers = [race("a"), race("b")].map(|race| scope.spawn(race));
        racers.map(|racer| racer.join().expect("no panic"))
    });
    println!("a has won {} of {ROUNDS} races", a.len());
    let mut won = [a, b].concat();
    won.sort();
    let rounds = won.iter().map(|(round, _)| *round);
    assert!(rounds.eq(0..ROUNDS), "exactly one has won each");
    assert!(won.is_sorted_by_key(|(_, revision)| revision));
}

#[test]
fn a_value_survives_the_death_of_the_server() {
    let mut server = NatsServer::start(&["-js"]);
    let store = store(&server);
    let mut revision = None;
    for round in 0..5 {
        let value = format!("{round}");
        let swapped = store.compare_and_swap(7, revision, value.as_bytes());
        revision = Some(swapped.expect("it answers").expect("nobody else writes"));
        server.kill();
        server.start_again();
        let read = store
            .get(7)
            .expect("it answers")
            .expect("it is still there");
        assert_eq!(read.value, value.as_bytes());
        assert_eq!(Some(read.revision), revision);
    }
}

#[test]
fn changes_go_on_while_the_server_dies_again_and_again() {
    let mut server = NatsServer::start(&["-js"]);
    let store = store(&server);
    let is_over = AtomicBool::new(false);
    let changes = thread::scope(|scope| {
        let write = || {
            let (mut number, mut revision) = (0_u64, None);
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                // Nobody else writes, so a change that was lost, or made twice, would show here.
                let swapped = store.compare_and_swap(7, revision, &number.to_le_bytes());
                revision = Some(swapped.expect("it answers").expect("nobody else writes"));
            }
            (number, revision)
        };
        let writer = scope.spawn(write);
        for _ in 0..4 {
            thread::sleep(Duration::from_millis(300));
            server.start_again();
        }
        thread::sleep(Duration::from_millis(300));
        is_over.store(true, Ordering::Relaxed);
        writer.join().expect("no panic")
    });
    let (number, revision) = changes;
    println!("{number} changes");
    assert!(number > 100, "{number}");
    let last = store.get(7).expect("it answers");
    assert_eq!(last, entry(&number.to_le_bytes(), revision.expect("some")));
}

#[test]
fn a_key_that_a_tool_deletes_has_no_value() {
    let server = NatsServer::start(&["-js"]);
    let store = store(&server);
    let first = store.compare_and_swap(7, None, b"a").expect("it answers");
    let first = first.expect("it is new");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("it starts").block_on(async {
        let client = async_nats::connect(&server.address)
            .await
            .expect("it connects");
        let mut headers = async_nats::HeaderMap::new();
        headers.insert("KV-Operation", "DEL");
        let context = async_nats::jetstream::new(client);
        let deleted = context
            .publish_with_headers("$KV.owners.7", headers, "".into())
            .await;
        deleted.expect("it is sent").await.expect("it is stored");
    });
    assert_eq!(store.get(7).expect("it answers"), None);
    let lost = store
        .compare_and_swap(7, Some(first), b"b")
        .expect("it answers");
    assert_eq!(lost.expect_err("it is stale").current, None);
    let second = store.compare_and_swap(7, None, b"b").expect("it answers");
    assert!(second.expect("it has no value") > first);
}

#[test]
fn a_value_that_is_no_owner_is_an_error() {
    let server = NatsServer::start(&["-js"]);
    let mut store = store(&server);
    let swapped = store.compare_and_swap(8, None, b"something else");
    swapped.expect("it answers").expect("it is new");
    let owner = Owner {
        zone: ZoneId {
            journal: JournalId(1),
            zone: StableKey(1),
        },
        epoch: 1,
        birth: None,
    };
    let error = store.change(StableKey(8), None, owner);
    let error = error.expect_err("it is no owner");
    assert!(error.0.contains("key 8"), "{error}");
}

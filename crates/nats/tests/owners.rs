//! The server decides who owns an entity.
#![cfg(feature = "ownership")]

use core::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use std::{
    sync::{Arc, Barrier, Mutex},
    thread,
};

use bevy_due::{
    prelude::*,
    worlds::{StableKey, WorldGroups},
};
use bevy_due_link_testing::nats_server::NatsServer;
use bevy_due_nats::{NatsOwners, NatsOwnersConfig};
use bevy_due_ownership::{
    Arrived, DurableEntityCommandsExt, JournalId, Owner, OwnerStore, Shard, Unreachable, ZoneId,
};
use bevy_ecs::prelude::*;

fn owners(server: &NatsServer) -> NatsOwners {
    let config = NatsOwnersConfig {
        servers: vec![server.address.clone()],
        ..NatsOwnersConfig::default()
    };
    NatsOwners::open(config).expect("it opens")
}

fn owner(zone: u64, epoch: u64) -> Owner {
    let zone = ZoneId {
        journal: JournalId(u128::from(zone) << 64),
        zone: StableKey(zone),
    };
    Owner {
        zone,
        epoch,
        birth: Some(5),
    }
}

const HERO: StableKey = StableKey(7);

#[test]
fn an_owner_changes_only_from_the_last_one() {
    let server = NatsServer::start(&["-js"]);
    let (mut here, mut there) = (owners(&server), owners(&server));
    assert_eq!(owner_of(&mut here), Ok(None));
    let first = Some(owner(1, 1));
    assert_eq!(here.change(HERO, None, owner(1, 1)), Ok(first));
    // It was made before.
    assert_eq!(here.change(HERO, None, owner(1, 1)), Ok(first));
    assert_eq!(there.change(HERO, None, owner(2, 1)), Ok(first));
    let second = Some(owner(2, 2));
    assert_eq!(here.change(HERO, first, owner(2, 2)), Ok(second));
    assert_eq!(owner_of(&mut there), Ok(second));
    assert_eq!(here.change(HERO, first, owner(3, 2)), Ok(second));
}

/// Returns the owner of the hero: a change from an owner that never was changes nothing.
fn owner_of(store: &mut NatsOwners) -> Result<Option<Owner>, Unreachable> {
    store.change(HERO, Some(owner(9, 9)), owner(9, 9))
}

#[test]
fn an_entity_moves_when_the_server_agrees() {
    let server = NatsServer::start(&["-js"]);
    let file = std::env::temp_dir().join(format!("due_owners_{}.redb", std::process::id()));
    Shard::create(&file).expect("it is new");
    let shard = Shard::open(&file).expect("it opens");
    let shard = shard.with_owners(owners(&server)).expect("it starts");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut groups = WorldGroups::new();
    for nth in [1, 2] {
        let (zone, seen) = (shard.zone(StableKey(nth)), seen.clone());
        let build = move |app: &mut bevy_app::App| {
            let seen = seen.clone();
            app.add_plugins((DuePlugin::default(), zone.clone()))
                .add_observer(move |_: On<Arrived>| seen.lock().expect("no panic").push(nth));
            if nth == 1 {
                app.add_systems(bevy_app::Startup, |mut commands: Commands| {
                    commands.spawn(HERO).move_to(StableKey(2));
                });
            }
        };
        groups.start("zones", 1, build).expect("it starts");
    }
    let mut judge = owners(&server);
    let zone = ZoneId {
        journal: shard.journal_id(),
        zone: StableKey(2),
    };
    for _ in 0..1000 {
        if *seen.lock().expect("no panic") == [2] {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(*seen.lock().expect("no panic"), [2]);
    let found = owner_of(&mut judge).expect("it answers");
    assert_eq!(
        found.map(|owner| (owner.zone, owner.epoch)),
        Some((zone, 2))
    );
    groups.stop();
    drop(shard);
    std::fs::remove_file(file).expect("it is there");
}

#[test]
fn owners_without_a_server_say_so() {
    let mut server = NatsServer::start(&["-js"]);
    let config = NatsOwnersConfig {
        servers: vec![server.address.clone()],
        patience: Duration::from_millis(100),
        ..NatsOwnersConfig::default()
    };
    let mut owners = NatsOwners::open(config.clone()).expect("it opens");
    server.kill();
    let error = owner_of(&mut owners).expect_err("there is no server");
    let start = "the server does not answer for key 7: ";
    assert!(error.0.starts_with(start), "{error}");
    assert!(owners.change(HERO, None, owner(1, 1)).is_err());
    let error = NatsOwners::open(config).expect_err("there is no server");
    let error = error.to_string();
    assert!(error.starts_with("can't connect to "), "{error}");
}

#[test]
fn owners_can_wait_for_the_server() {
    let mut server = NatsServer::start(&["-js"]);
    server.kill();
    let mut owners = NatsOwners::open(NatsOwnersConfig {
        servers: vec![server.address.clone()],
        waits_for_server: true,
        patience: Duration::from_millis(100),
        ..NatsOwnersConfig::default()
    })
    .expect("it needs no server");
    owner_of(&mut owners).expect_err("there is no server");
    server.start_again();
    let changed = (0..100).any(|_| owners.change(HERO, None, owner(1, 1)).is_ok());
    assert!(changed, "it finds the server");
    assert_eq!(owner_of(&mut owners), Ok(Some(owner(1, 1))));
}

#[test]
fn a_server_without_jetstream_is_an_error() {
    let server = NatsServer::start(&[]);
    let config = NatsOwnersConfig {
        servers: vec![server.address.clone()],
        ..NatsOwnersConfig::default()
    };
    let error = NatsOwners::open(config).expect_err("there is no JetStream");
    assert!(error.to_string().contains("jetstream"), "{error}");
}

#[test]
fn debug_contains_no_password() {
    let server = NatsServer::start(&["-js", "--user", "game", "--pass", "secret"]);
    let config = NatsOwnersConfig {
        servers: vec![format!("nats://game:secret@{}", server.address)],
        ..NatsOwnersConfig::default()
    };
    let printed = format!("{config:?}");
    let masked = format!("nats://game:***@{}", server.address);
    assert!(printed.contains(&masked), "{printed}");
    let owners = NatsOwners::open(config).expect("the user is right");
    let printed = format!("{printed} {owners:?}");
    assert!(!printed.contains("secret"), "{printed}");
}

/// Owners on a server that may take its time.
fn patient(server: &NatsServer) -> NatsOwners {
    let config = NatsOwnersConfig {
        servers: vec![server.address.clone()],
        patience: Duration::from_secs(20),
        ..NatsOwnersConfig::default()
    };
    NatsOwners::open(config).expect("it opens")
}

#[test]
fn one_of_two_wins_each_of_a_thousand_races() {
    const ROUNDS: u64 = 1000;

    let server = NatsServer::start(&["-js"]);
    let barrier = Barrier::new(2);
    // Each has a connection of its own, and begins each round with the owner of the last one.
    let race = |me: u64| {
        let (mut store, barrier) = (patient(&server), &barrier);
        move || {
            let (mut last, mut won) = (None, Vec::new());
            for round in 0..ROUNDS {
                barrier.wait();
                let mine = owner(me, round);
                let found = store.change(HERO, last, mine).expect("it answers");
                if found == Some(mine) {
                    won.push(round);
                }
                last = found;
            }
            won
        }
    };
    let [a, b] = thread::scope(|scope| {
        let racers = [race(1), race(2)].map(|race| scope.spawn(race));
        racers.map(|racer| racer.join().expect("no panic"))
    });
    println!("the first has won {} of {ROUNDS} races", a.len());
    let mut won = [a, b].concat();
    won.sort();
    assert!(won.into_iter().eq(0..ROUNDS), "exactly one has won each");
}

#[test]
fn an_owner_survives_the_death_of_the_server() {
    let mut server = NatsServer::start(&["-js"]);
    let mut store = patient(&server);
    let mut last = None;
    for epoch in 1..6 {
        let next = Some(owner(1, epoch));
        assert_eq!(store.change(HERO, last, owner(1, epoch)), Ok(next));
        server.kill();
        server.start_again();
        assert_eq!(owner_of(&mut store), Ok(next));
        last = next;
    }
}

#[test]
fn changes_go_on_while_the_server_dies_again_and_again() {
    let mut server = NatsServer::start(&["-js"]);
    let mut store = patient(&server);
    let is_over = AtomicBool::new(false);
    let last = thread::scope(|scope| {
        let write = || {
            let mut last = owner(1, 1);
            store.change(HERO, None, last).expect("it answers");
            while !is_over.load(Ordering::Relaxed) {
                // Nobody else writes, so a change that was lost, or made twice, would show here.
                let next = owner(1, last.epoch + 1);
                assert_eq!(store.change(HERO, Some(last), next), Ok(Some(next)));
                last = next;
            }
            last
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
    println!("{} changes", last.epoch);
    assert!(last.epoch > 100, "{}", last.epoch);
    assert_eq!(owner_of(&mut store), Ok(Some(last)));
}

/// Writes to the key of the hero, as a tool would.
fn write(server: &NatsServer, operation: Option<&'static str>, value: &'static str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("it starts").block_on(async {
        let client = async_nats::connect(&server.address).await;
        let context = async_nats::jetstream::new(client.expect("it connects"));
        let mut headers = async_nats::HeaderMap::new();
        if let Some(operation) = operation {
            headers.insert("KV-Operation", operation);
        }
        let key = "$KV.owners.7";
        let written = context.publish_with_headers(key, headers, value.into());
        let written = written.await.expect("it is sent");
        written.await.expect("it is stored");
    });
}

#[test]
fn a_key_that_a_tool_deletes_has_no_owner() {
    let server = NatsServer::start(&["-js"]);
    let mut store = owners(&server);
    let first = owner(1, 1);
    assert_eq!(store.change(HERO, None, first), Ok(Some(first)));
    write(&server, Some("DEL"), "");
    assert_eq!(store.change(HERO, Some(first), owner(1, 2)), Ok(None));
    assert_eq!(store.change(HERO, None, first), Ok(Some(first)));
}

#[test]
fn a_value_that_is_no_owner_is_an_error() {
    let server = NatsServer::start(&["-js"]);
    let mut store = owners(&server);
    write(&server, None, "something else");
    let error = store.change(HERO, None, owner(1, 1));
    let error = error.expect_err("it is no owner");
    assert!(error.0.contains("key 7"), "{error}");
}

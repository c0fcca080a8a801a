//! The server decides who owns an entity.
#![cfg(feature = "ownership")]

use core::time::Duration;
use std::{
    sync::{Arc, Mutex},
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

/// Returns the owner of the hero: who is none changes nothing.
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

//! The store as the judge of who owns an entity.
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
use bevy_due_nats::{NatsStore, NatsStoreConfig};
use bevy_due_ownership::{
    Arrived, ChangeError, DurableEntityCommandsExt, JournalId, Owner, OwnerStore, Shard, ZoneId,
};
use bevy_ecs::prelude::*;

fn store(server: &NatsServer) -> NatsStore {
    let config = NatsStoreConfig {
        servers: vec![server.address.clone()],
        ..NatsStoreConfig::default()
    };
    NatsStore::open(config).expect("it opens")
}

fn owner(zone: u64, epoch: u64) -> Owner {
    let zone = ZoneId {
        journal: JournalId(u128::from(zone) << 64),
        zone: StableKey(zone),
    };
    Owner { zone, epoch }
}

const HERO: StableKey = StableKey(7);

#[test]
fn an_owner_changes_only_from_the_last_one() {
    let server = NatsServer::start(&["-js"]);
    let (mut here, mut there) = (store(&server), store(&server));
    assert_eq!(here.owner(HERO), Ok(None));
    here.change(HERO, None, owner(1, 1)).expect("it is new");
    here.change(HERO, None, owner(1, 1))
        .expect("it was made before");
    let lost = ChangeError::Lost(Some(owner(1, 1)));
    assert_eq!(there.change(HERO, None, owner(2, 1)), Err(lost));
    here.change(HERO, Some(owner(1, 1)), owner(2, 2))
        .expect("it is the owner");
    assert_eq!(there.owner(HERO), Ok(Some(owner(2, 2))));
    let lost = ChangeError::Lost(Some(owner(2, 2)));
    assert_eq!(here.change(HERO, Some(owner(1, 1)), owner(3, 2)), Err(lost));

    here.compare_and_swap(8, None, b"something else")
        .expect("it answers")
        .expect("it is new");
    let error = here.owner(StableKey(8)).expect_err("it is no owner");
    assert!(error.0.contains("key 8"), "{error}");
}

#[test]
fn an_entity_moves_when_the_server_agrees() {
    let server = NatsServer::start(&["-js"]);
    let file = std::env::temp_dir().join(format!("due_owners_{}.redb", std::process::id()));
    Shard::create(&file).expect("it is new");
    let shard = Shard::open(&file).expect("it opens");
    let shard = shard.with_owners(store(&server)).expect("it starts");
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
    let mut judge = store(&server);
    let zone = ZoneId {
        journal: shard.journal_id(),
        zone: StableKey(2),
    };
    let expected = Some(Owner { zone, epoch: 2 });
    for _ in 0..1000 {
        if *seen.lock().expect("no panic") == [2] {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(*seen.lock().expect("no panic"), [2]);
    assert_eq!(judge.owner(HERO), Ok(expected));
    groups.stop();
    drop(shard);
    std::fs::remove_file(file).expect("it is there");
}

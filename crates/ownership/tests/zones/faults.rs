//! Ends of frames in which something fails.

use core::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use std::time::Instant;

use bevy_app::prelude::*;
use bevy_due::{
    DuePlugin,
    message::{MessageCommandsExt, Packet},
    save::SaveWorldExt,
    worlds::{StableKey, WorldGroups},
};
use bevy_due_ownership::{
    DurableCommandsExt, DurableEntityCommandsExt, MailReturned, MoveFailed, Shard, SimulatedDisk,
    Zone,
};
use bevy_ecs::{
    entity_disabling::Disabled,
    error::{FallbackErrorHandler, ignore},
    prelude::*,
    resource::IsResource,
};
use bevy_time::TimePlugin;
use serde::{Deserialize, Serialize};

use crate::cluster::{Cluster, GOLD, Ledger};

const HERO: StableKey = StableKey(7);
const BANK: StableKey = StableKey(8);

/// Lets the bank keep what comes back.
fn refund(_: On<MailReturned>, zone: Res<Zone>, mut ledgers: Query<&mut Ledger>) {
    let bank = zone.entity(BANK).unwrap();
    ledgers.get_mut(bank).unwrap().gold += 100;
}

/// A letter that can't be sent comes back exactly once, whichever frame is the last one on the disk.
#[test]
fn a_letter_that_comes_back_is_as_durable_as_its_price() {
    for frames in 0..6 {
        let mut cluster = Cluster::new(1);
        cluster.game = |app| _ = app.add_observer(refund);
        cluster.stop(0);
        cluster.start(0);
        let hero = cluster.spawn(0, HERO, ());
        cluster.spawn(0, BANK, ());
        cluster.world(0).get_mut::<Ledger>(hero).unwrap().gold = 100;
        cluster.update();
        let mut ledgers = cluster.world(0).query::<&mut Ledger>();
        ledgers.get_mut(cluster.world(0), hero).unwrap().gold = 0;
        let large = Packet::new(GOLD, vec![0; 1 << 20]);
        cluster.world(0).commands().entity(hero).mail(BANK, large);
        for _ in 0..frames {
            cluster.update();
        }
        cluster.lose_power(0, 0);
        cluster.start(0);
        for _ in 0..3 {
            cluster.update();
        }
        let gold = [HERO, BANK].map(|key| cluster.ledger(key).gold);
        assert_eq!(
            gold.iter().sum::<u64>(),
            100,
            "{gold:?} after {frames} frames"
        );
    }
}

/// What an observer of a failed move does is durable before others hear of it.
#[test]
fn nobody_hears_of_a_failed_move_before_it_is_stored() {
    let (tell, told) = std::sync::mpsc::channel();
    let mut cluster = Cluster::new(1);
    let note = move |_: On<MoveFailed>, mut ledgers: Query<&mut Ledger>, mut commands: Commands| {
        ledgers.single_mut().unwrap().gold += 1;
        let tell = tell.clone();
        commands.after_commit(move || tell.send(()).unwrap());
    };
    cluster.app(0).add_observer(note);
    cluster.spawn(0, HERO, ());
    cluster.update();
    cluster.send_to(HERO, 5);
    let mut durable = Vec::new();
    cluster.run_until("the end of the move", |cluster| {
        durable.push(cluster.nodes[0].disk.after_power_loss(0));
        told.try_recv().is_ok()
    });
    // The disk as it was when the call came, or later.
    cluster.nodes[0].disk = cluster.nodes[0].disk.after_power_loss(0);
    cluster.start(0);
    assert_eq!(cluster.ledger(HERO).gold, 1);
}

/// More keys than one parcel holds are asked for in several.
#[test]
fn letters_to_very_many_unknown_entities_arrive() {
    const LETTERS: u64 = 120_000;
    const FIRST: u64 = 1 << 50;
    let mut cluster = Cluster::new(2);
    let senders = 200;
    for key in 1..=senders {
        cluster.spawn(0, StableKey(key), ());
    }
    for key in 0..LETTERS {
        cluster.world(1).spawn(StableKey(FIRST + key));
    }
    cluster.update();
    for sender in 1..=senders {
        for nth in 0..LETTERS / senders {
            let to = FIRST + (sender - 1) * (LETTERS / senders) + nth;
            cluster.mail(StableKey(sender), StableKey(to), 1);
        }
    }
    let start = Instant::now();
    while !cluster.is_at_rest() {
        assert!(
            start.elapsed() < Duration::from_secs(100),
            "{:?}",
            cluster.world(0).resource::<Zone>().on_the_way()
        );
        cluster.update();
    }
}

/// A message that is no data does not survive, and everything else does.
#[test]
fn a_message_without_a_codec_ends_nothing() {
    #[derive(Message)]
    struct Hit;
    let mut cluster = Cluster::new(1);
    let hero = cluster.spawn(0, HERO, ());
    cluster.update();
    let send = move |mut commands: Commands| commands.send(hero, Hit);
    cluster
        .app(0)
        .add_systems(PostUpdate, send.run_if(run_once));
    cluster.world(0).get_mut::<Ledger>(hero).unwrap().gold = 5;
    cluster.update();
    assert!(!cluster.has_ended(0));
    cluster.lose_power(0, 0);
    cluster.start(0);
    assert_eq!(cluster.ledger(HERO).gold, 5);
}

/// A disk that hangs stops what fills the memory, and then the world.
#[test]
fn a_world_waits_for_a_disk_that_hangs_and_then_ends() {
    let mut cluster = Cluster::new(1);
    let hero = cluster.spawn(0, HERO, ());
    cluster.update();
    cluster.nodes[0].disk.set_sync_time(Duration::from_secs(4));
    let start = Instant::now();
    let mut frames = 0;
    while start.elapsed() < Duration::from_secs(3) {
        cluster.world(0).get_mut::<Ledger>(hero).unwrap().gold += 1;
        cluster.app(0).update();
        std::thread::sleep(Duration::from_millis(5));
        frames += 1;
    }
    assert!(frames < 600, "{frames} frames: the world waits");
    assert!(cluster.shard(0).stall().is_some() || start.elapsed() > Duration::from_secs(4));
    cluster.nodes[0].disk.set_sync_time(Duration::from_secs(12));
    let start = Instant::now();
    while !cluster.has_ended(0) {
        cluster.world(0).get_mut::<Ledger>(hero).unwrap().gold += 1;
        cluster.app(0).update();
        assert!(start.elapsed() < Duration::from_secs(30), "the world ends");
    }
    cluster.nodes[0].disk.set_sync_time(Duration::ZERO);
}

/// The zone says what is missing, and ends.
#[test]
fn a_game_that_despawns_everything_ends_its_zone() {
    let mut cluster = Cluster::new(1);
    cluster.spawn(0, HERO, ());
    cluster.update();
    let world = cluster.world(0);
    let all: Vec<Entity> = world
        .query_filtered::<Entity, With<StableKey>>()
        .iter(world)
        .collect();
    for entity in all {
        world.try_despawn(entity).ok();
    }
    cluster.update();
    assert!(cluster.has_ended(0));
}

/// Bevy must not despawn an observer together with what it observes.
#[test]
fn a_game_may_despawn_every_entity_in_one_call() {
    #[derive(Component, Clone, Serialize, Deserialize)]
    struct Gold(u64);

    /// Lets Bevy despawn by archetypes.
    #[derive(Component)]
    #[component(storage = "SparseSet")]
    struct Kept;

    let shard = Shard::open_simulated(SimulatedDisk::new(1)).unwrap();
    let mut app = App::new();
    let hero = (HERO, Gold(1000));
    // Its archetype is older than the zone, so the observers of the zone would despawn first.
    let first = app.world_mut().spawn(hero).id();
    app.world_mut().despawn(first);
    let zone = shard.zone(StableKey(1));
    app.insert_resource(FallbackErrorHandler(ignore))
        .add_plugins((TimePlugin, DuePlugin::default(), zone));
    app.world_mut().add_saved_component::<Gold>("gold");
    let groups = WorldGroups::new();
    groups.add("zones", &mut app);
    app.update();
    app.world_mut().spawn((HERO, Gold(1000)));
    app.update();
    app.world_mut()
        .despawn_all::<(Without<IsResource>, Without<Kept>, Allow<Disabled>)>();
    app.update();
    assert!(app.should_exit().is_some(), "the zone ends");
}

/// The calls after the one that panics are made, in this zone and in others.
#[test]
fn a_call_that_panics_stops_no_zone() {
    static IS_REPORTED: AtomicBool = AtomicBool::new(false);
    let (tell, told) = std::sync::mpsc::channel();
    let mut cluster = Cluster::new(1);
    cluster.spawn(0, HERO, ());
    let handler = FallbackErrorHandler(|error, _| {
        let is_reported = error.to_string().contains("`after_commit` panicked");
        IS_REPORTED.fetch_or(is_reported, Ordering::Relaxed);
    });
    cluster.world(0).insert_resource(handler);
    cluster
        .world(0)
        .commands()
        .after_commit(|| panic!("expected by this test"));
    cluster
        .world(0)
        .commands()
        .after_commit(move || tell.send(()).unwrap());
    cluster.update();
    cluster.update();
    assert_eq!(told.try_recv(), Ok(()));
    assert!(IS_REPORTED.load(Ordering::Relaxed));
    assert!(!cluster.has_failed(0));
    assert!(!cluster.has_ended(0));
}

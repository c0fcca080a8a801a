//! A zone comes back from its journal.

use core::time::Duration;

use bevy_app::prelude::*;
use bevy_due::{
    Clock, ClockId, Clocks, Cooldown, DueWorldExt, OnClock, Owned, OwnedBy, PausedBy, Timer,
    clock::{SpeedModifier, SpeedModifiers},
    message::{MessageCommandsExt, MessageComponent, Packet},
    timer::Pauses,
    worlds::StableKey,
};
use bevy_due_ownership::Zone;
use bevy_ecs::{prelude::*, schedule::SingleThreadedExecutor, system::RunSystemOnce};

use crate::cluster::{Cluster, FRAME, Failures, GOLD, Ledger};

const HERO: StableKey = StableKey(7);
const ORC: StableKey = StableKey(8);

#[test]
fn an_entity_comes_back_with_its_timers_and_components() {
    let mut cluster = Cluster::new(1);
    let hero = cluster.spawn(0, HERO, Timer::every(Duration::from_millis(100)));
    let poison = cluster
        .world(0)
        .spawn((OwnedBy(hero), Ledger::default(), Timer::after(5.0)))
        .id();
    cluster.world(0).get_mut::<Ledger>(poison).unwrap().gold = 3;
    for _ in 0..20 {
        cluster.update();
    }
    let before = cluster.ledger(HERO);
    assert_eq!(before.fired, 3);
    cluster.stop(0);
    cluster.start(0);
    assert_eq!(cluster.ledger(HERO), before);
    let hero = cluster.entity(0, HERO);
    let world = cluster.world(0);
    let (poison, ledger) = world
        .query::<(Entity, &Ledger, &OwnedBy)>()
        .iter(world)
        .map(|(entity, ledger, owner)| {
            assert_eq!(owner.0, hero);
            (entity, ledger.clone())
        })
        .next()
        .unwrap();
    assert_eq!(ledger.gold, 3);
    let left = world
        .with_timers(|timers| timers.get(poison))
        .unwrap()
        .remaining;
    let expected = Duration::from_secs(5) - 20 * FRAME;
    assert!(
        left.abs_diff(expected) <= 3 * FRAME,
        "{left:?} of {expected:?}"
    );
    for _ in 0..20 {
        cluster.update();
    }
    assert_eq!(cluster.ledger(HERO).fired, 6);
}

#[test]
fn durable_entities_that_stun_each_other_come_back() {
    let mut cluster = Cluster::new(1);
    let [mage, orc] = [HERO, ORC].map(|key| cluster.spawn(0, key, Timer::after(60.0)));
    let world = cluster.world(0);
    world.spawn((OwnedBy(mage), Pauses(orc)));
    world.spawn((OwnedBy(orc), Pauses(mage), Ledger::default()));
    for _ in 0..20 {
        cluster.update();
    }
    cluster.lose_power(0, 0);
    cluster.start(0);
    for key in [HERO, ORC] {
        let entity = cluster.entity(0, key);
        let world = cluster.world(0);
        let timer = world.with_timers(|timers| timers.get(entity)).unwrap();
        assert!(timer.paused);
        assert_eq!(timer.remaining, Duration::from_secs(60));
        assert_eq!(world.get::<PausedBy>(entity).unwrap().iter().count(), 1);
    }
    assert_eq!(cluster.world(0).resource::<Zone>().unloadable().count(), 0);
    cluster.despawn(0, HERO);
    cluster.update();
    let orc = cluster.entity(0, ORC);
    assert!(
        cluster.world(0).get::<PausedBy>(orc).is_none(),
        "its owner is gone"
    );
}

/// It is stored in exactly one of their records.
#[test]
fn an_effect_that_concerns_two_durable_entities_comes_back_once() {
    let mut cluster = Cluster::new(1);
    let [mage, orc] =
        [HERO, ORC].map(|key| cluster.spawn(0, key, (Clock::new(), Timer::after(60.0))));
    let world = cluster.world(0);
    let stun = world.spawn(Pauses(orc)).id();
    world.spawn((Pauses(mage), SpeedModifier::new(orc, 2.0)));
    cluster.update();
    cluster.update();
    cluster.world(0).entity_mut(stun).insert(OwnedBy(mage));
    cluster.update();
    cluster.lose_power(0, 0);
    cluster.start(0);
    assert_eq!(cluster.world(0).resource::<Zone>().unloadable().count(), 0);
    for key in [HERO, ORC] {
        let entity = cluster.entity(0, key);
        let paused_by = cluster.world(0).get::<PausedBy>(entity).unwrap();
        assert_eq!(paused_by.iter().count(), 1);
    }
    let orc = cluster.entity(0, ORC);
    assert_eq!(
        cluster.world(0).get::<SpeedModifiers>(orc).unwrap().len(),
        1
    );
}

#[test]
fn what_an_effect_has_and_owns_is_stored_with_its_target() {
    let guard = StableKey(9);
    let mut cluster = Cluster::new(1);
    let hero = cluster.spawn(0, HERO, Timer::after(60.0));
    let world = cluster.world(0);
    let stun = world.spawn((Pauses(hero), Ledger::default())).id();
    world.spawn((guard, Ledger::default(), OwnedBy(stun)));
    for _ in 0..3 {
        cluster.update();
    }
    assert!(cluster.world(0).resource::<Zone>().entity(guard).is_none());
    cluster.world(0).get_mut::<Ledger>(stun).unwrap().gold = 2;
    cluster.update();
    cluster.lose_power(0, 0);
    cluster.start(0);
    let hero = cluster.entity(0, HERO);
    let world = cluster.world(0);
    let stun = world.get::<PausedBy>(hero).unwrap().iter().next().unwrap();
    assert_eq!(world.get::<Ledger>(stun).unwrap().gold, 2);
    let guards = world.get::<Owned>(stun).unwrap().iter();
    assert!(
        guards
            .map(|it| *world.get::<StableKey>(it).unwrap())
            .eq([guard])
    );
    // The guard gets a record of its own when the effect ends.
    cluster.world(0).entity_mut(stun).remove::<Pauses>();
    cluster.update();
    assert!(cluster.world(0).resource::<Zone>().entity(guard).is_some());
}

#[test]
fn an_entity_comes_back_without_what_led_to_one_that_is_not_durable() {
    let mut cluster = Cluster::new(1);
    let camp = cluster.world(0).spawn(Clock::new()).id();
    let on_clock = OnClock(ClockId::Own(camp));
    let hero = cluster.spawn(0, HERO, (OwnedBy(camp), on_clock, Timer::after(60.0)));
    cluster.world(0).spawn((OwnedBy(hero), Pauses(camp)));
    cluster.update();
    cluster.update();
    cluster.lose_power(0, 0);
    cluster.start(0);
    let hero = cluster.entity(0, HERO);
    let world = cluster.world(0);
    assert!(!world.entity(hero).contains::<OwnedBy>());
    assert!(!world.entity(hero).contains::<OnClock>());
    let timer = world.with_timers(|timers| timers.get(hero)).unwrap();
    assert_eq!(timer.clock, ClockId::Virtual);
}

#[test]
fn a_frame_in_which_nothing_happens_costs_the_same_for_any_number_of_entities() {
    let allocated = [100, 5_000].map(|entities| {
        let mut cluster = Cluster::new(1);
        for key in 1..=entities {
            let clock = OnClock(ClockId::Real);
            let bundle = (Timer::every(600.0), Cooldown::new(5.0), clock);
            cluster.spawn(0, StableKey(key), bundle);
        }
        // What another thread allocates would not be counted.
        let mut schedules = cluster.world(0).resource_mut::<Schedules>();
        for (_, schedule) in schedules.iter_mut() {
            schedule.set_executor(SingleThreadedExecutor::new());
        }
        for _ in 0..5 {
            cluster.update();
        }
        // A frame that stores what the clocks show comes once a second.
        let frames = (0..50).map(|_| allocation_counter::measure(|| cluster.app(0).update()));
        frames.map(|frame| frame.bytes_total).min()
    });
    assert_eq!(allocated[0], allocated[1]);
}

#[test]
fn a_frame_writes_what_has_changed() {
    let mut cluster = Cluster::new(1);
    for key in 1..=200 {
        let timer = Timer::every(60.0);
        cluster.spawn(0, StableKey(key), (timer, Cooldown::new(5.0)));
    }
    // New timers and mail settle.
    for _ in 0..5 {
        cluster.update();
    }
    let written = |cluster: &Cluster| cluster.nodes[0].disk.syncs();
    let before = written(&cluster);
    for _ in 0..30 {
        cluster.update();
    }
    // The clocks are written once a second.
    assert!(
        written(&cluster) - before <= 3,
        "{} syncs",
        written(&cluster) - before
    );

    let first = cluster.entity(0, StableKey(1));
    cluster.world(0).get_mut::<Ledger>(first).unwrap().gold = 9;
    cluster.update();
    cluster.lose_power(0, 0);
    cluster.start(0);
    assert_eq!(cluster.ledger(StableKey(1)).gold, 9);
}

/// A callback that changes nothing of its entity must not run again.
#[test]
fn mail_of_the_frame_of_a_birth_is_delivered_once() {
    let mut cluster = Cluster::new(1);
    let idle = MessageComponent::new().on_packet(GOLD, |_, _| {});
    let hero = cluster.spawn(0, HERO, ());
    cluster.world(0).entity_mut(hero).insert(idle);
    let send = move |mut commands: Commands| commands.send(hero, Packet::new(GOLD, [4]));
    cluster
        .app(0)
        .add_systems(PostUpdate, send.run_if(run_once));
    cluster.run(3);
    cluster.lose_power(0, 0);
    cluster.start(0);
    cluster.update();
    assert_eq!(cluster.ledger(HERO).gold, 0);
}

#[test]
fn mail_and_cooldowns_survive() {
    let mut cluster = Cluster::new(1);
    let cooldown = Cooldown::new(5.0);
    let hero = cluster.spawn(0, HERO, cooldown);
    cluster.update();
    let use_it = |mut cooldowns: Query<&mut Cooldown>, clocks: Clocks| {
        cooldowns
            .single_mut()
            .unwrap()
            .try_use(clocks.now(ClockId::Virtual).unwrap())
    };
    assert!(cluster.world(0).run_system_once(use_it).unwrap());
    cluster.update();
    // A message of this world, which waits at the end of the frame.
    let send = move |mut commands: Commands| commands.send(hero, Packet::new(GOLD, [4]));
    cluster
        .app(0)
        .add_systems(PostUpdate, send.run_if(run_once));
    cluster.update();
    assert_eq!(cluster.ledger(HERO).gold, 0);
    cluster.lose_power(0, 0);
    cluster.start(0);
    cluster.update();
    assert_eq!(cluster.ledger(HERO).gold, 4);
    cluster.lose_power(0, 0);
    cluster.start(0);
    cluster.update();
    assert_eq!(
        cluster.ledger(HERO).gold,
        4,
        "the message was delivered once"
    );
    let left = |cooldowns: Query<&Cooldown>, clocks: Clocks| {
        let now = clocks.now(ClockId::Virtual).unwrap();
        cooldowns.single().unwrap().remaining(now)
    };
    let left = cluster.world(0).run_system_once(left).unwrap();
    assert!(left > Duration::from_secs(4), "{left:?}");
}

#[test]
fn an_entity_with_a_key_that_is_owned_belongs_to_its_owner() {
    const PET: StableKey = StableKey(9);
    let mut cluster = Cluster::new(2);
    let hero = cluster.spawn(0, HERO, ());
    let pet = cluster.spawn(0, PET, Timer::after(60.0));
    cluster.update();
    assert_eq!(cluster.find(PET), Some(0));
    cluster.world(0).entity_mut(pet).insert(OwnedBy(hero));
    cluster.update();
    cluster.update();
    assert_eq!(cluster.find(PET), None, "it is part of the hero");
    cluster.world(0).get_mut::<Ledger>(pet).unwrap().gold = 5;
    cluster.update();
    cluster.lose_power(0, 0);
    cluster.start(0);
    cluster.send_to(HERO, 1);
    cluster.run_until("the move", |cluster| cluster.find(HERO) == Some(1));
    let hero = cluster.entity(1, HERO);
    let world = cluster.world(1);
    let pet = world.get::<Owned>(hero).unwrap().iter().next().unwrap();
    assert_eq!(world.get::<Ledger>(pet).unwrap().gold, 5);

    world.entity_mut(pet).remove::<OwnedBy>();
    cluster.update();
    cluster.update();
    assert_eq!(cluster.find(PET), Some(1), "it is free");
    cluster.lose_power(1, 0);
    cluster.start(1);
    assert_eq!(cluster.ledger(PET).gold, 5);
}

#[test]
fn a_zone_with_an_old_journal_ends_and_gets_nothing() {
    let mut cluster = Cluster::new(2);
    cluster.spawn(0, HERO, ());
    cluster.update();
    let old = cluster.nodes[1].disk.after_kill();
    cluster.send_to(HERO, 1);
    cluster.run_until("the move", |cluster| {
        cluster.find(HERO) == Some(1) && cluster.is_at_rest()
    });
    cluster.stop(1);
    cluster.nodes[1].disk = old;
    cluster.start(1);
    let other = StableKey(8);
    cluster.spawn(0, other, ());
    // Long enough that the zone asks before it lets an entity go.
    for _ in 0..100 {
        cluster.update();
    }
    cluster.send_to(other, 1);
    cluster.run_until("the end", |cluster| cluster.has_ended(1));
    for _ in 0..200 {
        cluster.update();
    }
    assert_eq!(cluster.find(other), Some(0), "it stays");
    assert_eq!(cluster.world(0).resource::<Failures>().moves.len(), 1);
}

//! Entities move between zones.

use core::time::Duration;

use bevy_app::prelude::*;
use bevy_due::{
    Clock, ClockId, DueWorldExt, OnClock, Owned, OwnedBy, Timer, TimerAction,
    message::{MessageCommandsExt, MessageComponent, Packet, ReplyTo},
    timer::Pauses,
    worlds::{Parcel, ParcelEntityCommandsExt, StableKey},
};
use bevy_due_ownership::{Arrived, Zone};
use bevy_ecs::prelude::*;

use crate::cluster::{Cluster, Failures, GOLD, Ledger, zone};

const HERO: StableKey = StableKey(7);
const BANK: StableKey = StableKey(8);

#[test]
fn an_entity_moves_with_what_it_has() {
    let mut cluster = Cluster::new(2);
    let hero = cluster.spawn(0, HERO, ());
    let poison = (OwnedBy(hero), Timer::after(60.0), Ledger::default());
    cluster.world(0).spawn(poison);
    cluster.update();
    cluster.send_to(HERO, 1);
    // It waits for the answer of the other zone. The message is sent in the frame in which it leaves.
    let send = move |zone: Res<Zone>, mut commands: Commands| {
        if zone.entity(HERO).is_some() {
            commands.send(hero, Packet::new(GOLD, [1]));
        }
    };
    cluster.app(0).add_systems(PostUpdate, send);
    let mut sent = 0;
    while cluster.find(HERO) == Some(0) {
        cluster.update();
        sent += 1;
    }
    cluster.run_until("the move", |cluster| cluster.find(HERO) == Some(1));
    cluster.run_until("rest", Cluster::is_at_rest);
    cluster.update();
    assert_eq!(
        cluster.ledger(HERO).gold,
        sent,
        "each message is delivered once"
    );
    let hero = cluster.entity(1, HERO);
    let poison = cluster
        .world(1)
        .get::<Owned>(hero)
        .unwrap()
        .iter()
        .next()
        .unwrap();
    let world = cluster.world(1);
    assert!(world.get::<Ledger>(poison).is_some());
    let left = world
        .with_timers(|timers| timers.get(poison))
        .unwrap()
        .remaining;
    assert!(
        (Duration::from_secs(50)..Duration::from_secs(60)).contains(&left),
        "{left:?}"
    );

    // It is in the journal of its new zone only.
    cluster.stop(0);
    cluster.stop(1);
    cluster.start(0);
    assert_eq!(cluster.find(HERO), None);
    cluster.start(1);
    assert_eq!(cluster.find(HERO), Some(1));
    assert_eq!(cluster.ledger(HERO).gold, sent);
}

/// A packet that asks for gold.
const ASK: u32 = 3;

#[derive(Component, Default)]
struct Asked(Option<ReplyTo>);

#[test]
fn an_open_request_moves_along() {
    let mut cluster = Cluster::new(3);
    cluster.spawn(0, HERO, ());
    let bank = cluster.spawn(2, BANK, Asked::default());
    let clerk = MessageComponent::new().on_packet(ASK, |mut me, _| {
        let reply_to = me.reply_to().cloned();
        me.entity.get_mut::<Asked>().unwrap().0 = reply_to;
    });
    cluster.world(2).entity_mut(bank).insert(clerk);
    cluster.update();
    let hero = cluster.entity(0, HERO);
    let ask = Parcel::new("zones", BANK, Packet::new(ASK, []));
    cluster
        .world(0)
        .commands()
        .entity(hero)
        .ask_world(ask, Timer::after(60.0));
    cluster.run_until("the question", |cluster| {
        cluster.world(2).get::<Asked>(bank).unwrap().0.is_some()
    });
    cluster.send_to(HERO, 1);
    cluster.run_until("the move", |cluster| cluster.find(HERO) == Some(1));
    cluster.run_until("rest", Cluster::is_at_rest);
    let reply_to = cluster
        .world(2)
        .get_mut::<Asked>(bank)
        .unwrap()
        .0
        .take()
        .unwrap();
    cluster
        .world(2)
        .commands()
        .reply(reply_to, Packet::new(GOLD, [5]));
    cluster.run_until("the reply", |cluster| cluster.ledger(HERO).gold == 5);
}

#[test]
fn a_zone_that_does_not_answer_gets_nothing() {
    let mut cluster = Cluster::new(2);
    cluster.spawn(0, HERO, ());
    cluster.update();
    cluster.stop(1);
    cluster.send_to(HERO, 1);
    cluster.run_until("the failure", |cluster| {
        !cluster.world(0).resource::<Failures>().moves.is_empty()
    });
    assert_eq!(cluster.find(HERO), Some(0));
    let failures = cluster.world(0).resource::<Failures>();
    assert!(
        failures.moves[0].1.contains(&zone(1).0.to_string()),
        "{:?}",
        failures.moves
    );
}

#[test]
fn an_entity_that_another_build_cant_load_comes_back() {
    let mut cluster = Cluster::new(2);
    let timer = Timer::after(60.0);
    cluster.spawn(0, HERO, timer);
    cluster.update();
    cluster.stop(1);
    cluster.nodes[1].knows_ledgers = false;
    cluster.start(1);
    cluster.send_to(HERO, 1);
    cluster.run_until("the failure", |cluster| {
        !cluster.world(0).resource::<Failures>().moves.is_empty()
    });
    let failures = &cluster.world(0).resource::<Failures>().moves;
    assert!(failures[0].1.contains("\"ledger\""), "{failures:?}");
    assert_eq!(cluster.find(HERO), Some(0));
    let hero = cluster.entity(0, HERO);
    assert!(cluster.world(0).get::<Timer>(hero).is_some());
    cluster.run_until("rest", Cluster::is_at_rest);
    // Another build of its own zone keeps it in the journal, and so do its letters.
    cluster.stop(0);
    cluster.nodes[0].knows_ledgers = false;
    cluster.start(0);
    assert_eq!(cluster.find(HERO), None);
    cluster.spawn(1, BANK, ());
    cluster.update();
    cluster.mail(BANK, HERO, 6);
    for _ in 0..50 {
        cluster.update();
    }
    cluster.stop(0);
    cluster.nodes[0].knows_ledgers = true;
    cluster.start(0);
    assert_eq!(cluster.find(HERO), Some(0));
    cluster.run_until("the letter", |cluster| cluster.ledger(HERO).letters == [6]);
}

#[test]
fn an_entity_that_is_no_data_stays() {
    let mut cluster = Cluster::new(2);
    let action = TimerAction::call(|_, _| {});
    cluster.spawn(0, HERO, (Timer::every(Duration::from_secs(1)), action));
    cluster.update();
    assert_eq!(cluster.find(HERO), None, "it is not durable");
}

#[test]
fn an_entity_that_turns_out_to_be_no_data_where_it_arrives_is_not_lost() {
    let mut cluster = Cluster::new(2);
    cluster
        .app(1)
        .add_observer(|arrived: On<Arrived>, mut commands: Commands| {
            let action = TimerAction::call(|_, _| {});
            commands.spawn((OwnedBy(arrived.entity), Timer::after(9.0), action));
        });
    cluster.spawn(0, HERO, ());
    cluster.update();
    cluster.send_to(HERO, 1);
    cluster.run_until("the end", |cluster| cluster.has_ended(1));
    // A runner may run more frames.
    for _ in 0..3 {
        cluster.update();
    }
    for nth in [0, 1] {
        cluster.lose_power(nth, 0);
        cluster.start(nth);
    }
    cluster.run_until("the move", |cluster| cluster.find(HERO) == Some(1));
    cluster.run_until("rest", Cluster::is_at_rest);
}

#[test]
fn an_entity_moves_without_the_clock_and_the_pauses_of_others() {
    let mut cluster = Cluster::new(2);
    let clock = cluster.world(0).spawn(Clock::default()).id();
    let on_clock = OnClock(ClockId::Own(clock));
    cluster.spawn(0, HERO, (on_clock, Timer::after(60.0)));
    let bank = cluster.spawn(0, BANK, Timer::after(60.0));
    let boss = cluster.world(0).spawn_empty().id();
    cluster.world(0).spawn((OwnedBy(boss), Pauses(bank)));
    cluster.update();
    for key in [HERO, BANK] {
        cluster.send_to(key, 1);
    }
    for key in [HERO, BANK] {
        cluster.run_until("the moves", |cluster| cluster.find(key) == Some(1));
        let entity = cluster.entity(1, key);
        let timer = cluster.world(1).with_timers(|timers| timers.get(entity));
        let timer = timer.unwrap();
        assert!(!timer.paused);
        assert_eq!(timer.clock, ClockId::Virtual);
    }
    assert!(cluster.world(0).get_entity(boss).is_ok());
}

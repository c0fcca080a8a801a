//! Entities move between zones.

use core::time::Duration;

use bevy_due::{StableKey, Timer, TimerAction};

use crate::cluster::{Cluster, Failures, zone};

const HERO: StableKey = StableKey(7);

#[test]
fn an_entity_moves_with_what_it_has() {
    let mut cluster = Cluster::new(2);
    cluster.spawn(0, HERO, Timer::every(Duration::from_secs(1)));
    cluster.update();
    cluster.send_to(HERO, 1);
    cluster.run_until("the move", |cluster| {
        let f = &cluster.world(0).resource::<Failures>().moves;
        assert!(f.is_empty(), "{f:?}");
        cluster.find(HERO) == Some(1)
    });
    cluster.run_until("rest", Cluster::is_at_rest);
    // It is in the journal of its new zone only.
    cluster.stop(0);
    cluster.stop(1);
    cluster.start(0);
    assert_eq!(cluster.find(HERO), None);
    cluster.start(1);
    assert_eq!(cluster.find(HERO), Some(1));
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
fn an_entity_that_is_no_data_stays() {
    let mut cluster = Cluster::new(2);
    let action = TimerAction::call(|_, _| {});
    cluster.spawn(0, HERO, (Timer::every(Duration::from_secs(1)), action));
    cluster.update();
    assert_eq!(cluster.find(HERO), None, "it is not durable");
}

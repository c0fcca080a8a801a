//! A zone comes back from its journal.

use core::time::Duration;

use bevy_due::{DueWorldExt, OwnedBy, StableKey, Timer};
use bevy_ecs::prelude::*;

use crate::cluster::{Cluster, FRAME, Ledger};

const HERO: StableKey = StableKey(7);

#[test]
fn an_entity_comes_back_with_its_timers_and_components() {
    let mut cluster = Cluster::new(1);
    let hero = cluster.spawn(0, HERO, Timer::every(Duration::from_millis(100)));
    let poison = cluster
        .world(0)
        .spawn((OwnedBy(hero), Ledger::default(), Timer::after_secs(5.0)))
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

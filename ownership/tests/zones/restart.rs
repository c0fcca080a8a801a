//! A zone comes back from its journal.

use core::time::Duration;
use std::sync::Mutex;

use bevy_due::{DueWorldExt, OwnedBy, StableKey, Timer, TimerFired};
use bevy_ecs::{
    error::{ErrorContext, FallbackErrorHandler},
    prelude::*,
};

use crate::cluster::{Cluster, FRAME, Failures, Ledger};

const HERO: StableKey = StableKey(7);

fn count(fired: On<TimerFired>, mut ledgers: Query<&mut Ledger>) {
    if let Ok(mut ledger) = ledgers.get_mut(fired.owner()) {
        ledger.fired += 1;
        assert_eq!(ledger.fired, fired.count(), "each firing is counted once");
    }
}

#[test]
fn an_entity_comes_back_with_its_timers_and_components() {
    let mut cluster = Cluster::new(1);
    cluster.world(0).add_observer(count);
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
    cluster.world(0).add_observer(count);
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

static REPORTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn note_report(error: BevyError, _: ErrorContext) {
    REPORTS.lock().unwrap().push(error.to_string());
}

#[test]
fn a_zone_with_an_old_journal_reports_it_and_gets_nothing() {
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
    cluster
        .world(1)
        .insert_resource(FallbackErrorHandler(note_report));

    let other = StableKey(8);
    cluster.spawn(0, other, ());
    // Long enough that the zone asks before it lets an entity go.
    for _ in 0..100 {
        cluster.update();
    }
    cluster.send_to(other, 1);
    for _ in 0..200 {
        cluster.update();
    }
    assert_eq!(cluster.find(other), Some(0), "it stays");
    assert_eq!(cluster.world(0).resource::<Failures>().moves.len(), 1);
    let reports = REPORTS.lock().unwrap();
    let is_it =
        |it: &String| it.contains("the journal of this zone is older than what zone 1001 has");
    assert!(reports.iter().any(is_it), "{reports:?}");
}

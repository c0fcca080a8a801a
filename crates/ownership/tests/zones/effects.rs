//! Effects without a key, which are stored with a durable entity.

use bevy_due::{
    Clock, ClockId, OnClock, OwnedBy, PausedBy, Timer, clock::SpeedModifier, timer::Pauses,
    worlds::StableKey,
};
use bevy_due_ownership::{DurableEntityCommandsExt, Zone};
use bevy_ecs::{prelude::*, relationship::Relationship};

use crate::{
    cluster::{Cluster, Ledger, zone},
    random::Random,
};

/// Returns each effect: its number, the key of its owner, the keys of what it pauses and of what it speeds up.
type Effect = (u64, Option<u64>, Option<u64>, Option<u64>, bool);

fn effects(world: &mut World) -> Vec<Effect> {
    let mut found = world.query::<(
        &Ledger,
        Option<&OwnedBy>,
        Option<&Pauses>,
        Option<&SpeedModifier>,
        Option<&OnClock>,
    )>();
    let key = |entity: Entity| world.get::<StableKey>(entity).map(|key| key.0);
    let mut all: Vec<_> = found
        .iter(world)
        .filter(|(ledger, ..)| ledger.gold > 0)
        .map(|(ledger, owner, pauses, speeds, clock)| {
            (
                ledger.gold,
                owner.and_then(|it| key(it.0)),
                pauses.and_then(|it| key(it.0)),
                speeds.and_then(|it| key(it.get())),
                clock.is_some(),
            )
        })
        .collect();
    all.sort_unstable();
    all
}

/// Returns the effects that lead to a durable entity. No other one is stored.
fn durable_effects(world: &mut World) -> Vec<Effect> {
    let mut all = effects(world);
    all.retain(|it| it.1.is_some() || it.2.is_some() || it.3.is_some());
    all
}

/// Returns one of the effects, if there are any.
fn any_effect(world: &mut World, random: &mut Random) -> Option<Entity> {
    let mut found = world.query_filtered::<(Entity, &Ledger), Without<StableKey>>();
    let effects = found.iter(world).filter(|(_, ledger)| ledger.gold > 0);
    let effects: Vec<_> = effects.map(|(entity, _)| entity).collect();
    match effects.len() as u64 {
        0 => None,
        count => Some(effects[random.below(count) as usize]),
    }
}

/// Effects change their owners and targets, and entities come and go. A crash shows what was there before.
#[test]
fn effects_are_after_a_crash_as_before() {
    for seed in 0..8 {
        let mut random = Random(seed * 7919 + 1);
        let mut cluster = Cluster::new(1);
        for key in 1..=4 {
            cluster.spawn(0, StableKey(key), (Clock::new(), Timer::after(600.0)));
        }
        cluster.run(3);
        let mut number = 0;
        let mut log = Vec::new();
        for step in 0..120 {
            let (first, second) = (1 + random.below(4), 1 + random.below(4));
            let [one, other] = [first, second].map(|key| {
                let zone = cluster.world(0).resource::<Zone>();
                zone.entity(StableKey(key))
            });
            let (Some(one), Some(other)) = (one, other) else {
                cluster.update();
                continue;
            };
            let world = cluster.world(0);
            let effect = any_effect(world, &mut random);
            let what = random.below(12);
            log.push((step, what, first, second, effect));
            let with_gold = |number: &mut u64| {
                *number += 1;
                Ledger {
                    gold: *number,
                    ..Ledger::default()
                }
            };
            match (what, effect) {
                (0, _) => {
                    let gold = with_gold(&mut number);
                    world.spawn((gold, Pauses(one)));
                }
                (1, _) => {
                    let gold = with_gold(&mut number);
                    world.spawn((gold, Pauses(one), SpeedModifier::new(other, 2.0)));
                }
                (2, _) => {
                    let gold = with_gold(&mut number);
                    world.spawn((gold, OwnedBy(one), SpeedModifier::new(other, 2.0)));
                }
                (3, Some(effect)) => {
                    world.entity_mut(effect).insert(OwnedBy(one));
                }
                // Without anything to hold it, it is not durable.
                (4, Some(effect))
                    if world.get::<Pauses>(effect).is_some()
                        || world.get::<SpeedModifier>(effect).is_some() =>
                {
                    world.entity_mut(effect).remove::<OwnedBy>();
                }
                (5, Some(effect)) => {
                    world.entity_mut(effect).insert(Pauses(one));
                }
                (6, Some(effect)) => {
                    world
                        .entity_mut(effect)
                        .insert(SpeedModifier::new(one, 3.0));
                }
                (7, Some(effect)) => {
                    world.despawn(effect);
                }
                (8, Some(effect)) => {
                    world
                        .entity_mut(effect)
                        .insert((Timer::after(600.0), OnClock(ClockId::Own(one))));
                }
                (9, _) if random.below(3) == 0 => {
                    world.despawn(one);
                    cluster.spawn(0, StableKey(first), (Clock::new(), Timer::after(600.0)));
                }
                _ => {}
            }
            if random.below(3) > 0 {
                cluster.update();
            }
            if random.below(8) == 0 {
                cluster.update();
                cluster.update();
                let before = durable_effects(cluster.world(0));
                cluster.lose_power(0, 0);
                cluster.start(0);
                let after = effects(cluster.world(0));
                assert_eq!(before, after, "seed {seed}, step {step}: {log:?}");
                for key in 1..=4 {
                    let Some(entity) = cluster.world(0).resource::<Zone>().entity(StableKey(key))
                    else {
                        panic!("seed {seed}: {key} is gone");
                    };
                    let world = cluster.world(0);
                    let paused = world
                        .get::<PausedBy>(entity)
                        .map_or(0, |it| it.iter().count());
                    let expected = after.iter().filter(|it| it.2 == Some(key)).count();
                    assert_eq!(paused, expected);
                }
            }
        }
    }
}

/// Effects in two zones, between which their owners and targets move.
#[test]
fn effects_are_after_a_crash_as_before_when_entities_move() {
    for seed in 0..8 {
        let mut random = Random(seed * 104_729 + 3);
        let mut cluster = Cluster::new(2);
        for key in 1..=4 {
            cluster.spawn(0, StableKey(key), (Clock::new(), Timer::after(600.0)));
        }
        cluster.spawn(1, StableKey(50), ());
        cluster.update();
        cluster.mail(StableKey(1), StableKey(50), 0);
        cluster.mail(StableKey(50), StableKey(1), 0);
        cluster.run(10);
        let mut number = 0;
        let mut log = Vec::new();
        for step in 0..100 {
            let nth = random.below(2) as usize;
            let (first, second) = (1 + random.below(4), 1 + random.below(4));
            let [one, other] = [first, second].map(|key| {
                let zone = cluster.world(nth).resource::<Zone>();
                zone.entity(StableKey(key))
            });
            if let (Some(one), Some(other)) = (one, other) {
                let world = cluster.world(nth);
                let effect = any_effect(world, &mut random);
                let what = random.below(10);
                log.push((step, nth, what, first, second, effect));
                number += 1;
                let gold = Ledger {
                    gold: number,
                    ..Ledger::default()
                };
                match (what, effect) {
                    (0, _) => _ = world.spawn((gold, Pauses(one))),
                    (1, _) => {
                        world.spawn((gold, Pauses(one), SpeedModifier::new(other, 2.0)));
                    }
                    (2, _) => {
                        world.spawn((gold, OwnedBy(one), SpeedModifier::new(other, 2.0)));
                    }
                    (3, Some(effect)) => _ = world.entity_mut(effect).insert(OwnedBy(one)),
                    (4, Some(effect)) if world.get::<Pauses>(effect).is_some() => {
                        world.entity_mut(effect).remove::<OwnedBy>();
                    }
                    (5, Some(effect)) => _ = world.entity_mut(effect).insert(Pauses(one)),
                    (6, Some(effect)) => _ = world.despawn(effect),
                    (7 | 8, _) => {
                        world.commands().entity(one).move_to(zone(1 - nth as u64));
                    }
                    _ => {}
                }
            }
            for _ in 0..random.below(4) {
                cluster.update();
            }
            if random.below(8) == 0 {
                cluster.run(8);
                let before = durable_effects(cluster.world(nth));
                cluster.lose_power(nth, 0);
                cluster.start(nth);
                let after = effects(cluster.world(nth));
                assert_eq!(before, after, "seed {seed}, step {step}: {log:?}");
                let all = [0, 1].map(|nth| effects(cluster.world(nth)));
                let mut numbers: Vec<_> = all.iter().flatten().map(|it| it.0).collect();
                let count = numbers.len();
                numbers.sort_unstable();
                numbers.dedup();
                assert_eq!(numbers.len(), count, "seed {seed}, step {step}: {all:?}");
            }
        }
    }
}

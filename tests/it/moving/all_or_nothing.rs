//! A move takes everything of an entity, and reports nothing. What a world can't take comes back as it was.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use bevy_due::{CancelReason, Clock, OnClock, Timer, TimerFired, timer::Pauses};

use super::*;

#[test]
fn taking_an_entity_cancels_and_reports_nothing() {
    let mut forest = zone();
    let hero = spawn(&mut forest, "hero", Timer::every(ms(10)));
    forest.world_mut().entity_mut(hero).insert(ears());
    set_timer(forest.world_mut(), hero, "owned", Timer::every(ms(10)));
    let clock = forest.world_mut().spawn((OwnedBy(hero), Clock::new())).id();
    let stun = forest
        .world_mut()
        .spawn((Pauses(hero), DespawnAfter::new(ms(500))))
        .id();
    let guest = spawn(&mut forest, "guest", Timer::after(ms(500)).on(clock));
    advance_ms(&mut forest, 10);
    send(&mut forest, hero, 1);
    firings(&mut forest);
    let before = *forest.world().resource::<MessageStats>();
    drop(take(&mut forest, hero));
    for gone in [hero, clock, stun] {
        assert!(forest.world().get_entity(gone).is_err());
    }
    advance_ms(&mut forest, 10);
    assert_eq!(
        cancelled(&mut forest),
        [(guest, CancelReason::ClockGone)],
        "only the timer of another entity, whose clock has left"
    );
    assert_eq!(*forest.world().resource::<MessageStats>(), before);
    assert_eq!(forest.world_mut().with_timers(|timers| timers.count()), 0);
}

#[test]
fn an_entity_that_is_refused_and_put_back_goes_on_as_if_nothing_had_happened() {
    let script = |is_moved: bool| {
        let mut forest = zone();
        let mut hero = forest.world_mut().spawn(ears()).id();
        for (key, timer) in [
            ("a", Timer::every(ms(30))),
            ("b", Timer::every(ms(20)).times(4)),
            ("c", Timer::after(ms(60))),
        ] {
            set_timer(forest.world_mut(), hero, key, timer);
        }
        advance_ms(&mut forest, 20);
        send(&mut forest, hero, 1);
        if is_moved {
            let moved = take(&mut forest, hero);
            let mut map = EntityHashMap::default();
            let refused = World::new().put_entity(moved, ms(0), &mut map);
            let PutError { moved, reason } = refused.expect_err("there is no plugin");
            assert_eq!(reason, MoveError::NoPlugin);
            hero = put(&mut forest, moved, 0);
        }
        send(&mut forest, hero, 2);
        let mut log = Vec::new();
        for _ in 0..10 {
            advance_ms(&mut forest, 15);
            let fired = firings(&mut forest).into_iter();
            log.extend(fired.map(|it| (it.key(), it.deadline(), it.lateness(), it.count())));
        }
        (log, heard(&mut forest, hero))
    };
    assert_eq!(script(true), script(false));
}

#[test]
fn an_entity_moves_on_and_comes_home() {
    let (mut forest, mut town, mut port) = (zone(), zone(), zone());
    let hero = forest
        .world_mut()
        .spawn((ears(), Timer::every(ms(100)).times(4)))
        .id();
    advance_ms(&mut forest, 150);
    send(&mut forest, hero, 1);
    let there = carry(&mut forest, hero, &mut town);
    send(&mut town, there, 2);
    let there = carry(&mut town, there, &mut port);
    advance_ms(&mut port, 50);
    assert_eq!(heard(&mut port, there), [1, 2]);
    let home = carry(&mut port, there, &mut forest);
    firings(&mut forest);
    advance_ms(&mut forest, 200);
    let counts: Vec<u64> = firings(&mut forest).iter().map(TimerFired::count).collect();
    assert_eq!(counts, [3, 4]);
    assert!(
        forest.world().get::<Timer>(home).is_none(),
        "it fired its last"
    );
}

#[test]
fn an_observer_that_despawns_a_mapped_entity_does_not_stop_the_move_halfway() {
    let (mut forest, mut town) = (zone(), zone());
    let arena = forest.world_mut().spawn(Clock::new()).id();
    let timers = (OnClock::new(arena), Timer::after(ms(100)));
    let hero = forest.world_mut().spawn((ears(), timers)).id();
    send(&mut forest, hero, 1);
    let moved = take(&mut forest, hero);
    let ring = town.world_mut().spawn(Clock::new()).id();
    town.world_mut()
        .add_observer(move |_: On<Insert<OnClock>>, mut commands: Commands| {
            commands.entity(ring).try_despawn();
        });
    let mut map: EntityHashMap<Entity> = [(arena, ring)].into_iter().collect();
    let here = put_with(&mut town, moved, 0, &mut map);
    town.world_mut().entity_mut(here).insert(ears());
    advance_ms(&mut town, 0);
    assert_eq!(heard(&mut town, here), [1]);
}

#[test]
fn an_observer_that_panics_while_an_entity_arrives_loses_no_mail() {
    let (mut forest, mut town) = (zone(), zone());
    let hero = spawn(&mut forest, "hero", Timer::after(ms(100)));
    send(&mut forest, hero, 1);
    let moved = take(&mut forest, hero);
    let explode = |_: On<Insert<Timer>>| panic!("boom");
    let bomb = town.world_mut().add_observer(explode).id();
    let here = town.world_mut().spawn(ears()).id();
    let mut map: EntityHashMap<Entity> = [(hero, here)].into_iter().collect();
    let world = town.world_mut();
    let put = AssertUnwindSafe(|| world.put_entity(moved, ms(0), &mut map));
    catch_unwind(put).expect_err("the observer panics");
    town.world_mut().despawn(bomb);
    advance_ms(&mut town, 0);
    assert_eq!(heard(&mut town, here), [1]);
}

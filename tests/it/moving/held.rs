//! An entity in transit does nothing, at either end.

use bevy_due::{
    CancelReason, Clock, OnClock, Paused, Timer, UpdateComponent, rollback::RollbackWorldExt,
    timer::Pauses,
};
use bevy_ecs::world::CommandQueue;

use super::*;

/// Counts its calls.
fn counting() -> UpdateComponent {
    UpdateComponent::new(|mut me| {
        if let Some(mut heard) = me.entity.get_mut::<Heard>() {
            heard.0.push(0);
        }
    })
}

/// Spawns an owner with a timer, an update callback, and owned ones.
fn busy(app: &mut App) -> Entity {
    let hero = app
        .world_mut()
        .spawn((ears(), counting(), Tag("hero"), Timer::every(ms(10))))
        .id();
    set_timer(app.world_mut(), hero, "owned", Timer::every(ms(10)));
    app.world_mut().spawn((OwnedBy(hero), counting()));
    hero
}

#[test]
fn nothing_of_it_fires_and_no_callback_is_called() {
    let (mut forest, mut town) = (zone(), zone());
    let hero = busy(&mut forest);
    advance_ms(&mut forest, 10);
    assert_eq!(fired(&mut forest), ["hero", "owned"]);
    assert_eq!(heard(&mut forest, hero), [0, 0]);

    let moved = export(&mut forest, hero);
    let here = import(&mut town, &moved, 0);
    town.world_mut().entity_mut(here).insert(counting());
    send(&mut forest, hero, 1);
    send(&mut town, here, 2);
    for app in [&mut forest, &mut town] {
        send(app, Delivery::All, 3);
        send(app, Delivery::InTurn, 4);
        for _ in 0..3 {
            advance_ms(app, 10);
        }
        assert_eq!(firings(app), []);
    }
    assert_eq!(heard(&mut forest, hero), [0; 0]);
    assert_eq!(heard(&mut town, here), [0; 0]);
}

#[test]
fn an_entity_that_it_gets_meanwhile_waits_too() {
    let mut forest = zone();
    let hero = forest.world_mut().spawn(ears()).id();
    export(&mut forest, hero);
    set_timer(forest.world_mut(), hero, "new", Timer::every(ms(10)));
    forest.world_mut().spawn((OwnedBy(hero), counting()));
    advance_ms(&mut forest, 30);
    assert_eq!(firings(&mut forest), []);
    assert_eq!(heard(&mut forest, hero), [0; 0]);
    commit(&mut forest, hero, &HeldMail::default());
    advance_ms(&mut forest, 0);
    assert_eq!(fired(&mut forest), ["new", "new", "new"]);
    assert_eq!(heard(&mut forest, hero), [0]);
}

#[test]
fn messages_to_all_and_in_turn_go_to_the_others() {
    let mut forest = zone();
    let [hero, other] = [(); 2].map(|()| forest.world_mut().spawn(ears()).id());
    advance_ms(&mut forest, 0);
    export(&mut forest, hero);
    for nth in 1..=3 {
        send(&mut forest, Delivery::InTurn, nth);
    }
    send(&mut forest, Delivery::All, 4);
    advance_ms(&mut forest, 0);
    assert_eq!(heard(&mut forest, other), [1, 2, 3, 4]);
    commit(&mut forest, hero, &HeldMail::default());
    for nth in 5..=6 {
        send(&mut forest, Delivery::InTurn, nth);
    }
    advance_ms(&mut forest, 0);
    let both = [heard(&mut forest, hero), heard(&mut forest, other)];
    assert_eq!(both.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(forest.world().resource::<MessageStats>().undeliverable, 0);
}

#[test]
fn messages_in_turn_go_to_an_entity_that_arrives_in_the_middle_of_a_delivery() {
    let mut forest = zone();
    let [hero, other] = [(); 2].map(|()| forest.world_mut().spawn(ears()).id());
    let gate = MessageComponent::new().on_packet(NOTE, move |mut me, _| {
        me.commands.queue(move |world: &mut World| {
            let committed = world.commit_entity(hero, &HeldMail::default());
            committed.expect("it is in transit");
        });
    });
    advance_ms(&mut forest, 0);
    export(&mut forest, hero);
    for nth in 1..=2 {
        forest
            .world_mut()
            .send(Delivery::InTurn, Hit(nth))
            .expect("there is room");
    }
    let gate = forest.world_mut().spawn(gate).id();
    send(&mut forest, gate, 0);
    forest
        .world_mut()
        .send(Delivery::InTurn, Hit(3))
        .expect("there is room");
    advance_ms(&mut forest, 0);
    assert_eq!(heard(&mut forest, other), [101, 102]);
    assert_eq!(heard(&mut forest, hero), [103]);
}

#[test]
fn forgetting_cancels_and_reports_nothing() {
    let mut forest = zone();
    let hero = busy(&mut forest);
    let clock = forest.world_mut().spawn((OwnedBy(hero), Clock::new())).id();
    let stun = forest
        .world_mut()
        .spawn((Pauses(hero), DespawnAfter::new(ms(500))))
        .id();
    let guest = spawn(&mut forest, "guest", Timer::after(ms(500)).on(clock));
    advance_ms(&mut forest, 10);
    send(&mut forest, hero, 1);
    export(&mut forest, hero);
    set_timer(forest.world_mut(), hero, "new", Timer::every(ms(10)));
    send(&mut forest, hero, 2);
    advance_ms(&mut forest, 10);
    firings(&mut forest);
    let before = *forest.world().resource::<MessageStats>();
    let late = forget(&mut forest, hero);
    assert_eq!(late.len(), 1);
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
fn everything_in_transit_is_marked_with_the_entity_that_moves() {
    let mut forest = zone();
    let hero = busy(&mut forest);
    let members: Vec<Entity> = export(&mut forest, hero).entities().collect();
    assert_eq!(members.len(), 3);
    for member in members {
        let mark = forest.world().get::<InTransit>(member);
        assert_eq!(mark.map(InTransit::root), Some(hero));
    }
    commit(&mut forest, hero, &HeldMail::default());
    let mut marked = forest.world_mut().query::<&InTransit>();
    assert_eq!(marked.iter(forest.world()).count(), 0);
}

#[test]
fn a_pause_during_a_move_takes_its_time() {
    let mut forest = zone();
    let hero = spawn(&mut forest, "hero", Timer::after(ms(100)));
    advance_ms(&mut forest, 10);
    export(&mut forest, hero);
    advance_ms(&mut forest, 20);
    forest.world_mut().entity_mut(hero).insert(Paused);
    advance_ms(&mut forest, 1000);
    commit(&mut forest, hero, &HeldMail::default());
    advance_ms(&mut forest, 1000);
    assert_eq!(firings(&mut forest), [], "it is paused");
    forest.world_mut().entity_mut(hero).remove::<Paused>();
    advance_ms(&mut forest, 69);
    assert_eq!(firings(&mut forest), []);
    advance_ms(&mut forest, 1);
    assert_eq!(fired(&mut forest), ["hero"]);
}

#[test]
fn a_timer_that_changes_during_a_move_still_waits_for_its_end() {
    let mut forest = zone();
    let clock = forest.world_mut().spawn(Clock::new()).id();
    let [moved, rearmed, rescheduled, resumed] = ["moved", "rearmed", "rescheduled", "resumed"]
        .map(|tag| spawn(&mut forest, tag, Timer::after(ms(10))));
    forest.world_mut().entity_mut(resumed).insert(Paused);
    advance_ms(&mut forest, 0);
    let all = [moved, rearmed, rescheduled, resumed];
    for entity in all {
        export(&mut forest, entity);
    }
    let mut queue = CommandQueue::default();
    let mut commands = Commands::new(&mut queue, forest.world());
    commands.entity(moved).change_own_timer(move |timer| {
        timer.set_clock(clock).expect("the clock exists");
    });
    commands.entity(rescheduled).reschedule(ms(5));
    queue.apply(forest.world_mut());
    forest
        .world_mut()
        .entity_mut(rearmed)
        .insert(Timer::after(ms(5)));
    forest.world_mut().entity_mut(resumed).remove::<Paused>();
    for _ in 0..3 {
        advance_ms(&mut forest, 50);
    }
    assert_eq!(firings(&mut forest), []);
    for entity in all {
        commit(&mut forest, entity, &HeldMail::default());
    }
    advance_ms(&mut forest, 0);
    let mut fired = fired(&mut forest);
    fired.sort_unstable();
    assert_eq!(fired, ["moved", "rearmed", "rescheduled", "resumed"]);
}

#[test]
fn an_entity_that_despawns_in_transit_gives_its_mail_up() {
    let mut forest = zone();
    let hero = forest.world_mut().spawn(ears()).id();
    advance_ms(&mut forest, 0);
    export(&mut forest, hero);
    send(&mut forest, hero, 1);
    advance_ms(&mut forest, 0);
    forest.world_mut().despawn(hero);
    advance_ms(&mut forest, 0);
    assert_eq!(forest.world().resource::<MessageStats>().undeliverable, 1);
}

#[test]
fn a_snapshot_takes_the_entity_out_of_transit_again() {
    let mut forest = zone();
    let hero = spawn(&mut forest, "hero", Timer::after(ms(10)));
    forest.world_mut().entity_mut(hero).insert(ears());
    advance_ms(&mut forest, 0);
    send(&mut forest, hero, 1);
    let before = forest.world_mut().snapshot_timers();
    export(&mut forest, hero);
    send(&mut forest, hero, 2);
    advance_ms(&mut forest, 0);
    let mut map = EntityHashMap::default();
    forest.world_mut().restore_timers(&before, &mut map);
    advance_ms(&mut forest, 10);
    assert_eq!(fired(&mut forest), ["hero"]);
    assert_eq!(heard(&mut forest, hero), [1]);
    forest.world_mut().entity_mut(hero).cancel_timers();
}

#[test]
fn a_copy_of_the_entity_is_not_in_transit() {
    let mut forest = zone();
    let hero = forest.world_mut().spawn((ears(), Tag("hero"))).id();
    export(&mut forest, hero);
    let copy = forest.world_mut().entity_mut(hero).clone_and_spawn();
    assert!(forest.world().get::<Tag>(copy).is_some());
    assert!(forest.world().get::<InTransit>(copy).is_none());
}

#[test]
fn an_observer_that_despawns_a_mapped_entity_does_not_stop_the_import_halfway() {
    let (mut forest, mut town) = (zone(), zone());
    let arena = forest.world_mut().spawn(Clock::new()).id();
    let timers = (OnClock::new(arena), Timer::after(ms(100)));
    let hero = forest.world_mut().spawn((ears(), timers)).id();
    send(&mut forest, hero, 1);
    let moved = export(&mut forest, hero);
    let ring = town.world_mut().spawn(Clock::new()).id();
    town.world_mut()
        .add_observer(move |_: On<Insert<InTransit>>, mut commands: Commands| {
            commands.entity(ring).despawn();
        });
    let mut map: EntityHashMap<Entity> = [(arena, ring)].into_iter().collect();
    let here = town.world_mut().import_entity(&moved, ms(0), &mut map);
    let here = here.expect("the clock existed before the import");
    town.world_mut().entity_mut(here).insert(ears());
    commit(&mut town, here, &HeldMail::default());
    advance_ms(&mut town, 0);
    assert_eq!(heard(&mut town, here), [1]);
}

#[test]
fn a_restore_does_not_put_an_entity_back_in_transit() {
    let mut forest = zone();
    let hero = busy(&mut forest);
    let pet = forest.world_mut().spawn((ears(), OwnedBy(hero))).id();
    export(&mut forest, hero);
    let snapshot = forest.world_mut().snapshot_timers();
    commit(&mut forest, hero, &HeldMail::default());
    advance_ms(&mut forest, 10);
    assert_eq!(fired(&mut forest), ["hero", "owned"]);
    heard(&mut forest, hero);
    let mut map = EntityHashMap::default();
    forest.world_mut().restore_timers(&snapshot, &mut map);
    assert!(forest.world().get::<InTransit>(hero).is_none());
    assert!(forest.world().get::<InTransit>(pet).is_none());
    send(&mut forest, pet, 1);
    // The ten milliseconds pass again, because the game has not set Bevy's time back.
    advance_ms(&mut forest, 0);
    assert_eq!(fired(&mut forest), ["hero", "owned"]);
    assert_eq!(heard(&mut forest, pet), [1]);
}

#[test]
fn the_hold_ends_with_the_mark_of_the_entity_that_moves() {
    let mut forest = zone();
    let hero = forest.world_mut().spawn(ears()).id();
    let pet = forest.world_mut().spawn((ears(), OwnedBy(hero))).id();
    advance_ms(&mut forest, 0);
    export(&mut forest, hero);
    for entity in [hero, pet] {
        send(&mut forest, entity, 1);
    }
    forest.world_mut().entity_mut(hero).remove::<InTransit>();
    advance_ms(&mut forest, 0);
    assert!(forest.world().get::<InTransit>(pet).is_none());
    for entity in [hero, pet] {
        assert_eq!(heard(&mut forest, entity), [1]);
    }
    let error = forest.world_mut().forget_entity(hero).err();
    assert_eq!(error, Some(MoveError::NotInTransit(hero)));
}

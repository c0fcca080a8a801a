//! Operations in an odd order, such as a new owner or a dead clock within one frame.

use crate::support::*;
use bevy_app::PreUpdate;
use bevy_due::{
    ArmedTimers, Clock, DespawnAfter, DueSystems, OnClock, Timer, TimerCancelled, prelude::*,
};
use bevy_ecs::prelude::*;

#[test]
fn an_entity_that_gets_a_living_owner_in_time_is_not_despawned() {
    let mut app = app();
    let [dead, alive] = [(); 2].map(|()| app.world_mut().spawn_empty().id());
    app.world_mut().despawn(dead);
    let timer = (OwnedBy(dead), Timer::after(ms(50)));
    let timer = app.world_mut().spawn(timer).id();
    let again = (OwnedBy(alive), Timer::after(ms(5)).keep_when_done());
    app.world_mut().entity_mut(timer).insert(again);
    for _ in 0..50 {
        advance_ms(&mut app, 5);
    }
    let is_alive = app.world().get_entity(timer).is_ok();
    assert!(is_alive, "a fixed step has run by now");
}

#[test]
fn a_pause_ends_if_its_clock_is_gone() {
    let mut app = app();
    let arena = app.world_mut().spawn(Clock::new()).id();
    let hero = (Tag("x"), OnClock::new(arena));
    let hero = app.world_mut().spawn(hero).id();
    app.world_mut().entity_mut(hero).pause_for(ms(100));
    let timer = Timer::after(ms(10)).on(ClockId::Virtual);
    app.world_mut().entity_mut(hero).insert(timer);
    advance_ms(&mut app, 5);
    app.world_mut().despawn(arena);
    advance_ms(&mut app, 0);
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["x"]);
}

#[test]
fn a_clone_of_an_entity_also_loses_a_component_for_a_while() {
    #[derive(Component, Clone)]
    struct Shield;

    let mut app = app();
    let hero = app.world_mut().spawn_empty().id();
    let mut entity = app.world_mut().entity_mut(hero);
    entity.insert_for(ms(20), Shield);
    advance_ms(&mut app, 10);
    let clone = app
        .world_mut()
        .entity_mut(hero)
        .clone_and_spawn_with_opt_out(|builder| _ = builder.linked_cloning(true));
    for _ in 0..5 {
        advance_ms(&mut app, 10);
    }
    assert!(app.world().get::<Shield>(hero).is_none());
    assert!(app.world().get::<Shield>(clone).is_none());
}

#[test]
fn cancel_timers_spares_a_timer_that_a_handler_moves_to_another_owner() {
    #[derive(Resource)]
    struct Moved(Entity, Entity);

    let mut app = app();
    let [owner, other] = [(); 2].map(|()| app.world_mut().spawn_empty().id());
    let timers = ["first", "moved"].map(|tag| {
        let timer = (Tag(tag), OwnedBy(owner), Timer::after(ms(10)));
        app.world_mut().spawn(timer).id()
    });
    app.insert_resource(Moved(timers[1], other));
    app.add_observer(
        |_: On<TimerCancelled>, moved: Res<Moved>, mut commands: Commands| {
            commands.entity(moved.0).insert(OwnedBy(moved.1));
        },
    );
    app.world_mut().entity_mut(owner).cancel_timers();
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["moved"]);
}

#[test]
fn a_pending_lifetime_counts_the_time_that_has_passed() {
    let mut app = app();
    let clock = app.world_mut().spawn(Clock::new()).id();
    let bullet = (OnClock::new(clock), DespawnAfter::new(ms(100)));
    let bullet = app.world_mut().spawn(bullet).id();
    let check = move |timers: ArmedTimers| assert_eq!(timers.lifetime(bullet), Some(ms(70)));
    app.add_systems(PreUpdate, check.before(DueSystems::Timers));
    advance_ms(&mut app, 30);
}

//! Promise 3: a timer never fires once it has been removed, replaced or despawned.

use crate::support::*;
use bevy_app::App;
use bevy_due::{
    CancelReason, Clock, ClockId, DueWorldExt, OnClock, Owned, OwnedBy, Timer, TimerCancelled,
    TimerFired,
};
use bevy_ecs::{message::Messages, prelude::*, resource::IsResource};

#[derive(Component)]
struct Victim(Entity);

/// Spawns two timers. The killer despawns the victim when it fires.
fn spawn_killer_and_victim(app: &mut App, killer: Timer, victim: Timer) {
    let victim = spawn(app, "victim", victim);
    app.world_mut()
        .spawn((Tag("killer"), Victim(victim), killer))
        .observe(
            |fired: On<TimerFired>, victims: Query<&Victim>, mut commands: Commands| {
                commands
                    .entity(victims.get(fired.entity()).unwrap().0)
                    .despawn();
            },
        );
}

/// Returns the cancellation messages of this frame and the previous one.
fn written(app: &App) -> Vec<(Entity, Entity, CancelReason)> {
    let messages = app.world().resource::<Messages<TimerCancelled>>();
    messages
        .get_cursor()
        .read(messages)
        .map(|c| (c.entity(), c.owner(), c.reason()))
        .collect()
}

/// Runs `panicking` and asserts that it panics.
fn assert_panics<R>(panicking: impl FnOnce() -> R) {
    let caught = std::panic::catch_unwind(core::panic::AssertUnwindSafe(panicking));
    assert!(caught.is_err());
}

#[test]
fn a_cancelled_timer_does_not_fire_later_in_the_same_run() {
    let mut app = app();
    spawn_killer_and_victim(&mut app, Timer::after(ms(10)), Timer::after(ms(20)));
    advance_ms(&mut app, 100);
    assert_eq!(
        fired(&mut app),
        ["killer"],
        "should not fire after it was cancelled, even in the same frame"
    );
}

#[test]
fn cancelling_takes_effect_between_two_repeats_in_one_frame() {
    let mut app = app();
    spawn_killer_and_victim(&mut app, Timer::after(ms(35)), Timer::every(ms(10)));
    advance_ms(&mut app, 100);
    assert_eq!(fired(&mut app), ["victim", "victim", "victim", "killer"]);
}

#[test]
fn cancelling_takes_effect_between_equal_deadlines() {
    let mut app = app();
    let a = spawn(&mut app, "a", Timer::after(ms(10)));
    let b = spawn(&mut app, "b", Timer::after(ms(10)));
    app.add_observer(move |fired: On<TimerFired>, mut commands: Commands| {
        commands
            .entity(if fired.entity() == a { b } else { a })
            .remove::<Timer>();
    });
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["a"]);
}

#[test]
fn a_timer_that_cancels_itself_does_not_repeat_in_a_long_frame() {
    let mut app = app();
    let entity = spawn(&mut app, "x", Timer::every(ms(10)));
    app.add_observer(|fired: On<TimerFired>, mut commands: Commands| {
        if fired.count() == 2 {
            commands.entity(fired.entity()).remove::<Timer>();
        }
    });
    advance_ms(&mut app, 100);
    assert_eq!(fired_at(&mut app), [("x", 10), ("x", 20)]);
    assert_eq!(cancelled(&mut app), [(entity, CancelReason::Removed)]);
}

#[test]
fn a_timer_can_be_cancelled_in_the_frame_that_armed_it() {
    let mut app = app();
    let entity = spawn(&mut app, "x", Timer::after(ms(0)));
    app.world_mut().despawn(entity);
    advance_ms(&mut app, 10);
    assert!(
        fired(&mut app).is_empty(),
        "should not fire after it was cancelled"
    );
    assert_eq!(cancelled(&mut app), [(entity, CancelReason::Despawned)]);
}

#[test]
fn cancelling_twice_is_harmless() {
    let mut app = app();
    let entity = spawn(&mut app, "x", Timer::after(ms(10)));
    app.world_mut()
        .entity_mut(entity)
        .remove::<Timer>()
        .remove::<Timer>();
    app.world_mut().despawn(entity);
    advance_ms(&mut app, 10);
    assert!(fired(&mut app).is_empty());
    assert_eq!(
        cancelled(&mut app),
        [(entity, CancelReason::Removed)],
        "should be reported once"
    );
}

#[test]
fn replacing_cancels_the_old_timer() {
    let mut app = app();
    let entity = spawn(&mut app, "x", Timer::every(ms(10)));
    advance_ms(&mut app, 10);
    app.world_mut()
        .entity_mut(entity)
        .insert(Timer::after(ms(15)));
    assert_eq!(cancelled(&mut app), [(entity, CancelReason::Replaced)]);
    advance_ms(&mut app, 100);
    assert_eq!(fired_at(&mut app), [("x", 10), ("x", 25)]);
    assert!(
        cancelled(&mut app).is_empty(),
        "finishing is not a cancellation"
    );
}

#[test]
fn every_way_of_removing_the_component_cancels() {
    let removals: [fn(EntityWorldMut); 5] = [
        |mut entity| {
            entity.remove::<Timer>();
        },
        |mut entity| {
            entity.clear();
        },
        |mut entity| {
            entity.retain::<Tag>();
        },
        |mut entity| {
            assert!(entity.take::<Timer>().is_some());
        },
        |mut entity| {
            entity.remove_with_requires::<Timer>();
        },
    ];
    for removal in removals {
        let mut app = app();
        let entity = spawn(&mut app, "x", Timer::after(ms(10)));
        removal(app.world_mut().entity_mut(entity));
        assert_eq!(cancelled(&mut app), [(entity, CancelReason::Removed)]);
        advance_ms(&mut app, 10);
        assert!(fired(&mut app).is_empty());
    }
}

#[test]
fn timers_die_with_their_owner() {
    let mut app = app();
    let boss = app
        .world_mut()
        .spawn(related!(Owned[
            (Tag("enrage"), Timer::after(ms(10))),
            (Tag("summon"), Timer::every(ms(5))),
        ]))
        .id();
    let timers: Vec<Entity> = app.world().get::<Owned>(boss).unwrap().iter().collect();
    app.world_mut().despawn(boss);
    assert_eq!(
        cancelled(&mut app),
        [
            (timers[0], CancelReason::OwnerGone),
            (timers[1], CancelReason::OwnerGone)
        ]
    );
    advance_ms(&mut app, 10);
    assert!(fired(&mut app).is_empty());
}

#[test]
fn a_cancellation_names_the_owner_and_the_clock_of_this_moment() {
    let mut app = unobserved_app();
    let clock = app.world_mut().spawn(Clock::new()).id();
    let boss = app.world_mut().spawn_empty().id();
    let mut expected = Vec::new();
    // The second round meets entities that look like those of the first.
    for _ in 0..2 {
        let world = app.world_mut();
        let timer = || Timer::after(ms(10));
        let alone = world.spawn(timer()).id();
        let real = world.spawn(timer().on(ClockId::Real)).id();
        let [owned, disowned] = [(); 2].map(|()| world.spawn((OwnedBy(boss), timer())).id());
        world.entity_mut(disowned).remove::<OwnedBy>();
        let own = world.spawn((OnClock::new(clock), timer())).id();
        let later = world.spawn(timer()).id();
        advance_ms(&mut app, 1);
        app.world_mut().entity_mut(later).insert(OwnedBy(boss));
        for (entity, owner, clock) in [
            (alone, alone, ClockId::Virtual),
            (real, real, ClockId::Real),
            (owned, boss, ClockId::Virtual),
            (disowned, disowned, ClockId::Virtual),
            (own, own, ClockId::Own(clock)),
            (later, boss, ClockId::Virtual),
        ] {
            app.world_mut().despawn(entity);
            expected.push((entity, owner, clock, CancelReason::Despawned));
        }
    }
    advance_ms(&mut app, 1);
    let messages = app.world().resource::<Messages<TimerCancelled>>();
    let mut cursor = messages.get_cursor();
    let written = cursor.read(messages);
    let written = written.map(|c| (c.entity(), c.owner(), c.clock(), c.reason()));
    assert_eq!(written.collect::<Vec<_>>(), expected);
}

#[test]
fn modifying_the_component_replaces_the_timer() {
    let mut app = app();
    let entity = spawn(&mut app, "x", Timer::after(ms(10)));
    let world = app.world_mut();
    let replaced = world.modify_component(entity, |timer: &mut Timer| {
        core::mem::replace(timer, Timer::after(ms(20)))
    });
    assert!(replaced.is_ok());
    assert_eq!(cancelled(&mut app), [(entity, CancelReason::Replaced)]);
    advance_ms(&mut app, 20);
    assert_eq!(fired_at(&mut app), [("x", 20)]);
}

#[test]
fn a_panic_during_a_replacement_loses_no_cancellation() {
    let mut app = app();
    let a = spawn(&mut app, "a", Timer::after(ms(10)));
    let b = spawn(&mut app, "b", Timer::after(ms(10)));
    assert_panics(|| {
        let panic = |_: &mut Timer| panic!("during the replacement");
        app.world_mut().modify_component(a, panic)
    });
    app.world_mut().entity_mut(b).remove::<Timer>();
    assert_eq!(
        cancelled(&mut app),
        [(a, CancelReason::Replaced), (b, CancelReason::Removed)]
    );
}

#[test]
fn a_cancellation_interrupted_by_a_panic_is_reported_in_the_next_run() {
    let mut app = app();
    let a = spawn(&mut app, "a", Timer::after(ms(10)));
    assert_panics(|| {
        let panic = |_: &mut Timer| panic!("during the replacement");
        app.world_mut().modify_component(a, panic)
    });
    advance_ms(&mut app, 20);
    assert_eq!(cancelled(&mut app), [(a, CancelReason::Replaced)]);
    assert_eq!(written(&app), [(a, a, CancelReason::Replaced)]);
    assert!(
        fired(&mut app).is_empty(),
        "should not fire after it was cancelled"
    );
}

#[test]
fn a_panic_in_another_command_loses_no_cancellation() {
    let mut app = app();
    let a = spawn(&mut app, "a", Timer::after(ms(10)));
    assert_panics(|| {
        app.world_mut()
            .commands()
            .queue(|_: &mut World| panic!("before the cancellation is reported"));
        app.world_mut().entity_mut(a).remove::<Timer>();
    });
    advance_ms(&mut app, 1);
    assert_eq!(written(&app), [(a, a, CancelReason::Removed)]);
}

#[test]
fn a_removal_is_not_a_replacement_even_if_a_timer_is_inserted_next() {
    let mut app = app();
    let a = spawn(&mut app, "a", Timer::after(ms(10)));
    let world = app.world_mut();
    world.commands().entity(a).insert(Timer::after(ms(20)));
    world.entity_mut(a).remove::<Timer>();
    assert_eq!(cancelled(&mut app), [(a, CancelReason::Removed)]);

    app.add_observer(
        |discarded: On<Discard<Timer>>, mut done: Local<bool>, mut commands: Commands| {
            if !*done {
                *done = true;
                commands
                    .entity(discarded.entity)
                    .insert(Timer::after(ms(30)));
            }
        },
    );
    app.world_mut().entity_mut(a).remove::<Timer>();
    assert_eq!(cancelled(&mut app), [(a, CancelReason::Removed)]);
    advance_ms(&mut app, 30);
    assert_eq!(fired_at(&mut app), [("a", 30)]);
}

#[test]
fn cancellations_are_written_in_the_order_they_happen() {
    let mut app = app();
    let a = spawn(&mut app, "a", Timer::after(ms(10)));
    let b = spawn(&mut app, "b", Timer::after(ms(10)));
    let world = app.world_mut();
    world.commands().entity(b).despawn();
    world.entity_mut(a).remove::<Timer>();
    advance_ms(&mut app, 1);
    assert_eq!(
        written(&app),
        [
            (a, a, CancelReason::Removed),
            (b, b, CancelReason::Despawned)
        ]
    );
}

#[test]
fn batch_insertion_replaces_timers() {
    let mut app = app();
    let a = spawn(&mut app, "a", Timer::after(ms(10)));
    let b = app.world_mut().spawn(Tag("b")).id();
    app.world_mut()
        .insert_batch([a, b].map(|entity| (entity, Timer::after(ms(20)))));
    app.world_mut()
        .insert_batch_if_new([a, b].map(|entity| (entity, Timer::after(ms(5)))));
    app.world_mut().flush();
    assert_eq!(cancelled(&mut app), [(a, CancelReason::Replaced)]);
    advance_ms(&mut app, 20);
    assert_eq!(fired(&mut app), ["a", "b"]);
}

#[test]
fn an_entity_can_observe_the_cancellation_from_its_own_despawn() {
    #[derive(Resource, Default)]
    struct Observed(Vec<CancelReason>);

    let mut app = app();
    app.init_resource::<Observed>();
    let entity = app
        .world_mut()
        .spawn(Timer::after(ms(10)))
        .observe(
            |cancelled: On<TimerCancelled>, mut observed: ResMut<Observed>| {
                observed.0.push(cancelled.reason());
            },
        )
        .id();
    app.world_mut().despawn(entity);
    assert_eq!(
        app.world().resource::<Observed>().0,
        [CancelReason::Despawned]
    );
}

#[test]
fn cancellations_are_written_as_messages_in_the_next_run() {
    let mut app = app();
    let owner = app.world_mut().spawn_empty().id();
    let entity = app
        .world_mut()
        .spawn((OwnedBy(owner), Timer::after(ms(10))))
        .id();
    app.world_mut().entity_mut(entity).remove::<Timer>();
    advance_ms(&mut app, 1);
    assert_eq!(written(&app), [(entity, owner, CancelReason::Removed)]);
}

/// A resource is a component of its own entity, also one of this crate.
#[test]
fn a_timer_on_the_entity_of_a_resource_can_be_cancelled() {
    let mut app = app();
    let mut resources = app.world_mut().query_filtered::<Entity, With<IsResource>>();
    let resources: Vec<Entity> = resources.iter(app.world()).collect();
    for is_new in [true, false] {
        for &resource in &resources {
            let mut resource = app.world_mut().entity_mut(resource);
            resource.insert(Timer::after(ms(20)));
        }
        if !is_new {
            advance_ms(&mut app, 10);
        }
        for &resource in &resources {
            let mut resource = app.world_mut().entity_mut(resource);
            resource.insert(Timer::after(ms(30)));
            resource.remove::<Timer>();
        }
        let cancelled = cancelled(&mut app);
        for reason in [CancelReason::Replaced, CancelReason::Removed] {
            let cancelled = cancelled.iter().filter(|(_, it)| *it == reason);
            assert_eq!(cancelled.count(), resources.len(), "{reason:?}");
        }
        advance_ms(&mut app, 40);
        assert_eq!(firings(&mut app), []);
    }
    let timers = app.world_mut().with_timers(|timers| timers.count());
    assert_eq!(timers, 0);
}

//! What a component framework for servers can do (entity, component, system), row by row of the
//! design.

mod support;

use core::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use std::sync::Arc;

use allocation_counter::measure;
use bevy_app::{App, Update};
use bevy_due::{Timer, TimerAction, UpdateComponent, UpdateContext, prelude::*};
use bevy_ecs::{
    lifecycle::Remove,
    prelude::*,
    schedule::{Schedules, SingleThreadedExecutor},
    system::SystemState,
};
use bevy_time::{Fixed, Time};
use support::{updates::*, *};

/// Collections of like components; added and removed are cached and swapped next frame. Here what is
/// added waits for the next frame, and what is removed is not called from that moment on.
#[test]
fn what_is_added_in_a_frame_takes_part_in_the_next_one() {
    let mut app = update_app();
    let b = app.world_mut().spawn_empty().id();
    app.world_mut().spawn(doing("a", move |world, a| {
        world.spawn(say("new"));
        world.spawn((Tag("new timer"), Timer::after(ms(0))));
        world.entity_mut(b).remove::<UpdateComponent>();
        world.entity_mut(a).remove::<UpdateComponent>();
    }));
    app.world_mut().entity_mut(b).insert(say("b"));
    app.world_mut().spawn(say("c"));
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "c"], "removed at once");
    assert!(fired(&mut app).is_empty());
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["c", "new"], "added with the swap");
    assert_eq!(fired(&mut app), ["new timer"]);
}

/// Update component holds a function; added or removed at run time, on any entity.
#[test]
fn any_entity_gets_and_loses_a_function_at_run_time() {
    let mut app = update_app();
    let timer = spawn(&mut app, "a timer", Timer::every(ms(10)));
    let clock = app.world_mut().spawn(Clock::new()).id();
    let plain = app.world_mut().spawn_empty().id();
    advance_ms(&mut app, 5);
    for (entity, what) in [(timer, "timer"), (clock, "clock"), (plain, "plain")] {
        app.world_mut().entity_mut(entity).insert(say(what));
    }
    advance_ms(&mut app, 5);
    assert_eq!(called(&mut app), ["timer", "clock", "plain"]);
    assert_eq!(fired(&mut app), ["a timer"]);

    app.world_mut().entity_mut(clock).insert(say("another"));
    app.world_mut()
        .entity_mut(timer)
        .remove::<UpdateComponent>();
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["plain", "another"]);
    assert_eq!(fired(&mut app), ["a timer"], "it has lost only that");
}

/// Pools: objects reused, no lock. Here that is: nothing is allocated in steady state, though timers
/// and functions come and go in every frame.
#[test]
fn what_comes_and_goes_in_every_frame_allocates_nothing() {
    #[derive(Component)]
    struct Churn(UpdateComponent);

    let mut app = unobserved_app();
    // Bevy forgets messages after a step of the fixed schedule.
    app.insert_resource(Time::<Fixed>::from_duration(ms(10)));
    let calls = Arc::new(AtomicU64::new(0));
    let counter = calls.clone();
    let update = UpdateComponent::new(move |_: UpdateContext| {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    for nth in 0..20 {
        let update = update.clone().with_priority(nth % 5);
        app.world_mut().spawn(Churn(update));
    }
    app.add_systems(
        Update,
        |churning: Query<(Entity, &Churn, Has<UpdateComponent>)>, mut commands: Commands| {
            for (entity, Churn(update), is_in) in &churning {
                match is_in {
                    true => commands.entity(entity).remove::<(UpdateComponent, Timer)>(),
                    false => commands
                        .entity(entity)
                        .insert((update.clone(), Timer::every(ms(30)))),
                };
                commands.spawn((Timer::after(ms(10)), TimerAction::despawn()));
            }
        },
    );
    for (_, schedule) in app.world_mut().resource_mut::<Schedules>().iter_mut() {
        schedule.set_executor(SingleThreadedExecutor::new());
    }
    let run = |app: &mut App, frames| (0..frames).for_each(|_| advance_ms(app, 10));
    run(&mut app, 100);
    let before = calls.load(Ordering::Relaxed);
    let frames = measure(|| run(&mut app, 100));
    assert_eq!(calls.load(Ordering::Relaxed) - before, 10 * 100);
    assert_eq!(frames.count_total, 0, "{frames:?}");
}

/// What the framework's heap of timers has for one call.
fn add(
    app: &mut App,
    owner: Entity,
    total: Option<u32>,
    interval: Duration,
    at_once: bool,
    first_delay: Option<Duration>,
    function: &'static str,
) -> Entity {
    let mut timer = Timer::every(interval);
    if let Some(total) = total {
        timer = timer.times(total);
    }
    if at_once {
        timer = timer.immediately();
    }
    if let Some(first_delay) = first_delay {
        timer = timer.first_after(first_delay);
    }
    let call = TimerAction::call(move |world: &mut World, _: TimerFired| note(world, function));
    app.world_mut().spawn((TimerOf(owner), timer, call)).id()
}

/// Timer heap: add(total, interval, at once?, first delay, function).
#[test]
fn a_timer_has_a_total_an_interval_a_first_delay_or_none_and_a_function() {
    let mut app = update_app();
    let owner = app.world_mut().spawn_empty().id();
    let mut add = |total, at_once, first_delay, function| {
        add(
            &mut app,
            owner,
            total,
            ms(20),
            at_once,
            first_delay,
            function,
        );
    };
    add(Some(2), false, None, "twice");
    add(None, false, None, "for ever");
    add(Some(2), true, None, "at once");
    add(Some(1), false, Some(ms(10)), "delayed");
    let expected: [&[&str]; 6] = [
        &["at once"],
        &["delayed"],
        &["twice", "for ever", "at once"],
        &[],
        &["twice", "for ever"],
        &[],
    ];
    for (nth, expected) in expected.into_iter().enumerate() {
        advance_ms(&mut app, if nth == 0 { 0 } else { 10 });
        assert_eq!(called(&mut app), expected, "after {} ms", 10 * nth);
    }
}

/// Remove a list.
#[test]
fn a_list_of_timers_can_be_removed() {
    let mut app = update_app();
    let owner = app.world_mut().spawn_empty().id();
    let mut add = |function| add(&mut app, owner, None, ms(10), false, None, function);
    let list = [add("a"), add("b"), add("c")];
    let d = add("d");
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "b", "c", "d"]);
    let mut commands = app.world_mut().commands();
    for timer in list {
        commands.entity(timer).despawn();
    }
    app.world_mut().flush();
    assert_eq!(app.world().get::<Timers>(owner).unwrap()[..], [d]);
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["d"]);
}

/// Timers die with their component: with their entity by themselves, and with a component of it by
/// an observer.
#[test]
fn timers_and_functions_die_with_their_component() {
    #[derive(Component)]
    struct Connection;

    fn close(closed: On<Remove<Connection>>, mut commands: Commands) {
        if closed.trigger().new_archetype.is_some() {
            let mut entity = commands.entity(closed.entity);
            entity.cancel_timers().despawn_related::<Updates>();
        }
    }

    let mut app = update_app();
    app.add_observer(close);
    let entities = [1, 2].map(|_| {
        let entity = app.world_mut().spawn(Connection).id();
        add(&mut app, entity, None, ms(10), false, None, "ping");
        app.world_mut().spawn((UpdateOf(entity), say("read")));
        entity
    });
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["ping", "ping", "read", "read"]);
    let [kept, gone] = entities;
    app.world_mut().entity_mut(kept).remove::<Connection>();
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["ping", "read"], "those of the other");
    assert!(app.world().get_entity(kept).is_ok());
    app.world_mut().despawn(gone);
    advance_ms(&mut app, 10);
    assert!(called(&mut app).is_empty());
}

/// See all live objects of a thread.
#[test]
fn all_timers_and_functions_that_live_can_be_seen() {
    let mut app = update_app();
    let owner = app.world_mut().spawn_empty().id();
    let ping = add(&mut app, owner, None, ms(10), false, None, "ping");
    app.world_mut().entity_mut(ping).insert(Name::new("ping"));
    for (name, priority) in [("read", 1), ("think", 2)] {
        let update = say(name).with_priority(priority);
        app.world_mut()
            .spawn((Name::new(name), UpdateOf(owner), update));
    }
    let mut timers = SystemState::<ArmedTimers>::new(app.world_mut());
    let mut updates = app.world_mut().query::<(&Name, &UpdateComponent)>();
    for frame in 0..2 {
        let timers = timers.get(app.world()).unwrap();
        assert_eq!(timers.count(), 1);
        let listing = timers.listing().to_string();
        assert!(listing.contains("ping"), "{listing}");
        let mut seen: Vec<_> = updates
            .iter(app.world())
            .map(|(name, update)| (update.priority(), name.as_str()))
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, [(1, "read"), (2, "think")], "frame {frame}");
        advance_ms(&mut app, 10);
    }
    app.world_mut().despawn(owner);
    assert_eq!(timers.get(app.world()).unwrap().count(), 0);
    assert_eq!(updates.iter(app.world()).count(), 0);
}

/// Poll in update instead of a timer where that is simpler.
#[test]
fn what_nobody_tells_of_can_be_polled() {
    /// What arrives on another thread.
    #[derive(Component, Clone, Default)]
    struct Socket(Arc<AtomicU64>);

    #[derive(Component)]
    struct Received(u64);

    let poll = UpdateComponent::new(|mut me: UpdateContext| {
        let received = me
            .entity
            .get::<Socket>()
            .unwrap()
            .0
            .swap(0, Ordering::Relaxed);
        if received > 0 {
            let mut socket = me.commands.entity(me.entity.id());
            socket
                .insert(Received(received))
                .remove::<UpdateComponent>();
        }
    });
    let mut app = update_app();
    let socket = Socket::default();
    let entity = app.world_mut().spawn((socket.clone(), poll)).id();
    advance_ms(&mut app, 10);
    assert!(!app.world().entity(entity).contains::<Received>());
    std::thread::spawn(move || socket.0.store(7, Ordering::Relaxed))
        .join()
        .unwrap();
    advance_ms(&mut app, 10);
    assert_eq!(app.world().get::<Received>(entity).unwrap().0, 7);
    assert!(!app.world().entity(entity).contains::<UpdateComponent>());
}

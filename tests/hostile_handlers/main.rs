//! Handlers that panic, nest runs, and replace or remove the timers, owners and clocks that fire.

#[path = "../support/mod.rs"]
mod support;

use bevy_app::{App, FixedPreUpdate};
use bevy_due::{
    ArmedTimers, CancelReason, ClockId, Clocks, DueEntityWorldMutExt, OwnedBy, Timer, TimerAction,
    TimerCancelled, TimerFired, prelude::*,
};
use bevy_ecs::{
    error::{FallbackErrorHandler, ignore},
    lifecycle::{Discard, Insert, Remove},
    message::Messages,
    prelude::*,
    system::SystemState,
};
use bevy_time::{Fixed, Time};
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use support::{updates::*, *};

fn now(app: &mut App, clock: ClockId) -> Duration {
    let mut state = SystemState::<Clocks>::new(app.world_mut());
    state
        .get(app.world_mut())
        .unwrap()
        .get(clock)
        .unwrap()
        .now()
}

fn clock_entity(app: &mut App, clock: ClockId) -> Entity {
    let mut state = SystemState::<Clocks>::new(app.world_mut());
    state.get(app.world_mut()).unwrap().entity(clock).unwrap()
}

fn is_armed(world: &mut World, entity: Entity) -> bool {
    let mut state = SystemState::<ArmedTimers>::new(world);
    state.get(world).unwrap().get(entity).is_some()
}

fn written(app: &App) -> Vec<(Entity, CancelReason)> {
    let messages = app.world().resource::<Messages<TimerCancelled>>();
    let mut cursor = messages.get_cursor();
    cursor
        .read(messages)
        .map(|c| (c.entity, c.reason))
        .collect()
}

#[test]
fn a_built_in_clock_inserted_again_does_not_jump() {
    let mut app = app();
    advance_ms(&mut app, 1000);
    let entity = clock_entity(&mut app, ClockId::Virtual);
    let clock = *app.world().get::<Clock>(entity).unwrap();
    app.world_mut().entity_mut(entity).insert(clock);
    assert_eq!(now(&mut app, ClockId::Virtual), ms(1000));
    advance_ms(&mut app, 10);
    assert_eq!(now(&mut app, ClockId::Virtual), ms(1010));
}

#[test]
fn a_built_in_clock_inserted_again_gives_callbacks_the_time_of_one_frame() {
    let mut app = app();
    let entity = app.world_mut().spawn((Ticks::default(), note_time())).id();
    advance_ms(&mut app, 1000);
    let clock = clock_entity(&mut app, ClockId::Virtual);
    let copy = *app.world().get::<Clock>(clock).unwrap();
    app.world_mut().entity_mut(clock).insert(copy);
    advance_ms(&mut app, 10);
    assert_eq!(times(&mut app, entity), [(1000, 1000), (10, 1010)]);
}

#[test]
fn a_timer_inserted_with_a_built_in_clock_stays() {
    let mut app = app();
    let entity = clock_entity(&mut app, ClockId::Virtual);
    let timer = Timer::after(ms(10)).on(ClockId::Virtual);
    app.world_mut()
        .entity_mut(entity)
        .insert((Clock::new(), timer));
    assert_eq!(cancelled(&mut app), []);
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app).len(), 1);
}

#[test]
fn a_fixed_step_inside_a_run_lets_nobody_join_that_run() {
    let mut app = update_app();
    app.world_mut()
        .resource_mut::<Time<Fixed>>()
        .set_timestep(ms(1000));
    let act = TimerAction::call(|world: &mut World, _| {
        world.spawn(say("new"));
        world.run_schedule(FixedPreUpdate);
    });
    app.world_mut().spawn((Timer::after(ms(10)), act));
    advance_ms(&mut app, 10);
    assert!(called(&mut app).is_empty(), "takes part in the next run");
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["new"]);
}

#[test]
fn a_timer_kept_by_a_handler_keeps_its_entity_in_a_fast_forward() {
    let mut app = app();
    let owner = app.world_mut().spawn_empty().id();
    let entity = app
        .world_mut()
        .spawn((OwnedBy(owner), Timer::after(ms(10))))
        .id();
    app.add_observer(move |fired: On<TimerFired>, mut commands: Commands| {
        if fired.deadline() == ms(10) {
            let last = Timer::after(ms(10)).keep_when_done();
            commands.entity(entity).insert(last);
        }
    });
    app.world_mut()
        .fast_forward(ClockId::Virtual, ms(50))
        .unwrap();
    assert_eq!(firings(&mut app).len(), 2);
    advance_ms(&mut app, 0);
    assert!(app.world().get_entity(entity).is_ok(), "was to be kept");
}

#[test]
fn a_timer_removed_after_a_handler_replaced_it_leaves_its_entity() {
    let mut app = app();
    let owner = app.world_mut().spawn_empty().id();
    let entity = app
        .world_mut()
        .spawn((OwnedBy(owner), Timer::after(ms(10))))
        .id();
    app.add_observer(move |_: On<TimerFired>, mut commands: Commands| {
        commands
            .entity(entity)
            .insert(Timer::after(ms(10)).keep_when_done());
    });
    advance_ms(&mut app, 10);
    app.world_mut().entity_mut(entity).remove::<Timer>();
    advance_ms(&mut app, 0);
    assert!(
        app.world().get_entity(entity).is_ok(),
        "removing a timer keeps its entity"
    );
}

#[test]
fn event_and_message_agree_when_a_run_comes_between() {
    let mut app = app();
    let x = spawn(&mut app, "x", Timer::after(ms(10)));
    app.add_observer(|_: On<Discard<Timer>>, mut commands: Commands| {
        commands.queue(|world: &mut World| {
            _ = world.fast_forward(ClockId::Frames, ms(0));
        });
    });
    app.world_mut().entity_mut(x).remove::<Timer>();
    assert_eq!(written(&app), [(x, CancelReason::Removed)]);
    assert_eq!(cancelled(&mut app), [(x, CancelReason::Removed)]);
}

#[test]
fn a_burst_that_a_panic_ended_does_not_shorten_the_next() {
    let mut app = app_with(burst_limit(10));
    app.insert_resource(FallbackErrorHandler(ignore));
    spawn(&mut app, "x", Timer::every(ms(10)));
    app.add_observer(|fired: On<TimerFired>| assert!(fired.count() != 5));
    advance_ms(&mut app, 100);
    firings(&mut app);
    advance_ms(&mut app, 50);
    let firings = firings(&mut app);
    assert_eq!(firings.len(), 10);
    assert!(firings.iter().all(|fired| fired.missed() == 0));
}

#[test]
fn a_panic_while_timers_of_a_clock_end_leaves_no_timer_behind() {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(ignore));
    let clock = app.world_mut().spawn(Clock::new()).id();
    let timers = ["a", "b", "c"].map(|tag| spawn(&mut app, tag, Timer::after(ms(10)).on(clock)));
    app.add_observer(move |removed: On<Remove<Timer>>| assert!(removed.entity != timers[0]));
    app.world_mut().despawn(clock);
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 10);
    assert_eq!(cancelled(&mut app).len(), 3);
    let left = timers[1..]
        .iter()
        .filter(|&&timer| app.world().get::<Timer>(timer).is_some());
    assert_eq!(left.count(), 0, "a Timer that is not armed");
}

#[test]
fn a_callback_of_a_dead_owner_is_not_called_in_fixed_steps() {
    let mut app = update_app();
    app.world_mut()
        .resource_mut::<Time<Fixed>>()
        .set_timestep(ms(10));
    let owner = app.world_mut().spawn_empty().id();
    app.world_mut().despawn(owner);
    app.world_mut().spawn((OwnedBy(owner), say("frame")));
    app.world_mut()
        .spawn((OwnedBy(owner), say("fixed").on(ClockId::Fixed)));
    app.add_systems(
        bevy_app::FixedUpdate,
        move |mut commands: Commands, mut done: Local<bool>| {
            if !core::mem::replace(&mut *done, true) {
                commands.spawn((OwnedBy(owner), say("in a step").on(ClockId::Fixed)));
            }
        },
    );
    advance_ms(&mut app, 30);
    advance_ms(&mut app, 30);
    assert!(called(&mut app).is_empty());
}

#[test]
fn a_clock_that_owns_its_timers_is_their_owner_first() {
    let mut app = app();
    let clock = app.world_mut().spawn(Clock::new()).id();
    let x = app
        .world_mut()
        .spawn((OwnedBy(clock), Timer::after(ms(10))))
        .id();
    app.world_mut().despawn(clock);
    assert_eq!(cancelled(&mut app), [(x, CancelReason::OwnerGone)]);
}

#[test]
fn dead_owner_is_named() {
    #[derive(Resource, Default)]
    struct Owners(Vec<Entity>);
    let mut app = app();
    app.init_resource::<Owners>().add_observer(
        |cancelled: On<TimerCancelled>, mut owners: ResMut<Owners>| owners.0.push(cancelled.owner),
    );
    let owner = app.world_mut().spawn_empty().id();
    app.world_mut().despawn(owner);
    let x = app
        .world_mut()
        .spawn((OwnedBy(owner), Timer::after(ms(10))))
        .id();
    assert_eq!(cancelled(&mut app), [(x, CancelReason::OwnerGone)]);
    assert_eq!(app.world().resource::<Owners>().0, [owner]);
}

#[test]
fn a_report_keeps_its_reason_when_the_new_timer_is_refused() {
    let mut app = app();
    let [a, dead] = [(); 2].map(|()| app.world_mut().spawn(Clock::new()).id());
    app.world_mut().despawn(dead);
    let x = app
        .world_mut()
        .spawn((Timer::after(ms(10)), bevy_due::OnClock::new(a)))
        .id();
    app.insert_resource(FallbackErrorHandler(ignore));
    app.world_mut()
        .entity_mut(x)
        .insert(bevy_due::OnClock::new(dead));
    app.world_mut()
        .modify_component(x, |_: &mut Timer| ())
        .unwrap();
    app.world_mut().flush();
    advance_ms(&mut app, 10);
    let both = [(x, CancelReason::Replaced), (x, CancelReason::ClockGone)];
    assert_eq!(cancelled(&mut app), both);
    assert_eq!(written(&app), both);
}

mod fuzz;

mod mail;

fn last_run(app: &mut App) -> (u64, u64, u64, u64) {
    let mut state = SystemState::<ArmedTimers>::new(app.world_mut());
    let stats = state.get(app.world_mut()).unwrap().last_run();
    (stats.armed, stats.fired, stats.missed, stats.cancelled)
}

#[test]
fn the_stats_of_a_run_that_panics_are_its_own() {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(ignore));
    spawn(&mut app, "x", Timer::every(ms(10)));
    app.add_observer(|fired: On<TimerFired>| assert!(fired.count() != 3));
    advance_ms(&mut app, 10);
    assert_eq!(last_run(&mut app), (1, 1, 0, 0));
    let y = spawn(&mut app, "y", Timer::after(ms(100)));
    app.world_mut().despawn(y);
    advance_ms(&mut app, 50);
    assert_eq!(last_run(&mut app), (0, 2, 0, 1));
}

#[test]
fn stats_of_nested_and_long_runs() {
    let mut app = app_with(burst_limit(3));
    spawn(&mut app, "x", Timer::every(ms(10)));
    let gone = spawn(&mut app, "gone", Timer::every(ms(10)));
    let act = TimerAction::call(|world: &mut World, _| world.run_schedule(FixedPreUpdate));
    app.world_mut().spawn((Timer::after(ms(15)), act));
    app.world_mut().entity_mut(gone).remove::<Timer>();
    advance_ms(&mut app, 100);
    assert_eq!(last_run(&mut app), (2, 4, 7, 1));
    advance_ms(&mut app, 0);
    assert_eq!(last_run(&mut app), (0, 0, 0, 0));
}

#[test]
fn a_burst_goes_on_after_a_pause_of_the_clock() {
    for missed in [
        bevy_due::MissedTicks::Burst,
        bevy_due::MissedTicks::Skip,
        bevy_due::MissedTicks::Delay,
    ] {
        let mut app = app_with(burst_limit(4));
        let clock = app.world_mut().spawn(Clock::new()).id();
        spawn(
            &mut app,
            "x",
            Timer::every(ms(10))
                .times(8)
                .with_missed_ticks(missed)
                .on(clock),
        );
        app.add_observer(
            move |fired: On<TimerFired>, mut clocks: Query<&mut Clock>| {
                if fired.count() == 3 {
                    clocks.get_mut(clock).unwrap().pause();
                }
            },
        );
        advance_ms(&mut app, 60);
        advance_ms(&mut app, 60);
        app.world_mut().get_mut::<Clock>(clock).unwrap().unpause();
        let before = firings(&mut app).len();
        advance_ms(&mut app, 0);
        let after = firings(&mut app);
        if missed == bevy_due::MissedTicks::Burst {
            assert_eq!((before, after.len()), (3, 3), "{missed:?}");
            assert!(after.iter().all(|fired| fired.missed() == 0));
        }
        for _ in 0..10 {
            advance_ms(&mut app, 10);
            let c = app.world_mut().get_mut::<Clock>(clock);
            c.unwrap().unpause();
        }
        let left = firings(&mut app);
        assert_eq!(before + after.len() + left.len(), 8, "{missed:?}");
    }
}

#[test]
fn callbacks_inserted_in_a_run_take_part_in_the_next() {
    let mut app = update_app();
    app.world_mut()
        .resource_mut::<Time<Fixed>>()
        .set_timestep(ms(10));
    app.world_mut().spawn((
        Timer::after(ms(10)),
        TimerAction::call(|world: &mut World, _| {
            world.spawn(say("by timer"));
            world.spawn(say("fixed by timer").on(ClockId::Fixed));
        }),
    ));
    app.world_mut().spawn(doing("first", |world, me| {
        world.spawn(say("by callback").with_priority(5));
        world.spawn(say("fixed by callback").on(ClockId::Fixed));
        world.despawn(me);
    }));
    app.world_mut().spawn(
        doing("fixed", |world, me| {
            world.spawn(say("by fixed"));
            world.spawn(say("fixed by fixed").on(ClockId::Fixed));
            world.despawn(me);
        })
        .on(ClockId::Fixed),
    );
    advance_ms(&mut app, 10);
    assert_eq!(
        called(&mut app),
        ["first", "fixed", "fixed by timer", "fixed by callback"]
    );
    advance_ms(&mut app, 10);
    assert_eq!(
        called(&mut app),
        [
            "by timer",
            "by fixed",
            "by callback",
            "fixed by timer",
            "fixed by callback",
            "fixed by fixed"
        ]
    );
}

#[test]
fn updates_paused_during_the_run_stop_there() {
    let mut app = update_app();
    app.world_mut()
        .spawn(doing("a", |world, _| pause_updates(world, Some(3))).with_priority(1));
    app.world_mut().spawn(say("b").with_priority(2));
    app.world_mut().spawn(say("c").with_priority(3));
    app.world_mut()
        .spawn(doing("d", |world, _| pause_updates(world, None)).with_priority(2));
    app.world_mut().spawn(say("e").with_priority(4));
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "b", "d", "c", "e"]);
}

#[test]
fn timers_and_callbacks_on_one_owned_entity_end_together() {
    let mut app = update_app();
    let owner = app.world_mut().spawn_empty().id();
    let both = app
        .world_mut()
        .spawn((OwnedBy(owner), say("me"), Timer::after(ms(20))))
        .id();
    for _ in 0..4 {
        advance_ms(&mut app, 10);
    }
    assert_eq!(called(&mut app), ["me", "me"]);
    assert!(app.world().get_entity(both).is_err());
    let kept = app
        .world_mut()
        .spawn((
            OwnedBy(owner),
            say("kept"),
            Timer::after(ms(20)).keep_when_done(),
        ))
        .id();
    app.world_mut().entity_mut(owner).insert(Paused);
    advance_ms(&mut app, 10);
    let other = app.world_mut().spawn_empty().id();
    app.world_mut().entity_mut(kept).insert(OwnedBy(other));
    for _ in 0..4 {
        advance_ms(&mut app, 10);
    }
    assert_eq!(called(&mut app), ["kept"; 4]);
    assert_eq!(firings(&mut app).len(), 2);
}

#[test]
fn fast_forwards_of_both_cadences_end_their_timers() {
    let mut app = app();
    app.world_mut()
        .resource_mut::<Time<Fixed>>()
        .set_timestep(ms(10));
    let owner = app.world_mut().spawn_empty().id();
    let timers = [ClockId::Virtual, ClockId::Fixed].map(|clock| {
        app.world_mut()
            .spawn((OwnedBy(owner), Timer::after(ms(5)).on(clock)))
            .id()
    });
    app.world_mut()
        .fast_forward(ClockId::Virtual, ms(20))
        .unwrap();
    app.world_mut()
        .fast_forward(ClockId::Fixed, ms(20))
        .unwrap();
    assert_eq!(firings(&mut app).len(), 2);
    advance_ms(&mut app, 10);
    for timer in timers {
        assert!(app.world().get_entity(timer).is_err());
    }
}

#[test]
fn a_second_firing_of_another_cadence_keeps_its_word() {
    let mut app = app();
    app.world_mut()
        .resource_mut::<Time<Fixed>>()
        .set_timestep(ms(10));
    let owner = app.world_mut().spawn_empty().id();
    let x = app
        .world_mut()
        .spawn((OwnedBy(owner), Timer::after(ms(10))))
        .id();
    app.add_observer(move |fired: On<TimerFired>, mut commands: Commands| {
        if fired.count() == 1 && fired.deadline() == ms(10) && fired.lateness() == ms(0) {
            commands
                .entity(x)
                .insert(Timer::after(ms(0)).on(ClockId::Fixed).keep_when_done());
        }
    });
    advance_ms(&mut app, 10);
    assert_eq!(firings(&mut app).len(), 2, "in one frame");
    advance_ms(&mut app, 10);
    assert!(app.world().get_entity(x).is_ok(), "to be kept");
}

#[test]
fn a_panic_in_the_removal_after_the_last_firing_is_made_good() {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(ignore));
    let x = spawn(&mut app, "x", Timer::after(ms(10)));
    let y = spawn(&mut app, "y", Timer::after(ms(10)));
    app.add_observer(move |removed: On<Remove<Timer>>, mut done: Local<u32>| {
        *done += 1;
        assert!(*done > 1 || removed.entity != x);
    });
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 0);
    advance_ms(&mut app, 0);
    assert_eq!(fired(&mut app), ["x", "y"]);
    for e in [x, y] {
        assert!(app.world().get::<Timer>(e).is_none());
    }
    assert!(cancelled(&mut app).is_empty());
}

#[test]
fn a_panic_in_a_fast_forward_does_not_block_it() {
    let mut app = app();
    spawn(&mut app, "x", Timer::every(ms(10)));
    app.add_observer(|fired: On<TimerFired>| assert!(fired.count() != 2, "a handler"));
    let caught = catch_unwind(AssertUnwindSafe(|| {
        app.world_mut().fast_forward(ClockId::Virtual, ms(20))
    }));
    assert!(caught.is_err());
    firings(&mut app);
    let stats = app
        .world_mut()
        .fast_forward(ClockId::Virtual, ms(20))
        .unwrap();
    assert_eq!((stats.fired, firings(&mut app).len()), (2, 2));
}

#[test]
fn closing_the_inbox_in_a_handler_lets_no_callback_join() {
    let mut app = update_app();
    let act = TimerAction::call(|world: &mut World, _| {
        world.spawn(say("new"));
        world.close_inbox();
    });
    app.world_mut().spawn((Timer::after(ms(10)), act));
    advance_ms(&mut app, 10);
    assert!(called(&mut app).is_empty(), "takes part in the next run");
}

/// With Bevy's own handler of errors, a command that panics takes those behind it along.
#[test]
fn a_panic_of_another_command_does_not_keep_the_timers_of_a_dead_clock() {
    let mut app = app();
    let clock = app.world_mut().spawn(Clock::new()).id();
    let x = spawn(&mut app, "x", Timer::after(ms(10)).on(clock));
    advance_ms(&mut app, 1);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let world = app.world_mut();
        world
            .commands()
            .queue(|_: &mut World| panic!("another command"));
        world.despawn(clock);
    }));
    assert!(caught.is_err());
    advance_ms(&mut app, 10);
    assert!(app.world().get_entity(clock).is_err());
    assert_eq!(written(&app), [(x, CancelReason::ClockGone)]);
}

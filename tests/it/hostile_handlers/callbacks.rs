//! Update callbacks that handlers spawn, pause or let join while a run is under way.

use super::*;
use crate::support::{updates::*, *};
use bevy_app::{FixedPreUpdate, FixedUpdate};
use bevy_due::{TimerAction, message::MessageWorldExt};

#[test]
fn a_callback_spawned_during_a_run_waits_for_the_next_even_if_a_fixed_step_runs() {
    let mut app = update_app();
    set_fixed_step(&mut app, 1000);
    let act = TimerAction::call(|world: &mut World, _| {
        world.spawn(say("new"));
        world.run_schedule(FixedPreUpdate);
    });
    app.world_mut().spawn((Timer::after(ms(10)), act));
    advance_ms(&mut app, 10);
    assert!(
        called(&mut app).is_empty(),
        "the callback should wait for the next run"
    );
    advance_ms(&mut app, 10);
    assert_eq!(
        called(&mut app),
        ["new"],
        "the callback should run in the next run"
    );
}

#[test]
fn closing_the_inbox_in_a_handler_adds_no_callback_to_the_run() {
    let mut app = update_app();
    let act = TimerAction::call(|world: &mut World, _| {
        world.spawn(say("new"));
        world.close_inbox();
    });
    app.world_mut().spawn((Timer::after(ms(10)), act));
    advance_ms(&mut app, 10);
    assert!(
        called(&mut app).is_empty(),
        "the callback should wait for the next run"
    );
}

#[test]
fn a_callback_of_a_dead_owner_never_runs() {
    let mut app = update_app();
    set_fixed_step(&mut app, 10);
    let owner = app.world_mut().spawn_empty().id();
    app.world_mut().despawn(owner);
    app.world_mut().spawn((OwnedBy(owner), say("frame")));
    let fixed = say("fixed").on(ClockId::Fixed);
    app.world_mut().spawn((OwnedBy(owner), fixed));
    app.add_systems(
        FixedUpdate,
        move |mut commands: Commands, mut is_spawned: Local<bool>| {
            if !core::mem::replace(&mut *is_spawned, true) {
                commands.spawn((OwnedBy(owner), say("in a step").on(ClockId::Fixed)));
            }
        },
    );
    advance_ms(&mut app, 30);
    advance_ms(&mut app, 30);
    assert!(called(&mut app).is_empty(), "no callback should run");
}

#[test]
fn callbacks_inserted_during_a_run_take_part_in_the_next() {
    let mut app = update_app();
    set_fixed_step(&mut app, 10);
    let act = TimerAction::call(|world: &mut World, _| {
        world.spawn(say("by timer"));
        world.spawn(say("fixed by timer").on(ClockId::Fixed));
    });
    app.world_mut().spawn((Timer::after(ms(10)), act));
    app.world_mut().spawn(doing("first", |world, me| {
        world.spawn(say("by callback").with_priority(5));
        world.spawn(say("fixed by callback").on(ClockId::Fixed));
        world.despawn(me);
    }));
    let fixed = doing("fixed", |world, me| {
        world.spawn(say("by fixed"));
        world.spawn(say("fixed by fixed").on(ClockId::Fixed));
        world.despawn(me);
    });
    app.world_mut().spawn(fixed.on(ClockId::Fixed));

    advance_ms(&mut app, 10);
    let first = ["first", "fixed", "fixed by timer", "fixed by callback"];
    assert_eq!(
        called(&mut app),
        first,
        "a run should call what was added before it started"
    );
    advance_ms(&mut app, 10);
    let frame = ["by timer", "by fixed", "by callback"];
    let fixed = ["fixed by timer", "fixed by callback", "fixed by fixed"];
    assert_eq!(
        called(&mut app),
        [frame, fixed].concat(),
        "the next run should call what the first one added"
    );
}

#[test]
fn a_callback_can_resume_updates_that_an_earlier_one_paused() {
    let mut app = update_app();
    app.world_mut()
        .spawn(doing("pause", |world, _| pause_updates(world, Some(3))).with_priority(1));
    app.world_mut().spawn(say("two").with_priority(2));
    app.world_mut().spawn(say("three").with_priority(3));
    app.world_mut()
        .spawn(doing("resume", |world, _| pause_updates(world, None)).with_priority(2));
    app.world_mut().spawn(say("four").with_priority(4));
    advance_ms(&mut app, 10);
    assert_eq!(
        called(&mut app),
        ["pause", "two", "resume", "three", "four"],
        "the updates should resume in the same run"
    );
}

//! What queries say about timers that were changed, and beside lifetimes.

use crate::support::{errors::*, *};
use bevy_due::{Clock, ClockId, DespawnAfter, Timer, TimerKey, clock::SpeedModifier, prelude::*};
use bevy_ecs::{error::FallbackErrorHandler, prelude::*};
use core::time::Duration;

#[derive(Component)]
struct Meteor;

impl TimerKey for Meteor {
    const NAME: &'static str = "meteor";
}

#[test]
fn a_new_interval_does_not_change_the_current_wait() {
    let mut app = app();
    let x = spawn(&mut app, "x", Timer::every(ms(100)));
    advance_ms(&mut app, 110);
    app.world_mut()
        .change_timer(x, |x| x.set_interval(ms(50)))
        .unwrap();
    let changed = status(&mut app, x);
    assert_eq!((changed.remaining, changed.elapsed), (ms(90), ms(10)));
    advance_ms(&mut app, 100);
    assert_eq!(status(&mut app, x).wait, ms(50));
}

#[test]
fn a_fixed_interval_ends_the_random_ones() {
    let mut app = app();
    let x = spawn(&mut app, "x", Timer::every_between(ms(100)..=ms(900)));
    advance_ms(&mut app, 1000);
    app.world_mut()
        .change_timer(x, |x| x.set_interval(ms(50)))
        .unwrap();
    advance_ms(&mut app, 900);
    assert_eq!(status(&mut app, x).wait, ms(50));
}

#[test]
fn a_restart_draws_a_new_random_delay() {
    let mut app = app();
    let timers = [(); 4].map(|()| {
        let timer = Timer::after_between(ms(2000)..=ms(6000));
        app.world_mut().spawn(timer).id()
    });
    advance_ms(&mut app, 10);
    let mut waits: Vec<Duration> = Vec::new();
    for timer in timers {
        app.world_mut()
            .change_timer(timer, |timer| timer.restart())
            .unwrap();
        waits.push(status(&mut app, timer).remaining);
    }
    waits.dedup();
    assert_eq!(waits.len(), 4, "{waits:?}");
}

#[test]
fn due_within_lists_timers_and_no_lifetimes() {
    let mut app = app();
    let far = (Timer::after(ms(1000)), DespawnAfter::new(ms(100)));
    app.world_mut().spawn(far);
    let near = (Timer::after(ms(100)), DespawnAfter::new(ms(150)));
    let near = app.world_mut().spawn(near).id();
    for _ in 0..2 {
        let due = app.world_mut().with_timers(|timers| {
            let due = timers.due_within(ClockId::Virtual, ms(200)).unwrap();
            due.iter().map(|timer| timer.entity).collect::<Vec<_>>()
        });
        assert_eq!(due, [near]);
        let next = app
            .world_mut()
            .with_timers(|timers| timers.next_deadline(ClockId::Virtual));
        assert_eq!(next, Ok(Some(ms(100))), "a lifetime is a deadline too");
        advance_ms(&mut app, 0);
    }
}

#[test]
fn a_pending_timer_beside_a_speed_modifier_is_on_the_parent_clock() {
    let mut app = app();
    let clock = app.world_mut().spawn(Clock::of(ClockId::Real)).id();
    let slow = (SpeedModifier::new(clock, 0.5), Timer::after(ms(10)));
    let slow = app.world_mut().spawn(slow).id();
    assert_eq!(status(&mut app, slow).clock, ClockId::Real);
    advance_ms(&mut app, 0);
    assert_eq!(status(&mut app, slow).clock, ClockId::Real);
}

#[test]
fn an_observer_may_despawn_a_timer_that_is_being_set_or_paused() {
    let mut app = app();
    app.add_observer(|added: On<Add<Meteor>>, mut commands: Commands| {
        commands.entity(added.entity).despawn();
    });
    app.add_observer(|added: On<Add<Paused>>, mut commands: Commands| {
        commands.entity(added.entity).despawn();
    });
    let boss = app.world_mut().spawn_empty().id();
    let mut entity = app.world_mut().entity_mut(boss);
    entity.set_timer(Meteor, Timer::after(ms(10)));
    entity.set_timer("cast", Timer::after(ms(10)));
    let world = app.world_mut();
    let paused = world.change_keyed_timer(boss, "cast", |cast| {
        cast.pause();
        cast.resume();
        cast.set_remaining(ms(5));
    });
    assert_eq!(paused, Ok(()));
    advance_ms(&mut app, 20);
    assert_eq!(fired(&mut app), [""; 0]);
}

#[test]
fn a_text_that_was_never_a_key_is_reported_once() {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(record));
    let boss = app.world_mut().spawn_empty().id();
    for _ in 0..3 {
        let world = app.world_mut();
        assert!(
            !world.cancel_timer(boss, Meteor),
            "a type can't be misspelt"
        );
        assert!(!world.cancel_timer(boss, "metoer"));
        assert!(!world.cancel_timer(boss, "from data".to_owned()));
    }
    let mut entity = app.world_mut().entity_mut(boss);
    entity.set_timer("shield", Timer::after(ms(10)));
    let world = app.world_mut();
    assert!(world.cancel_timer(boss, "shield"));
    assert!(!world.cancel_timer(boss, "shield"), "it was a key once");
    let reports = errors();
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert!(reports[0].contains("\"metoer\""), "{reports:?}");
}

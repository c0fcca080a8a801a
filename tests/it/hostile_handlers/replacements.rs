//! Timers that a handler replaces while they fire, and entities that outlive or follow their timer.

use super::*;
use crate::support::{updates::*, *};
use bevy_due::TimerFired;

#[test]
fn a_timer_inserted_by_a_handler_keeps_its_entity_in_a_fast_forward() {
    let mut app = app();
    let owner = app.world_mut().spawn_empty().id();
    let timer = spawn_owned(&mut app, owner, Timer::after(ms(10)));
    app.add_observer(move |fired: On<TimerFired>, mut commands: Commands| {
        if fired.deadline() == ms(10) {
            let last = Timer::after(ms(10)).keep_when_done();
            commands.entity(timer).insert(last);
        }
    });
    app.world_mut()
        .fast_forward(ClockId::Virtual, ms(50))
        .unwrap();
    assert_eq!(firings(&mut app).len(), 2, "both timers should fire");
    advance_ms(&mut app, 0);
    assert!(
        app.world().get_entity(timer).is_ok(),
        "the second timer should keep its entity"
    );
}

#[test]
fn removing_a_timer_that_a_handler_inserted_keeps_the_entity() {
    let mut app = app();
    let owner = app.world_mut().spawn_empty().id();
    let timer = spawn_owned(&mut app, owner, Timer::after(ms(10)));
    app.add_observer(move |_: On<TimerFired>, mut commands: Commands| {
        let next = Timer::after(ms(10)).keep_when_done();
        commands.entity(timer).insert(next);
    });
    advance_ms(&mut app, 10);
    app.world_mut().entity_mut(timer).remove::<Timer>();
    advance_ms(&mut app, 0);
    assert!(
        app.world().get_entity(timer).is_ok(),
        "removing a timer should keep its entity"
    );
}

#[test]
fn a_timer_that_moves_to_fixed_steps_as_it_fires_keeps_its_entity() {
    let mut app = app();
    set_fixed_step(&mut app, 10);
    let owner = app.world_mut().spawn_empty().id();
    let timer = spawn_owned(&mut app, owner, Timer::after(ms(10)));
    app.add_observer(move |fired: On<TimerFired>, mut commands: Commands| {
        if fired.count() == 1 && fired.deadline() == ms(10) && fired.lateness() == ms(0) {
            let next = Timer::after(ms(0)).on(ClockId::Fixed).keep_when_done();
            commands.entity(timer).insert(next);
        }
    });
    advance_ms(&mut app, 10);
    assert_eq!(
        firings(&mut app).len(),
        2,
        "both timers should fire in one frame"
    );
    advance_ms(&mut app, 10);
    assert!(
        app.world().get_entity(timer).is_ok(),
        "the second timer should keep its entity"
    );
}

#[test]
fn an_owned_timer_despawns_its_entity_together_with_the_callback_on_it() {
    let mut app = update_app();
    let owner = app.world_mut().spawn_empty().id();
    let both = (OwnedBy(owner), say("callback"), Timer::after(ms(20)));
    let both = app.world_mut().spawn(both).id();
    for _ in 0..4 {
        advance_ms(&mut app, 10);
    }
    assert_eq!(
        called(&mut app),
        ["callback"; 2],
        "the callback should run until the timer fires"
    );
    assert!(
        app.world().get_entity(both).is_err(),
        "the entity should despawn"
    );
}

#[test]
fn a_timer_and_its_callback_resume_under_an_owner_that_is_not_paused() {
    let mut app = update_app();
    let [owner, other] = [(); 2].map(|()| app.world_mut().spawn_empty().id());
    let timer = Timer::after(ms(20)).keep_when_done();
    let kept = app.world_mut().spawn((OwnedBy(owner), say("kept"), timer));
    let kept = kept.id();
    app.world_mut().entity_mut(owner).insert(Paused);
    advance_ms(&mut app, 10);
    app.world_mut().entity_mut(kept).insert(OwnedBy(other));
    for _ in 0..4 {
        advance_ms(&mut app, 10);
    }
    assert_eq!(
        called(&mut app),
        ["kept"; 4],
        "the callback should outlive the timer, and miss the paused frame"
    );
    assert_eq!(firings(&mut app).len(), 1, "the timer should fire once");
}

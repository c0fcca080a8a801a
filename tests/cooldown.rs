//! `Cooldown`: a recharge time with one or more charges.

mod support;

use std::panic::catch_unwind;

use bevy_due::Cooldown;
use bevy_ecs::entity::Entity;
use bevy_time::{Time, Virtual};
use core::time::Duration;
use support::*;

#[test]
fn a_cooldown_starts_ready_and_is_ready_again_after_its_duration() {
    let mut spell = Cooldown::new(ms(100));
    assert!(spell.is_ready(ms(0)));
    assert!(spell.try_use(ms(7)));
    assert!(!spell.try_use(ms(106)));
    assert_eq!(spell.remaining(ms(106)), ms(1));
    assert_eq!(spell.remaining(ms(57)), ms(50));
    assert_eq!(spell.fraction(ms(57)), 0.5);
    assert!(
        spell.is_ready(ms(107)),
        "should be ready on the exact nanosecond"
    );
    assert!(spell.try_use(ms(107)));
}

#[test]
fn charges_return_one_at_a_time() {
    let mut dash = Cooldown::new(ms(100)).with_charges(3);
    for charges in [2, 1, 0] {
        assert!(dash.try_use(ms(10)));
        assert_eq!(dash.charges(ms(10)), charges);
    }
    assert!(!dash.try_use(ms(109)));
    let charges = [109, 110, 209, 210, 310, 10_000].map(|now| dash.charges(ms(now)));
    assert_eq!(charges, [0, 1, 1, 2, 3, 3]);
    assert_eq!(
        dash.fraction(ms(135)),
        0.25,
        "should be the fraction of the second charge"
    );
    let next = [109, 110, 209, 310].map(|now| dash.next_charge_at(ms(now)));
    assert_eq!(next, [Some(ms(110)), Some(ms(210)), Some(ms(210)), None]);
    assert_eq!(dash.fraction(ms(310)), 1.0);
    assert!(dash.try_use(ms(135)));
    assert_eq!(
        dash.remaining(ms(135)),
        ms(75),
        "using a charge should not delay the one in progress"
    );
}

#[test]
fn a_failed_use_changes_nothing() {
    let mut spell = Cooldown::new(ms(100));
    assert!(spell.try_use(ms(0)));
    let before = spell;
    assert!(!spell.try_use(ms(50)));
    assert_eq!(spell, before);
    assert_eq!(spell.ready_at(), ms(100));
}

#[test]
fn a_reset_restores_all_charges() {
    let mut dash = Cooldown::new(ms(100)).with_charges(2);
    assert!(dash.try_use(ms(10)));
    assert!(dash.try_use(ms(10)));
    dash.reset();
    assert_eq!(dash.charges(ms(10)), 2);
}

#[test]
fn the_ready_timer_fires_when_the_cooldown_is_over() {
    let mut app = app();
    advance_ms(&mut app, 30);
    let now = app.world().resource::<Time<Virtual>>().elapsed();
    let mut cannon = Cooldown::new(ms(100));
    assert!(cannon.try_use(now));
    let timer: Entity = spawn(&mut app, "ready", cannon.ready_timer());
    app.world_mut().entity_mut(timer).insert(cannon);
    advance_ms(&mut app, 99);
    assert!(fired(&mut app).is_empty());
    advance_ms(&mut app, 1);
    assert_eq!(fired_at(&mut app), [("ready", 130)]);
    let now = app.world().resource::<Time<Virtual>>().elapsed();
    assert!(app.world().get::<Cooldown>(timer).unwrap().is_ready(now));
}

#[test]
fn zero_and_maximal_durations_work() {
    let mut free = Cooldown::new(ms(0));
    for _ in 0..3 {
        assert!(free.try_use(ms(5)));
    }
    assert_eq!((free.charges(ms(5)), free.fraction(ms(5))), (1, 1.0));

    let mut once = Cooldown::new(Duration::MAX).with_charges(2);
    assert!(once.try_use(ms(5)));
    assert!(once.try_use(ms(5)));
    assert!(!once.try_use(ms(5)), "both charges are used");
    assert_eq!(once.charges(ms(5)), 0);
}

#[test]
fn bad_input_panics_with_the_value() {
    let cases: [(fn() -> Cooldown, &str); 3] = [
        (|| Cooldown::secs(-1.5), "got -1.5 s"),
        (|| Cooldown::secs(f64::NAN), "got NaN s"),
        (|| Cooldown::secs(1.0).with_charges(0), "got 0"),
    ];
    for (make, value) in cases {
        let panic = catch_unwind(make).unwrap_err();
        let message = panic.downcast_ref::<String>().cloned();
        let message = message.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        assert!(message.unwrap().ends_with(value), "should name {value:?}");
    }
}

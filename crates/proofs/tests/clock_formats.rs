//! Clocks in RON, JSON and postcard.

use core::time::Duration;

use bevy_app::App;
use bevy_due::{Clock, DuePlugin, timer::TimerStatus};
use bevy_ecs::prelude::*;
use bevy_time::{TimePlugin, TimeUpdateStrategy};

/// Returns clocks of a world.
fn clocks() -> (App, Vec<Entity>) {
    let step = Duration::from_nanos(10);
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .insert_resource(TimeUpdateStrategy::ManualDuration(step));
    app.update();
    let world = app.world_mut();
    let slow = world.spawn(Clock::new().with_speed(1.0 / 3.0)).id();
    let child = world.spawn(Clock::of(slow).with_now(Duration::from_secs(7)));
    let clocks = vec![slow, child.id()];
    for _ in 0..10 {
        app.update();
    }
    (app, clocks)
}

#[test]
fn a_clock_survives_every_format() {
    let (app, clocks) = clocks();
    for entity in clocks {
        let saved = app.world().get::<Clock>(entity).unwrap();
        let ron = ron::to_string(saved).unwrap();
        let json = serde_json::to_string(saved).unwrap();
        let bytes = postcard::to_allocvec(saved).unwrap();
        let loaded: [Clock; 3] = [
            ron::from_str(&ron).unwrap(),
            serde_json::from_str(&json).unwrap(),
            postcard::from_bytes(&bytes).unwrap(),
        ];
        for loaded in loaded {
            assert_eq!(loaded, *saved);
        }
        for len in 0..bytes.len() {
            let loaded = postcard::from_bytes::<Clock>(&bytes[..len]);
            assert!(loaded.is_err(), "the first {len} bytes are not enough");
        }
    }
}

#[test]
fn a_timer_progress_survives_every_format() {
    let shown = TimerStatus::default();
    let bytes = postcard::to_allocvec(&shown).unwrap();
    assert_eq!(postcard::from_bytes(&bytes), Ok(shown));
    let json = serde_json::to_string(&shown).unwrap();
    let loaded: TimerStatus = serde_json::from_str(&json).unwrap();
    assert_eq!(loaded, shown);
}

//! Saved worlds from anywhere.

use core::time::Duration;

use bevy_due::{
    Clock, ClockId, DespawnAfter, DuePlugin, DueWorldExt, OwnedBy, Paused, Timer, TimerAction,
    clock::SpeedModifier,
    save::{SaveWorldExt, SavedTimers},
    timer::Keyed,
};
use bevy_ecs::{entity::EntityHashMap, prelude::*};

use super::app::{app, fixed_step, frame};

/// Loads a saved world. Invalid bytes must be an error that changes nothing. A world that loads must
/// run and be saved again.
///
/// The first byte chooses the format: RON, JSON or postcard.
///
/// # Panics
///
/// Panics if the world changes in spite of an error, or breaks.
pub fn save(bytes: &[u8]) {
    let Some((format, bytes)) = bytes.split_first() else {
        return;
    };
    let saved: Option<SavedTimers> = match format % 3 {
        0 => ron::de::from_bytes(bytes).ok(),
        1 => serde_json::from_slice(bytes).ok(),
        _ => postcard::from_bytes(bytes).ok(),
    };
    if let Some(saved) = saved {
        load(&saved);
    }
}

fn load(saved: &SavedTimers) {
    let mut app = app(DuePlugin::default());
    let world = app.world_mut();
    world.spawn(Timer::every(1.0));
    frame(world, Duration::from_millis(300));
    let before = appearance(world);
    let mut entities = EntityHashMap::default();
    if world.load_timers(saved, &mut entities).is_err() {
        assert_eq!(appearance(world), before, "the world should stay as it was");
        assert!(entities.is_empty(), "the map should stay as it was");
        return;
    }
    assert!(
        saved
            .entities()
            .all(|entity| entities.contains_key(&entity))
    );
    for span in [0, 1_000_000, 50_000_000, 3_600_000_000_000, u64::MAX >> 4] {
        let span = Duration::from_nanos(span);
        frame(world, span);
        fixed_step(world, span);
        check_timers(world);
        assert!(world.save_timers().is_ok(), "all actions are data");
    }
    // What was loaded can be saved and loaded again.
    let saved = world.save_timers().expect("all actions are data");
    let loaded = world.load_timers(&saved, &mut EntityHashMap::default());
    assert_eq!(loaded, Ok(()));
}

/// Returns whatever a failed load could change.
fn appearance(world: &mut World) -> (usize, String) {
    let listing = world.with_timers(|timers| timers.to_string());
    (world.entities().count_spawned() as usize, listing)
}

/// Every `Timer` must be counted, listed and found.
fn check_timers(world: &mut World) {
    let mut timers = world.query_filtered::<Entity, With<Timer>>();
    let timers: Vec<_> = timers.iter(world).collect();
    world.with_timers(|armed| {
        let found = timers.iter().filter(|&&timer| armed.get(timer).is_some());
        assert_eq!(found.count(), timers.len(), "each timer should be found");
    });
}

/// Builds a saved world with every kind of component, as bytes for [`save`] in each format.
///
/// # Panics
///
/// Never: all actions are data.
#[must_use]
pub fn saved_worlds() -> [Vec<u8>; 3] {
    let mut app = app(DuePlugin::default());
    let world = app.world_mut();
    let arena = world.spawn(Clock::new().with_speed(1.0 / 3.0)).id();
    let spell = world.spawn(Clock::of(arena)).id();
    world.spawn((SpeedModifier::new(arena, 0.5), DespawnAfter::new(9.0)));
    let hero = world.spawn(Timer::every(1.0).times(7).on(spell)).id();
    world.spawn((
        (OwnedBy(hero), Keyed::new("poison"), Paused),
        Timer::every_between(0.5..=2.0),
        TimerAction::named_with("hurt", [1, 2, 3]),
    ));
    frame(world, Duration::from_millis(2500));
    world.spawn((OwnedBy(hero), Timer::after(2.0).on(ClockId::Real)));
    let saved = world.save_timers().expect("all actions are data");
    let with = |format: u8, mut bytes: Vec<u8>| {
        bytes.insert(0, format);
        bytes
    };
    let ron = ron::to_string(&saved).expect("it is data");
    let json = serde_json::to_vec(&saved).expect("it is data");
    let postcard = postcard::to_allocvec(&saved).expect("it is data");
    [with(0, ron.into_bytes()), with(1, json), with(2, postcard)]
}

//! Saved timers in RON, JSON and postcard: every format loads the same game.

mod games;

use core::time::Duration;

use bevy_app::App;
use bevy_due::{
    DespawnAfter, DuePlugin, Timer,
    prelude::*,
    save::{SaveWorldExt, SavedTimers},
};
use bevy_ecs::prelude::*;
use bevy_time::{TimePlugin, TimeUpdateStrategy};
use serde::{Serialize, de::DeserializeOwned};

use games::check;

fn through_ron<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let text = ron::to_string(value).unwrap();
    ron::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn through_json<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let text = serde_json::to_string(value).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn through_postcard<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let bytes = postcard::to_allocvec(value).unwrap();
    postcard::from_bytes(&bytes).unwrap()
}

#[test]
fn a_game_in_json_goes_on_as_the_uninterrupted_one() {
    check(|game| {
        game.load(0, |old, new, map| {
            let saved = old.save_timers().unwrap();
            new.load_timers(&through_json(&saved), map).unwrap();
        });
    });
}

fn app() -> App {
    let step = Duration::from_millis(70);
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .insert_resource(TimeUpdateStrategy::ManualDuration(step));
    app.update();
    app
}

/// Saves a component in a format, loads it into a new app, and returns the frames until it is gone there and in its own
/// world.
fn frames_left<C: Component>(
    component: C,
    format: impl Fn(&SavedTimers) -> SavedTimers,
) -> [usize; 2] {
    let mut saved = app();
    let entity = saved.world_mut().spawn(component).id();
    for _ in 0..4 {
        saved.update();
    }
    let data = format(&saved.world_mut().save_timers().unwrap());
    let (mut loaded, mut map) = (app(), Default::default());
    loaded.world_mut().load_timers(&data, &mut map).unwrap();
    [(saved, entity), (loaded, map[&entity])].map(|(mut app, entity)| {
        let has_it = |app: &App| {
            let entity = app.world().get_entity(entity);
            entity.is_ok_and(|entity| entity.contains::<C>())
        };
        let mut frames = 0;
        while has_it(&app) {
            app.update();
            frames += 1;
            assert!(frames < 100);
        }
        frames
    })
}

#[test]
fn a_timer_goes_on_in_every_format() {
    for format in [through_ron, through_json, through_postcard] {
        let periodic = Timer::every(0.3).first_after(0.1).times(5);
        let [saved, loaded] = frames_left(periodic, format);
        assert_eq!(loaded, saved);
        let random = Duration::from_millis(100)..=Duration::from_millis(400);
        let [saved, loaded] = frames_left(Timer::every_between(random).times(6), format);
        assert_eq!(loaded, saved);
    }
    for format in [through_ron, through_json, through_postcard] {
        let [saved, loaded] = frames_left(DespawnAfter::new(1.0), format);
        assert_eq!(loaded, saved);
        assert_eq!(saved, 11);
    }
}

#[test]
fn an_unknown_version_is_an_error() {
    let saved = app().world_mut().save_timers().unwrap();
    let json = serde_json::to_string(&saved).unwrap();
    let later = json.replacen("V2", "V99", 1);
    let error = serde_json::from_str::<SavedTimers>(&later).unwrap_err();
    assert!(error.to_string().contains("V99"), "{error}");
    let mut bytes = postcard::to_allocvec(&saved).unwrap();
    assert_eq!(bytes[0], 1, "the version comes first");
    bytes[0] = 99;
    assert!(postcard::from_bytes::<SavedTimers>(&bytes).is_err());
}

#[test]
fn bytes_that_end_anywhere_are_an_error() {
    let mut app = app();
    app.world_mut().spawn((Timer::after(1.0), Paused));
    let saved = app.world_mut().save_timers().unwrap();
    let bytes = postcard::to_allocvec(&saved).unwrap();
    for len in 0..bytes.len() {
        let loaded = postcard::from_bytes::<SavedTimers>(&bytes[..len]);
        assert!(loaded.is_err(), "the first {len} bytes are not enough");
    }
}

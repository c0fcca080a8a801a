//! Scenes name the types of the crate by their public paths.

use bevy_app::App;
use bevy_due::{
    Clock, ClockId, Cooldown, DespawnAfter, Timer, clock::SpeedModifier, prelude::*,
    save::SaveWorldExt, timer::TimerStatus,
};
use bevy_ecs::reflect::AppTypeRegistry;
use bevy_reflect::TypePath;
use bevy_time::TimePlugin;

fn app() -> App {
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()));
    app
}

#[test]
fn no_type_path_depends_on_a_private_module() {
    let app = app();
    let registry = app.world().resource::<AppTypeRegistry>().read();
    let paths = registry.iter().map(|of| of.type_info().type_path());
    let paths: Vec<&str> = paths.filter(|path| path.starts_with("bevy_due")).collect();
    assert!(paths.len() > 25, "{paths:?}");
    for path in paths {
        let (module, name) = path.rsplit_once("::").expect("a path");
        let public = [
            "bevy_due",
            "bevy_due::clock",
            "bevy_due::message",
            "bevy_due::save",
            "bevy_due::timer",
            "bevy_due::worlds",
        ];
        assert!(public.contains(&module), "{path}");
        assert!(name.starts_with(char::is_uppercase), "{path}");
    }
}

#[test]
fn type_paths_are_the_public_ones() {
    assert_eq!(Timer::type_path(), "bevy_due::Timer");
    assert_eq!(DespawnAfter::type_path(), "bevy_due::DespawnAfter");
    assert_eq!(Clock::type_path(), "bevy_due::Clock");
    assert_eq!(ClockId::type_path(), "bevy_due::ClockId");
    assert_eq!(Cooldown::type_path(), "bevy_due::Cooldown");
    assert_eq!(TimerStatus::type_path(), "bevy_due::timer::TimerStatus");
    assert_eq!(SpeedModifier::type_path(), "bevy_due::clock::SpeedModifier");
}

#[cfg(feature = "serialize")]
#[test]
fn a_loaded_limit_of_a_type_of_the_crate_finds_it() {
    use bevy_due::DueEntityCommandsExt;
    use bevy_ecs::entity::EntityHashMap;
    use bevy_time::TimeUpdateStrategy;
    use core::time::Duration;

    let mut saved = app();
    saved.update();
    let mut hero = saved.world_mut().spawn_empty();
    hero.insert_for(1.0, Clock::new());
    let hero = hero.id();
    let data = saved.world_mut().save_timers().expect("data");

    let mut loaded = app();
    let step = Duration::from_millis(250);
    loaded.insert_resource(TimeUpdateStrategy::ManualDuration(step));
    let mut map = EntityHashMap::default();
    let result = loaded.world_mut().load_timers(&data, &mut map);
    assert_eq!(result, Ok(()));
    loaded.update(); // Bevy's first frame takes no time.
    for quarter in 1..=4 {
        loaded.update();
        let hero = loaded.world().entity(map[&hero]);
        assert_eq!(hero.contains::<Clock>(), quarter < 4, "{quarter}");
    }
}

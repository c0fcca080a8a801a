//! Games saved as scenes: Bevy writes the components, and one of them carries the states of this crate.

mod games;
#[allow(dead_code, reason = "scenes are only shuffled")]
#[path = "../../../tests/it/changed_since/random.rs"]
mod random;

use core::{any::TypeId, time::Duration};

use bevy_app::App;
use bevy_asset::{AssetPath, LoadFromPath, UntypedHandle};
use bevy_due::{
    Clock, DuePlugin, Timer,
    prelude::*,
    save::{SaveWorldExt, SavedTimers},
    timer::Pauses,
};
use bevy_ecs::{
    entity::EntityHashMap, entity_disabling::Disabled, prelude::*, reflect::AppTypeRegistry,
};
use bevy_reflect::{Reflect, prelude::*};
use bevy_time::{TimePlugin, TimeUpdateStrategy};
use bevy_world_serialization::{DynamicWorld, serde::WorldDeserializer};
use serde::{Deserialize, Serialize, de::DeserializeSeed};

use games::{check, game::Record};
use random::Random;

/// The states of a scene.
#[derive(Component, Reflect, Clone, Serialize, Deserialize)]
#[reflect(Component, Serialize, Deserialize)]
struct SceneTimers {
    saved: SavedTimers,
    /// The entities of `saved`, in their order. The scene maps them.
    #[entities]
    entities: Vec<Entity>,
}

fn know_states(world: &World) {
    let registry = world.resource::<AppTypeRegistry>();
    registry.write().register::<SceneTimers>();
}

/// Returns a world as a scene, with the states of its timers.
fn to_scene(world: &mut World) -> DynamicWorld {
    know_states(world);
    let saved = world.save_timers().unwrap();
    let entities = saved.entities().collect();
    let timers = world.spawn(SceneTimers { saved, entities }).id();
    let mut scene = without_time(DynamicWorld::from_world(world));
    world.despawn(timers);
    for entity in &mut scene.entities {
        // The load inserts them.
        let is_data = |path: &str| !path.starts_with("bevy_due::");
        let components = &mut entity.components;
        components.retain(|component| is_data(component.reflect_type_path()));
    }
    scene
}

/// Leaves out Bevy's `Time`, which goes on by itself in the app that loads the scene.
fn without_time(mut scene: DynamicWorld) -> DynamicWorld {
    let is_time = |path: &str| path.starts_with("bevy_time::");
    let resources = &mut scene.resources;
    resources.retain(|resource| !is_time(resource.reflect_type_path()));
    scene
}

/// Writes a scene to a world, and loads the states that it carries.
fn write(scene: &DynamicWorld, world: &mut World, map: &mut EntityHashMap<Entity>) {
    know_states(world);
    scene.write_to_world(world, map).unwrap();
    let mut carriers = world.query_filtered::<Entity, With<SceneTimers>>();
    let carrier = carriers.single(world).unwrap();
    let timers = world.entity_mut(carrier).take::<SceneTimers>().unwrap();
    world.despawn(carrier);
    map.retain(|_, now| *now != carrier);
    // Entities that were not part of the scene are spawned.
    let names = timers.saved.entities().zip(timers.entities);
    let names = names.filter(|&(_, entity)| world.get_entity(entity).is_ok());
    let mut names = names.collect();
    world.load_timers(&timers.saved, &mut names).unwrap();
    map.extend(names);
}

fn to_text(scene: &DynamicWorld, world: &World) -> Result<String, ron::Error> {
    let registry = world.resource::<AppTypeRegistry>().read();
    scene.serialize(&registry)
}

fn from_text(text: &str, world: &mut World) -> DynamicWorld {
    know_states(world);
    let type_registry = &world.resource::<AppTypeRegistry>().read();
    let mut text = ron::Deserializer::from_str(text).unwrap();
    let scene = WorldDeserializer {
        type_registry,
        load_from_path: &mut NoAssets,
    };
    scene.deserialize(&mut text).unwrap()
}

struct NoAssets;

impl LoadFromPath for NoAssets {
    fn load_from_path_erased(&mut self, _: TypeId, path: AssetPath<'static>) -> UntypedHandle {
        unreachable!("no component has an asset, but one wants {path}");
    }
}

/// Shuffles the entities, and the components of each.
fn shuffle(scene: &mut DynamicWorld, random: &mut Random) {
    fn shuffle<T>(items: &mut [T], random: &mut Random) {
        for end in (1..items.len()).rev() {
            items.swap(end, random.below(end as u64 + 1) as usize);
        }
    }
    shuffle(&mut scene.entities, random);
    for entity in &mut scene.entities {
        shuffle(&mut entity.components, random);
    }
}

/// Loads a scene into a new app, with everything in an order that depends on the seed.
fn load_shuffled(text: &str, old: &mut World, seed: u64) -> (App, EntityHashMap<Entity>) {
    let mut scene = from_text(text, old);
    shuffle(&mut scene, &mut Random::new(seed));
    let (mut new, mut map) = (app(), EntityHashMap::default());
    write(&scene, new.world_mut(), &mut map);
    (new, map)
}

/// Copies the components that are not reflected.
fn copy_others(old: &World, new: &mut World, map: &EntityHashMap<Entity>) {
    for (&entity, &copy) in map {
        if old.get::<Disabled>(entity).is_some() {
            new.entity_mut(copy).insert(Disabled);
        }
        if let Some(&(mut record)) = old.get::<Record>(entity) {
            let last = map.get(&record.last).copied();
            record.last = last.unwrap_or(Entity::PLACEHOLDER);
            new.entity_mut(copy).insert(record);
        }
    }
}

#[test]
fn a_game_loaded_from_a_scene_goes_on_as_the_uninterrupted_one() {
    check(|game| {
        game.load(0, |old, new, map| {
            let text = to_text(&to_scene(old), old).unwrap();
            let mut scene = from_text(&text, new);
            shuffle(&mut scene, &mut Random::new(text.len() as u64));
            write(&scene, new, map);
            copy_others(old, new, map);
        });
    });
}

#[test]
fn a_scene_in_memory_goes_on_as_the_uninterrupted_game() {
    check(|game| {
        game.load(0, |old, new, map| {
            write(&to_scene(old), new, map);
            copy_others(old, new, map);
        });
    });
}

#[test]
fn a_saved_game_goes_on_undisturbed() {
    check(|game| {
        let world = game.worlds[0].world_mut();
        let scene = to_scene(world);
        to_text(&scene, world).unwrap();
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

#[test]
fn a_timer_whose_owner_is_paused_waits_after_loading() {
    let mut old = app();
    let owner = old.world_mut().spawn_empty().id();
    let timer = Timer::after(1.0);
    old.world_mut().spawn((OwnedBy(owner), timer));
    old.world_mut().spawn(Pauses(owner));
    let scene = to_scene(old.world_mut());
    let mut new = app();
    let mut map = EntityHashMap::default();
    write(&scene, new.world_mut(), &mut map);
    for _ in 0..2 {
        let owner = map[&owner];
        let world = new.world_mut();
        let is_paused = world.with_timers(|timers| timers.of(owner).all(|timer| timer.paused));
        assert!(is_paused);
        new.update();
    }
}

#[test]
fn a_timer_of_a_unit_that_pauses_its_own_owner_waits_after_loading() {
    let mut old = app();
    let squad = old.world_mut().spawn_empty().id();
    let stunner = old.world_mut().spawn((OwnedBy(squad), Pauses(squad))).id();
    let cast = (OwnedBy(stunner), Timer::after(1.0));
    let cast = old.world_mut().spawn(cast).id();
    let text = to_text(&to_scene(old.world_mut()), old.world()).unwrap();
    for seed in 0..50 {
        let (mut new, map) = load_shuffled(&text, old.world_mut(), seed);
        let cast = map[&cast];
        let status = new.world_mut().with_timers(|timers| timers.get(cast));
        assert!(status.unwrap().paused, "with seed {seed}");
    }
}

#[test]
fn entities_with_finished_timers_despawn_in_their_order_after_loading() {
    #[derive(Component, Reflect)]
    #[reflect(Component)]
    struct Fuse;
    let mut old = app();
    old.register_type::<Fuse>();
    let mut timers = Vec::new();
    for delay in [0.03, 0.01, 0.02] {
        let timer = Timer::after(delay).despawn_when_done();
        timers.push(old.world_mut().spawn((Fuse, timer)).id());
    }
    old.update();

    let mut scene = to_scene(old.world_mut());
    scene.entities.reverse();
    let (mut new, mut map) = (app(), EntityHashMap::default());
    #[derive(Resource, Default)]
    struct Despawned(Vec<Entity>);
    new.init_resource::<Despawned>().add_observer(
        |timer: On<Despawn<Fuse>>, mut despawned: ResMut<Despawned>| {
            despawned.0.push(timer.entity);
        },
    );
    new.register_type::<Fuse>();
    write(&scene, new.world_mut(), &mut map);
    new.update();
    let in_order = [timers[1], timers[2], timers[0]].map(|timer| map[&timer]);
    assert_eq!(new.world().resource::<Despawned>().0, in_order);
}

#[test]
fn timers_that_are_loaded_around_their_clock_fire_in_their_order() {
    let mut old = app();
    let unit = old.world_mut().spawn(Clock::new()).id();
    let timers = [(); 4].map(|()| {
        let timer = (OwnedBy(unit), Timer::after(0.1));
        old.world_mut().spawn(timer).id()
    });
    let text = to_text(&to_scene(old.world_mut()), old.world()).unwrap();
    for seed in 0..50 {
        let (mut new, map) = load_shuffled(&text, old.world_mut(), seed);
        new.update();
        new.update();
        let mut fired = new.world_mut().resource_mut::<Messages<TimerFired>>();
        let fired: Vec<_> = fired.drain().map(|it| it.entity()).collect();
        assert_eq!(fired, timers.map(|timer| map[&timer]), "with seed {seed}");
    }
}

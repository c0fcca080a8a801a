//! Saves and loads timers with `moonshine-save`, next to the components of the game.
//!
//! ```text
//! cargo run --ignore-rust-version --manifest-path crates/ecosystem/Cargo.toml --bin moonshine_save
//! ```
//!
//! The state of a timer is in a queue, where reflection does not see it. One component carries the states of all timers
//! through the file.

use core::time::Duration;
use std::{env, path::Path};

use bevy_app::{TaskPoolPlugin, prelude::*};
use bevy_asset::AssetPlugin;
use bevy_due::{
    Timer,
    prelude::*,
    save::{SaveWorldExt, SavedTimers},
};
use bevy_ecs::{entity::EntityHashMap, prelude::*};
use bevy_reflect::{Reflect, prelude::*};
use bevy_time::{TimePlugin, TimeUpdateStrategy};
use moonshine_save::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Component, Reflect, Default)]
#[reflect(Component)]
#[require(Save)]
struct Tree {
    height: u32,
}

/// The states of all timers in a file.
#[derive(Component, Reflect, Clone, Serialize, Deserialize)]
#[reflect(Component, Serialize, Deserialize)]
#[require(Save)]
struct Timers {
    saved: SavedTimers,
    /// The entities of `saved`, in their order. The file maps them.
    #[entities]
    entities: Vec<Entity>,
}

/// Saves the game. The components of `bevy_due` stay out of the file: they are in `Timers`.
fn save(world: &mut World, file: &Path) -> Result {
    let saved = world.save_timers()?;
    let entities = saved.entities().collect();
    let timers = world.spawn(Timers { saved, entities }).id();
    let game = SaveWorld::default_into_file(file)
        .exclude_component::<Timer>()
        .exclude_component::<TimerAction>();
    world.trigger_save(game);
    world.flush();
    world.despawn(timers);
    Ok(())
}

/// Loads the game.
fn load(world: &mut World, file: &Path) -> Result {
    world.trigger_load(LoadWorld::default_from_file(file));
    world.flush();
    let mut carriers = world.query_filtered::<Entity, With<Timers>>();
    let carrier = carriers.single(world)?;
    let timers = world.entity_mut(carrier).take::<Timers>();
    let timers = timers.ok_or("the file has no timers")?;
    world.despawn(carrier);
    // Timers whose entities the game does not save are spawned.
    let names = timers.saved.entities().zip(timers.entities);
    let names = names.filter(|&(_, entity)| world.get_entity(entity).is_ok());
    let mut names: EntityHashMap<Entity> = names.collect();
    world.load_timers(&timers.saved, &mut names)?;
    Ok(())
}

fn game() -> App {
    let mut app = App::new();
    let frame = Duration::from_millis(250);
    // `moonshine-save` asks for an `AssetServer`.
    app.add_plugins((
        TaskPoolPlugin::default(),
        TimePlugin,
        AssetPlugin::default(),
        DuePlugin::default(),
    ))
    .insert_resource(TimeUpdateStrategy::ManualDuration(frame))
    .register_type::<Tree>()
    .register_type::<Timers>()
    .add_observer(save_on_default_event)
    .add_observer(load_on_default_event);
    app.world_mut().add_timer_handler("grow", grow);
    app.update(); // Bevy's first frame takes no time.
    app
}

fn grow(In(fired): In<TimerFired>, mut trees: Query<&mut Tree>) -> Result {
    trees.get_mut(fired.entity())?.height += 1;
    Ok(())
}

/// Returns the heights of a tree after a number of frames.
fn play(app: &mut App, frames: usize) -> Vec<u32> {
    let mut height = |_| {
        app.update();
        let mut trees = app.world_mut().query::<&Tree>();
        trees.single(app.world()).map_or(0, |tree| tree.height)
    };
    (0..frames).map(&mut height).collect()
}

fn main() {
    let file = env::temp_dir().join("bevy_due_trees.ron");
    let mut before = game();
    let growth = (Timer::every(1.0), TimerAction::named("grow"));
    before.world_mut().spawn((Tree::default(), growth));
    play(&mut before, 6);

    save(before.world_mut(), &file).expect("the timers are data");
    let expected = play(&mut before, 20);

    let mut after = game();
    load(after.world_mut(), &file).expect("the file was just written");
    let loaded = play(&mut after, 20);
    println!("the tree grows from {} to {}", loaded[0], loaded[19]);
    assert_eq!(loaded, expected, "the loaded tree grows in the same frames");
}

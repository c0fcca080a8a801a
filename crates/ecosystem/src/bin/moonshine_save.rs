//! Saves and loads timers with `moonshine-save`, next to the components of the game.
//!
//! ```text
//! cargo run --ignore-rust-version --manifest-path crates/ecosystem/Cargo.toml --bin moonshine_save
//! ```
//!
//! The state of a timer is in a queue, where reflection does not see it. Write it out before each save.

use core::time::Duration;
use std::env;

use bevy_app::{TaskPoolPlugin, prelude::*};
use bevy_asset::AssetPlugin;
use bevy_due::{Timer, prelude::*, save::SaveWorldExt};
use bevy_ecs::prelude::*;
use bevy_reflect::Reflect;
use bevy_time::{TimePlugin, TimeUpdateStrategy};
use moonshine_save::prelude::*;

#[derive(Component, Reflect, Default)]
#[reflect(Component)]
#[require(Save)]
struct Tree {
    height: u32,
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

    let world = before.world_mut();
    world.write_timer_states();
    world.trigger_save(SaveWorld::default_into_file(&file));
    world.flush();
    let expected = play(&mut before, 20);

    let mut after = game();
    let world = after.world_mut();
    world.trigger_load(LoadWorld::default_from_file(&file));
    world.flush();
    let loaded = play(&mut after, 20);
    println!("the tree grows from {} to {}", loaded[0], loaded[19]);
    assert_eq!(loaded, expected, "the loaded tree grows in the same frames");
}

//! A dash with a cooldown, bound to a key with `bevy_enhanced_input`.
//!
//! ```text
//! cargo run --ignore-rust-version --manifest-path crates/ecosystem/Cargo.toml --bin enhanced_input
//! ```
//!
//! Both preludes have a `Cooldown`. That of `bevy_enhanced_input` is deprecated, because cooldowns belong to the rules
//! of the game. Import ours by name, which wins over both preludes.

use core::time::Duration;

use bevy_app::prelude::*;
use bevy_due::{ClockId, Clocks, Cooldown, DuePlugin};
use bevy_ecs::prelude::*;
use bevy_enhanced_input::prelude::*;
use bevy_input::{InputPlugin, keyboard::KeyCode, prelude::ButtonInput};
use bevy_time::{TimePlugin, TimeUpdateStrategy};

#[derive(Component)]
struct Hero;

#[derive(InputAction)]
#[action_output(bool)]
struct Dash;

#[derive(Resource, Default)]
struct Dashes(u32);

fn spawn_hero(mut commands: Commands) {
    let space = related!(Bindings[Binding::from(KeyCode::Space)]);
    let actions = related!(Actions::<Hero>[(Action::<Dash>::new(), space)]);
    commands.spawn((Hero, Cooldown::new(1.0).with_charges(2), actions));
}

fn dash(
    dash: On<Start<Dash>>,
    mut heroes: Query<&mut Cooldown>,
    clocks: Clocks,
    mut dashes: ResMut<Dashes>,
) -> Result {
    let now = clocks.now(ClockId::Virtual)?;
    if heroes.get_mut(dash.context)?.try_use(now) {
        dashes.0 += 1;
    }
    Ok(())
}

fn main() {
    let mut app = App::new();
    let frame = Duration::from_millis(100);
    app.add_plugins((
        TimePlugin,
        InputPlugin,
        EnhancedInputPlugin,
        DuePlugin::default(),
    ))
    .insert_resource(TimeUpdateStrategy::ManualDuration(frame))
    .init_resource::<Dashes>()
    .add_input_context::<Hero>()
    .add_systems(Startup, spawn_hero)
    .add_observer(dash);
    app.finish();
    let mut dashes = Vec::new();
    for frame in 0..20 {
        let mut keys = app.world_mut().resource_mut::<ButtonInput<KeyCode>>();
        // The key is pressed in every other frame.
        match frame % 2 {
            0 => keys.press(KeyCode::Space),
            _ => keys.release(KeyCode::Space),
        }
        app.update();
        dashes.push(app.world().resource::<Dashes>().0);
    }
    println!("dashes after each frame: {dashes:?}");
    assert_eq!(
        (dashes[0], dashes[4], dashes[9]),
        (1, 2, 2),
        "two charges, then a wait"
    );
    assert!(
        (3..=4).contains(&dashes[19]),
        "a charge comes back each second"
    );
}

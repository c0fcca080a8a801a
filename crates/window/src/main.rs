//! Ten thousand shots fly through a window. Each has a lifetime, and each turret a timer. Around them a
//! million more timers wait. A key swaps `bevy_due` for timers that a system ticks.
//!
//! ```text
//! crates/window/build run
//! ```

mod arena;
mod bubble;
mod due;
mod glow;
mod mode;
mod options;
mod panel;
mod screenshot;
mod shots;
mod stopwatch;
mod swarm;
mod ticking;

use bevy::{prelude::*, window::PresentMode, winit::WinitSettings};
use bevy_due::DuePlugin;

fn main() -> AppExit {
    let options = match options::from_arguments() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n{}", options::USAGE);
            return AppExit::error();
        }
    };
    App::new()
        .add_plugins((DefaultPlugins.set(window()), DuePlugin::default()))
        .add_plugins((
            mode::plugin,
            due::plugin,
            ticking::plugin,
            stopwatch::plugin,
        ))
        .add_plugins((
            glow::plugin,
            arena::plugin,
            shots::plugin,
            bubble::plugin,
            swarm::plugin,
            panel::plugin,
            screenshot::plugin,
        ))
        .insert_resource(options)
        // Measures frames, not the screen and not the patience of a window in the background.
        .insert_resource(WinitSettings::continuous())
        .run()
}

fn window() -> WindowPlugin {
    WindowPlugin {
        primary_window: Some(Window {
            title: "bevy_due: ten thousand timed shots".into(),
            resolution: arena::SIZE.as_uvec2().into(),
            present_mode: PresentMode::AutoNoVsync,
            ..default()
        }),
        ..default()
    }
}

//! Measures both modes, saves a picture, and exits. The plan is a few delayed commands.

use core::time::Duration;
use std::path::PathBuf;

use bevy::{
    prelude::*,
    render::view::screenshot::{Screenshot, ScreenshotCaptured, save_to_disk},
    time::TimeUpdateStrategy,
};
use bevy_due::prelude::*;

use crate::{mode, options::Options, panel};

/// The game time per frame, however slow the machine is.
const STEP: Duration = Duration::from_micros(16_667);

pub fn plugin(app: &mut App) {
    app.add_systems(Startup, plan);
}

/// Plans by the number of frames.
fn plan(options: Res<Options>, mut commands: Commands) {
    let Some(path) = options.screenshot.clone() else {
        return;
    };
    commands.insert_resource(TimeUpdateStrategy::ManualDuration(STEP));
    for swap in [560.0, 600.0] {
        commands.after(swap).on(ClockId::Frames).run(mode::swap);
    }
    let end = commands.after(640.0).on(ClockId::Frames);
    end.queue(move |commands| {
        commands.run_system_cached(panel::print);
        capture(path, commands);
    });
}

fn capture(path: PathBuf, commands: &mut Commands) {
    commands
        .spawn(Screenshot::primary_window())
        .observe(save_to_disk(path))
        .observe(
            |_: On<ScreenshotCaptured>, mut exit: MessageWriter<AppExit>| {
                exit.write(AppExit::Success);
            },
        );
}

//! The arena: the camera, the clock of everything in it, and slow motion.

use core::time::Duration;

use bevy::{camera::ScalingMode, input::common_conditions::input_just_pressed, prelude::*};
use bevy_due::{Clocks, ClocksMut, OnClock, prelude::*};

use crate::{
    mode::{Remaining, Waiting},
    options::Options,
};

/// The size of the picture. A window of another shape shows more.
pub const SIZE: Vec2 = Vec2::new(1280.0, 720.0);

/// The place of the turrets.
pub const CENTRE: Vec2 = Vec2::new(270.0, 0.0);

const SLOW: f64 = 0.2;
const HOUR: Duration = Duration::from_secs(3600);

pub fn plugin(app: &mut App) {
    app.insert_resource(ClearColor(Color::srgb_u8(9, 10, 20)))
        .add_systems(PreStartup, open)
        .add_systems(Startup, add_waiting)
        .add_systems(
            Update,
            slow_motion.run_if(input_just_pressed(KeyCode::Space)),
        );
}

/// Has the clock of all timers in the game.
#[derive(Component)]
pub struct Arena;

fn open(mut commands: Commands) {
    commands.spawn((Arena, Clock::new()));
    let mut projection = OrthographicProjection::default_2d();
    projection.scaling_mode = ScalingMode::AutoMin {
        min_width: SIZE.x,
        min_height: SIZE.y,
    };
    // Shots have soft edges already.
    commands.spawn((Camera2d, Msaa::Off, Projection::Orthographic(projection)));
}

fn add_waiting(arena: Single<Entity, With<Arena>>, options: Res<Options>, mut commands: Commands) {
    let arena = OnClock::new(*arena);
    let waiting = (0..options.waiting).map(move |id| {
        let remaining = HOUR + Duration::from_millis(id.into());
        (Waiting, arena, Remaining(remaining))
    });
    commands.spawn_batch(waiting);
}

/// Slows down everything with one write, however many timers there are.
fn slow_motion(
    arena: Single<Entity, With<Arena>>,
    clocks: Clocks,
    mut changed: ClocksMut,
) -> Result {
    let is_slow = clocks.speed(*arena)? < 1.0;
    changed.get_mut(*arena)?.set_speed(if is_slow { 1.0 } else { SLOW });
    Ok(())
}

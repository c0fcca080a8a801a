//! A bubble of slow time, which circles around the turrets.

use core::{f32::consts::TAU, time::Duration};

use bevy::{ecs::system::SystemParam, prelude::*};
use bevy_due::{Clocks, DueSystems, prelude::*};

use crate::{
    arena::{Arena, CENTRE},
    glow::Glow,
};

const RADIUS: f32 = 75.0;
const ORBIT: f32 = 215.0;
/// The time of one orbit, in seconds.
const PERIOD: f32 = 16.0;
const SPEED: f64 = 0.2;

pub fn plugin(app: &mut App) {
    app.add_systems(Startup, blow)
        .add_systems(PreUpdate, measure_steps.before(DueSystems::Timers))
        .add_systems(Update, orbit);
}

/// Has the clock of everything in the bubble.
#[derive(Component)]
pub struct Bubble;

fn blow(arena: Single<Entity, With<Arena>>, glow: Res<Glow>, mut commands: Commands) {
    commands.spawn((
        Bubble,
        Clock::of(*arena).with_speed(SPEED),
        Transform::from_translation(CENTRE.extend(-1.0)),
        Sprite {
            image: glow.ring.clone(),
            color: Color::srgba(0.75, 0.85, 1.0, 0.6),
            custom_size: Some(Vec2::splat(2.0 * RADIUS)),
            ..default()
        },
    ));
}

fn orbit(
    arena: Single<Entity, With<Arena>>,
    clocks: Clocks,
    mut bubble: Single<&mut Transform, With<Bubble>>,
) -> Result {
    let angle = TAU * clocks.now(*arena)?.as_secs_f32() / PERIOD;
    bubble.translation = (CENTRE + ORBIT * Vec2::from_angle(angle)).extend(-1.0);
    Ok(())
}

/// Where the bubble is.
#[derive(SystemParam)]
pub struct InBubble<'w, 's> {
    arena: Single<'w, 's, Entity, With<Arena>>,
    bubble: Single<'w, 's, (Entity, &'static Transform), With<Bubble>>,
}

impl InBubble<'_, '_> {
    /// Returns the clock at a place.
    pub fn clock_at(&self, place: Vec2) -> ClockId {
        let (bubble, at) = *self.bubble;
        let is_inside = place.distance(at.translation.xy()) < RADIUS;
        if is_inside {
            bubble.into()
        } else {
            (*self.arena).into()
        }
    }
}

/// The time that passes on each clock in this frame.
#[derive(Resource)]
pub struct Steps {
    arena: Duration,
    bubble: (ClockId, Duration),
}

impl Steps {
    pub fn on(&self, clock: ClockId) -> Duration {
        let (bubble, step) = self.bubble;
        if clock == bubble { step } else { self.arena }
    }

    pub fn in_arena(&self) -> Duration {
        self.arena
    }
}

pub fn measure_steps(
    arena: Single<Entity, With<Arena>>,
    bubble: Single<Entity, With<Bubble>>,
    clocks: Clocks,
    mut commands: Commands,
) -> Result {
    commands.insert_resource(Steps {
        arena: clocks.delta(*arena)?,
        bubble: ((*bubble).into(), clocks.delta(*bubble)?),
    });
    Ok(())
}

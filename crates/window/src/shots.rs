//! Turrets and their shots. Nothing here knows who keeps their time.

use core::{f32::consts::TAU, time::Duration};

use bevy::prelude::*;
use bevy_due::{DueSystems, OnClock};

use crate::{
    arena::{Arena, CENTRE},
    bubble::{InBubble, Steps, measure_steps},
    mode::Remaining,
};

const TURRETS: u32 = 55;
/// The time between two shots of a turret.
pub const INTERVAL: Duration = Duration::from_micros(27_500);
/// The lifetime of a shot: 55 turrets have 10,000 shots in flight.
pub const LIFETIME: Duration = Duration::from_secs(5);

/// The angle between two shots in a row, as a sunflower has it between two seeds.
const GOLDEN_ANGLE: f32 = TAU * 0.381_966_01;
/// The distances from the centre at the beginning and the end of a flight.
const RADII: [f32; 2] = [26.0, 345.0];

pub fn plugin(app: &mut App) {
    app.add_systems(Startup, build_turrets)
        .add_systems(
            PreUpdate,
            fly.after(measure_steps).before(DueSystems::Timers),
        )
        .add_systems(Update, cross);
}

#[derive(Component)]
pub struct Turret {
    aim: f32,
    color: LinearRgba,
}

#[derive(Component)]
pub struct Shot {
    pub place: Vec2,
    pub color: LinearRgba,
    direction: Vec2,
    age: f32,
}

impl Turret {
    /// Fires a shot that was due `late` ago: it has flown for that long.
    pub fn fire(&mut self, late: Duration) -> Shot {
        self.aim = (self.aim + GOLDEN_ANGLE * TURRETS as f32) % TAU;
        let mut shot = Shot {
            place: CENTRE,
            color: self.color,
            direction: Vec2::from_angle(self.aim),
            age: 0.0,
        };
        shot.fly(late);
        shot
    }
}

impl Shot {
    /// Slows down on the way, so that the shots are spread evenly.
    fn fly(&mut self, time: Duration) {
        self.age += time.as_secs_f32();
        let [first, last] = RADII.map(|radius| radius * radius);
        let radius = first.lerp(last, self.part()).sqrt();
        self.place = CENTRE + self.direction * radius;
    }

    /// Returns the part of its life that is over.
    pub fn part(&self) -> f32 {
        self.age / LIFETIME.as_secs_f32()
    }
}

fn build_turrets(arena: Single<Entity, With<Arena>>, mut commands: Commands) {
    for id in 0..TURRETS {
        let aim = GOLDEN_ANGLE * id as f32 % TAU;
        let color = Oklcha::lch(0.75, 0.16, aim.to_degrees()).into();
        let turret = Turret { aim, color };
        let first = INTERVAL / TURRETS * id;
        commands.spawn((turret, OnClock::new(*arena), Remaining(first)));
    }
}

fn fly(steps: Res<Steps>, mut shots: Query<(&mut Shot, &OnClock)>) {
    for (mut shot, clock) in &mut shots {
        shot.fly(steps.on(clock.0));
    }
}

/// Puts a shot that has entered or left the bubble on the clock there, on which its lifetime continues.
fn cross(bubble: InBubble, shots: Query<(Entity, &Shot, &OnClock)>, mut commands: Commands) {
    for (entity, shot, clock) in &shots {
        let here = bubble.clock_at(shot.place);
        if here != clock.0 {
            commands.entity(entity).insert(OnClock(here));
        }
    }
}

//! The game without this crate: a `bevy_time::Timer` on each entity, and systems that tick them.

use bevy::prelude::*;
use bevy_due::OnClock;

use crate::{
    bubble::Steps,
    mode::{Mode, Remaining, Waiting},
    shots::{INTERVAL, LIFETIME, Shot, Turret},
};

pub fn plugin(app: &mut App) {
    app.add_systems(OnEnter(Mode::Ticking), begin)
        .add_systems(OnExit(Mode::Ticking), end)
        .add_systems(
            PreUpdate,
            (tick_waiting, tick_shots, tick_turrets)
                .chain()
                .in_set(TickingSystems)
                .run_if(in_state(Mode::Ticking)),
        );
}

/// At the place of this crate's systems.
#[derive(SystemSet, Clone, Debug, PartialEq, Eq, Hash)]
pub struct TickingSystems;

#[derive(Component)]
struct Ticking(Timer);

fn tick_turrets(
    steps: Res<Steps>,
    mut turrets: Query<(&mut Ticking, &mut Turret, &OnClock)>,
    mut commands: Commands,
) {
    for (mut timer, mut turret, clock) in &mut turrets {
        timer.0.tick(steps.on(clock.0));
        for later in (0..timer.0.times_finished_this_tick()).rev() {
            let late = timer.0.elapsed() + INTERVAL * later;
            let mut lifetime = Timer::new(LIFETIME, TimerMode::Once);
            lifetime.set_elapsed(late);
            commands.spawn((turret.fire(late), *clock, Ticking(lifetime)));
        }
    }
}

fn tick_shots(
    steps: Res<Steps>,
    mut shots: Query<(Entity, &mut Ticking, &OnClock), With<Shot>>,
    mut commands: Commands,
) {
    for (shot, mut timer, clock) in &mut shots {
        if timer.0.tick(steps.on(clock.0)).just_finished() {
            commands.entity(shot).despawn();
        }
    }
}

fn tick_waiting(
    steps: Res<Steps>,
    mut waiting: Query<(Entity, &mut Ticking), With<Waiting>>,
    mut commands: Commands,
) {
    let step = steps.in_arena();
    for (waiting, mut timer) in &mut waiting {
        if timer.0.tick(step).just_finished() {
            commands.entity(waiting).despawn();
        }
    }
}

fn begin(timed: Query<(Entity, &Remaining, Has<Turret>)>, mut commands: Commands) {
    for (entity, remaining, is_turret) in &timed {
        let timer = if is_turret {
            let mut timer = Timer::new(INTERVAL, TimerMode::Repeating);
            timer.set_elapsed(INTERVAL.saturating_sub(remaining.0));
            timer
        } else {
            Timer::new(remaining.0, TimerMode::Once)
        };
        commands.entity(entity).insert(Ticking(timer));
    }
}

fn end(timed: Query<(Entity, &Ticking)>, mut commands: Commands) {
    for (entity, timer) in &timed {
        let remaining = Remaining(timer.0.remaining());
        commands
            .entity(entity)
            .remove::<Ticking>()
            .insert(remaining);
    }
}

//! The game with this crate: a `Timer` on each turret, a `DespawnAfter` on each shot, and no system.

use bevy::prelude::*;
use bevy_due::{ArmedTimers, OnClock, Timer, prelude::*};

use crate::{
    mode::{Mode, Remaining, Waiting},
    shots::{INTERVAL, LIFETIME, Shot, Turret},
};

pub fn plugin(app: &mut App) {
    app.add_observer(fire)
        .add_systems(PostStartup, begin)
        .add_systems(OnEnter(Mode::Due), begin)
        .add_systems(OnExit(Mode::Due), end);
}

fn fire(
    fired: On<TimerFired>,
    mut turrets: Query<(&mut Turret, &OnClock)>,
    mut commands: Commands,
) {
    if let Ok((mut turret, clock)) = turrets.get_mut(fired.entity()) {
        let late = fired.lateness();
        let lifetime = DespawnAfter::new(LIFETIME.saturating_sub(late));
        commands.spawn((turret.fire(late), *clock, lifetime));
    }
}

fn begin(
    turrets: Query<(Entity, &Remaining), With<Turret>>,
    shots: Query<(Entity, &Remaining), With<Shot>>,
    waiting: Query<(Entity, &Remaining), With<Waiting>>,
    mut commands: Commands,
) {
    for (turret, first) in &turrets {
        let timer = Timer::every(INTERVAL).first_after(first.0);
        commands.entity(turret).insert(timer);
    }
    for (shot, lifetime) in &shots {
        commands.entity(shot).insert(DespawnAfter::new(lifetime.0));
    }
    for (waiting, delay) in &waiting {
        commands.entity(waiting).insert(DespawnAfter::new(delay.0));
    }
}

fn end(
    timed: Query<Entity, Or<(With<Turret>, With<Shot>, With<Waiting>)>>,
    timers: ArmedTimers,
    mut commands: Commands,
) {
    for entity in &timed {
        let timer = timers.get(entity).map(|timer| timer.remaining);
        if let Some(remaining) = timer.or_else(|| timers.lifetime(entity)) {
            let mut entity = commands.entity(entity);
            entity.remove::<(Timer, DespawnAfter)>();
            entity.insert(Remaining(remaining));
        }
    }
}

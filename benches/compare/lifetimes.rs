//! Bullets: entities that are spawned in every frame, and live two seconds.

use bevy_app::prelude::*;
use bevy_due::prelude::*;
use bevy_ecs::prelude::*;
use bevy_time::{Time, TimerMode};

use crate::{
    contenders::{app, due_app, on_one_thread},
    frames::frames,
    sides::Table,
    work::FRAMES_PER_SECOND,
};

const PER_SECOND: [usize; 2] = [10_000, 100_000];

const LIFETIME: f32 = 2.0;

#[derive(Component)]
struct Bullet(u64);

/// A lifetime that a system ticks.
#[derive(Component)]
struct Ticked(bevy_time::Timer);

pub fn compare(table: &mut Table) {
    for n in PER_SECOND {
        let per_turn = move |units: usize| units * FRAMES_PER_SECOND / n + 1;
        table.line(
            ("app_bullets", n, "bevy_timer"),
            None,
            |units| frames(despawn_after(n), per_turn(units), 1, alive),
            |units| frames(ticked(n), per_turn(units), 1, alive),
        );
    }
}

/// This crate's lifetimes.
fn despawn_after(per_second: usize) -> App {
    let mut app = due_app();
    app.add_systems(Update, move |frame: Local<u64>, mut commands: Commands| {
        for bullet in shoot(frame, per_second) {
            commands.spawn((bullet, DespawnAfter::new(LIFETIME)));
        }
    });
    with_bullets(app)
}

/// Creates an app that ticks a timer on each bullet, and despawns the bullet when it finishes.
fn ticked(per_second: usize) -> App {
    let mut app = app();
    let expire =
        |mut bullets: Query<(Entity, &mut Ticked)>, time: Res<Time>, mut commands: Commands| {
            for (bullet, mut lifetime) in &mut bullets {
                if lifetime.0.tick(time.delta()).just_finished() {
                    commands.entity(bullet).despawn();
                }
            }
        };
    let shoot = move |frame: Local<u64>, mut commands: Commands| {
        for bullet in shoot(frame, per_second) {
            let lifetime = bevy_time::Timer::from_seconds(LIFETIME, TimerMode::Once);
            commands.spawn((bullet, Ticked(lifetime)));
        }
    };
    app.add_systems(Update, (expire, shoot).chain());
    with_bullets(app)
}

/// Returns the bullets of the next frame.
fn shoot(mut frame: Local<u64>, per_second: usize) -> impl Iterator<Item = Bullet> {
    let shot_before = |frame: u64| frame * per_second as u64 / FRAMES_PER_SECOND as u64;
    let first = shot_before(*frame);
    *frame += 1;
    (first..shot_before(*frame)).map(Bullet)
}

/// Runs an app until as many bullets despawn as are spawned.
fn with_bullets(app: App) -> App {
    let mut app = on_one_thread(app);
    for _ in 0..=2 * FRAMES_PER_SECOND {
        app.update();
    }
    app
}

fn alive(app: &mut App) -> u64 {
    let mut bullets = app.world_mut().query::<&Bullet>();
    bullets.iter(app.world()).map(|bullet| bullet.0).sum()
}

//! The clocks of the game.

use bevy_due::{
    Clock, ClockId, DespawnAfter, DueWorldExt, clock::SpeedModifier, conditions::run_clock_if,
};
use bevy_ecs::prelude::*;

use super::{Cast, Dice, ms};

/// Marks clocks on which time passes only in some frames.
#[derive(Component)]
pub(super) struct Night;

pub(super) const BUILT_IN: [ClockId; 4] = [
    ClockId::Real,
    ClockId::Virtual,
    ClockId::Fixed,
    ClockId::Frames,
];

pub(super) fn add(app: &mut bevy_app::App) {
    let is_night = |mut frames: Local<u32>| {
        *frames += 1;
        *frames % 7 < 4
    };
    app.add_systems(bevy_app::First, run_clock_if::<Night, _>(is_night));
}

/// Spawns clocks with speeds, parents, a condition and a modifier.
pub(super) fn spawn(world: &mut World) -> Vec<Entity> {
    let third = world.spawn(Clock::new().with_speed(1.0 / 3.0)).id();
    let nested = world.spawn(Clock::of(third).with_speed(2.5)).id();
    let fixed = world.spawn(Clock::of(ClockId::Fixed).with_speed(1.1)).id();
    let real = world.spawn(Clock::of(ClockId::Real)).id();
    let frames = Clock::of(ClockId::Frames).with_speed(0.02);
    let frames = world.spawn(frames).id();
    let night = world.spawn((Night, Clock::new())).id();
    let paused = world.spawn(Clock::of(nested).paused()).id();
    world.spawn((SpeedModifier::new(third, 1.5), DespawnAfter::new(4.0)));
    vec![third, nested, fixed, real, frames, night, paused]
}

/// Changes one of the clocks.
pub(super) fn change(world: &mut World, dice: &mut Dice, cast: &mut Cast) {
    let nth = dice.roll(cast.clocks.len() as u64) as usize;
    let entity = cast.clocks[nth];
    let (other, by) = (dice.pick(&cast.clocks), dice.ms(300));
    let speed = dice.pick(&[0.0, 0.25, 1.0 / 3.0, 1.0, 1.5, 3.0]);
    let choice = dice.roll(60);
    if choice == 0 {
        world.despawn(entity);
        cast.clocks[nth] = world.spawn(Clock::new().with_speed(speed)).id();
        return;
    }
    if choice % 8 == 7 {
        let lifetime = DespawnAfter::new(by);
        world.spawn((SpeedModifier::new(entity, 0.5), lifetime));
        return;
    }
    let changed = world.change_clock(entity, |clock| match choice % 8 {
        0 => clock.set_speed(speed),
        1 => clock.pause(),
        2 | 3 => clock.unpause(),
        4 => clock.advance_by(by),
        5 => clock.set_now(ms(5000) + by),
        // It may be a cycle.
        _ => _ = clock.set_parent(other),
    });
    debug_assert!(changed.is_ok(), "the cast has clocks");
}

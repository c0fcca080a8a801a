//! The two ways to keep time, and the key that swaps them.

use core::time::Duration;

use bevy::{input::common_conditions::input_just_pressed, prelude::*};

pub fn plugin(app: &mut App) {
    app.init_state::<Mode>()
        .add_systems(Update, swap.run_if(input_just_pressed(KeyCode::KeyT)));
}

/// Who keeps the time of turrets, shots and everything that waits.
#[derive(States, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// This crate.
    #[default]
    Due,
    /// A `bevy_time::Timer` on each entity, and systems that tick them.
    Ticking,
}

/// The time that was left when the mode last changed, on the clock of the entity.
///
/// A mode that ends writes it, and the next one starts from it.
#[derive(Component)]
pub struct Remaining(pub Duration);

/// Waits for something that nobody sees: a crop, a quest, a shop that restocks.
#[derive(Component)]
pub struct Waiting;

pub fn swap(mode: Res<State<Mode>>, mut next: ResMut<NextState<Mode>>) {
    next.set(match mode.get() {
        Mode::Due => Mode::Ticking,
        Mode::Ticking => Mode::Due,
    });
}

//! A tower defence in the terminal. Everything that takes time in it is a timer, a cooldown or a clock of
//! `bevy_due`.
//!
//! | in the game | in the code |
//! |---|---|
//! | waves that come faster and faster | [`waves`]: a timer that re-arms itself, and a keyed one |
//! | enemies that walk | [`enemies`]: an `UpdateComponent` on a clock of their own |
//! | towers that reload | [`towers`]: a `Cooldown` with charges |
//! | poison, frost and stuns | [`effects`]: `refresh_timer`, `SpeedModifier`, `pause_for` |
//! | a cast bar and its interruption | [`boss`]: a keyed timer that a stun cancels |
//! | slow motion | [`spells`]: a `SpeedModifier` on the clock of the arena, with a `DespawnAfter` |
//! | a menu that blinks while the game stands still | [`menu`]: a timer on `ClockId::Real` |
//! | save, load and restart | [`save`] and [`session`] |
//!
//! A frame is the chain in [`GamePlugin`].

pub mod boss;
pub mod castle;
pub mod effects;
pub mod enemies;
pub mod log;
pub mod map;
pub mod menu;
pub mod orders;
pub mod panel;
pub mod save;
pub mod script;
pub mod session;
pub mod spells;
pub mod svg;
pub mod terminal;
pub mod towers;
pub mod view;
pub mod waves;

use bevy_app::prelude::*;
use bevy_due::{DueDiagnosticsPlugin, conditions::timer_fired, prelude::*};
use bevy_ecs::prelude::*;
use bevy_time::TimePlugin;

use crate::{castle::Castle, log::Log, menu::Menu, orders::Order, towers::Hand, waves::Waves};

/// The rules of the game. It needs no terminal.
#[derive(Debug)]
pub struct GamePlugin;

impl Plugin for GamePlugin {
    fn build(&self, app: &mut App) {
        app.add_plugins((
            TimePlugin,
            DuePlugin::default(),
            DueDiagnosticsPlugin::default(),
        ))
        .add_message::<Order>()
        .init_resource::<Castle>()
        .init_resource::<Hand>()
        .init_resource::<Log>()
        .add_systems(
            Update,
            (
                (
                    waves::next_wave.run_if(timer_fired::<Waves>),
                    waves::march,
                    boss::begin_to_cast,
                    boss::end_cast,
                    boss::report_interruption,
                    effects::tick_poison,
                    effects::chill,
                    towers::shoot,
                    enemies::bury,
                    enemies::reach_gate,
                    towers::point,
                    towers::build,
                    spells::cast,
                    waves::call_early,
                )
                    .chain()
                    .run_if(not(any_with_component::<Menu>)),
                menu::blink.run_if(timer_fired::<Menu>),
                menu::choose,
                menu::open,
                menu::stop_time,
            )
                .chain(),
        );
    }
}

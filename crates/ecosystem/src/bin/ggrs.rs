//! Rollback netcode with `ggrs`: a session that goes back four frames in every frame, and compares the checksums of
//! each frame with those of the first time.
//!
//! ```text
//! cargo run --ignore-rust-version --manifest-path crates/ecosystem/Cargo.toml --bin ggrs
//! ```
//!
//! `bevy_ggrs` does the same in a plugin, once it supports this version of Bevy.

use core::time::Duration;
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    net::SocketAddr,
    sync::Arc,
};

use bevy_app::prelude::*;
use bevy_due::{
    Timer,
    prelude::*,
    rollback::{RollbackWorldExt, TimerSnapshot},
    save::SaveWorldExt,
};
use bevy_ecs::{entity::EntityHashMap, prelude::*};
use bevy_time::{Fixed, Time, TimePlugin, TimeUpdateStrategy, Virtual};
use ggrs::{Config, GgrsRequest, PredictRepeatLast, SessionBuilder};
use serde::{Deserialize, Serialize};

const FRAME: Duration = Duration::from_micros(16_667);
const FRAMES: u32 = 600;

struct Duel;

impl Config for Duel {
    type Input = Input;
    type InputPredictor = PredictRepeatLast;
    /// A snapshot is not copied, and one of a frame that can't come back is dropped by the session.
    type State = Arc<Snapshot>;
    type Address = SocketAddr;
}

#[derive(Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Input {
    strikes: bool,
}

/// The timers take the registered components along.
struct Snapshot {
    timers: TimerSnapshot,
    game_time: Time<Virtual>,
    fixed_time: Time<Fixed>,
}

/// A hero, by the number of the player.
#[derive(Component, Clone, Serialize, Deserialize)]
struct Hero {
    player: usize,
    health: i32,
}

/// The inputs of both players in this frame.
#[derive(Resource, Default)]
struct Inputs([Input; 2]);

fn game() -> App {
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .insert_resource(TimeUpdateStrategy::ManualDuration(FRAME))
        .init_resource::<Inputs>()
        .add_systems(Update, strike);
    let world = app.world_mut();
    world.add_saved_component::<Hero>("hero");
    world.add_timer_handler("bleed", bleed);
    for player in 0..2 {
        let health = 1000;
        world.spawn((Hero { player, health }, Cooldown::new(0.25)));
    }
    app
}

/// A strike wounds the other hero, who bleeds.
fn strike(
    inputs: Res<Inputs>,
    heroes: Query<(Entity, &Hero)>,
    mut cooldowns: Query<&mut Cooldown>,
    time: Res<Time<Virtual>>,
    mut commands: Commands,
) {
    // A restore may have changed the order of a query.
    let mut in_order: Vec<_> = heroes.iter().collect();
    in_order.sort_by_key(|(_, hero)| hero.player);
    for (nth, &(hero, _)) in in_order.iter().enumerate() {
        let Ok(mut cooldown) = cooldowns.get_mut(hero) else {
            continue;
        };
        if inputs.0[nth].strikes && cooldown.try_use(time.elapsed()) {
            let (other, _) = in_order[1 - nth];
            let bleeding = (Timer::every(0.1).times(3), TimerAction::named("bleed"));
            commands.entity(other).set_timer("bleeding", bleeding);
        }
    }
}

fn bleed(In(fired): In<TimerFired>, mut heroes: Query<&mut Hero>) -> Result {
    heroes.get_mut(fired.owner())?.health -= 1;
    Ok(())
}

fn save(world: &mut World) -> Snapshot {
    Snapshot {
        timers: world.snapshot_timers(),
        game_time: *world.resource(),
        fixed_time: *world.resource(),
    }
}

fn load(world: &mut World, snapshot: &Snapshot) {
    world.restore_timers(&snapshot.timers, &mut EntityHashMap::default());
    world.insert_resource(snapshot.game_time);
    world.insert_resource(snapshot.fixed_time);
}

/// Returns a number that depends on everything that a player can see.
fn checksum(world: &mut World) -> u128 {
    let mut heroes = world.query::<&Hero>();
    let mut healths: Vec<_> = heroes
        .iter(world)
        .map(|hero| (hero.player, hero.health))
        .collect();
    healths.sort_unstable();
    let mut timers: Vec<_> = world.with_timers(|timers| {
        let timers = timers.iter();
        timers.map(|timer| (timer.remaining, timer.count)).collect()
    });
    timers.sort_unstable();
    let mut hasher = DefaultHasher::new();
    (healths, timers).hash(&mut hasher);
    hasher.finish().into()
}

fn main() -> Result {
    let mut app = game();
    let session = SessionBuilder::<Duel>::new().with_num_players(2)?;
    let mut session = session.with_check_distance(4).start_synctest_session()?;
    let mut rollbacks = 0;
    for frame in 0..FRAMES {
        for player in 0..2 {
            let strikes = frame % (7 + player as u32) == 0;
            session.add_local_input(player, Input { strikes })?;
        }
        // It fails if a checksum differs.
        for request in session.advance_frame()? {
            match request {
                GgrsRequest::SaveGameState { cell, frame } => {
                    let snapshot = save(app.world_mut());
                    cell.save(
                        frame,
                        Some(Arc::new(snapshot)),
                        Some(checksum(app.world_mut())),
                    );
                }
                GgrsRequest::LoadGameState { cell, .. } => {
                    let snapshot = cell.load().ok_or("the frame was saved")?;
                    load(app.world_mut(), &snapshot);
                    rollbacks += 1;
                }
                GgrsRequest::AdvanceFrame { inputs } => {
                    app.insert_resource(Inputs([inputs[0].0, inputs[1].0]));
                    app.update();
                }
            }
        }
    }
    let mut heroes = app.world_mut().query::<&Hero>();
    for hero in heroes.iter(app.world()) {
        println!("player {} has {} health left", hero.player, hero.health);
        assert!(hero.health < 950, "each has bled");
    }
    println!("{rollbacks} rollbacks, and no checksum differed");
    assert!(rollbacks > 500);
    Ok(())
}

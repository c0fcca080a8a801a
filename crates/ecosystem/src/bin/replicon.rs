//! A server arms timers, and a client shows how far they have come, both in this process:
//!
//! ```text
//! cargo run --ignore-rust-version --manifest-path crates/ecosystem/Cargo.toml --bin replicon
//! ```
//!
//! A timer fires only on the server. The client gets its [`TimerStatus`], as any other component.

use core::time::Duration;

use bevy_app::prelude::*;
use bevy_due::{Timer, prelude::*, timer::TimerStatus};
use bevy_ecs::prelude::*;
use bevy_replicon::{prelude::*, test_app::ServerTestAppExt};
use bevy_state::app::StatesPlugin;
use bevy_time::{TimePlugin, TimeUpdateStrategy};
use serde::{Deserialize, Serialize};

#[derive(Component, Serialize, Deserialize)]
struct Bomb;

/// What both sides share: the plugins, and what is replicated.
fn shared(app: &mut App) {
    let frame = Duration::from_millis(250);
    app.add_plugins((
        TimePlugin,
        StatesPlugin,
        RepliconPlugins.set(ServerPlugin::new(PostUpdate)),
        DuePlugin::default(),
    ))
    .insert_resource(TimeUpdateStrategy::ManualDuration(frame))
    .replicate::<Bomb>()
    .replicate::<TimerStatus>();
}

fn server() -> App {
    let mut app = App::new();
    shared(&mut app);
    app.add_systems(Startup, plant).add_observer(explode);
    app.finish();
    app
}

/// The timer itself stays on the server.
fn plant(mut commands: Commands) {
    let fuse = Timer::after(2.5).keep_when_done();
    commands.spawn((Replicated, Bomb, fuse, TimerStatus::default()));
}

fn explode(fired: On<TimerFired>) {
    println!("server: {} explodes", fired.entity());
}

fn client() -> App {
    let mut app = App::new();
    shared(&mut app);
    app.add_systems(Update, show);
    app.finish();
    app
}

fn show(bombs: Query<(Entity, &TimerStatus), (With<Bomb>, Changed<TimerStatus>)>) {
    for (bomb, status) in &bombs {
        println!("client: the fuse of {bomb}: {status}");
    }
}

fn main() {
    let (mut server, mut client) = (server(), client());
    // The client starts later, so its clocks are behind.
    for _ in 0..2 {
        server.update();
    }
    server.connect_client(&mut client);
    let mut seen = Vec::new();
    for _ in 0..10 {
        server.update();
        server.exchange_with_client(&mut client);
        client.update();
        let mut bombs = client.world_mut().query::<&TimerStatus>();
        seen.extend(bombs.iter(client.world()).map(|fuse| fuse.fraction()));
    }
    assert!(seen.is_sorted(), "the fuse burns down: {seen:?}");
    assert_eq!(seen.last(), Some(&1.0), "the last firing has come");
}

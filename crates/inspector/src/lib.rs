//! A running game that a browser looks into.
//!
//! `bevy_remote` answers what is in the world: clocks, timers and cooldowns with their remaining time.
//! Two resources of this example add what no component knows: the [last firings](LastFirings), and the
//! [cost of each frame](FrameCosts).
//!
//! # Who may look
//!
//! Both servers listen on the loopback address only. That keeps out other machines, not other programs on
//! this one: `bevy_remote` has no password, and whoever reaches it can change the whole world. A page of
//! another site can reach it too, because a browser sends simple requests anywhere. What the browser
//! withholds is the answer, unless the server allows the origin of that page. This example allows one
//! origin, its own page, and no further headers or methods. Do not ship a game with `bevy_remote` in it.

mod firings;
mod frame_costs;
mod game;
mod page;

use core::{net::Ipv4Addr, time::Duration};
use std::{io, net::TcpListener};

use bevy_app::{ScheduleRunnerPlugin, TaskPoolPlugin, prelude::*};
use bevy_due::{
    Clock, Clocks, Cooldown, DueDiagnosticsPlugin, DuePlugin, Timer, timer::TimerStatus,
};
use bevy_ecs::prelude::*;
use bevy_remote::{RemoteLast, RemotePlugin, RemoteSystems, http::RemoteHttpPlugin};
use bevy_time::TimePlugin;

pub use self::{
    firings::{Firing, LastFirings},
    frame_costs::{FrameCost, FrameCosts},
    page::Page,
};

const FRAME: Duration = Duration::from_nanos(16_666_667);

/// Creates the game. It serves the page, and answers a remote client on the other port.
pub fn app(page: Page, remote_port: u16) -> App {
    let remote = RemoteHttpPlugin::default()
        .with_address(Ipv4Addr::LOCALHOST)
        .with_port(remote_port)
        .with_header("Access-Control-Allow-Origin", page.origin());
    let mut app = App::new();
    app.add_plugins((TaskPoolPlugin::default(), TimePlugin))
        .add_plugins((DuePlugin::default(), DueDiagnosticsPlugin::default()))
        .add_plugins((RemotePlugin::default(), remote, page))
        .add_plugins((firings::plugin, frame_costs::plugin, game::plugin))
        .add_plugins(ScheduleRunnerPlugin::run_loop(FRAME))
        .register_type::<Name>()
        .add_systems(
            RemoteLast,
            show_clocks.before(RemoteSystems::ProcessRequests),
        );
    // All timers and cooldowns show their remaining time, without a change to the game.
    app.register_required_components::<Timer, TimerStatus>()
        .register_required_components::<Cooldown, TimerStatus>();
    app
}

/// Lets clients see the present settings and times of clocks. A clock that replaces itself goes on as before.
fn show_clocks(own: Query<Entity, With<Clock>>, clocks: Clocks, mut commands: Commands) {
    for entity in &own {
        if let Ok(clock) = clocks.get(entity) {
            commands.entity(entity).insert(clock);
        }
    }
}

/// Checks that no other program uses `port`. `bevy_remote` would not say so.
///
/// # Errors
///
/// Fails if the port is in use.
pub fn check_port(port: u16) -> io::Result<()> {
    listen(port).map(drop)
}

fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map_err(|error| io::Error::new(error.kind(), format!("port {port}: {error}")))
}

//! A shard: a process with a journal and a zone.

use core::time::Duration;
use std::{
    io::{self, Write},
    sync::mpsc::{self, Receiver, TryRecvError},
    thread,
    time::Instant,
};

use bevy_app::prelude::*;
use bevy_due::{
    ArmedTimers,
    prelude::*,
    worlds::{StableKey, WorldGroups},
};
use bevy_due_ownership::{Shard, Zone};
use bevy_due_zenoh::{ZenohConfig, zenoh_link};
use bevy_ecs::{
    error::{FallbackErrorHandler, warn},
    prelude::*,
};
use bevy_time::TimePlugin;
use tracing::Level;

use crate::{
    connection::{find_players, let_in, obey, open_door},
    keys,
    ledger::Ledger,
    options::ShardSettings,
    player::{self, Health},
    report::Report,
    sage,
};

const FRAME: Duration = Duration::from_micros(16_667);
const REPORT: Duration = Duration::from_millis(250);

/// Where this world is.
#[derive(Resource)]
pub struct Here {
    pub shard: u64,
    pub zone: StableKey,
    pub shards: u64,
    pub players: u64,
}

/// What has happened here since the last report.
#[derive(Resource, Default)]
pub struct Counts {
    pub moves: u64,
    pub firings: u64,
}

/// Builds a world that becomes the zone of a shard.
pub fn zone_app(shard: &Shard, settings: &ShardSettings) -> App {
    let zone = keys::zone(settings.number);
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .add_plugins(
            shard
                .zone(zone)
                .component::<Ledger>("ledger")
                .component::<Health>("health"),
        )
        .insert_resource(FallbackErrorHandler(warn))
        .insert_resource(Here {
            shard: settings.number,
            zone,
            shards: settings.shards,
            players: settings.players,
        })
        .init_resource::<Counts>()
        .add_observer(player::arrive)
        .add_observer(player::stay)
        .add_observer(player::take_back)
        .add_observer(player::starve)
        .add_observer(player::suffer)
        .add_observer(sage::arrive)
        .add_systems(Startup, sage::begin);
    app
}

/// Runs a shard until the parent says `end`, or is gone.
pub fn run(settings: &ShardSettings) -> Result {
    let log = tracing_subscriber::fmt().with_max_level(Level::WARN);
    log.with_writer(io::stderr).with_ansi(false).init();
    let shard = Shard::open(&settings.journal)?;
    let mut app = zone_app(&shard, settings);
    let (door, port) = open_door()?;
    app.insert_resource(door)
        .add_systems(Update, (let_in, obey, find_players).chain());
    let mut groups = WorldGroups::new();
    groups.add(keys::ZONES, &mut app);
    let number = settings.number as usize;
    groups.join(zenoh_link(ZenohConfig {
        name: Some(format!("shard {}", number + 1)),
        listen: vec![settings.addresses[number].clone()],
        members: settings.addresses.clone(),
        ..ZenohConfig::default()
    }))?;
    app.update();
    print(format_args!("ready {port}"));
    let result = run_frames(&mut app, &orders());
    drop(app);
    groups.stop();
    // The last clone: closes the journal.
    drop(shard);
    result
}

/// Returns what the parent says.
fn orders() -> Receiver<String> {
    let (send, orders) = mpsc::channel();
    thread::spawn(move || {
        let lines = io::stdin().lines().map_while(Result::ok);
        lines.for_each(|line| send.send(line).unwrap_or_default());
    });
    orders
}

fn run_frames(app: &mut App, orders: &Receiver<String>) -> Result {
    let mut next = Instant::now();
    let mut last = next;
    let mut report = Report::default();
    loop {
        match orders.try_recv() {
            Ok(_) | Err(TryRecvError::Disconnected) => return Ok(()),
            Err(TryRecvError::Empty) => {}
        }
        let start = Instant::now();
        app.update();
        report.frames += 1;
        report.busy_micros += start.elapsed().as_micros() as u64;
        if app.should_exit().is_some() {
            return Err("the world has ended: see the log".into());
        }
        if last.elapsed() >= REPORT {
            report.micros = last.elapsed().as_micros() as u64;
            last = Instant::now();
            app.world_mut().run_system_cached_with(look, &mut report)?;
            print(format_args!("report {report}"));
            report = Report::default();
        }
        // A shard that is late does not hurry.
        next = (next + FRAME).max(Instant::now() - FRAME);
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

fn look(
    InMut(report): InMut<Report>,
    zone: Res<Zone>,
    ledgers: Query<&Ledger>,
    timers: ArmedTimers,
    mut counts: ResMut<Counts>,
) {
    let Counts { moves, firings } = core::mem::take(&mut *counts);
    report.players = ledgers.iter().count() as u64;
    report.timers = timers.count() as u64;
    report.on_the_way = zone.on_the_way() as u64;
    report.requests = ledgers.iter().map(Ledger::open_requests).sum();
    (report.moves, report.firings) = (moves, firings);
}

/// Prints a line. `println!` would panic if the parent is gone.
fn print(line: core::fmt::Arguments) {
    writeln!(io::stdout(), "{line}").ok();
}

//! A shard: a process with a file and a zone.

use core::time::Duration;
use std::{
    io,
    path::PathBuf,
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::Instant,
};

use bevy_app::prelude::*;
use bevy_due::{
    ArmedTimers, DuePlugin,
    save::SaveWorldExt,
    worlds::{Refused, StableKey, WorldGroups, link::PeerSettings},
};
use bevy_due_link_testing::example::read_commands;
use bevy_due_nats::{NatsConfig, NatsOwners, NatsOwnersConfig, nats_link};
use bevy_due_ownership::{DurableCommandsExt, Shard, Zone};
use bevy_due_zenoh::{ZenohConfig, zenoh_link};
use bevy_ecs::{
    error::{BevyError, ErrorContext, FallbackErrorHandler},
    prelude::*,
};
use bevy_time::TimePlugin;
use serde::{Deserialize, Serialize};
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    prelude::*,
};

use crate::{
    books::{Ledger, Scars, Wounds},
    player::{self, Here, ZONES, say, zone},
};

const FRAME: Duration = Duration::from_millis(10);
const REPORT: Duration = Duration::from_millis(250);

/// What the parent tells a shard.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) nth: u64,
    pub(crate) shards: u64,
    pub(crate) players: u64,
    pub(crate) build: u32,
    pub(crate) is_resting: bool,
    pub(crate) is_skewed: bool,
    pub(crate) file: PathBuf,
    pub(crate) link: Link,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Link {
    /// The shard only says what its file has, and ends.
    Alone,
    /// The addresses of all shards.
    Zenoh(Vec<String>),
    Nats {
        server: String,
        /// A store on the server decides who owns a player.
        decides: bool,
    },
}

/// What a shard has, as its parent hears it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) players: u64,
    pub(crate) on_the_way: u64,
    /// The firings and answers that are yet to come.
    pub(crate) open: u64,
    pub(crate) parked: u64,
}

/// A player as a shard or its file has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) player: u64,
    pub(crate) ledger: Ledger,
    pub(crate) wounds: u64,
    /// How often the timer of hunger has fired.
    pub(crate) hungry: u64,
}

/// Encodes something as a word of a line.
pub(crate) fn word(value: &impl Serialize) -> String {
    hex::encode(postcard::to_allocvec(value).expect("it can be encoded"))
}

pub(crate) fn read_word<T: for<'a> Deserialize<'a>>(word: &str) -> Result<T> {
    Ok(postcard::from_bytes(&hex::decode(word)?)?)
}

/// Builds a world that becomes the zone of a shard.
fn world(shard: &Shard, settings: &Settings) -> App {
    let &Settings {
        nth,
        shards,
        players,
        build,
        is_resting,
        ..
    } = settings;
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .add_plugins(shard.zone(zone(nth)).allow_unloadable())
        .add_plugins(player::plugin)
        .insert_resource(FallbackErrorHandler(report))
        .insert_resource(Here {
            nth,
            shards,
            players,
            build,
            is_resting,
        });
    let world = app.world_mut();
    world.add_saved_component::<Ledger>("ledger");
    match build {
        1 => world.add_saved_component::<Wounds>("wounds"),
        _ => world.add_versioned_component("wounds", 2, |older| {
            let Wounds(old) = older.read()?;
            Ok(Scars { old, new: 0 })
        }),
    }
    app
}

fn report(error: BevyError, context: ErrorContext) {
    let is_refused = error.downcast_ref::<Refused>().is_some();
    let error = error.to_string();
    // A question or an answer found nobody. A zone heard of the arrival of a player before it heard of the departure.
    if !is_refused && !error.contains("also has an entity with the stable key") {
        let (kind, name) = (context.kind(), context.name());
        eprintln!("{kind} {name}: {}", error.trim_end());
    }
}

/// Runs a shard until the parent says `end`, or is gone.
pub(crate) fn run(settings: &Settings) -> Result {
    // Zenoh reports each broken connection, too.
    let log = Targets::new().with_target("bevy_due", LevelFilter::WARN);
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let log = tracing_subscriber::registry().with(log);
    log.with(lines.with_ansi(false)).init();
    let mut shard = Shard::open(&settings.file)?;
    if let Link::Nats { server, decides } = &settings.link
        && *decides
    {
        let owners = NatsOwners::open(NatsOwnersConfig {
            servers: vec![server.clone()],
            ..NatsOwnersConfig::default()
        })?;
        shard = shard.with_owners(owners)?;
    }
    let (keys, items) = shard.unopened();
    let mut app = world(&shard, settings);
    let mut groups = WorldGroups::new();
    groups.add(ZONES, &mut app);
    if matches!(settings.link, Link::Alone) {
        say(&format!("stored {} {items}", keys.len()));
        app.update();
        tell(&app.world_mut().run_system_cached(find)?);
        return Ok(());
    }
    join(&mut groups, settings)?;
    play(&mut app, &read_commands())?;
    shard.wait()?;
    drop(app);
    groups.stop();
    Ok(())
}

fn join(groups: &mut WorldGroups, settings: &Settings) -> Result {
    let name = Some(format!("shard {}", settings.nth + 1));
    // Short, so that a stopped process is sometimes down, and sometimes not.
    let peers = PeerSettings {
        heartbeat: Duration::from_millis(200),
        suspect_after: Duration::from_millis(1000),
        down_after: Duration::from_millis(2500),
        ..PeerSettings::default()
    };
    match &settings.link {
        Link::Alone => {}
        Link::Zenoh(addresses) => groups.join(zenoh_link(ZenohConfig {
            name,
            listen: vec![addresses[settings.nth as usize].clone()],
            members: addresses.clone(),
            peers,
            ..ZenohConfig::default()
        }))?,
        Link::Nats { server, .. } => groups.join(nats_link(NatsConfig {
            name,
            servers: vec![server.clone()],
            // The server may be down.
            waits_for_server: true,
            peers,
            ..NatsConfig::default()
        }))?,
    }
    Ok(())
}

/// Runs frames, and obeys commands:
///
/// - `rest`: nobody begins anything new.
/// - `tell`: prints all players, when that is durable.
/// - `end`
fn play(app: &mut App, commands: &Receiver<String>) -> Result {
    let mut told = Instant::now();
    loop {
        app.update();
        if let Some(exit) = app.should_exit() {
            return Err(format!("the world has ended: {exit:?}").into());
        }
        let world = app.world_mut();
        if told.elapsed() >= REPORT {
            told = Instant::now();
            let status = world.run_system_cached(status)?;
            say(&format!("status {}", word(&status)));
        }
        match commands.recv_timeout(FRAME).as_deref() {
            Ok("rest") => world.resource_mut::<Here>().is_resting = true,
            Ok("tell") => {
                let found = world.run_system_cached(find)?;
                world.commands().after_commit(move || tell(&found));
                world.flush();
            }
            Err(RecvTimeoutError::Timeout) => {}
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

fn tell(found: &[Found]) {
    found
        .iter()
        .for_each(|it| say(&format!("found {}", word(it))));
    say("told all");
}

fn status(zone: Res<Zone>, ledgers: Query<&Ledger>) -> Status {
    Status {
        players: ledgers.iter().count() as u64,
        on_the_way: zone.on_the_way() as u64,
        open: ledgers.iter().map(Ledger::open).sum(),
        parked: zone.unloadable().count() as u64,
    }
}

type Player<'a> = (
    Entity,
    &'a StableKey,
    &'a Ledger,
    Option<&'a Wounds>,
    Option<&'a Scars>,
);

/// Returns the players of a zone.
fn find(players: Query<Player>, timers: ArmedTimers) -> Vec<Found> {
    let found = players
        .iter()
        .map(|(entity, key, ledger, wounds, scars)| Found {
            player: key.0,
            ledger: ledger.clone(),
            wounds: wounds.map_or(0, |it| it.0) + scars.map_or(0, |it| it.old + it.new),
            hungry: timers.get(entity).map_or(0, |timer| timer.count),
        });
    found.collect()
}

//! A process with a zone, which takes commands on its standard input.

use core::time::Duration;
use std::{
    env, io,
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
};

use bevy_app::prelude::*;
use bevy_due::{
    DuePlugin,
    worlds::{StableKey, WorldGroups, link::PeerSettings},
};
use bevy_due_ownership::{DurableCommandsExt, Shard, Zone};
use bevy_due_zenoh::{ZenohConfig, zenoh_link};
use bevy_ecs::{
    error::{BevyError, ErrorContext, FallbackErrorHandler},
    prelude::*,
};
use bevy_time::TimePlugin;
use tracing::Level;
use tracing_subscriber::{filter::Targets, prelude::*};

use crate::{
    game::{self, Resting, say},
    ledger::{Ledger, zone},
};

/// No entity begins anything new, from the start.
pub(crate) const REST: &str = "BEVY_DUE_REST";

/// Runs a shard: its number, its file, and the addresses of all shards.
pub(crate) fn run(arguments: &[String]) {
    // Zenoh reports each broken connection, too.
    let log =
        tracing_subscriber::registry().with(Targets::new().with_target("bevy_due", Level::WARN));
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    log.with(lines.with_ansi(false)).init();
    let [nth, file, addresses] = arguments else {
        panic!("the arguments are a number, a file and the addresses");
    };
    let nth = nth.parse().expect("a number");
    let addresses: Vec<_> = addresses.split(',').map(String::from).collect();
    if let Err(error) = play(nth, file, addresses, read_commands()) {
        eprintln!("the shard has failed: {error}");
        std::process::exit(1);
    }
}

fn read_commands() -> Receiver<String> {
    let (send, commands) = mpsc::channel();
    thread::spawn(move || {
        let lines = io::stdin().lines().map_while(Result::ok);
        lines.for_each(|line| send.send(line).unwrap_or_default());
    });
    commands
}

fn play(nth: u64, file: &str, addresses: Vec<String>, commands: Receiver<String>) -> Result {
    let shard = Shard::open(file)?;
    let mut app = App::new();
    app.insert_resource(FallbackErrorHandler(report))
        .add_plugins((TimePlugin, DuePlugin::default()))
        .add_plugins(shard.zone(zone(nth)).component::<Ledger>("ledger"))
        .add_plugins(game::plugin);
    if env::var(REST).is_ok() {
        app.insert_resource(Resting);
    }
    let mut groups = WorldGroups::new();
    groups.add("zones", &mut app);
    groups.join(zenoh_link(config(nth, addresses)))?;
    loop {
        app.update();
        if let Some(exit) = app.should_exit() {
            return Err(format!("the world has ended: {exit:?}").into());
        }
        match commands.recv_timeout(Duration::from_millis(4)) {
            Ok(line) if line == "end" => break,
            Ok(line) => obey(app.world_mut(), &line)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    drop(app);
    groups.stop();
    Ok(())
}

fn config(nth: u64, addresses: Vec<String>) -> ZenohConfig {
    ZenohConfig {
        name: Some(format!("shard {nth}")),
        listen: vec![addresses[nth as usize].clone()],
        members: addresses,
        // Short, so that a stopped process is sometimes down, and sometimes not.
        peers: PeerSettings {
            heartbeat: Duration::from_millis(200),
            suspect_after: Duration::from_millis(1000),
            down_after: Duration::from_millis(2500),
            ..PeerSettings::default()
        },
        ..ZenohConfig::default()
    }
}

fn report(error: BevyError, context: ErrorContext) {
    let error = error.to_string();
    eprintln!(
        "{} {}: {}",
        context.kind(),
        context.name(),
        error.trim_end()
    );
}

/// Obeys a command:
///
/// - `spawn 60`: spawns the entities of this zone, whose timers fire so often.
/// - `rest`: no entity begins anything new.
/// - `status`: prints what is on the way, and how many timers have not ended, when that is durable.
/// - `ledgers`: prints all ledgers.
/// - `end`
fn obey(world: &mut World, line: &str) -> Result {
    let words: Vec<&str> = line.split(' ').collect();
    match *words {
        ["spawn", ticks] => {
            let zone = world.resource::<Zone>().key();
            game::spawn(world, zone, ticks.parse()?);
        }
        ["rest"] => world.insert_resource(Resting),
        ["status"] => {
            let on_the_way = world.resource::<Zone>().on_the_way();
            let mut ledgers = world.query::<&Ledger>();
            let running = ledgers.iter(world).filter(|it| it.fired < it.ticks).count();
            let status = format!("status {on_the_way} {running}");
            world.commands().after_commit(move || say(&status));
            world.flush();
        }
        ["ledgers"] => {
            let mut ledgers = world.query::<(&StableKey, &Ledger)>();
            for (key, ledger) in ledgers.iter(world) {
                let ledger = hex::encode(postcard::to_allocvec(ledger)?);
                say(&format!("ledger {} {ledger}", key.0));
            }
            say("all ledgers");
        }
        _ => return Err(format!("unknown: {line}").into()),
    }
    Ok(())
}

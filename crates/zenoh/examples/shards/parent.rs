//! Starts the shards and the clients, kills shards, and lets everything come to rest.

use core::{net::Ipv4Addr, time::Duration};
use std::{
    env, fs,
    io::{self, IsTerminal, Write},
    net::TcpListener,
    path::Path,
    process::{self, ExitCode},
    sync::Arc,
    thread,
    time::Instant,
};

use bevy_due_ownership::Shard;
use bevy_ecs::error::BevyError;

use crate::{
    audit::Audit,
    crowd::{Crowd, Field},
    options::{Settings, ShardSettings},
    process::{News, ShardProcess, State, log},
    screen::{Order, Screen},
    view::{self, Totals},
};

const TICK: Duration = Duration::from_millis(50);
/// How long nothing may happen before everything counts as at rest.
const CALM: Duration = Duration::from_secs(1);
/// How long to wait for rest. A letter to nobody comes back after 30 seconds.
const PATIENCE: Duration = Duration::from_secs(60);
const END_WITHIN: Duration = Duration::from_secs(15);

pub fn run(settings: &Settings) -> Result<ExitCode, BevyError> {
    let directory = env::temp_dir().join(format!("due_shards_{}", process::id()));
    fs::create_dir_all(&directory)?;
    let field = Arc::new(Field::new(settings.players, settings.shards));
    let mut game = Game::start(settings, &directory, field.clone())?;
    let crowd = Crowd::start(&field);
    let played = game.play();
    let clients = crowd.end();
    played?;
    let kills = game.totals.kills;
    let shards = game.end()?;

    let mut audit = Audit::of(&shards, settings.players, &clients)?;
    audit.doubt(field.doubts());
    // One fault may cause many others.
    for fault in audit.faults.iter().take(20) {
        tell(fault);
    }
    tell(&audit.line(kills));
    if !audit.faults.is_empty() {
        tell(&format!("the files are in {}", directory.display()));
        return Ok(ExitCode::FAILURE);
    }
    fs::remove_dir_all(directory)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a line. `println!` would panic if the output is closed.
fn tell(line: &str) {
    writeln!(io::stdout(), "{line}").ok();
}

struct Game {
    settings: Settings,
    field: Arc<Field>,
    shards: Vec<ShardProcess>,
    start: Instant,
    totals: Totals,
    next_kill: Option<Instant>,
    resting_since: Option<Instant>,
}

impl Game {
    fn start(settings: &Settings, directory: &Path, field: Arc<Field>) -> io::Result<Self> {
        let addresses = free_addresses(settings.shards)?;
        let shard = |number| {
            let journal = directory.join(format!("shard_{}.redb", number + 1));
            Shard::create(&journal).map_err(io::Error::other)?;
            ShardProcess::start(ShardSettings {
                number,
                shards: settings.shards,
                players: settings.players,
                journal,
                addresses: addresses.clone(),
            })
        };
        let shards = (0..settings.shards).map(shard);
        let now = Instant::now();
        Ok(Self {
            settings: settings.clone(),
            field,
            shards: shards.collect::<Result<_, _>>()?,
            start: now,
            totals: Totals::default(),
            next_kill: settings.kill.then(|| now + Duration::from_secs(2)),
            resting_since: None,
        })
    }

    /// Runs until everything is at rest.
    fn play(&mut self) -> Result<(), BevyError> {
        let mut screen = match io::stdout().is_terminal() {
            true => Some(Screen::open()?),
            false => None,
        };
        let mut told = Instant::now();
        while !self.is_over() {
            self.hear()?;
            self.kill_some();
            let orders = match &mut screen {
                Some(screen) => {
                    let picture = (&*self.shards, &self.totals, self.phase());
                    screen.draw(|frame| view::draw(picture, frame))?;
                    screen.orders(TICK)?
                }
                None => {
                    thread::sleep(TICK);
                    Vec::new()
                }
            };
            for order in orders {
                self.obey(order);
            }
            if told.elapsed() >= Duration::from_secs(1) {
                told += Duration::from_secs(1);
                self.totals.end_second();
                if screen.is_none() {
                    tell(&view::line(&self.shards, &self.totals, &self.phase()));
                }
            }
        }
        Ok(())
    }

    fn phase(&self) -> String {
        let left = self.settings.time.saturating_sub(self.start.elapsed());
        match self.resting_since {
            Some(_) => "comes to rest".into(),
            None => format!("{} s left", left.as_secs()),
        }
    }

    /// Hears the shards, and starts those again that have died.
    fn hear(&mut self) -> Result<(), BevyError> {
        for shard in &mut self.shards {
            for news in shard.news()? {
                match news {
                    News::Ready { port } => self.field.set_port(shard.number(), port),
                    News::Report(report) => self.totals.add(&report),
                    News::Died {
                        failure: Some(status),
                    } => {
                        let log = fs::read_to_string(log(&shard.settings)).unwrap_or_default();
                        return Err(format!(
                            "shard {} failed, {status}: {log}",
                            shard.number() + 1
                        )
                        .into());
                    }
                    News::Died { failure: None } => {
                        self.totals.kills += 1;
                        self.field.set_port(shard.number(), 0);
                        shard.restart()?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Kills a shard at random every second or so.
    fn kill_some(&mut self) {
        let now = Instant::now();
        if self.start.elapsed() >= self.settings.time {
            self.rest();
        }
        if self.next_kill.is_some_and(|at| at <= now) {
            let pause = Duration::from_millis(fastrand::u64(500..2500));
            self.next_kill = Some(now + pause);
            let victim = fastrand::usize(..self.shards.len());
            self.shards[victim].kill();
        }
    }

    fn rest(&mut self) {
        self.field.rest();
        self.next_kill = None;
        self.resting_since.get_or_insert_with(Instant::now);
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Kill(number) => {
                if let Some(shard) = self.shards.get_mut(number) {
                    shard.kill();
                }
            }
            Order::End => self.rest(),
        }
    }

    /// Returns `true` if nothing is on the way any more, or if that takes too long.
    fn is_over(&self) -> bool {
        let Some(since) = self.resting_since else {
            return false;
        };
        let is_calm = |shard: &ShardProcess| {
            let calm = shard.calm_since.map(|calm| calm.max(since).elapsed());
            calm.is_some_and(|calm| calm >= CALM)
        };
        let is_here = |shard: &ShardProcess| match shard.state {
            State::Starts => 0,
            State::Runs(report) => report.players,
        };
        let players: u64 = self.shards.iter().map(is_here).sum();
        let is_done = self.shards.iter().all(is_calm) && players == self.settings.players;
        is_done || since.elapsed() >= PATIENCE
    }

    /// Ends the shards.
    fn end(self) -> Result<Vec<ShardSettings>, BevyError> {
        let end = |shard: ShardProcess| {
            let settings = shard.settings.clone();
            match shard.end(END_WITHIN) {
                true => Ok(settings),
                false => Err(format!("shard {} did not end", settings.number + 1).into()),
            }
        };
        self.shards.into_iter().map(end).collect()
    }
}

/// Returns addresses with free ports.
fn free_addresses(count: u64) -> io::Result<Vec<String>> {
    let listen = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    // All at once, so that they differ.
    let listeners = (0..count).map(listen).collect::<Result<Vec<_>, _>>()?;
    let address = |listener: &TcpListener| Ok(listener.local_addr()?.to_string());
    listeners.iter().map(address).collect()
}

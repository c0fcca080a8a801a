//! The parent: starts the shards, kills and stops them, and lets everything come to rest.

use core::time::Duration;
use std::{
    collections::VecDeque,
    env, fs,
    io::{self, Write},
    path::Path,
    process::{self, ExitCode},
    thread,
    time::Instant,
};

use bevy_due_link_testing::{addresses, nats_server::NatsServer};
use bevy_due_ownership::Shard;
use bevy_ecs::error::BevyError;

use crate::{
    audit::{Audit, Seen},
    disk::{self, Disk},
    member::{Member, State},
    options::Options,
    shard::{Found, Link, Settings, Status},
};

const SECOND: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(20);
/// How long nothing may happen before everything counts as at rest.
const CALM: Duration = Duration::from_secs(1);
/// How long to wait for rest. A letter to nobody comes back after 30 seconds.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long a thousand moves may take on a slow machine.
const THOUSAND_MOVES: Duration = Duration::from_secs(30);
/// The clocks of the shards, in the words of `faketime`.
const SKEWS: [Option<&str>; 4] = [Some("-1d"), Some("+400d"), None, Some("+7")];

pub(crate) fn run(options: &Options) -> Result<ExitCode, BevyError> {
    let folder = env::temp_dir().join(format!("due_ledger_{}", process::id()));
    fs::create_dir_all(&folder)?;
    let mut cluster = Cluster::start(options, &folder)?;
    let played = cluster.play();
    cluster
        .faults
        .extend(played.err().map(|error| error.to_string()));
    // One fault may cause many others.
    for fault in cluster.faults.iter().take(20) {
        say(&format!("FAULT: {fault}"));
    }
    let is_fine = cluster.faults.is_empty();
    drop(cluster);
    match is_fine {
        true => fs::remove_dir_all(folder)?,
        false => say(&format!("the files are in {}", folder.display())),
    }
    Ok(ExitCode::from(u8::from(!is_fine)))
}

/// Prints a line. `println!` would panic if the output is closed.
fn say(line: &str) {
    writeln!(io::stdout(), "{line}").ok();
}

struct Cluster<'a> {
    options: &'a Options,
    start: Instant,
    members: Vec<Member>,
    seen: Seen,
    faults: Vec<String>,
    kills: u64,
    stops: u64,
    warnings: u64,
    /// How often a process has ended because of its disk.
    ends: u64,
    next_kill: Instant,
    next_stop: Instant,
    /// Which member gets another build, and when.
    builds: VecDeque<(Duration, usize, u32)>,
    disk: Option<Disk>,
    /// The moves and firings that were seen when the last line was printed.
    told: (u64, u64),
    next_line: Instant,
    // Ends after the members.
    _server: Option<NatsServer>,
}

impl<'a> Cluster<'a> {
    fn start(options: &'a Options, folder: &Path) -> Result<Self, BevyError> {
        let start = Instant::now();
        let server = options.nats.then(|| match options.store {
            true => NatsServer::start(&["-js"]),
            false => NatsServer::start(&[]),
        });
        let link = match &server {
            Some(server) => Link::Nats {
                server: server.address.clone(),
                decides: options.store,
            },
            None => Link::Zenoh(addresses::<9>()[..options.shards as usize].to_vec()),
        };
        let mut disk = None;
        let mut members = Vec::new();
        for nth in 0..options.shards {
            let folder = folder.join(format!("shard_{}", nth + 1));
            fs::create_dir_all(&folder)?;
            if options.disk && nth == 0 {
                disk = Some(Disk::mount(&folder)?);
            }
            let settings = Settings {
                nth,
                shards: options.shards,
                players: options.players,
                build: 1,
                is_resting: false,
                file: folder.join(disk::FILE),
                link: link.clone(),
            };
            Shard::create(&settings.file)?;
            let skew = options.skew.then_some(SKEWS[(nth % 4) as usize]).flatten();
            let log = folder.with_extension("log");
            members.push(Member::new(settings, skew, &log)?);
        }
        Ok(Self {
            options,
            start,
            members,
            seen: Seen::default(),
            faults: Vec::new(),
            kills: 0,
            stops: 0,
            warnings: 0,
            ends: 0,
            next_kill: start + Duration::from_secs(2),
            next_stop: start + Duration::from_secs(2),
            builds: match options.upgrade {
                true => builds(options),
                false => VecDeque::new(),
            },
            disk,
            told: (0, 0),
            next_line: start + SECOND,
            _server: server,
        })
    }

    fn play(&mut self) -> Result<(), BevyError> {
        let Options { time, moves, .. } = *self.options;
        let limit = THOUSAND_MOVES * u32::try_from(moves / 1000)?;
        while self.start.elapsed() < time || self.seen.moves < moves && self.start.elapsed() < limit
        {
            self.trouble()?;
            self.step()?;
        }
        if self.seen.moves < moves {
            return Err(format!("{} of {moves} moves in {limit:?}", self.seen.moves).into());
        }
        self.rest()?;
        self.check()
    }

    /// Kills and stops processes, and lets the disk fail.
    fn trouble(&mut self) -> Result<(), BevyError> {
        let now = Instant::now();
        let nth = fastrand::usize(..self.members.len());
        if self.options.kill && self.next_kill <= now {
            self.next_kill = now + Duration::from_millis(fastrand::u64(200..1500));
            self.members[nth].kill();
        }
        let nth = fastrand::usize(..self.members.len());
        if self.options.stop && self.next_stop <= now && self.members[nth].is_running() {
            self.next_stop = now + Duration::from_millis(fastrand::u64(1000..8000));
            // From half a second to twelve, mostly short ones.
            let time = 0.5 * 24_f32.powf(fastrand::f32());
            self.members[nth].stop(Duration::from_secs_f32(time));
            self.stops += 1;
        }
        self.disk.as_mut().map_or(Ok(()), Disk::step)?;
        Ok(())
    }

    /// Hears all processes, and starts those again that have ended.
    fn step(&mut self) -> Result<(), BevyError> {
        thread::sleep(TICK);
        for nth in 0..self.members.len() {
            self.care_for(nth)?;
            self.hear(nth)?;
        }
        if let Some(&(at, nth, build)) = self.builds.front()
            && at <= self.start.elapsed()
            && self.members[nth].is_running()
        {
            self.builds.pop_front();
            self.members[nth].settings.build = build;
            self.members[nth].tell("end");
        }
        self.say_line();
        Ok(())
    }

    fn care_for(&mut self, nth: usize) -> Result<(), BevyError> {
        let now = Instant::now();
        let member = &mut self.members[nth];
        match &member.state {
            State::Down { until } if *until <= now => member.start()?,
            State::Stopped { until, .. } if *until <= now => member.go_on(),
            State::Runs { heard, .. } if heard.elapsed() > PATIENCE => {
                return Err(format!("shard {} has said nothing for {PATIENCE:?}", nth + 1).into());
            }
            _ => {}
        }
        Ok(())
    }

    fn hear(&mut self, nth: usize) -> Result<(), BevyError> {
        let news = self.members[nth].hear()?;
        for event in news.events {
            let (kind, numbers) = event.split_once(' ').unwrap_or((&event, ""));
            self.seen.take(kind, numbers, &mut self.faults);
        }
        let disk_is_bad = self.disk.is_some() && nth == 0;
        let may_warn = disk_is_bad || self.options.upgrade;
        for warning in news.warnings {
            self.warnings += 1;
            if !may_warn {
                let shard = nth + 1;
                self.faults.push(format!("shard {shard} warns: {warning}"));
            }
        }
        let Some(status) = news.ended else {
            return Ok(());
        };
        match status.code() {
            // A signal leaves no code.
            None => self.kills += 1,
            Some(0) => {}
            Some(_) if disk_is_bad => self.ends += 1,
            Some(_) => return Err(format!("shard {} has ended: {status}", nth + 1).into()),
        }
        let pause = Duration::from_millis(fastrand::u64(0..300));
        let until = Instant::now() + pause;
        let member = &mut self.members[nth];
        member.state = State::Down { until };
        member.calm_since = None;
        Ok(())
    }

    /// Lets everything come to rest.
    fn rest(&mut self) -> Result<(), BevyError> {
        while !self.builds.is_empty() {
            self.step()?;
        }
        self.disk.as_mut().map_or(Ok(()), Disk::mend)?;
        for member in &mut self.members {
            member.go_on();
            member.settings.is_resting = true;
            member.tell("rest");
        }
        let since = Instant::now();
        while !self.is_at_rest(since) {
            if since.elapsed() > PATIENCE {
                let statuses = self.members.iter().map(|it| it.status);
                let statuses: Vec<_> = statuses.collect();
                self.faults.push(format!("waited for rest: {statuses:?}"));
                break;
            }
            self.step()?;
        }
        Ok(())
    }

    fn is_at_rest(&self, since: Instant) -> bool {
        let is_calm = |member: &Member| {
            let calm = member.calm_since.map(|calm| calm.max(since).elapsed());
            calm.is_some_and(|calm| calm >= CALM)
        };
        let players: u64 = self.members.iter().map(|it| it.status.players).sum();
        self.members.iter().all(is_calm) && players == self.options.players
    }

    /// Compares what the processes have, and what their files have after a kill.
    fn check(&mut self) -> Result<(), BevyError> {
        let kills = self.kills;
        self.members.iter_mut().for_each(|it| it.tell("tell"));
        while !self.members.iter().all(|it| it.has_told_all) {
            self.step()?;
        }
        let found = self.take_found();
        self.audit("processes", &found);
        self.members.iter_mut().for_each(Member::kill);
        self.hear_until_all_have_ended()?;
        for member in &mut self.members {
            member.settings.link = Link::Alone;
            member.start()?;
        }
        self.hear_until_all_have_ended()?;
        for member in &self.members {
            // The sage is no player.
            let expected = format!("{} 0", member.found.len() + 1);
            if member.stored != expected {
                self.faults.push(format!(
                    "shard {} has stored so many entities, and so many on their way: {} instead of {expected}",
                    member.settings.nth + 1,
                    member.stored
                ));
            }
        }
        let found = self.take_found();
        let audit = self.audit("files", &found);
        self.faults.extend(self.seen.not_among(&found));
        if let Some(disk) = &self.disk {
            let Self { ends, warnings, .. } = self;
            let times = disk.faults;
            say(&format!(
                "the disk failed {times} times, and ended {ends} processes: {warnings} warnings"
            ));
        }
        say(&format!("{audit}, {kills} kills, {} stops", self.stops));
        Ok(())
    }

    /// Returns the players that all members have told, with their shards.
    fn take_found(&mut self) -> Vec<(u64, Found)> {
        let mut all = Vec::new();
        for member in &mut self.members {
            let nth = member.settings.nth;
            all.extend(member.found.drain(..).map(|found| (nth, found)));
        }
        all
    }

    fn audit(&mut self, place: &str, found: &[(u64, Found)]) -> Audit {
        let mut audit = Audit::of(found, self.options.players, self.start.elapsed());
        let faults = audit.faults.drain(..);
        self.faults
            .extend(faults.map(|fault| format!("{place}: {fault}")));
        audit
    }

    fn hear_until_all_have_ended(&mut self) -> Result<(), BevyError> {
        while self.members.iter_mut().any(|it| it.node().is_some()) {
            thread::sleep(TICK);
            for nth in 0..self.members.len() {
                self.hear(nth)?;
            }
        }
        Ok(())
    }

    /// Prints a line every second.
    fn say_line(&mut self) {
        let now = Instant::now();
        if now < self.next_line {
            return;
        }
        self.next_line = now + SECOND;
        let Seen { moves, firings, .. } = self.seen;
        let (moves_before, firings_before) = core::mem::replace(&mut self.told, (moves, firings));
        let mut members: Vec<_> = self.members.iter_mut().map(line).collect();
        members.extend(
            self.disk
                .as_ref()
                .map(|it| format!("disk 1: {:?}", it.state)),
        );
        say(&format!(
            "{:4} s: {:4} moves/s, {:4} firings/s, {} kills, {} stops {}",
            self.start.elapsed().as_secs(),
            moves - moves_before,
            firings - firings_before,
            self.kills,
            self.stops,
            members.join(" ")
        ));
    }
}

/// Returns what a line says of a member.
fn line(member: &mut Member) -> String {
    let Status {
        players,
        on_the_way,
        parked,
        ..
    } = member.status;
    let pid = member.node().map_or(0, |node| node.id());
    let parked = match parked {
        0 => String::new(),
        parked => format!(", {parked} parked"),
    };
    match &member.state {
        State::Down { .. } => "[down]".into(),
        State::Stopped { .. } => format!("[{pid} stopped]"),
        State::Runs { heard, .. } if heard.elapsed() > SECOND => format!("[{pid} silent]"),
        State::Runs { .. } => format!("[{pid} {players} players, {on_the_way} on the way{parked}]"),
    }
}

/// Returns when which shard gets which build: each the second one, then the first one again, and the second one.
fn builds(options: &Options) -> VecDeque<(Duration, usize, u32)> {
    let steps = [2, 1, 2].into_iter().flat_map(|build| {
        let shards = 0..options.shards as usize;
        shards.map(move |nth| (nth, build))
    });
    let count = 3 * options.shards as u32;
    let times = (0..count).map(|step| options.time * (2 * count + 6 * step) / (10 * count));
    times
        .zip(steps)
        .map(|(at, (nth, build))| (at, nth, build))
        .collect()
}

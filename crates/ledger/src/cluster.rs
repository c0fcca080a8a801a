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
    member::Member,
    options::Options,
    shard::{Found, Link, Settings},
};

const TICK: Duration = Duration::from_millis(20);
const SECOND: Duration = Duration::from_secs(1);
/// How long to wait for rest. A letter to nobody comes back after 30 seconds.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long a thousand moves may take on a slow machine.
const THOUSAND_MOVES: Duration = Duration::from_secs(30);

pub(crate) fn run(options: &Options) -> Result<ExitCode, BevyError> {
    let folder = env::temp_dir().join(format!("due_ledger_{}", process::id()));
    fs::create_dir_all(&folder)?;
    let mut cluster = Cluster::start(options, &folder)?;
    let played = cluster.play().map_err(|error| error.to_string());
    let mut faults = core::mem::take(&mut cluster.seen.faults);
    faults.extend(played.err());
    // It unmounts its disk.
    drop(cluster);
    // One fault may cause many others.
    for fault in faults.iter().take(20) {
        say(&format!("FAULT: {fault}"));
    }
    match faults.is_empty() {
        true => fs::remove_dir_all(folder)?,
        false => say(&format!("the files are in {}", folder.display())),
    }
    Ok(ExitCode::from(u8::from(!faults.is_empty())))
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
    kills: u64,
    stops: u64,
    /// How often a process has ended by itself, as it may.
    ends: u64,
    next_kill: Instant,
    next_stop: Instant,
    next_server: Instant,
    next_line: Instant,
    /// When which member gets which build.
    builds: VecDeque<(Duration, usize, u32)>,
    // These end after the members.
    disk: Option<Disk>,
    server: Option<NatsServer>,
}

impl<'a> Cluster<'a> {
    fn start(options: &'a Options, folder: &Path) -> Result<Self, BevyError> {
        let start = Instant::now();
        let server = options.nats.then(|| NatsServer::start(&["-js"]));
        let link = match &server {
            Some(server) => Link::Nats {
                server: server.address.clone(),
                decides: options.store,
            },
            None => Link::Zenoh(addresses::<9>()[..options.shards as usize].to_vec()),
        };
        let mut cluster = Self {
            options,
            start,
            members: Vec::new(),
            seen: Seen::default(),
            kills: 0,
            stops: 0,
            ends: 0,
            next_kill: start + 2 * SECOND,
            next_stop: start + 2 * SECOND,
            next_server: start + 5 * SECOND,
            next_line: start + SECOND,
            builds: builds(options),
            disk: None,
            server,
        };
        for nth in 0..options.shards {
            let folder = folder.join(format!("shard_{}", nth + 1));
            fs::create_dir_all(&folder)?;
            if options.disk && nth == 0 {
                cluster.disk = Some(Disk::mount(&folder)?);
            }
            let settings = Settings {
                nth,
                shards: options.shards,
                players: options.players,
                build: 1,
                is_resting: false,
                is_skewed: options.skew,
                file: folder.join(disk::FILE),
                link: link.clone(),
            };
            Shard::create(&settings.file)?;
            let member = Member::new(settings, &folder.with_extension("log"))?;
            cluster.members.push(member);
        }
        Ok(cluster)
    }

    fn play(&mut self) -> Result<(), BevyError> {
        let Options { time, moves, .. } = *self.options;
        let limit = time.max(THOUSAND_MOVES * u32::try_from(moves / 1000)?);
        let is_over = |it: &Self| it.start.elapsed() >= time && it.seen.moves >= moves;
        while !is_over(self) || !self.builds.is_empty() {
            if self.start.elapsed() > limit + PATIENCE {
                return Err(format!("{} of {moves} moves in {limit:?}", self.seen.moves).into());
            }
            self.trouble()?;
            self.step()?;
        }
        self.rest()?;
        self.check()
    }

    /// Kills and stops processes, gives them another build, and lets the disk fail.
    fn trouble(&mut self) -> Result<(), BevyError> {
        let now = Instant::now();
        let victim = fastrand::usize(..self.members.len());
        let victim = &mut self.members[victim];
        if self.options.kill && self.next_kill <= now {
            self.next_kill = now + Duration::from_millis(fastrand::u64(200..1500));
            victim.kill();
        } else if self.options.stop && self.next_stop <= now && victim.is_running() {
            self.next_stop = now + Duration::from_millis(fastrand::u64(1000..8000));
            // From half a second to twelve, mostly short ones.
            let time = 0.5 * 24_f32.powf(fastrand::f32());
            victim.stop(Duration::from_secs_f32(time));
            self.stops += 1;
        }
        if let Some(&(at, nth, build)) = self.builds.front()
            && at <= self.start.elapsed()
            && self.members[nth].is_running()
        {
            self.builds.pop_front();
            self.members[nth].settings.build = build;
            self.members[nth].tell("end");
        }
        if self.options.server && self.next_server <= now {
            self.next_server = now + Duration::from_millis(fastrand::u64(5000..25_000));
            self.server.iter_mut().for_each(NatsServer::kill);
            thread::sleep(Duration::from_millis(fastrand::u64(0..3000)));
            self.server.iter_mut().for_each(NatsServer::start_again);
        }
        self.disk.as_mut().map_or(Ok(()), Disk::step)?;
        Ok(())
    }

    /// Hears all processes, and starts those again that have ended.
    fn step(&mut self) -> Result<(), BevyError> {
        self.hear()?;
        let now = Instant::now();
        for member in &mut self.members {
            member.wake(now)?;
            if member.is_running() && member.heard.elapsed() > PATIENCE {
                let nth = member.settings.nth + 1;
                return Err(format!("shard {nth} has said nothing for {PATIENCE:?}").into());
            }
        }
        if self.next_line <= now {
            self.next_line = now + SECOND;
            self.say_line();
        }
        Ok(())
    }

    fn hear(&mut self) -> Result<(), BevyError> {
        thread::sleep(TICK);
        for member in &mut self.members {
            let nth = member.settings.nth + 1;
            // Without its disk, or the store of owners, it does not start.
            let may_fail =
                self.disk.is_some() && nth == 1 || self.options.server && self.options.store;
            let may_warn = may_fail || self.options.server || self.options.upgrade;
            let (warnings, ended) = member.hear(&mut self.seen)?;
            if !may_warn {
                let warnings = warnings.iter();
                let faults = warnings.map(|it| format!("shard {nth} warns: {it}"));
                self.seen.faults.extend(faults);
            }
            match ended.map(|status| status.code()) {
                // A signal leaves no code.
                Some(None) => self.kills += 1,
                None | Some(Some(0)) => {}
                Some(Some(_)) if may_fail => self.ends += 1,
                Some(Some(code)) => return Err(format!("shard {nth} has ended: {code}").into()),
            }
        }
        Ok(())
    }

    fn say_line(&mut self) {
        let members: Vec<_> = self.members.iter().map(Member::line).collect();
        let disk = self
            .disk
            .as_ref()
            .map(|it| format!(" disk 1: {:?}", it.state));
        let Self {
            kills, stops, seen, ..
        } = self;
        let seconds = self.start.elapsed().as_secs();
        say(&format!(
            "{seconds:3} s: {} moves, {} firings, {kills} kills, {stops} stops {}{}",
            seen.moves,
            seen.firings,
            members.join(" "),
            disk.unwrap_or_default()
        ));
    }

    /// Lets everything come to rest.
    fn rest(&mut self) -> Result<(), BevyError> {
        self.disk.as_mut().map_or(Ok(()), Disk::mend)?;
        for member in &mut self.members {
            member.settings.is_resting = true;
            member.tell("rest");
        }
        let since = Instant::now();
        while !self.is_at_rest(since) {
            if since.elapsed() > PATIENCE {
                let statuses: Vec<_> = self.members.iter().map(|it| it.status).collect();
                let fault = format!("no rest after {PATIENCE:?}: {statuses:?}");
                self.seen.faults.push(fault);
                break;
            }
            self.step()?;
        }
        Ok(())
    }

    /// Returns `true` if nothing has happened for a second.
    fn is_at_rest(&self, since: Instant) -> bool {
        let is_calm = |member: &Member| {
            let calm = member.calm_since.map(|calm| calm.max(since).elapsed());
            calm.is_some_and(|calm| calm >= SECOND)
        };
        let players: u64 = self.members.iter().map(|it| it.status.players).sum();
        self.members.iter().all(is_calm) && players == self.options.players
    }

    /// Checks what the processes have, and what their files have after a last kill.
    fn check(&mut self) -> Result<(), BevyError> {
        let kills = self.kills;
        self.members.iter_mut().for_each(|it| it.tell("tell"));
        while !self.members.iter().all(|it| it.has_told_all) {
            self.step()?;
        }
        self.audit("processes");
        self.members.iter().for_each(Member::kill);
        self.hear_to_the_end()?;
        for member in &mut self.members {
            member.settings.link = Link::Alone;
            member.start()?;
        }
        self.hear_to_the_end()?;
        for member in &self.members {
            // The sage is no player.
            let expected = format!("{} 0", member.found.len() + 1);
            if member.stored != expected {
                self.seen.faults.push(format!(
                    "shard {} has stored so many entities, and so many on their way: {} instead of {expected}",
                    member.settings.nth + 1,
                    member.stored
                ));
            }
        }
        let audit = self.audit("files");
        if let Some(Disk { faults, .. }) = &self.disk {
            let ends = self.ends;
            say(&format!(
                "the disk failed {faults} times, and so did {ends} processes"
            ));
        }
        say(&format!("{audit}, {kills} kills, {} stops", self.stops));
        Ok(())
    }

    fn hear_to_the_end(&mut self) -> Result<(), BevyError> {
        while self.members.iter().any(|it| it.node.is_some()) {
            self.hear()?;
        }
        Ok(())
    }

    /// Checks the players that all members have told.
    fn audit(&mut self, place: &str) -> Audit {
        let mut found: Vec<(u64, Found)> = Vec::new();
        for member in &mut self.members {
            let nth = member.settings.nth;
            found.extend(member.found.drain(..).map(|found| (nth, found)));
        }
        let mut audit = Audit::of(&found, self.options.players, self.start.elapsed());
        let faults = audit.faults.drain(..);
        let faults = faults.map(|fault| format!("{place}: {fault}"));
        self.seen.faults.extend(faults);
        // Since the processes have told, more has happened.
        if place == "files" {
            self.seen.check(&found);
        }
        audit
    }
}

/// Returns when which shard gets which build: each the second one, then the first one again, and the second one.
fn builds(options: &Options) -> VecDeque<(Duration, usize, u32)> {
    let shards = 0..options.shards as usize;
    let builds = [2, 1, 2].into_iter();
    let steps = builds.flat_map(|build| shards.clone().map(move |nth| (nth, build)));
    let count = 3 * options.shards as u32;
    let times = (0..count).map(|step| options.time * (2 * count + 6 * step) / (10 * count));
    let all = times.zip(steps).map(|(at, (nth, build))| (at, nth, build));
    all.filter(|_| options.upgrade).collect()
}

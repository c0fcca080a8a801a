//! A shard, as the parent sees it.

use core::time::Duration;
use std::{
    env,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    time::Instant,
};

use bevy_due_link_testing::node::Node;
use bevy_ecs::error::BevyError;

use crate::{
    audit::Seen,
    shard::{Found, Settings, Status, read_word, word},
};

/// The clocks of the shards, in the words of `faketime`.
const SKEWS: [&str; 4] = ["-1d", "+400d", "+0", "+7"];

pub(crate) struct Member {
    pub(crate) settings: Settings,
    pub(crate) node: Option<Node>,
    /// Until when the process is down or stopped, if it is.
    until: Option<Instant>,
    pub(crate) status: Status,
    pub(crate) heard: Instant,
    /// Since when nothing is on its way.
    pub(crate) calm_since: Option<Instant>,
    /// The players that it has told, and whether these are all.
    pub(crate) found: Vec<Found>,
    pub(crate) has_told_all: bool,
    /// How many entities its file has, and how many were on their way.
    pub(crate) stored: String,
    log: File,
}

impl Member {
    /// Starts a process, whose warnings also go to a file.
    pub(crate) fn new(settings: Settings, log: &Path) -> io::Result<Self> {
        let mut member = Self {
            settings,
            node: None,
            until: None,
            status: Status::default(),
            heard: Instant::now(),
            calm_since: None,
            found: Vec::new(),
            has_told_all: false,
            stored: String::new(),
            log: File::create(log)?,
        };
        member.start()?;
        Ok(member)
    }

    pub(crate) fn start(&mut self) -> io::Result<()> {
        let mut command = Command::new(env::current_exe()?);
        command.args(["shard", &word(&self.settings)]);
        if self.settings.is_skewed {
            command
                .env("LD_PRELOAD", faketime()?)
                .env("FAKETIME", SKEWS[self.settings.nth as usize % SKEWS.len()])
                .env("DONT_FAKE_MONOTONIC", "1");
        }
        let name = format!("shard {}", self.settings.nth + 1);
        self.node = Some(Node::spawn(&name, &mut command));
        self.until = None;
        self.heard = Instant::now();
        Ok(())
    }

    pub(crate) fn is_running(&self) -> bool {
        self.node.is_some() && self.until.is_none()
    }

    pub(crate) fn tell(&mut self, command: &str) {
        self.node.iter_mut().for_each(|node| node.tell(command));
    }

    pub(crate) fn kill(&self) {
        self.node.iter().for_each(|node| node.signal("-KILL"));
    }

    /// Stops a process that runs, for a while.
    pub(crate) fn stop(&mut self, time: Duration) {
        self.node.iter().for_each(|node| node.signal("-STOP"));
        self.until = Some(Instant::now() + time);
    }

    /// Starts the process again, or lets it go on, if it is time.
    pub(crate) fn wake(&mut self, now: Instant) -> io::Result<()> {
        if self.until.is_none_or(|until| until > now) {
            return Ok(());
        }
        match &self.node {
            Some(node) => node.signal("-CONT"),
            None => return self.start(),
        }
        self.until = None;
        self.heard = now;
        Ok(())
    }

    /// Hears what the process has said. Returns its warnings, and how it has ended.
    pub(crate) fn hear(
        &mut self,
        seen: &mut Seen,
    ) -> Result<(Vec<String>, Option<ExitStatus>), BevyError> {
        let Some(node) = &mut self.node else {
            return Ok((Vec::new(), None));
        };
        let ended = node.ended();
        let [lines, warnings] = node.unread();
        for warning in &warnings {
            writeln!(self.log, "{warning}")?;
        }
        for line in lines {
            match line.split_once(' ') {
                Some(("status", status)) => self.note(read_word(status)?),
                Some(("found", found)) => self.found.push(read_word(found)?),
                Some(("stored", stored)) => self.stored = stored.into(),
                _ if line == "told all" => self.has_told_all = true,
                _ => seen.take(&line),
            }
        }
        if ended.is_some() {
            self.node = None;
            self.until = Some(Instant::now() + Duration::from_millis(fastrand::u64(0..300)));
            self.calm_since = None;
        }
        Ok((warnings, ended))
    }

    fn note(&mut self, status: Status) {
        self.status = status;
        self.heard = Instant::now();
        match (status.on_the_way, status.open, status.parked) {
            (0, 0, 0) => _ = self.calm_since.get_or_insert(self.heard),
            _ => self.calm_since = None,
        }
    }

    /// Returns what the line of a second says of it.
    pub(crate) fn line(&self) -> String {
        let Status {
            players,
            on_the_way,
            parked,
            ..
        } = self.status;
        let state = match (&self.node, parked) {
            (None, _) => return "[down]".into(),
            (Some(_), _) if self.until.is_some() => "stopped".into(),
            (Some(_), _) if self.heard.elapsed() > Duration::from_secs(1) => "silent".into(),
            (Some(_), 0) => format!("{players} players, {on_the_way} on the way"),
            (Some(_), parked) => format!("{parked} players parked, {on_the_way} on the way"),
        };
        format!("[{} {state}]", self.node.as_ref().map_or(0, Node::id))
    }
}

/// Returns the library that lets a process see another time.
fn faketime() -> io::Result<PathBuf> {
    let folders = fs::read_dir("/usr/lib")?.flatten();
    let mut libraries = folders.map(|it| it.path().join("faketime/libfaketimeMT.so.1"));
    libraries.find(|it| it.exists()).ok_or_else(|| {
        io::Error::other("`--skew` needs `faketime`: install it with `apt-get install faketime`")
    })
}

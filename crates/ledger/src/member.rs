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

use crate::shard::{Found, Settings, Status, read_word, word};

pub(crate) struct Member {
    pub(crate) settings: Settings,
    /// How much its wall clock is off, in the words of `faketime`.
    pub(crate) skew: Option<&'static str>,
    pub(crate) state: State,
    pub(crate) status: Status,
    /// Since when nothing is on its way.
    pub(crate) calm_since: Option<Instant>,
    /// The players that it has told.
    pub(crate) found: Vec<Found>,
    pub(crate) has_told_all: bool,
    /// How many entities its file has, and how many were on their way.
    pub(crate) stored: String,
    log: File,
}

pub(crate) enum State {
    Down { until: Instant },
    Runs { node: Node, heard: Instant },
    Stopped { node: Node, until: Instant },
}

/// What a member has said since the last time.
#[derive(Default)]
pub(crate) struct News {
    /// What players see.
    pub(crate) events: Vec<String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) ended: Option<ExitStatus>,
}

impl Member {
    /// Starts a process, whose warnings also go to a file.
    pub(crate) fn new(
        settings: Settings,
        skew: Option<&'static str>,
        log: &Path,
    ) -> io::Result<Self> {
        let log = File::create(log)?;
        let mut member = Self {
            settings,
            skew,
            state: State::Down {
                until: Instant::now(),
            },
            status: Status::default(),
            calm_since: None,
            found: Vec::new(),
            has_told_all: false,
            stored: String::new(),
            log,
        };
        member.start()?;
        Ok(member)
    }

    pub(crate) fn start(&mut self) -> io::Result<()> {
        let mut command = Command::new(env::current_exe()?);
        command.args(["shard", &word(&self.settings)]);
        if let Some(skew) = self.skew {
            command
                .env("LD_PRELOAD", faketime()?)
                .env("FAKETIME", skew)
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
                .env("DONT_FAKE_MONOTONIC", "1");
        }
        let name = format!("shard {}", self.settings.nth + 1);
        self.state = State::Runs {
            node: Node::spawn(&name, &mut command),
            heard: Instant::now(),
        };
        Ok(())
    }

    pub(crate) fn node(&mut self) -> Option<&mut Node> {
        match &mut self.state {
            State::Down { .. } => None,
            State::Runs { node, .. } | State::Stopped { node, .. } => Some(node),
        }
    }

    pub(crate) fn tell(&mut self, command: &str) {
        self.node().into_iter().for_each(|node| node.tell(command));
    }

    pub(crate) fn kill(&mut self) {
        self.node()
            .into_iter()
            .for_each(|node| node.signal("-KILL"));
    }

    /// Stops a process that runs, for a while.
    pub(crate) fn stop(&mut self, time: Duration) {
        let now = Instant::now();
        let down = State::Down { until: now };
        self.state = match core::mem::replace(&mut self.state, down) {
            State::Runs { node, .. } => {
                node.signal("-STOP");
                let until = now + time;
                State::Stopped { node, until }
            }
            other => other,
        };
    }

    /// Lets it go on after a stop.
    pub(crate) fn go_on(&mut self) {
        let now = Instant::now();
        let down = State::Down { until: now };
        self.state = match core::mem::replace(&mut self.state, down) {
            State::Stopped { node, .. } => {
                node.signal("-CONT");
                State::Runs { node, heard: now }
            }
            other => other,
        };
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, State::Runs { .. })
    }

    /// Reads what it has said.
    pub(crate) fn hear(&mut self) -> Result<News, BevyError> {
        let mut news = News::default();
        let Some(node) = self.node() else {
            return Ok(news);
        };
        news.ended = node.ended();
        let [lines, warnings] = node.unread();
        for warning in &warnings {
            writeln!(self.log, "{warning}")?;
        }
        news.warnings = warnings;
        for line in lines {
            match line.split_once(' ') {
                Some(("status", status)) => self.note(read_word(status)?),
                Some(("found", found)) => {
                    self.found.push(read_word(found)?);
                }
                Some(("stored", stored)) => self.stored = stored.into(),
                _ if line == "told all" => self.has_told_all = true,
                _ => news.events.push(line),
            }
        }
        Ok(news)
    }

    fn note(&mut self, status: Status) {
        self.status = status;
        if let State::Runs { heard, .. } = &mut self.state {
            *heard = Instant::now();
        }
        match (status.on_the_way, status.open, status.parked) {
            (0, 0, 0) => _ = self.calm_since.get_or_insert_with(Instant::now),
            _ => self.calm_since = None,
        }
    }
}

/// Returns the library that lets a process see another time.
fn faketime() -> io::Result<PathBuf> {
    let mut libraries = fs::read_dir("/usr/lib")?
        .flatten()
        .map(|it| it.path().join("faketime/libfaketimeMT.so.1"));
    libraries.find(|it| it.exists()).ok_or_else(|| {
        io::Error::other("`--skew` needs `faketime`: install it with `apt-get install faketime`")
    })
}

//! A shard, as the parent sees it.

use core::time::Duration;
use std::{
    env,
    fs::OpenOptions,
    io::{self, BufRead, BufReader, Read, Write},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Instant,
};

use crate::{options::ShardSettings, report::Report};

/// A shard, which is killed when this is dropped.
pub struct ShardProcess {
    pub settings: ShardSettings,
    child: Child,
    lines: Receiver<String>,
    pub state: State,
    /// Since when its reports say that nothing is on the way.
    pub calm_since: Option<Instant>,
}

#[derive(Clone, Copy)]
pub enum State {
    Starts,
    Runs(Report),
}

/// What the parent hears from a shard.
pub enum News {
    Ready {
        port: u16,
    },
    Report(Report),
    /// With its status if it ended by itself.
    Died {
        failure: Option<ExitStatus>,
    },
}

impl ShardProcess {
    pub fn start(settings: ShardSettings) -> io::Result<Self> {
        let mut child = command(&settings)?.spawn()?;
        let lines = child.stdout.take().map(lines_of);
        Ok(Self {
            settings,
            child,
            lines: lines.ok_or(io::ErrorKind::BrokenPipe)?,
            state: State::Starts,
            calm_since: None,
        })
    }

    /// Starts the shard again from its journal.
    pub fn restart(&mut self) -> io::Result<()> {
        let settings = core::mem::take(&mut self.settings);
        *self = Self::start(settings)?;
        Ok(())
    }

    pub fn number(&self) -> usize {
        self.settings.number as usize
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process with SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().ok();
    }

    /// Returns what has happened since the last call.
    pub fn news(&mut self) -> io::Result<Vec<News>> {
        let mut all = Vec::new();
        let status = self.child.try_wait()?;
        let lines: Vec<_> = self.lines.try_iter().collect();
        for line in lines {
            match line.split_once(' ') {
                Some(("ready", port)) => {
                    all.extend(port.parse().map(|port| News::Ready { port }));
                }
                Some(("report", report)) => {
                    if let Ok(report) = report.parse() {
                        self.note(report);
                        all.push(News::Report(report));
                    }
                }
                _ => {}
            }
        }
        // A signal leaves no code.
        all.extend(status.map(|status| News::Died {
            failure: status.code().is_some().then_some(status),
        }));
        Ok(all)
    }

    fn note(&mut self, report: Report) {
        self.state = State::Runs(report);
        match report.is_at_rest() {
            true => _ = self.calm_since.get_or_insert_with(Instant::now),
            false => self.calm_since = None,
        }
    }

    /// Lets the shard end by itself. Returns `false` if it did not within `limit`, or with an error.
    pub fn end(mut self, limit: Duration) -> bool {
        if let Some(input) = &mut self.child.stdin {
            writeln!(input, "end").ok();
        }
        let start = Instant::now();
        while start.elapsed() < limit {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status.success();
            }
            thread::sleep(Duration::from_millis(5));
        }
        false
    }
}

impl Drop for ShardProcess {
    fn drop(&mut self) {
        self.kill();
        self.child.wait().ok();
    }
}

/// Returns the file with the warnings of a shard.
pub fn log(settings: &ShardSettings) -> PathBuf {
    settings.journal.with_extension("log")
}

fn command(settings: &ShardSettings) -> io::Result<Command> {
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(log(settings))?;
    let ShardSettings {
        number,
        shards,
        players,
        journal,
        addresses,
    } = settings;
    let mut command = Command::new(env::current_exe()?);
    let numbers = [
        ("--shard", number),
        ("--shards", shards),
        ("--players", players),
    ];
    for (name, number) in numbers {
        command.args([name, &number.to_string()]);
    }
    for address in addresses {
        command.args(["--address", address]);
    }
    command.arg("--journal").arg(journal);
    // If the parent dies, the input ends, and so does the shard.
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(log);
    Ok(command)
}

fn lines_of(output: impl Read + Send + 'static) -> Receiver<String> {
    let (send, lines) = mpsc::channel();
    thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        lines.for_each(|line| send.send(line).unwrap_or_default());
    });
    lines
}

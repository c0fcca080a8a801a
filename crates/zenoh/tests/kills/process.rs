//! A shard in a process, as its parent sees it.

use core::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        Arc,
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{seen::Seen, shard::REST};

/// Longer than a process takes to answer, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where a shard lives, whichever process runs it.
#[derive(Clone)]
pub(crate) struct Home {
    pub(crate) nth: u64,
    pub(crate) file: PathBuf,
    /// The addresses of all shards.
    pub(crate) addresses: String,
    pub(crate) seen: Arc<Seen>,
    /// How often a process of the shard was started.
    pub(crate) starts: Arc<AtomicU64>,
}

/// A process that runs a shard.
pub(crate) struct Process {
    nth: u64,
    child: Child,
    input: ChildStdin,
    /// The lines that players don't see.
    replies: Receiver<String>,
    readers: [JoinHandle<()>; 2],
}

impl Home {
    pub(crate) fn start(&self) -> Process {
        self.spawn(&mut self.command())
    }

    pub(crate) fn start_at_rest(&self) -> Process {
        self.spawn(self.command().env(REST, "yes"))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env::current_exe().expect("a path"));
        command
            .args(["shard", &self.nth.to_string()])
            .arg(&self.file)
            .arg(&self.addresses);
        command
    }

    fn spawn(&self, command: &mut Command) -> Process {
        self.starts.fetch_add(1, Ordering::Relaxed);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the shard starts");
        let input = child.stdin.take().expect("it is piped");
        let (send, replies) = mpsc::channel();
        let lines = child.stdout.take().expect("it is piped");
        let errors = child.stderr.take().expect("it is piped");
        let (seen, nth) = (self.seen.clone(), self.nth);
        let readers = [
            read(lines, reply_or_see(self.seen.clone(), send)),
            read(errors, move |line| {
                seen.fault(format!("shard {nth} reports: {line}"));
            }),
        ];
        Process {
            nth,
            child,
            input,
            replies,
            readers,
        }
    }
}

fn reply_or_see(seen: Arc<Seen>, send: Sender<String>) -> impl FnMut(String) + Send {
    move |line| {
        if !seen.read(&line) {
            send.send(line).ok();
        }
    }
}

fn read(
    from: impl Read + Send + 'static,
    mut take: impl FnMut(String) + Send + 'static,
) -> JoinHandle<()> {
    thread::spawn(move || {
        let lines = BufReader::new(from).lines().map_while(Result::ok);
        lines.for_each(&mut take);
    })
}

impl Process {
    pub(crate) fn tell(&mut self, command: &str) {
        writeln!(self.input, "{command}").expect("the shard reads");
    }

    /// Returns the next line that players don't see.
    #[track_caller]
    pub(crate) fn reply(&self) -> String {
        let reply = self.replies.recv_timeout(PATIENCE);
        reply.unwrap_or_else(|_| panic!("shard {} should answer", self.nth))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = Pid::from_child(&self.child);
        kill_process(id, signal).expect("it is a child");
    }

    pub(crate) fn kill(mut self) {
        self.signal(Signal::KILL);
        let status = self.child.wait().expect("it is a child");
        self.hear_out();
        assert_eq!(status.signal(), Some(9), "a shard has ended by itself");
    }

    /// Lets the process end.
    pub(crate) fn end(mut self) -> ExitStatus {
        self.tell("end");
        let status = self.child.wait().expect("it is a child");
        self.hear_out();
        status
    }

    /// Reads what the process has said before its end.
    fn hear_out(self) {
        for reader in self.readers {
            reader.join().expect("it reads");
        }
    }
}

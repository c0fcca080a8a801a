//! A process that obeys commands on its standard input and prints lines.

use core::time::Duration;
use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Instant,
};

use crate::PATIENCE;

/// A process, such as one that runs an [example](crate::example). It is killed when this is dropped.
#[derive(Debug)]
pub struct Node {
    name: String,
    child: Child,
    /// The lines that it prints, and those on stderr.
    lines: Receiver<String>,
    errors: Receiver<String>,
    /// The lines that were read.
    read: Vec<String>,
}

impl Node {
    /// Starts an example with arguments such as `"name=a key=1"`, and waits until it has joined.
    #[track_caller]
    pub fn start(example: &str, arguments: &str) -> Self {
        let mut node = Self::run(example, arguments);
        node.wait_for("ready");
        node
    }

    /// Starts an example, and does not wait.
    pub fn run(example: &str, arguments: &str) -> Self {
        let test = env::current_exe().expect("a path");
        let target = test.parent().and_then(Path::parent).expect("a folder");
        let example = target.join("examples").join(example);
        let hint = "`cargo test` builds it, `cargo test --test` does not";
        assert!(example.exists(), "{}: {hint}", example.display());
        let name = arguments.split(' ').next().unwrap_or_default();
        Self::spawn(name, Command::new(example).args(arguments.split(' ')))
    }

    /// Starts a program.
    pub fn spawn(name: &str, command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the node starts");
        let lines = lines_of(child.stdout.take().expect("it is piped"));
        let errors = lines_of(child.stderr.take().expect("it is piped"));
        Self {
            name: name.into(),
            child,
            lines,
            errors,
            read: Vec::new(),
        }
    }

    /// Gives the node a command. One that has ended hears nothing.
    pub fn tell(&mut self, command: &str) {
        let input = self.child.stdin.as_mut().expect("it is piped");
        writeln!(input, "{command}").ok();
    }

    /// Returns the id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns how the process has ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it is a child")
    }

    /// Returns the lines on stdout and on stderr since the last call. After the end of the process, these are all.
    pub fn unread(&mut self) -> [Vec<String>; 2] {
        let has_ended = self.ended().is_some();
        [&self.lines, &self.errors].map(|lines| match has_ended {
            true => lines.iter().collect(),
            false => lines.try_iter().collect(),
        })
    }

    /// Waits for a line, and returns those before it.
    #[track_caller]
    pub fn wait_for(&mut self, line: &str) -> Vec<String> {
        self.wait_until(|read| read == line, line)
    }

    #[track_caller]
    fn wait_until(&mut self, mut is_it: impl FnMut(&str) -> bool, what: &str) -> Vec<String> {
        let start = Instant::now();
        let mut before = Vec::new();
        loop {
            let left = PATIENCE.saturating_sub(start.elapsed());
            let Ok(read) = self.lines.recv_timeout(left) else {
                let errors: Vec<_> = self.errors.try_iter().collect();
                panic!(
                    "{} should print {what:?}: {:?} {errors:?}",
                    self.name, self.read
                );
            };
            self.read.push(read.clone());
            if is_it(&read) {
                return before;
            }
            before.push(read);
        }
    }

    /// Waits for the next line.
    #[track_caller]
    pub fn next_line(&mut self) -> String {
        self.wait_until(|_| true, "a line");
        self.read.last().expect("it was read").clone()
    }

    /// Waits for lines in any order.
    #[track_caller]
    pub fn wait_for_all(&mut self, lines: &[&str]) {
        let mut missing = lines.to_vec();
        let is_last = |read: &str| {
            missing.retain(|line| *line != read);
            missing.is_empty()
        };
        self.wait_until(is_last, &format!("{lines:?}"));
    }

    /// Asks for the double of a number, and waits for the reply. Returns the lines before it.
    ///
    /// A process is up a moment before its keys are known.
    #[track_caller]
    pub fn ask(&mut self, key: u32, number: u32) -> Vec<String> {
        const UNKNOWN: &str = "no answer: Refused(UnknownKey)";
        let reply = format!("reply {}", 2 * number);
        let mut before = Vec::new();
        loop {
            self.tell(&format!("ask {key} {number}"));
            before.extend(self.wait_until(|read| read == reply || read == UNKNOWN, &reply));
            if self.read.last() == Some(&reply) {
                return before;
            }
        }
    }

    /// Waits until the node has printed a line, now or before.
    #[track_caller]
    pub fn has_printed(&mut self, line: &str) {
        if !self.read.iter().any(|read| read == line) {
            self.wait_for(line);
        }
    }

    /// Returns how many numbers the node has heard from another, the last one, and how many did not rise.
    #[track_caller]
    pub fn heard(&mut self, from: &str) -> [u32; 3] {
        self.tell(&format!("heard {from}"));
        let start = format!("heard {from} ");
        self.wait_until(|read| read.starts_with(&start), &start);
        let last = self.read.last().expect("it was read");
        let mut numbers = last[start.len()..].split(' ').map(str::parse);
        [(); 3].map(|()| numbers.next().expect("three").expect("a number"))
    }

    /// Waits until the node has heard a number from another, and returns what it has heard.
    #[track_caller]
    pub fn hears(&mut self, number: u32, from: &str) -> [u32; 3] {
        let start = Instant::now();
        loop {
            let heard = self.heard(from);
            if heard[1] == number {
                return heard;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "{} heard {heard:?} from {from}",
                self.name
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status();
        assert!(sent.expect("should have a `kill`").success());
    }

    /// Returns the next line on stderr that contains a text.
    #[track_caller]
    pub fn error_with(&self, text: &str) -> String {
        let start = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(start.elapsed());
            let line = self.errors.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("{} should report {text:?}", self.name));
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Kills the process, and returns what it has printed on stderr and was not read.
    pub fn kill(mut self) -> Vec<String> {
        self.child.kill().ok();
        self.errors.iter().collect()
    }

    /// Waits until the process has ended.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "{} should have ended",
                self.name
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns the largest memory of the process so far, in MB.
    #[cfg(target_os = "linux")]
    pub fn peak_memory(&self) -> u64 {
        let status = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(status).expect("the process lives");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.expect("a line").trim().trim_end_matches(" kB");
        peak.parse::<u64>().expect("a number") / 1000
    }
}

fn lines_of(output: impl Read + Send + 'static) -> Receiver<String> {
    let (send, lines) = mpsc::channel();
    thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        lines.for_each(|line| send.send(line).unwrap_or_default());
    });
    lines
}

impl Drop for Node {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

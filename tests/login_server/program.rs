//! The program, as a user runs it.

use core::{net::SocketAddr, time::Duration};
use std::{
    env,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Instant,
};

use crate::{
    PATIENCE,
    visitor::{TRY_AGAIN, Visitor},
};

/// The server in a process, which ends with this value.
struct Program {
    child: Child,
    /// The output, to which the test writes too.
    stdout: UnixStream,
    printed: BufReader<UnixStream>,
    /// The lines on stderr.
    errors: Receiver<String>,
}

impl Program {
    /// Runs a command, such as `exec "$0" 0` for a server on a free port.
    fn run(command: &str) -> Self {
        let test = env::current_exe().unwrap();
        let target = test.parent().and_then(Path::parent).unwrap();
        let example = target.join("examples/login_server");
        let hint = "`cargo test` builds it, `cargo test --test` does not";
        assert!(example.exists(), "{}: {hint}", example.display());
        let (printed, stdout) = UnixStream::pair().unwrap();
        printed.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut child = Command::new("sh")
            .args(["-c", command])
            .arg(example)
            .stdin(Stdio::null())
            .stdout(OwnedFd::from(stdout.try_clone().unwrap()))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (error, errors) = mpsc::channel();
        thread::spawn(move || {
            let lines = stderr.lines().map_while(Result::ok);
            lines.for_each(|line| error.send(line).unwrap_or_default());
        });
        Self {
            child,
            stdout,
            printed: BufReader::new(printed),
            errors,
        }
    }

    /// Starts a server, and returns its address.
    fn start(before: &str) -> (Self, SocketAddr) {
        let mut program = Self::run(&format!("{before} exec \"$0\" 0"));
        let line = program.line();
        let address = line
            .strip_prefix("listening on ")
            .and_then(|rest| rest.split_once(','))
            .and_then(|(address, _)| address.parse().ok());
        (program, address.unwrap_or_else(|| panic!("{line}")))
    }

    /// Reads a line of the output.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.printed.read_line(&mut line).unwrap();
        line
    }

    fn error(&self) -> String {
        let error = self.errors.recv_timeout(PATIENCE);
        error.expect("should be a line on stderr")
    }

    fn press_ctrl_c(&self) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).output();
        sent.expect("should have a `kill`");
    }

    /// Calls a function now and then until the process has ended.
    fn end(mut self, again: impl Fn(&Self)) -> (ExitStatus, Vec<String>) {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < PATIENCE, "should have ended");
            again(&self);
            thread::sleep(Duration::from_millis(20));
        };
        (status, self.errors.iter().collect())
    }

    /// Ends the server, which should have nothing to complain about.
    fn stop(self) {
        self.press_ctrl_c();
        let (status, errors) = self.end(|_| {});
        assert_eq!((status.code(), errors), (Some(0), Vec::new()));
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Returns the texts in backticks that are commands to the server.
fn commands(docs: &str) -> Vec<&str> {
    let quoted = docs.split('`').skip(1).step_by(2);
    let verbs = ["login", "say", "who", "quit"];
    quoted
        .filter(|text| verbs.contains(&text.split(' ').next().unwrap()))
        .collect()
}

#[test]
fn the_documented_commands_work() {
    let (program, address) = Program::start("");
    let readme = commands(include_str!("../../examples/README.md"));
    assert_eq!(readme, ["login ada ada"]);
    let docs = include_str!("../../examples/login_server/main.rs");
    let docs = commands(docs.split("mod ").next().unwrap());
    assert!(docs.len() >= 4, "{docs:?}");

    let mut client = Visitor::new(address);
    client.say(readme[0].to_owned() + "\n");
    assert_eq!(client.answer(), "ok, you are ada");
    client.say("quit\n");
    client.wait_for_end();

    let mut client = Visitor::new(address);
    for (command, reply) in docs.iter().zip(["ok", "ada: hello", "here: ada", "bye"]) {
        client.say(format!("{command}\n"));
        let line = client.line().unwrap();
        assert!(line.starts_with(reply), "{command}: {line}");
    }
    client.wait_for_end();
    program.stop();
}

#[test]
fn a_used_port_is_named() {
    let (first, address) = Program::start("");
    let port = address.port();
    let second = Program::run(&format!("exec \"$0\" {port}"));
    let (status, errors) = second.end(|_| {});
    assert_eq!(status.code(), Some(1));
    assert!(errors[0].contains(&format!("can't listen on port {port}: ")));
    first.stop();
}

/// Connects to a server until it has no file descriptors left, and returns all clients.
fn too_many(program: &Program, address: SocketAddr) -> Vec<TcpStream> {
    let connect = || TcpStream::connect(address).unwrap();
    let clients = (0..60).map(|_| connect()).collect();
    let error = program.error();
    assert!(error.starts_with("can't take more clients"), "{error}");
    clients
}

#[test]
fn a_server_without_descriptors_takes_clients_again_when_others_leave() {
    let (program, address) = Program::start("ulimit -n 40;");
    let mut clients = too_many(&program, address);
    // Those at the end are not served yet. Those before them leave.
    let last = clients.split_off(50);
    drop(clients);
    let last: Vec<_> = last.into_iter().map(Visitor::from).collect();
    for mut client in last {
        client.wait_for("welcome");
    }
    program.press_ctrl_c();
    let (status, errors) = program.end(|_| {});
    assert_eq!(status.code(), Some(0));
    assert!(errors.len() < 10, "a line in ten seconds: {errors:?}");
}

#[test]
fn ctrl_c_ends_a_server_without_descriptors() {
    let (program, address) = Program::start("ulimit -n 40;");
    let _clients = too_many(&program, address);
    program.press_ctrl_c();
    let (status, _) = program.end(|_| {});
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_second_ctrl_c_ends_the_program_at_once() {
    let (mut program, _) = Program::start("");
    // The server can't even print that it closes.
    program.stdout.set_nonblocking(true).unwrap();
    while program.stdout.write(b"x").is_ok() {}
    program.stdout.set_nonblocking(false).unwrap();
    let (status, _) = program.end(Program::press_ctrl_c);
    assert_eq!(status.code(), Some(130));
}

#[test]
fn a_server_without_an_output_ends_well() {
    let (mut program, address) = Program::start("");
    let mut client = Visitor::new(address);
    // Nobody reads the output from now on.
    let (_, gone) = UnixStream::pair().unwrap();
    program.printed = BufReader::new(gone);
    program.press_ctrl_c();
    client.wait_for("bye, the server closes");
    let (status, errors) = program.end(|_| {});
    assert_eq!((status.code(), errors), (Some(0), Vec::new()));
}

/// Returns a number of clients for which a quarter of the descriptors is enough, on each side.
fn storm() -> usize {
    let limit = Command::new("sh").args(["-c", "ulimit -n"]).output();
    let limit = String::from_utf8(limit.unwrap().stdout).unwrap();
    // It may be "unlimited".
    let limit: usize = limit.trim().parse().unwrap_or(usize::MAX);
    (limit / 8).min(3000)
}

#[test]
fn a_storm_of_logins_is_answered_and_does_not_delay_the_end() {
    let (program, address) = Program::start("");
    let connect = |_| Visitor::from(TcpStream::connect(address).unwrap());
    let mut clients: Vec<_> = (0..storm()).map(connect).collect();
    let mut waiting: Vec<_> = (0..clients.len()).collect();
    while !waiting.is_empty() {
        for nth in &waiting {
            let name = format!("p{nth}");
            let password: String = name.chars().rev().collect();
            clients[*nth].say(format!("login {name} {password}\n"));
        }
        waiting.retain(|nth| {
            let answer = clients[*nth].answer();
            let is_late = answer.starts_with(TRY_AGAIN);
            assert!(is_late || answer.starts_with("ok"), "{answer}");
            is_late
        });
    }
    // All speak at once, and read no more.
    for client in &mut clients {
        client.say("say hello\n".repeat(20));
    }
    let pressed = Instant::now();
    program.press_ctrl_c();
    let (status, _) = program.end(|_| {});
    assert_eq!(status.code(), Some(0));
    assert!(pressed.elapsed() < PATIENCE / 4, "{:?}", pressed.elapsed());
}

/// Returns the largest memory of a process so far, in kB.
#[cfg(target_os = "linux")]
fn peak_memory(program: &Program) -> u64 {
    let status = format!("/proc/{}/status", program.child.id());
    let status = std::fs::read_to_string(status).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.unwrap().trim().trim_end_matches(" kB");
    peak.parse().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn clients_that_flood_or_never_read_cost_little_memory() {
    let (program, address) = Program::start("");
    let mut clients: Vec<_> = (0..22).map(|_| Visitor::new(address)).collect();
    for (nth, client) in clients.iter_mut().enumerate() {
        let letter = char::from(b'a' + nth as u8);
        client.say(format!("login {letter} {letter}\n"));
    }
    for client in &mut clients {
        assert!(client.answer().starts_with("ok"));
    }
    let mut ada = clients.pop().unwrap();
    let eve = clients.pop().unwrap();
    let flood = thread::spawn(move || {
        let lines = format!("say {}\n", "x".repeat(500)).repeat(100);
        while (&eve.socket).write_all(lines.as_bytes()).is_ok() {}
    });
    for _ in 0..12 {
        ada.say("who\n");
        ada.wait_for("here: ");
    }
    let peak = peak_memory(&program);
    assert!(peak < 100_000, "{peak} kB");
    program.press_ctrl_c();
    let (status, _) = program.end(|_| {});
    assert_eq!(status.code(), Some(0));
    flood.join().unwrap();
    drop(clients);
}

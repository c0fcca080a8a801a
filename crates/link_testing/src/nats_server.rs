//! A `nats-server` that a test owns.

use core::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};
use std::{
    env, fs,
    io::{BufRead, BufReader},
    net::TcpStream,
    path::PathBuf,
    process::{self, Child, Command, Stdio},
    thread,
    time::Instant,
};

use crate::{PATIENCE, addresses};

/// A `nats-server` with a free port and a folder of its own. It is killed when this is dropped.
#[derive(Debug)]
pub struct NatsServer {
    /// The address at which it listens.
    pub address: String,
    program: &'static str,
    arguments: Vec<String>,
    folder: PathBuf,
    child: Child,
}

impl NatsServer {
    /// Starts a server with further arguments, such as `"-js"`.
    ///
    /// # Panics
    ///
    /// Panics if there is no `nats-server` on this machine.
    #[track_caller]
    pub fn start(arguments: &[&str]) -> Self {
        let program = program().expect(
            "this needs a `nats-server`: install it, for example with `apt-get install nats-server`, \
             `brew install nats-server` or from https://github.com/nats-io/nats-server/releases",
        );
        let folder = folder();
        let arguments = arguments.iter().map(|it| (*it).to_owned());
        let arguments = Vec::from_iter(arguments);
        loop {
            let [address] = addresses();
            let child = run(program, &address, &folder, &arguments);
            let mut server = Self {
                address,
                program,
                arguments: arguments.clone(),
                folder: folder.clone(),
                child,
            };
            // Another process may have taken the port.
            if server.answers() {
                return server;
            }
        }
    }

    /// Kills the server with SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }

    /// Starts the server again, at the same address and with the same folder.
    pub fn start_again(&mut self) {
        self.kill();
        self.child = run(self.program, &self.address, &self.folder, &self.arguments);
        assert!(self.answers(), "{} should be free", self.address);
    }

    /// Returns the line by which the server greets a client, or nothing. It names the other servers of its
    /// cluster.
    pub fn greeting(&self) -> String {
        let mut line = String::new();
        if let Ok(stream) = TcpStream::connect(&self.address) {
            BufReader::new(stream).read_line(&mut line).ok();
        }
        line
    }

    /// Waits until the server answers. Returns `false` if it has ended.
    #[track_caller]
    fn answers(&mut self) -> bool {
        let start = Instant::now();
        while self.child.try_wait().expect("it is a child").is_none() {
            if self.greeting().starts_with("INFO") {
                return true;
            }
            assert!(start.elapsed() < PATIENCE, "the server should answer");
            thread::sleep(Duration::from_millis(5));
        }
        false
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// Returns the name of the program, if it is on this machine.
fn program() -> Option<&'static str> {
    let is_there = |program: &&str| {
        let version = Command::new(program).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    // Debian's folder is not in the path of every user.
    ["nats-server", "/usr/sbin/nats-server"]
        .into_iter()
        .find(is_there)
}

/// Returns the path of a folder that no other server has.
fn folder() -> PathBuf {
    static SERVERS: AtomicU32 = AtomicU32::new(0);

    let nth = SERVERS.fetch_add(1, Ordering::Relaxed);
    env::temp_dir().join(format!("bevy_due-nats-{}-{nth}", process::id()))
}

fn run(program: &str, address: &str, folder: &PathBuf, arguments: &[String]) -> Child {
    let (host, port) = address.split_once(':').expect("an address");
    Command::new(program)
        .args(["--addr", host, "--port", port, "--store_dir"])
        .arg(folder)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts")
}

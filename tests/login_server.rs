//! The login server of the examples, with clients on real sockets.

#![allow(missing_docs, unreachable_pub, reason = "parts of a program")]

#[path = "../examples/login_server/accounts.rs"]
mod accounts;
#[path = "../examples/login_server/connection.rs"]
mod connection;
#[path = "../examples/login_server/server.rs"]
mod server;
#[path = "../examples/login_server/socket.rs"]
mod socket;

use core::{net::SocketAddr, time::Duration};
use std::{
    io::{BufRead, BufReader, ErrorKind, Write},
    net::TcpStream,
    thread,
};

use bevy_due::WorldReport;
use server::{Server, Settings};

/// Longer than anything takes here, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

const TRY_AGAIN: &str = "error: nobody has looked that up in time";

fn start() -> Server {
    let settings = Settings {
        login_timeout: Duration::from_millis(1500),
        login_time: |name| match name.starts_with("sloth") {
            true => Duration::from_secs(3),
            false => Duration::from_millis(10),
        },
        warn_after: Duration::from_secs(4),
        close_after: Duration::from_secs(1),
    };
    Server::start(0, settings).expect("a free port")
}

struct Client {
    socket: TcpStream,
    lines: BufReader<TcpStream>,
}

impl Client {
    /// Connects, and reads the welcome.
    fn new(server: SocketAddr) -> Self {
        let socket = TcpStream::connect(server).expect("the server should be listening");
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let lines = BufReader::new(socket.try_clone().unwrap());
        let mut client = Self { socket, lines };
        client.wait_for("welcome");
        client
    }

    fn say(&mut self, bytes: impl AsRef<[u8]>) {
        self.socket
            .write_all(bytes.as_ref())
            .expect("should be connected");
    }

    /// Reads the next line, or `None` at the end.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.lines.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end().into()),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Reads until a line starts with this, and returns it. Other clients may chat.
    fn wait_for(&mut self, beginning: &str) -> String {
        loop {
            let line = self.line();
            let line = line.unwrap_or_else(|| panic!("should be told {beginning:?}"));
            if line.starts_with(beginning) {
                return line;
            }
        }
    }

    fn log_in(&mut self, name: &str) {
        loop {
            let password: String = name.chars().rev().collect();
            self.say(format!("login {name} {password}\n"));
            let answer = self.answer();
            if answer == format!("ok, you are {name}") {
                return;
            }
            // On a slow machine the check may time out.
            assert!(answer.starts_with(TRY_AGAIN), "{answer}");
        }
    }

    /// Reads until there is a reply. Other clients may chat.
    fn answer(&mut self) -> String {
        loop {
            let line = self.line().expect("should be answered");
            if line.starts_with("ok") || line.starts_with("error") {
                return line;
            }
        }
    }

    /// Reads until the server hangs up.
    fn wait_for_end(&mut self) {
        while self.line().is_some() {}
    }
}

fn chatty(server: SocketAddr, nth: usize) {
    let mut client = Client::new(server);
    let name = format!("client{nth}");
    client.log_in(&name);
    client.say("say hello\n");
    client.wait_for(&format!("{name}: hello"));
    client.say("quit\n");
    client.wait_for("bye");
    client.wait_for_end();
}

fn slow(server: SocketAddr, nth: usize) {
    let mut client = Client::new(server);
    let name = format!("slow{nth}");
    let password: String = name.chars().rev().collect();
    for byte in format!("login {name} {password}\n").bytes() {
        client.say([byte]);
        thread::sleep(Duration::from_millis(5));
    }
    let answer = client.answer();
    if answer != format!("ok, you are {name}") {
        assert!(answer.starts_with(TRY_AGAIN), "{answer}");
        client.log_in(&name);
    }
    client.say("quit\n");
    client.wait_for("bye");
}

fn silent(server: SocketAddr, _: usize) {
    let mut client = Client::new(server);
    client.wait_for("warning");
    client.wait_for("bye");
    client.wait_for_end();
}

fn cut_off(server: SocketAddr, nth: usize) {
    let mut client = Client::new(server);
    if nth.is_multiple_of(2) {
        client.log_in(&format!("cut{nth}"));
    }
    client.say("say I was about to");
}

fn malformed(server: SocketAddr, nth: usize) {
    let mut client = Client::new(server);
    client.say(b"\xff\xfe\xfd\n");
    client.wait_for("error: that line is not UTF-8");
    client.say([b'x'; socket::LONGEST_LINE + 1]);
    client.say("\n");
    client.wait_for("error: that line is too long");
    client.say("fly\n");
    client.wait_for("error: what is \"fly\"?");
    client.say("\n");
    client.wait_for("error: what is \"\"?");
    for login in ["login\n", "login ada\n", "login ada eve bob\n"] {
        client.say(login);
        client.wait_for("error: login NAME PASSWORD");
    }
    client.say("say hello\n");
    client.wait_for("error: log in first");
    client.log_in(&format!("clumsy{nth}"));
    client.say(format!("say {}\n", "ä".repeat(200)));
    client.wait_for(&format!("clumsy{nth}: ä"));
    client.say("quit\n");
    client.wait_for("bye");
}

fn endless(server: SocketAddr, _: usize) {
    let mut client = Client::new(server);
    let chunk = [b'x'; 4096];
    // The server hangs up at some point.
    while client.socket.write_all(&chunk).is_ok() {}
}

fn wrong(server: SocketAddr, _: usize) {
    let mut client = Client::new(server);
    client.say("login eve adam\n");
    let answer = client.answer();
    let is_wrong = answer == "error: name and password do not fit";
    assert!(is_wrong || answer.starts_with(TRY_AGAIN), "{answer}");
    client.say("quit\n");
    client.wait_for("bye");
}

/// The reply is late and dropped, so these clients are not logged in.
fn too_late(server: SocketAddr, nth: usize) {
    let mut client = Client::new(server);
    let name = format!("sloth{nth}");
    let password: String = name.chars().rev().collect();
    client.say(format!("login {name} {password}\n"));
    client.say("login ada ada\n");
    client.wait_for("error: wait for the answer");
    client.wait_for(TRY_AGAIN);
    // A client that says something stays.
    for _ in 0..5 {
        thread::sleep(Duration::from_millis(500));
        client.say("say am I in?\n");
        client.wait_for("error: log in first");
    }
    client.log_in(&format!("quick{nth}"));
    client.say("who\n");
    let here = client.wait_for("here: ");
    assert!(here.contains(&format!("quick{nth}")), "{here}");
    assert!(!here.contains("sloth"), "{here}");
}

fn assert_in_order(worlds: &[WorldReport]) {
    let order: Vec<_> = worlds
        .iter()
        .map(|world| (&*world.group, world.nth))
        .collect();
    assert_eq!(order, [("server", 0), ("accounts", 1), ("accounts", 0)]);
    for world in worlds {
        assert_eq!(world.panic, None, "{}", world.group);
    }
}

#[test]
fn two_hundred_clients_of_all_kinds_are_served() {
    let server = start();
    let address = server.address();
    let kinds: [(usize, fn(SocketAddr, usize)); 8] = [
        (110, chatty),
        (20, slow),
        (20, silent),
        (20, cut_off),
        (10, malformed),
        (4, endless),
        (8, wrong),
        (8, too_late),
    ];
    let clients: Vec<_> = kinds
        .into_iter()
        .flat_map(|(many, kind)| (0..many).map(move |nth| (kind, nth)))
        .map(|(kind, nth)| thread::spawn(move || kind(address, nth)))
        .collect();
    assert_eq!(clients.len(), 200);
    for client in clients {
        client.join().expect("a client should be content");
    }
    chatty(address, 200);
    assert_in_order(&server.stop());
}

#[test]
fn clients_are_told_when_the_server_closes() {
    let server = start();
    let mut stranger = Client::new(server.address());
    let mut player = Client::new(server.address());
    player.log_in("ada");
    assert_in_order(&server.stop());
    for client in [&mut stranger, &mut player] {
        client.wait_for("bye, the server closes");
        client.wait_for_end();
    }
}

#[test]
fn the_error_for_a_used_port_names_the_port() {
    let server = start();
    let port = server.address().port();
    let error = Server::start(port, Settings::default())
        .map(drop)
        .unwrap_err();
    let expected = format!("can't listen on port {port}: ");
    assert!(error.to_string().starts_with(&expected), "{error}");
    server.stop();
}

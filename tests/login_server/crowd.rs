//! Two hundred clients at a time.

use core::{net::SocketAddr, time::Duration};
use std::{io::Write, thread};

use crate::{
    assert_in_order,
    server::Server,
    settings::Settings,
    socket, stop,
    visitor::{TRY_AGAIN, Visitor},
};

fn start() -> Server {
    let settings = Settings {
        login_timeout: Duration::from_millis(1500),
        login_time: |name| match name.starts_with("sloth") {
            true => Duration::from_secs(3),
            false => Duration::from_millis(10),
        },
        warn_after: Duration::from_secs(4),
        close_after: Duration::from_secs(1),
        ..Settings::default()
    };
    Server::start(0, settings).expect("a free port")
}

fn chatty(server: SocketAddr, nth: usize) {
    let mut client = Visitor::new(server);
    let name = format!("client{nth}");
    client.log_in(&name);
    client.say("say hello\n");
    client.wait_for(&format!("{name}: hello"));
    client.say("quit\n");
    client.wait_for("bye");
    client.wait_for_end();
}

fn slow(server: SocketAddr, nth: usize) {
    let mut client = Visitor::new(server);
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
    let mut client = Visitor::new(server);
    client.wait_for("warning");
    client.wait_for("bye");
    client.wait_for_end();
}

fn cut_off(server: SocketAddr, nth: usize) {
    let mut client = Visitor::new(server);
    if nth.is_multiple_of(2) {
        client.log_in(&format!("cut{nth}"));
    }
    client.say("say I was about to");
}

fn malformed(server: SocketAddr, nth: usize) {
    let mut client = Visitor::new(server);
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
    let mut client = Visitor::new(server);
    let chunk = [b'x'; 4096];
    // The server hangs up at some point.
    while client.socket.write_all(&chunk).is_ok() {}
}

fn wrong(server: SocketAddr, _: usize) {
    let mut client = Visitor::new(server);
    client.say("login eve adam\n");
    let answer = client.answer();
    let is_wrong = answer == "error: name and password do not fit";
    assert!(is_wrong || answer.starts_with(TRY_AGAIN), "{answer}");
    client.say("quit\n");
    client.wait_for("bye");
}

/// The reply is late and dropped, so these clients are not logged in.
fn too_late(server: SocketAddr, nth: usize) {
    let mut client = Visitor::new(server);
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
    assert_in_order(&stop(server));
}

//! A client that takes too much has less itself.

use core::time::Duration;
use std::{io::Write, thread};

use bevy_due::Cooldown;

use crate::{
    output::{Output, TOO_MUCH},
    socket_pair, start, stop, unlimited,
    visitor::Visitor,
};

#[test]
fn a_flood_is_read_at_the_rate_of_the_client() {
    // No charge comes back within this test.
    let server = start(Cooldown::new(3600.0).with_charges(10));
    let mut ada = Visitor::new(server.address());
    ada.log_in("ada");
    let mut eve = Visitor::new(server.address());
    eve.log_in("eve");
    let flood = thread::spawn(move || {
        let lines = "say flood\n".repeat(1000);
        // TCP makes this wait until the server hangs up.
        while eve.socket.write_all(lines.as_bytes()).is_ok() {}
    });
    // A login and nine lines are ten charges.
    for _ in 0..9 {
        ada.wait_for("eve: flood");
    }
    for _ in 0..5 {
        ada.say("who\n");
        assert_eq!(ada.line().as_deref(), Some("here: ada, eve"));
    }
    stop(server);
    flood.join().unwrap();
}

#[test]
fn a_long_line_is_read_at_the_rate_of_the_client() {
    let server = start(Cooldown::new(3600.0).with_charges(10));
    let eve = Visitor::new(server.address());
    eve.socket.set_nonblocking(true).unwrap();
    let (mut sent, mut refusals) = (0, 0);
    while refusals < 20 {
        match (&eve.socket).write(&[b'x'; 4096]) {
            Ok(written) => {
                sent += written;
                refusals = 0;
            }
            Err(_) => {
                refusals += 1;
                // The server has time to read, and others are served.
                Visitor::new(server.address());
            }
        }
        // The system takes a few of them.
        assert!(sent < 100_000_000, "the server should stop reading");
    }
    stop(server);
}

#[test]
fn no_more_than_the_limit_waits_for_a_client() {
    let (server_end, client_end) = socket_pair();
    let output = Output::new(server_end);
    for _ in 0..TOO_MUCH / 8 {
        output.say("7 bytes");
    }
    assert!(!output.closes_within(Duration::ZERO));
    output.say("");
    assert!(output.closes_within(Duration::ZERO));
    output.say("too late");
    assert_eq!(output.take().map(|text| text.len()), Some(TOO_MUCH));
    assert_eq!(output.take(), None);
    let mut lines = Visitor::from(client_end);
    assert_eq!(lines.line(), None, "should be cut off");
}

#[test]
fn clients_that_never_read_are_cut_off() {
    let server = start(unlimited());
    let mut lazy: Vec<_> = (0..4).map(|_| Visitor::new(server.address())).collect();
    for (nth, client) in lazy.iter_mut().enumerate() {
        client.log_in(&format!("lazy{nth}"));
    }
    let mut ada = Visitor::new(server.address());
    ada.log_in("ada");

    // More than the system holds for a socket.
    let lines = format!("say {}\n", "x".repeat(400)).repeat(50) + "who\n";
    let here = (0..4000).map(|_| {
        ada.say(&lines);
        ada.wait_for("here: ")
    });
    let mut here = here.skip_while(|here| here.matches("lazy").count() == 4);
    assert!(here.next().is_some(), "one should be cut off");

    // The others hold nothing up.
    stop(server);
    for mut client in lazy {
        client.wait_for_end();
    }
}

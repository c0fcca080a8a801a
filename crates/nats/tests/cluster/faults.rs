//! Processes that die or hang, and connections and servers that break.

use core::time::Duration;
use std::{sync::mpsc, thread, time::Instant};

use bevy_due::{
    message::{Delivery, Packet},
    worlds::{Parcel, link::FromPeer},
};
use bevy_due_link_testing::{
    nats_server::NatsServer,
    proxy::Proxy,
    scenarios::{self, HASTY, wait_until},
};

use crate::{join, node, three};

#[test]
fn a_request_fails_when_its_process_is_killed() {
    let server = NatsServer::start(&[]);
    let nodes = three(&server, "heartbeat=500");
    scenarios::one_is_killed(nodes, Duration::from_secs(5));
}

#[test]
fn a_process_that_hangs_comes_back() {
    let server = NatsServer::start(&[]);
    scenarios::one_hangs_and_comes_back(three(&server, HASTY));
}

/// Cuts the connection of one node with the server for a while, while both sides send.
fn cut(settings: &str, time: Duration) {
    let server = NatsServer::start(&[]);
    let proxy = Proxy::to(&server.address);
    let first = node(&server.address, &format!("name=a key=1 {settings}"));
    let second = node(&proxy.address, &format!("name=b key=2 {settings}"));
    scenarios::the_connection_is_cut(first, second, &proxy, time);
}

#[test]
fn a_cut_of_three_seconds_heals() {
    cut(HASTY, Duration::from_secs(3));
}

/// The default settings: a process is down after ten seconds.
#[test]
fn a_cut_of_fourteen_seconds_heals() {
    cut("heartbeat=500", Duration::from_secs(14));
}

#[test]
fn all_are_down_while_the_server_is_dead() {
    let mut server = NatsServer::start(&[]);
    let mut nodes = three(&server, "heartbeat=500");
    scenarios::wait_for_each_other(&mut nodes);
    let [mut a, mut b, mut c] = nodes;
    a.ask(2, 1);
    a.tell("say 2 1 1000 100");
    assert_eq!(b.hears(1000, "a"), [1000, 1000, 0]);
    a.tell("hold 2");
    b.wait_for("holds");
    let start = Instant::now();
    server.kill();
    a.tell("say 2 1001 1000 100");
    a.wait_for_all(&["peer b Down", "peer c Down", "no answer: Refused(PeerLost)"]);
    let took = start.elapsed();
    println!("a request failed {took:?} after the server");
    assert!(took < Duration::from_secs(5), "{took:?}");
    b.wait_for_all(&["peer a Down", "peer c Down"]);
    thread::sleep(Duration::from_secs(2));
    server.start_again();
    let start = Instant::now();
    a.wait_for_all(&["peer b Up", "peer c Up"]);
    b.wait_for_all(&["peer a Up", "peer c Up"]);
    c.wait_for_all(&["peer a Up", "peer b Up"]);
    println!("all are up {:?} after the server", start.elapsed());
    assert_eq!(c.ask(2, 5), [""; 0]);
    a.ask(2, 21);
    a.tell("say 2 2001 1000 100");
    let [count, _, disorder] = b.hears(3000, "a");
    assert!((2000..=3000).contains(&count), "{count}");
    assert_eq!(disorder, 0, "nothing is doubled or out of order");
}

#[test]
fn a_panic_in_permit_ends_a_connection_and_not_the_link() {
    let server = NatsServer::start(&[]);
    let strict = join(&server.address, "red");
    let other = join(&server.address, "red");
    let third = join(&server.address, "red");
    let know_all = || {
        [&strict, &other, &third]
            .iter()
            .all(|it| it.running("red") == 3)
    };
    wait_until("all know each other", know_all);
    let (tell, told) = mpsc::channel();
    strict.permit(move |_, what| {
        if let FromPeer::Parcel(_) = what {
            tell.send(()).ok();
            panic!("it does not want that");
        }
        true
    });
    for _ in 0..3 {
        // What comes before the connection has begun anew is lost.
        wait_until("it is asked again", || {
            let parcel = Parcel::new("red", Delivery::All, Packet::new(1, []));
            other.post(parcel).expect("it is sent");
            told.try_recv().is_ok()
        });
        wait_until("all know each other again", know_all);
    }
}

//! Processes that die or hang, and connections that break.

use core::time::Duration;
use std::{thread, time::Instant};

use crate::{addresses, finding::three, node::Node, proxy::Proxy};

/// A process is down after a second.
const HASTY: &str = "heartbeat=100 suspect_after=400 down_after=1000";

#[test]
fn a_request_fails_when_its_process_is_killed() {
    // With the default settings: a process that hangs is down after ten seconds.
    let [mut a, mut b, mut c] = three("heartbeat=500");
    a.wait_for_all(&["peer b Up", "peer c Up"]);
    a.ask(2, 1);
    a.tell("hold 2");
    b.wait_for("holds");
    let start = Instant::now();
    b.kill();
    let before = a.wait_for("no answer: Refused(PeerLost)");
    println!("the request failed {:?} after the kill", start.elapsed());
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    assert!(
        before.iter().all(|line| line == "peer b Down"),
        "{before:?}"
    );
    // The others go on.
    c.wait_for("peer b Down");
    assert_eq!(c.ask(1, 3), [""; 0]);
}

#[test]
fn a_process_that_hangs_comes_back() {
    let [mut a, mut b, mut c] = three(HASTY);
    a.wait_for_all(&["peer b Up", "peer c Up"]);
    b.wait_for_all(&["peer a Up", "peer c Up"]);
    c.wait_for_all(&["peer a Up", "peer b Up"]);
    a.ask(2, 1);
    a.ask(3, 1);
    a.tell("say 2 1 100 1000");
    assert_eq!(b.hears(100, "a"), [100, 100, 0]);
    a.tell("hold 2");
    b.wait_for("holds");
    b.signal("-STOP");
    a.tell("say 2 101 100 1000");
    let before = a.wait_for("no answer: Refused(PeerLost)");
    assert_eq!(before, ["peer b Suspect"], "first it is suspected");
    a.wait_for("peer b Down");
    thread::sleep(Duration::from_secs(1));
    assert_eq!(a.ask(3, 4), [""; 0], "the others go on");
    b.signal("-CONT");
    a.wait_for("peer b Up");
    b.wait_for_all(&["peer a Up", "peer c Up"]);
    a.ask(2, 21);
    a.tell("say 2 201 100 1000");
    let [count, _, disorder] = b.hears(300, "a");
    assert!((200..=300).contains(&count), "{count}");
    assert_eq!(disorder, 0, "nothing is doubled or out of order");
    c.wait_for("peer b Up");
    c.ask(2, 5);
}

/// Cuts a connection for a while, while both sides send.
fn cut(settings: &str, time: Duration) {
    let [a, b] = addresses();
    let proxy = Proxy::to(&a);
    // Otherwise, zenoh would connect them without the proxy.
    let alone = format!("scouting/gossip/enabled=false {settings}");
    let mut first = Node::start(&format!("name=a key=1 listen={a} {alone}"));
    let through = format!("members={}", proxy.address);
    let mut second = Node::start(&format!("name=b key=2 listen={b} {through} {alone}"));
    first.wait_for("peer b Up");
    second.wait_for("peer a Up");
    for (node, key) in [(&mut first, 2), (&mut second, 1)] {
        node.ask(key, 1);
        node.tell(&format!("say {key} 1 1000 100"));
    }
    assert_eq!(first.hears(1000, "b"), [1000, 1000, 0]);
    assert_eq!(second.hears(1000, "a"), [1000, 1000, 0]);
    let start = Instant::now();
    proxy.cut();
    for (node, key) in [(&mut first, 2), (&mut second, 1)] {
        node.tell(&format!("say {key} 1001 1000 100"));
        node.tell(&format!("hold {key}"));
    }
    first.wait_for("peer b Down");
    second.wait_for("peer a Down");
    println!("both know of the cut after {:?}", start.elapsed());
    thread::sleep(time.saturating_sub(start.elapsed()));
    proxy.mend();
    let mended = Instant::now();
    first.wait_for("peer b Up");
    second.wait_for("peer a Up");
    println!("healed {:?} after the end of the cut", mended.elapsed());
    for (node, key) in [(&mut first, 2), (&mut second, 1)] {
        node.ask(key, 7);
        node.tell(&format!("say {key} 2001 1000 100"));
    }
    for (node, from) in [(&mut first, "b"), (&mut second, "a")] {
        let [count, _, disorder] = node.hears(3000, from);
        assert!((2000..=3000).contains(&count), "{count}");
        assert_eq!(disorder, 0, "nothing is doubled or out of order");
    }
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

//! What every link has to pass. Most run three nodes with the names a, b and c, and the keys 1, 2 and 3.

use core::time::Duration;
use std::{thread, time::Instant};

use crate::{PATIENCE, node::Node, proxy::Proxy};

/// Settings by which a process that hangs is down after a second.
pub const HASTY: &str = "heartbeat=100 suspect_after=400 down_after=1000";

/// Waits until each of the three nodes knows both others.
#[track_caller]
pub fn wait_for_each_other([a, b, c]: &mut [Node; 3]) {
    a.wait_for_all(&["peer b Up", "peer c Up"]);
    b.wait_for_all(&["peer a Up", "peer c Up"]);
    c.wait_for_all(&["peer a Up", "peer b Up"]);
}

/// The nodes reach each other by a key, all at once, and in turn.
pub fn they_reach_each_other(mut nodes: [Node; 3]) {
    wait_for_each_other(&mut nodes);
    let [mut a, mut b, mut c] = nodes;
    assert_eq!(c.ask(2, 21), [""; 0]);
    a.ask(2, 1);
    a.ask(3, 1);
    a.tell("say all 5");
    for node in [&mut a, &mut b, &mut c] {
        assert_eq!(node.hears(5, "a"), [1, 5, 0]);
    }
    for number in 6..12 {
        a.tell(&format!("say turn {number}"));
    }
    let mut turns = [&mut a, &mut b, &mut c].map(|node| {
        let mut heard = [0; 3];
        while heard[0] < 3 {
            heard = node.heard("a");
        }
        heard[1]
    });
    turns.sort();
    assert_eq!(turns, [9, 10, 11], "each has had two turns");
    c.tell("end");
    c.wait_for("ended");
    assert!(c.wait().success());
    a.wait_for("peer c Down");
    b.wait_for("peer c Down");
    assert_eq!(b.ask(1, 8), [""; 0]);
}

/// A node that starts again is found again.
pub fn one_starts_again(mut first: Node, start: impl Fn() -> Node) {
    let mut second = start();
    for _ in 0..3 {
        first.wait_for("peer b Up");
        first.ask(2, 1);
        second.kill();
        first.wait_for("peer b Down");
        second = start();
    }
    second.wait_for("peer a Up");
    second.ask(1, 1);
}

/// A request fails when its process is killed. The settings are the default: a process that hangs is down
/// after ten seconds.
pub fn one_is_killed(nodes: [Node; 3], limit: Duration) {
    let [mut a, mut b, mut c] = nodes;
    a.wait_for_all(&["peer b Up", "peer c Up"]);
    a.ask(2, 1);
    a.tell("hold 2");
    b.wait_for("holds");
    let start = Instant::now();
    b.kill();
    let before = a.wait_for("no answer: Refused(PeerLost)");
    let took = start.elapsed();
    println!("the request failed {took:?} after the kill");
    assert!(took < limit, "{took:?}");
    assert!(
        before.iter().all(|line| line == "peer b Down"),
        "{before:?}"
    );
    // The others go on.
    c.wait_for("peer b Down");
    assert_eq!(c.ask(1, 3), [""; 0]);
}

/// A process stops, is down, and comes back. The settings are [`HASTY`].
pub fn one_hangs_and_comes_back(mut nodes: [Node; 3]) {
    wait_for_each_other(&mut nodes);
    let [mut a, mut b, mut c] = nodes;
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

/// The connection of two nodes through a proxy is cut for a while, while both send.
pub fn the_connection_is_cut(mut first: Node, mut second: Node, proxy: &Proxy, time: Duration) {
    first.wait_for("peer b Up");
    second.wait_for("peer a Up");
    both_send(&mut first, &mut second, 1);
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
    both_send(&mut first, &mut second, 2001);
    for (node, from) in [(&mut first, "b"), (&mut second, "a")] {
        let [count, _, disorder] = node.hears(3000, from);
        assert!((2000..=3000).contains(&count), "{count}");
        assert_eq!(disorder, 0, "nothing is doubled or out of order");
    }
}

/// Each of two nodes asks the other, and sends it a thousand numbers.
fn both_send(first: &mut Node, second: &mut Node, from: u32) {
    for (node, key) in [(first, 2), (second, 1)] {
        node.ask(key, 1);
        node.tell(&format!("say {key} {from} 1000 100"));
    }
}

/// Ten thousand parcels each way arrive once and in order.
pub fn nothing_is_lost(nodes: [Node; 3]) {
    const PARCELS: u32 = 10_000;

    let [mut a, mut b, _c] = nodes;
    a.wait_for_all(&["peer b Up", "peer c Up"]);
    b.wait_for_all(&["peer a Up", "peer c Up"]);
    a.ask(2, 1);
    b.ask(1, 1);
    let start = Instant::now();
    a.tell(&format!("say 2 1 {PARCELS} 64"));
    b.tell(&format!("say 1 1 {PARCELS} 64"));
    assert_eq!(b.hears(PARCELS, "a"), [PARCELS, PARCELS, 0]);
    assert_eq!(a.hears(PARCELS, "b"), [PARCELS, PARCELS, 0]);
    println!("{PARCELS} parcels each way took {:?}", start.elapsed());
}

/// A slow process refuses parcels and slows no other. The nodes have the argument `inbox=100`.
pub fn one_is_slow(mut nodes: [Node; 3]) {
    const KIB_64: u32 = 1 << 16;

    wait_for_each_other(&mut nodes);
    let [mut a, mut b, mut c] = nodes;
    a.ask(2, 1);
    b.tell("hang");
    let start = Instant::now();
    // 200 MB.
    let is_full = |line: &&String| *line == "refused Full";
    let mut refused = 0;
    for from in 0..60 {
        a.tell(&format!("say 2 {} 50 {KIB_64}", 50 * from + 1));
        refused += a.ask(3, from).iter().filter(is_full).count();
        assert_eq!(c.ask(1, from), [""; 0]);
    }
    println!(
        "60 requests both ways and 200 MB of parcels took {:?}",
        start.elapsed()
    );
    b.tell("wake");
    refused += a.wait_for("room").iter().filter(is_full).count();
    assert!(refused > 2000, "{refused}");
    a.tell("say 2 5000");
    let [count, _, disorder] = b.hears(5000, "a");
    assert!(count > 50, "{count}");
    assert_eq!(disorder, 0, "nothing is doubled or out of order");
    #[cfg(target_os = "linux")]
    for (node, name) in [(&a, "a"), (&b, "b"), (&c, "c")] {
        println!("{name}: {} MB", node.peak_memory());
        assert!(
            node.peak_memory() < 150,
            "{name}: {} MB",
            node.peak_memory()
        );
    }
}

/// A process that ends sends what is left.
pub fn one_ends_and_sends_what_is_left(nodes: [Node; 3]) {
    let [mut a, mut b, mut c] = nodes;
    a.wait_for_all(&["peer b Up", "peer c Up"]);
    b.wait_for_all(&["peer a Up", "peer c Up"]);
    a.ask(2, 1);
    // 10 MB, of which 1 MB can be on its way.
    a.tell("say 2 1 5000 2000");
    a.tell("end");
    assert_eq!(b.hears(5000, "a"), [5000, 5000, 0]);
    b.has_printed("peer a Down");
    assert!(a.wait().success());
    assert_eq!(b.ask(3, 1), [""; 0]);
    c.has_printed("peer a Down");
}

/// A process that ends sends what is left, also while another one sends to it.
pub fn one_ends_while_another_sends(nodes: [Node; 3]) {
    let [mut a, mut b, _c] = nodes;
    a.wait_for_all(&["peer b Up", "peer c Up"]);
    b.wait_for_all(&["peer a Up", "peer c Up"]);
    a.ask(2, 1);
    b.ask(1, 1);
    b.tell("say 1 1 5000 2000");
    a.tell("say 2 1 5000 2000");
    a.tell("end");
    assert_eq!(b.hears(5000, "a"), [5000, 5000, 0]);
    assert!(a.wait().success());
}

/// A process ends while another hangs.
pub fn one_ends_while_another_hangs(nodes: [Node; 3]) {
    let [mut a, b, mut c] = nodes;
    a.wait_for_all(&["peer b Up", "peer c Up"]);
    a.ask(2, 1);
    a.ask(3, 1);
    b.signal("-STOP");
    a.tell("say 2 1 1000 10000");
    a.tell("say 3 1 1000 10");
    a.tell("end");
    let start = Instant::now();
    a.wait_for("ended");
    assert!(a.wait().success());
    println!("ended after {:?}", start.elapsed());
    assert!(
        start.elapsed() < Duration::from_secs(8),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(c.hears(1000, "a"), [1000, 1000, 0]);
}

/// Waits until a condition holds.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

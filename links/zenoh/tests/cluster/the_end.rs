//! The end of a process.

use core::time::Duration;
use std::time::Instant;

use crate::finding::three;

#[test]
fn a_process_that_ends_sends_what_is_left() {
    let [mut a, mut b, mut c] = three("down_after=10000");
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

#[test]
fn a_process_ends_while_another_hangs() {
    let [mut a, b, mut c] = three("down_after=10000");
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

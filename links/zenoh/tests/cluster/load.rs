//! More than a process can take.

use core::time::Duration;
use std::{thread, time::Instant};

use crate::finding::three;

#[test]
fn a_slow_process_refuses_parcels_and_slows_no_other() {
    const KIB_64: u32 = 1 << 16;

    let [mut a, mut b, mut c] = three("inbox=100");
    a.wait_for_all(&["peer b Up", "peer c Up"]);
    b.wait_for_all(&["peer a Up", "peer c Up"]);
    c.wait_for_all(&["peer a Up", "peer b Up"]);
    b.tell("sleep 3000");
    let start = Instant::now();
    // 200 MB.
    let mut refused = 0;
    for from in 0..60 {
        a.tell(&format!("say 2 {} 50 {KIB_64}", 50 * from + 1));
        let before = a.ask(3, from);
        refused += before.iter().filter(|line| *line == "refused Full").count();
        assert_eq!(c.ask(1, from), [""; 0]);
    }
    let while_it_slept = start.elapsed();
    println!("60 requests both ways and 200 MB of parcels took {while_it_slept:?}");
    let before = a.wait_for("room");
    refused += before.iter().filter(|line| *line == "refused Full").count();
    assert!(refused > 1000, "{refused}");
    thread::sleep(Duration::from_secs(3).saturating_sub(start.elapsed()));
    a.tell("say 2 5000");
    let [count, _, disorder] = b.hears(5000, "a");
    assert!(count >= 100, "{count}");
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

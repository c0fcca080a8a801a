//! More than a process can take.

use std::time::Instant;

use crate::finding::three;

#[test]
fn a_slow_process_refuses_parcels_and_slows_no_other() {
    const KIB_64: u32 = 1 << 16;

    let [mut a, mut b, mut c] = three("inbox=100");
    a.wait_for_all(&["peer b Up", "peer c Up"]);
    b.wait_for_all(&["peer a Up", "peer c Up"]);
    c.wait_for_all(&["peer a Up", "peer b Up"]);
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

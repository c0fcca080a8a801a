//! How processes find each other.

use crate::{addresses, node::Node};

/// Starts three nodes. The second and the third know only the first.
pub(crate) fn three(more: &str) -> [Node; 3] {
    let [a, b] = addresses();
    [
        Node::start(&format!("name=a key=1 listen={a} {more}")),
        Node::start(&format!("name=b key=2 listen={b} members={a} {more}")),
        Node::start(&format!("name=c key=3 members={a} {more}")),
    ]
}

#[test]
fn processes_that_know_only_one_find_each_other() {
    let [mut a, mut b, mut c] = three("down_after=10000");
    a.wait_for_all(&["peer b Up", "peer c Up"]);
    b.wait_for_all(&["peer a Up", "peer c Up"]);
    c.wait_for_all(&["peer a Up", "peer b Up"]);
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

#[test]
fn a_process_that_starts_again_is_found_again() {
    let [a, b] = addresses();
    let mut first = Node::start(&format!("name=a key=1 listen={a} members={a},{b}"));
    let start = || Node::start(&format!("name=b key=2 listen={b} members={a},{b}"));
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

#[test]
fn processes_of_other_clusters_share_nothing() {
    use bevy_due::{WorldGroups, link::Link, prelude::*};
    use bevy_due_zenoh::{ZenohConfig, zenoh_link};

    let [address] = addresses();
    let join = |cluster: &str, listen: &[String]| {
        let mut groups = WorldGroups::new();
        let worlds = groups.start(cluster.to_owned(), 1, |app| {
            _ = app.add_plugins(DuePlugin::default());
        });
        worlds.expect("it starts");
        let config = ZenohConfig {
            cluster: cluster.into(),
            listen: listen.to_vec(),
            members: vec![address.clone()],
            ..ZenohConfig::default()
        };
        groups.join(zenoh_link(config)).expect("it opens");
        groups
    };
    fn is_link(_: &impl Link) {}
    is_link(&zenoh_link(ZenohConfig::default()));
    let red = join("red", core::slice::from_ref(&address));
    let _blue = join("blue", &["127.0.0.1:0".into()]);
    let _also_red = join("red", &["127.0.0.1:0".into()]);
    while red.running("red") < 2 {
        std::thread::yield_now();
    }
    assert_eq!(red.running("blue"), 0);
}

#[test]
fn the_error_for_a_used_address_names_it() {
    let [a] = addresses();
    let _first = Node::start(&format!("name=a listen={a}"));
    let mut second = Node::run(&format!("name=b listen={a}"));
    let start = format!("error: can't listen at [{a:?}]: ");
    let error = second.next_line();
    assert!(
        error.starts_with(&start) && error.contains("Address already in use"),
        "{error}"
    );
    assert_eq!(second.wait().code(), Some(1));
}

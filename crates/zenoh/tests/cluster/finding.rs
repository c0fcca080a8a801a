//! How processes find each other.

use bevy_due_link_testing::{addresses, node::Node, scenarios};

use crate::node;

/// Starts three nodes. The second and the third know only the first.
pub(crate) fn three(more: &str) -> [Node; 3] {
    let [a, b] = addresses();
    [
        node(&format!("name=a key=1 listen={a} {more}")),
        node(&format!("name=b key=2 listen={b} members={a} {more}")),
        node(&format!("name=c key=3 members={a} {more}")),
    ]
}

#[test]
fn processes_that_know_only_one_find_each_other() {
    scenarios::they_reach_each_other(three("down_after=10000"));
}

#[test]
fn a_process_that_starts_again_is_found_again() {
    let [a, b] = addresses();
    let first = node(&format!("name=a key=1 listen={a} members={a},{b}"));
    scenarios::one_starts_again(first, || {
        node(&format!("name=b key=2 listen={b} members={a},{b}"))
    });
}

#[test]
fn processes_of_other_clusters_share_nothing() {
    use bevy_due::{
        prelude::*,
        worlds::{WorldGroups, link::Link},
    };
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
    let _first = node(&format!("name=a listen={a}"));
    let mut second = Node::run("node", &format!("name=b listen={a}"));
    let start = format!("error: can't listen at [{a:?}]: ");
    let error = second.next_line();
    assert!(
        error.starts_with(&start) && error.contains("Address already in use"),
        "{error}"
    );
    assert_eq!(second.wait().code(), Some(1));
}

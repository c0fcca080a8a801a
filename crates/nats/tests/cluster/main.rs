//! Clusters of operating-system processes on the loopback interface. Each is the example `nats_node`.

mod faults;
mod finding;
mod garbage;
mod load;
mod the_end;

use bevy_due::{prelude::*, worlds::WorldGroups};
use bevy_due_link_testing::{nats_server::NatsServer, node::Node};
use bevy_due_nats::{NatsConfig, nats_link};

/// Starts the example with arguments such as `"name=a key=1"`, and waits until it has joined.
#[track_caller]
fn node(server: &str, arguments: &str) -> Node {
    Node::start("nats_node", &format!("{arguments} servers={server}"))
}

/// Starts three nodes.
fn three(server: &NatsServer, more: &str) -> [Node; 3] {
    [("a", 1), ("b", 2), ("c", 3)]
        .map(|(name, key)| node(&server.address, &format!("name={name} key={key} {more}")))
}

/// Joins a cluster in this process, with a group of the same name.
fn join(server: &str, cluster: &str) -> WorldGroups {
    let mut groups = WorldGroups::new();
    let worlds = groups.start(cluster.to_owned(), 1, |app| {
        _ = app.add_plugins(DuePlugin::default());
    });
    worlds.expect("it starts");
    let config = NatsConfig {
        cluster: cluster.into(),
        servers: vec![server.into()],
        ..NatsConfig::default()
    };
    groups.join(nats_link(config)).expect("it opens");
    groups
}

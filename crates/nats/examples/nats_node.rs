//! A process of a cluster, which takes commands on its standard input and prints what it hears. The tests
//! run several. To try it, start `nats-server`, and run in two terminals:
//!
//! ```text
//! cargo run -p bevy_due_nats --example nats_node -- name=a key=1
//! cargo run -p bevy_due_nats --example nats_node -- name=b key=2
//! ```
//!
//! Then type `ask 2 21` into the first, or `say all 7`. Kill the second, and start it again.

use bevy_due_link_testing::example::{list, run};
use bevy_due_nats::{NatsConfig, nats_link};

fn main() {
    run(|arguments| {
        let mut config = NatsConfig {
            name: Some(arguments.name.clone()),
            peers: arguments.peers,
            ..NatsConfig::default()
        };
        for (name, value) in &arguments.others {
            match &**name {
                "servers" => config.servers = list(value),
                "cluster" => config.cluster.clone_from(value),
                _ => panic!("there is no setting `{name}`"),
            }
        }
        nats_link(config)
    });
}

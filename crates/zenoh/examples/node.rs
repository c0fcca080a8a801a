//! A process of a cluster, which takes commands on its standard input and prints what it hears. The tests
//! run several. To try it, run in two terminals:
//!
//! ```text
//! cargo run -p bevy_due_zenoh --example node -- name=a key=1 listen=127.0.0.1:7400
//! cargo run -p bevy_due_zenoh --example node -- name=b key=2 members=127.0.0.1:7400
//! ```
//!
//! Then type `ask 2 21` into the first, or `say all 7`. Kill the second, and start it again.

use bevy_due_link_testing::example::{list, run};
use bevy_due_zenoh::{ZenohConfig, zenoh_link};

fn main() {
    run(|arguments| {
        let mut config = ZenohConfig {
            name: Some(arguments.name.clone()),
            peers: arguments.peers,
            ..ZenohConfig::default()
        };
        for (name, value) in &arguments.others {
            match &**name {
                "listen" => config.listen = list(value),
                "members" => config.members = list(value),
                _ => config.zenoh.push((name.clone(), value.clone())),
            }
        }
        zenoh_link(config)
    });
}

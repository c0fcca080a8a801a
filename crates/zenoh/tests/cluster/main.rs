//! Clusters of operating-system processes on the loopback interface. Each is the example `node`.

mod faults;
mod finding;
mod garbage;
mod load;
mod the_end;

use bevy_due_link_testing::node::Node;

/// Starts the example with arguments such as `"name=a key=1"`, and waits until it has joined.
#[track_caller]
fn node(arguments: &str) -> Node {
    Node::start("node", arguments)
}

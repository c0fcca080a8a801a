//! The end of a process.

use bevy_due_link_testing::{nats_server::NatsServer, scenarios};

use crate::three;

#[test]
fn a_process_that_ends_sends_what_is_left() {
    let server = NatsServer::start(&[]);
    scenarios::one_ends_and_sends_what_is_left(three(&server, "down_after=10000"));
}

#[test]
fn a_process_ends_while_another_sends() {
    let server = NatsServer::start(&[]);
    scenarios::one_ends_while_another_sends(three(&server, "inbox=20000"));
}

#[test]
fn a_process_ends_while_another_hangs() {
    let server = NatsServer::start(&[]);
    scenarios::one_ends_while_another_hangs(three(&server, "down_after=10000"));
}

//! Many parcels, and more than a process can take.

use bevy_due_link_testing::{nats_server::NatsServer, scenarios};

use crate::three;

#[test]
fn ten_thousand_parcels_arrive_once_and_in_order() {
    let server = NatsServer::start(&[]);
    scenarios::nothing_is_lost(three(&server, "inbox=20000"));
}

#[test]
fn a_slow_process_refuses_parcels_and_slows_no_other() {
    let server = NatsServer::start(&[]);
    scenarios::one_is_slow(three(&server, "inbox=100"));
}

/// The default of a server is 1 MiB, so a parcel of 1 MiB does not fit into a message.
#[test]
fn a_parcel_that_no_message_can_carry_is_refused() {
    let server = NatsServer::start(&[]);
    let [mut a, mut b, _c] = three(&server, "inbox=100");
    a.wait_for_all(&["peer b Up", "peer c Up"]);
    a.ask(2, 1);
    // The number and the name take 6 bytes of the payload.
    let longest = (988 << 10) - 6;
    a.tell(&format!("say 2 1 1 {longest}"));
    assert_eq!(b.hears(1, "a"), [1, 1, 0]);
    a.tell(&format!("say 2 2 1 {}", longest + 1));
    assert_eq!(a.next_line(), "refused TooLarge");
    a.tell("say 2 3");
    assert_eq!(b.hears(3, "a"), [2, 3, 0], "the connection is still there");
}

//! Processes that die or hang, and connections that break.

use core::time::Duration;

use bevy_due_link_testing::{
    addresses,
    proxy::Proxy,
    scenarios::{self, HASTY},
};

use crate::{finding::three, node};

#[test]
fn a_request_fails_when_its_process_is_killed() {
    scenarios::one_is_killed(three("heartbeat=500"), Duration::from_secs(5));
}

#[test]
fn a_process_that_hangs_comes_back() {
    scenarios::one_hangs_and_comes_back(three(HASTY));
}

/// Cuts a connection for a while, while both sides send.
fn cut(settings: &str, time: Duration) {
    let [a, b] = addresses();
    let proxy = Proxy::to(&a);
    // Otherwise, zenoh would connect them without the proxy.
    let alone = format!("scouting/gossip/enabled=false {settings}");
    let first = node(&format!("name=a key=1 listen={a} {alone}"));
    let through = format!("members={}", proxy.address);
    let second = node(&format!("name=b key=2 listen={b} {through} {alone}"));
    scenarios::the_connection_is_cut(first, second, &proxy, time);
}

#[test]
fn a_cut_of_three_seconds_heals() {
    cut(HASTY, Duration::from_secs(3));
}

/// The default settings: a process is down after ten seconds.
#[test]
fn a_cut_of_fourteen_seconds_heals() {
    cut("heartbeat=500", Duration::from_secs(14));
}

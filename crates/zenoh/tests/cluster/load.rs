//! Many parcels, and more than a process can take.

use bevy_due_link_testing::scenarios;

use crate::finding::three;

#[test]
fn ten_thousand_parcels_arrive_once_and_in_order() {
    scenarios::nothing_is_lost(three("inbox=20000"));
}

#[test]
fn a_slow_process_refuses_parcels_and_slows_no_other() {
    scenarios::one_is_slow(three("inbox=100"));
}

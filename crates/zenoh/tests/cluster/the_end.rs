//! The end of a process.

use bevy_due_link_testing::scenarios;

use crate::finding::three;

#[test]
fn a_process_that_ends_sends_what_is_left() {
    scenarios::one_ends_and_sends_what_is_left(three("down_after=10000"));
}

#[test]
fn a_process_ends_while_another_sends() {
    scenarios::one_ends_while_another_sends(three("inbox=20000"));
}

#[test]
fn a_process_ends_while_another_hangs() {
    scenarios::one_ends_while_another_hangs(three("down_after=10000"));
}

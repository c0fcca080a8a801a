//! A simulated day, exact to the nanosecond. The command `long_time` runs a thousand years.

use bevy_due_proofs::long_time::{DAY, fractions_of_nanoseconds, sixty_hertz_queue, sparse_timers};

#[test]
fn a_timer_of_sixty_hertz_is_exact_for_a_day() {
    let firings = sixty_hertz_queue(DAY);
    assert!(firings > 60 * DAY - 1000, "only {firings} firings");
}

#[test]
fn fractions_of_a_nanosecond_are_carried_for_a_day() {
    let firings = fractions_of_nanoseconds(DAY);
    assert!(firings > 15 * DAY, "only {firings} firings");
}

#[test]
fn sparse_timers_are_exact_for_ten_years() {
    let firings = sparse_timers(10);
    assert!(firings > 3000, "only {firings} firings");
}

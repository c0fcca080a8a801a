//! Promise 8: equal inputs give equal firings in the same order.
//!
//! A scripted world of 100,000 timers gives the same checksum in debug and release builds, on any
//! number of threads, with every combination of features, and in any order of the systems that arm
//! no timers.

#[cfg(feature = "std")]
#[path = "scripted_world/many_threads.rs"]
mod many_threads;
mod scripted_world;

use scripted_world::{Checksum, EXPECTED, Record, TIMERS, on_one_thread, play};

fn expect_the_same(record: &Record) {
    assert_eq!(record.checksum, Checksum(EXPECTED), "{record:?}");
}

#[test]
fn one_thread_gives_the_expected_checksum() {
    let record = play(on_one_thread, None);
    expect_the_same(&record);
    let enough = TIMERS as u64 / 2;
    assert!(record.firings > enough, "too little happens in {record:?}");
}

#[cfg(feature = "std")]
#[test]
fn many_threads_and_another_order_of_other_systems_make_no_difference() {
    expect_the_same(&play(many_threads::on_many_threads, Some(1)));
}

#[test]
fn the_checksum_depends_on_the_order_of_events() {
    let sum = |numbers: [u64; 2]| {
        let mut checksum = Checksum::default();
        for number in numbers {
            checksum.add_number(number);
        }
        checksum
    };
    assert_ne!(sum([1, 2]), sum([2, 1]));
    let mut known = Checksum::default();
    known.add(b"foobar");
    assert_eq!(known, Checksum(0x8594_4171_f739_67e8), "FNV-1a, 64 bits");
}

//! Promise 10: bad input is a clear error that names the value.

use std::panic::catch_unwind;

use bevy_due::{Cooldown, DespawnAfter, Timer, timer::InvalidTimer};
use core::{panic::UnwindSafe, time::Duration};

fn panic_message(make: impl FnOnce() -> Timer + UnwindSafe) -> String {
    let payload = catch_unwind(make).expect_err("should panic");
    *payload
        .downcast::<String>()
        .expect("the payload should be a string")
}

#[test]
fn bad_input_is_rejected_with_the_value() {
    let cases: [(Result<Timer, InvalidTimer>, &str); 14] = [
        (Timer::try_after(-1.5), "got -1.5 s"),
        (Timer::try_after(-0.1_f32), "got -0.1 s"),
        (Timer::try_every(f32::NAN), "got NaN s"),
        (Timer::try_after(f64::NAN), "got NaN s"),
        (Timer::try_after(f64::INFINITY), "got inf s"),
        (Timer::try_every(-0.25), "got -0.25 s"),
        (Timer::try_every(0.0), "got 0 s"),
        (Timer::try_every(Duration::ZERO), "got 0 s"),
        (Timer::every(1.0).try_times(0), "got 0 times"),
        (Timer::after(1.0).try_times(7), "got 7 times"),
        (
            Timer::try_after_between(Duration::from_secs(3)..=Duration::from_secs(2)),
            "got 3s..=2s",
        ),
        (
            Timer::try_every_between(Duration::from_secs(3)..=Duration::from_secs(2)),
            "got 3s..=2s",
        ),
        (
            Timer::try_every_between(Duration::ZERO..=Duration::from_secs(2)),
            "got 0 s",
        ),
        (
            Timer::try_after_between(Duration::MAX..=Duration::ZERO),
            "..=0ns",
        ),
    ];
    for (result, value) in cases {
        let message = result.expect_err("should be rejected").to_string();
        assert!(message.contains(value), "{message:?} should name {value:?}");
    }
}

#[test]
fn panicking_constructors_give_the_same_messages() {
    let cases: [(fn() -> Timer, Result<Timer, InvalidTimer>); 8] = [
        (|| Timer::after(-1.5), Timer::try_after(-1.5)),
        (|| Timer::every(0.0), Timer::try_every(0.0)),
        (
            || Timer::every(Duration::ZERO),
            Timer::try_every(Duration::ZERO),
        ),
        (
            || Timer::every(1.0).first_after(f64::NEG_INFINITY),
            Timer::try_after(f64::NEG_INFINITY),
        ),
        (
            || Timer::every(1.0).times(0),
            Timer::every(1.0).try_times(0),
        ),
        (
            || Timer::after(1.0).times(2),
            Timer::after(1.0).try_times(2),
        ),
        (
            || Timer::after_between(2.0..=1.0),
            Timer::try_after_between(Duration::from_secs(2)..=Duration::from_secs(1)),
        ),
        (
            || Timer::after_between(-2.0_f32..=1.0),
            Timer::try_after(-2.0),
        ),
    ];
    for (make, tried) in cases {
        assert_eq!(panic_message(make), tried.unwrap_err().to_string());
    }
}

#[test]
fn an_f32_is_read_as_the_decimal_that_prints_it() {
    for millis in 1..10_000 {
        let exact = Duration::from_millis(millis);
        let secs = millis as f32 / 1000.0;
        assert_eq!(Timer::after(secs).delay(), exact, "{secs} s");
    }
    let tenth = Duration::from_millis(100);
    let second = Timer::every(Duration::from_secs(1));
    assert_eq!(Timer::every(0.1_f32), Timer::every(tenth));
    assert_eq!(
        second.clone().first_after(0.1_f32),
        second.first_after(tenth)
    );
    assert_eq!(Cooldown::new(0.1_f32).duration(), tenth);
    assert_eq!(DespawnAfter::new(0.1_f32).delay(), tenth);
    let shortest = Timer::after(f32::from_bits(1)).delay();
    assert_eq!(shortest, Duration::from_nanos(1), "never rounded to zero");
}

#[test]
fn the_type_of_a_number_of_seconds_is_inferred() {
    // An `f32` would read this as 0.3 s, without the 3 ns.
    let precise = Timer::after(0.300_000_003);
    assert_eq!(precise.delay(), Duration::from_nanos(300_000_003));
    assert_eq!(Timer::after(2), Timer::after(2.0));
    let delays = [1.5, 2.5].map(Timer::after);
    assert_eq!(delays[0].delay(), Duration::from_millis(1500));
}

#[cfg(feature = "serialize")]
mod serialized {
    use super::*;

    #[test]
    fn a_timer_survives_a_serde_round_trip() {
        for timer in [
            Timer::after(1.5),
            Timer::every(0.1).immediately(),
            Timer::every(2.0).first_after(0.5).times(5),
        ] {
            let text = ron::to_string(&timer).unwrap();
            assert_eq!(ron::from_str::<Timer>(&text).unwrap(), timer, "{text}");
        }
    }

    #[test]
    fn bad_data_is_rejected_with_the_value() {
        let second = "(secs:1,nanos:0)";
        for (data, value) in [
            (
                format!("(delay:{second},interval:Some((secs:0,nanos:0)),times:None)"),
                "got 0 s",
            ),
            (
                format!("(delay:{second},interval:Some({second}),times:Some(0))"),
                "got 0 times",
            ),
            (
                format!("(delay:{second},interval:None,times:Some(4))"),
                "got 4 times",
            ),
            (
                format!("(delay:{second},intervall:Some({second}),times:None)"),
                "intervall",
            ),
        ] {
            let message = ron::from_str::<Timer>(&data).unwrap_err().to_string();
            assert!(message.contains(value), "{message:?} should name {value:?}");
        }
    }
}

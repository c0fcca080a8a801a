//! Promise 10: bad input is a clear error that names the value.

use std::panic::catch_unwind;

use bevy_due::{InvalidTimer, Timer};
use core::{panic::UnwindSafe, time::Duration};

fn panic_message(make: impl FnOnce() -> Timer + UnwindSafe) -> String {
    let payload = catch_unwind(make).expect_err("should panic");
    *payload
        .downcast::<String>()
        .expect("the payload should be a string")
}

#[test]
fn bad_input_is_rejected_with_the_value() {
    let cases: [(Result<Timer, InvalidTimer>, &str); 9] = [
        (Timer::try_after_secs(-1.5), "got -1.5 s"),
        (Timer::try_after_secs(f64::NAN), "got NaN s"),
        (Timer::try_after_secs(f64::INFINITY), "got inf s"),
        (Timer::try_every_secs(-0.25), "got -0.25 s"),
        (Timer::try_every_secs(0.0), "got 0 s"),
        (Timer::try_every(Duration::ZERO), "got 0 s"),
        (
            Timer::every_secs(1.0).try_first_after_secs(-3.0),
            "got -3 s",
        ),
        (Timer::every_secs(1.0).try_times(0), "got 0 times"),
        (Timer::after_secs(1.0).try_times(7), "got 7 times"),
    ];
    for (result, value) in cases {
        let message = result.expect_err("should be rejected").to_string();
        assert!(message.contains(value), "{message:?} should name {value:?}");
    }
}

#[test]
fn panicking_constructors_give_the_same_messages() {
    let cases: [(fn() -> Timer, Result<Timer, InvalidTimer>); 6] = [
        (|| Timer::after_secs(-1.5), Timer::try_after_secs(-1.5)),
        (|| Timer::every_secs(0.0), Timer::try_every_secs(0.0)),
        (
            || Timer::every(Duration::ZERO),
            Timer::try_every(Duration::ZERO),
        ),
        (
            || Timer::every_secs(1.0).first_after_secs(f64::NEG_INFINITY),
            Timer::every_secs(1.0).try_first_after_secs(f64::NEG_INFINITY),
        ),
        (
            || Timer::every_secs(1.0).times(0),
            Timer::every_secs(1.0).try_times(0),
        ),
        (
            || Timer::after_secs(1.0).times(2),
            Timer::after_secs(1.0).try_times(2),
        ),
    ];
    for (make, tried) in cases {
        assert_eq!(panic_message(make), tried.unwrap_err().to_string());
    }
}

#[cfg(feature = "serialize")]
mod serialized {
    use super::*;

    #[test]
    fn a_timer_survives_a_serde_round_trip() {
        for timer in [
            Timer::after_secs(1.5),
            Timer::every_secs(0.1).immediately(),
            Timer::every_secs(2.0).first_after_secs(0.5).times(5),
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

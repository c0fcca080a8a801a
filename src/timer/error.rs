//! What can be wrong with the numbers that a timer is made of.

use core::{fmt, time::Duration};

/// Why a [`Timer`](super::Timer) can't be made of the given numbers. It names the bad one.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum InvalidTimer {
    /// A number of seconds is negative, infinite or not a number.
    Seconds(f64),
    /// The interval is zero: the timer would be due for ever.
    ZeroInterval,
    /// The timer would never fire.
    ZeroTimes,
    /// So many firings are asked of a timer that has no interval.
    TimesWithoutInterval(u32),
    /// A range of delays ends before it begins.
    EmptyRange {
        /// The shortest delay.
        start: Duration,
        /// The longest delay, which is shorter.
        end: Duration,
    },
}

impl fmt::Display for InvalidTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seconds(secs) => write!(
                f,
                "a number of seconds must be finite and not negative, got {secs} s"
            ),
            Self::ZeroInterval => f.write_str("an interval must be longer than zero, got 0 s"),
            Self::ZeroTimes => f.write_str("a timer must fire at least once, got 0 times"),
            Self::TimesWithoutInterval(times) => write!(
                f,
                "a timer without an interval fires once, got {times} times"
            ),
            Self::EmptyRange { start, end } => write!(
                f,
                "a range of delays must not end before it begins, got {start:?} to {end:?}"
            ),
        }
    }
}

impl core::error::Error for InvalidTimer {}

//! Spans of time: a duration, or a number of seconds.

use alloc::format;
use core::{fmt::Display, time::Duration};

use thiserror::Error;

/// A span of time: a [`Duration`], or a number of seconds as an `f32`, an `f64` or a `u32`.
///
/// Every span of time of a timer, a lifetime, a cooldown or a clock may be any of them.
///
/// A number is rounded to the nearest nanosecond, but a positive number is never rounded to zero. An `f32`
/// is read as the shortest decimal that prints it, so `0.1_f32` is exactly a tenth of a second. Numbers
/// that are too large saturate.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_due::{
///     Timer,
///     timer::{IntoDuration, InvalidSeconds},
/// };
///
/// const FIRE_RATE: f32 = 0.2;
///
/// assert_eq!(Timer::after(FIRE_RATE).delay(), Duration::from_millis(200));
/// assert_eq!(Timer::after(0.1).delay(), Duration::from_millis(100));
/// assert_eq!(Timer::after(3).delay(), Duration::from_secs(3));
/// assert_eq!(Timer::after(Duration::from_secs(3)), Timer::after(3));
///
/// // For numbers that come from data:
/// assert_eq!((-1.5).try_into_duration(), Err(InvalidSeconds(-1.5)));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a span of time",
    note = "use a `Duration`, or a number of seconds as an `f32`, an `f64` or a `u32`"
)]
pub trait IntoDuration: Copy {
    /// Returns the span.
    ///
    /// # Errors
    ///
    /// Returns [`InvalidSeconds`] if a number is negative, infinite or not a number.
    fn try_into_duration(self) -> Result<Duration, InvalidSeconds>;

    /// Returns the span.
    ///
    /// # Panics
    ///
    /// Panics if a number is negative, infinite or not a number.
    #[must_use]
    #[track_caller]
    fn into_duration(self) -> Duration {
        or_panic(self.try_into_duration())
    }
}

/// The error for a number of seconds that is negative, infinite or not a number.
#[derive(Error, Clone, Copy, Debug, PartialEq)]
#[error("a number of seconds must be finite and not negative, got {0} s")]
pub struct InvalidSeconds(pub f64);

/// Returns the value, or panics with the error: for the methods that have a fallible form.
#[track_caller]
pub(crate) fn or_panic<T, E: Display>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

impl IntoDuration for Duration {
    #[inline]
    fn try_into_duration(self) -> Result<Duration, InvalidSeconds> {
        Ok(self)
    }
}

// One integer type, so that a literal such as `3` has a type.
impl IntoDuration for u32 {
    #[inline]
    fn try_into_duration(self) -> Result<Duration, InvalidSeconds> {
        Ok(Duration::from_secs(self.into()))
    }
}

impl IntoDuration for f64 {
    fn try_into_duration(self) -> Result<Duration, InvalidSeconds> {
        if !self.is_finite() || self < 0.0 {
            return Err(InvalidSeconds(self));
        }
        // The only error left is a number that is too large for a `Duration`.
        let duration = Duration::try_from_secs_f64(self).unwrap_or(Duration::MAX);
        let least = Duration::from_nanos((self > 0.0).into());
        Ok(duration.max(least))
    }
}

impl IntoDuration for f32 {
    fn try_into_duration(self) -> Result<Duration, InvalidSeconds> {
        shortest(self).try_into_duration()
    }
}

/// Returns the shortest decimal that prints `secs`.
fn shortest(secs: f32) -> f64 {
    let decimal = short_decimal(secs).or_else(|| shortest_decimal(secs));
    decimal.unwrap_or(f64::from(secs))
}

/// Returns the number that `secs` prints as, if that has at most six decimal places.
///
/// Printing and reading a number costs as much as spawning an entity.
fn short_decimal(secs: f32) -> Option<f64> {
    // From 2^24 on, a number may print with zeros in place of its last digits.
    if !(0.0..16_777_216.0).contains(&secs) {
        return None;
    }
    let mut scale = 1.0;
    for _ in 0..=6 {
        // Exact, because a mantissa of 24 bits times a million has 44 bits.
        let scaled = f64::from(secs) * scale;
        let nearest = (scaled + 0.5) as u64 as f64;
        let decimal = nearest / scale;
        if decimal as f32 == secs {
            // Printing decides between two numbers that are equally near.
            return (nearest - scaled != 0.5).then_some(decimal);
        }
        scale *= 10.0;
    }
    None
}

/// Returns the number that `secs` prints as.
fn shortest_decimal(secs: f32) -> Option<f64> {
    format!("{secs:e}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_f32_is_read_as_it_prints() {
        for secs in [
            0.0,
            0.1,
            0.3,
            1.0 / 3.0,
            16_777_217.0,
            123_456_789.0,
            f32::MAX,
            f32::MIN_POSITIVE,
            f32::from_bits(1),
            -1.5,
            f32::INFINITY,
        ] {
            let printed: f64 = std::format!("{secs}").parse().expect("a number");
            assert_eq!(shortest(secs), printed);
        }
        assert!(shortest(f32::NAN).is_nan());
    }

    #[test]
    fn a_short_decimal_is_the_shortest() {
        // Every exponent, with mantissas that are a prime apart.
        for bits in (0..f32::INFINITY.to_bits()).step_by(9973) {
            let secs = f32::from_bits(bits);
            if let Some(short) = short_decimal(secs) {
                assert_eq!(Some(short), shortest_decimal(secs), "{secs}");
            }
        }
        for tenths in 0..100_000 {
            let secs = tenths as f32 / 10.0;
            assert_eq!(short_decimal(secs), shortest_decimal(secs), "{secs}");
        }
        assert_eq!(
            short_decimal(2_097_152.0 + 0.25),
            None,
            "two are equally near"
        );
    }
}

//! Numbers of seconds, of several types.

use core::{fmt, str};

use smallvec::SmallVec;

/// A number of seconds: an `f32`, an `f64` or a `u32`.
///
/// Methods such as [`Timer::after_secs`](crate::Timer::after_secs) take any of them. You can't
/// implement this trait for other types.
///
/// An `f64` is rounded to the nearest nanosecond. An `f32` is read as the shortest decimal that
/// prints it, so `0.1_f32` is exactly a tenth of a second.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_due::{Cooldown, Timer};
///
/// const FIRE_RATE: f32 = 0.2;
///
/// assert_eq!(Cooldown::secs(FIRE_RATE).duration(), Duration::from_millis(200));
/// assert_eq!(Timer::after_secs(0.1).delay(), Duration::from_millis(100));
/// assert_eq!(Timer::after_secs(3).delay(), Duration::from_secs(3));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number of seconds",
    note = "use an `f32`, an `f64` or a `u32`, or call the method that takes a `Duration`"
)]
pub trait Seconds: ToSecs {}

impl Seconds for f32 {}
impl Seconds for f64 {}
// One integer type, so that a literal such as `3` has a type.
impl Seconds for u32 {}

/// The private part of [`Seconds`].
pub trait ToSecs: Copy {
    #[doc(hidden)]
    fn to_secs(self) -> f64;
}

impl ToSecs for f64 {
    fn to_secs(self) -> f64 {
        self
    }
}

impl ToSecs for u32 {
    fn to_secs(self) -> f64 {
        f64::from(self)
    }
}

impl ToSecs for f32 {
    fn to_secs(self) -> f64 {
        let decimal = short_decimal(self).or_else(|| shortest_decimal(self));
        decimal.unwrap_or(f64::from(self))
    }
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
    let mut text = Text::default();
    fmt::write(&mut text, format_args!("{secs:e}")).ok()?;
    str::from_utf8(&text.0).ok()?.parse().ok()
}

/// A short text on the stack.
#[derive(Default)]
struct Text(SmallVec<[u8; 16]>);

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
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
            assert_eq!(secs.to_secs(), printed);
        }
        assert!(f32::NAN.to_secs().is_nan());
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

    #[test]
    fn the_longest_number_fits_on_the_stack() {
        let mut text = Text::default();
        fmt::write(&mut text, format_args!("{:e}", -1.175_494_4e-38_f32)).expect("fits");
        assert!(!text.0.spilled(), "{:?}", str::from_utf8(&text.0));
    }
}

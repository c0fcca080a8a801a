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
        shortest_decimal(self).unwrap_or(f64::from(self))
    }
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
    fn the_longest_number_fits_on_the_stack() {
        let mut text = Text::default();
        fmt::write(&mut text, format_args!("{:e}", -1.175_494_4e-38_f32)).expect("fits");
        assert!(!text.0.spilled(), "{:?}", str::from_utf8(&text.0));
    }
}

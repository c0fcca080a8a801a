//! The errors that reach Bevy's error handler on the thread of a test.

use core::cell::RefCell;

use bevy_ecs::error::{BevyError, ErrorContext, Severity};

thread_local!(static REPORTS: RefCell<Vec<(Severity, String)>> = const { RefCell::new(Vec::new()) });

/// An error handler that records the errors.
pub fn record(error: BevyError, _: ErrorContext) {
    // The first line. The others are a backtrace.
    let text = error.to_string().lines().next().unwrap_or("").to_owned();
    REPORTS.with_borrow_mut(|reports| reports.push((error.severity(), text)));
}

/// Takes the recorded errors, in order.
pub fn reports() -> Vec<(Severity, String)> {
    REPORTS.take()
}

/// Takes the texts of the recorded errors, in order.
pub fn errors() -> Vec<String> {
    reports().into_iter().map(|(_, text)| text).collect()
}

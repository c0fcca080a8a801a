//! One bar for all searches, which run side by side. A pipe and a plain `cargo test` do not show it.

use core::fmt::Display;
use std::{env, sync::LazyLock};

use indicatif::{ProgressBar, ProgressDrawTarget};

static BAR: LazyLock<ProgressBar> = LazyLock::new(|| {
    let is_long = ["ORACLE_SECONDS", "ORACLE_SEEDS"].map(|name| env::var_os(name).is_some());
    let target = match is_long.contains(&true) {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    ProgressBar::with_draw_target(Some(0), target)
});

/// The part of the bar that belongs to one search.
pub(crate) struct Progress {
    done: u64,
    total: u64,
}

impl Progress {
    pub(crate) fn new(total: u64) -> Self {
        if BAR.is_finished() {
            BAR.set_length(0);
            BAR.reset();
        }
        BAR.inc_length(total);
        Self { done: 0, total }
    }

    /// Moves the bar. Returns `true` if nothing is left to do.
    pub(crate) fn reach(&mut self, done: u64) -> bool {
        let before = self.done;
        self.done = done.min(self.total);
        BAR.inc(self.done - before);
        if Some(BAR.position()) >= BAR.length() {
            clear();
        }
        self.done == self.total
    }
}

/// Removes the bar. The next search shows it again.
pub(crate) fn clear() {
    BAR.finish_and_clear();
}

/// Prints a line above the bar.
pub(crate) fn print(line: impl Display) {
    BAR.suspend(|| println!("{line}"));
}

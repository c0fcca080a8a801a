//! What a shard tells its parent a few times per second.

use core::{fmt, str::FromStr};

/// The state of a shard, and what has happened since its last report.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    pub players: u64,
    pub timers: u64,
    /// What has left and was not confirmed.
    pub on_the_way: u64,
    /// The open requests of the players.
    pub requests: u64,
    pub micros: u64,
    /// The part of `micros` in which a frame ran.
    pub busy_micros: u64,
    pub frames: u64,
    pub moves: u64,
    pub firings: u64,
}

impl Report {
    fn numbers(&mut self) -> [&mut u64; 9] {
        let Self {
            players,
            timers,
            on_the_way,
            requests,
            micros,
            busy_micros,
            frames,
            moves,
            firings,
        } = self;
        [
            players,
            timers,
            on_the_way,
            requests,
            micros,
            busy_micros,
            frames,
            moves,
            firings,
        ]
    }

    pub fn is_at_rest(&self) -> bool {
        self.on_the_way == 0 && self.requests == 0
    }

    pub fn per_second(&self, count: u64) -> u64 {
        count * 1_000_000 / self.micros.max(1)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = { *self }.numbers().map(|number| number.to_string());
        f.write_str(&numbers.join(" "))
    }
}

impl FromStr for Report {
    type Err = core::num::ParseIntError;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        let mut report = Self::default();
        for (number, word) in report.numbers().into_iter().zip(line.split(' ')) {
            *number = word.parse()?;
        }
        Ok(report)
    }
}

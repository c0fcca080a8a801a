//! The command line.

use core::{ops::RangeInclusive, time::Duration};

use lexopt::prelude::*;

#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) shards: u64,
    pub(crate) players: u64,
    pub(crate) time: Duration,
    /// The least number of moves. It may take longer than `time`.
    pub(crate) moves: u64,
    pub(crate) kill: bool,
    pub(crate) stop: bool,
    /// Over NATS instead of zenoh.
    pub(crate) nats: bool,
    /// A store on the NATS server decides who owns a player.
    pub(crate) store: bool,
    /// The NATS server is killed now and then.
    pub(crate) server: bool,
    /// The clocks of the shards differ.
    pub(crate) skew: bool,
    /// The disk of the first shard is full or hangs now and then.
    pub(crate) disk: bool,
    /// All shards get another build, one after the other, and the first one again.
    pub(crate) upgrade: bool,
}

impl Options {
    pub(crate) fn from_command_line() -> Result<Self, lexopt::Error> {
        let mut options = Self {
            shards: 3,
            players: 300,
            time: Duration::from_secs(60),
            ..Self::default()
        };
        let mut arguments = lexopt::Parser::from_env();
        while let Some(argument) = arguments.next()? {
            match argument {
                Long("shards") => options.shards = number(&mut arguments, 1..=9)?,
                Long("players") => options.players = number(&mut arguments, 2..=100_000)?,
                Long("seconds") => {
                    options.time = Duration::from_secs(number(&mut arguments, 1..=86_400)?);
                }
                Long("moves") => options.moves = number(&mut arguments, 0..=1_000_000_000)?,
                Long("kill") => options.kill = true,
                Long("stop") => options.stop = true,
                Long("nats") => options.nats = true,
                Long("store") => (options.nats, options.store) = (true, true),
                Long("server") => (options.nats, options.server) = (true, true),
                Long("skew") => options.skew = true,
                Long("disk") => options.disk = true,
                Long("upgrade") => options.upgrade = true,
                _ => return Err(argument.unexpected()),
            }
        }
        Ok(options)
    }
}

fn number(
    arguments: &mut lexopt::Parser,
    range: RangeInclusive<u64>,
) -> Result<u64, lexopt::Error> {
    let number = arguments.value()?.parse()?;
    match range.contains(&number) {
        true => Ok(number),
        false => Err(format!("{number} is not in {range:?}").into()),
    }
}

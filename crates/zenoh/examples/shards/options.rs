//! The command line.

use core::{ops::RangeInclusive, time::Duration};
use std::path::PathBuf;

use lexopt::prelude::*;

pub enum Options {
    Parent(Settings),
    /// The parent starts the example with these.
    Shard(ShardSettings),
}

/// What the user chooses.
#[derive(Clone, Debug)]
pub struct Settings {
    pub shards: u64,
    pub players: u64,
    pub time: Duration,
    pub kill: bool,
}

/// What the parent tells a shard.
#[derive(Clone, Debug, Default)]
pub struct ShardSettings {
    pub number: u64,
    pub shards: u64,
    pub players: u64,
    pub journal: PathBuf,
    /// The addresses at which the shards listen for each other.
    pub addresses: Vec<String>,
}

impl Options {
    pub fn from_command_line() -> Result<Self, lexopt::Error> {
        let mut settings = Settings {
            shards: 3,
            players: 500,
            time: Duration::from_secs(60),
            kill: false,
        };
        let mut shard = ShardSettings::default();
        let mut is_shard = false;
        let mut arguments = lexopt::Parser::from_env();
        while let Some(argument) = arguments.next()? {
            match argument {
                Long("shards") => settings.shards = number(&mut arguments, 1..=9)?,
                Long("players") => settings.players = number(&mut arguments, 2..=1_000_000)?,
                Long("seconds") => {
                    settings.time = Duration::from_secs(number(&mut arguments, 1..=86_400)?);
                }
                Long("kill") => settings.kill = true,
                Long("shard") => {
                    (shard.number, is_shard) = (number(&mut arguments, 0..=8)?, true);
                }
                Long("journal") => shard.journal = arguments.value()?.into(),
                Long("address") => shard.addresses.push(arguments.value()?.string()?),
                _ => return Err(argument.unexpected()),
            }
        }
        let Settings {
            shards, players, ..
        } = settings;
        Ok(match is_shard {
            true => Self::Shard(ShardSettings {
                shards,
                players,
                ..shard
            }),
            false => Self::Parent(settings),
        })
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

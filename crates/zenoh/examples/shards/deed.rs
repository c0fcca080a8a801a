//! What a client lets its player do: a line of text.

use core::{fmt, str::FromStr};

/// The others are players, shards and gold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Walks to the zone of a shard.
    Walk(u64),
    /// Sends a letter with gold.
    Pay { to: u64, gold: u64 },
    /// Sends a letter that poisons.
    Curse(u64),
    /// Asks the sage of a shard.
    Ask(u64),
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Walk(shard) => write!(f, "walk {shard}"),
            Self::Pay { to, gold } => write!(f, "pay {to} {gold}"),
            Self::Curse(player) => write!(f, "curse {player}"),
            Self::Ask(shard) => write!(f, "ask {shard}"),
        }
    }
}

impl FromStr for Deed {
    type Err = &'static str;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        let number = |word: &str| word.parse().map_err(|_| "not a number");
        match *line.split(' ').collect::<Vec<_>>() {
            ["walk", shard] => Ok(Self::Walk(number(shard)?)),
            ["pay", to, gold] => Ok(Self::Pay {
                to: number(to)?,
                gold: number(gold)?,
            }),
            ["curse", player] => Ok(Self::Curse(number(player)?)),
            ["ask", shard] => Ok(Self::Ask(number(shard)?)),
            _ => Err("not a deed"),
        }
    }
}

//! The keys of zones, sages and players.

use bevy_due::worlds::StableKey;

/// The group of all zones.
pub const ZONES: &str = "zones";

pub fn player(number: u64) -> StableKey {
    StableKey(1 + number)
}

/// Returns the number of a player, or `None` if the key is not one of a player.
pub fn player_number(key: StableKey) -> Option<u64> {
    (1..=1_000_000).contains(&key.0).then(|| key.0 - 1)
}

pub fn zone(shard: u64) -> StableKey {
    StableKey(2_000_000 + shard)
}

pub fn sage(shard: u64) -> StableKey {
    StableKey(3_000_000 + shard)
}

//! Reads the journals at the end.

use core::fmt;
use std::collections::BTreeMap;

use bevy_due::worlds::WorldGroups;
use bevy_due_ownership::Shard;
use bevy_ecs::prelude::*;

use crate::{
    client::Client,
    keys,
    ledger::{Firings, GOLD, Ledger, Sum},
    options::ShardSettings,
    shard::zone_app,
};

/// What the journals say.
#[derive(Debug, Default)]
pub struct Audit {
    moves: u64,
    letters: u64,
    requests: u64,
    lost: u64,
    doubled: u64,
    /// How often timers have fired, by themselves and by their handlers.
    fired: u64,
    handled: u64,
    /// What is wrong.
    pub faults: Vec<String>,
}

impl Audit {
    /// Reads the journals of all shards, which have ended.
    pub fn of(shards: &[ShardSettings], players: u64, clients: &[Client]) -> Result<Self> {
        let mut audit = Self::default();
        let mut owners: BTreeMap<u64, u64> = BTreeMap::new();
        let mut ledgers = BTreeMap::new();
        for shard in shards {
            audit.read_journal(shard, &mut owners)?;
            ledgers.extend(read_ledgers(shard)?);
        }
        for player in 0..players {
            let owners = owners.get(&player).copied().unwrap_or_default();
            audit.compare(format_args!("owners of player {player}"), 1, owners);
            let found = u64::from(ledgers.contains_key(&player));
            audit.compare(format_args!("ledgers of player {player}"), owners, found);
        }
        let gold = ledgers.values().map(|ledger| ledger.gold).sum();
        audit.compare("all gold", players * GOLD, gold);
        for (&player, ledger) in &ledgers {
            audit.check(player, ledger);
        }
        audit.check_letters(&ledgers);
        for client in clients {
            let known = ledgers.get(&client.player).map_or(0, |ledger| ledger.told);
            let what = format_args!("what client {} was told", client.player);
            audit.compare(what, client.told, known.min(client.told));
        }
        Ok(audit)
    }

    /// Adds what clients have read that can't be.
    pub fn doubt(&mut self, doubts: Vec<String>) {
        self.doubled += doubts.len() as u64;
        self.faults.extend(doubts);
    }

    /// Returns the line that sums everything up.
    pub fn line(&self, kills: u64) -> String {
        let Self {
            moves,
            letters,
            requests,
            lost,
            doubled,
            fired,
            handled,
            ..
        } = self;
        format!(
            "{moves} moves, {letters} letters, {requests} requests, {kills} kills, {lost} lost, \
             {doubled} doubled, {handled} of {fired} timers fired exactly once"
        )
    }

    /// Notes something of which there should be as much as `expected`.
    fn compare(&mut self, what: impl fmt::Display, expected: u64, found: u64) {
        self.lost += expected.saturating_sub(found);
        self.doubled += found.saturating_sub(expected);
        if found != expected {
            self.faults
                .push(format!("{what}: {found} instead of {expected}"));
        }
    }

    /// Notes which players a journal has, and what is still on its way.
    fn read_journal(
        &mut self,
        shard: &ShardSettings,
        owners: &mut BTreeMap<u64, u64>,
    ) -> Result<()> {
        let (keys, items) = Shard::open(&shard.journal)?.unopened();
        for player in keys.into_iter().filter_map(keys::player_number) {
            *owners.entry(player).or_default() += 1;
        }
        // What has not arrived is lost.
        if items > 0 {
            self.lost += items as u64;
            let shard = shard.number + 1;
            let fault = format!("still on the way from shard {shard}: {items}");
            self.faults.push(fault);
        }
        Ok(())
    }

    fn check(&mut self, player: u64, ledger: &Ledger) {
        self.moves += ledger.moves;
        self.requests += ledger.asked;
        for (name, timer) in [("hunger", &ledger.hunger), ("poison", &ledger.poison)] {
            let &Firings {
                handled, counted, ..
            } = timer;
            self.fired += counted;
            self.handled += handled;
            let what = format_args!("firings of the {name} of player {player}");
            self.compare(what, counted, handled);
        }
        let what = format_args!("complete requests of player {player}");
        self.compare(what, ledger.asked, ledger.answered);
        let what = format_args!("letters to player {player} out of order");
        self.compare(what, 0, ledger.out_of_order);
    }

    /// Compares the letters that players have sent with those that others have received.
    fn check_letters(&mut self, ledgers: &BTreeMap<u64, Ledger>) {
        let mut mail: BTreeMap<(u64, u64), [Sum; 2]> = BTreeMap::new();
        for (&player, ledger) in ledgers {
            for (&partner, letters) in &ledger.letters {
                mail.entry((player, partner)).or_default()[0] = letters.sent;
                mail.entry((partner, player)).or_default()[1] = letters.received;
            }
        }
        for ((from, to), [sent, received]) in mail {
            self.letters += sent.letters;
            let what = format_args!("letters from player {from} to {to}");
            self.compare(what, sent.letters, received.letters);
            let what = format_args!("gold from player {from} to {to}");
            self.compare(what, sent.gold, received.gold);
        }
    }
}

/// Lets the journal of a shard become a world again, and takes the ledgers from it.
fn read_ledgers(settings: &ShardSettings) -> Result<Vec<(u64, Ledger)>> {
    let shard = Shard::open(&settings.journal)?;
    let mut app = zone_app(&shard, settings);
    let groups = WorldGroups::new();
    groups.add(keys::ZONES, &mut app);
    app.update();
    let world = app.world_mut();
    let mut players =
        world.query_filtered::<(Entity, &bevy_due::worlds::StableKey), With<Ledger>>();
    let players: Vec<_> = players
        .iter(world)
        .filter_map(|(entity, &key)| Some((entity, keys::player_number(key)?)))
        .collect();
    let ledgers = players.into_iter().filter_map(|(entity, player)| {
        let ledger = world.entity_mut(entity).take::<Ledger>()?;
        Some((player, ledger))
    });
    Ok(ledgers.collect())
}

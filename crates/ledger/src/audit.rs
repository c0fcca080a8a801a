//! Compares what there is in the end.

use core::{fmt, time::Duration};
use std::collections::{BTreeMap, BTreeSet};

use crate::{
    books::{GOLD, hunger},
    shard::Found,
};

/// What the clients of players have seen: lines such as `moved 7 3`, the third move of player 7.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    events: BTreeSet<(String, u64, u64)>,
    pub(crate) moves: u64,
    pub(crate) firings: u64,
    pub(crate) faults: Vec<String>,
}

impl Seen {
    pub(crate) fn take(&mut self, line: &str) {
        let mut words = line.split(' ');
        let kind = words.next().unwrap_or_default().to_owned();
        match kind == "moved" {
            true => self.moves += 1,
            false => self.firings += 1,
        }
        let mut number = || words.next()?.parse().ok();
        let event = number().zip(number());
        if !event.is_some_and(|(player, count)| self.events.insert((kind, player, count))) {
            self.faults.push(format!("players saw twice: {line}"));
        }
    }

    /// Checks that all of it is stored.
    pub(crate) fn check(&mut self, found: &[(u64, Found)]) {
        let found = found.iter().map(|(_, found)| (found.player, &found.ledger));
        let found: BTreeMap<_, _> = found.collect();
        for (kind, player, count) in &self.events {
            let stored = found.get(player).map_or(0, |ledger| match &**kind {
                "moved" => ledger.moves,
                "hungry" => ledger.hungry,
                _ => ledger.hurt,
            });
            if *count > stored {
                let fault = format!("players saw {kind} {player} {count}, and {stored} are stored");
                self.faults.push(fault);
            }
        }
    }
}

/// What the books say.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    sums: [u64; SUMS.len()],
    lost: u64,
    doubled: u64,
    pub(crate) faults: Vec<String>,
}

const SUMS: [&str; 6] = [
    "moves", "refused", "letters", "returned", "requests", "firings",
];

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (sum, what) in self.sums.iter().zip(SUMS) {
            write!(f, "{sum} {what}, ")?;
        }
        write!(f, "{} lost, {} doubled", self.lost, self.doubled)
    }
}

impl Audit {
    /// Checks the players that were found, with the numbers of their shards.
    pub(crate) fn of(found: &[(u64, Found)], players: u64, time: Duration) -> Self {
        let mut audit = Self::default();
        let mut by_player = BTreeMap::new();
        let mut shards: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (shard, found) in found {
            by_player.insert(found.player, found);
            shards.entry(found.player).or_default().push(*shard);
        }
        for player in 1..=players {
            let shards = shards.get(&player).map_or(&[][..], Vec::as_slice);
            let what = format_args!("shards with player {player} {shards:?}");
            audit.compare(what, 1, shards.len() as u64);
        }
        let gold = by_player.values().map(|it| it.ledger.gold).sum();
        audit.compare("all gold", players * GOLD, gold);
        for found in by_player.values() {
            audit.check(found, time);
            audit.check_letters(found, &by_player);
        }
        audit
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

    fn add(&mut self, sums: [u64; SUMS.len()]) {
        self.sums
            .iter_mut()
            .zip(sums)
            .for_each(|(sum, it)| *sum += it);
    }

    fn check(&mut self, found: &Found, time: Duration) {
        let Found { player, ledger, .. } = found;
        let firings = ledger.hungry + ledger.hurt;
        self.add([
            ledger.moves,
            ledger.failed_moves,
            0,
            0,
            ledger.asked,
            firings,
        ]);
        let violations = ledger.violations.iter();
        let violations = violations.map(|what| format!("player {player}: {what}"));
        self.faults.extend(violations);
        for (what, expected, found) in [
            ("complete requests", ledger.asked, ledger.answered),
            ("wounds", ledger.hurt, found.wounds),
            ("firings of hunger", found.hungry, ledger.hungry),
            ("firings of poison that are left", 0, ledger.poison),
        ] {
            self.compare(format_args!("{what} of player {player}"), expected, found);
        }
        let most = (time.as_millis() / hunger(*player).as_millis()) as u64 + 2;
        if ledger.hungry > most {
            let times = ledger.hungry;
            let fault = format!("player {player} was hungry {times} times in {time:?}, not {most}");
            self.faults.push(fault);
        }
    }

    /// Compares the letters that a player has sent with those that others have received.
    fn check_letters(&mut self, sender: &Found, players: &BTreeMap<u64, &Found>) {
        for (to, sent) in &sender.ledger.partners {
            let recipient = players.get(to);
            let received = recipient.and_then(|it| it.ledger.partners.get(&sender.player));
            let received = received.cloned().unwrap_or_default();
            self.add([0, 0, sent.sent, sent.returned, 0, 0]);
            let way = format!("from player {} to {to}", sender.player);
            let arrived = received.received + sent.returned;
            self.compare(format_args!("letters {way}"), sent.sent, arrived);
            let [sent, received] = [sent.gold_sent, received.gold_received];
            self.compare(format_args!("gold {way}"), sent, received);
        }
    }
}

//! Compares what there is in the end.

use core::{fmt, time::Duration};
use std::collections::{BTreeMap, BTreeSet};

use crate::{
    books::{GOLD, hunger},
    shard::Found,
};

/// What the processes have said, as the clients of players would see it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The kinds of events, the keys of players, and how often it had happened to them.
    events: BTreeSet<(&'static str, u64, u64)>,
    pub(crate) moves: u64,
    pub(crate) firings: u64,
}

impl Seen {
    /// Takes a line, which players see once.
    pub(crate) fn take(&mut self, kind: &str, numbers: &str, faults: &mut Vec<String>) {
        let (kind, total) = match kind {
            "moved" => ("moved", &mut self.moves),
            "hungry" => ("hungry", &mut self.firings),
            "hurt" => ("hurt", &mut self.firings),
            _ => return faults.push(format!("a shard says {kind} {numbers}")),
        };
        let numbers = numbers.split_once(' ').and_then(|(player, count)| {
            let event: (u64, u64) = (player.parse().ok()?, count.parse().ok()?);
            Some(event)
        });
        *total += 1;
        match numbers {
            Some((player, count)) if self.events.insert((kind, player, count)) => {}
            _ => faults.push(format!("players saw twice: {kind} {numbers:?}")),
        }
    }

    /// Returns what players have seen, and what is not stored.
    pub(crate) fn not_among(&self, found: &[(u64, Found)]) -> Vec<String> {
        let found = found.iter().map(|(_, found)| (found.player, found));
        let found: BTreeMap<_, _> = found.collect();
        let is_lost = |&&(kind, player, count): &&(&str, u64, u64)| {
            let stored = found.get(&player).map_or(0, |it| match kind {
                "moved" => it.ledger.moves,
                "hungry" => it.ledger.hungry,
                _ => it.ledger.hurt,
            });
            count > stored
        };
        let lost = self.events.iter().filter(is_lost);
        let line = |(kind, player, count)| {
            format!("players saw {kind} {player} {count}, which is not stored")
        };
        lost.copied().map(line).collect()
    }
}

/// What the books say.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    moves: u64,
    failed_moves: u64,
    letters: u64,
    returned: u64,
    requests: u64,
    firings: u64,
    lost: u64,
    doubled: u64,
    pub(crate) faults: Vec<String>,
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            moves,
            failed_moves,
            letters,
            returned,
            requests,
            firings,
            lost,
            doubled,
            ..
        } = self;
        write!(
            f,
            "{moves} moves, {failed_moves} refused, {letters} letters, {returned} returned, {requests} requests, \
             {firings} firings, {lost} lost, {doubled} doubled"
        )
    }
}

impl Audit {
    /// Checks the players that were found in a place, with the shards where they were.
    pub(crate) fn of(found: &[(u64, Found)], players: u64, time: Duration) -> Self {
        let mut audit = Self::default();
        let mut by_player: BTreeMap<u64, &Found> = BTreeMap::new();
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
        by_player.values().for_each(|it| audit.check(it, time));
        audit.check_letters(&by_player);
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

    fn check(&mut self, found: &Found, time: Duration) {
        let Found { player, ledger, .. } = found;
        self.moves += ledger.moves;
        self.failed_moves += ledger.failed_moves;
        self.requests += ledger.asked;
        self.firings += ledger.hungry + ledger.hurt;
        let violations = ledger.violations.iter();
        let violations = violations.map(|what| format!("player {player}: {what}"));
        self.faults.extend(violations);
        let pairs = [
            ("complete requests", ledger.asked, ledger.answered),
            ("wounds", ledger.hurt, found.wounds),
            (
                "firings of hunger",
                found.hungry.unwrap_or(0),
                ledger.hungry,
            ),
            ("firings of poison that are left", 0, ledger.poison),
        ];
        for (what, expected, found) in pairs {
            self.compare(format_args!("{what} of player {player}"), expected, found);
        }
        let most = time.as_millis() / hunger(*player).as_millis() + 2;
        if u128::from(ledger.hungry) > most {
            self.faults.push(format!(
                "player {player} was hungry {} times, and {time:?} suffice for {most}",
                ledger.hungry
            ));
        }
    }

    /// Compares the letters that players have sent with those that others have received.
    fn check_letters(&mut self, players: &BTreeMap<u64, &Found>) {
        for (from, sender) in players {
            for (to, sent) in &sender.ledger.partners {
                let recipient = players.get(to);
                let received = recipient.and_then(|it| it.ledger.partners.get(from));
                let received = received.cloned().unwrap_or_default();
                let letters = received.received + sent.returned;
                self.letters += sent.sent;
                self.returned += sent.returned;
                let way = format_args!("from player {from} to {to}").to_string();
                self.compare(format_args!("letters {way}"), sent.sent, letters);
                let [expected, found] = [sent.gold_sent, received.gold_received];
                self.compare(format_args!("gold {way}"), expected, found);
            }
        }
    }
}

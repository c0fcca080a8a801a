//! What an entity has, and what has happened to it.

use std::collections::BTreeMap;

use bevy_due::worlds::StableKey;
use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

pub(crate) const ENTITIES: u64 = 300;
pub(crate) const ZONES: u64 = 3;
/// What each entity has at the start.
pub(crate) const GOLD: u64 = 1000;
/// The distances to the keys of the entities to which an entity writes.
const PARTNERS: [u64; 8] = [1, 7, 31, 60, 99, 150, 211, 299];

/// The books of an entity.
#[derive(Component, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ledger {
    pub(crate) gold: u64,
    /// How often the periodic timer has fired, and how often it will.
    pub(crate) fired: u64,
    pub(crate) ticks: u64,
    /// The zone in which it was last.
    pub(crate) zone: u64,
    pub(crate) moves: u64,
    pub(crate) failed_moves: u64,
    /// By the keys of the others.
    pub(crate) accounts: BTreeMap<u64, Account>,
    pub(crate) violations: Vec<String>,
    /// Decides what it does next.
    pub(crate) seed: u64,
}

/// What an entity has sent to another, and heard from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Account {
    /// Gold that was sent and has not come back.
    pub(crate) sent: u64,
    pub(crate) heard: u64,
    /// The number of the next letter.
    pub(crate) next: u64,
    /// The number of the letter that should come next.
    pub(crate) expected: u64,
    /// The letters that have come.
    pub(crate) letters: u64,
    /// The numbers in between that have not come.
    pub(crate) missing: u64,
    /// The letters that have come back.
    pub(crate) returned: u64,
}

/// A letter with gold.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Letter {
    pub(crate) from: u64,
    pub(crate) number: u64,
    pub(crate) gold: u64,
}

/// What an entity does at the end of a visit.
pub(crate) struct Plan {
    pub(crate) partner: StableKey,
    pub(crate) letter: Letter,
    /// The zone to which it goes. It may be the one where it is.
    pub(crate) zone: StableKey,
}

pub(crate) fn zone(nth: u64) -> StableKey {
    StableKey(1001 + nth)
}

impl Ledger {
    pub(crate) fn new(key: u64, ticks: u64) -> Self {
        Self {
            gold: GOLD,
            ticks,
            seed: key,
            ..Self::default()
        }
    }

    pub(crate) fn random(&mut self, end: u64) -> u64 {
        let mut random = fastrand::Rng::with_seed(self.seed);
        let number = random.u64(..end);
        self.seed = random.get_seed();
        number
    }

    /// Decides what to do next, and takes the gold for a letter.
    pub(crate) fn plan(&mut self, me: StableKey) -> Plan {
        let distance = PARTNERS[self.random(PARTNERS.len() as u64) as usize];
        let partner = 1 + (me.0 - 1 + distance) % ENTITIES;
        let gold = (1 + self.random(10)).min(self.gold);
        self.gold -= gold;
        let account = self.accounts.entry(partner).or_default();
        account.sent += gold;
        let number = account.next;
        account.next += 1;
        Plan {
            partner: StableKey(partner),
            letter: Letter {
                from: me.0,
                number,
                gold,
            },
            zone: zone(self.random(ZONES)),
        }
    }

    /// Takes the gold of a letter.
    pub(crate) fn hear(&mut self, letter: Letter) {
        let Letter { from, number, gold } = letter;
        let account = self.accounts.entry(from).or_default();
        let expected = account.expected;
        account.expected = expected.max(number + 1);
        account.missing += number.saturating_sub(expected);
        account.letters += 1;
        account.heard += gold;
        self.gold += gold;
        if number < expected {
            self.violations.push(format!(
                "letter {number} of {from} came, and {expected} was the next"
            ));
        }
    }

    /// Takes back the gold of a letter that was not delivered.
    pub(crate) fn take_back(&mut self, to: StableKey, letter: Letter) {
        let account = self.accounts.entry(to.0).or_default();
        account.sent -= letter.gold;
        account.returned += 1;
        self.gold += letter.gold;
    }

    /// Counts a firing of the periodic timer.
    pub(crate) fn tick(&mut self, count: u64) {
        self.fired += 1;
        if self.fired != count {
            let fired = self.fired;
            self.violations
                .push(format!("firing {count} was the {fired}th"));
        }
    }
}

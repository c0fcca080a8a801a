//! What a player writes down about everything that must happen exactly once.

use core::time::Duration;
use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

/// What each player has at the start.
pub(crate) const GOLD: u64 = 1000;
/// How often a dose of poison hurts.
pub(crate) const DOSE: u64 = 5;

#[derive(Component, Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ledger {
    pub(crate) gold: u64,
    /// The number of the shard where the player was last.
    pub(crate) shard: u64,
    pub(crate) moves: u64,
    pub(crate) failed_moves: u64,
    /// How often the player was hungry, and how often poison has hurt.
    pub(crate) hungry: u64,
    pub(crate) hurt: u64,
    /// How often the last dose of poison is yet to hurt.
    pub(crate) poison: u64,
    pub(crate) asked: u64,
    pub(crate) answered: u64,
    pub(crate) partners: BTreeMap<u64, Partner>,
    /// What must not happen.
    pub(crate) violations: Vec<String>,
    seed: u64,
}

/// What a player has sent to another one, and received from it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Partner {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) gold_sent: u64,
    pub(crate) gold_received: u64,
    /// The letters that came back. They count as sent.
    pub(crate) returned: u64,
    /// One more than the number of the last letter.
    expected: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Letter {
    pub(crate) from: u64,
    /// Rises with each letter to the same player.
    pub(crate) number: u64,
    pub(crate) gold: u64,
    pub(crate) is_poisoned: bool,
}

/// How often poison has hurt a player. The second build knows it as [`Scars`].
#[derive(Component, Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Wounds(pub(crate) u64);

#[derive(Component, Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Scars {
    pub(crate) old: u64,
    pub(crate) new: u64,
}

/// Returns the time between two firings of the hunger of a player.
pub(crate) fn hunger(player: u64) -> Duration {
    Duration::from_millis(500 + player * 7919 % 1000)
}

impl Ledger {
    pub(crate) fn new(player: u64, shard: u64) -> Self {
        Self {
            gold: GOLD,
            shard,
            seed: player,
            ..Self::default()
        }
    }

    pub(crate) fn random(&mut self, end: u64) -> u64 {
        let mut random = fastrand::Rng::with_seed(self.seed);
        let number = random.u64(..end);
        self.seed = random.get_seed();
        number
    }

    /// Takes the gold for a letter.
    pub(crate) fn send(&mut self, from: u64, to: u64, is_poisoned: bool) -> Letter {
        let gold = (1 + self.random(10)).min(self.gold);
        self.gold -= gold;
        let partner = self.partners.entry(to).or_default();
        let number = partner.sent;
        partner.sent += 1;
        partner.gold_sent += gold;
        Letter {
            from,
            number,
            gold,
            is_poisoned,
        }
    }

    pub(crate) fn receive(&mut self, letter: Letter) {
        self.gold += letter.gold;
        if letter.is_poisoned {
            self.poison = DOSE;
        }
        let partner = self.partners.entry(letter.from).or_default();
        partner.received += 1;
        partner.gold_received += letter.gold;
        let expected = partner.expected;
        partner.expected = expected.max(letter.number + 1);
        if letter.number < expected {
            self.violations
                .push(format!("{letter:?} came, and {expected} was the next"));
        }
    }

    /// Takes back the gold of a letter that was not delivered.
    pub(crate) fn take_back(&mut self, to: u64, letter: Letter) {
        self.gold += letter.gold;
        let partner = self.partners.entry(to).or_default();
        partner.gold_sent -= letter.gold;
        partner.returned += 1;
    }

    /// Notes a firing of the timer of hunger, which is its `count`th.
    pub(crate) fn starve(&mut self, count: u64) {
        self.hungry += 1;
        if self.hungry != count {
            let what = format!("hunger {count} was the {}th", self.hungry);
            self.violations.push(what);
        }
    }

    /// Notes a firing of the timer of the last dose.
    pub(crate) fn suffer(&mut self, count: u64) {
        self.hurt += 1;
        if self.poison + count != DOSE + 1 {
            let what = format!(
                "a dose hurt for the {count}th time, and {} were left",
                self.poison
            );
            self.violations.push(what);
        }
        self.poison = DOSE.saturating_sub(count);
    }

    /// Returns how many firings and answers are yet to come.
    pub(crate) fn open(&self) -> u64 {
        self.poison + self.asked.saturating_sub(self.answered)
    }
}

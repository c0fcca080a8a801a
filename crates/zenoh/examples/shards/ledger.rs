//! What a player writes down about everything that must happen exactly once.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

/// The gold with which each player begins.
pub const GOLD: u64 = 100;

/// The ledger of a player. It is stored and moves with the player.
#[derive(Component, Debug, Default, Serialize, Deserialize)]
pub struct Ledger {
    pub gold: u64,
    /// The key of the zone in which the player is.
    pub zone: u64,
    pub moves: u64,
    pub hunger: Firings,
    pub poison: Firings,
    pub asked: u64,
    /// The requests that are complete.
    pub answered: u64,
    /// By partner.
    pub letters: BTreeMap<u64, Letters>,
    /// Letters that came twice, or too late.
    pub out_of_order: u64,
    /// The number of lines that a client was told.
    pub told: u64,
}

/// How often a timer has fired: by its handler, and by the timer itself.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Firings {
    pub handled: u64,
    pub counted: u64,
    /// What the timers had counted before the current one.
    before: u64,
}

/// The letters that two players have sent each other.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Letters {
    pub sent: Sum,
    pub received: Sum,
    last_sent: u64,
    last_received: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    pub letters: u64,
    pub gold: u64,
}

/// The payload of a letter.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Letter {
    pub from: u64,
    /// Rises with each letter to the same player.
    pub number: u64,
    pub gold: u64,
}

impl Ledger {
    /// Takes the gold for a letter, and returns the letter.
    pub fn send(&mut self, from: u64, to: u64, gold: u64) -> Letter {
        let gold = gold.min(self.gold);
        self.gold -= gold;
        let letters = self.letters.entry(to).or_default();
        letters.last_sent += 1;
        letters.sent.letters += 1;
        letters.sent.gold += gold;
        let number = letters.last_sent;
        Letter { from, number, gold }
    }

    pub fn receive(&mut self, letter: Letter) {
        self.gold += letter.gold;
        let letters = self.letters.entry(letter.from).or_default();
        self.out_of_order += u64::from(letter.number <= letters.last_received);
        letters.last_received = letter.number;
        letters.received.letters += 1;
        letters.received.gold += letter.gold;
    }

    /// Takes back a letter to a player who was not found.
    pub fn take_back(&mut self, to: u64, letter: Letter) {
        self.gold += letter.gold;
        let letters = self.letters.entry(to).or_default();
        letters.sent.letters -= 1;
        letters.sent.gold -= letter.gold;
    }

    pub fn open_requests(&self) -> u64 {
        self.asked.saturating_sub(self.answered)
    }
}

impl Firings {
    /// Begins with another timer, which counts from one.
    pub fn rearm(&mut self) {
        self.before = self.counted;
    }

    /// Notes a firing with the count of the timer.
    pub fn note(&mut self, count: u64) {
        self.handled += 1;
        self.counted = self.before + count;
    }
}

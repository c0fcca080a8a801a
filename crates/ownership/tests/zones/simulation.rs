//! Random moves, letters and crashes: nothing is lost, doubled or out of order.

use core::{ops::Range, time::Duration};
use std::{collections::BTreeSet, env};

use bevy_due::{Timer, worlds::StableKey};
use bevy_due_ownership::Shard;

use crate::{
    cluster::{Cluster, Failures, Ledger, give},
    random::Random,
    store::MemoryStore,
};

const ZONES: u64 = 3;
const ENTITIES: u64 = 12;
const GOLD: u64 = 20;
const FIRINGS: u32 = 40;

struct Simulation {
    cluster: Cluster,
    random: Random,
    crashes: u32,
    moves: u32,
    letters: u32,
}

impl Simulation {
    fn new(seed: u64, store: Option<MemoryStore>) -> Self {
        let mut cluster = Cluster::with_store(ZONES, store);
        for key in 1..=ENTITIES {
            let every = Duration::from_millis(30 + 7 * key);
            let timer = Timer::every(every).times(FIRINGS);
            let nth = (key % ZONES) as usize;
            let entity = cluster.spawn(nth, StableKey(key), timer);
            cluster.world(nth).get_mut::<Ledger>(entity).unwrap().gold = GOLD;
        }
        cluster.update();
        Self {
            cluster,
            random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            crashes: 0,
            moves: 0,
            letters: 0,
        }
    }

    fn key(&mut self) -> StableKey {
        StableKey(1 + self.random.below(ENTITIES))
    }

    /// Lets an entity go, write or crash.
    fn act(&mut self) {
        let (from, to) = (self.key(), self.key());
        let Some(nth) = self.cluster.find(from) else {
            return;
        };
        match self.random.below(10) {
            0..4 => {
                let to = self.random.below(ZONES);
                self.moves += u32::from(to != nth as u64);
                self.cluster.send_to(from, to);
            }
            4..9 => {
                self.letters += 1;
                let entity = self.cluster.entity(nth, from);
                give(self.cluster.world(nth), entity, from, to);
            }
            _ => {}
        }
    }

    fn maybe_crash(&mut self) {
        if self.random.below(25) == 0 {
            let nth = self.random.below(ZONES) as usize;
            let operations = self.random.below(12) as usize;
            self.cluster.nodes[nth].disk.crash_after(operations as u64);
        }
    }

    /// Starts the processes again whose disk has failed.
    fn restart(&mut self) {
        for nth in 0..ZONES as usize {
            let has_failed = self.cluster.has_failed(nth);
            if has_failed && self.random.below(4) == 0 {
                self.crashes += 1;
                let seed = self.random.next();
                self.cluster.lose_power(nth, seed);
                self.cluster.start(nth);
            }
        }
    }

    /// Checks what the disks have.
    fn check_disks(&self) {
        let mut seen = BTreeSet::new();
        for node in &self.cluster.nodes {
            let disk = node.disk.after_power_loss(0);
            let shard = Shard::open_simulated(disk).unwrap();
            for key in shard.unopened().0 {
                assert!(seen.insert(key), "{key:?} is on two disks");
            }
        }
    }

    fn play(mut self, seed: u64) -> Self {
        for step in 0..250 {
            for _ in 0..self.random.below(3) {
                self.act();
            }
            self.maybe_crash();
            self.cluster.update_worlds();
            if self.random.below(3) > 0 {
                self.cluster.wait();
            }
            self.restart();
            if step % 10 == 0 {
                self.check_disks();
            }
        }
        self.finish(seed)
    }

    fn finish(mut self, seed: u64) -> Self {
        for nth in 0..ZONES as usize {
            self.cluster.wait();
            let seed = self.random.next();
            self.cluster.lose_power(nth, seed);
            self.cluster.start(nth);
        }
        let firings = u64::from(FIRINGS);
        let has_settled = |cluster: &mut Cluster| {
            let ledgers = cluster.is_at_rest().then(|| cluster.ledgers(ENTITIES));
            let ledgers = ledgers.flatten();
            ledgers.is_some_and(|ledgers| has_all_mail(&ledgers, firings))
        };
        self.cluster.run_until("rest", has_settled);
        // What is doubled has time to come, and a late answer of the store can still let an entity leave.
        self.cluster.update();
        self.cluster.run_until("rest", has_settled);
        self.check_disks();
        for nth in 0..ZONES as usize {
            let failures = self.cluster.world(nth).resource::<Failures>();
            assert!(failures.mail.is_empty(), "seed {seed}: {:?}", failures.mail);
        }
        let ledgers = self.cluster.ledgers(ENTITIES).unwrap();
        for (ledger, from) in ledgers.iter().zip(1..) {
            assert!(
                ledger.wrong.is_empty(),
                "seed {seed}, entity {from}: {:?}",
                ledger.wrong
            );
            assert_eq!(ledger.fired, firings, "seed {seed}, entity {from}");
            for (to, sent) in &ledger.sent {
                let heard = ledgers[*to as usize - 1].heard.get(&from);
                assert_eq!(heard, Some(sent), "seed {seed}, from {from} to {to}");
            }
        }
        let gold: u64 = ledgers.iter().map(|ledger| ledger.gold).sum();
        assert_eq!(gold, ENTITIES * GOLD, "seed {seed}");
        self
    }
}

/// Returns `true` if all entities have fired this often, and all letters have arrived.
fn has_all_mail(ledgers: &[Ledger], firings: u64) -> bool {
    let arrived = |from: u64, to: u64| ledgers[to as usize - 1].heard.get(&from).copied();
    ledgers.iter().zip(1..).all(|(ledger, from)| {
        ledger.fired >= firings
            && ledger
                .sent
                .iter()
                .all(|(&to, &sent)| arrived(from, to) >= Some(sent))
    })
}

fn seeds() -> Range<u64> {
    let count = env::var("SEEDS").ok().and_then(|count| count.parse().ok());
    0..count.unwrap_or(12)
}

#[test]
fn crashes_lose_nothing_and_double_nothing() {
    play_all(|_| None);
}

#[test]
fn crashes_lose_nothing_and_double_nothing_with_a_store() {
    play_all(|seed| Some(MemoryStore::new(seed)));
}

fn play_all(store: impl Fn(u64) -> Option<MemoryStore>) {
    let (mut crashes, mut moves, mut letters) = (0, 0, 0);
    for seed in seeds() {
        let played = Simulation::new(seed, store(seed)).play(seed);
        crashes += played.crashes;
        moves += played.moves;
        letters += played.letters;
    }
    println!("{moves} moves, {letters} letters, {crashes} crashes");
    assert!(u64::from(crashes) > 2 * seeds().end, "{crashes} crashes");
}

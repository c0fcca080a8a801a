//! Counts what there is in the end.

use core::sync::atomic::Ordering;
use std::collections::BTreeMap;

use bevy_due_ownership::Shard;

use crate::{
    ledger::{ENTITIES, GOLD, Ledger},
    process::Home,
    seen::Seen,
};

/// By the keys of the entities: the shards that have them, with their ledgers.
type Ledgers = BTreeMap<u64, Vec<(u64, Ledger)>>;

/// Compares the journals of all shards, the ledgers that come back from them, and what players have seen.
pub(crate) fn check(homes: &[Home], seen: &Seen, moves: u64, ticks: u64) {
    let mut faults = Vec::new();
    // What the shards bring back must be what the journals have, so these are read first and last.
    let before = read_journals(homes, &mut faults);
    let ledgers = read_ledgers(homes);
    let starts = homes.iter().map(|home| home.starts.load(Ordering::Relaxed));
    println!("{} processes", starts.sum::<u64>());
    let after = read_journals(homes, &mut faults);
    if before != after {
        faults.push("a start has changed who is where".into());
    }
    check_places(&after, &ledgers, &mut faults);
    let ledgers: BTreeMap<_, _> = (ledgers.into_iter())
        .filter_map(|(key, mut found)| Some((key, found.pop()?.1)))
        .collect();
    check_each(&ledgers, ticks, &mut faults);
    check_mail(&ledgers, &mut faults);
    check_seen(&ledgers, seen, &mut faults);
    let made: u64 = ledgers.values().map(|it| it.moves).sum();
    let failed: u64 = ledgers.values().map(|it| it.failed_moves).sum();
    println!("{made} moves, and {failed} that failed because a zone did not answer");
    if made < moves {
        faults.push(format!("{made} moves, and {moves} were planned"));
    }
    for fault in faults.iter().take(40) {
        println!("FAULT: {fault}");
    }
    faults.append(&mut seen.events().faults);
    assert!(faults.is_empty(), "{} faults", faults.len());
}

/// Returns the shards in whose journals each entity is.
fn read_journals(homes: &[Home], faults: &mut Vec<String>) -> BTreeMap<u64, Vec<u64>> {
    let mut places: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for home in homes {
        let shard = Shard::open(&home.file).expect("it is whole");
        let (keys, items) = shard.unopened();
        for key in keys {
            places.entry(key.0).or_default().push(home.nth);
        }
        if items > 0 {
            let nth = home.nth;
            faults.push(format!(
                "{items} items are left in the journal of shard {nth}"
            ));
        }
    }
    places
}

/// Starts all shards again, and returns the ledgers that come back from the journals.
fn read_ledgers(homes: &[Home]) -> Ledgers {
    let mut ledgers = Ledgers::new();
    let processes: Vec<_> = homes.iter().map(Home::start_at_rest).collect();
    for (mut process, home) in processes.into_iter().zip(homes) {
        process.tell("ledgers");
        loop {
            let line = process.reply();
            let words: Vec<_> = line.split(' ').collect();
            let ["ledger", key, ledger] = *words else {
                assert_eq!(line, "all ledgers");
                break;
            };
            let bytes = hex::decode(ledger).expect("bytes");
            let ledger = postcard::from_bytes(&bytes).expect("a ledger");
            let found = ledgers.entry(key.parse().expect("a number")).or_default();
            found.push((home.nth, ledger));
        }
        assert!(process.end().success());
    }
    ledgers
}

/// Each entity is in exactly one journal, and comes back there.
fn check_places(places: &BTreeMap<u64, Vec<u64>>, ledgers: &Ledgers, faults: &mut Vec<String>) {
    let lost = (1..=ENTITIES).filter(|key| !places.contains_key(key));
    faults.extend(lost.map(|key| format!("entity {key} is lost")));
    for (key, shards) in places {
        if shards.len() != 1 || !(1..=ENTITIES).contains(key) {
            faults.push(format!("entity {key} is in the journals of {shards:?}"));
        }
        let found = ledgers.get(key).into_iter().flatten();
        if !found.map(|(shard, _)| shard).eq(shards) {
            faults.push(format!("entity {key} has not come back in {shards:?}"));
        }
    }
}

fn check_each(ledgers: &BTreeMap<u64, Ledger>, ticks: u64, faults: &mut Vec<String>) {
    for (key, ledger) in ledgers {
        let violations = ledger.violations.iter();
        faults.extend(violations.map(|what| format!("entity {key}: {what}")));
        if ledger.fired != ticks {
            let fired = ledger.fired;
            faults.push(format!(
                "the timer of entity {key} has fired {fired} times of {ticks}"
            ));
        }
    }
}

fn check_mail(ledgers: &BTreeMap<u64, Ledger>, faults: &mut Vec<String>) {
    let gold: u64 = ledgers.values().map(|it| it.gold).sum();
    if gold != ENTITIES * GOLD {
        faults.push(format!("there is {gold} gold of {}", ENTITIES * GOLD));
    }
    let (mut letters, mut returned) = (0, 0);
    for (from, sender) in ledgers {
        for (to, out) in &sender.accounts {
            let heard = ledgers.get(to).and_then(|it| it.accounts.get(from));
            let heard = heard.cloned().unwrap_or_default();
            if out.sent != heard.heard {
                let (sent, heard) = (out.sent, heard.heard);
                faults.push(format!(
                    "{from} has sent {sent} gold to {to}, which has got {heard}"
                ));
            }
            if out.next != heard.letters + out.returned || heard.missing > out.returned {
                faults.push(format!("letters from {from} to {to}: {out:?}, {heard:?}"));
            }
            letters += heard.letters;
            returned += out.returned;
        }
    }
    println!("{letters} letters, and {returned} that came back");
}

/// What players have seen is durable, and nobody has seen anything twice.
fn check_seen(ledgers: &BTreeMap<u64, Ledger>, seen: &Seen, faults: &mut Vec<String>) {
    let events = seen.events();
    for (what, found) in [("fired", &events.fired), ("moved", &events.moved)] {
        for (key, count) in found {
            let ledger = ledgers.get(key);
            let durable = ledger.map_or(0, |it| if what == "fired" { it.fired } else { it.moves });
            if *count > durable {
                faults.push(format!(
                    "players saw that {key} has {what} {count} times, and {durable} are durable"
                ));
            }
        }
    }
    println!(
        "players saw {} firings and {} moves",
        events.fired.len(),
        events.moved.len()
    );
}

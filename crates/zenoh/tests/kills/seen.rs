//! What players have seen.

use core::sync::atomic::{AtomicU64, Ordering};
use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// What the processes have said, as players would see it.
#[derive(Default)]
pub(crate) struct Seen {
    moves: AtomicU64,
    events: Mutex<Events>,
}

#[derive(Default)]
pub(crate) struct Events {
    /// The keys of entities, and how often their periodic timers had fired.
    pub(crate) fired: BTreeSet<(u64, u64)>,
    /// The keys of entities, and how often they had moved.
    pub(crate) moved: BTreeSet<(u64, u64)>,
    /// What nobody may see.
    pub(crate) faults: Vec<String>,
}

impl Seen {
    /// Takes a line of a process. Returns `false` if it is for somebody else.
    pub(crate) fn read(&self, line: &str) -> bool {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |word: &str| word.parse::<u64>().expect("a number");
        let mut events = self.events();
        let is_new = match *words {
            ["fired", key, count] => events.fired.insert((number(key), number(count))),
            ["moved", key, count] => {
                self.moves.fetch_add(1, Ordering::Relaxed);
                events.moved.insert((number(key), number(count)))
            }
            _ => return false,
        };
        if !is_new {
            drop(events);
            self.fault(format!("players saw twice: {line}"));
        }
        true
    }

    /// Notes something that must not happen.
    pub(crate) fn fault(&self, line: String) {
        println!("FAULT: {line}");
        self.events().faults.push(line);
    }

    /// Returns the number of moves so far.
    pub(crate) fn moves(&self) -> u64 {
        self.moves.load(Ordering::Relaxed)
    }

    pub(crate) fn events(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

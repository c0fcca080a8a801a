//! When something is due on each clock of a time line, with the earliest at hand.

use alloc::{vec, vec::Vec};

use super::row::ClockKey;
use crate::queue::{NEVER, shrink};

/// The times at which something is due, by clock. Too early is harmless.
///
/// It is a tree of minima: each entry of a level is the earliest of sixteen entries below. A change touches a path of
/// the tree, and a search only what is due, however many clocks there are.
#[derive(Clone, Debug)]
pub(super) struct Wakes {
    /// The times by key, and the minima above them. The last level has at most one entry.
    levels: Vec<Vec<u64>>,
}

const FAN_OUT: usize = 16;

impl Default for Wakes {
    fn default() -> Self {
        Self {
            levels: vec![Vec::new()],
        }
    }
}

impl Wakes {
    /// Returns the earliest time.
    #[inline]
    pub(super) fn soonest(&self) -> u64 {
        let top = self.levels.last();
        top.and_then(|top| top.first()).copied().unwrap_or(NEVER)
    }

    /// Returns the first clock with the earliest time.
    pub(super) fn first(&self) -> Option<(ClockKey, u64)> {
        let soonest = self.soonest();
        let mut found = None;
        if soonest != NEVER {
            self.search(soonest, |key| _ = found.get_or_insert(key));
        }
        Some((found?, soonest))
    }

    pub(super) fn set(&mut self, key: ClockKey, time: u64) {
        let index = key as usize;
        if self.levels[0].len() <= index {
            if time == NEVER {
                return;
            }
            self.resize(index + 1);
        }
        if self.levels[0][index] != time {
            self.levels[0][index] = time;
            self.update(index);
        }
    }

    /// Forgets the clocks from this number on.
    pub(super) fn truncate(&mut self, len: usize) {
        if self.levels[0].len() > len {
            self.resize(len);
        }
    }

    /// Finds the clocks with a time at or before `until`, by key.
    pub(super) fn search(&self, until: u64, mut found: impl FnMut(ClockKey)) {
        if self.soonest() <= until && until != NEVER {
            self.search_below(self.levels.len() - 1, 0, until, &mut found);
        }
    }

    fn search_below(
        &self,
        level: usize,
        index: usize,
        until: u64,
        found: &mut impl FnMut(ClockKey),
    ) {
        let Some(below) = level.checked_sub(1) else {
            return found(index as ClockKey);
        };
        for (nth, &time) in (index * FAN_OUT..).zip(self.group(below, index)) {
            if time <= until {
                self.search_below(below, nth, until, found);
            }
        }
    }

    /// Returns the entries of a level of which an entry above is the earliest.
    fn group(&self, level: usize, index: usize) -> &[u64] {
        let entries = &self.levels[level];
        let start = (index * FAN_OUT).min(entries.len());
        &entries[start..entries.len().min(start + FAN_OUT)]
    }

    /// Carries a change of a time up, as far as it changes a minimum.
    fn update(&mut self, mut index: usize) {
        for level in 1..self.levels.len() {
            index /= FAN_OUT;
            let earliest = self.earliest(level, index);
            if self.levels[level][index] == earliest {
                return;
            }
            self.levels[level][index] = earliest;
        }
    }

    fn earliest(&self, level: usize, index: usize) -> u64 {
        let group = self.group(level - 1, index).iter();
        group.copied().min().unwrap_or(NEVER)
    }

    fn resize(&mut self, len: usize) {
        let mut len = len;
        let mut level = 0;
        loop {
            if level == self.levels.len() {
                self.levels.push(Vec::new());
            }
            let entries = &mut self.levels[level];
            let before = entries.len();
            entries.resize(len, NEVER);
            shrink(entries, len);
            if level > 0 {
                // The last entry that stays, and those that come, have other entries below.
                for index in before.min(len).saturating_sub(1)..len {
                    self.levels[level][index] = self.earliest(level, index);
                }
            }
            if len <= 1 {
                break;
            }
            len = len.div_ceil(FAN_OUT);
            level += 1;
        }
        self.levels.truncate(level + 1);
    }
}

#[cfg(test)]
mod tests {
    use std::{prelude::rust_2024::*, vec::Vec};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_search_finds_what_a_look_at_every_clock_finds(
            ops in prop::collection::vec((0..700_u32, prop_oneof![0..50_u64, Just(NEVER)], any::<bool>()), 1..200),
        ) {
            let mut wakes = Wakes::default();
            let mut times: Vec<u64> = Vec::new();
            for (key, time, truncates) in ops {
                if truncates && time % 5 == 0 {
                    times.truncate(key as usize);
                    wakes.truncate(key as usize);
                } else {
                    if times.len() <= key as usize {
                        times.resize(key as usize + 1, NEVER);
                    }
                    times[key as usize] = time;
                    wakes.set(key, time);
                }
                let soonest = times.iter().copied().min().unwrap_or(NEVER);
                prop_assert_eq!(wakes.soonest(), soonest);
                let first = times.iter().position(|&time| time == soonest && time != NEVER);
                prop_assert_eq!(wakes.first().map(|(key, _)| key as usize), first);
                for until in [0, 10, 49] {
                    let due = times.iter().enumerate().filter(|&(_, &time)| time <= until);
                    let due: Vec<usize> = due.map(|(key, _)| key).collect();
                    let mut found = Vec::new();
                    wakes.search(until, |key| found.push(key as usize));
                    prop_assert_eq!(&found, &due);
                }
            }
        }
    }

    #[test]
    fn wakes_give_their_memory_back() {
        let mut wakes = Wakes::default();
        for key in 0..100_000 {
            wakes.set(key, 1);
        }
        wakes.truncate(3);
        let held: usize = wakes.levels.iter().map(Vec::capacity).sum();
        assert!(held < 200, "{held} entries are left of 100,000");
        assert_eq!(wakes.soonest(), 1);
    }
}

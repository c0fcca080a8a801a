//! The earlier values of entries that have changed, to go back to.

use core::{hash::Hash, iter, mem};

use bevy_platform::collections::HashMap;

/// The entries that have changed since the journal began, with the values that they had then.
#[derive(Clone, Debug)]
pub(crate) struct Journal<K, V>(HashMap<K, V>);

impl<K: Copy + Eq + Hash, V> Journal<K, V> {
    /// Notes an entry that is about to change, unless it has changed before.
    #[inline]
    pub(crate) fn note(&mut self, key: K, value: impl FnOnce() -> V) {
        self.0.entry(key).or_insert_with(value);
    }

    pub(crate) fn contains(&self, key: K) -> bool {
        self.0.contains_key(&key)
    }

    pub(crate) fn get(&self, key: K) -> Option<&V> {
        self.0.get(&key)
    }

    pub(crate) fn forget(&mut self, key: K) {
        self.0.remove(&key);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.0.iter().map(|(&key, value)| (key, value))
    }

    /// Returns the entries. If an entry was renamed after it changed for the first time, this is only
    /// the one under its first name.
    pub(crate) fn under_first_names(
        &self,
        earlier: impl Fn(K) -> Option<K>,
    ) -> impl Iterator<Item = (K, &V)> {
        self.iter().filter(move |&(key, _)| {
            let mut names = iter::successors(earlier(key), |&name| earlier(name));
            !names.any(|name| self.contains(name))
        })
    }

    /// Adds the journal that began when this one ended.
    ///
    /// # Time complexity
    ///
    /// *O*(*n*) in the length of `later`.
    pub(crate) fn append(&mut self, later: Self) {
        if self.0.is_empty() {
            *self = later;
            return;
        }
        for (key, value) in later.0 {
            self.note(key, || value);
        }
    }

    /// Ends the journal, and begins the next one.
    pub(crate) fn take(&mut self) -> Self {
        if self.0.is_empty() {
            return Self::default();
        }
        // The next one is likely as long, and grows in one step.
        let next = HashMap::with_capacity(self.0.len());
        Self(mem::replace(&mut self.0, next))
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl<K, V> Default for Journal<K, V> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn a_journal_keeps_the_first_value() {
        let mut journal = Journal::default();
        journal.note('a', || 1);
        journal.note('a', || 2);
        let mut later = Journal::default();
        later.note('a', || 3);
        later.note('b', || 4);
        journal.append(later);
        let mut entries: Vec<_> = journal.iter().collect();
        entries.sort_unstable();
        assert_eq!(entries, [('a', &1), ('b', &4)]);
    }

    #[test]
    fn a_renamed_entry_counts_under_its_first_name_in_the_journal() {
        let mut journal = Journal::default();
        journal.note('a', || 1);
        journal.note('b', || 2);
        journal.note('c', || 3);
        // The journal began after `c` was renamed.
        let earlier = |name| match name {
            'b' => Some('a'),
            'c' => Some('z'),
            _ => None,
        };
        let mut entries: Vec<_> = journal.under_first_names(earlier).collect();
        entries.sort_unstable();
        assert_eq!(entries, [('a', &1), ('c', &3)]);
    }
}

//! The earlier values of entries that have changed, to go back to.

use alloc::collections::BTreeMap;
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

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K, V> Default for Journal<K, V> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

/// A map that keeps a journal while it is watched.
#[derive(Clone, Debug)]
pub(crate) struct WatchedMap<K, V> {
    entries: BTreeMap<K, V>,
    journal: Option<Journal<K, Option<V>>>,
}

impl<K: Copy + Ord + Hash, V: Clone> WatchedMap<K, V> {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn contains_key(&self, key: K) -> bool {
        self.entries.contains_key(&key)
    }

    pub(crate) fn get(&self, key: K) -> Option<&V> {
        self.entries.get(&key)
    }

    pub(crate) fn first(&self) -> Option<(&K, &V)> {
        self.entries.first_key_value()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = K> {
        self.entries.keys().copied()
    }

    pub(crate) fn values(&self) -> impl ExactSizeIterator<Item = &V> {
        self.entries.values()
    }

    pub(crate) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        self.note_if_there(key)?;
        self.entries.get_mut(&key)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        self.note(key);
        self.entries.insert(key, value);
    }

    pub(crate) fn remove(&mut self, key: K) -> Option<V> {
        self.note_if_there(key)?;
        self.entries.remove(&key)
    }

    pub(crate) fn watch(&mut self) {
        self.journal = Some(Journal::default());
    }

    pub(crate) fn unwatch(&mut self) {
        self.journal = None;
    }

    /// Ends the journal, and begins the next one.
    pub(crate) fn take_journal(&mut self) -> Journal<K, Option<V>> {
        let journal = self.journal.as_mut();
        journal.map(Journal::take).unwrap_or_default()
    }

    /// Goes back to the moment at which a journal began.
    pub(crate) fn put_back(&mut self, journal: &Journal<K, Option<V>>) {
        for (key, value) in journal.iter() {
            match value {
                Some(value) => self.insert(key, value.clone()),
                None => _ = self.remove(key),
            }
        }
    }

    /// Notes an entry that is about to change. Without a journal, does nothing.
    #[inline]
    fn note_if_there(&mut self, key: K) -> Option<()> {
        if self.journal.is_some() {
            self.entries.get(&key)?;
            self.note(key);
        }
        Some(())
    }

    #[inline]
    fn note(&mut self, key: K) {
        if let Some(journal) = &mut self.journal {
            journal.note(key, || self.entries.get(&key).cloned());
        }
    }
}

impl<K, V> Default for WatchedMap<K, V> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            journal: None,
        }
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

    #[test]
    fn a_map_goes_back_several_times_and_forward_again() {
        let mut map = WatchedMap::default();
        assert!(map.is_empty());
        map.insert(1, 'a');
        assert!(!map.is_empty());
        map.insert(2, 'b');
        map.watch();
        map.insert(1, 'c');
        map.remove(2);
        let first = map.take_journal();
        map.insert(3, 'd');
        let mut both = first.clone();
        both.append(map.take_journal());
        for _ in 0..2 {
            map.put_back(&both);
            assert_eq!(
                (map.get(1), map.get(2), map.get(3)),
                (Some(&'a'), Some(&'b'), None)
            );
            let forward = map.take_journal();
            map.put_back(&forward);
            assert_eq!(
                (map.get(1), map.get(2), map.get(3)),
                (Some(&'c'), None, Some(&'d'))
            );
            both.append(map.take_journal());
        }
        map.unwatch();
        map.insert(1, 'e');
        assert!(map.take_journal().is_empty());
    }
}

//! Members in the order in which they joined.

use alloc::vec::Vec;
use core::ops::Range;

/// Members in the order in which they joined, each with a number that rises with that order.
///
/// A departing member leaves a gap. Gaps are closed once they take up half of the places. Members
/// are identified by number, not by index, so they can join and leave during an iteration by
/// number.
#[derive(Debug)]
pub(crate) struct Roster<T> {
    places: Vec<(u64, Option<T>)>,
    gaps: usize,
}

impl<T> Roster<T> {
    /// Adds a member with a number above all others, and returns its place.
    pub(crate) fn add(&mut self, number: u64, member: T) -> usize {
        let last = self.places.last().map(|&(last, _)| last);
        debug_assert!(last < Some(number), "{number} joins after {last:?}");
        self.places.push((number, Some(member)));
        self.places.len() - 1
    }

    /// Removes and returns the member with this number, if there is one.
    pub(crate) fn leave(&mut self, number: u64) -> Option<T> {
        let member = self.place_mut(number)?.take();
        self.gaps += usize::from(member.is_some());
        if 2 * self.gaps > self.places.len() {
            self.places.retain(|(_, member)| member.is_some());
            self.gaps = 0;
        }
        member
    }

    /// Returns the member with this number, to change it.
    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        self.place_mut(number)?.as_mut()
    }

    fn place_mut(&mut self, number: u64) -> Option<&mut Option<T>> {
        let place = self
            .places
            .binary_search_by_key(&number, |&(number, _)| number);
        Some(&mut self.places[place.ok()?].1)
    }

    /// Returns the member at a place that [`add`](Self::add) has returned, with its number. When the
    /// gaps are closed, all members get the lowest places.
    #[inline]
    pub(crate) fn at(&self, place: usize) -> Option<(u64, &T)> {
        let (number, member) = self.places.get(place)?;
        Some((*number, member.as_ref()?))
    }

    /// Returns the member at a place, to change it.
    pub(crate) fn at_mut(&mut self, place: usize) -> Option<&mut T> {
        self.places.get_mut(place)?.1.as_mut()
    }

    pub(crate) fn has_gaps(&self) -> bool {
        self.gaps > 0
    }

    /// Iterates over the members with these numbers.
    pub(crate) fn members(&self, numbers: Range<u64>) -> impl Iterator<Item = (u64, &T)> {
        let place_of = |end| self.places.partition_point(|&(number, _)| number < end);
        let places = match self.places.last() {
            Some(&(last, _)) if last < numbers.start => &[],
            Some(&(last, _)) if last >= numbers.end => {
                &self.places[place_of(numbers.start)..place_of(numbers.end)]
            }
            _ => &self.places[place_of(numbers.start)..],
        };
        let members = places.iter();
        members.filter_map(|(number, member)| Some((*number, member.as_ref()?)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.len() == self.gaps
    }
}

impl<T> Default for Roster<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            gaps: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn members(roster: &Roster<char>, numbers: Range<u64>) -> Vec<char> {
        roster.members(numbers).map(|(_, &member)| member).collect()
    }

    #[test]
    fn members_keep_their_order_whoever_leaves() {
        let mut roster = Roster::default();
        for (nth, member) in (0..).zip('a'..='f') {
            roster.add(2 * nth, member);
        }
        roster.leave(2);
        roster.leave(3);
        assert_eq!(members(&roster, 0..100), ['a', 'c', 'd', 'e', 'f']);
        assert_eq!(members(&roster, 5..100), ['d', 'e', 'f']);
        assert_eq!(members(&roster, 4..8), ['c', 'd']);
        for number in [0, 4, 6, 4] {
            roster.leave(number);
        }
        assert_eq!(members(&roster, 0..100), ['e', 'f']);
        assert_eq!(roster.places.len(), 2, "no gaps");
        for number in [8, 10] {
            assert!(!roster.is_empty());
            roster.leave(number);
        }
        assert!(roster.is_empty());
    }
}

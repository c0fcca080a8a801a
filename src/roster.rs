//! Who takes part in something, in the order in which they have joined: what functions of every frame
//! and those for messages have in common.

use alloc::vec::Vec;

/// The place of a member in the order of joining. No two members of a world have the same.
pub(crate) type Nth = u64;

/// The members of something, in the order in which they have joined; or those who wait to become that.
///
/// To leave is to leave a gap, which is closed when half of the places are gaps. Members are named
/// by their [`Nth`], never by an index, so both may happen while somebody goes through them.
#[derive(Debug)]
pub(crate) struct Roster<T> {
    places: Vec<(Nth, Option<T>)>,
    gaps: usize,
}

impl<T> Roster<T> {
    /// Takes in a member, who has come later than all others.
    pub(crate) fn join(&mut self, nth: Nth, member: T) {
        let last = self.places.last().map(|&(last, _)| last);
        debug_assert!(last < Some(nth), "{nth} joins after {last:?}");
        self.places.push((nth, Some(member)));
    }

    /// Lets a member go, if there is one of that number.
    pub(crate) fn leave(&mut self, nth: Nth) {
        let Ok(place) = self.places.binary_search_by_key(&nth, |&(nth, _)| nth) else {
            return;
        };
        if self.places[place].1.take().is_some() {
            self.gaps += 1;
        }
        if 2 * self.gaps > self.places.len() {
            self.places.retain(|(_, member)| member.is_some());
            self.gaps = 0;
        }
    }

    /// The members from this number on.
    pub(crate) fn from(&self, nth: Nth) -> impl Iterator<Item = (Nth, &T)> {
        let start = self.places.partition_point(|&(other, _)| other < nth);
        let places = self.places[start..].iter();
        places.filter_map(|(nth, member)| Some((*nth, member.as_ref()?)))
    }

    /// Lets all of them go, and gives them out.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (Nth, T)> {
        self.gaps = 0;
        let places = self.places.drain(..);
        places.filter_map(|(nth, member)| Some((nth, member?)))
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.gaps
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

    fn members(roster: &Roster<char>, from: Nth) -> Vec<char> {
        roster.from(from).map(|(_, &member)| member).collect()
    }

    #[test]
    fn members_keep_their_order_whoever_leaves() {
        let mut roster = Roster::default();
        for (nth, member) in (0..).zip('a'..='f') {
            roster.join(2 * nth, member);
        }
        roster.leave(2);
        roster.leave(3);
        assert_eq!(members(&roster, 0), ['a', 'c', 'd', 'e', 'f']);
        assert_eq!(members(&roster, 5), ['d', 'e', 'f']);
        for nth in [0, 4, 6, 4] {
            roster.leave(nth);
        }
        assert_eq!(members(&roster, 0), ['e', 'f']);
        assert_eq!((roster.len(), roster.places.len()), (2, 2), "no gaps");
    }

    #[test]
    fn those_who_have_left_are_not_given_out() {
        let mut roster = Roster::default();
        for (nth, member) in (3..).zip('a'..='c') {
            roster.join(nth, member);
        }
        roster.leave(4);
        assert!(roster.drain().eq([(3, 'a'), (5, 'c')]));
        assert_eq!(roster.drain().count(), 0);
        roster.join(6, 'd');
        assert_eq!(members(&roster, 0), ['d']);
    }
}

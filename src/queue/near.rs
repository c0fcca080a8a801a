//! The near timers: the bucket whose time has come, and timers with deadlines before the wheel.

use alloc::vec::Vec;
use core::mem;

use super::{
    NEVER,
    bucket::Item,
    heap::{Entry, Heap},
    shrink,
    slots::{Place, Slots, prefetch},
};

/// The earliest near timer, or a deadline of [`NEVER`] if there is none.
#[derive(Clone, Copy)]
pub(crate) struct First {
    pub(super) deadline: u64,
    pub(super) index: u32,
    pub(super) in_heap: bool,
}

/// A min-heap for timers that arrive one by one, and a sorted list for timers that arrive as a
/// bucket.
///
/// Sorting a whole bucket is cheaper than pushing and popping each of its items. The heap and the
/// list hold about one frame's worth of timers each, and stay in the cache.
///
/// An item of the list is stale once its timer is cancelled or re-armed. Its slot shows this: the
/// slot is vacant, or it has another deadline or another place.
pub(super) struct Near {
    pub(super) heap: Heap,
    /// The first item that has not been popped is never stale.
    sorted: Vec<Item>,
    /// Kept for its memory: items while they are sorted.
    spare: Vec<Item>,
    /// The length of the longest list since the last [`look`](Self::look).
    longest: usize,
    /// The number of items popped, and the number of items whose slots have been prefetched.
    popped: usize,
    prefetched: usize,
    /// The number of stale items in the list.
    stale: usize,
    /// The upper half of the deadlines in the list. The lower half is zero.
    upper_half: u64,
}

/// The number of slots prefetched at a time, so that their cache misses overlap.
const PREFETCH_BATCH: usize = 64;

impl Near {
    pub(super) fn new() -> Self {
        Self {
            heap: Heap::new(),
            sorted: Vec::new(),
            spare: Vec::new(),
            longest: 0,
            popped: 0,
            prefetched: 0,
            stale: 0,
            upper_half: 0,
        }
    }

    /// Returns `true` if all items of the list have been popped.
    #[inline]
    pub(super) fn is_list_exhausted(&self) -> bool {
        self.popped == self.sorted.len()
    }

    /// Replaces the list with a bucket that starts at `start`. The previous list must be exhausted.
    ///
    /// Sorts the bucket if it has `unsorted_bits`, which is the exponent of its width.
    pub(super) fn load_list<T>(
        &mut self,
        slots: &Slots<T>,
        start: u64,
        unsorted_bits: Option<u32>,
        fill: impl FnOnce(&mut Vec<Item>),
    ) {
        debug_assert!(
            self.is_list_exhausted(),
            "{} items of the list have not been popped",
            self.sorted.len() - self.popped
        );
        self.upper_half = start & !u64::from(u32::MAX);
        self.popped = 0;
        self.prefetched = 0;
        fill(&mut self.sorted);
        self.longest = self.longest.max(self.sorted.len());
        if let Some(width_bits) = unsorted_bits {
            let sequence = |item: Item| slots.at(item.index()).sequence;
            sort(&mut self.sorted, &mut self.spare, width_bits, sequence);
        }
    }

    #[inline]
    pub(super) fn first<T>(&self, slots: &Slots<T>) -> First {
        let (deadline, index) = match self.sorted.get(self.popped) {
            Some(item) => (self.deadline_of(*item), item.index()),
            None => (NEVER, 0),
        };
        match self.heap.first() {
            Some(heap) if !(Entry { deadline, index }).is_before(heap, slots) => First {
                deadline: heap.deadline,
                index: heap.index,
                in_heap: true,
            },
            _ => First {
                deadline,
                index,
                in_heap: false,
            },
        }
    }

    /// Returns the deadline of the earliest near timer.
    pub(super) fn first_deadline<T>(&self, slots: &Slots<T>) -> Option<u64> {
        let deadline = self.first(slots).deadline;
        (deadline != NEVER).then_some(deadline)
    }

    /// Pops the first item of the list.
    #[inline]
    pub(super) fn advance_list<T>(&mut self, slots: &Slots<T>) {
        self.popped += 1;
        if self.stale > 0 {
            self.skip_stale(slots);
        }
    }

    /// Counts one more item of the list as stale.
    pub(super) fn count_stale<T>(&mut self, slots: &Slots<T>) {
        self.stale += 1;
        self.skip_stale(slots);
    }

    /// Returns the latest deadline up to `now` until which the list comes before the heap, if any.
    #[inline]
    pub(super) fn list_until(&self, now: u64) -> Option<u64> {
        match self.heap.first() {
            Some(heap) if heap.deadline <= now => heap.deadline.checked_sub(1),
            _ => Some(now),
        }
    }

    /// Returns the first timer of the list if it is due at `until`.
    #[inline]
    pub(super) fn first_listed<T>(&mut self, slots: &Slots<T>, until: u64) -> Option<First> {
        self.prefetch_if_due(slots);
        let item = self.sorted.get(self.popped)?;
        let deadline = self.deadline_of(*item);
        (deadline <= until).then_some(First {
            deadline,
            index: item.index(),
            in_heap: false,
        })
    }

    /// Prefetches the slots of the next items of the list if the last batch is used up.
    #[inline]
    pub(super) fn prefetch_if_due<T>(&mut self, slots: &Slots<T>) {
        if self.popped >= self.prefetched && !self.is_list_exhausted() {
            self.prefetch(slots);
        }
    }

    #[inline(never)]
    fn prefetch<T>(&mut self, slots: &Slots<T>) {
        let next = self.sorted[self.popped..].iter().take(PREFETCH_BATCH);
        self.prefetched = self.popped + next.len();
        for item in next {
            // The slot of a stale item may be gone.
            if let Some(slot) = slots.find(item.index()) {
                prefetch(slot.sequence);
            }
        }
    }

    /// Skips stale items at the front of the list.
    ///
    /// If one stayed there, it could be mistaken for the timer that uses its slot now, and hide the
    /// items behind it.
    #[inline(never)]
    fn skip_stale<T>(&mut self, slots: &Slots<T>) {
        while self.stale > 0
            && let Some(&item) = self.sorted.get(self.popped)
            && !self.is_current(slots, item)
        {
            self.stale -= 1;
            self.popped += 1;
        }
    }

    /// Returns `true` if `item` is not stale.
    ///
    /// A timer armed for a deadline within the list goes to the heap, never to a bucket. So a slot
    /// with the item's deadline and a place in a bucket still belongs to the item.
    fn is_current<T>(&self, slots: &Slots<T>, item: Item) -> bool {
        slots.find(item.index()).is_some_and(|slot| {
            slot.deadline == self.deadline_of(item) && matches!(slot.place(), Place::Bucket(_))
        })
    }

    /// Gives back the memory that was not needed since the last look.
    pub(super) fn look(&mut self) {
        self.heap.look();
        if self.is_list_exhausted() {
            self.sorted.clear();
            (self.popped, self.prefetched) = (0, 0);
            let longest = mem::take(&mut self.longest);
            shrink(&mut self.sorted, longest);
            self.spare.clear();
            shrink(&mut self.spare, longest);
        }
    }

    /// Returns `true` if the buffers are short.
    pub(super) fn is_short(&self) -> bool {
        self.capacities().all(|capacity| capacity <= 64)
    }

    pub(super) fn capacities(&self) -> impl Iterator<Item = usize> {
        let lists = [&self.sorted, &self.spare].map(Vec::capacity);
        lists.into_iter().chain([self.heap.capacity()])
    }

    #[inline]
    fn deadline_of(&self, item: Item) -> u64 {
        self.upper_half | u64::from(item.time())
    }
}

/// From this number of items on, digits are faster than comparisons.
const DIGITS_FROM: usize = if cfg!(test) { 4 } else { 200 };

/// A digit is a byte.
const DIGITS: usize = 1 << u8::BITS;

/// Sorts the items of a bucket that is 2^`width_bits` wide. `spare` is kept for its memory.
///
/// Timers that repeat together arrive in order, so one pass finds nothing to sort. Otherwise a large
/// bucket is sorted by the upper sixteen bits of the time inside it, which are two digits. Few items
/// share these bits.
fn sort(
    items: &mut [Item],
    spare: &mut Vec<Item>,
    width_bits: u32,
    sequence: impl Fn(Item) -> u64,
) {
    let mut sorted_from = 0;
    if !items.is_sorted_by_key(|item| item.time()) {
        if items.len() < DIGITS_FROM {
            items.sort_unstable();
        } else {
            sorted_from = width_bits.saturating_sub(u16::BITS);
            sort_by_digits(items, spare, sorted_from);
        }
    }
    sort_groups(items, sorted_from, sequence);
}

/// Sorts items by the two digits of their times from bit `from` on, the lower digit first.
fn sort_by_digits(items: &mut [Item], spare: &mut Vec<Item>, from: u32) {
    if spare.len() < items.len() {
        spare.resize(items.len(), Item::default());
    }
    let spare = &mut spare[..items.len()];
    let digits = |item: Item| ((item.time() >> from) as u16).to_le_bytes();
    let mut places = [[0; DIGITS]; 2];
    for item in &*items {
        let [low, high] = digits(*item);
        places[0][usize::from(low)] += 1;
        places[1][usize::from(high)] += 1;
    }
    for counts in &mut places {
        let mut start = 0;
        for count in counts {
            start += mem::replace(count, start);
        }
    }
    scatter(items, spare, &mut places[0], |item| digits(item)[0]);
    scatter(spare, items, &mut places[1], |item| digits(item)[1]);
}

/// Moves each item to the next place of its digit.
#[inline]
fn scatter(from: &[Item], to: &mut [Item], places: &mut [u32; DIGITS], digit: impl Fn(Item) -> u8) {
    for item in from {
        let place = &mut places[usize::from(digit(*item))];
        to[*place as usize] = *item;
        *place += 1;
    }
}

/// Sorts items whose times agree from bit `from` on, by the lower bits and by sequence.
fn sort_groups(items: &mut [Item], from: u32, sequence: impl Fn(Item) -> u64) {
    let agree = |a: Item, b: Item| (a.time() ^ b.time()) >> from == 0;
    let mut rest = items;
    while let Some(start) = rest.windows(2).position(|pair| agree(pair[0], pair[1])) {
        rest = &mut rest[start..];
        let first = rest[0];
        let len = rest.iter().take_while(|item| agree(first, **item)).count();
        let (group, behind) = rest.split_at_mut(len);
        group.sort_unstable_by(|a, b| {
            let by_time = a.time().cmp(&b.time());
            by_time.then_with(|| sequence(*a).cmp(&sequence(*b)))
        });
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    /// The sequence is the complement of the index, so that equal times go by descending index.
    fn sorted(mut items: Vec<Item>, width_bits: u32) -> Vec<Item> {
        let sequence = |item: Item| u64::from(!item.index());
        sort(&mut items, &mut vec![], width_bits, sequence);
        items
    }

    #[test]
    fn items_are_sorted_by_all_bits_of_their_time_and_then_by_sequence() {
        for width_bits in [1, 8, 16, 17, 24, 32] {
            // Few times in a small part of the bucket, and many in all of it.
            for bits in [1, 3, 9, width_bits] {
                for len in [0, 1, 3, 4, 300] {
                    let upper = 0xabcd_ef01_u64 << width_bits;
                    let lower = |nth: u64| (nth + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 30;
                    let time = |nth| upper | (lower(nth) % (1 << bits.min(width_bits)));
                    let items = (0..len).map(|nth| Item::new(time(nth), nth as u32));
                    let items: Vec<Item> = items.collect();
                    let mut expected = items.clone();
                    expected.sort_by_key(|item| (item.time(), !item.index()));
                    assert!(
                        sorted(items, width_bits) == expected,
                        "{len} items of {bits} bits in a bucket of {width_bits} bits"
                    );
                }
            }
        }
    }
}

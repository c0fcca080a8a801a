//! Unsorted buckets of timers in shared memory.

use alloc::{boxed::Box, vec, vec::Vec};
use core::{mem, ops::Range};

use super::{pages::Pages, vacant::Vacant};

/// A timer in a bucket.
///
/// The upper half holds the lower half of its deadline, and the lower half holds the index of its
/// slot. A bucket of the ring is at most 2^32 wide, so all its deadlines have the same upper half.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item(u64);

impl Item {
    #[inline]
    pub(super) fn new(deadline: u64, index: u32) -> Self {
        Self(deadline << 32 | u64::from(index))
    }

    /// Returns a number that grows with the deadline and the sequence inside a bucket of the ring.
    ///
    /// It has room for the top bit of a sequence and two billion values of the others. Later ones are equal.
    #[inline]
    pub(super) fn rank(self, sequence: u64) -> u64 {
        const MAX: u64 = u32::MAX as u64 >> 1;
        let upper = self.0 & !u64::from(u32::MAX);
        let (top, others) = (sequence >> 63, sequence & u64::MAX >> 1);
        upper | top << 31 | others.min(MAX)
    }

    /// Returns the lower half of the deadline.
    #[inline]
    pub(super) fn time(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    pub(super) fn index(self) -> u32 {
        self.0 as u32
    }
}

/// A chunk with this many items fills two cache lines. Item `i` of chunk `c` has the address
/// `c * CHUNK_LEN + i`.
const CHUNK_LEN: u32 = 16;
/// Addresses have 31 bits.
const MAX_CHUNKS: usize = (1 << 31) / CHUNK_LEN as usize;
const NO_CHUNK: u32 = u32::MAX;

#[repr(align(128))]
#[derive(Default)]
struct Chunk([Item; CHUNK_LEN as usize]);

/// All chunks of a bucket are full, except perhaps the last.
#[derive(Clone, Copy)]
struct Bucket {
    last_chunk: u32,
    /// The number of items.
    len: u32,
    /// The greatest rank if the items were pushed in ascending order, or [`UNSORTED`].
    last_rank: u64,
}

/// The greatest rank.
const UNSORTED: u64 = u64::MAX;

impl Bucket {
    const EMPTY: Self = Self {
        last_chunk: NO_CHUNK,
        len: 0,
        last_rank: 0,
    };

    #[inline]
    fn count_added(&mut self, item: Item, sequence: u64) {
        self.len += 1;
        if self.last_rank != UNSORTED {
            let rank = item.rank(sequence);
            let is_next = rank > self.last_rank;
            self.last_rank = if is_next { rank } else { UNSORTED };
        }
    }

    /// Returns the number of items in the last chunk, or zero if the bucket is empty.
    #[inline]
    fn len_of_last_chunk(self) -> u32 {
        match self.len {
            0 => 0,
            len => (len - 1) % CHUNK_LEN + 1,
        }
    }
}

/// A fixed number of buckets, and the chunks they share.
pub(super) struct Buckets {
    buckets: Box<[Bucket]>,
    /// One bit per bucket, set if the bucket is not empty.
    occupied: Box<[u64]>,
    chunks: Pages<Chunk>,
    /// The buckets that own the chunks. They are apart from the chunks, so that the items of a chunk
    /// begin at a cache line, and the owners of many chunks share one.
    owners: Pages<u16>,
    /// The chunks that were filled before.
    previous: Pages<u32>,
    vacant: Vacant,
    /// The number of pages of chunks to give back.
    spare_pages: usize,
}

impl Buckets {
    /// Creates at most 2^16 buckets.
    pub(super) fn new(count: usize) -> Self {
        debug_assert!(count <= 1 << 16, "{count} buckets");
        Self {
            buckets: vec![Bucket::EMPTY; count].into(),
            occupied: vec![0; count.div_ceil(64)].into(),
            chunks: Pages::new(),
            owners: Pages::new(),
            previous: Pages::new(),
            vacant: Vacant::new(),
            spare_pages: 0,
        }
    }

    /// Returns the number of buckets.
    pub(super) fn count(&self) -> usize {
        self.buckets.len()
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.chunks.capacity()
    }

    /// Returns the number of items in `bucket`.
    pub(super) fn len(&self, bucket: usize) -> u32 {
        self.buckets[bucket].len
    }

    /// Returns the first bucket in the range `buckets` that is not empty.
    pub(super) fn first_occupied(&self, buckets: Range<usize>) -> Option<usize> {
        let mut at = buckets.start;
        while at < buckets.end {
            let bits = self.occupied[at / 64] >> (at % 64);
            if bits != 0 {
                at += bits.trailing_zeros() as usize;
                return (at < buckets.end).then_some(at);
            }
            at += 64 - at % 64;
        }
        None
    }

    /// Returns `true` if the items of `bucket`, which is in the ring, are known to be in order of
    /// deadline and sequence.
    pub(super) fn is_sorted(&self, bucket: usize) -> bool {
        self.buckets[bucket].last_rank != UNSORTED
    }

    /// Adds the item of a timer with this `sequence` to `bucket`, and returns its address.
    pub(super) fn push(&mut self, bucket: usize, item: Item, sequence: u64) -> u32 {
        if let Some(address) = self.append(bucket, item, sequence) {
            return address;
        }
        let chunk = self.add_chunk(bucket);
        self.buckets[bucket].count_added(item, sequence);
        self.chunks[chunk].0[0] = item;
        chunk * CHUNK_LEN
    }

    /// Does the same as [`push`](Self::push) if the last chunk of `bucket` has room.
    #[inline]
    pub(super) fn append(&mut self, bucket: usize, item: Item, sequence: u64) -> Option<u32> {
        let to = &mut self.buckets[bucket];
        let at = to.len % CHUNK_LEN;
        if at == 0 {
            return None;
        }
        to.count_added(item, sequence);
        let last_chunk = to.last_chunk;
        self.chunks[last_chunk].0[at as usize] = item;
        Some(last_chunk * CHUNK_LEN + at)
    }

    /// Removes and returns the last item.
    pub(super) fn pop(&mut self, bucket: usize) -> Option<Item> {
        let last = *self.item_mut(self.last(bucket)?);
        self.remove_last(bucket, 1);
        Some(last)
    }

    /// Moves all items into `to`, in the order in which they were pushed. Replaces the contents of
    /// `to`.
    pub(super) fn drain(&mut self, bucket: usize, to: &mut Vec<Item>) {
        to.resize(self.len(bucket) as usize, Item::default());
        while let from @ Bucket { len: 1.., .. } = self.buckets[bucket] {
            let in_last = from.len_of_last_chunk();
            let items = &self.chunks[from.last_chunk].0[..in_last as usize];
            to[(from.len - in_last) as usize..from.len as usize].copy_from_slice(items);
            self.remove_last(bucket, in_last);
        }
    }

    /// Removes the item at `address`. Returns its bucket, and the last item of the bucket if it
    /// moved to `address`.
    #[inline]
    pub(super) fn remove(&mut self, address: u32) -> (usize, Option<Item>) {
        let bucket = usize::from(self.owners[address / CHUNK_LEN]);
        let Some(last) = self.last(bucket) else {
            return (bucket, None);
        };
        let moved = *self.item_mut(last);
        *self.item_mut(address) = moved;
        if last != address {
            self.buckets[bucket].last_rank = UNSORTED;
        }
        self.remove_last(bucket, 1);
        (bucket, (last != address).then_some(moved))
    }

    /// Returns an iterator over the items of `bucket`, the last item first.
    pub(super) fn items(&self, bucket: usize) -> impl Iterator<Item = Item> + '_ {
        let Bucket {
            mut last_chunk,
            len,
            ..
        } = self.buckets[bucket];
        (0..len).rev().map(move |nth| {
            let at = nth % CHUNK_LEN;
            let item = self.item(last_chunk * CHUNK_LEN + at);
            if at == 0 {
                last_chunk = self.previous[last_chunk];
            }
            item
        })
    }

    /// Returns the address of the last item.
    #[inline]
    fn last(&self, bucket: usize) -> Option<u32> {
        let Bucket {
            last_chunk, len, ..
        } = self.buckets[bucket];
        let at = len.checked_sub(1)? % CHUNK_LEN;
        Some(last_chunk * CHUNK_LEN + at)
    }

    #[inline]
    fn item(&self, address: u32) -> Item {
        self.chunks[address / CHUNK_LEN].0[(address % CHUNK_LEN) as usize]
    }

    #[inline]
    fn item_mut(&mut self, address: u32) -> &mut Item {
        &mut self.chunks[address / CHUNK_LEN].0[(address % CHUNK_LEN) as usize]
    }

    /// Removes the last `count` items, which must all be in the last chunk.
    #[inline]
    fn remove_last(&mut self, bucket: usize, count: u32) {
        let from = &mut self.buckets[bucket];
        from.len -= count;
        if from.len.is_multiple_of(CHUNK_LEN) {
            self.free_last_chunk(bucket);
        }
    }

    /// Frees the last chunk of `bucket`, which is empty.
    #[inline(never)]
    fn free_last_chunk(&mut self, bucket: usize) {
        let from = &mut self.buckets[bucket];
        let freed = from.last_chunk;
        from.last_chunk = self.previous[freed];
        self.vacant.push(freed);
        if from.len == 0 {
            from.last_rank = 0;
            self.occupied[bucket / 64] &= !(1 << (bucket % 64));
        }
    }

    /// Adds an empty chunk to `bucket`, and returns it.
    fn add_chunk(&mut self, bucket: usize) -> u32 {
        self.occupied[bucket / 64] |= 1 << (bucket % 64);
        // A chunk is written before it is read.
        let vacant = self.vacant.pop(|_| ());
        let chunk = vacant.unwrap_or_else(|| self.new_chunk());
        self.owners[chunk] = bucket as u16;
        self.previous[chunk] = self.buckets[bucket].last_chunk;
        self.buckets[bucket].last_chunk = chunk;
        chunk
    }

    /// Adds chunks, and takes one of them.
    #[cold]
    fn new_chunk(&mut self) -> u32 {
        let added = self.chunks.grow(Chunk::default);
        self.owners.grow(|| 0);
        self.previous.grow(|| NO_CHUNK);
        let chunk = added.start;
        debug_assert!(
            added.end as usize <= MAX_CHUNKS,
            "{} chunks for 2^30 timers",
            added.end
        );
        self.vacant.extend(chunk + 1..added.end);
        chunk
    }

    /// Looks for chunks that were not needed since the last look, which are given back from now on.
    pub(super) fn look(&mut self) {
        self.spare_pages = self.vacant.look();
    }

    pub(super) fn has_spare_pages(&self) -> bool {
        self.spare_pages > 0
    }

    /// Gives back one page of chunks that were not needed.
    pub(super) fn free_page(&mut self) {
        let spare = mem::take(&mut self.spare_pages);
        if spare > 0
            && let Some(page) = self.vacant.vacant_page()
        {
            self.vacant.forget_page(page);
            self.chunks.remove(page);
            self.owners.remove(page);
            self.previous.remove(page);
            self.spare_pages = spare - 1;
        }
    }

    /// Gives back the last page of chunks, and returns `true` if there are others. The buckets are not used
    /// any more.
    pub(super) fn dismantle(&mut self) -> bool {
        self.owners.remove_last();
        self.previous.remove_last();
        self.chunks.remove_last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removing_an_item_moves_only_the_last_item() {
        let mut buckets = Buckets::new(2);
        let addresses: Vec<u32> = (0..40)
            .map(|n| buckets.push(1, Item::new(n.into(), n), n.into()))
            .collect();
        assert_eq!(buckets.first_occupied(0..2), Some(1));

        let (bucket, moved) = buckets.remove(addresses[3]);
        assert_eq!(bucket, 1);
        assert_eq!(moved.map(Item::index), Some(39));
        let (_, moved) = buckets.remove(addresses[38]);
        assert!(
            moved.is_none(),
            "removing the last item should move nothing"
        );

        let mut drained = vec![];
        buckets.drain(1, &mut drained);
        let indices: Vec<u32> = drained.into_iter().map(Item::index).collect();
        let expected: Vec<u32> = (0..3).chain([39]).chain(4..38).collect();
        assert_eq!(indices, expected);
        assert_eq!(buckets.len(1), 0);
        assert_eq!(buckets.first_occupied(0..2), None);
    }

    #[test]
    fn a_bucket_knows_whether_it_was_filled_in_order() {
        let is_sorted = |timers: &[(u64, u64)]| {
            let mut buckets = Buckets::new(1);
            for &(deadline, sequence) in timers {
                buckets.push(0, Item::new(deadline, 7), sequence);
            }
            buckets.is_sorted(0)
        };
        const MANY: u64 = 1 << 32;
        assert!(is_sorted(&[]));
        assert!(is_sorted(&[(1, 5), (1, 6), (2, 1)]));
        assert!(is_sorted(&[(MANY, 1), (MANY + 1, 0)]));
        assert!(!is_sorted(&[(1, 5), (1, 4)]), "by sequence");
        assert!(!is_sorted(&[(2, 5), (1, 6), (3, 7)]), "by deadline");
        assert!(!is_sorted(&[(1, MANY), (1, MANY + 1)]), "unknown");
        assert!(is_sorted(&[(1, MANY), (2, MANY)]));
    }

    #[test]
    fn a_removal_from_the_middle_leaves_a_bucket_unsorted_until_it_is_empty() {
        let mut buckets = Buckets::new(1);
        let push = |buckets: &mut Buckets, n| buckets.push(0, Item::new(n, 7), n);
        let addresses = [1, 2, 3].map(|n| push(&mut buckets, n));
        buckets.remove(addresses[2]);
        assert!(buckets.is_sorted(0), "the last item");
        buckets.remove(addresses[0]);
        assert!(!buckets.is_sorted(0), "the first item");
        push(&mut buckets, 4);
        assert!(!buckets.is_sorted(0));
        buckets.drain(0, &mut vec![]);
        push(&mut buckets, 1);
        assert!(buckets.is_sorted(0), "after the bucket was empty");
    }
}

//! Unsorted buckets of timers in shared memory.

use alloc::{boxed::Box, vec, vec::Vec};
use core::{hint::black_box, mem, ops::Range};

use super::pages::Pages;

/// A timer in a bucket.
///
/// The upper half holds its time since the start of the bucket, and the lower half holds the index
/// of its slot.
///
/// In a wide bucket, the time does not fit. Such an item holds only the lowest bits of its time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item(u64);

impl Item {
    #[inline]
    pub(super) fn new(time: u32, index: u32) -> Self {
        Self(u64::from(time) << 32 | u64::from(index))
    }

    #[inline]
    pub(super) fn time(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    pub(super) fn index(self) -> u32 {
        self.0 as u32
    }
}

/// A chunk with this many items fills two cache lines.
const CHUNK_LEN: u32 = 15;
/// Item `i` of chunk `c` has the address `c * STRIDE + i`. The address with `i = CHUNK_LEN` is the
/// end of a full chunk.
const STRIDE: u32 = CHUNK_LEN + 1;
const NO_CHUNK: u32 = u32::MAX / STRIDE;
/// Addresses have 31 bits.
const MAX_CHUNKS: usize = (1 << 31) / STRIDE as usize;

#[repr(align(64))]
#[derive(Clone)]
struct Chunk {
    items: [Item; CHUNK_LEN as usize],
    /// The chunk that was filled before this one. In a free chunk, the next free chunk.
    previous: u32,
    /// The bucket that owns this chunk.
    bucket: u32,
}

impl Default for Chunk {
    fn default() -> Self {
        Self {
            items: [Item::new(0, 0); CHUNK_LEN as usize],
            previous: NO_CHUNK,
            bucket: 0,
        }
    }
}

/// The end and the length of a bucket. All its chunks are full, except perhaps the last.
#[derive(Clone, Copy)]
struct Bucket {
    /// The address after the last item. An empty bucket ends at the end of [`NO_CHUNK`], which
    /// counts as full.
    end: u32,
    len: u32,
}

/// Reads a value ahead of need, so that many cache misses overlap.
///
/// Without `unsafe` there is no prefetch instruction.
#[inline]
pub(super) fn prefetch<T>(read: T) {
    black_box(read);
}

/// A fixed number of buckets, and the chunks they share.
pub(super) struct Buckets {
    buckets: Box<[Bucket]>,
    /// One bit per bucket, set if the bucket is not empty.
    occupied: Box<[u64]>,
    chunks: Pages<Chunk>,
    first_free: u32,
}

impl Buckets {
    pub(super) fn new(count: usize) -> Self {
        let empty = Bucket {
            end: NO_CHUNK * STRIDE + CHUNK_LEN,
            len: 0,
        };
        Self {
            buckets: vec![empty; count].into(),
            occupied: vec![0; count.div_ceil(64)].into(),
            chunks: Pages::new(),
            first_free: NO_CHUNK,
        }
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

    /// Adds `item` to `bucket` and returns its address.
    #[inline]
    pub(super) fn push(&mut self, bucket: usize, item: Item) -> u32 {
        let Bucket { mut end, len } = self.buckets[bucket];
        if end % STRIDE == CHUNK_LEN {
            end = self.new_chunk(bucket, end / STRIDE) * STRIDE;
        }
        self.buckets[bucket] = Bucket {
            end: end + 1,
            len: len + 1,
        };
        *self.item_mut(end) = item;
        end
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
        to.resize(self.len(bucket) as usize, Item::new(0, 0));
        while let Bucket {
            end,
            len: len @ 1..,
        } = self.buckets[bucket]
        {
            let in_last = end % STRIDE;
            let items = &self.chunks[end / STRIDE].items[..in_last as usize];
            to[(len - in_last) as usize..len as usize].copy_from_slice(items);
            self.remove_last(bucket, in_last);
        }
    }

    /// Removes the item at `address`. Returns its bucket, and the last item of the bucket if it
    /// moved to `address`.
    pub(super) fn remove(&mut self, address: u32) -> (usize, Option<Item>) {
        let bucket = self.chunks[address / STRIDE].bucket as usize;
        let is_last = self.last(bucket) == Some(address);
        let moved = self.pop(bucket).filter(|_| !is_last);
        if let Some(moved) = moved {
            *self.item_mut(address) = moved;
        }
        (bucket, moved)
    }

    /// Prefetches the memory needed to remove the item at `address`, and returns the last item of
    /// its bucket, which will move.
    pub(super) fn prefetch_removal(&self, address: u32) -> Option<Item> {
        let chunk = &self.chunks[address / STRIDE];
        // The item and the rest of the chunk may be in different cache lines.
        prefetch(chunk.items[(address % STRIDE) as usize]);
        let last = self.last(chunk.bucket as usize)?;
        Some(self.chunks[last / STRIDE].items[(last % STRIDE) as usize])
    }

    /// Returns the last chunk of `bucket`.
    pub(super) fn last_chunk(&self, bucket: usize) -> u32 {
        self.buckets[bucket].end / STRIDE
    }

    /// Prefetches `chunk` and returns the chunk before it.
    ///
    /// If the chunk was freed in the meantime, the prefetch is wasted but harmless.
    pub(super) fn prefetch_chunk(&self, chunk: u32) -> u32 {
        self.chunks.get(chunk as usize).map_or(NO_CHUNK, |chunk| {
            prefetch(chunk.items[0]);
            chunk.previous
        })
    }

    /// Returns an iterator over the items of `bucket`, the last item first.
    pub(super) fn items(&self, bucket: usize) -> impl Iterator<Item = Item> + '_ {
        let Bucket { mut end, len } = self.buckets[bucket];
        (0..len).map(move |_| {
            end -= 1;
            let chunk = &self.chunks[end / STRIDE];
            let item = chunk.items[(end % STRIDE) as usize];
            if end % STRIDE == 0 {
                end = chunk.previous * STRIDE + CHUNK_LEN;
            }
            item
        })
    }

    /// Returns the address of the last item.
    fn last(&self, bucket: usize) -> Option<u32> {
        let Bucket { end, len } = self.buckets[bucket];
        (len > 0).then(|| end - 1)
    }

    #[inline]
    fn item_mut(&mut self, address: u32) -> &mut Item {
        &mut self.chunks[address / STRIDE].items[(address % STRIDE) as usize]
    }

    /// Removes the last `count` items, which must all be in the last chunk.
    #[inline]
    fn remove_last(&mut self, bucket: usize, count: u32) {
        let Bucket { end, len } = &mut self.buckets[bucket];
        *len -= count;
        *end -= count;
        if end.is_multiple_of(STRIDE) {
            let chunk = *end / STRIDE;
            let previous = mem::replace(&mut self.chunks[chunk].previous, self.first_free);
            *end = previous * STRIDE + CHUNK_LEN;
            self.first_free = chunk;
        }
        if *len == 0 {
            self.occupied[bucket / 64] &= !(1 << (bucket % 64));
        }
    }

    /// Returns an empty chunk for `bucket`, linked to its `previous` chunk.
    fn new_chunk(&mut self, bucket: usize, previous: u32) -> u32 {
        self.occupied[bucket / 64] |= 1 << (bucket % 64);
        let bucket = bucket as u32;
        if self.first_free != NO_CHUNK {
            let chunk = self.first_free;
            let taken = &mut self.chunks[chunk];
            taken.bucket = bucket;
            self.first_free = mem::replace(&mut taken.previous, previous);
            return chunk;
        }
        let chunk = self.chunks.len();
        debug_assert!(chunk < MAX_CHUNKS, "{chunk} chunks for 2^30 timers");
        self.chunks.push(Chunk {
            items: [Item::new(0, 0); CHUNK_LEN as usize],
            previous,
            bucket,
        });
        chunk as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removing_an_item_moves_only_the_last_item() {
        let mut buckets = Buckets::new(2);
        let addresses: Vec<u32> = (0..40).map(|n| buckets.push(1, Item::new(n, n))).collect();
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
}

//! Unsorted bags of timers, which share their memory.

use alloc::{boxed::Box, vec, vec::Vec};
use core::{hint::black_box, mem, ops::Range};

use super::pages::Pages;

/// A timer in a bucket: its time from the bucket's beginning on, above the index of its slot. In
/// the wide buckets, where the time would not fit, there are only its lowest bits.
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

/// As many items as fill two cache lines with the rest.
const CHUNK: u32 = 15;
/// Item `i` of chunk `c` has the address `c * STRIDE + i`; with `i = CHUNK` it is where a full chunk
/// ends.
const STRIDE: u32 = CHUNK + 1;
const NO_CHUNK: u32 = u32::MAX / STRIDE;
/// Addresses have 31 bits.
const MOST_CHUNKS: usize = (1 << 31) / STRIDE as usize;

#[repr(align(64))]
struct Chunk {
    items: [Item; CHUNK as usize],
    /// The chunk filled before this one; in a free chunk, the next free one.
    before: u32,
    /// The bucket that it belongs to.
    bucket: u32,
}

/// A bag of timers. Only the last of its chunks is not full.
#[derive(Clone, Copy)]
struct Bucket {
    /// The address after the last item. That of an empty bucket is the end of [`NO_CHUNK`], which
    /// counts as full.
    end: u32,
    len: u32,
}

/// Reads memory before it is needed, for the cache misses of many such reads to overlap. There is
/// no instruction for that without `unsafe`.
#[inline]
pub(super) fn prefetch<T>(read: T) {
    black_box(read);
}

/// A number of buckets, and the memory of all: chunks, given to whoever needs one, and taken back.
pub(super) struct Buckets {
    buckets: Box<[Bucket]>,
    /// A bit for each bucket that is not empty.
    occupied: Box<[u64]>,
    chunks: Pages<Chunk>,
    free: u32,
}

impl Buckets {
    pub(super) fn new(count: usize) -> Self {
        let empty = Bucket {
            end: NO_CHUNK * STRIDE + CHUNK,
            len: 0,
        };
        Self {
            buckets: vec![empty; count].into(),
            occupied: vec![0; count.div_ceil(64)].into(),
            chunks: Pages::new(),
            free: NO_CHUNK,
        }
    }

    /// How many items are in `bucket`.
    pub(super) fn len(&self, bucket: usize) -> u32 {
        self.buckets[bucket].len
    }

    /// The first of some buckets that is not empty.
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

    /// Puts `item` in, and returns its address.
    #[inline]
    pub(super) fn push(&mut self, bucket: usize, item: Item) -> u32 {
        let Bucket { mut end, len } = self.buckets[bucket];
        if end % STRIDE == CHUNK {
            end = self.new_chunk(bucket, end / STRIDE) * STRIDE;
        }
        self.buckets[bucket] = Bucket {
            end: end + 1,
            len: len + 1,
        };
        *self.item_mut(end) = item;
        end
    }

    /// Takes the last item out.
    pub(super) fn pop(&mut self, bucket: usize) -> Option<Item> {
        let last = *self.item_mut(self.last(bucket)?);
        self.shorten(bucket, 1);
        Some(last)
    }

    /// Takes all items out, and lets `to` have them, in the order in which they were put in.
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
            self.shorten(bucket, in_last);
        }
    }

    /// Takes the item at `address` out. Returns which bucket that was, and the item that had to
    /// move into its place, if any.
    pub(super) fn remove(&mut self, address: u32) -> (usize, Option<Item>) {
        let bucket = self.chunks[address / STRIDE].bucket as usize;
        let is_last = self.last(bucket) == Some(address);
        let moved = self.pop(bucket).filter(|_| !is_last);
        if let Some(moved) = moved {
            *self.item_mut(address) = moved;
        }
        (bucket, moved)
    }

    /// Fetches what it takes to remove the item at `address`, and returns the item that will have
    /// to move.
    pub(super) fn prefetch_removal(&self, address: u32) -> Option<Item> {
        let chunk = &self.chunks[address / STRIDE];
        // They may be in two cache lines.
        prefetch(chunk.items[(address % STRIDE) as usize]);
        let last = self.last(chunk.bucket as usize)?;
        Some(self.chunks[last / STRIDE].items[(last % STRIDE) as usize])
    }

    /// The last chunk of a bucket.
    pub(super) fn last_chunk(&self, bucket: usize) -> u32 {
        self.buckets[bucket].end / STRIDE
    }

    /// Fetches a chunk, and returns the one before it. If the chunk has been freed since, that is
    /// another, and fetched in vain.
    pub(super) fn prefetch_chunk(&self, chunk: u32) -> u32 {
        self.chunks.get(chunk as usize).map_or(NO_CHUNK, |chunk| {
            prefetch(chunk.items[0]);
            chunk.before
        })
    }

    /// All items, the last first.
    pub(super) fn items(&self, bucket: usize) -> impl Iterator<Item = Item> + '_ {
        let Bucket { mut end, len } = self.buckets[bucket];
        (0..len).map(move |_| {
            end -= 1;
            let chunk = &self.chunks[end / STRIDE];
            let item = chunk.items[(end % STRIDE) as usize];
            if end % STRIDE == 0 {
                end = chunk.before * STRIDE + CHUNK;
            }
            item
        })
    }

    /// The address of the last item.
    fn last(&self, bucket: usize) -> Option<u32> {
        let Bucket { end, len } = self.buckets[bucket];
        (len > 0).then(|| end - 1)
    }

    #[inline]
    fn item_mut(&mut self, address: u32) -> &mut Item {
        &mut self.chunks[address / STRIDE].items[(address % STRIDE) as usize]
    }

    /// Forgets so many items at the end, all in the last chunk.
    #[inline]
    fn shorten(&mut self, bucket: usize, count: u32) {
        let Bucket { end, len } = &mut self.buckets[bucket];
        *len -= count;
        *end -= count;
        if end.is_multiple_of(STRIDE) {
            let chunk = *end / STRIDE;
            let before = mem::replace(&mut self.chunks[chunk].before, self.free);
            *end = before * STRIDE + CHUNK;
            self.free = chunk;
        }
        if *len == 0 {
            self.occupied[bucket / 64] &= !(1 << (bucket % 64));
        }
    }

    /// A chunk for `bucket`, to follow its chunk `before`.
    fn new_chunk(&mut self, bucket: usize, before: u32) -> u32 {
        self.occupied[bucket / 64] |= 1 << (bucket % 64);
        let bucket = bucket as u32;
        if self.free != NO_CHUNK {
            let chunk = self.free;
            let taken = &mut self.chunks[chunk];
            taken.bucket = bucket;
            self.free = mem::replace(&mut taken.before, before);
            return chunk;
        }
        let chunk = self.chunks.len();
        debug_assert!(chunk < MOST_CHUNKS, "{chunk} chunks for 2^30 timers");
        self.chunks.push(Chunk {
            items: [Item::new(0, 0); CHUNK as usize],
            before,
            bucket,
        });
        chunk as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_removed_leaves_the_others_in_order_but_for_the_last() {
        let mut buckets = Buckets::new(2);
        let addresses: Vec<u32> = (0..40).map(|n| buckets.push(1, Item::new(n, n))).collect();
        assert_eq!(buckets.first_occupied(0..2), Some(1));

        let (bucket, moved) = buckets.remove(addresses[3]);
        assert_eq!(bucket, 1);
        assert_eq!(moved.map(Item::index), Some(39));
        let (_, moved) = buckets.remove(addresses[38]);
        assert!(moved.is_none(), "the last has nobody behind it");

        let mut drained = vec![];
        buckets.drain(1, &mut drained);
        let indices: Vec<u32> = drained.into_iter().map(Item::index).collect();
        let expected: Vec<u32> = (0..3).chain([39]).chain(4..38).collect();
        assert_eq!(indices, expected);
        assert_eq!(buckets.len(1), 0);
        assert_eq!(buckets.first_occupied(0..2), None);
    }
}

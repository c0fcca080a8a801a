//! Unsorted bags of timers, which share their memory.

use alloc::vec::Vec;

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

/// As many items as fill two cache lines with the link.
const CHUNK: u32 = 15;
/// Addresses count chunks in steps of this.
const STRIDE: u32 = 16;
const NO_CHUNK: u32 = u32::MAX;

struct Chunk {
    items: [Item; CHUNK as usize],
    /// The chunk filled before this one; in a free chunk, the next free one.
    before: u32,
}

/// A bag of timers. Only the last of its chunks is not full.
#[derive(Clone, Copy)]
pub(super) struct Bucket {
    last: u32,
    len: u32,
}

/// The memory of all buckets: chunks, given to whoever needs one, and taken back.
pub(super) struct Buckets {
    chunks: Pages<Chunk>,
    free: u32,
}

impl Bucket {
    pub(super) const EMPTY: Self = Self {
        last: NO_CHUNK,
        len: 0,
    };

    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many items the last chunk holds.
    fn in_last(&self) -> u32 {
        (self.len - 1) % CHUNK + 1
    }
}

impl Buckets {
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            chunks: Pages::new(),
            free: NO_CHUNK,
        }
    }

    /// Puts `item` in, and returns its address.
    #[inline]
    pub(super) fn push(&mut self, bucket: &mut Bucket, item: Item) -> u32 {
        if bucket.len.is_multiple_of(CHUNK) {
            bucket.last = self.new_chunk(bucket.last);
        }
        let at = bucket.len % CHUNK;
        bucket.len += 1;
        self.chunks[bucket.last].items[at as usize] = item;
        bucket.last * STRIDE + at
    }

    pub(super) fn pop(&mut self, bucket: &mut Bucket) -> Option<Item> {
        if bucket.is_empty() {
            return None;
        }
        let item = self.chunks[bucket.last].items[bucket.in_last() as usize - 1];
        bucket.len -= 1;
        if bucket.len.is_multiple_of(CHUNK) {
            self.free_last(bucket);
        }
        Some(item)
    }

    /// Takes all items out, and appends them to `to`.
    pub(super) fn drain(&mut self, bucket: &mut Bucket, to: &mut Vec<Item>) {
        to.reserve(bucket.len as usize);
        while !bucket.is_empty() {
            let count = bucket.in_last();
            to.extend_from_slice(&self.chunks[bucket.last].items[..count as usize]);
            bucket.len -= count;
            self.free_last(bucket);
        }
    }

    /// Takes the item at `address` out. If another item had to move into its place, returns that.
    pub(super) fn remove(&mut self, bucket: &mut Bucket, address: u32) -> Option<Item> {
        let removed = self.chunks[address / STRIDE].items[(address % STRIDE) as usize];
        let last = self.pop(bucket)?;
        if last == removed {
            return None;
        }
        self.chunks[address / STRIDE].items[(address % STRIDE) as usize] = last;
        Some(last)
    }

    pub(super) fn items(&self, bucket: &Bucket) -> impl Iterator<Item = Item> + '_ {
        let mut chunk = bucket.last;
        let mut left = bucket.len;
        let mut at = if left == 0 { 0 } else { bucket.in_last() };
        core::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            if at == 0 {
                chunk = self.chunks[chunk].before;
                at = CHUNK;
            }
            at -= 1;
            left -= 1;
            Some(self.chunks[chunk].items[at as usize])
        })
    }

    /// Takes the last chunk of a bucket back.
    fn free_last(&mut self, bucket: &mut Bucket) {
        let chunk = &mut self.chunks[bucket.last];
        let before = core::mem::replace(&mut chunk.before, self.free);
        self.free = core::mem::replace(&mut bucket.last, before);
    }

    fn new_chunk(&mut self, before: u32) -> u32 {
        if self.free != NO_CHUNK {
            let chunk = self.free;
            self.free = core::mem::replace(&mut self.chunks[chunk].before, before);
            return chunk;
        }
        let chunk = u32::try_from(self.chunks.len())
            .ok()
            .filter(|&chunk| chunk < NO_CHUNK / STRIDE)
            .expect("fewer buckets than memory");
        self.chunks.push(Chunk {
            items: [Item(0); CHUNK as usize],
            before,
        });
        chunk
    }
}

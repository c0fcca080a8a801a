//! The far timers: buckets by deadline, filled by appending and emptied when their time comes.
//!
//! ```text
//!            base                base + len
//! ring        │▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│                  a bucket is about a frame wide
//! level 1               base│▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│      a bucket is half a ring wide
//! level 2                          base│▒▒▒▒▒▒▒▒▒ …   a bucket is half a level 1 wide
//! ```
//!
//! Each level takes the deadlines beyond the end of the level below. The entries of the first
//! bucket of a level start to move down once that bucket fits completely into the level below. A
//! few move with each step of the ring. They must all have moved before the time of the bucket
//! begins. A bucket is only half as wide as the level below, so the move may take half a level of
//! time.

use alloc::vec::Vec;
use core::mem;

use super::{
    NEVER,
    bucket::{Buckets, Item},
    near::Near,
    slots::{Place, Slot, Slots},
};

/// The maximum number of timers removed from their buckets in one batch.
const REMOVAL_BATCH: usize = 64;

/// The sizes of a queue. A field that ends in `_bits` is the exponent of a power of two.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The width of a bucket of the ring, in units of a deadline. At most 32 bits.
    pub(super) width_bits: u32,
    /// The number of buckets in the ring.
    pub(super) ring_bits: u32,
    /// The number of buckets in each level above the ring.
    pub(super) level_bits: u32,
    /// The wheel is created when the heap reaches this number of timers.
    pub(super) wheel_threshold: usize,
}

pub(super) struct Wheel {
    /// Level 0 is the ring.
    levels: Vec<Level>,
    buckets: Buckets,
    len: usize,
    /// The number of timers above the ring. While it is zero, the levels above do not advance.
    above_ring: usize,
    /// The slots of cancelled timers that are still in their buckets.
    pending_removals: Vec<u32>,
    touched: u64,
    /// The number of touched entries at the last [`look`](Self::look).
    seen: u64,
}

struct Level {
    /// A deadline belongs to the bucket with the number `deadline >> shift`.
    shift: u32,
    /// The number of the first bucket that may hold entries. Numbers do not wrap around at `len`.
    base: u64,
    /// The number of buckets, and the index of the first of them in [`Wheel::buckets`]. The bucket
    /// with the number `n` has the index `offset + n % len`.
    len: usize,
    offset: usize,
}

impl Level {
    /// Advances the base to `number`, unless it is there already or beyond.
    fn advance_base(&mut self, number: u64) {
        self.base = self.base.max(number);
    }

    /// Returns the number after the last bucket.
    #[inline]
    fn end(&self) -> u64 {
        self.base + self.len as u64
    }

    /// Returns the index of the bucket with this number.
    #[inline]
    fn bucket(&self, number: u64) -> usize {
        self.offset + (number as usize & (self.len - 1))
    }

    /// Returns the number of the first bucket in `number..end` that is not empty.
    fn first_occupied(&self, buckets: &Buckets, mut number: u64, end: u64) -> Option<u64> {
        let end = end.min(self.end());
        while number < end {
            // The buckets with numbers below `stop` are adjacent in memory.
            let stop = end.min((number | (self.len as u64 - 1)) + 1);
            let from = self.bucket(number);
            if let Some(found) = buckets.first_occupied(from..from + (stop - number) as usize) {
                return Some(number + (found - from) as u64);
            }
            number = stop;
        }
        None
    }
}

impl Wheel {
    /// Creates a wheel for deadlines from `now` on.
    pub(super) fn new(shape: Shape, now: u64) -> Self {
        let (mut shift, mut bits) = (shape.width_bits, shape.ring_bits);
        let mut levels = Vec::new();
        let mut offset = 0;
        loop {
            levels.push(Level {
                shift,
                base: 0,
                len: 1 << bits,
                offset,
            });
            offset += 1 << bits;
            if shift + bits >= u64::BITS {
                break;
            }
            shift += bits - 1;
            bits = shape.level_bits;
        }
        levels[0].base = now >> shape.width_bits;
        Self {
            levels,
            buckets: Buckets::new(offset),
            len: 0,
            above_ring: 0,
            pending_removals: Vec::with_capacity(REMOVAL_BATCH),
            touched: 0,
            seen: 0,
        }
    }

    /// Returns the start of the first bucket of the ring. Later deadlines belong in the wheel.
    pub(super) fn start(&self) -> u64 {
        let Level { base, shift, .. } = self.levels[0];
        base.checked_mul(1 << shift).unwrap_or(NEVER)
    }

    /// Returns the number of entries, including timers whose removal is deferred.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of chunks.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.buckets.capacity()
    }

    /// Returns the number of entries put into buckets and loaded.
    pub(super) fn touched(&self) -> u64 {
        self.touched
    }

    /// Returns `true` if the ring starts after the bucket that follows `now`. This happens only
    /// after time went back.
    pub(super) fn is_ahead_of(&self, now: u64) -> bool {
        let ring = &self.levels[0];
        ring.base > (now >> ring.shift) + 1
    }

    /// Restarts the ring at the bucket of `now` if the wheel is empty, and returns `true` if it is.
    #[cold]
    pub(super) fn rebase_if_empty<T>(&mut self, slots: &mut Slots<T>, now: u64) -> bool {
        self.flush_removals(slots);
        if self.len == 0 {
            let ring = &mut self.levels[0];
            ring.base = now >> ring.shift;
        }
        self.len == 0
    }

    /// Adds a timer to the bucket of its deadline.
    #[inline]
    pub(super) fn insert<T>(&mut self, slot: &mut Slot<T>, index: u32) {
        debug_assert!(
            self.start() <= slot.deadline,
            "the deadline {} is before the start {} of the wheel",
            slot.deadline,
            self.start()
        );
        let ring = &self.levels[0];
        let number = slot.deadline >> ring.shift;
        let bucket = ring.bucket(number);
        let item = Item::new(slot.deadline, index);
        if number < ring.end()
            && let Some(address) = self.buckets.append(bucket, item, slot.sequence)
        {
            self.count_added(slot, address);
        } else {
            self.push(slot, index);
        }
    }

    /// Adds a timer to the bucket of its deadline, which may be beyond the ring, and which may be
    /// full so far.
    #[inline(never)]
    fn push<T>(&mut self, slot: &mut Slot<T>, index: u32) {
        let deadline = slot.deadline;
        let mut level = &self.levels[0];
        if deadline >> level.shift >= level.end() {
            level = self.level_above(deadline);
        }
        let bucket = level.bucket(deadline >> level.shift);
        let item = Item::new(deadline, index);
        let address = self.buckets.push(bucket, item, slot.sequence);
        self.count_added(slot, address);
    }

    #[inline]
    fn count_added<T>(&mut self, slot: &mut Slot<T>, address: u32) {
        slot.set_place(Place::Bucket(address));
        self.len += 1;
        self.touched += 1;
    }

    /// Returns the level for a deadline beyond the ring.
    fn level_above(&mut self, deadline: u64) -> &Level {
        if self.above_ring == 0 {
            let mut shift = self.levels[0].shift;
            let mut base = self.levels[0].end();
            for level in &mut self.levels[1..] {
                level.base = base >> (level.shift - shift);
                shift = level.shift;
                base = level.end();
            }
        }
        self.above_ring += 1;
        let top = &self.levels[self.levels.len() - 1];
        let reaches = |level: &&Level| deadline >> level.shift < level.end();
        self.levels[1..].iter().find(reaches).unwrap_or(top)
    }

    /// Removes the item at `address` from its bucket.
    #[inline]
    pub(super) fn remove<T>(&mut self, slots: &mut Slots<T>, address: u32) {
        let (bucket, moved) = self.buckets.remove(address);
        if let Some(moved) = moved {
            slots
                .at_mut(moved.index())
                .set_place(Place::Bucket(address));
        }
        self.above_ring -= usize::from(bucket >= self.levels[0].len);
        self.len -= 1;
    }

    /// Removes a cancelled timer from its bucket and makes its slot vacant, in a batch with others
    /// so that their cache misses overlap.
    #[inline]
    pub(super) fn defer_removal<T>(&mut self, slots: &mut Slots<T>, index: u32) {
        self.pending_removals.push(index);
        if self.pending_removals.len() == REMOVAL_BATCH {
            self.flush_removals(slots);
        }
    }

    /// Completes all deferred removals. Must run before the wheel advances.
    #[inline(never)]
    pub(super) fn flush_removals<T>(&mut self, slots: &mut Slots<T>) {
        for nth in 0..self.pending_removals.len() {
            let index = self.pending_removals[nth];
            let place = slots.at(index).place();
            slots.vacate(index);
            if let Place::Bucket(address) = place {
                self.remove(slots, address);
            }
        }
        self.pending_removals.clear();
    }

    /// Advances past `until`, or only past the first occupied bucket that starts at or before
    /// `until` and loads that into `near`. Returns `true` if it loaded a bucket.
    pub(super) fn advance<T>(&mut self, slots: &mut Slots<T>, until: u64, near: &mut Near) -> bool {
        self.flush_removals(slots);
        let until = until >> self.levels[0].shift;
        let start = self.levels[0].base;
        let found = self.find_occupied(slots, until);
        if let Some(found) = found {
            // Load before advancing: afterwards, the same bucket stands for a time one ring later.
            self.load_bucket(slots, found, near);
        }
        let passed = found.unwrap_or(until);
        self.levels[0].base = passed + 1;
        if self.above_ring > 0 {
            self.pass_wide_buckets(passed);
            self.move_down_share(slots, passed + 1 - start);
        }
        found.is_some()
    }

    /// Returns the start of the first step of the ring that loads a bucket or moves entries down.
    pub(super) fn first_step(&self) -> Option<u64> {
        let ring = &self.levels[0];
        let mut first = ring.first_occupied(&self.buckets, ring.base, NEVER);
        if self.above_ring > 0 {
            for (nth, level) in self.levels.iter().enumerate().skip(1) {
                let found = level.first_occupied(&self.buckets, level.base, NEVER);
                let fits = found.map(|number| self.fits_from(nth, number));
                // The ring is there after the step before.
                let step = fits.map(|fits| fits.saturating_sub(1).max(ring.base));
                first = first.into_iter().chain(step).min();
            }
        }
        first.map(|number| number << ring.shift)
    }

    /// Returns the base of the ring from which on a wide bucket fits into the level below.
    fn fits_from(&self, level: usize, number: u64) -> u64 {
        let below = self.levels[..level].iter().rev();
        let (_, number) = below.fold(
            (self.levels[level].shift, number + 1),
            |(shift, end), below| {
                let end = end << (shift - below.shift);
                (below.shift, end.saturating_sub(below.len as u64))
            },
        );
        number
    }

    /// Returns the earliest deadline in the wheel.
    pub(super) fn next_deadline<T>(&self, slots: &Slots<T>) -> Option<u64> {
        let mut first = None;
        for level in &self.levels {
            // A wide bucket that starts later holds nothing earlier.
            let until = first.unwrap_or(NEVER) >> level.shift;
            let found = self.first_of(level, until, slots);
            first = first.into_iter().chain(found).min();
        }
        first
    }

    /// Returns the first deadline in the buckets of a level up to number `until`.
    fn first_of<T>(&self, level: &Level, until: u64, slots: &Slots<T>) -> Option<u64> {
        let end = until.saturating_add(1);
        let mut from = level.base;
        // A bucket may hold nothing but cancelled timers.
        while let Some(number) = level.first_occupied(&self.buckets, from, end) {
            let items = self.buckets.items(level.bucket(number));
            let alive = items.filter(|item| slots.at(item.index()).value.is_some());
            let first = alive.map(|item| slots.at(item.index()).deadline).min();
            if first.is_some() {
                return first;
            }
            from = number + 1;
        }
        None
    }

    /// Returns the number of the first occupied bucket of the ring up to number `until`.
    ///
    /// First moves down any wide bucket that may hold an earlier timer.
    fn find_occupied<T>(&mut self, slots: &mut Slots<T>, until: u64) -> Option<u64> {
        loop {
            let ring = &self.levels[0];
            let mut first = ring.first_occupied(&self.buckets, ring.base, until + 1);
            if self.above_ring == 0 {
                return first;
            }
            let mut hidden_in = 0;
            for level in 1..self.levels.len() {
                let shift = self.shift_from_ring(level);
                let end = (first.unwrap_or(until) >> shift) + 1;
                let wide = &self.levels[level];
                if let Some(number) = wide.first_occupied(&self.buckets, wide.base, end) {
                    first = Some(number << shift);
                    hidden_in = level;
                }
            }
            if hidden_in == 0 {
                return first;
            }
            // All buckets before this one are empty, on this level and on every level below.
            for level in 0..=hidden_in {
                let number = first? >> self.shift_from_ring(level);
                self.levels[level].advance_base(number);
            }
            self.move_down(slots, hidden_in, u64::MAX);
        }
    }

    /// Moves past all wide buckets that start at or before number `number` of the ring. Their
    /// entries have moved down.
    fn pass_wide_buckets(&mut self, number: u64) {
        for level in 1..self.levels.len() {
            let next = (number >> self.shift_from_ring(level)) + 1;
            self.levels[level].advance_base(next);
        }
    }

    /// Returns the number of bits by which to shift a ring bucket number to get one of `level`.
    fn shift_from_ring(&self, level: usize) -> u32 {
        self.levels[level].shift - self.levels[0].shift
    }

    /// Moves down the share of entries that is due after the ring advanced by `steps` buckets.
    fn move_down_share<T>(&mut self, slots: &mut Slots<T>, steps: u64) {
        if steps == 0 {
            return;
        }
        for level in (1..self.levels.len()).rev() {
            let Level { shift, base, .. } = self.levels[level];
            let below = &self.levels[level - 1];
            let fits = (base + 1) << (shift - below.shift) <= below.end();
            if !fits {
                continue;
            }
            // Above level 1, finish two buckets of the level below early, because that level starts
            // to move its own first bucket ahead of time.
            let margin = match level {
                1 => 0,
                _ => 2 << self.shift_from_ring(level - 1),
            };
            let left = (base << self.shift_from_ring(level)).saturating_sub(self.levels[0].base);
            let left = left.checked_sub(margin).unwrap_or(left).max(1);
            // The ring may have passed many empty buckets before that in one go.
            let ring = self.levels[0].base;
            let since = ring.saturating_sub(self.fits_from(level, base));
            let steps = steps.min(since + 1);
            let len = u64::from(self.buckets.len(self.levels[level].bucket(base)));
            self.move_down(slots, level, len.saturating_mul(steps).div_ceil(left));
        }
    }

    /// Moves down up to `most` entries of the first bucket of `level`, and moves past the bucket
    /// once it is empty.
    fn move_down<T>(&mut self, slots: &mut Slots<T>, level: usize, most: u64) {
        let first = self.levels[level].base;
        let bucket = self.levels[level].bucket(first);
        for _ in 0..most {
            let Some(item) = self.buckets.pop(bucket) else {
                break;
            };
            self.insert(slots.at_mut(item.index()), item.index());
            self.above_ring -= 1;
            self.len -= 1;
        }
        if self.buckets.len(bucket) == 0 {
            self.levels[level].base = first + 1;
        }
    }

    /// Looks for memory that was not needed since the last look, and returns the number of entries added since
    /// then.
    pub(super) fn look(&mut self) -> u64 {
        self.buckets.look();
        self.touched - mem::replace(&mut self.seen, self.touched)
    }

    pub(super) fn has_spare_pages(&self) -> bool {
        self.buckets.has_spare_pages()
    }

    /// Gives back some memory that was not needed.
    pub(super) fn free_page(&mut self) {
        self.buckets.free_page();
    }

    /// Takes any timer out of a wheel that is not used any more, and returns its index.
    pub(super) fn pop(&mut self) -> Option<u32> {
        let bucket = self.buckets.first_occupied(0..self.buckets.count())?;
        self.buckets.pop(bucket).map(Item::index)
    }

    /// Gives back some memory of a wheel that is not used any more, and returns `true` if there is more.
    pub(super) fn dismantle(&mut self) -> bool {
        self.buckets.dismantle()
    }

    fn load_bucket<T>(&mut self, slots: &Slots<T>, number: u64, near: &mut Near) {
        let ring = &self.levels[0];
        let (buckets, bucket) = (&mut self.buckets, ring.bucket(number));
        let len = buckets.len(bucket);
        let width_bits = (!buckets.is_sorted(bucket)).then_some(ring.shift);
        near.load_list(slots, number << ring.shift, width_bits, |list| {
            buckets.drain(bucket, list);
        });
        self.len -= len as usize;
        self.touched += u64::from(len);
    }
}

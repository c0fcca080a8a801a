//! What is far: buckets by time, appended to, emptied as their time comes.
//!
//! ```text
//!            base                base + len
//! ring        │▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│                  a bucket is about a frame wide
//! level 1               base│▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│      a bucket is half a ring wide
//! level 2                          base│▒▒▒▒▒▒▒▒▒ …   a bucket is half a level 1 wide
//! ```
//!
//! A level takes what lies beyond the end of the one below. Its first bucket is moved down, a few
//! entries with each step of the ring, from when it fits below as a whole until its time begins:
//! since it is only half as wide as the level below, there is that half to do it in.

use alloc::vec::Vec;

use super::{
    NEVER,
    bucket::{Buckets, Item, prefetch},
    near::Near,
    slots::{Place, Slot, Slots},
};

/// So many timers at most are taken out of their buckets at a time.
const REMOVALS: usize = 16;

/// The sizes of a queue, in bits where they are powers of two.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The width of a bucket of the ring, in units of a deadline; at most 32.
    pub(super) width_bits: u32,
    /// The number of buckets in the ring.
    pub(super) ring_bits: u32,
    /// The number of buckets in each level above.
    pub(super) level_bits: u32,
    /// Up to so many timers the heap does it alone.
    pub(super) heap_only: usize,
}

pub(super) struct Wheel {
    /// The ring is level 0.
    levels: Vec<Level>,
    buckets: Buckets,
    len: usize,
    /// How many of these wait above the ring. While there are none, the levels above stand still.
    above: usize,
    /// The slots of timers that have been taken, but not yet out of their buckets.
    removals: Vec<u32>,
    /// How far the next bucket has been fetched into the cache.
    prefetched: u32,
    touched: u64,
}

struct Level {
    /// A deadline belongs to the bucket of this number: shifted by so many bits.
    shift: u32,
    /// The first bucket that has not been emptied for good. Numbers count on for ever.
    base: u64,
    /// How many buckets there are, and which is the first of them in [`Wheel::buckets`]. A
    /// bucket's place among them is its number modulo the length.
    len: usize,
    offset: usize,
}

impl Level {
    /// Begins at the bucket of this number, if it did not begin later.
    fn move_on(&mut self, number: u64) {
        self.base = self.base.max(number);
    }

    /// The number of the first bucket that is out of reach.
    #[inline]
    fn end(&self) -> u64 {
        self.base + self.len as u64
    }

    /// Which bucket has this number.
    #[inline]
    fn bucket(&self, number: u64) -> usize {
        self.offset + (number as usize & (self.len - 1))
    }

    /// The number of the first bucket from `number` up to but not including `end` that has
    /// something in it.
    fn first_occupied(&self, buckets: &Buckets, mut number: u64, end: u64) -> Option<u64> {
        let end = end.min(self.end());
        while number < end {
            // The numbers up to here lie side by side.
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
    /// A wheel for deadlines from `now` on.
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
            above: 0,
            removals: Vec::with_capacity(REMOVALS),
            prefetched: 0,
            touched: 0,
        }
    }

    /// When the time of the first bucket begins: what is due from then on belongs here.
    pub(super) fn begins(&self) -> u64 {
        let Level { base, shift, .. } = self.levels[0];
        base.checked_mul(1 << shift).unwrap_or(NEVER)
    }

    /// Entries touched since the wheel was made.
    pub(super) fn touched(&self) -> u64 {
        self.touched
    }

    /// Whether the ring begins later than after the bucket of `now`: only if the time has gone back.
    pub(super) fn is_ahead_of(&self, now: u64) -> bool {
        let ring = &self.levels[0];
        ring.base > (now >> ring.shift) + 1
    }

    /// Begins at `now` again if nothing is in here, and says whether it does.
    #[cold]
    pub(super) fn rebase_if_empty<T>(&mut self, slots: &mut Slots<T>, now: u64) -> bool {
        self.flush_removals(slots);
        if self.len == 0 {
            let ring = &mut self.levels[0];
            ring.base = (now >> ring.shift) + 1;
        }
        self.len == 0
    }

    /// Puts a timer into the bucket of its deadline.
    #[inline]
    pub(super) fn insert<T>(&mut self, slot: &mut Slot<T>, index: u32) {
        debug_assert!(self.begins() <= slot.deadline);
        let ring = &self.levels[0];
        let level = if slot.deadline >> ring.shift < ring.end() {
            ring
        } else {
            self.level_above(slot.deadline)
        };
        let time = slot.deadline & ((1 << level.shift) - 1);
        let bucket = level.bucket(slot.deadline >> level.shift);
        let address = self.buckets.push(bucket, Item::new(time as u32, index));
        slot.set_place(Place::Bucket(address));
        self.len += 1;
        self.touched += 1;
    }

    /// The level for a deadline beyond the ring.
    fn level_above(&mut self, deadline: u64) -> &Level {
        if self.above == 0 {
            let mut shift = self.levels[0].shift;
            let mut base = self.levels[0].end();
            for level in &mut self.levels[1..] {
                level.base = base >> (level.shift - shift);
                shift = level.shift;
                base = level.end();
            }
        }
        self.above += 1;
        let top = &self.levels[self.levels.len() - 1];
        let reaches = |level: &&Level| deadline >> level.shift < level.end();
        self.levels[1..].iter().find(reaches).unwrap_or(top)
    }

    /// Takes the item at `address` out of its bucket.
    pub(super) fn remove<T>(&mut self, slots: &mut Slots<T>, address: u32) {
        let (bucket, moved) = self.buckets.remove(address);
        if let Some(moved) = moved {
            slots.set_place(moved.index(), Place::Bucket(address));
            self.touched += 1;
        }
        self.above -= usize::from(bucket >= self.levels[0].len);
        self.len -= 1;
        self.touched += 1;
    }

    /// Takes a timer that has been taken from its slot out of its bucket, and makes the slot
    /// vacant: not now, but together with others, for their cache misses to overlap.
    pub(super) fn defer_removal<T>(&mut self, slots: &mut Slots<T>, index: u32) {
        self.removals.push(index);
        if self.removals.len() == REMOVALS {
            self.flush_removals(slots);
        }
    }

    /// Does what [`defer_removal`](Self::defer_removal) has put off. It must be before the wheel
    /// moves on.
    fn flush_removals<T>(&mut self, slots: &mut Slots<T>) {
        if self.removals.is_empty() {
            return;
        }
        let address = |slots: &Slots<T>, index| match slots.at(index).place() {
            Place::Bucket(address) => Some(address),
            Place::Idle | Place::Heap(_) => None,
        };
        let mut lasts = [None; REMOVALS];
        for (last, &index) in lasts.iter_mut().zip(&self.removals) {
            *last =
                address(slots, index).and_then(|address| self.buckets.prefetch_removal(address));
        }
        for last in lasts.iter().flatten() {
            prefetch(slots.at(last.index()).deadline);
        }
        for nth in 0..self.removals.len() {
            let index = self.removals[nth];
            if let Some(address) = address(slots, index) {
                self.remove(slots, address);
            }
            slots.vacate(index);
        }
        self.removals.clear();
    }

    /// Moves on to the first bucket of the ring that is occupied and whose time begins at or
    /// before `until`, brings it near, and says whether there was one.
    pub(super) fn advance<T>(&mut self, slots: &mut Slots<T>, until: u64, near: &mut Near) -> bool {
        self.flush_removals(slots);
        let until = until >> self.levels[0].shift;
        let start = self.levels[0].base;
        let found = self.find(slots, until);
        if let Some(found) = found {
            // Drained first: when the wheel has moved on, the same bucket is for a time a ring later.
            self.load(slots, found, near);
        }
        let passed = found.unwrap_or(until);
        self.levels[0].base = passed + 1;
        if self.above > 0 {
            self.leave_behind(passed);
            self.bring_down(slots, passed + 1 - start);
        }
        self.prefetched = self.buckets.last_chunk(self.levels[0].bucket(passed + 1));
        found.is_some()
    }

    /// Fetches a piece of the bucket that comes next.
    #[inline]
    pub(super) fn prefetch(&mut self) {
        self.prefetched = self.buckets.prefetch_chunk(self.prefetched);
    }

    /// The earliest deadline in here.
    pub(super) fn next_deadline<T>(&self, slots: &Slots<T>) -> Option<u64> {
        let first_of = |level: &Level| {
            let mut from = level.base;
            // Timers to be removed may be all that is in a bucket.
            while let Some(number) = level.first_occupied(&self.buckets, from, level.end()) {
                let items = self.buckets.items(level.bucket(number));
                let alive = items.filter(|item| !slots.is_taken(item.index()));
                let first = alive.map(|item| slots.at(item.index()).deadline).min();
                if first.is_some() {
                    return first;
                }
                from = number + 1;
            }
            None
        };
        self.levels.iter().filter_map(first_of).min()
    }

    /// Finds the first occupied bucket of the ring up to number `until`, and moves down whatever
    /// wider bucket hides one.
    fn find<T>(&mut self, slots: &mut Slots<T>, until: u64) -> Option<u64> {
        loop {
            let ring = &self.levels[0];
            let mut first = ring.first_occupied(&self.buckets, ring.base, until + 1);
            if self.above == 0 {
                return first;
            }
            let mut hidden_in = 0;
            for level in 1..self.levels.len() {
                let shift = self.shift_of(level);
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
            // All before that is empty, on its own level and on every level below.
            for level in 0..=hidden_in {
                let number = first? >> self.shift_of(level);
                self.levels[level].move_on(number);
            }
            self.move_down(slots, hidden_in, u64::MAX);
        }
    }

    /// Gives up the wide buckets that begin at or before number `number` of the ring. What was in
    /// them has come down.
    fn leave_behind(&mut self, number: u64) {
        for level in 1..self.levels.len() {
            let next = (number >> self.shift_of(level)) + 1;
            self.levels[level].move_on(next);
        }
    }

    /// From a number of the ring to a number of `level`.
    fn shift_of(&self, level: usize) -> u32 {
        self.levels[level].shift - self.levels[0].shift
    }

    /// Where the first bucket of a level begins, as a number of the level below. What is due
    /// before that has come down.
    fn opened(&self, level: usize) -> u64 {
        match self.levels.get(level) {
            Some(above) => above.base << (above.shift - self.levels[level - 1].shift),
            None => u64::MAX,
        }
    }

    /// Does a fair share of moving down, after `steps` buckets of the ring.
    fn bring_down<T>(&mut self, slots: &mut Slots<T>, steps: u64) {
        if steps == 0 {
            return;
        }
        for level in (1..self.levels.len()).rev() {
            let Level { shift, base, .. } = self.levels[level];
            let below = &self.levels[level - 1];
            let fits = (base + 1) << (shift - below.shift) <= below.end();
            if !fits || base >= self.opened(level + 1) {
                continue;
            }
            // Above level 1 be early by a bucket or two of the level below, which begins with
            // its own share before its time has come.
            let margin = match level {
                1 => 0,
                _ => 2 << self.shift_of(level - 1),
            };
            let left = (base << self.shift_of(level)).saturating_sub(self.levels[0].base);
            let left = left.checked_sub(margin).unwrap_or(left).max(1);
            let len = u64::from(self.buckets.len(self.levels[level].bucket(base)));
            self.move_down(slots, level, len.saturating_mul(steps).div_ceil(left));
        }
    }

    /// Moves up to `most` of the timers in the first bucket of `level` down, and closes it when it
    /// is empty.
    fn move_down<T>(&mut self, slots: &mut Slots<T>, level: usize, most: u64) {
        let first = self.levels[level].base;
        let bucket = self.levels[level].bucket(first);
        for _ in 0..most {
            let Some(item) = self.buckets.pop(bucket) else {
                break;
            };
            self.insert(slots.at_mut(item.index()), item.index());
            self.above -= 1;
            self.len -= 1;
        }
        if self.buckets.len(bucket) == 0 {
            self.levels[level].base = first + 1;
        }
    }

    fn load<T>(&mut self, slots: &Slots<T>, number: u64, near: &mut Near) {
        let ring = &self.levels[0];
        let (buckets, bucket) = (&mut self.buckets, ring.bucket(number));
        let len = buckets.len(bucket);
        near.load(slots, number << ring.shift, |run| {
            buckets.drain(bucket, run);
        });
        self.len -= len as usize;
        self.touched += u64::from(len);
    }
}

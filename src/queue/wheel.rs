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

use alloc::{boxed::Box, vec, vec::Vec};

use super::{
    bucket::{Bucket, Buckets, Item},
    near::Near,
    slots::{Place, Slots},
};

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
    levels: Vec<Level>,
    buckets: Buckets,
    len: usize,
    touched: u64,
}

struct Level {
    /// A deadline belongs to the bucket of this number: shifted by so many bits.
    shift: u32,
    /// The first bucket that has not been emptied for good. Numbers count on for ever; a bucket's
    /// place in the array is its number modulo the length.
    base: u64,
    buckets: Box<[Bucket]>,
    occupied: Box<[u64]>,
}

impl Level {
    fn new(shift: u32, bits: u32) -> Self {
        Self {
            shift,
            base: 0,
            buckets: vec![Bucket::EMPTY; 1 << bits].into(),
            occupied: vec![0; (1 << bits) / 64 + 1].into(),
        }
    }

    /// Begins at the bucket of this number, if it did not begin later.
    fn move_on(&mut self, number: u64) {
        self.base = self.base.max(number);
    }

    /// The number of the first bucket that is out of reach.
    fn end(&self) -> u64 {
        self.base + self.buckets.len() as u64
    }

    fn at(&self, number: u64) -> usize {
        number as usize & (self.buckets.len() - 1)
    }

    fn note(&mut self, at: usize) {
        let bit = 1 << (at % 64);
        if self.buckets[at].is_empty() {
            self.occupied[at / 64] &= !bit;
        } else {
            self.occupied[at / 64] |= bit;
        }
    }

    /// The number of the first bucket from `base` up to but not including `end` that has
    /// something in it.
    fn first_occupied(&self, end: u64) -> Option<u64> {
        let end = end.min(self.end());
        let mut number = self.base;
        while number < end {
            let at = self.at(number);
            let bits = self.occupied[at / 64] >> (at % 64);
            if bits != 0 {
                let found = number + u64::from(bits.trailing_zeros());
                // Short rings fill less than a word, and long ones end with one.
                return (found < end).then_some(found);
            }
            number += (64 - at as u64 % 64).min(self.buckets.len() as u64 - at as u64);
        }
        None
    }
}

impl Wheel {
    /// A wheel for deadlines from `now` on.
    pub(super) fn new(shape: Shape, now: u64) -> Self {
        let mut levels = vec![Level::new(shape.width_bits, shape.ring_bits)];
        let mut shift = shape.width_bits + shape.ring_bits - 1;
        loop {
            levels.push(Level::new(shift, shape.level_bits));
            if shift + shape.level_bits >= u64::BITS {
                break;
            }
            shift += shape.level_bits - 1;
        }
        let mut wheel = Self {
            levels,
            buckets: Buckets::new(),
            len: 0,
            touched: 0,
        };
        wheel.start_at(now);
        wheel
    }

    /// Whether a timer due at `deadline` belongs here, not to what is near.
    #[inline]
    pub(super) fn takes(&self, deadline: u64) -> bool {
        deadline >> self.levels[0].shift >= self.levels[0].base
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Entries touched since the wheel was made.
    pub(super) fn touched(&self) -> u64 {
        self.touched
    }

    /// Moves the beginning of an empty wheel on to `now`.
    pub(super) fn start_at(&mut self, now: u64) {
        debug_assert!(self.is_empty());
        let mut base = now >> self.levels[0].shift;
        let mut shift = self.levels[0].shift;
        for level in &mut self.levels {
            base >>= level.shift - shift;
            shift = level.shift;
            level.move_on(base);
            base = level.end();
        }
    }

    /// Puts the timer in the slot `index` into the bucket of its deadline.
    pub(super) fn insert<T>(&mut self, slots: &mut Slots<T>, index: u32) {
        let slot = slots.at_mut(index);
        debug_assert!(self.levels[0].base <= slot.deadline >> self.levels[0].shift);
        let top = self.levels.len() - 1;
        let fits = |level: &Level| slot.deadline >> level.shift < level.end();
        let at_level = self.levels[..top].iter().position(fits).unwrap_or(top);
        let level = &mut self.levels[at_level];
        let at = level.at(slot.deadline >> level.shift);
        let time = slot.deadline & ((1 << level.shift) - 1);
        let item = Item::new(time as u32, index);
        slot.address = self.buckets.push(&mut level.buckets[at], item);
        slot.place = Place::Wheel(at_level as u8);
        level.note(at);
        self.len += 1;
        self.touched += 1;
    }

    /// Takes the timer in the slot `index` out of its bucket at `level`.
    pub(super) fn remove<T>(&mut self, slots: &mut Slots<T>, index: u32, level: u8) {
        let slot = slots.at_mut(index);
        let level = &mut self.levels[usize::from(level)];
        let at = level.at(slot.deadline >> level.shift);
        slot.place = Place::Idle;
        let address = slot.address;
        if let Some(moved) = self.buckets.remove(&mut level.buckets[at], address) {
            slots.at_mut(moved.index()).address = address;
            self.touched += 1;
        }
        level.note(at);
        self.len -= 1;
        self.touched += 1;
    }

    /// Moves on to the first bucket of the ring that is occupied and whose time begins at or
    /// before `until`, brings it near, and says whether there was one.
    pub(super) fn advance<T>(&mut self, slots: &mut Slots<T>, until: u64, near: &mut Near) -> bool {
        let until = until >> self.levels[0].shift;
        let start = self.levels[0].base;
        let found = self.find(slots, until);
        if let Some(found) = found {
            // Emptied before anything comes down: the bucket is now the last in reach.
            self.load(slots, found, near);
            self.levels[0].move_on(found + 1);
        } else {
            self.levels[0].move_on(until);
        }
        self.leave_behind(found.unwrap_or(until));
        self.bring_down(slots, self.levels[0].base - start);
        found.is_some()
    }

    /// The earliest deadline in here.
    pub(super) fn next_deadline<T>(&self, slots: &Slots<T>) -> Option<u64> {
        let firsts = self.levels.iter().filter_map(|level| {
            let first = level.first_occupied(level.end())?;
            let items = self.buckets.items(&level.buckets[level.at(first)]);
            items.map(|item| slots.at(item.index()).deadline).min()
        });
        firsts.min()
    }

    /// Finds the first occupied bucket of the ring up to number `until`, and moves down whatever
    /// wider bucket hides one.
    fn find<T>(&mut self, slots: &mut Slots<T>, until: u64) -> Option<u64> {
        if self.is_empty() {
            self.start_at(until << self.levels[0].shift);
            return None;
        }
        loop {
            let mut first = self.levels[0].first_occupied(until + 1);
            let mut hidden_in = 0;
            for level in 1..self.levels.len() {
                let shift = self.shift_of(level);
                let end = (first.unwrap_or(until) >> shift) + 1;
                if let Some(number) = self.levels[level].first_occupied(end) {
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
            let begins = base << self.shift_of(level);
            let left = begins.saturating_sub(self.levels[0].base + margin).max(1);
            let len = u64::from(self.levels[level].buckets[self.levels[level].at(base)].len());
            self.move_down(slots, level, len.saturating_mul(steps).div_ceil(left));
        }
    }

    /// Moves up to `most` of the timers in the first bucket of `level` down, and closes it when it
    /// is empty.
    fn move_down<T>(&mut self, slots: &mut Slots<T>, level: usize, most: u64) {
        let first = self.levels[level].base;
        let at = self.levels[level].at(first);
        let mut bucket = self.levels[level].buckets[at];
        for _ in 0..most {
            let Some(item) = self.buckets.pop(&mut bucket) else {
                break;
            };
            self.len -= 1;
            self.insert(slots, item.index());
        }
        self.levels[level].buckets[at] = bucket;
        self.levels[level].note(at);
        if bucket.is_empty() {
            self.levels[level].base = first + 1;
        }
    }

    fn load<T>(&mut self, slots: &Slots<T>, number: u64, near: &mut Near) {
        let ring = &mut self.levels[0];
        let at = ring.at(number);
        let (buckets, bucket) = (&mut self.buckets, &mut ring.buckets[at]);
        let len = bucket.len();
        near.load(slots, number << ring.shift, |run| {
            buckets.drain(bucket, run);
        });
        ring.note(at);
        self.len -= len as usize;
        self.touched += u64::from(len);
    }
}

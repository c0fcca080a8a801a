//! How a queue gives memory back.

use alloc::{boxed::Box, vec::Vec};

use super::{NEVER, TimerQueue, heap::Entry, wheel::Wheel};

/// What a queue knows about the memory that it does not need.
#[derive(Default)]
pub(super) struct Trim {
    /// The number of frames since the last look.
    frames: u32,
    /// Whether the last look has found pages to give back.
    has_spare_pages: bool,
    /// A wheel that is not used any more.
    pub(super) retired: Option<Box<Wheel>>,
}

/// Memory that is not needed for so many frames is given back.
const FRAMES: u32 = if cfg!(test) { 2 } else { 64 };

impl<T> TimerQueue<T> {
    /// Gives back some of the memory that was not needed recently. Call this once per frame.
    ///
    /// Memory that was not needed for about a hundred calls is given back, a page of two thousand timers per call.
    /// So no call takes long, and a queue whose length goes up and down allocates nothing. A
    /// queue for which this is not called keeps the memory of its peak.
    ///
    /// # Time complexity
    ///
    /// *O*(1).
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::queue::TimerQueue;
    /// # let mut queue = TimerQueue::new();
    /// # queue.insert(5, 'a');
    /// # let now = 5;
    /// // Once per frame:
    /// while let Some(due) = queue.pop_due(now) {
    ///     println!("{} is due", *due);
    /// }
    /// queue.trim();
    /// ```
    pub fn trim(&mut self) {
        self.trim_after(1);
    }

    /// Does the same as [`trim`](Self::trim), so many frames after the last time. Returns `true` if there is more to
    /// give back at once.
    #[inline]
    pub(crate) fn trim_after(&mut self, frames: u32) -> bool {
        let trim = &mut self.trim;
        trim.frames = trim.frames.saturating_add(frames);
        (trim.has_spare_pages || trim.frames >= FRAMES) && self.give_back()
    }

    #[cold]
    fn give_back(&mut self) -> bool {
        if self.trim.has_spare_pages {
            self.slots.free_page();
            if let Some(wheel) = &mut self.wheel {
                wheel.free_page();
            }
            if self.trim.retired.as_mut().is_some_and(|it| !it.dismantle()) {
                self.trim.retired = None;
            }
        } else {
            self.trim.frames = 0;
            self.look();
        }
        let wheel = self.wheel.as_ref();
        self.trim.has_spare_pages = self.slots.has_spare_pages()
            || self.trim.retired.is_some()
            || wheel.is_some_and(|wheel| wheel.has_spare_pages());
        self.trim.has_spare_pages
    }

    /// Looks for memory that was not needed since the last look.
    fn look(&mut self) {
        let mut waited = self.near.heap.peak() as u64;
        if let Some(wheel) = &mut self.wheel {
            wheel.flush_removals(&mut self.slots);
            waited += wheel.look();
        }
        let limit = self.shape.wheel_threshold / 8;
        if waited <= limit as u64 {
            self.retire_wheel(limit);
        }
        self.near.look();
        self.slots.look();
    }

    /// Moves the timers of the wheel to the heap if there are at most `limit`. The queue does without a wheel until it
    /// is large again.
    fn retire_wheel(&mut self, limit: usize) {
        // Without a wheel, no deadline tells the entries of the list from those of a bucket.
        if !self.near.is_list_exhausted() || self.trim.retired.is_some() {
            return;
        }
        let Some(mut wheel) = self.wheel.take_if(|wheel| wheel.len() <= limit) else {
            return;
        };
        self.wheel_start = NEVER;
        while let Some(index) = wheel.pop() {
            let deadline = self.slots.at(index).deadline;
            let entry = Entry { deadline, index };
            self.near.heap.push(&mut self.slots, entry);
            self.touched += 1;
        }
        self.touched += wheel.touched();
        self.trim.retired = Some(wheel);
    }

    /// Returns the generation at which a queue starts that takes the place of this one, or `None` if this one must
    /// stay: it has timers, or too much memory to give back at once.
    pub(crate) fn last_floor(&self) -> Option<u32> {
        let is_small = self.wheel.is_none() && self.trim.retired.is_none();
        self.slots.last_floor().filter(|_| is_small)
    }

    /// Returns `true` if the queue holds memory for few timers only.
    pub(crate) fn is_short(&self) -> bool {
        let is_small = self.wheel.is_none() && self.trim.retired.is_none();
        is_small && self.slots.is_short() && self.near.is_short()
    }

    /// Makes the keys of this queue, which is empty, different from all keys up to a
    /// [`last_floor`](Self::last_floor).
    pub(crate) fn raise_floor(&mut self, floor: u32) {
        self.slots.raise_floor(floor);
    }
}

/// Shortens the memory of a buffer that is much longer than was needed.
pub(crate) fn shrink<T>(buffer: &mut Vec<T>, needed: usize) {
    if buffer.capacity() > 4 * needed + 16 {
        buffer.shrink_to(2 * needed);
    }
}

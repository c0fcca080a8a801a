//! The queues of the clocks of a world, which come and go with the clocks.

use alloc::vec::Vec;
use core::mem;

use super::queues::ClockQueue;
use crate::queue::shrink;

/// The queues of the clocks of a world, by index.
///
/// A queue is added with the first timer of its clock, and goes when its clock does. A later queue of the same index
/// hands out other keys.
#[derive(Debug, Default)]
pub(super) struct ClockQueues {
    pages: Vec<Page>,
    /// Empty queues with their memory. A game that spawns and despawns clocks all the time allocates nothing for their
    /// queues.
    spare: Vec<ClockQueue>,
    /// The smallest number of spare queues in this period.
    least_spare: usize,
    /// The generation of the keys of a new queue. No queue that is gone has handed it out.
    floor: u32,
    /// The number of frames so far, and the index of the queue that gives memory back next.
    frame: u32,
    next: usize,
}

#[derive(Debug, Default)]
struct Page {
    queues: Vec<Option<ClockQueue>>,
    /// The number of queues.
    len: usize,
    /// The frame in which the last queue went.
    emptied: u32,
}

const PAGE: usize = 64;

/// The maximum number of spare queues.
const MAX_SPARE: usize = 256;

/// Memory that was not needed for so many frames is given back.
const FRAMES: u32 = 64;

/// The number of queues that may give memory back in a frame, and the number of indices without a queue that are
/// skipped. A page without queues counts as one, and is given back.
const VISITS: usize = 4;
const SKIPPED: usize = 32;

impl ClockQueues {
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&ClockQueue> {
        let page = self.pages.get(index / PAGE)?;
        page.queues.get(index % PAGE)?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut ClockQueue> {
        let page = self.pages.get_mut(index / PAGE)?;
        page.queues.get_mut(index % PAGE)?.as_mut()
    }

    /// Returns the queue at `index`, and adds it if it is missing.
    #[inline]
    pub(super) fn get_or_add(&mut self, index: usize) -> &mut ClockQueue {
        if self.get(index).is_none() {
            self.add(index);
        }
        self.get_mut(index).expect("the queue is there by now")
    }

    #[cold]
    fn add(&mut self, index: usize) {
        let mut queue = self.spare.pop().unwrap_or_default();
        self.least_spare = self.least_spare.min(self.spare.len());
        queue.timers.raise_floor(self.floor);
        (queue.trimmed, queue.is_forgotten) = (self.frame, false);
        let (page, place) = (index / PAGE, index % PAGE);
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, Page::default);
        }
        let page = &mut self.pages[page];
        if page.queues.len() <= place {
            page.queues.resize_with(place + 1, || None);
        }
        page.queues[place] = Some(queue);
        page.len += 1;
    }

    /// Returns the queues, each with its index.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &ClockQueue)> {
        let pages = (0..).step_by(PAGE).zip(&self.pages);
        let queues = pages.flat_map(|(first, page)| (first..).zip(&page.queues));
        queues.filter_map(|(index, queue)| Some((index, queue.as_ref()?)))
    }

    /// Removes a queue whose clock is gone, unless it has timers. A large queue gives its memory back first.
    pub(super) fn forget(&mut self, index: usize) {
        let Some(queue) = self.get_mut(index) else {
            return;
        };
        let Some(floor) = queue.timers.last_floor() else {
            queue.is_forgotten = queue.timers.is_empty();
            return;
        };
        self.floor = self.floor.max(floor);
        let page = &mut self.pages[index / PAGE];
        let forgotten = page.queues[index % PAGE].take();
        page.len -= 1;
        page.emptied = self.frame;
        if self.spare.len() < MAX_SPARE {
            self.spare
                .extend(forgotten.filter(|it| it.timers.is_short()));
        }
    }

    /// Gives back some memory that was not needed recently. Call this once per frame. Returns `true` if a new
    /// period has begun, in which buffers that were not needed may be shortened.
    pub(super) fn trim(&mut self) -> bool {
        self.frame = self.frame.wrapping_add(1);
        let begins_period = self.frame.is_multiple_of(FRAMES);
        if begins_period {
            self.spare.drain(..self.least_spare);
            self.least_spare = self.spare.len();
            shrink(&mut self.spare, self.least_spare);
        }
        let (mut visits, mut skipped) = (0, 0);
        while visits < VISITS && skipped < SKIPPED {
            let index = self.next;
            let Some(page) = self.pages.get_mut(index / PAGE) else {
                // No queue gets two visits.
                self.next = 0;
                self.drop_last_pages();
                break;
            };
            if page.len == 0 {
                if self.frame.wrapping_sub(page.emptied) >= FRAMES {
                    page.queues = Vec::new();
                }
                self.next = (index / PAGE + 1) * PAGE;
                skipped += 1;
                continue;
            }
            self.next += 1;
            let Some(Some(queue)) = page.queues.get_mut(index % PAGE) else {
                skipped += 1;
                continue;
            };
            visits += 1;
            if queue.trim(self.frame) {
                self.next = index;
                break;
            }
            if queue.is_forgotten {
                self.forget(index);
            }
        }
        begins_period
    }

    fn drop_last_pages(&mut self) {
        let is_gone = |page: &Page| page.queues.capacity() == 0;
        while self.pages.last().is_some_and(is_gone) {
            self.pages.pop();
        }
        let len = self.pages.len();
        shrink(&mut self.pages, len);
    }
}

impl ClockQueue {
    /// Gives back some memory that was not needed until this frame. Returns `true` if there is more to give back at
    /// once.
    fn trim(&mut self, frame: u32) -> bool {
        let last = mem::replace(&mut self.trimmed, frame);
        self.timers.trim_after(frame.wrapping_sub(last))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::{BTreeSet, VecDeque};

    use allocation_counter::measure;
    use bevy_ecs::prelude::*;

    use super::*;
    use crate::timer::{Kind, Timer, queued::ArmedTimer};

    fn insert(queues: &mut ClockQueues, index: usize) -> crate::queue::Key {
        let timer = ArmedTimer::new(Entity::PLACEHOLDER, Kind::Timer, &Timer::after(1.0));
        let queue = queues.get_or_add(index);
        queue.timers.insert_parked_at(0, 1, timer)
    }

    #[test]
    fn no_key_comes_back_with_a_later_clock() {
        let mut queues = ClockQueues::default();
        let mut armed = VecDeque::new();
        let mut used = BTreeSet::new();
        let mut random = 7_u64;
        for _ in 0..50_000 {
            random = random.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) + 1;
            let index = (random >> 8) as usize % 150;
            match random % 8 {
                0..4 => {
                    let key = insert(&mut queues, index);
                    assert!(used.insert((index, key)), "{key:?} was used before");
                    armed.push_back((index, key));
                }
                4 => _ = queues.trim(),
                _ if armed.len() < 80 => {}
                _ => {
                    // The clock is gone once its timers are.
                    let (index, _) = armed[random as usize / 8 % armed.len()];
                    armed.retain(|&(of, key)| {
                        let is_kept = of != index;
                        if !is_kept {
                            let queue = queues.get_mut(index).expect("it has a timer");
                            assert!(queue.timers.cancel(key).is_some());
                        }
                        is_kept
                    });
                    queues.forget(index);
                    assert!(queues.get(index).is_none_or(|it| it.timers.is_empty()));
                }
            }
            if let Some(&(index, key)) = armed.front() {
                let queue = queues.get(index);
                assert!(queue.is_some_and(|it| it.timers.get(key).is_some()));
            }
        }
    }

    #[test]
    fn queues_that_are_gone_leave_no_memory() {
        let mut queues = ClockQueues::default();
        let keys: Vec<_> = (0..10_000)
            .map(|index| insert(&mut queues, index))
            .collect();
        let mut forget = |index: usize| {
            let queue = queues.get_mut(index).expect("it has a timer");
            assert!(queue.timers.cancel(keys[index]).is_some());
            queues.forget(index);
        };
        (0..9_999).for_each(&mut forget);
        let left = |queues: &ClockQueues| -> usize {
            let pages = queues.pages.iter();
            pages.map(|page| page.queues.capacity()).sum::<usize>() + queues.spare.len()
        };
        (0..200).for_each(|_| _ = queues.trim());
        assert!(left(&queues) <= PAGE, "the last one is left");
        let queue = queues.get_mut(9_999).expect("it has a timer");
        queue.timers.cancel(keys[9_999]);
        queues.forget(9_999);
        (0..200).for_each(|_| _ = queues.trim());
        assert_eq!(left(&queues) + queues.pages.len(), 0);
    }

    #[test]
    fn clocks_that_come_and_go_allocate_nothing() {
        let mut queues = ClockQueues::default();
        let mut turn = || {
            let keys = [3, 4, 70, 3].map(|index| (index, insert(&mut queues, index)));
            queues.trim();
            for (index, key) in keys {
                queues.get_or_add(index).timers.cancel(key);
                queues.forget(index);
            }
            queues.trim();
        };
        (0..300).for_each(|_| turn());
        let turns = measure(|| (0..300).for_each(|_| turn()));
        assert_eq!(turns.count_total, 0, "{turns:?}");
    }

    /// It is too large to be given back at once.
    #[test]
    fn a_large_queue_goes_once_it_has_given_its_memory_back() {
        let mut queues = ClockQueues::default();
        let keys: Vec<_> = (0..100).map(|_| insert(&mut queues, 3)).collect();
        queues.forget(3);
        assert_eq!(queues.get(3).map(|queue| queue.timers.len()), Some(100));
        for key in keys {
            queues.get_or_add(3).timers.cancel(key);
        }
        queues.forget(3);
        assert!(queues.get(3).is_some());
        (0..100).for_each(|_| _ = queues.trim());
        assert!(queues.get(3).is_none());
    }
}

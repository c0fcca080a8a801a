//! The vacant places of an array in pages.

use alloc::{boxed::Box, vec::Vec};
use core::ops::Range;

use super::pages::PAGE;

/// The vacant places of an array in [`Pages`](super::pages::Pages).
///
/// The places that became vacant last are taken first, because they are still in the cache. All others
/// have one bit each, and the lowest is taken first. So the upper pages become empty, and can be given
/// back.
pub(super) struct Vacant {
    /// The place that became vacant last is at the end.
    recent: Vec<u32>,
    /// The number of recent places, from the first one on, that nobody has taken since the last
    /// [`look`](Self::look).
    cold: usize,
    aside: Option<Box<Aside>>,
}

/// Vacant places, with one bit each.
#[derive(Default)]
struct Aside {
    bits: Vec<[u64; WORDS]>,
    /// The number of vacant places of each page.
    counts: Vec<u32>,
    /// No page before this one has any.
    first: usize,
    /// The number of places in all pages, and the smallest number since the last look.
    count: usize,
    least: usize,
}

/// The number of words with one bit for each place of a page.
const WORDS: usize = PAGE.div_ceil(64);

/// The maximum number of recent places. A quarter of a megabyte of slots is still in the cache.
const RECENT: usize = 2 * PAGE;

/// The number of places that are prefetched at a time.
const BATCH: usize = if cfg!(test) { 3 } else { 16 };

impl Vacant {
    pub(super) fn new() -> Self {
        Self {
            recent: Vec::new(),
            cold: 0,
            aside: None,
        }
    }

    /// Returns the number of vacant places.
    pub(super) fn len(&self) -> usize {
        self.recent.len() + self.aside.as_ref().map_or(0, |aside| aside.count)
    }

    /// Takes a place. Prefetches those that are taken next, so that their cache misses overlap. Without
    /// this, a new timer takes three times as long after many timers were cancelled.
    #[inline]
    pub(super) fn pop(&mut self, prefetch: impl Fn(u32)) -> Option<u32> {
        if self.recent.len() <= self.cold {
            self.refill(prefetch);
        }
        self.recent.pop()
    }

    #[inline(never)]
    fn refill(&mut self, prefetch: impl Fn(u32)) {
        if self.recent.is_empty()
            && let Some(aside) = &mut self.aside
        {
            aside.take_lowest(&mut self.recent);
        }
        self.cold = self.recent.len().saturating_sub(BATCH);
        for &index in &self.recent[self.cold..] {
            prefetch(index);
        }
    }

    #[inline]
    pub(super) fn push(&mut self, index: u32) {
        if self.recent.len() == self.recent.capacity() {
            self.make_room();
        }
        self.recent.push(index);
    }

    #[cold]
    fn make_room(&mut self) {
        if self.recent.len() < RECENT {
            let len = (2 * self.recent.len()).clamp(4, RECENT);
            return self.recent.reserve_exact(len - self.recent.len());
        }
        let aside = self.aside.get_or_insert_default();
        for index in self.recent.drain(..RECENT / 4) {
            aside.add(index);
        }
        self.cold = self.cold.saturating_sub(RECENT / 4);
    }

    /// Adds new places, the lowest of which is taken first.
    pub(super) fn extend(&mut self, indices: Range<u32>) {
        self.recent.extend(indices.rev());
    }

    /// Starts to watch which places are taken. Returns how many pages they would fill that nobody has
    /// taken since the last look.
    pub(super) fn look(&mut self) -> usize {
        if self.len() >= PAGE {
            let aside = self.aside.get_or_insert_default();
            for index in self.recent.drain(..) {
                aside.add(index);
            }
        }
        self.cold = self.recent.len();
        self.aside.as_mut().map_or(0, |aside| {
            let unused = aside.least;
            aside.least = aside.count;
            unused / PAGE
        })
    }

    /// Returns a page that is vacant.
    pub(super) fn vacant_page(&self) -> Option<usize> {
        let mut counts = self.aside.as_ref()?.counts.iter();
        counts.rposition(|&count| count as usize == PAGE)
    }

    /// Forgets the places of a page that is vacant.
    pub(super) fn forget_page(&mut self, page: usize) {
        if let Some(aside) = &mut self.aside {
            aside.forget_page(page);
        }
    }

    /// Forgets one place of a page, so that the page is not vacant any more.
    pub(super) fn pin(&mut self, page: usize) {
        if let Some(aside) = &mut self.aside {
            aside.take(page, 1, |_| ());
        }
    }

    /// Makes all places recent. They are those of one page.
    pub(super) fn gather(&mut self) {
        if let Some(mut aside) = self.aside.take() {
            for page in 0..aside.counts.len() {
                aside.take(page, PAGE, |index| self.recent.push(index));
            }
        }
    }

    /// Returns the recent places that nobody has taken since the last look.
    pub(super) fn unused(&self) -> &[u32] {
        &self.recent[..self.cold]
    }

    /// Lets the recent places below `end` be taken first.
    pub(super) fn prefer_below(&mut self, end: u32) {
        self.recent.sort_unstable_by_key(|&index| index < end);
    }

    /// Forgets the recent places from `end` on.
    pub(super) fn keep_below(&mut self, end: u32) {
        self.recent.retain(|&index| index < end);
        self.recent.shrink_to_fit();
        self.cold = 0;
    }
}

impl Aside {
    fn add(&mut self, index: u32) {
        let (page, place) = (index as usize / PAGE, index as usize % PAGE);
        if self.bits.len() <= page {
            self.bits.resize(page + 1, [0; WORDS]);
            self.counts.resize(page + 1, 0);
        }
        self.bits[page][place / 64] |= 1 << (place % 64);
        self.counts[page] += 1;
        self.count += 1;
        self.first = self.first.min(page);
    }

    /// Moves the lowest places to the end of `to`, the lowest one last.
    fn take_lowest(&mut self, to: &mut Vec<u32>) {
        let from = to.len();
        while self.count > 0 && to.len() - from < BATCH {
            while self.counts[self.first] == 0 {
                self.first += 1;
            }
            let most = BATCH - (to.len() - from);
            self.take(self.first, most, |index| to.push(index));
        }
        to[from..].reverse();
        self.least = self.least.min(self.count);
    }

    /// Takes up to `most` places of a page, the lowest one first.
    fn take(&mut self, page: usize, most: usize, mut found: impl FnMut(u32)) {
        let mut left = most.min(self.counts[page] as usize);
        self.counts[page] -= left as u32;
        self.count -= left;
        for (word, first) in self.bits[page].iter_mut().zip((page * PAGE..).step_by(64)) {
            while left > 0 && *word != 0 {
                found(first as u32 + word.trailing_zeros());
                *word &= *word - 1;
                left -= 1;
            }
        }
    }

    fn forget_page(&mut self, page: usize) {
        self.count -= self.counts[page] as usize;
        self.least = self.least.saturating_sub(PAGE);
        self.bits[page] = [0; WORDS];
        self.counts[page] = 0;
        while self.counts.last() == Some(&0) {
            self.counts.pop();
        }
        self.bits.truncate(self.counts.len());
        self.first = self.first.min(self.counts.len());
        if self.counts.len() <= self.counts.capacity() / 4 {
            self.counts.shrink_to(2 * self.counts.len());
            self.bits.shrink_to(2 * self.bits.len());
        }
    }
}

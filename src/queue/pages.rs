//! A growable array that copies at most its first page.

use alloc::{boxed::Box, vec::Vec};
use core::{
    iter, mem,
    ops::{Index, IndexMut},
};

/// In test builds, even a short list has several pages.
const PAGE: usize = if cfg!(test) { 8 } else { 2048 };

/// An array in fixed-size pages. The unused rest of a page holds default items.
///
/// Pushing allocates a page now and then, and copies nothing. Only the first page grows like a
/// `Vec`, so that a short list stays small. The compiler knows the size of the other pages, so an
/// index takes one check.
pub(super) struct Pages<T> {
    /// The first page until it is full.
    start: Vec<T>,
    pages: Vec<Box<[T; PAGE]>>,
    len: usize,
}

impl<T> Pages<T> {
    pub(super) fn new() -> Self {
        Self {
            start: Vec::new(),
            pages: Vec::new(),
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the item at `index`, which may be past the end.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        match self.pages.get(index / PAGE) {
            Some(page) => Some(&page[index % PAGE]),
            None => self.start.get(index),
        }
    }

    /// Returns the item at `index`, which may be behind the end.
    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        match self.pages.get_mut(index / PAGE) {
            Some(page) => Some(&mut page[index % PAGE]),
            None => self.start.get_mut(index),
        }
    }

    /// Moves the end, at most to where it has been before. No item changes.
    pub(super) fn set_len(&mut self, len: usize) {
        debug_assert!(len == 0 || self.get(len - 1).is_some(), "no item {len}");
        self.len = len;
    }
}

impl<T: Copy> Pages<T> {
    /// Removes and returns the last item.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        self.len = self.len.checked_sub(1)?;
        Some(self[self.len as u32])
    }
}

impl<T: Default> Pages<T> {
    #[inline]
    pub(super) fn push(&mut self, item: T) {
        let len = self.len;
        match self.get_mut(len) {
            Some(place) => *place = item,
            None => {
                self.grow();
                self[len as u32] = item;
            }
        }
        self.len = len + 1;
    }

    #[cold]
    fn grow(&mut self) {
        if self.pages.is_empty() {
            let len = (2 * self.start.len()).max(4);
            self.start.resize_with(len, T::default);
            if len < PAGE {
                return;
            }
        }
        let page = match mem::take(&mut self.start) {
            start if start.is_empty() => iter::repeat_with(T::default).take(PAGE).collect(),
            start => start.into_boxed_slice(),
        };
        self.pages.extend(Box::try_from(page).ok());
    }
}

impl<T> Index<u32> for Pages<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: u32) -> &T {
        let index = index as usize;
        match self.pages.get(index / PAGE) {
            Some(page) => &page[index % PAGE],
            None => &self.start[index],
        }
    }
}

impl<T> IndexMut<u32> for Pages<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        let index = index as usize;
        match self.pages.get_mut(index / PAGE) {
            Some(page) => &mut page[index % PAGE],
            None => &mut self.start[index],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_spans_many_pages() {
        let mut list = Pages::new();
        for item in 0..3 * PAGE as u32 + 1 {
            assert_eq!(list.len(), item as usize);
            list.push(item);
        }
        assert!((0..3 * PAGE as u32 + 1).all(|item| list[item] == item));
        assert_eq!(list.get(4 * PAGE), None);
    }

    #[test]
    fn a_short_list_grows_with_its_items() {
        let mut list = Pages::new();
        for len in 1..=PAGE {
            list.push(());
            let room = (len.next_power_of_two()).max(4);
            assert!(list.get(room - 1).is_some(), "{len} items");
            assert!(list.get(room).is_none(), "{len} items");
        }
    }

    #[test]
    fn the_end_moves_back_and_forward() {
        for len in [3, PAGE as u32 + 3] {
            let mut list = Pages::new();
            (0..len).for_each(|item| list.push(item));
            list.set_len(1);
            assert_eq!(list.len(), 1);
            assert_eq!(list[len - 1], len - 1, "the item should stay");
            list.push(9);
            assert_eq!((list.len(), list[0], list[1]), (2, 0, 9));
            list.set_len(len as usize);
            assert_eq!((list.len(), list[2]), (len as usize, 2));
        }
    }
}

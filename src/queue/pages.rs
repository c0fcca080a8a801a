//! A growable array that copies at most its first page.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

const PAGE: usize = 4096;

/// A list in pages of a fixed size.
///
/// Pushing allocates a page now and then, and copies nothing. Only the first page grows like a
/// `Vec`, so that a short list stays small.
pub(super) struct Pages<T> {
    pages: Vec<Vec<T>>,
}

impl<T> Pages<T> {
    pub(super) fn new() -> Self {
        Self { pages: Vec::new() }
    }

    pub(super) fn push(&mut self, item: T) {
        match self.pages.last_mut() {
            Some(page) if page.len() < PAGE => page.push(item),
            last => {
                let capacity = if last.is_none() { 0 } else { PAGE };
                let mut page = Vec::with_capacity(capacity);
                page.push(item);
                self.pages.push(page);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        match self.pages.last() {
            Some(page) => (self.pages.len() - 1) * PAGE + page.len(),
            None => 0,
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<&T> {
        self.pages.get(index / PAGE)?.get(index % PAGE)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.pages.get_mut(index / PAGE)?.get_mut(index % PAGE)
    }
}

impl<T> Index<u32> for Pages<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.pages[index as usize / PAGE][index as usize % PAGE]
    }
}

impl<T> IndexMut<u32> for Pages<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.pages[index as usize / PAGE][index as usize % PAGE]
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
        assert_eq!(list.get(3 * PAGE + 1), None);
    }
}

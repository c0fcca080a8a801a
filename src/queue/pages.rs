//! An array in pages, which come and go one by one.

use alloc::{boxed::Box, vec::Vec};
use core::{
    iter, mem,
    ops::{Index, IndexMut, Range},
};

/// The number of items of a page. In test builds, even a short array has several pages.
pub(super) const PAGE: usize = if cfg!(test) { 8 } else { 2048 };

/// An array in fixed-size pages, some of which may be missing.
///
/// Growing allocates a page and copies nothing. Only the first page grows like a `Vec`, so that a short
/// array stays small. The compiler knows the size of the other pages.
pub(super) struct Pages<T> {
    /// The first page until it is full.
    start: Vec<T>,
    /// The last page is there.
    pages: Vec<Option<Box<[T; PAGE]>>>,
}

impl<T> Pages<T> {
    pub(super) fn new() -> Self {
        Self {
            start: Vec::new(),
            pages: Vec::new(),
        }
    }

    /// Returns the item at `index`, which may be missing.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        match self.pages.get(index / PAGE) {
            Some(Some(page)) => Some(&page[index % PAGE]),
            _ => self.start.get(index),
        }
    }

    /// Returns the item at `index`, which may be missing.
    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        match self.pages.get_mut(index / PAGE) {
            Some(Some(page)) => Some(&mut page[index % PAGE]),
            _ => self.start.get_mut(index),
        }
    }

    /// Returns the items that are there, in pieces, each with the index of its first item.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (u32, &[T])> {
        let start = iter::once((0, self.start.as_slice()));
        let pages = (0..).step_by(PAGE).zip(&self.pages);
        let pages = pages.filter_map(|(first, page)| Some((first, page.as_ref()?.as_slice())));
        start.chain(pages)
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.pieces().map(|(_, piece)| piece.len()).sum()
    }

    /// Returns the first page if it is not full.
    pub(super) fn start(&self) -> &[T] {
        &self.start
    }

    pub(super) fn start_mut(&mut self) -> &mut [T] {
        &mut self.start
    }

    /// Keeps the first `len` items of the first page, which is not full.
    pub(super) fn shorten_start(&mut self, len: usize) {
        self.start.truncate(len);
        self.start.shrink_to_fit();
    }

    /// Returns `true` if there is a full page.
    pub(super) fn has_pages(&self) -> bool {
        !self.pages.is_empty()
    }

    pub(super) fn page(&self, page: usize) -> Option<&[T; PAGE]> {
        self.pages.get(page)?.as_deref()
    }

    /// Adds items where they are missing, and returns their indices, which are as low as possible.
    pub(super) fn grow(&mut self, new: impl FnMut() -> T) -> Range<u32> {
        let missing = self.pages.iter().position(Option::is_none);
        let page = missing.unwrap_or(self.pages.len());
        let mut first = page * PAGE;
        let items: Box<[T]> = match page {
            0 => {
                first = self.start.len();
                let len = (2 * first).max(4);
                self.start.resize_with(len, new);
                if len < PAGE {
                    return first as u32..len as u32;
                }
                mem::take(&mut self.start).into()
            }
            _ => iter::repeat_with(new).take(PAGE).collect(),
        };
        let end = ((page + 1) * PAGE) as u32;
        let items = Box::try_from(items).ok();
        match self.pages.get_mut(page) {
            Some(place) => *place = items,
            None => self.pages.push(items),
        }
        first as u32..end
    }

    /// Removes a full page.
    pub(super) fn remove(&mut self, page: usize) {
        if let Some(page) = self.pages.get_mut(page) {
            *page = None;
        }
        while let Some(None) = self.pages.last() {
            self.pages.pop();
        }
        if self.pages.len() <= self.pages.capacity() / 4 {
            self.pages.shrink_to(2 * self.pages.len());
        }
    }

    /// Removes the last page, and returns `true` if there are others.
    pub(super) fn remove_last(&mut self) -> bool {
        self.remove(self.pages.len().saturating_sub(1));
        self.has_pages()
    }
}

impl<T> Index<u32> for Pages<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: u32) -> &T {
        let index = index as usize;
        match self.pages.get(index / PAGE) {
            Some(Some(page)) => &page[index % PAGE],
            _ => &self.start[index],
        }
    }
}

impl<T> IndexMut<u32> for Pages<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        let index = index as usize;
        match self.pages.get_mut(index / PAGE) {
            Some(Some(page)) => &mut page[index % PAGE],
            _ => &mut self.start[index],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages_of(len: u32) -> Pages<u32> {
        let mut pages = Pages::new();
        let mut end = 0;
        while end < len {
            let mut items = end..;
            let range = pages.grow(|| items.next().unwrap_or(0));
            assert_eq!(range.start, end, "the lowest index");
            end = range.end;
        }
        pages
    }

    #[test]
    fn an_array_spans_many_pages() {
        let page = PAGE as u32;
        let pages = pages_of(3 * page + 1);
        assert!((0..4 * page).all(|item| pages[item] == item));
        assert_eq!(pages.get(4 * PAGE), None);
        let items = pages.pieces().flat_map(|(_, items)| items);
        assert!(items.copied().eq(0..4 * page));
    }

    #[test]
    fn a_short_array_grows_like_a_vec() {
        for len in 1..=PAGE {
            let pages = pages_of(len as u32);
            let room = (len.next_power_of_two()).max(4);
            assert!(pages.get(room - 1).is_some(), "{len} items");
            assert!(pages.get(room).is_none(), "{len} items");
        }
    }

    #[test]
    fn a_missing_page_comes_back_first() {
        let page = PAGE as u32;
        let mut pages = pages_of(4 * page);
        pages.remove(1);
        assert_eq!(pages.get(PAGE), None);
        assert_eq!(pages.get(2 * PAGE), Some(&(2 * page)));
        assert_eq!(pages.grow(|| 7), page..2 * page);
        assert_eq!(pages[page], 7);
        assert_eq!(pages.grow(|| 8), 4 * page..5 * page);
        pages.remove(0);
        assert_eq!(pages.get(0), None);
        assert_eq!(pages.grow(|| 9), 0..4, "the first page grows again");
    }

    #[test]
    fn the_last_pages_leave_nothing_behind() {
        let mut pages = pages_of(4 * PAGE as u32);
        pages.remove(1);
        pages.remove(2);
        assert_eq!(pages.pages.len(), 4);
        assert!(pages.remove_last(), "the first page is left");
        assert!(!pages.remove_last());
        assert_eq!(pages.pages.capacity(), 0);
    }
}

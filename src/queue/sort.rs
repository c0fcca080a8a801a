//! Sorting a bucket by deadline and sequence.

use alloc::vec::Vec;
use core::mem;

use super::item::Item;

/// From this number of items on, digits are faster than comparisons.
const DIGITS_FROM: usize = if cfg!(test) { 4 } else { 200 };

/// A digit is a byte.
const DIGITS: usize = 1 << u8::BITS;

/// Sorts the items of a bucket that is 2^`width_bits` wide. `spare` is kept for its memory.
///
/// Timers that repeat together arrive in order, so one pass finds nothing to sort. Otherwise a large
/// bucket is sorted by the upper sixteen bits of the time inside it, which are two digits. Few items
/// share these bits.
pub(super) fn sort(
    items: &mut [Item],
    spare: &mut Vec<Item>,
    width_bits: u32,
    sequence: impl Fn(Item) -> u64,
) {
    let mut sorted_from = 0;
    if !items.is_sorted_by_key(|item| item.time()) {
        if items.len() < DIGITS_FROM {
            items.sort_unstable();
        } else {
            sorted_from = width_bits.saturating_sub(u16::BITS);
            sort_by_digits(items, spare, sorted_from);
        }
    }
    sort_groups(items, sorted_from, sequence);
}

/// Sorts items by the two digits of their times from bit `from` on, the lower digit first.
fn sort_by_digits(items: &mut [Item], spare: &mut Vec<Item>, from: u32) {
    if spare.len() < items.len() {
        spare.resize(items.len(), Item::default());
    }
    let spare = &mut spare[..items.len()];
    let digits = |item: Item| ((item.time() >> from) as u16).to_le_bytes();
    let mut places = [[0; DIGITS]; 2];
    for item in &*items {
        let [low, high] = digits(*item);
        places[0][usize::from(low)] += 1;
        places[1][usize::from(high)] += 1;
    }
    for counts in &mut places {
        let mut start = 0;
        for count in counts {
            start += mem::replace(count, start);
        }
    }
    scatter(items, spare, &mut places[0], |item| digits(item)[0]);
    scatter(spare, items, &mut places[1], |item| digits(item)[1]);
}

/// Moves each item to the next place of its digit.
#[inline]
fn scatter(from: &[Item], to: &mut [Item], places: &mut [u32; DIGITS], digit: impl Fn(Item) -> u8) {
    for item in from {
        let place = &mut places[usize::from(digit(*item))];
        to[*place as usize] = *item;
        *place += 1;
    }
}

/// Sorts items whose times agree from bit `from` on, by the lower bits and by sequence.
fn sort_groups(items: &mut [Item], from: u32, sequence: impl Fn(Item) -> u64) {
    let agree = |a: Item, b: Item| (a.time() ^ b.time()) >> from == 0;
    let mut rest = items;
    while let Some(start) = rest.windows(2).position(|pair| agree(pair[0], pair[1])) {
        rest = &mut rest[start..];
        let first = rest[0];
        let len = rest.iter().take_while(|item| agree(first, **item)).count();
        let (group, behind) = rest.split_at_mut(len);
        group.sort_unstable_by(|a, b| {
            let by_time = a.time().cmp(&b.time());
            by_time.then_with(|| sequence(*a).cmp(&sequence(*b)))
        });
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    /// The sequence is the complement of the index, so that equal times go by descending index.
    fn sorted(mut items: Vec<Item>, width_bits: u32) -> Vec<Item> {
        let sequence = |item: Item| u64::from(!item.index());
        sort(&mut items, &mut vec![], width_bits, sequence);
        items
    }

    #[test]
    fn items_are_sorted_by_all_bits_of_their_time_and_then_by_sequence() {
        for width_bits in [1, 8, 16, 17, 24, 32] {
            // Few times in a small part of the bucket, and many in all of it.
            for bits in [1, 3, 9, width_bits] {
                for len in [0, 1, 3, 4, 300] {
                    let upper = 0xabcd_ef01_u64 << width_bits;
                    let lower = |nth: u64| (nth + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 30;
                    let time = |nth| upper | (lower(nth) % (1 << bits.min(width_bits)));
                    let items = (0..len).map(|nth| Item::new(time(nth), nth as u32));
                    let items: Vec<Item> = items.collect();
                    let mut expected = items.clone();
                    expected.sort_by_key(|item| (item.time(), !item.index()));
                    assert!(
                        sorted(items, width_bits) == expected,
                        "{len} items of {bits} bits in a bucket of {width_bits} bits"
                    );
                }
            }
        }
    }
}

//! Slack: a timer chooses the emptiest slot in a window of deadlines, so that the work spreads over
//! frames.

use alloc::vec::Vec;

use crate::{
    clock::{ClockId, ClockKey, FRAME, built_in_id},
    journal::{Journal, WatchedMap},
    queue::{Key, NEVER},
};

/// The length of a slot: 1/64 of a second, a step of Bevy's fixed schedule.
const SLOT: u64 = 15_625_000;

/// The slots whose numbers are kept together: a second.
const SLOTS_PER_PAGE: i64 = 64;

/// The deadlines from which a timer chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    length: u64,
    /// `None` until the timer waits for the first time without being paused.
    choice: Option<Choice>,
    /// The deadline at which the timer counts. A paused timer does not count.
    counted: Option<u64>,
}

/// A chosen deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choice {
    /// The time from the start of the window to the deadline.
    shift: u64,
    /// The shift of the deadline before.
    shift_before: u64,
}

impl Window {
    /// Creates the window of a timer that has not chosen yet, or that chose this shift before it was
    /// saved. Returns `None` without slack.
    pub(super) fn new(length: u64, shift: Option<u64>) -> Option<Self> {
        let choice = shift.map(|shift| Choice {
            shift,
            shift_before: shift,
        });
        (length > 0).then_some(Self {
            length,
            choice,
            counted: None,
        })
    }
}

/// The timers with slack on one clock.
#[derive(Debug)]
pub(super) struct SlackTimers {
    slot_length: u64,
    /// The difference between the time that the clock shows and the time passed. The slots divide the
    /// time shown, so that a timer which is saved and loaded stays in its slot.
    offset: i128,
    windows: WatchedMap<Key, Window>,
    load: Load,
}

/// The number of armed timers with slack in each slot, by page. An empty page is not stored.
type Load = WatchedMap<i64, Page>;

#[derive(Clone, Debug)]
struct Page {
    timers: u32,
    slots: [u32; SLOTS_PER_PAGE as usize],
}

impl Default for Page {
    fn default() -> Self {
        Self {
            timers: 0,
            slots: [0; SLOTS_PER_PAGE as usize],
        }
    }
}

/// The windows and slots that have changed, as they were.
#[derive(Clone, Debug, Default)]
pub(super) struct SlackJournal {
    windows: Journal<Key, Option<Window>>,
    load: Journal<i64, Option<Page>>,
}

impl Default for SlackTimers {
    fn default() -> Self {
        Self {
            slot_length: SLOT,
            offset: 0,
            windows: WatchedMap::default(),
            load: Load::default(),
        }
    }
}

impl SlackTimers {
    fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// Returns the time from the start of the window to the deadline, if the timer has chosen one.
    pub(super) fn shift(&self, key: Key) -> Option<u64> {
        Some(self.windows.get(key)?.choice?.shift)
    }

    /// Returns the length of a wait, which would be `wait` from one start of the window to the next.
    pub(super) fn wait(&self, key: Key, wait: u64) -> u64 {
        let choice = self.windows.get(key).and_then(|window| window.choice);
        choice.map_or(wait, |choice| {
            let wait = wait.saturating_add(choice.shift);
            wait.saturating_sub(choice.shift_before)
        })
    }

    /// Sets the difference between the time that the clock shows and the time passed.
    pub(super) fn set_offset(&mut self, offset: i128) {
        if offset == self.offset || self.is_empty() {
            self.offset = offset;
            return;
        }
        // The clock was set, and the slots moved. All timers count again.
        let counted: Vec<u64> = self.windows.values().filter_map(|it| it.counted).collect();
        for &deadline in &counted {
            self.change(self.slot(deadline), |timers| *timers -= 1);
        }
        self.offset = offset;
        for deadline in counted {
            self.change(self.slot(deadline), |timers| *timers += 1);
        }
    }

    /// Adds the window of a timer on this clock. The timer does not count yet.
    pub(super) fn insert(&mut self, clock: ClockKey, key: Key, window: Window) {
        self.slot_length = match built_in_id(clock) {
            Some(ClockId::Frames) => FRAME,
            _ => SLOT,
        };
        self.windows.insert(key, window);
    }

    /// Takes the window of a timer away, and returns it as that of a timer that has not chosen yet.
    pub(super) fn remove(&mut self, key: Key) -> Option<Window> {
        self.leave(key);
        let window = self.windows.remove(key)?;
        Window::new(window.length, None)
    }

    /// Counts a timer that waits from now on, and returns its deadline. If the timer has not chosen one
    /// yet, `deadline` is the start of its window.
    pub(super) fn enter(&mut self, key: Key, deadline: u64) -> u64 {
        match self.windows.get(key) {
            Some(Window { choice: None, .. }) => self.choose(key, (deadline, deadline), 0),
            Some(_) => {
                self.count(key, deadline);
                deadline
            }
            None => deadline,
        }
    }

    /// Stops counting a timer that is paused or cancelled.
    pub(super) fn leave(&mut self, key: Key) {
        if self.is_empty() {
            return;
        }
        if let Some(window) = self.windows.get_mut(key)
            && let Some(deadline) = window.counted.take()
        {
            let slot = self.slot(deadline);
            self.change(slot, |timers| *timers -= 1);
        }
    }

    /// Forgets the choice of a timer whose window moves. It chooses when it enters.
    pub(super) fn reset(&mut self, key: Key) {
        self.leave(key);
        if let Some(window) = self.windows.get_mut(key) {
            window.choice = None;
        }
    }

    /// Chooses the next deadline of a timer that fires, in the window that begins at `start`, and in a
    /// later slot than the deadline before.
    pub(super) fn choose_next(&mut self, key: Key, start: u64, before: u64) -> u64 {
        self.leave(key);
        let shift_before = self.shift(key).unwrap_or(0);
        let later = self.start_of(self.slot(before) + 1);
        self.choose(key, (start, later), shift_before)
    }

    /// Chooses a deadline in the window that begins at `start`: in the slot with the fewest timers, the
    /// earliest on a tie. A window that is open before `later` opens then, unless it ends before.
    fn choose(&mut self, key: Key, (start, later): (u64, u64), shift_before: u64) -> u64 {
        let Some(window) = self.windows.get(key) else {
            return start;
        };
        // A window ends before the next one begins, if the slack is no longer than the interval.
        let end = start.saturating_add(window.length - 1).min(NEVER - 1);
        let first = start.max(later.min(end));
        let emptiest = self.emptiest(self.slot(first), self.slot(end));
        let deadline = first.max(self.start_of(emptiest));
        let shift = deadline - start;
        if let Some(window) = self.windows.get_mut(key) {
            window.choice = Some(Choice {
                shift,
                shift_before,
            });
        }
        self.count(key, deadline);
        deadline
    }

    fn count(&mut self, key: Key, deadline: u64) {
        self.change(self.slot(deadline), |timers| *timers += 1);
        if let Some(window) = self.windows.get_mut(key) {
            window.counted = Some(deadline);
        }
    }

    /// Returns the slot with the fewest timers, the earliest on a tie.
    fn emptiest(&self, first: i64, last: i64) -> i64 {
        let mut best = (u32::MAX, first);
        for number in first.div_euclid(SLOTS_PER_PAGE)..=last.div_euclid(SLOTS_PER_PAGE) {
            let start = number * SLOTS_PER_PAGE;
            let Some(page) = self.load.get(number) else {
                // No earlier slot is empty.
                return start.max(first);
            };
            let slots = page.slots.into_iter().zip(start..);
            let slots = slots.filter(|(_, slot)| (first..=last).contains(slot));
            best = slots.min().map_or(best, |emptiest| emptiest.min(best));
            if best.0 == 0 {
                break;
            }
        }
        best.1
    }

    /// Returns the slot of a deadline.
    fn slot(&self, deadline: u64) -> i64 {
        let shown = i128::from(deadline) + self.offset;
        shown.div_euclid(i128::from(self.slot_length)) as i64
    }

    /// Returns the first deadline of a slot.
    fn start_of(&self, slot: i64) -> u64 {
        let shown = i128::from(slot) * i128::from(self.slot_length);
        u64::try_from(shown - self.offset).unwrap_or(0)
    }

    fn change(&mut self, slot: i64, change: impl FnOnce(&mut u32)) {
        let number = slot.div_euclid(SLOTS_PER_PAGE);
        let nth = slot.rem_euclid(SLOTS_PER_PAGE) as usize;
        if !self.load.contains_key(number) {
            self.load.insert(number, Page::default());
        }
        let Some(page) = self.load.get_mut(number) else {
            return;
        };
        page.timers -= page.slots[nth];
        change(&mut page.slots[nth]);
        page.timers += page.slots[nth];
        if page.timers == 0 {
            self.load.remove(number);
        }
    }

    pub(super) fn offset(&self) -> i128 {
        self.offset
    }

    pub(super) fn watch(&mut self) {
        self.windows.watch();
        self.load.watch();
    }

    pub(super) fn unwatch(&mut self) {
        self.windows.unwatch();
        self.load.unwatch();
    }

    pub(super) fn take_journal(&mut self) -> SlackJournal {
        SlackJournal {
            windows: self.windows.take_journal(),
            load: self.load.take_journal(),
        }
    }

    /// Goes back to the moment at which a journal began. The offset goes back with
    /// [`put_offset_back`](Self::put_offset_back).
    pub(super) fn put_back(&mut self, journal: &SlackJournal) {
        self.windows.put_back(&journal.windows);
        self.load.put_back(&journal.load);
    }

    pub(super) fn put_offset_back(&mut self, offset: i128) {
        self.offset = offset;
    }
}

impl SlackJournal {
    /// Adds the journal that began when this one ended.
    pub(super) fn append(&mut self, later: Self) {
        self.windows.append(later.windows);
        self.load.append(later.load);
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.windows.len() + self.load.len()
    }
}

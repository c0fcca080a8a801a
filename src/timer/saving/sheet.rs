//! The states that are written out for serialization.
//!
//! Serde sees a component, but not the queue that has the timer's state. Room for the state in each
//! component would cost memory in games that never save. So the states of one call fill a sheet that
//! is kept beside the world, and each seat holds the number of its line on that sheet until the timer
//! changes or the next run begins.

use alloc::{collections::BTreeMap, vec::Vec};
use core::fmt;

use bevy_ecs::prelude::*;
use bevy_platform::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicU32, Ordering},
};

use super::TimerState;
use crate::{
    clock::Changes,
    timer::{Kind, place::Place},
};

/// The sheets of all worlds. Few exist at a time.
static SHEETS: RwLock<BTreeMap<u32, Arc<Sheet>>> = RwLock::new(BTreeMap::new());

/// The number of the next sheet.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A page that no sheet has.
#[cfg(feature = "bevy_reflect")]
pub(in crate::timer) const NO_PAGE: u64 = u64::MAX - 1;

/// The states of all timers of a world, as of one moment.
struct Sheet {
    changes: Changes,
    /// The number of changes of clocks up to the moment.
    number: u64,
    /// The places and the states of the timers.
    lines: Vec<(Place, TimerState)>,
}

/// A sheet that was written for a world. It is thrown away when this is dropped.
#[derive(Debug)]
pub(crate) struct Written {
    sheet: u32,
    /// The timer on each line.
    timers: Vec<(Entity, Kind)>,
}

impl Written {
    /// Fills a sheet with timers whose states hold until a clock changes.
    pub(super) fn new(changes: Changes, timers: &[(Entity, Kind, (Place, TimerState))]) -> Self {
        let sheet = Sheet {
            number: changes.get(),
            changes,
            lines: timers.iter().map(|&(.., line)| line).collect(),
        };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut sheets = SHEETS.write().unwrap_or_else(PoisonError::into_inner);
        sheets.insert(number, Arc::new(sheet));
        Self {
            sheet: number,
            timers: timers
                .iter()
                .map(|&(entity, kind, _)| (entity, kind))
                .collect(),
        }
    }

    /// Returns the timers, and the page of each: the number of the sheet and of the line.
    pub(super) fn pages(&self) -> impl Iterator<Item = (Entity, Kind, u64)> {
        let pages = u64::from(self.sheet) << 32..;
        let timers = self.timers.iter().zip(pages);
        timers.map(|(&(entity, kind), page)| (entity, kind, page))
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let mut sheets = SHEETS.write().unwrap_or_else(PoisonError::into_inner);
        sheets.remove(&self.sheet);
    }
}

/// The error for an armed timer whose state has not been written since it last changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotWritten;

impl fmt::Display for NotWritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the state of this timer has not been written since it last changed: call \
             `World::write_timer_states` right before you serialize",
        )
    }
}

/// Returns the place of the timer on a line.
pub(in crate::timer) fn place(page: u64) -> Place {
    line(page).map_or(Place::Nowhere, |(_, (place, _))| place)
}

/// Returns the state of the timer on a line, unless a clock has changed since.
pub(in crate::timer) fn state(page: u64) -> Result<TimerState, NotWritten> {
    let (sheet, (_, state)) = line(page).ok_or(NotWritten)?;
    match sheet.changes.get() == sheet.number {
        true => Ok(state),
        false => Err(NotWritten),
    }
}

fn line(page: u64) -> Option<(Arc<Sheet>, (Place, TimerState))> {
    let sheets = SHEETS.read().unwrap_or_else(PoisonError::into_inner);
    let sheet = sheets.get(&((page >> 32) as u32))?;
    let line = *sheet.lines.get(page as u32 as usize)?;
    Some((sheet.clone(), line))
}

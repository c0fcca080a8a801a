//! The states that are written out for serialization.
//!
//! Serde sees a component, but not the queue that has the timer's state. Room for the state in each
//! component would cost memory in games that never save. So the states of one call fill a sheet that
//! is kept beside the world, and each seat holds the number of its line on that sheet until the timer
//! changes or the next run begins.

use alloc::{collections::BTreeMap, vec::Vec};

use bevy_ecs::prelude::*;
#[cfg(feature = "serialize")]
use bevy_ecs::{entity_disabling::Disabled, query::Allow};
use bevy_platform::sync::{
    Arc, PoisonError, RwLock, Weak,
    atomic::{AtomicU32, Ordering},
};
use thiserror::Error;

use super::TimerState;
#[cfg(feature = "serialize")]
use super::{capture::Capture, world_state::SavedWorld};
use crate::{
    clock::Changes,
    timer::{TimerName, TimerQueues, place::Place},
};
#[cfg(feature = "serialize")]
use crate::{
    clock::{ClockTable, write_clocks},
    timer::{DespawnAfter, Kind, OpenRequest, Timer, add_modified_clocks, order_loaded},
};

/// Writes the states of all timers of a world, so that their components can be serialized.
#[cfg(feature = "serialize")]
pub(crate) fn write_timer_states(world: &mut World) {
    world.flush();
    forget_written(world);
    add_modified_clocks(world);
    // Clocks that take settings over have changed, so they come first.
    write_clocks(world);
    order_loaded(world);
    type Armed = Or<(With<Timer>, With<OpenRequest>, With<DespawnAfter>)>;
    let timers = world.query_filtered::<EntityRef, (Armed, Allow<Disabled>)>();
    let Some(mut capture) = Capture::new(world) else {
        return;
    };
    let mut lines = Vec::new();
    for timer in timers.query_manual(world).iter() {
        for kind in Kind::ALL {
            if let Some(state) = capture.state(timer, kind)
                && let Some(component) = kind.on(timer)
            {
                lines.push(((timer.id(), kind), component.seat.place(), state));
            }
        }
    }
    let marks = capture.finished;
    let written = Sheet::new(world.resource::<ClockTable>().changes.clone(), lines);
    for ((entity, kind), page) in written.pages() {
        if let Some(timer) = kind.get(world, entity) {
            timer.seat.write(page);
        }
    }
    world.resource_mut::<TimerQueues>().written = Some(written);
    for (entity, mark) in marks {
        if let Ok(mut entity) = world.get_entity_mut(entity) {
            entity.insert(mark);
        }
    }
    if let Some(saved) = SavedWorld::of(world) {
        world.insert_resource(saved);
    }
}

/// Throws the written states away, if there are any.
pub(crate) fn forget_written(world: &mut World) {
    let queues = world.get_resource_mut::<TimerQueues>();
    let Some(written) = queues.and_then(|mut queues| queues.written.take()) else {
        return;
    };
    for ((entity, kind), _) in written.pages() {
        if let Some(timer) = kind.get(world, entity) {
            timer.seat.unwrite();
        }
    }
    #[cfg(feature = "serialize")]
    world.remove_resource::<SavedWorld>();
}

/// The sheets of all worlds. Few exist at a time.
static SHEETS: RwLock<BTreeMap<u32, Weak<Sheet>>> = RwLock::new(BTreeMap::new());

/// The number of the next sheet.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A page that no sheet has.
#[cfg(feature = "bevy_reflect")]
pub(in crate::timer) const NO_PAGE: u64 = u64::MAX - 1;

/// The states of all timers of a world, as of one moment. They can be read until the world drops the sheet.
#[derive(Debug)]
pub(crate) struct Sheet {
    number: u32,
    changes: Changes,
    /// The number of changes of clocks up to the moment.
    written_after: u64,
    lines: Vec<Line>,
}

type Line = (TimerName, Option<Place>, TimerState);

impl Sheet {
    /// Fills a sheet with timers whose states hold until a clock changes.
    fn new(changes: Changes, lines: Vec<Line>) -> Arc<Self> {
        let sheet = Arc::new(Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            written_after: changes.get(),
            changes,
            lines,
        });
        let mut sheets = SHEETS.write().unwrap_or_else(PoisonError::into_inner);
        sheets.retain(|_, sheet| sheet.strong_count() > 0);
        sheets.insert(sheet.number, Arc::downgrade(&sheet));
        sheet
    }

    /// Notes that a timer is about to change, so that the states no longer hold.
    pub(in crate::timer) fn note_change(&self) {
        self.changes.note();
    }

    /// Returns the timers, and the page of each: the number of the sheet and of the line.
    fn pages(&self) -> impl Iterator<Item = (TimerName, u64)> {
        let pages = u64::from(self.number) << 32..;
        let lines = self.lines.iter().zip(pages);
        lines.map(|(&(timer, ..), page)| (timer, page))
    }
}

/// The error for an armed timer whose state has not been written since it last changed.
#[derive(Error, Clone, Copy, Debug, PartialEq, Eq)]
#[error(
    "the state of this timer has not been written since it last changed: call \
     `World::write_timer_states` right before you serialize"
)]
pub(crate) struct NotWritten;

/// Returns the place of the timer on a line.
pub(in crate::timer) fn place(page: u64) -> Option<Place> {
    let (_, (_, place, _)) = line(page)?;
    place
}

/// Returns the state of the timer on a line, unless a clock has changed since.
pub(in crate::timer) fn state(page: u64) -> Result<TimerState, NotWritten> {
    let (sheet, (.., state)) = line(page).ok_or(NotWritten)?;
    let holds = sheet.changes.get() == sheet.written_after;
    holds.then_some(state).ok_or(NotWritten)
}

fn line(page: u64) -> Option<(Arc<Sheet>, Line)> {
    let sheets = SHEETS.read().unwrap_or_else(PoisonError::into_inner);
    let sheet = sheets.get(&((page >> 32) as u32))?.upgrade()?;
    let line = *sheet.lines.get(page as u32 as usize)?;
    Some((sheet, line))
}

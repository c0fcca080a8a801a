//! The fields of a clock that reflection reads and writes.
//!
//! Reflection lends references, but the state of a clock is in the table. Each read is therefore
//! kept until the next run, and each write is an edit that the clock takes over then.

use alloc::{boxed::Box, vec::Vec};
use core::{error::Error, mem, time::Duration};

use bevy_platform::sync::OnceLock;
use bevy_reflect::Reflect;

use super::{id::ClockId, speed::Speed, state::ClockState};

/// A clock, as reflection sees it.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub(super) struct ClockFields {
    parent: ClockId,
    speed: f64,
    paused: bool,
    now: Duration,
}

/// The reads and writes of a clock by reflection since the last run.
#[derive(Debug, Default)]
pub(super) struct Fields {
    read: OnceLock<Box<Read>>,
    edit: Option<Box<Edit>>,
    /// The reasons why edits were refused.
    refused: Vec<Box<dyn Error + Send + Sync>>,
}

/// The fields that a read has shown. Time may pass between two reads.
#[derive(Debug)]
struct Read {
    fields: ClockFields,
    next: OnceLock<Box<Self>>,
}

/// The fields before and after a write.
#[derive(Debug)]
struct Edit {
    before: ClockFields,
    after: ClockFields,
}

/// The fields that a write has changed.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) parent: Option<ClockId>,
    pub(super) speed: Option<f64>,
    pub(super) paused: Option<bool>,
    pub(super) now: Option<Duration>,
}

impl Fields {
    /// Returns the state with all valid changes.
    pub(super) fn applied_to(&self, mut state: ClockState) -> ClockState {
        let changes = self.edit.as_ref().map(|edit| edit.changes());
        let changes = changes.unwrap_or_default();
        state.speed = changes
            .speed
            .and_then(|speed| Speed::try_from(speed).ok())
            .unwrap_or(state.speed);
        state.parent = changes.parent.unwrap_or(state.parent);
        state.paused = changes.paused.unwrap_or(state.paused);
        if let Some(now) = changes.now {
            state.set_shown(now);
        }
        state
    }

    /// Returns the fields for a read, and `true` if they are kept from now on.
    pub(super) fn read(&self, state: &ClockState) -> (&ClockFields, bool) {
        let fields = ClockFields::of(state);
        let mut place = &self.read;
        while let Some(read) = place.get() {
            if read.fields == fields {
                return (&read.fields, false);
            }
            place = &read.next;
        }
        let read = place.get_or_init(|| {
            let next = OnceLock::new();
            Box::new(Read { fields, next })
        });
        (&read.fields, true)
    }

    /// Returns the fields for a write.
    pub(super) fn write(&mut self, state: &ClockState) -> &mut ClockFields {
        self.read = OnceLock::new();
        let changes = self.take_changes();
        let before = ClockFields::of(state);
        let after = ClockFields {
            parent: changes.parent.unwrap_or(before.parent),
            speed: changes.speed.unwrap_or(before.speed),
            paused: changes.paused.unwrap_or(before.paused),
            now: changes.now.unwrap_or(before.now),
        };
        let edit = Box::new(Edit { before, after });
        &mut self.edit.insert(edit).after
    }

    /// Returns the parent that a write has set.
    pub(super) fn parent_mut(&mut self) -> Option<&mut ClockId> {
        let edit = self.edit.as_mut()?;
        edit.changes().parent.map(|_| &mut edit.after.parent)
    }

    /// Forgets all reads, and returns the changes.
    pub(super) fn take_changes(&mut self) -> Changes {
        self.read = OnceLock::new();
        let edit = self.edit.take();
        edit.map(|edit| edit.changes()).unwrap_or_default()
    }

    #[cfg(test)]
    pub(super) fn is_read(&self) -> bool {
        self.read.get().is_some()
    }

    pub(super) fn refuse(&mut self, error: impl Error + Send + Sync + 'static) {
        self.refused.push(Box::new(error));
    }

    /// Returns why changes were refused.
    pub(super) fn take_refused(&mut self) -> Vec<Box<dyn Error + Send + Sync>> {
        mem::take(&mut self.refused)
    }
}

impl ClockFields {
    fn of(state: &ClockState) -> Self {
        Self {
            parent: state.parent,
            speed: state.speed.ratio(),
            paused: state.paused,
            now: state.shown(),
        }
    }
}

impl Edit {
    fn changes(&self) -> Changes {
        fn changed<T: Copy + PartialEq>(before: &T, after: &T) -> Option<T> {
            (before != after).then_some(*after)
        }
        let Self { before, after } = self;
        Changes {
            parent: changed(&before.parent, &after.parent),
            speed: changed(&before.speed, &after.speed),
            paused: changed(&before.paused, &after.paused),
            now: changed(&before.now, &after.now),
        }
    }
}

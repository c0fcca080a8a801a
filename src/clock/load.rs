//! The clocks of one load: everything that is inserted between two runs, in any order.

use alloc::vec::Vec;

use bevy_ecs::{entity::EntityHashMap, prelude::*};
use smallvec::SmallVec;

use super::row::{Age, ClockKey, Order};

/// The part of a saved clock that is not its state. A new clock has the default.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Saved {
    pub(super) order: Option<Order>,
    /// The time on its parent that the clock shows in its next run only.
    pub(super) behind: u64,
}

/// The clocks of one load.
#[derive(Clone, Debug, Default)]
pub(super) struct Load {
    /// The clocks from the first loaded one on.
    pub(super) clocks: Vec<(Place, Age, ClockKey)>,
    /// The number of `clocks` that are in order.
    pub(super) ordered: usize,
    /// The clocks whose parent has not arrived yet, by the entity of the parent.
    pub(super) waiting: EntityHashMap<SmallVec<[(ClockKey, Age); 1]>>,
    /// The entities with modifiers of a clock that has not arrived yet.
    pub(super) modified: Vec<Entity>,
}

/// The place of a clock in a load: the new ones come after the loaded ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Saved(Order),
    New,
}

impl Load {
    pub(super) fn add(&mut self, order: Option<Order>, (key, age): (ClockKey, Age)) {
        let place = order.map_or(Place::New, Place::Saved);
        if order.is_some() || !self.clocks.is_empty() {
            self.clocks.push((place, age, key));
        }
    }

    /// Returns `true` if a parent or a modified clock has not arrived yet.
    pub(super) fn has_missing(&self) -> bool {
        !self.waiting.is_empty() || !self.modified.is_empty()
    }

    /// Lets a clock wait for its parent.
    pub(super) fn wait(&mut self, parent: Entity, clock: (ClockKey, Age)) {
        self.waiting.entry(parent).or_default().push(clock);
    }

    /// Returns the clocks that have waited for this parent.
    pub(super) fn take_waiting(&mut self, parent: Entity) -> SmallVec<[(ClockKey, Age); 1]> {
        self.waiting.remove(&parent).unwrap_or_default()
    }
}

//! Changing the parent of a clock, or all of its settings.

use alloc::vec::Vec;

use super::{
    id::{ClockId, InvalidParent},
    row::{Cadence, ClockKey, Row, RunReading, Source, Ticks},
    state::ClockState,
    table::{BUILT_IN, Table},
};

impl Table {
    /// Puts a clock on another parent from now on. On an error, the clock stays as it was.
    pub(super) fn set_parent(
        &mut self,
        key: ClockKey,
        parent: ClockId,
    ) -> Result<(), InvalidParent> {
        if let Some(&(built_in, _)) = BUILT_IN.get(key as usize) {
            return Err(InvalidParent::BuiltIn(built_in));
        }
        let (parent_key, row) = self.find(parent)?;
        let (source, root) = (Source::Clock(parent_key, row.age), row.root);
        if let Some(cycle) = self.cycle(key, parent_key) {
            return Err(InvalidParent::Cycle(cycle));
        }
        let Some(row) = self.get(key) else {
            return Ok(());
        };
        let is_moved = row.root != root;
        if row.source == source {
            return Ok(());
        }
        self.settle(key);
        self.leave_parent(key);
        self.counters.changes.note();
        let seen = self.run_reading(parent_key).map_or(0, |parent| parent.now);
        if let Some(row) = self.get_mut(key) {
            (row.source, row.state.parent, row.seen) = (source, parent, seen);
            (row.added_in, row.behind) = (None, 0);
        }
        if let Some(parent) = self.get_mut(parent_key) {
            parent.children.insert(key);
        }
        if is_moved {
            self.move_to_root(key, root);
        }
        self.reschedule(key);
        Ok(())
    }

    /// Returns the clocks from `key` on, each followed by its parent, if `key` would drive itself.
    pub(super) fn cycle(
        &self,
        key: ClockKey,
        parent: ClockKey,
    ) -> Option<Vec<bevy_ecs::entity::Entity>> {
        let mut clocks = Vec::new();
        let mut at = parent;
        clocks.extend(self.get(key)?.entity);
        while at != key {
            clocks.extend(self.get(at)?.entity);
            at = self.parent(at)?;
        }
        Some(clocks)
    }

    /// Tells a clock and its descendants that another built-in clock drives them.
    fn move_to_root(&mut self, key: ClockKey, root: ClockKey) {
        let Some(cadence) = self.get(root).map(|root| root.cadence) else {
            return;
        };
        let mut clocks = self.descendants(key);
        // Settled before the first of them gets the run numbers of the other cadence.
        for &clock in &clocks {
            self.settle(clock);
        }
        clocks.push(key);
        let run = self.counters.runs[cadence as usize];
        let epoch = self.counters.epochs[cadence as usize];
        for clock in clocks {
            let Some(row) = self.get_mut(clock) else {
                continue;
            };
            row.root = root;
            if row.cadence != cadence {
                row.change_cadence(cadence, run, epoch);
                self.has_moved = true;
            }
        }
    }

    /// Takes over the settings of another clock. The time and everything on the clock stay.
    pub(super) fn take_over(
        &mut self,
        key: ClockKey,
        settings: ClockState,
    ) -> Result<(), InvalidParent> {
        self.change(key, |row| {
            (row.state.speed, row.state.paused) = (settings.speed, settings.paused);
        });
        match self.set_parent(key, settings.parent) {
            // The parent of a built-in clock is no setting.
            Err(InvalidParent::BuiltIn(_)) => Ok(()),
            result => result,
        }
    }
}

impl Row {
    fn change_cadence(&mut self, cadence: Cadence, run: u64, epoch: u64) {
        let reading = self.run.reading;
        let is_new = self.added_in == Some(self.run.epoch);
        self.added_in = is_new.then_some(epoch);
        self.cadence = cadence;
        self.run = RunReading { epoch, reading };
        self.ticks = Ticks {
            run,
            last: self.state.now,
            previous: self.state.now,
        };
    }
}

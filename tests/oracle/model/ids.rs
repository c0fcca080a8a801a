//! Calling entities by other numbers.

use super::{Model, clock::Clock, clocks::Clocks, entities::Entity, timers::Timer};
use crate::entry::{Cancel, Entry, Id, Named};

impl Model {
    /// Replaces the numbers of entities in everything that the crate keeps.
    pub(super) fn rename(&mut self, name: impl Fn(Id) -> Id) {
        for entity in &mut self.entities {
            entity.rename(&name);
        }
        self.clocks.rename(&name);
        for ((owner, _), timer) in &mut self.keys {
            (*owner, *timer) = (name(*owner), name(*timer));
        }
        for timer in &mut self.timers {
            timer.rename(&name);
        }
        for (id, _) in self.ended.iter_mut().flatten() {
            *id = name(*id);
        }
        for entry in &mut self.unwritten {
            if let Entry::Cancelled(Cancel {
                entity,
                owner,
                clock,
                ..
            }) = entry
            {
                (*entity, *owner) = (name(*entity), name(*owner));
                clock.rename(&name);
            }
        }
    }
}

impl Entity {
    /// Replaces the numbers of other entities.
    pub(super) fn rename(&mut self, name: impl Fn(Id) -> Id) {
        let ids = self.owner.iter_mut().chain(&mut self.pauses);
        let modified = self.modifies.as_mut().map(|(clock, ..)| clock);
        let lists = [&mut self.owned, &mut self.paused_by, &mut self.modifiers];
        for id in ids.chain(modified).chain(lists.into_iter().flatten()) {
            *id = name(*id);
        }
        if let Some(clock) = &mut self.on {
            clock.rename(&name);
        }
    }
}

impl Timer {
    pub(super) fn rename(&mut self, name: impl Fn(Id) -> Id) {
        (self.entity, self.owner) = (name(self.entity), name(self.owner));
        if let Some(clock) = &mut self.chosen {
            clock.rename(name);
        }
    }
}

impl Clocks {
    fn rename(&mut self, name: impl Fn(Id) -> Id) {
        for clock in &mut self.all {
            clock.rename(&name);
        }
    }
}

impl Clock {
    pub(super) fn rename(&mut self, name: impl Fn(Id) -> Id) {
        let names = self.parent.iter_mut().chain(&mut self.awaited);
        for named in names.chain([&mut self.name]) {
            named.rename(&name);
        }
    }
}

impl Named {
    pub(super) fn rename(&mut self, name: impl Fn(Id) -> Id) {
        if let Self::Own(id) = self {
            *id = name(*id);
        }
    }
}

//! An entity that is saved with everything it owns, and comes back under another number.

use std::collections::BTreeMap;

use super::{
    Model,
    clocks::Nth,
    entities::Entity,
    timers::{Done, Timer},
};
use crate::{
    entry::{Id, NOWHERE, Named},
    op::Slot,
};

impl Model {
    /// An entity despawns with everything that depends on it, and is loaded again. If others despawn
    /// with it, for instance timers on its clock, it is not loaded: they may be named in the data.
    pub(super) fn revive(&mut self, slot: Slot) {
        let Some(root) = self.at(slot) else { return };
        let saved = self.dependents(root);
        self.add_modified_clocks();
        let then = self.clone();
        self.despawn(root);
        let lives_on = |id: Id| !then.exists(id) || self.exists(id) || saved.contains(&id);
        if !(0..then.entities.len()).all(lives_on) {
            return;
        }
        let names = self.load(&then, &saved);
        self.leave_pauses(&names);
        for mut letter in then.mail_to(&saved) {
            letter.rename(|id| match names.get(&id) {
                Some(&name) => name,
                None if then.exists(id) => id,
                None => NOWHERE,
            });
            self.mail.sent.push_back(letter);
        }
        self.succeed(&names);
    }

    /// A timer that was saved in a pause runs if the pause stays behind.
    pub(super) fn leave_pauses(&mut self, names: &BTreeMap<Id, Id>) {
        for &id in names.values() {
            self.update_pause(id);
        }
    }

    /// Entities take the slots of others.
    pub(super) fn succeed(&mut self, names: &BTreeMap<Id, Id>) {
        self.slots = self
            .slots
            .map(|id| Some(names.get(&id?).copied().unwrap_or(id?)));
    }

    /// Returns an entity and everything it owns, and then the pauses and the speed modifiers of all of
    /// these that belong to nobody else, with what they own.
    pub(super) fn dependents(&self, root: Id) -> Vec<Id> {
        let mut found = Vec::new();
        self.collect(root, &mut found);
        let mut next = 0;
        while let Some(&id) = found.get(next) {
            next += 1;
            let Entity {
                paused_by,
                modifiers,
                ..
            } = &self.entities[id];
            // A modifier that pauses another entity goes with that one.
            let modifiers = modifiers.iter();
            let modifiers = modifiers.filter(|&&it| self.entities[it].pauses.is_none());
            for &effect in paused_by.iter().chain(modifiers) {
                if self.entities[effect].owner.is_none() {
                    self.collect(effect, &mut found);
                }
            }
        }
        found
    }

    /// Loads entities as they were. Returns their numbers before and now.
    pub(super) fn load(&mut self, then: &Self, saved: &[Id]) -> BTreeMap<Id, Id> {
        // The order in the data means nothing.
        let mut ids = saved.to_vec();
        ids.sort_unstable();
        let names: BTreeMap<Id, Id> = ids.into_iter().map(|id| (id, self.spawn())).collect();
        let name = |id: Id| match names.get(&id) {
            Some(&name) => name,
            None if then.exists(id) => id,
            None => NOWHERE,
        };
        let clocks = self.load_clocks(then, name);
        for &id in saved {
            self.load_entity(&then.entities[id], name(id), name);
        }
        for &id in saved {
            self.update_factor(name(id));
        }
        self.load_timers(then, saved, &clocks, name);
        for (at, ended) in then.ended.iter().enumerate() {
            let mine = ended.iter().filter(|(id, _)| saved.contains(id));
            let despawns = mine.filter(|&&(_, done)| done != Done::Keeps);
            self.ended[at].extend(despawns.map(|&(id, done)| (name(id), done)));
        }
        names
    }

    /// Collects an entity and everything it owns, in order.
    fn collect(&self, id: Id, found: &mut Vec<Id>) {
        if found.contains(&id) {
            return;
        }
        found.push(id);
        for &owned in &self.entities[id].owned {
            self.collect(owned, found);
        }
    }

    /// Loads the clocks in their order, after all existing ones. Returns their places before and now.
    fn load_clocks(&mut self, then: &Self, name: impl Fn(Id) -> Id) -> BTreeMap<Nth, Nth> {
        let clocks = then.clocks.all.iter().enumerate();
        let mine = clocks.filter(|(_, clock)| match clock.name {
            Named::Own(id) => clock.exists && name(id) != id,
            _ => false,
        });
        let before: Vec<Nth> = mine.map(|(nth, _)| nth).collect();
        let first = self.clocks.all.len();
        let places: BTreeMap<Nth, Nth> = before.into_iter().zip(first..).collect();
        self.clocks.copy(&then.clocks, &places, name);
        places
    }

    fn load_entity(&mut self, saved: &Entity, id: Id, name: impl Fn(Id) -> Id) {
        let mut entity = Entity {
            follows: None,
            is_held: false,
            parent: None,
            children: Vec::new(),
            ..saved.clone()
        };
        // Effects that stay belong to somebody else.
        let is_loaded = |&it: &Id| name(it) != it && name(it) != NOWHERE;
        entity.paused_by.retain(is_loaded);
        entity.modifiers.retain(is_loaded);
        entity.rename(&name);
        if let Some(owner) = entity.owner {
            let owned = &mut self.entities[owner].owned;
            if !owned.contains(&id) {
                owned.push(id);
            }
            if let Some(key) = entity.key {
                self.keys.push(((owner, key), id));
            }
        }
        self.entities[id] = entity;
        if let Some(target) = self.entities[id].pauses
            && !self.entities[target].paused_by.contains(&id)
        {
            self.set_pauses(id, target);
        }
        if let Some((clock, ..)) = self.entities[id].modifies {
            let factor = self.entities[id].modifies;
            let modifiers = &mut self.entities[clock].modifiers;
            if !modifiers.contains(&id) {
                modifiers.push(id);
                self.set_modifier(id, factor);
            }
        }
    }

    /// Loaded timers come after all others, in their order.
    fn load_timers(
        &mut self,
        then: &Self,
        saved: &[Id],
        clocks: &BTreeMap<Nth, Nth>,
        name: impl Fn(Id) -> Id,
    ) {
        let is_mine = |timer: &&Timer| saved.contains(&timer.entity);
        let mut timers: Vec<Timer> = then.timers.iter().filter(is_mine).cloned().collect();
        for timer in &mut timers {
            timer.save(|id, kind| then.spec(id, kind), self.rules);
        }
        timers.sort_by_key(|timer| timer.sequence);
        for timer in &mut timers {
            self.inserted += 1;
            self.sequence += 1;
            if self.entities[name(timer.entity)].seat == Some(timer.seat) {
                self.entities[name(timer.entity)].seat = Some(self.inserted);
            }
            (timer.seat, timer.sequence) = (self.inserted, self.sequence);
            timer.rename(&name);
            timer.is_released = false;
            if let Some(before) = timer.clock.filter(|&nth| then.clocks.all[nth].exists) {
                let now = clocks.get(&before).copied().unwrap_or(before);
                timer.clock = Some(now);
                timer.follow_clock(&then.clocks.all[before], &self.clocks.all[now]);
            }
        }
        self.timers.append(&mut timers);
    }
}

//! Snapshots: copies of the whole model. Callbacks and Bevy's messages do not go back with it.

use core::iter;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Model, clock::Driver, entities::Entity};
use crate::{
    entry::{Id, Named},
    op::SNAPSHOTS,
};

#[derive(Clone, Default)]
pub(super) struct Rollback {
    /// The last snapshots, the newest first.
    snapshots: VecDeque<Model>,
    /// The entity that took the place of each one that was spawned again.
    successors: BTreeMap<Id, Id>,
    /// The entities that the crate knows to have taken the place of others: it spawned them again, or found
    /// them in the map of the game.
    known: BTreeSet<Id>,
}

impl Rollback {
    /// Returns the last number of an entity that was spawned again, or its own.
    fn last_name(&self, id: Id) -> Id {
        let next = |id: &Id| self.successors.get(id).copied();
        iter::successors(Some(id), next).last().unwrap_or(id)
    }

    /// Returns the last number of an entity that the crate knows, of those since the snapshot.
    fn last_known_name(&self, id: Id, first_new: Id) -> Id {
        let next = |id: &Id| self.successors.get(id).copied();
        let is_known = |id: &Id| *id >= first_new && self.known.contains(id);
        let names = iter::successors(Some(id), |id| next(id).filter(is_known));
        names.last().unwrap_or(id)
    }

    /// Drops all snapshots.
    pub(super) fn forget(&mut self) {
        self.snapshots.clear();
    }
}

impl Model {
    pub(super) fn snapshot(&mut self) {
        self.add_modified_clocks();
        let rollback = core::mem::take(&mut self.rollback);
        let copy = self.clone();
        self.rollback = rollback;
        self.rollback.snapshots.push_front(copy);
        self.rollback.snapshots.truncate(SNAPSHOTS);
    }

    /// Everything but the callbacks is as it was. An entity that has despawned since
    /// is spawned again, with another number.
    pub(super) fn restore(&mut self, nth: usize) {
        let Some(mut then) = self.rollback.snapshots.get(nth).cloned() else {
            return;
        };
        let first_new = then.entities.len();
        let alive: Vec<Id> = then.alive().collect();
        let ours = alive.iter().copied().filter(|&id| then.is_ours(id));
        let ours: Vec<Id> = ours.collect();
        let latest = ours.iter().filter_map(|&id| Some((id, self.latest(id)?)));
        let latest: BTreeMap<Id, Id> = latest.filter(|(id, latest)| id != latest).collect();
        // The map of the game names what took the place of other entities.
        let others = (0..first_new).filter(|id| !ours.contains(id));
        let named = others.filter_map(|id| Some((id, self.latest(id)?)));
        let named: BTreeMap<Id, Id> = named.collect();
        let mut kept = ours.clone();
        kept.extend(latest.values());
        let is_known = |id: &&Id| self.rollback.known.contains(id);
        kept.extend(named.values().filter(|id| !is_known(id)));
        self.rollback.known.extend(latest.values());
        self.rollback.successors.extend(latest);
        for id in then.entities.len()..self.entities.len() {
            let is_ours = self.is_ours(id) || self.rollback.known.contains(&id);
            if self.exists(id) && is_ours && !kept.contains(&id) {
                self.vanish(id);
            }
        }
        // The game spawns those without components of the crate.
        let kept: Vec<Id> = alive.iter().filter_map(|&id| self.latest(id)).collect();
        for id in 0..self.entities.len() {
            if self.exists(id) && !kept.contains(&id) {
                self.vanish(id);
            }
        }
        for &id in &alive {
            if self.latest(id).is_none() {
                let new = self.spawn();
                let last = self.rollback.last_name(id);
                self.rollback.successors.insert(last, new);
                if ours.contains(&id) {
                    self.rollback.known.insert(new);
                }
            }
        }
        let has_part = |&id: &Id| then.has_part(id);
        let parts: Vec<Id> = alive.iter().copied().filter(has_part).collect();
        let name = |id: Id| match (ours.contains(&id), named.get(&id)) {
            (true, _) => self.latest(id).unwrap_or(id),
            (false, Some(&name)) => name,
            // The map does not have it yet.
            (false, None) => self.rollback.last_known_name(id, first_new),
        };
        then.rename(name);
        then.mail.rename(name);
        then.slots = then.slots.map(|id| Some(self.latest(id?).unwrap_or(id?)));
        self.go_back(then, &alive, &parts);
    }

    fn go_back(&mut self, then: Self, alive: &[Id], parts: &[Id]) {
        for &id in alive {
            let now = self.latest(id).expect("it is alive again");
            let before = core::mem::take(&mut self.entities[now]);
            self.entities[now] = Entity {
                exists: true,
                is_held: before.is_held,
                follows: before.follows,
                parent: before.parent,
                children: before.children,
                is_disabled: match parts.contains(&id) {
                    true => then.entities[id].is_disabled,
                    false => before.is_disabled,
                },
                ..then.entities[id].clone()
            };
        }
        let first_later = then.clocks.all.len();
        // A later clock is no clock of the snapshot.
        let later = self.clocks.all.split_off(then.clocks.all.len());
        self.clocks = then.clocks;
        for mut clock in later {
            (clock.exists, clock.driver) = (false, Driver::Missing);
            self.clocks.all.push(clock);
        }
        let mail = then.mail;
        (self.mail.released, self.mail.sent) = (mail.released, mail.sent);
        (self.mail.held, self.mail.turns) = (mail.held, mail.turns);
        (self.slots, self.keys) = (then.slots, then.keys);
        (self.timers, self.ended) = (then.timers, then.ended);
        (self.inserted, self.sequence) = (then.inserted, then.sequence);
        (self.draws, self.unwritten) = (then.draws, then.unwritten);
        self.rules.seed = then.rules.seed;
        (self.overstep, self.stats) = (then.overstep, then.stats);
        self.is_game_paused = then.is_game_paused;
        self.modified = then.modified;
        self.leave_later_clocks(first_later);
    }

    fn alive(&self) -> impl Iterator<Item = Id> {
        (0..self.entities.len()).filter(|&id| self.exists(id))
    }

    /// An entity despawns without any event.
    fn vanish(&mut self, id: Id) {
        self.stop_update(id);
        self.leave_children(id);
        self.set_child_of(id, None);
        self.entities[id] = Entity::default();
    }

    /// Returns an entity, or the last one that took its place, if it exists.
    fn latest(&self, id: Id) -> Option<Id> {
        let mut latest = id;
        while !self.exists(latest) {
            latest = *self.rollback.successors.get(&latest)?;
        }
        Some(latest)
    }

    /// Returns the request that was made under a name. It has another number if it was spawned again.
    pub(super) fn request_now(&self, made: Id) -> Id {
        match self.rollback.known.contains(&made) {
            true => made,
            false => self.latest(made).unwrap_or(made),
        }
    }

    /// Returns `true` if a snapshot holds an entity: it has a component of the crate, or its timer
    /// finished in the last run.
    fn is_ours(&self, id: Id) -> bool {
        self.has_part(id) || self.ended.iter().flatten().any(|&(of, _)| of == id)
    }

    fn has_part(&self, id: Id) -> bool {
        let entity = &self.entities[id];
        let has_clock = self.clocks.find(Named::Own(id)).is_some();
        let has_part = entity.owner.is_some()
            || entity.key.is_some()
            || entity.timer.is_some()
            || entity.life.is_some()
            || entity.action.is_some()
            || entity.is_paused
            || entity.runs_while_paused
            || entity.pauses.is_some()
            || entity.on.is_some()
            || entity.modifies.is_some();
        let lists = [&entity.owned, &entity.paused_by, &entity.modifiers];
        let is_target = lists.into_iter().any(|list| !list.is_empty());
        has_clock || has_part || is_target || entity.until.is_some()
    }
}

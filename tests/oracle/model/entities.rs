//! Entities, and their relations: owners, keys, pauses and speed modifiers.

use bevy_due::CancelReason;

use super::{Model, mail::Follows, timers::Kind};
use crate::{
    entry::{Id, NOWHERE, Named},
    op::{Action, KEYS, Ratio, Slot, Spec},
};

#[derive(Clone, Default)]
pub(super) struct Entity {
    pub(super) exists: bool,
    pub(super) owner: Option<Id>,
    /// In the order in which they became its own.
    pub(super) owned: Vec<Id>,
    /// In Bevy's hierarchy.
    pub(super) parent: Option<Id>,
    pub(super) children: Vec<Id>,
    pub(super) key: Option<usize>,
    /// The `Timer` component, whether armed or not.
    pub(super) timer: Option<Spec>,
    /// The insertion that the `Timer` component comes from, unless it was cancelled.
    pub(super) seat: Option<u64>,
    /// The `DespawnAfter` component.
    pub(super) life: Option<Spec>,
    pub(super) action: Option<Action>,
    pub(super) is_paused: bool,
    pub(super) is_disabled: bool,
    pub(super) runs_while_paused: bool,
    pub(super) pauses: Option<Id>,
    pub(super) paused_by: Vec<Id>,
    pub(super) on: Option<Named>,
    pub(super) modifies: Option<(Id, Ratio, Option<usize>)>,
    pub(super) modifiers: Vec<Id>,
    /// Whether its clock runs only under the condition.
    pub(super) is_held: bool,
    pub(super) follows: Option<Follows>,
    /// The time-out, if it stands for an open request of its owner.
    pub(super) until: Option<Spec>,
}

impl Model {
    pub(super) fn spawn(&mut self) -> Id {
        self.entities.push(Entity {
            exists: true,
            ..Entity::default()
        });
        self.entities.len() - 1
    }

    /// Returns the entity in a slot, if it exists.
    pub(super) fn at(&self, slot: Slot) -> Option<Id> {
        self.slots[slot].filter(|&id| self.exists(id))
    }

    /// Returns the entity in a slot. Spawns it if it does not exist.
    pub(super) fn ensure(&mut self, slot: Slot) -> Id {
        self.at(slot).unwrap_or_else(|| {
            let id = self.spawn();
            self.slots[slot] = Some(id);
            id
        })
    }

    pub(super) fn exists(&self, id: Id) -> bool {
        self.entities.get(id).is_some_and(|entity| entity.exists)
    }

    /// An entity despawns with all that it owns, its pauses, and the modifiers of its clock.
    pub(super) fn despawn(&mut self, id: Id) {
        if !self.exists(id) {
            return;
        }
        let owner = self.entities[id].owner.unwrap_or(id);
        let reason = match self.exists(owner) {
            true => CancelReason::Despawned,
            false => CancelReason::OwnerGone,
        };
        self.cancel(id, reason);
        self.cancel_silently(id, Kind::Request);
        self.cancel_life(id);
        let lost = self.remove_clock(id, true);
        self.stop_update(id);
        self.unfollow(id);
        self.set_key(id, None);
        self.leave_owner(id);
        self.end_pause(id);
        self.set_modifier(id, None);
        self.set_child_of(id, None);
        let entity = &mut self.entities[id];
        entity.exists = false;
        let Entity {
            paused_by,
            owned,
            modifiers,
            children,
            ..
        } = entity.clone();
        let linked = paused_by.into_iter().chain(owned).chain(modifiers);
        let linked: Vec<Id> = linked.chain(children).collect();
        for linked in linked {
            self.despawn(linked);
        }
        for (timer, kind) in lost {
            self.retire(timer, kind);
        }
    }

    /// A timer follows its new owner. If the owner does not exist, the timer is cancelled, and its
    /// entity despawns in the next run unless it has an owner by then.
    pub(super) fn set_owner(&mut self, id: Id, owner: Id) {
        self.leave_owner(id);
        self.entities[id].owner = Some(owner);
        if !self.exists(owner) {
            self.follow_default(id);
            self.cancel(id, CancelReason::OwnerGone);
            self.entities[id].owner = None;
            self.retire_later(id);
            return;
        }
        self.entities[owner].owned.push(id);
        self.with_armed(id, |timer| timer.owner = owner);
        self.update_pauses(id);
        self.follow_default(id);
        self.take_key(id);
    }

    /// A timer that chose no clock leaves that of the owner.
    pub(super) fn disown(&mut self, id: Id) {
        self.leave_owner(id);
        self.follow_default(id);
    }

    fn leave_owner(&mut self, id: Id) {
        let Some(owner) = self.entities[id].owner else {
            return;
        };
        self.drop_key(id);
        self.entities[id].owner = None;
        if owner != NOWHERE {
            self.entities[owner].owned.retain(|&owned| owned != id);
        }
        self.with_armed(id, |timer| timer.owner = id);
        self.update_pauses(id);
    }

    /// An entity gets another parent in Bevy's hierarchy, or none.
    pub(super) fn set_child_of(&mut self, id: Id, parent: Option<Id>) {
        if let Some(before) = self.entities[id].parent {
            self.entities[before].children.retain(|&child| child != id);
        }
        self.entities[id].parent = parent;
        if let Some(parent) = parent {
            self.entities[parent].children.push(id);
        }
    }

    /// The children of an entity lose their parent.
    pub(super) fn leave_children(&mut self, id: Id) {
        for child in self.entities[id].children.clone() {
            self.set_child_of(child, None);
        }
    }

    /// An owner has one timer per key. The earlier one is cancelled, and its entity despawns.
    pub(super) fn set_key(&mut self, id: Id, key: Option<usize>) {
        self.drop_key(id);
        self.entities[id].key = key;
        self.take_key(id);
    }

    fn take_key(&mut self, id: Id) {
        let Some((owner, key)) = self.key_of(id) else {
            return;
        };
        let earlier = self.keys.iter().position(|&(at, _)| at == (owner, key));
        let earlier = earlier.map(|at| self.keys.remove(at).1);
        self.keys.push(((owner, key), id));
        if let Some(earlier) = earlier.filter(|&earlier| earlier != id) {
            self.cancel_and_despawn(earlier, CancelReason::Replaced);
        }
    }

    fn drop_key(&mut self, id: Id) {
        self.keys.retain(|&(_, holder)| holder != id);
    }

    fn key_of(&self, id: Id) -> Option<(Id, usize)> {
        let entity = &self.entities[id];
        Some((entity.owner?, entity.key?))
    }

    /// Returns the entity with a key of an owner.
    pub(super) fn keyed(&self, owner: Id, key: usize) -> Option<Id> {
        let mut keys = self.keys.iter();
        let found = keys.find(|&&(at, _)| at == (owner, key));
        found.map(|&(_, id)| id)
    }

    /// Returns the name of the key of an owned entity.
    pub(super) fn key_name(&self, id: Id) -> Option<&'static str> {
        self.key_of(id).map(|(_, key)| KEYS[key])
    }

    /// Returns an owner and the entities that it owns, in order, that carry a `Timer`.
    pub(super) fn timers_of(&self, owner: Id) -> Vec<Id> {
        let owned = self.entities[owner].owned.iter().copied();
        let all = [owner].into_iter().chain(owned);
        all.filter(|&id| self.entities[id].timer.is_some())
            .collect()
    }
}

//! What the world has done since the last frame that was stored.

use core::{fmt, iter, time::Duration};

use bevy_due::{OwnedBy, message::MessageWorldExt, rollback::RollbackWorldExt, worlds::StableKey};
use bevy_ecs::prelude::*;

use super::{Failure, Owned, State, ZoneState, now, report};
use crate::{
    events::MailReturned,
    item::{Batch, Item},
    noted::{Letter, Noted},
    outbox::Outbox,
};

/// The number of owners above an entity that are looked at.
const MAX_OWNERS: usize = 256;

impl ZoneState {
    /// Takes what the world has noted since the last frame.
    pub(super) fn take_notes(&mut self, world: &mut World) {
        let Noted {
            touched,
            born,
            died,
            letters,
            moves,
        } = core::mem::take(&mut *world.resource_mut::<Noted>());
        for entity in born {
            self.refused.remove(&entity);
            self.note_owner(world, entity);
        }
        let now = now(world);
        for letter in letters {
            self.note_letter(letter, now);
        }
        for (entity, key) in died {
            self.refused.remove(&entity);
            // A key that was inserted again has not gone.
            if world.get::<StableKey>(entity) != Some(&key) {
                self.note_death(world, entity, key);
            }
        }
        self.note_departures(world, moves);
        for entity in touched {
            self.note_owner(world, entity);
            let root = self.root_of(world, entity);
            self.dirty.extend(root);
        }
    }

    /// Follows an entity with a key that has got an owner, or has lost it. One that belongs to a durable entity
    /// is stored and moves with it.
    fn note_owner(&mut self, world: &mut World, entity: Entity) {
        let Some(&key) = world.get::<StableKey>(entity) else {
            return;
        };
        let has_key = |owner| world.get::<StableKey>(owner).is_some();
        let is_owned = owners(world, entity).skip(1).any(has_key);
        match is_owned {
            true => self.note_death(world, entity, key),
            false => self.note_birth(world, entity, key),
        }
    }

    /// Notes whose timers have changed since the last frame that was stored, and who has mail.
    pub(super) fn note_changes(&mut self, world: &mut World) {
        let changed = match &self.storage.snapshot {
            Some(snapshot) => world.changed_since(snapshot),
            None => Vec::new(),
        };
        self.storage.snapshot = Some(world.snapshot_timers());
        let with_mail = world.entities_with_mail();
        let with_mail = with_mail
            .into_iter()
            .filter_map(|it| self.root_of(world, it));
        let with_mail: Vec<_> = with_mail.collect();
        self.dirty.extend(&with_mail);
        self.with_mail.extend(with_mail);
        world.resource_mut::<Noted>().touched.extend(changed);
    }

    fn note_birth(&mut self, world: &mut World, entity: Entity, key: StableKey) {
        let is_known = self.keys.get(&entity) == Some(&key);
        if is_known || entity == self.endpoint || self.refused.contains(&entity) {
            return;
        }
        if let Some(State::Parked(_)) = self.owned.get(&key).map(|owned| &owned.state) {
            report(world, KeyOfParked(key));
            self.refused.insert(entity);
            return;
        }
        let before = self.disown(world, key);
        let (epoch, outbox) = before.map_or((0, Outbox::default()), |it| (it.epoch, it.outbox));
        self.own(world, key, entity, epoch + 1, outbox);
        self.claim(key, epoch + 1, None);
    }

    fn note_death(&mut self, world: &mut World, entity: Entity, key: StableKey) {
        let is_here = |owned: &Owned| owned.entity() == Some(entity);
        if !self.owned.get(&key).is_some_and(is_here) {
            return;
        }
        if let Some(owned) = self.disown(world, key) {
            let state = State::Gone;
            self.owned.insert(key, Owned { state, ..owned });
            self.dirty.insert(key);
        }
    }

    fn note_letter(&mut self, letter: Letter, now: Duration) {
        let Letter {
            sender,
            from,
            to,
            packet,
        } = letter;
        let Some(owned) = self.owned.get_mut(&from) else {
            // What the sender does is not stored either.
            self.failures.push(Failure::Mail(MailReturned {
                entity: sender,
                to,
                letter: packet,
            }));
            return;
        };
        self.dirty.insert(from);
        if let Err(packet) = owned.outbox.add(to, packet) {
            let letters = vec![packet];
            let returned = Item::Returned(Batch { from, to, letters });
            self.waiting.add(returned, now);
        }
    }

    /// Returns the durable entity to which an entity belongs: the last one on the way up.
    pub(super) fn root_of(&self, world: &World, entity: Entity) -> Option<StableKey> {
        let keys = owners(world, entity).filter_map(|entity| self.keys.get(&entity).copied());
        keys.last()
    }
}

/// Returns an entity, its owner, the owner of that, and so on. Owners can form a circle.
fn owners(world: &World, entity: Entity) -> impl Iterator<Item = Entity> {
    let owner = |&entity: &Entity| world.get::<OwnedBy>(entity).map(|owner| owner.0);
    iter::successors(Some(entity), owner).take(MAX_OWNERS)
}

/// An entity in the journal has the key of a new one.
#[derive(Debug)]
struct KeyOfParked(StableKey);

impl fmt::Display for KeyOfParked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a new entity has the stable key {} of one in the journal that this world can't load: it is not stored",
            self.0.0
        )
    }
}

impl core::error::Error for KeyOfParked {}

//! What the world has done since the last frame that was stored.

use core::{iter, time::Duration};

use bevy_due::{
    Owned, OwnedBy, PausedBy,
    clock::{SpeedModifier, SpeedModifiers},
    message::MessageWorldExt,
    rollback::RollbackWorldExt,
    timer::Pauses,
    worlds::StableKey,
};
use bevy_ecs::{entity::EntityHashSet, prelude::*, relationship::Relationship};

use super::{Entry, State, ZoneState, now};
use crate::{
    changes::{Letter, Noted},
    events::MailReturned,
    ids::Life,
    item::{Batch, Item},
    outbox::Outbox,
    report::report,
};

/// The number of parents above an entity that are looked at.
const MAX_PARENTS: usize = 256;

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
        let now = now(world);
        // Another entity may get the key of the sender.
        let is_old = |it: &Letter| self.book.entity(it.from) == Some(it.sender);
        let (old, new): (Vec<_>, Vec<_>) = letters.into_iter().partition(is_old);
        old.into_iter().for_each(|it| self.note_letter(it, now));
        for entity in born {
            self.book.refused.remove(&entity);
            self.note_owner(world, entity);
            self.note_owned(world, entity);
        }
        new.into_iter().for_each(|it| self.note_letter(it, now));
        for (entity, key) in died {
            self.book.refused.remove(&entity);
            // A key that was inserted again has not gone.
            if world.get::<StableKey>(entity) != Some(&key) {
                self.note_death(world, entity, key);
                self.note_owned(world, entity);
            }
        }
        self.note_departures(world, moves);
        for entity in touched {
            self.note_owner(world, entity);
            self.note_owned(world, entity);
            let root = self.root_of(world, entity);
            self.book.dirty.extend(root);
        }
    }

    /// Follows the entities with a key that belong to an entity, which may have got or lost an owner or its key.
    fn note_owned(&mut self, world: &mut World, entity: Entity) {
        let mut below = vec![entity];
        let mut seen: EntityHashSet = [entity].into_iter().collect();
        while let Some(entity) = below.pop() {
            let owned = world.get::<Owned>(entity).into_iter().flat_map(Owned::iter);
            let pauses = world.get::<PausedBy>(entity).into_iter();
            let owned = owned.chain(pauses.flat_map(PausedBy::iter));
            let modifiers = world.get::<SpeedModifiers>(entity).into_iter();
            let owned = owned.chain(modifiers.flatten().copied());
            let owned: Vec<_> = owned.filter(|&it| seen.insert(it)).collect();
            for &entity in &owned {
                self.note_owner(world, entity);
            }
            below.extend(owned);
        }
    }

    /// Follows an entity with a key that has got an owner, or has lost it. One that belongs to a durable entity
    /// is stored and moves with it.
    fn note_owner(&mut self, world: &mut World, entity: Entity) {
        let Some(&key) = world.get::<StableKey>(entity) else {
            return;
        };
        let has_key = |owner| world.get::<StableKey>(owner).is_some();
        let is_owned = parents(world, entity).skip(1).any(has_key);
        match is_owned {
            true => self.note_belonging(world, entity, key),
            false => self.note_birth(world, entity, key),
        }
    }

    /// Notes whose timers have changed since the last frame that was stored.
    pub(super) fn note_changes(&mut self, world: &mut World) {
        let changed = match &self.storage.mark {
            Some(mark) => world.changed_since(mark),
            None => Vec::new(),
        };
        self.storage.mark = Some(world.mark_changes());
        world.resource_mut::<Noted>().touched.extend(changed);
    }

    /// Notes who has mail, also of those that are new in this frame.
    pub(super) fn note_mail(&mut self, world: &World) {
        let with_mail = world.entities_with_mail().into_iter();
        let with_mail = with_mail.filter_map(|it| self.root_of(world, it));
        let with_mail: Vec<_> = with_mail.collect();
        self.book.dirty.extend(&with_mail);
        self.book.with_mail.extend(with_mail);
    }

    fn note_birth(&mut self, world: &mut World, entity: Entity, key: StableKey) {
        let is_known = self.book.entity(key) == Some(entity);
        if is_known || entity == self.home.endpoint || self.book.refused.contains(&entity) {
            return;
        }
        if let Some(State::Unloadable(_)) = self.book.owned.get(&key).map(|owned| &owned.state) {
            let taken = format!(
                "a new entity has the stable key {} of one in the journal that this world can't load: it is not stored",
                key.0
            );
            report(world, taken);
            self.book.refused.insert(entity);
            return;
        }
        // The key has come from another entity of this world, which gets a letter no more.
        if let Some(before) = self.book.entity(key) {
            self.note_death(world, before, key);
        }
        let before = self.book.belonging.remove(&key);
        let before = before.filter(|&(before, ..)| before == entity);
        let (life, epoch) = match before {
            // The store may have agreed to a move to the next owner.
            Some((_, life, epoch)) => (life, epoch + 2),
            None => (Life::new(key), 1),
        };
        let entry = Entry {
            is_stored: false,
            ..Entry::new(life, epoch, State::Here(entity))
        };
        self.own(world, entry, Outbox::default());
        self.claims.released.remove(&life);
        if self.claims.referee.is_some() {
            self.claims.to_tell.insert(life);
        }
    }

    /// Notes that an entity belongs to another one, and gets no letters of its own until it is free again.
    fn note_belonging(&mut self, world: &mut World, entity: Entity, key: StableKey) {
        let owned = self.book.owned.get(&key);
        if let Some(owned) = owned.filter(|owned| owned.entity() == Some(entity)) {
            let (life, epoch) = (owned.life, owned.epoch);
            self.note_death(world, entity, key);
            self.book.belonging.insert(key, (entity, life, epoch));
        }
    }

    fn note_death(&mut self, world: &mut World, entity: Entity, key: StableKey) {
        let belonging = &mut self.book.belonging;
        if belonging.get(&key).is_some_and(|&(it, ..)| it == entity) {
            belonging.remove(&key);
        }
        if self.book.entity(key) != Some(entity) {
            return;
        }
        if let Some(owned) = self.disown(world, key) {
            let (life, epoch) = (owned.life, owned.epoch);
            self.end_life(life);
            self.post.outboxes.touch(life);
            if self.claims.referee.is_some() {
                self.claims.released.insert(life, epoch);
                self.claims.to_tell.insert(life);
            }
        }
    }

    fn note_letter(&mut self, letter: Letter, now: Duration) {
        let Letter {
            sender,
            from,
            to,
            packet,
        } = letter;
        let owned = self.book.owned.get(&from);
        let owned = owned.filter(|owned| owned.entity() == Some(sender));
        let Some(from) = owned.map(|owned| owned.life) else {
            // What the sender does is not stored either.
            return self.post.fail(MailReturned {
                entity: sender,
                to,
                letter: packet,
            });
        };
        if let Err(packet) = self.post.outboxes.add(from, to, packet) {
            let refused = Batch {
                id: None,
                from,
                to,
                letters: vec![packet],
            };
            self.post.unrouted.add(Item::Receipt(refused), now);
        }
    }

    /// Returns the durable entity with which an entity is stored: the last one on the way up.
    pub(super) fn root_of(&self, world: &World, entity: Entity) -> Option<StableKey> {
        let keys = parents(world, entity);
        keys.filter_map(|it| self.book.key_of(world, it)).last()
    }
}

/// Returns an entity, its parent, the parent of that, and so on. They can form a circle.
fn parents(world: &World, entity: Entity) -> impl Iterator<Item = Entity> {
    iter::successors(Some(entity), |&entity| parent(world, entity)).take(MAX_PARENTS)
}

/// Returns the entity with which another one is stored: its owner, or else what it pauses, or else the clock that it
/// modifies.
fn parent(world: &World, entity: Entity) -> Option<Entity> {
    if let Some(owner) = world.get::<OwnedBy>(entity) {
        return Some(owner.0);
    }
    if world.get::<StableKey>(entity).is_some() {
        return None;
    }
    let paused = world.get::<Pauses>(entity).map(Relationship::get);
    paused.or_else(|| world.get::<SpeedModifier>(entity).map(Relationship::get))
}

//! Holding the letters to entities in transit, and releasing them when the move has ended.

use alloc::{collections::VecDeque, vec::Vec};
use bevy_ecs::{entity::EntityHashMap, prelude::*};

use super::{
    directory::Directory,
    mail::{MailRef, Recipient},
    mailbag::Mailbag,
    queue::{Letter, Queue},
    sender::Inbox,
};
use crate::transit::InTransit;

/// The mail that waits for longer than until the next run.
#[derive(Default)]
pub(super) struct Kept {
    /// Replies to entities that are disabled.
    pub(super) replies: Queue,
    /// Letters to entities that are moving to or from another world, by the entity that takes the
    /// others along.
    transit: EntityHashMap<HeldLetters>,
    /// The number of these letters.
    letters: usize,
    /// Entities whose holds have begun or may have to end since the last look at them.
    to_check: VecDeque<Entity>,
}

impl Kept {
    /// Returns the number of messages.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.replies.len() + self.letters
    }

    /// Returns `true` if there are no messages, and no entity is in transit.
    pub(super) fn is_empty(&self) -> bool {
        self.replies.len() == 0 && self.transit.is_empty()
    }

    /// Returns the entities in transit with their letters, in the order of the entities.
    pub(super) fn in_transit(&self) -> Vec<(Entity, &HeldLetters)> {
        let held = self.transit.iter().map(|(&root, held)| (root, held));
        let mut held: Vec<_> = held.collect();
        held.sort_unstable_by_key(|&(root, _)| root);
        held
    }

    /// Adds a letter to an entity, and to the letters of the one that takes it along, if any.
    pub(super) fn push(&mut self, root: Option<Entity>, entity: Entity, letter: Letter) {
        match root.and_then(|root| self.transit.get_mut(&root)) {
            Some(held) => {
                held.arrived.push((entity, letter));
                self.letters += 1;
            }
            // It is disabled, or its move has ended, but not for this entity.
            None => self.replies.push_letter(letter),
        }
    }

    /// Changes the letters to an entity in transit. Returns `None` if there are none.
    pub(super) fn change<Out>(
        &mut self,
        root: Entity,
        change: impl FnOnce(&mut HeldLetters) -> Out,
    ) -> Option<Out> {
        let held = self.transit.get_mut(&root)?;
        self.letters -= held.len();
        let out = change(held);
        self.letters += held.len();
        Some(out)
    }

    /// Removes the letters that have arrived for entities in transit.
    pub(super) fn take_arrived(&mut self) -> Vec<Letter> {
        let held = self.transit.values_mut();
        let taken = held.flat_map(|held| held.arrived.drain(..));
        let taken: Vec<Letter> = taken.map(|(_, letter)| letter).collect();
        self.letters -= taken.len();
        taken
    }

    pub(super) fn insert(&mut self, root: Entity, held: HeldLetters) -> Option<HeldLetters> {
        let before = self.remove(root);
        self.letters += held.len();
        self.transit.insert(root, held);
        // If a panic prevents the mark, the next run ends the hold.
        self.to_check.push_back(root);
        before
    }

    pub(super) fn remove(&mut self, root: Entity) -> Option<HeldLetters> {
        let held = self.transit.remove(&root)?;
        self.letters -= held.len();
        Some(held)
    }
}

/// The letters to an entity in transit and to everything that moves with it, in order.
#[derive(Default)]
pub(crate) struct HeldLetters {
    /// At the old end of a move, the number of letters that had arrived when the other world got the key of
    /// an entity. What arrives later was sent after that world had given the key back.
    before_late: Option<usize>,
    /// The entities that move, by their names in the world that exported them.
    pub(crate) names: EntityHashMap<Entity>,
    /// The letters that are part of the exported data.
    exported: Vec<Letter>,
    /// The letters that the other world has held. Only a commit brings them.
    late: Vec<Letter>,
    /// The letters that have arrived since then, each with the entity to which it goes. The entity of a
    /// key may change later.
    pub(crate) arrived: Vec<(Entity, Letter)>,
}

impl HeldLetters {
    /// Holds the letters to an entity that was exported, by the names of the entities that move along.
    pub(crate) fn at_old_end(names: EntityHashMap<Entity>, exported: Vec<Letter>) -> Self {
        Self {
            before_late: Some(usize::MAX),
            ..Self::at_new_end(names, exported)
        }
    }

    /// Holds the letters to an entity that was imported.
    pub(crate) fn at_new_end(names: EntityHashMap<Entity>, exported: Vec<Letter>) -> Self {
        Self {
            names,
            exported,
            ..Self::default()
        }
    }

    /// Returns `true` in the world that has exported the entity.
    pub(crate) fn is_at_old_end(&self) -> bool {
        self.before_late.is_some()
    }

    /// Returns a copy of the letters. Entities may have other names by now.
    pub(super) fn copy(&self, name: &dyn Fn(Entity) -> Entity) -> Self {
        let copy = |letter: &Letter| Letter::copy(letter.get(), name);
        let names = self.names.iter().map(|(&first, &now)| (first, name(now)));
        let arrived = self.arrived.iter();
        Self {
            before_late: self.before_late,
            names: names.collect(),
            exported: self.exported.iter().filter_map(copy).collect(),
            late: self.late.iter().filter_map(copy).collect(),
            arrived: arrived
                .filter_map(|(to, letter)| Some((name(*to), copy(letter)?)))
                .collect(),
        }
    }

    /// Returns all letters, in the order of delivery.
    pub(super) fn into_queue(mut self) -> Queue {
        let before_late = self.before_late.unwrap_or(0).min(self.arrived.len());
        let after = self.arrived.split_off(before_late).into_iter();
        let before = self.arrived.into_iter().map(|(_, letter)| letter);
        let letters = self.exported.into_iter().chain(before).chain(self.late);
        let letters = letters.chain(after.map(|(_, letter)| letter));
        let mut queue = Queue::default();
        letters.for_each(|letter| queue.push_letter(letter));
        queue
    }

    /// Notes that another world has got the key of an entity: the late letters belong here.
    pub(super) fn note_key_taken(&mut self) {
        if let Some(before_late) = &mut self.before_late {
            *before_late = self.arrived.len();
        }
    }

    /// Returns the number of letters.
    pub(super) fn len(&self) -> usize {
        self.exported.len() + self.late.len() + self.arrived.len()
    }

    /// Iterates over the letters that no other world has.
    pub(super) fn letters(&self) -> impl Iterator<Item = &Letter> {
        let arrived = self.arrived.iter().map(|(_, letter)| letter);
        self.exported.iter().chain(arrived)
    }

    /// Starts to hold letters for the entity of a move.
    pub(crate) fn begin(self, world: &mut World, root: Entity) {
        if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
            // A game may have removed the mark of an earlier move.
            if let Some(before) = mailbag.kept.insert(root, self) {
                mailbag.queue.put_first(before.into_queue());
            }
        }
    }

    /// Adds the letters that the other world has held. If a panic has kept an earlier commit from ending the
    /// hold, they take the place of its letters.
    pub(crate) fn set_late(world: &mut World, root: Entity, late: Vec<Letter>) {
        if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
            mailbag.kept.change(root, |held| held.late = late);
        }
    }

    /// Ends the hold, and drops the letters. The other world has the exported ones, and gets this number
    /// of the others.
    pub(crate) fn drop_all(world: &mut World, root: Entity, passed_on: usize) {
        if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>()
            && let Some(held) = mailbag.kept.remove(root)
        {
            let lost = held.len() - held.exported.len() - passed_on;
            mailbag.stats.undeliverable += lost as u64;
        }
    }

    /// Returns the letters to the entities of a move, and their names.
    pub(crate) fn of(world: &World, root: Entity) -> Option<&Self> {
        world.get_resource::<Mailbag>()?.kept.transit.get(&root)
    }

    /// Adds all letters to the entities of a move that have been sent, also from other threads.
    pub(crate) fn collect_arrived(
        world: &mut World,
        root: Entity,
        is_member: &dyn Fn(Entity) -> bool,
    ) {
        Inbox::move_to_mailbag(world);
        if Self::of(world, root).is_none() {
            return;
        }
        let taken = take_letters(world, is_member);
        if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
            mailbag.kept.change(root, |held| {
                for (to, letter) in taken {
                    match letter {
                        Some(letter) => held.arrived.push((to, letter)),
                        None => held.note_key_taken(),
                    }
                }
            });
        }
    }
}

/// Calls a function with each letter on its way, and the entity to which it goes, if it goes to one. The
/// letters to entities in transit are where they would be if their moves had ended.
pub(crate) fn visit_letters(world: &World, mut visit: impl FnMut(Option<Entity>, MailRef)) {
    let Some(mailbag) = world.get_resource::<Mailbag>() else {
        return;
    };
    let mut visit = |letter: MailRef| visit(recipient(letter.to, &mailbag.directory), letter);
    mailbag.kept.replies.visit(&mut visit);
    let held = mailbag.kept.in_transit().into_iter();
    let held = held.flat_map(|(_, held)| held.letters());
    held.map(Letter::get).for_each(&mut visit);
    mailbag.queue.visit(&mut visit);
}

/// Returns the entities for which letters wait, sorted.
pub(crate) fn entities_with_mail(world: &World) -> Vec<Entity> {
    let mut entities = Vec::new();
    if let Some(mailbag) = world.get_resource::<Mailbag>() {
        let directory = &mailbag.directory;
        let mut visit = |letter: MailRef| entities.extend(recipient(letter.to, directory));
        mailbag.kept.replies.visit(&mut visit);
        mailbag.queue.visit(&mut visit);
    }
    entities.sort_unstable();
    entities.dedup();
    entities
}

/// Takes the letters to these entities out of the mailbag, in order. A note about one of their keys becomes
/// `None`.
pub(crate) fn take_letters(
    world: &mut World,
    is_member: &dyn Fn(Entity) -> bool,
) -> Vec<(Entity, Option<Letter>)> {
    let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() else {
        return Vec::new();
    };
    let Mailbag {
        kept,
        queue,
        directory,
        ..
    } = &mut *mailbag;
    let member = |to, _: Option<MailRef>| recipient(to, directory).filter(|&to| is_member(to));
    let mut taken = kept.replies.extract(&member);
    taken.extend(queue.extract(&member));
    taken
}

/// Returns the entity to which a letter goes, if it goes to one.
fn recipient(to: Recipient, directory: &Directory) -> Option<Entity> {
    match to {
        Recipient::Entity(entity) => Some(entity),
        Recipient::Key(key) => directory.entity(key),
        Recipient::All | Recipient::InTurn => None,
    }
}

/// Returns `true` if the letters to an entity in transit are held.
pub(crate) fn is_held(world: &World, entity: Entity) -> bool {
    let mailbag = world.get_resource::<Mailbag>();
    let root = world.get::<InTransit>(entity).map(|mark| mark.root);
    let held = root.and_then(|root| mailbag?.kept.transit.get(&root));
    held.is_some_and(|held| held.names.values().any(|&member| member == entity))
}

impl Mailbag {
    /// Notes that the move of an entity may have ended.
    pub(crate) fn check_transit(&mut self, entity: Entity) {
        if self.kept.transit.contains_key(&entity) {
            self.kept.to_check.push_back(entity);
        }
    }
}

/// Ends the holds of entities that are no longer in transit: their move has ended, they have despawned, or
/// a restore or the game has removed their mark. The letters are released before all others.
///
/// An observer of a mark may export the entity again, and begin another hold. If it panics, the next run
/// ends this one.
pub(crate) fn release_lost(world: &mut World) {
    loop {
        let mut mailbag = world.resource_mut::<Mailbag>();
        let Some(root) = mailbag.kept.to_check.pop_front() else {
            return;
        };
        end_hold(world, root);
    }
}

/// Ends the hold of an entity, unless it is in transit.
fn end_hold(world: &mut World, root: Entity) {
    let is_lost = |world: &World| world.get::<InTransit>(root).is_none();
    let is_marked = |world: &World, member| {
        let mark = world.get::<InTransit>(member);
        mark.is_some_and(|mark| mark.root == root)
    };
    let held = HeldLetters::of(world, root).map(|held| held.names.values().copied());
    let mut marked: Vec<Entity> = held.into_iter().flatten().collect();
    marked.retain(|&member| is_marked(world, member));
    if is_lost(world) && !marked.is_empty() {
        // If an observer panics, the next run looks again.
        let mut mailbag = world.resource_mut::<Mailbag>();
        mailbag.kept.to_check.push_back(root);
    }
    for member in marked {
        if is_lost(world) && is_marked(world, member) {
            world.entity_mut(member).remove::<InTransit>();
        }
    }
    if !is_lost(world) {
        return;
    }
    // Messages in turn may go to the entity again.
    let mut mailbag = world.resource_mut::<Mailbag>();
    mailbag.followers.retry_disabled();
    if let Some(held) = mailbag.kept.remove(root) {
        mailbag.queue.put_first(held.into_queue());
    }
}

//! Holding the letters to entities in transit.

use alloc::vec::Vec;

use bevy_ecs::{entity::EntityHashMap, prelude::*};

use super::{
    directory::Directory,
    held_letters::{End, HeldLetters, LetterRef, Taken},
    inbox::Inbox,
    letter::{Letter, Recipient},
    mailbag::Mailbag,
};

impl HeldLetters {
    /// Starts to hold the letters to the entities of a move, at one of its ends. These were exported.
    pub(crate) fn begin(
        world: &mut World,
        (root, end): (Entity, End),
        names: EntityHashMap<Entity>,
        exported: Vec<Letter>,
    ) {
        if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
            mailbag.room.take_anyway(exported.len());
            let held = Self {
                end,
                names,
                exported,
                late: Vec::new(),
                arrived: Vec::new(),
            };
            // A game may have removed the mark of an earlier move.
            if let Some(before) = mailbag.transit.insert(root, held) {
                mailbag.release_first(before.into_letters());
            }
        }
    }

    /// Adds the letters that the other world has held. If a panic has kept an earlier commit from ending the
    /// hold, they take the place of its letters.
    pub(crate) fn set_late(world: &mut World, root: Entity, late: Vec<Letter>) {
        if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
            let Mailbag { transit, room, .. } = &mut *mailbag;
            if let Some(held) = transit.get_mut(&root) {
                room.take_anyway(late.len());
                room.give_back(held.late.len());
                held.late = late;
            }
        }
    }

    /// Ends the hold, and drops the letters. The other world has the exported ones, and gets this number
    /// of the others.
    pub(crate) fn drop_all(world: &mut World, root: Entity, passed_on: usize) {
        if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>()
            && let Some(held) = mailbag.transit.remove(&root)
        {
            mailbag.room.give_back(held.len());
            let lost = held.len() - held.exported.len() - passed_on;
            mailbag.stats.undeliverable += lost as u64;
        }
    }

    /// Returns the letters to the entities of a move, and their names.
    pub(crate) fn of(world: &World, root: Entity) -> Option<&Self> {
        world.get_resource::<Mailbag>()?.transit.get(&root)
    }

    /// Adds all letters to the entities of a move that have been sent, also from other threads.
    pub(crate) fn collect_arrived(
        world: &mut World,
        root: Entity,
        is_member: &dyn Fn(Entity) -> bool,
    ) {
        Inbox::move_to_mailbag(world);
        let Some(mailbag) = world.get_resource::<Mailbag>() else {
            return;
        };
        if !mailbag.transit.contains_key(&root) {
            return;
        }
        let taken = take_letters(world, is_member);
        let mut mailbag = world.resource_mut::<Mailbag>();
        let Mailbag { transit, room, .. } = &mut *mailbag;
        let Some(held) = transit.get_mut(&root) else {
            return;
        };
        let before = held.arrived.len();
        for taken in taken {
            match taken {
                Taken::Letter(to, letter) => held.arrived.push((to, letter)),
                Taken::KeyTaken => held.note_key_taken(),
            }
        }
        room.take_anyway(held.arrived.len() - before);
    }
}

/// Calls a function with each letter to these entities that waits for its delivery, in order.
pub(crate) fn visit_letters(
    world: &World,
    is_member: &dyn Fn(Entity) -> bool,
    mut visit: impl FnMut(Entity, LetterRef),
) {
    let (Some(mailbag), Some(directory)) = (
        world.get_resource::<Mailbag>(),
        world.get_resource::<Directory>(),
    ) else {
        return;
    };
    mailbag.visit(&mut |letter| {
        if let Some(to) = recipient(letter.to, directory).filter(|&to| is_member(to)) {
            visit(to, letter);
        }
    });
}

/// Returns the entities for which letters wait, sorted.
pub(crate) fn entities_with_mail(world: &World) -> Vec<Entity> {
    let mut entities = Vec::new();
    visit_letters(world, &|_| true, |to, _| entities.push(to));
    entities.sort_unstable();
    entities.dedup();
    entities
}

/// Takes the letters to these entities out of the mailbag, in order, with the notes about their keys.
pub(crate) fn take_letters(world: &mut World, is_member: &dyn Fn(Entity) -> bool) -> Vec<Taken> {
    if !world.contains_resource::<Mailbag>() {
        return Vec::new();
    }
    world.resource_scope(|world, mut mailbag: Mut<Mailbag>| {
        let directory = world.get_resource::<Directory>();
        let taken = mailbag.extract(&|to| {
            let to = recipient(to, directory?)?;
            is_member(to).then_some(to)
        });
        mailbag.room.give_back(taken.len());
        taken
    })
}

/// Returns the entity to which a letter goes, if it goes to one.
fn recipient(to: Recipient, directory: &Directory) -> Option<Entity> {
    match to {
        Recipient::Entity(entity) => Some(entity),
        Recipient::Key(key) => directory.entity(key),
        Recipient::All | Recipient::InTurn => None,
    }
}

impl Mailbag {
    /// Calls a function with each letter, in the order of delivery.
    fn visit(&self, visit: &mut dyn FnMut(LetterRef)) {
        for item in &self.held {
            item.visit(visit);
        }
        if let Some(in_progress) = &self.in_progress {
            in_progress.visit(visit);
        }
        for item in self.items.pending() {
            item.visit(visit);
        }
    }

    /// Takes the letters whose recipient a function names, in the order of delivery.
    fn extract(&mut self, member: &dyn Fn(Recipient) -> Option<Entity>) -> Vec<Taken> {
        let mut taken = Vec::new();
        let held = core::mem::take(&mut self.held).into_iter();
        self.held = held
            .filter_map(|item| item.extract(member, &mut taken))
            .collect();
        if let Some(in_progress) = &mut self.in_progress {
            in_progress.extract(member, &mut taken);
        }
        self.items
            .filter_map(|item| item.extract(member, &mut taken));
        taken
    }
}

//! The letters that wait for their delivery, by the entities to which they go.

use alloc::vec::Vec;

use bevy_ecs::prelude::*;

use super::{
    directory::Directory,
    mail::{MailRef, Recipient},
    mailbag::Mailbag,
    queue::Letter,
    send::MessageWorldExt,
};

/// Calls a function with each letter on its way, and the entity to which it goes, if it goes to one.
pub(crate) fn visit_letters(world: &World, mut visit: impl FnMut(Option<Entity>, MailRef)) {
    if let Some(mailbag) = world.get_resource::<Mailbag>() {
        let mut visit = |letter: MailRef| visit(recipient(letter.to, &mailbag.directory), letter);
        mailbag.replies.visit(&mut visit);
        mailbag.queue.visit(&mut visit);
    }
}

/// Returns the entities for which letters wait, sorted.
pub(super) fn entities_with_mail(world: &World) -> Vec<Entity> {
    let mut entities = Vec::new();
    if let Some(mailbag) = world.get_resource::<Mailbag>() {
        let directory = &mailbag.directory;
        let mut visit = |letter: MailRef| entities.extend(recipient(letter.to, directory));
        mailbag.replies.visit(&mut visit);
        mailbag.queue.visit(&mut visit);
    }
    entities.sort_unstable();
    entities.dedup();
    entities
}

/// Takes the letters to these entities out of the mailbag, in order.
pub(crate) fn take_letters(world: &mut World, is_wanted: &dyn Fn(Entity) -> bool) -> Vec<Letter> {
    let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() else {
        return Vec::new();
    };
    let Mailbag {
        replies,
        queue,
        directory,
        ..
    } = &mut *mailbag;
    let is_wanted = |to| recipient(to, directory).is_some_and(is_wanted);
    let mut taken = replies.extract(&is_wanted);
    taken.extend(queue.extract(&is_wanted));
    taken
}

/// Sends letters that have waited before, in another world. The next run should not wait.
pub(crate) fn deliver_soon(world: &mut World, letters: Vec<Letter>) {
    if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
        mailbag.is_urgent |= !letters.is_empty();
    }
    letters.into_iter().for_each(|letter| world.resend(letter));
}

/// Returns the entity to which a letter goes, if it goes to one.
fn recipient(to: Recipient, directory: &Directory) -> Option<Entity> {
    match to {
        Recipient::Entity(entity) => Some(entity),
        Recipient::Key(key) => directory.entity(key),
        Recipient::All | Recipient::InTurn => None,
    }
}

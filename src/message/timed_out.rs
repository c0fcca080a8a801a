//! Requests that have timed out, and whose [`NoAnswer`] is on its way.

use alloc::vec::Vec;

use bevy_ecs::{entity::EntityHashSet, prelude::*};

use super::{
    ask::{OpenRequest, time_out},
    held_letters::{HeldLetters, LetterRef},
    letter::{Letter, Role},
    mailbag::Mailbag,
    request::{NoAnswer, Origin, Request},
    transit::visit_letters,
};

/// Returns the requests that have timed out, although their asking entities do not know yet. In the
/// order of delivery.
pub(crate) fn timed_out(world: &World) -> Vec<Entity> {
    let (mut requests, mut seen) = (Vec::new(), EntityHashSet::default());
    let mut add = |letter: LetterRef| {
        if let &Role::Reply(Request(Origin::Here(request))) = letter.role
            && let Some(NoAnswer::TimedOut) = letter.payload.downcast_ref()
            // A periodic timer may have fired again.
            && seen.insert(request)
        {
            requests.push(request);
        }
    };
    let mailbag = world.get_resource::<Mailbag>();
    let mut held: Vec<_> = mailbag.into_iter().flat_map(|it| &it.transit).collect();
    held.sort_unstable_by_key(|&(&root, _)| root);
    for letter in held.into_iter().flat_map(|(_, held)| held.letters()) {
        add(letter.into());
    }
    visit_letters(world, &|_| true, |_, letter| add(letter));
    requests
}

/// Sends [`NoAnswer`] for a request that has timed out in the world that was saved.
pub(crate) fn time_out_again(world: &mut World, request: Entity) {
    if world.get::<OpenRequest>(request).is_some() {
        time_out(world, request);
    }
}

impl HeldLetters {
    fn letters(&self) -> impl Iterator<Item = &Letter> {
        let arrived = self.arrived.iter().map(|(_, letter)| letter);
        self.exported.iter().chain(arrived)
    }
}

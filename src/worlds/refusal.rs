//! Telling a world that its parcel was refused.

use bevy_ecs::{error::BevyError, world::World};

use super::{
    news::{AwaitedFrom, tell_world},
    parcel::{Parcel, Part, Refused},
};
use crate::{
    call::report,
    message::{Directory, NoAnswer, RefusalReason, asker_of, give_up},
};

/// Reports a refusal to the entity that made the request, or else to all followers of [`Refused`].
pub(super) fn report_refusal(world: &mut World, refused: Refused) {
    if let Part::Request { request, .. } = refused.parcel.part
        && let Some(directory) = world.get_resource::<Directory>()
        && let request = directory.resolve(request.into())
        && let Some(asker) = asker_of(world, request)
        && let Some(open) = request.entity()
    {
        // Worlds that have taken the parcel may still reply.
        if refused.reason == RefusalReason::InPart {
            world.entity_mut(open).insert(AwaitedFrom::Several);
        } else if world.get(open) != Some(&AwaitedFrom::Several) {
            give_up(world, asker, request, NoAnswer::Refused(refused.reason));
        }
        return;
    }
    if !tell_world(world, refused.clone()) {
        report::<Parcel>(world, BevyError::warning(refused));
    }
}

//! Spans around the handlers of timers, for profilers.

use core::fmt;

use bevy_ecs::prelude::*;
use tracing::{Span, info_span};

use super::TimerFired;

/// Creates a span with the name, the key, the entity and the owner of a timer that fires.
pub(super) fn span(world: &World, fired: &TimerFired) -> Span {
    let (entity, owner) = (fired.entity(), fired.owner());
    info_span!(
        "timer",
        name = %Named(world, fired),
        key = fired.key(),
        %entity,
        owner = (owner != entity).then(|| tracing::field::display(owner)),
    )
}

/// The name of a timer: its `Name`, its key, or its entity.
struct Named<'a>(&'a World, &'a TimerFired);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Self(world, fired) = self;
        match (world.get::<Name>(fired.entity()), fired.key()) {
            (Some(name), _) => write!(f, "{name}"),
            (None, Some(key)) => write!(f, "{key}"),
            (None, None) => write!(f, "{}", fired.entity()),
        }
    }
}

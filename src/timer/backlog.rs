//! The messages that wait for a fixed step while the game is paused.

use bevy_ecs::{message::Message, prelude::*};
use bevy_time::{Time, Virtual};

use super::{TimerCancelled, TimerFired, suspects::warn_backlog};

/// The number of messages of a type that are kept while the game is paused.
const KEPT: usize = 1 << 16;

/// Drops old messages if the game is paused and there are too many.
///
/// Bevy keeps all messages until a fixed step runs, so that systems in the fixed schedule don't miss
/// any. While the game is paused, timers of real time would fill the memory.
pub(crate) fn limit_backlog(world: &mut World) {
    let is_paused = |time: &Time<Virtual>| time.is_paused() || time.relative_speed_f64() == 0.0;
    if world.get_resource().is_some_and(is_paused) {
        limit(world, TimerFired::entity);
        limit(world, TimerCancelled::entity);
    }
}

fn limit<M: Message>(world: &mut World, entity: impl FnOnce(&M) -> Entity) {
    if let Some(mut messages) = world.get_resource_mut::<Messages<M>>()
        && messages.len() > KEPT
    {
        let len = messages.len();
        let last = messages.iter_current_update_messages().last();
        let last = last.map(entity);
        messages.update();
        warn_backlog::<M>(world, len, last);
    }
}

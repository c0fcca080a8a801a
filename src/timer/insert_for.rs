//! Components for a limited time.

use core::{
    any::{TypeId, type_name},
    fmt,
    time::Duration,
};

use bevy_ecs::{
    bundle::InsertMode, entity_disabling::Disabled, prelude::*, system::entity_command,
};

use super::{
    DespawnAfter, Keyed, SurvivesCancelAll, Timer, TimerAction,
    fired::Unannounced,
    limit::{Limit, watch},
    on_world::try_with_timers,
};
use crate::{
    call::report,
    owner::OwnedBy,
    pause::{Paused, pause_for},
};

/// Returns the command that inserts a component on an entity, and removes it after `time` on the
/// entity's clock. Bevy notes the caller as the place that inserts it.
///
/// If the component already has an end, the later one counts. Without an end, it stays.
#[track_caller]
pub(crate) fn insert_for<C: Component>(time: Duration, component: C) -> impl EntityCommand {
    let insert = entity_command::insert(component, InsertMode::Replace);
    move |entity: EntityWorldMut| insert_with_end::<C>(entity, time, insert)
}

fn insert_with_end<C: Component>(
    mut entity: EntityWorldMut,
    time: Duration,
    insert: impl EntityCommand,
) {
    let owner = entity.id();
    // These components would stop the timer that ends them.
    if TypeId::of::<C>() == TypeId::of::<Paused>() {
        return entity.world_scope(|world| pause_for(world, owner, DespawnAfter::new(time)));
    }
    if TypeId::of::<C>() == TypeId::of::<Disabled>() {
        return entity.world_scope(|world| {
            report::<C>(world, StopsItsEnd(owner).into());
        });
    }
    let key = Keyed::new(type_name::<C>());
    let watched = entity.world_scope(|world| {
        let id = world.register_component::<C>();
        watch(world, key.id(), id)
    });
    if let Err(same_name) = watched {
        return entity.world_scope(|world| report::<C>(world, same_name.into()));
    }
    let was_there = entity.contains::<C>();
    entity.world_scope(|world| {
        insert.apply(world.entity_mut(owner));
        let left = remaining(world, owner, key);
        let stays = was_there && left.is_none_or(|left| left > time);
        if world.get::<C>(owner).is_some() && !stays {
            world.spawn((
                (OwnedBy(owner), key, Limit::named(key.name())),
                (Timer::after(time), TimerAction::despawn()),
                (SurvivesCancelAll, Unannounced),
            ));
        }
    });
}

/// The error for a component that stops the timer that should remove it.
#[derive(Debug)]
struct StopsItsEnd(Entity);

impl fmt::Display for StopsItsEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "can't disable entity {} for a time, because its timers stop: insert `Disabled`, and \
             remove it with `commands.after(..)`",
            self.0
        )
    }
}

impl core::error::Error for StopsItsEnd {}

/// Returns the time that the timer under this key has left, if it is armed.
fn remaining(world: &mut World, owner: Entity, key: Keyed) -> Option<Duration> {
    let timer = try_with_timers(world, |timers| timers.keyed(owner, key));
    Some(timer.ok()??.remaining)
}

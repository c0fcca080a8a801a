//! Firing what is due: one timer after the other, each with all its handlers.

use core::{iter, num::NonZeroU32};

use bevy_ecs::{
    error::BevyError,
    message::Messages,
    resource::Resource,
    system::{ResMut, SystemState},
    world::{EntityRef, World},
};
#[cfg(feature = "bevy_reflect")]
use {
    bevy_ecs::reflect::ReflectResource,
    bevy_reflect::{Reflect, std_traits::ReflectDefault},
};

use crate::timer::{Timeline, Timer, TimerFired, TimerOf, is_observed_at_all};

/// The most firings of one timer in one run; 1,000 unless set otherwise.
///
/// In a long frame every deadline of a periodic timer that has passed gets a firing of its own.
/// Past this bound the rest are left out: the firing at the bound says in [`TimerFired::missed`]
/// how many, and the timer goes on with the first deadline of its grid that is still to come.
/// A timer that ends at the bound misses nothing.
///
/// # Examples
///
/// ```
/// use core::{num::NonZeroU32, time::Duration};
/// use bevy_app::prelude::*;
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
/// use bevy_time::{TimePlugin, TimeUpdateStrategy};
///
/// #[derive(Resource, Default)]
/// struct Missed(Vec<u64>);
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin))
///     .insert_resource(BurstLimit(NonZeroU32::new(3).unwrap()))
///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)))
///     .init_resource::<Missed>()
///     .add_observer(|fired: On<TimerFired>, mut missed: ResMut<Missed>| {
///         missed.0.push(fired.missed);
///     });
/// app.world_mut().spawn(Timer::every_secs(0.05));
///
/// app.update(); // Bevy's first frame takes no time.
/// app.update();
/// assert_eq!(app.world().resource::<Missed>().0, [0, 0, 2], "five deadlines, three firings");
/// ```
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Resource, Clone, Debug, Default, PartialEq)
)]
pub struct BurstLimit(pub NonZeroU32);

impl Default for BurstLimit {
    fn default() -> Self {
        const { Self(NonZeroU32::new(1000).expect("not zero")) }
    }
}

/// Fires what is due, together where nobody observes.
///
/// Where somebody does, timers are popped one at a time rather than in a batch: between two
/// firings the queue is the truth, so whatever a handler cancels is gone at once, with nothing to
/// look up again or to undo.
pub(crate) fn fire_due(
    world: &mut World,
    together: &mut SystemState<(ResMut<Timeline>, ResMut<Messages<TimerFired>>)>,
) -> Result<(), BevyError> {
    clear_up(world);
    let BurstLimit(burst_limit) = world.get_resource().copied().unwrap_or_default();
    while !is_observed_at_all::<TimerFired>(world) {
        let (mut timeline, mut messages) = together.get_mut(world)?;
        messages.write_batch(iter::from_fn(|| match timeline.ending {
            None => timeline.fire(burst_limit),
            Some(_) => None,
        }));
        if timeline.ending.is_none() {
            return Ok(());
        }
        finish(world);
    }
    while let Some(fired) = world.resource_mut::<Timeline>().fire(burst_limit) {
        world.write_message(fired);
        world.trigger(fired);
        world.flush();
        if fired.last {
            finish(world);
        }
    }
    Ok(())
}

/// Keeps the word that an entity has a `Timer` exactly while it is armed.
fn finish(world: &mut World) {
    let Some((entity, key)) = world.resource_mut::<Timeline>().ending.take() else {
        return;
    };
    if world.get::<Timer>(entity).map(Timer::key) == Some(key) {
        world.entity_mut(entity).remove::<Timer>();
    }
    // Whoever heard of it may have despawned the entity, or put a new timer in its place, which
    // stays.
    if let Ok(entity) = world.get_entity(entity)
        && is_finished(entity)
    {
        let entity = entity.id();
        world.resource_mut::<Timeline>().finished.push(entity);
    }
}

/// Despawns the owned timers that fired their last in the run before. Systems that read of it as
/// a message have found the entity whole. And does what a panic has kept from being done, if
/// somebody has caught it: between two hooks, or in the last handler of a timer.
fn clear_up(world: &mut World) {
    let mut timeline = world.resource_mut::<Timeline>();
    timeline.finished.swap();
    let discarded = timeline.discarded.take();
    if discarded.is_none() && timeline.ending.is_none() && timeline.finished.is_empty() {
        return;
    }
    if let Some(discarded) = discarded {
        world.write_message(discarded);
        world.trigger(discarded);
        world.flush();
    }
    finish(world);
    while let Some(entity) = world.resource_mut::<Timeline>().finished.next() {
        if world.get_entity(entity).is_ok_and(is_finished) {
            world.despawn(entity);
        }
    }
}

fn is_finished(entity: EntityRef) -> bool {
    entity.contains::<TimerOf>() && !entity.contains::<Timer>()
}

//! Firing what is due: one timer after the other, each with all its handlers.

use core::num::NonZeroU32;

use bevy_ecs::{
    error::BevyError,
    message::Messages,
    resource::Resource,
    system::{ResMut, SystemState},
    world::World,
};
#[cfg(feature = "bevy_reflect")]
use {
    bevy_ecs::reflect::ReflectResource,
    bevy_reflect::{Reflect, std_traits::ReflectDefault},
};

use crate::{
    clock::Clock,
    timer::{
        ClockKey, Scope, Timelines, Timer, TimerAction, TimerFired, TimerOf, Unfinished,
        is_observed_at_all,
    },
};

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

/// What firing needs of the world where nobody observes.
pub(crate) type Together = SystemState<(
    ResMut<'static, Timelines>,
    ResMut<'static, Messages<TimerFired>>,
)>;

/// Fires what is due on the clocks of a scope, one clock after the other.
pub(crate) fn fire_due(
    scope: Scope,
) -> impl Fn(&mut World, &mut Together) -> Result<(), BevyError> {
    move |world, together| {
        clear_up(world, scope);
        let mut last = None;
        while let timelines = world.resource::<Timelines>()
            && let Some((clock, line)) = timelines.next(scope, last)
        {
            last = Some(line.age);
            if !line.queue.is_empty() {
                fire_clock(world, scope, clock, together)?;
            }
        }
        world.resource_mut::<Timelines>().is_running = false;
        Ok(())
    }
}

/// Fires what is due on one clock, together where nobody observes.
///
/// Where somebody does, timers are popped one at a time rather than in a batch: between two
/// firings the queue is the truth, so whatever a handler cancels is gone at once, with nothing to
/// look up again or to undo.
pub(crate) fn fire_clock(
    world: &mut World,
    scope: Scope,
    clock: ClockKey,
    together: &mut Together,
) -> Result<(), BevyError> {
    let BurstLimit(burst_limit) = world.get_resource().copied().unwrap_or_default();
    let Some(entity) = world
        .resource::<Timelines>()
        .get(clock)
        .map(|line| line.clock)
    else {
        return Ok(());
    };
    let is_paused = |world: &World| world.get::<Clock>(entity).is_none_or(Clock::is_paused);
    while !is_observed_at_all::<TimerFired>(world) {
        let (mut timelines, mut messages) = together.get_mut(world)?;
        messages.write_batch(timelines.firings(clock, burst_limit));
        if timelines.unfinished.is_none() {
            return Ok(());
        }
        finish(world, scope);
        if is_paused(world) {
            return Ok(());
        }
    }
    loop {
        let mut timelines = world.resource_mut::<Timelines>();
        let Some(fired) = timelines.firings(clock, burst_limit).next() else {
            return Ok(());
        };
        let has_more_to_do = timelines.unfinished.is_some();
        world.write_message(fired);
        fired.trigger(world);
        world.flush();
        if has_more_to_do {
            finish(world, scope);
        }
        if is_paused(world) {
            return Ok(());
        }
    }
}

/// Runs the action of a timer that has fired, and ends it if that was its last time.
fn finish(world: &mut World, scope: Scope) {
    let mut timelines = world.resource_mut::<Timelines>();
    let Some(Unfinished { fired, key, acts }) = timelines.unfinished else {
        return;
    };
    let is_it = |world: &World| world.get::<Timer>(fired.entity).map(Timer::key) == Some(key);
    if acts {
        let rest = Unfinished {
            fired,
            key,
            acts: false,
        };
        timelines.unfinished = fired.last.then_some(rest);
        // Whoever heard of the firing may have cancelled the timer.
        if is_it(world)
            && let Some(action) = world.get::<TimerAction>(fired.entity).cloned()
        {
            action.act(world, &fired);
        }
    }
    world.resource_mut::<Timelines>().unfinished = None;
    if !fired.last {
        return;
    }
    let Ok(mut entity) = world.get_entity_mut(fired.entity) else {
        return;
    };
    let is_owned = entity.contains::<TimerOf>();
    let despawns = match entity.get::<Timer>().map(Timer::key) {
        // They may also have put a new timer in its place, which stays.
        Some(other) if other != key => false,
        Some(_) => entity
            .take::<Timer>()
            .is_some_and(|timer| timer.despawns(is_owned)),
        None => is_owned,
    };
    if despawns {
        let mut timelines = world.resource_mut::<Timelines>();
        timelines.finished(scope).push(fired.entity);
    }
}

/// Despawns the entities of timers that fired their last in the run before. Systems that read of
/// it as a message have found them whole. And does what a panic has kept from being done, if
/// somebody has caught it: between two hooks, or in the last handler of a timer.
fn clear_up(world: &mut World, scope: Scope) {
    let mut timelines = world.resource_mut::<Timelines>();
    timelines.is_running = true;
    let finished = timelines.finished(scope);
    finished.swap();
    let is_anything_finished = !finished.is_empty();
    let discarded = timelines.discarded.take();
    if discarded.is_none() && timelines.unfinished.is_none() && !is_anything_finished {
        return;
    }
    if let Some(discarded) = discarded {
        world.write_message(discarded);
        world.trigger(discarded);
        world.flush();
    }
    if let Some(unfinished) = &mut world.resource_mut::<Timelines>().unfinished {
        unfinished.acts = false;
    }
    finish(world, scope);
    while let Some(entity) = world.resource_mut::<Timelines>().finished(scope).next() {
        if world
            .get_entity(entity)
            .is_ok_and(|entity| !entity.contains::<Timer>())
        {
            world.despawn(entity);
        }
    }
}

//! Firing what is due: one timer after the other, each with all its handlers.

use core::num::NonZeroU32;

use bevy_ecs::{
    entity::Entity,
    error::BevyError,
    message::Messages,
    resource::Resource,
    system::{ResMut, SystemState},
    world::World,
};
use smallvec::SmallVec;
#[cfg(feature = "bevy_reflect")]
use {
    bevy_ecs::reflect::ReflectResource,
    bevy_reflect::{Reflect, std_traits::ReflectDefault},
};

use crate::timer::{
    AnyClocks, ClockKey, Scope, Timelines, Timer, TimerAction, TimerCancelled, TimerFired, TimerOf,
    Times, Unfinished, goes_on, is_observed_at_all,
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

/// What the stages before firing need of the world.
pub(crate) type ReadingParams = SystemState<(
    ResMut<'static, Timelines>,
    AnyClocks<'static, 'static>,
    Times<'static>,
    ResMut<'static, Messages<TimerCancelled>>,
)>;

/// What firing needs where nobody observes.
pub(crate) type FiringParams = SystemState<(
    ResMut<'static, Timelines>,
    ResMut<'static, Messages<TimerFired>>,
)>;

/// Fires what is due on the clocks of the frame.
pub(crate) fn fire_due(world: &mut World, params: &mut FiringParams) -> Result<(), BevyError> {
    fire_scope(world, Scope::Frame, params)
}

/// Fires what is due on the clocks of a scope, one clock after the other.
pub(crate) fn fire_scope(
    world: &mut World,
    scope: Scope,
    params: &mut FiringParams,
) -> Result<(), BevyError> {
    let mut timelines = world.resource_mut::<Timelines>();
    // A handler may run a schedule in which timers fire.
    let outer = if timelines.is_firing {
        Some(timelines.unfinished.take())
    } else if timelines.has_work(scope) {
        timelines.is_firing = true;
        clear_up(world, scope);
        None
    } else {
        return Ok(());
    };
    let mut last = None;
    while let Some((clock, age)) = world.resource::<Timelines>().next_due(scope, last) {
        last = Some(age);
        fire_clock(world, scope, clock, params)?;
    }
    let mut timelines = world.resource_mut::<Timelines>();
    match outer {
        Some(unfinished) => timelines.unfinished = unfinished,
        None => timelines.is_firing = false,
    }
    Ok(())
}

/// Fires what is due on one clock, together where nobody observes, until a handler stops it.
///
/// Where somebody does, timers are popped one at a time rather than in a batch: between two
/// firings the queue is the truth, so whatever a handler cancels is gone at once, with nothing to
/// look up again or to undo.
fn fire_clock(
    world: &mut World,
    scope: Scope,
    clock: ClockKey,
    params: &mut FiringParams,
) -> Result<(), BevyError> {
    let BurstLimit(burst_limit) = world.get_resource().copied().unwrap_or_default();
    let mut is_observed = is_observed_at_all::<TimerFired>(world);
    let timelines = world.resource::<Timelines>();
    let Some(line) = timelines.get(clock) else {
        return Ok(());
    };
    let clocks: SmallVec<[Entity; 4]> = timelines.clocks(line).collect();
    while clocks.iter().all(|&clock| goes_on(world, clock)) {
        if is_observed {
            let mut timelines = world.resource_mut::<Timelines>();
            let Some(fired) = timelines.firings(scope, clock, burst_limit).next() else {
                return Ok(());
            };
            let unfinished = timelines.unfinished;
            let despawns = fired.last && despawns(world, fired.entity);
            world.write_message(fired);
            fired.trigger(world);
            world.flush();
            if unfinished.is_some() {
                finish(world, despawns);
            }
        } else {
            let (mut timelines, mut messages) = params.get_mut(world)?;
            messages.write_batch(timelines.firings(scope, clock, burst_limit));
            let Some(Unfinished { fired, .. }) = timelines.unfinished else {
                return Ok(());
            };
            let despawns = fired.last && despawns(world, fired.entity);
            finish(world, despawns);
            is_observed = is_observed_at_all::<TimerFired>(world);
        }
    }
    if let Some(line) = world.resource_mut::<Timelines>().get_mut(clock) {
        line.end_bursts();
    }
    Ok(())
}

/// Whether an entity goes after the last firing of its timer.
fn despawns(world: &World, entity: Entity) -> bool {
    let is_owned = world.get::<TimerOf>(entity).is_some();
    let timer = world.get::<Timer>(entity);
    timer.is_some_and(|timer| timer.despawns(is_owned))
}

/// Runs the action of a timer that has fired, and ends it if that was its last time.
fn finish(world: &mut World, despawns: bool) {
    let mut timelines = world.resource_mut::<Timelines>();
    let Some(unfinished) = timelines.unfinished else {
        return;
    };
    let Unfinished {
        fired, clock, key, ..
    } = unfinished;
    let entity = fired.entity;
    // Whoever heard of the firing may have cancelled the timer, or put a new one in its place.
    let is_it = |timer: &Timer| timer.armed() == Some((clock, key));
    if unfinished.acts {
        timelines.unfinished = fired.last.then_some(Unfinished {
            acts: false,
            ..unfinished
        });
        if world.get::<Timer>(entity).is_some_and(is_it) {
            TimerAction::act(world, &fired);
        }
    }
    let mut timelines = world.resource_mut::<Timelines>();
    timelines.unfinished = None;
    let is_fixed = timelines.get(clock).is_some_and(|line| line.is_fixed);
    let Ok(mut entity) = world.get_entity_mut(entity) else {
        return;
    };
    if !fired.last || entity.get::<Timer>().is_some_and(|timer| !is_it(timer)) {
        return;
    }
    entity.remove::<Timer>();
    if despawns {
        let mut timelines = world.resource_mut::<Timelines>();
        timelines.finish(fired.entity, is_fixed);
    }
}

/// Despawns the entities of timers that fired their last in the run before. Systems that read of
/// it as a message have found them whole. And does what a panic has kept from being done, if
/// somebody has caught it: between two hooks, or in the last handler of a timer.
fn clear_up(world: &mut World, scope: Scope) {
    let mut timelines = world.resource_mut::<Timelines>();
    if let Some(discarded) = timelines.discarded.take() {
        world.write_message(discarded);
        world.trigger(discarded);
        world.flush();
    }
    let mut timelines = world.resource_mut::<Timelines>();
    if let Some(unfinished) = &mut timelines.unfinished {
        unfinished.acts = false;
        let Unfinished { fired, .. } = *unfinished;
        let despawns = fired.last && despawns(world, fired.entity);
        finish(world, despawns);
    }
    let mut timelines = world.resource_mut::<Timelines>();
    if let Some(finished) = timelines.finished(scope) {
        finished.swap();
    }
    while let Some(entity) = next_finished(world, scope) {
        let finished = world.get_entity(entity);
        if finished.is_ok_and(|entity| !entity.contains::<Timer>()) {
            world.despawn(entity);
        }
    }
}

fn next_finished(world: &mut World, scope: Scope) -> Option<Entity> {
    let mut timelines = world.resource_mut::<Timelines>();
    timelines.finished(scope)?.next()
}

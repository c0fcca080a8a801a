//! The named handlers of timers.

use alloc::{borrow::Cow, boxed::Box, vec::Vec};
use core::{fmt, mem};

use bevy_ecs::{prelude::*, world::DeferredWorld};
use bevy_platform::{collections::HashMap, sync::Arc};

use super::TimerFired;
use crate::{call::call_with_world, system_pool::Pool};

/// Code that a timer calls.
#[derive(Clone)]
pub(super) struct Handler {
    pub(super) place: Place,
    pub(super) call: Arc<Call>,
}

pub(super) type Call = dyn Fn(&mut World, TimerFired) -> Result + Send + Sync;

/// Moves a closure to where clones of an action share it.
pub(super) fn share(
    call: impl Fn(&mut World, TimerFired) -> Result + Send + Sync + 'static,
) -> Arc<Call> {
    // Not `Arc::new`, which can't make an `Arc<dyn ..>` on platforms without atomics.
    let call: Box<Call> = Box::new(call);
    call.into()
}

/// The name of a handler in the report of an error.
#[derive(Clone)]
pub(super) enum Place {
    /// The type of a closure or a function.
    Code(&'static str),
    /// The name under which a handler is registered.
    Name(Arc<Cow<'static, str>>),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(name) => f.write_str(name),
            Self::Name(name) => write!(f, "timer handler {name:?}"),
        }
    }
}

/// The handlers of a world.
#[derive(Resource, Default)]
pub(crate) struct TimerHandlers {
    by_name: HashMap<Cow<'static, str>, Handler>,
    /// The actions since the last run whose handlers were unknown when they were inserted.
    unknown: Vec<(Entity, Cow<'static, str>)>,
}

/// Returns the handler that is registered under this name.
pub(super) fn find_handler(world: &World, name: &str) -> Result<Handler, NoSuchHandler> {
    let handlers = world.get_resource::<TimerHandlers>();
    let handler = handlers.and_then(|handlers| handlers.by_name.get(name));
    handler.cloned().ok_or_else(|| NoSuchHandler(name.into()))
}

/// Notes the action of an entity if its handler is unknown. The handler may still be registered
/// until the next run.
pub(super) fn expect_handler(world: &mut DeferredWorld, entity: Entity, name: Cow<'static, str>) {
    if let Some(mut handlers) = world.get_resource_mut::<TimerHandlers>()
        && !handlers.by_name.contains_key(&name)
    {
        handlers.unknown.push((entity, name));
    }
}

/// Warns of actions whose handlers are still unknown at the start of a run.
pub(crate) fn report_unknown_handlers(world: &mut World) {
    let has_unknown = |handlers: &TimerHandlers| !handlers.unknown.is_empty();
    if !world.get_resource().is_some_and(has_unknown) {
        return;
    }
    let mut handlers = world.resource_mut::<TimerHandlers>();
    for (entity, name) in mem::take(&mut handlers.unknown) {
        if world.entities().contains_spawned(entity)
            && let Err(unknown) = find_handler(world, &name)
        {
            let unknown = BevyError::warning(unknown);
            call_with_world::<Handler>(world, "TimerAction", entity, |_| Err(unknown));
        }
    }
}

/// Registers a system under a name that timers can refer to.
#[track_caller]
pub(crate) fn add_timer_handler<M>(
    world: &mut World,
    name: Cow<'static, str>,
    handler: impl IntoSystem<In<TimerFired>, (), M> + 'static,
) {
    let system = Pool::new(handler);
    let call = share(move |world, fired| system.run(world, fired));
    insert_handler(world, name, call);
}

/// Registers a function of this crate as a handler. Unlike a system, it can run within itself.
#[track_caller]
pub(crate) fn add_own_handler(
    world: &mut World,
    name: &'static str,
    handler: fn(&mut World, TimerFired),
) {
    let call = share(move |world, fired| {
        handler(world, fired);
        Ok(())
    });
    insert_handler(world, name.into(), call);
}

#[track_caller]
fn insert_handler(world: &mut World, name: Cow<'static, str>, call: Arc<Call>) {
    let mut handlers = world.get_resource_or_init::<TimerHandlers>();
    assert!(
        !handlers.by_name.contains_key(&name),
        "a timer handler is already registered as {name:?}: choose another name"
    );
    let place = Place::Name(Arc::new(name.clone()));
    handlers.by_name.insert(name, Handler { place, call });
}

/// The error for a name under which no handler is registered.
#[derive(Debug)]
pub(super) struct NoSuchHandler(Box<str>);

impl fmt::Display for NoSuchHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no timer handler is registered as {:?}: call `add_timer_handler` at start-up",
            self.0
        )
    }
}

impl core::error::Error for NoSuchHandler {}

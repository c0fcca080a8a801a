//! Calling the callbacks of entities, and reporting their errors.

use alloc::format;
use core::{any::type_name, fmt::Display};

use bevy_ecs::{
    component::IS_RESOURCE,
    entity::{Entities, EntityAllocator},
    error::{CommandOutput, ContextExt, ErrorContext, FallbackErrorHandler},
    prelude::*,
    resource::IsResource,
    system::{SystemInput, SystemParam, SystemParamItem, SystemState},
    world::{CommandQueue, DeferredWorld},
};

use crate::{
    report::{hand_over, report},
    systems::KeptSystem,
};

/// Gives callbacks their entity and commands, and reports their errors.
///
/// Until a callback issues commands, only the values of components can change. The caller therefore
/// keeps its borrow of the world. It fetches its parameters once, and then only the entity for each
/// call.
#[derive(SystemParam)]
pub(crate) struct EntityCaller<'w, 's> {
    entities: Query<'w, 's, EntityMut<'static>, Without<IsResource>>,
    queue: Deferred<'s, CommandQueue>,
    allocator: &'w EntityAllocator,
    all: &'w Entities,
    on_error: Option<Res<'w, FallbackErrorHandler>>,
}

impl EntityCaller<'_, '_> {
    /// Returns an entity and commands for its callback, unless the entity is gone or disabled.
    #[inline]
    pub(crate) fn get_mut(&mut self, entity: Entity) -> Option<(EntityMut<'_>, Commands<'_, '_>)> {
        let entity = self.entities.get_mut(entity).ok()?;
        let commands = Commands::new_from_entities(&mut self.queue, self.allocator, self.all);
        Some((entity, commands))
    }

    /// Returns `true` if an entity exists, disabled or not.
    pub(crate) fn exists(&self, entity: Entity) -> bool {
        self.all.contains_spawned(entity)
    }

    /// Returns an entity to read, unless it is gone or disabled.
    #[inline]
    pub(crate) fn get(&self, entity: Entity) -> Option<EntityRef<'_>> {
        self.entities.get(entity).ok()
    }

    pub(crate) fn commands(&mut self) -> Commands<'_, '_> {
        Commands::new_from_entities(&mut self.queue, self.allocator, self.all)
    }

    /// Returns `true` if a callback has issued commands. They must be applied before the next call.
    #[inline]
    pub(crate) fn has_commands(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Reports the error of a callback, if any, with the name of its component.
    #[inline]
    pub(crate) fn report(&self, component: &'static str, entity: Entity, result: Result) {
        if let Err(error) = result {
            let handler = self.on_error.as_deref();
            report_at(handler, error, component, component, entity);
        }
    }
}

/// Warns of a callback that is never called, because an entity that it needs holds a resource.
pub(crate) fn warn_of_resource<C>(world: &mut DeferredWorld, component: &str, needs: &[Entity]) {
    let is_resource = |&&entity: &&Entity| {
        let entity = world.get_entity(entity);
        entity.is_ok_and(|entity| entity.contains_id(IS_RESOURCE))
    };
    if let Some(entity) = needs.iter().find(is_resource) {
        let error = format!(
            "the `{component}` is never called, because entity {entity} holds a resource: use another entity"
        );
        let mut commands = world.commands();
        commands.queue(move |world: &mut World| report::<C>(world, BevyError::warning(error)));
    }
}

/// The state of a [`pump`]: an [`EntityCaller`], and the parameters `P`. The first use creates it, because many worlds
/// call nothing.
pub(crate) type PumpState<P> = Option<SystemState<(EntityCaller<'static, 'static>, P)>>;

/// Calls callbacks one after another, and applies the commands of each before the next call.
///
/// `call` must return as soon as the caller has commands, or when no callback is left. After the
/// commands are applied, `call` runs again.
///
/// # Errors
///
/// Returns an error if the world does not have the parameters `P`.
pub(crate) fn pump<P: SystemParam + 'static>(
    world: &mut World,
    state: &mut PumpState<P>,
    mut call: impl FnMut(&mut EntityCaller, SystemParamItem<P>),
) -> Result {
    // Applies any commands that a caught panic has left behind.
    if let Some(state) = state {
        state.apply(world);
    }
    while pump_once(world, state, &mut call)? {}
    Ok(())
}

/// Calls callbacks until one issues commands or none is left, and applies the commands. Returns `true` if there were
/// any.
///
/// # Errors
///
/// Returns an error if the world does not have the parameters `P`.
pub(crate) fn pump_once<P: SystemParam + 'static>(
    world: &mut World,
    state: &mut PumpState<P>,
    call: impl FnOnce(&mut EntityCaller, SystemParamItem<P>),
) -> Result<bool> {
    let state = state.get_or_insert_with(|| SystemState::new(world));
    let (mut caller, params) = state.get_mut(world)?;
    call(&mut caller, params);
    let has_commands = caller.has_commands();
    state.apply(world);
    Ok(has_commands)
}

/// Calls a callback with the whole world, and reports its error with its place in the code.
pub(crate) fn call_with_world<Of>(
    world: &mut World,
    place: impl Display,
    entity: Entity,
    callback: impl FnOnce(&mut World) -> Result,
) {
    if let Err(error) = callback(world) {
        let (handler, component) = (world.get_resource(), type_name::<Of>());
        report_at(handler, error, component, place, entity);
    }
    world.flush();
}

pub(crate) fn to_result(output: impl CommandOutput) -> Result {
    output.to_err().map_or(Ok(()), Err)
}

/// Queues a system for a callback. The system runs before the next callback, and its error is
/// reported with the entity of the callback.
pub(crate) fn queue_system<I, M, S>(
    commands: &mut Commands,
    component: &'static str,
    entity: Entity,
    system: S,
    input: I::Inner<'static>,
) where
    I: SystemInput<Inner<'static>: Send + Sync> + Send + 'static,
    M: 'static,
    S: IntoSystem<I, (), M> + Send + 'static,
{
    commands.queue(move |world: &mut World| {
        if let Err(error) = run_system(world, system, input) {
            let place = format_args!("{} for the {component}", type_name::<S>());
            report_at(world.get_resource(), error, component, place, entity);
        }
    });
}

/// Runs a system. A function keeps its state, and a closure that captures values starts anew.
pub(crate) fn run_system<I, M, S>(world: &mut World, system: S, input: I::Inner<'static>) -> Result
where
    I: SystemInput + 'static,
    S: IntoSystem<I, (), M> + 'static,
{
    KeptSystem::shared::<S>(world, || KeptSystem::new(system)).run(world, input)
}

/// Adds the place and the entity to an error, and reports it.
///
/// They are part of the message, because Bevy hides the names in an [`ErrorContext`] unless its
/// feature `debug` is on.
#[cold]
fn report_at(
    handler: Option<&FallbackErrorHandler>,
    error: BevyError,
    component: &'static str,
    place: impl Display,
    entity: Entity,
) {
    let name = component.into();
    let located: Result = Err(error);
    let located = located.with_context(|| format!("{place} of {entity}"));
    let error = located.expect_err("it was an error");
    hand_over(handler, error, ErrorContext::Command { name });
}

//! Calling the callbacks of entities, and reporting their errors.

use alloc::format;
use core::any::type_name;

use bevy_ecs::{
    entity::{Entities, Entity, EntityAllocator},
    error::{BevyError, CommandOutput, ErrorContext, FallbackErrorHandler},
    query::Without,
    resource::IsResource,
    system::{
        Commands, Deferred, Query, RegisteredSystemError, Res, SystemId, SystemInput, SystemParam,
    },
    utils::prelude::DebugName,
    world::{CommandQueue, EntityMut, World},
};

/// Calls the callbacks of entities, with the entity and commands.
///
/// As long as no callback issues commands, nothing but the values of components can change, so the
/// next callback can be called without looking anything up again.
#[derive(SystemParam)]
pub(crate) struct EntityCaller<'w, 's> {
    pub(crate) entities: Query<'w, 's, EntityMut<'static>, Without<IsResource>>,
    queue: Deferred<'s, CommandQueue>,
    allocator: &'w EntityAllocator,
    all: &'w Entities,
    on_error: Option<Res<'w, FallbackErrorHandler>>,
}

impl EntityCaller<'_, '_> {
    /// Calls a callback on an entity, if the entity exists and is enabled, and reports its error.
    #[inline]
    pub(crate) fn call<Of>(
        &mut self,
        entity: Entity,
        handler: impl FnOnce(EntityMut, Commands) -> Result<(), BevyError>,
    ) {
        let Ok(entity) = self.entities.get_mut(entity) else {
            return;
        };
        let id = entity.id();
        let commands = Commands::new_from_entities(&mut self.queue, self.allocator, self.all);
        if let Err(error) = handler(entity, commands) {
            let on_error = self.on_error.as_deref().copied().unwrap_or_default();
            on_error.0(error, context::<Of>(id));
        }
    }

    pub(crate) fn commands(&mut self) -> Commands<'_, '_> {
        Commands::new_from_entities(&mut self.queue, self.allocator, self.all)
    }

    /// Returns `true` if a callback has issued commands. They must be applied before the next call.
    #[inline]
    pub(crate) fn has_commands(&self) -> bool {
        !self.queue.is_empty()
    }
}

/// Calls a callback with the whole world, and reports its error.
pub(crate) fn call_with_world<Of>(
    world: &mut World,
    entity: Entity,
    handler: impl FnOnce(&mut World) -> Result<(), BevyError>,
) {
    if let Err(error) = handler(world) {
        world.fallback_error_handler()(error, context::<Of>(entity));
    }
    world.flush();
}

/// Passes an error that belongs to no entity to Bevy's error handler.
pub(crate) fn report<Of>(world: &World, error: BevyError) {
    let name = DebugName::type_name::<Of>();
    world.fallback_error_handler()(error, ErrorContext::Command { name });
}

pub(crate) fn to_result(output: impl CommandOutput) -> Result<(), BevyError> {
    output.to_err().map_or(Ok(()), Err)
}

/// Runs a one-shot system. A system that is skipped because of its parameters is not an error.
pub(crate) fn run_system<I>(
    world: &mut World,
    system: SystemId<I>,
    input: I::Inner<'_>,
) -> Result<(), BevyError>
where
    I: SystemInput<Inner<'static>: Send + Sync> + 'static,
{
    match world.run_system_with(system, input) {
        Ok(()) | Err(RegisteredSystemError::Skipped(_)) => Ok(()),
        // Keeps its severity.
        Err(RegisteredSystemError::Failed(error)) => Err(error),
        Err(error) => Err(error.into()),
    }
}

/// Names the component and the entity in the error report.
fn context<Of>(entity: Entity) -> ErrorContext {
    let name = format!("{} of {entity}", type_name::<Of>());
    ErrorContext::Command { name: name.into() }
}

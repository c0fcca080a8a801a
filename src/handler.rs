//! What the handlers of an entity are given, and what becomes of what they do.

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

/// What a handler is given: its entity and commands. While nobody has given any commands, nothing
/// but the components of entities can have changed, and the next handler can go on from there.
#[derive(SystemParam)]
pub(crate) struct Hands<'w, 's> {
    pub(crate) entities: Query<'w, 's, EntityMut<'static>, Without<IsResource>>,
    queue: Deferred<'s, CommandQueue>,
    allocator: &'w EntityAllocator,
    all: &'w Entities,
    on_error: Option<Res<'w, FallbackErrorHandler>>,
}

impl Hands<'_, '_> {
    /// Calls a handler on an entity, if that is there, and tells of its error.
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

    /// Whether somebody has given commands, which are to be applied before anything else happens.
    #[inline]
    pub(crate) fn has_commands(&self) -> bool {
        !self.queue.is_empty()
    }
}

/// Does what has the whole world for itself, and tells of its error.
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

/// Tells of an error that is nobody's in particular.
pub(crate) fn tell<Of>(world: &World, error: BevyError) {
    let name = DebugName::type_name::<Of>();
    world.fallback_error_handler()(error, ErrorContext::Command { name });
}

pub(crate) fn to_result(output: impl CommandOutput) -> Result<(), BevyError> {
    output.to_err().map_or(Ok(()), Err)
}

/// Runs a one-shot system. That it is skipped, as a schedule would skip it, is no error.
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
        // As severe as it is.
        Err(RegisteredSystemError::Failed(error)) => Err(error),
        Err(error) => Err(error.into()),
    }
}

/// Errors are told as those of the component whose handler it is, and of its entity.
fn context<Of>(entity: Entity) -> ErrorContext {
    let name = format!("{} of {entity}", type_name::<Of>());
    ErrorContext::Command { name: name.into() }
}

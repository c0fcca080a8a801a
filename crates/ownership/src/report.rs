//! Reports to Bevy's error handler.

use bevy_ecs::{
    error::{ErrorContext, Severity},
    prelude::*,
    utils::prelude::DebugName,
};

use crate::shard::Shard;

/// Reports what nobody can handle here.
pub(crate) fn report(world: &World, error: impl Into<BevyError>) {
    let name = DebugName::type_name::<Shard>();
    let error = error.into().with_severity(Severity::Warning);
    world.fallback_error_handler()(error, ErrorContext::Command { name });
}

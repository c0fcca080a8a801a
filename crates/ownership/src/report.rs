//! Reports to Bevy's error handler.

use bevy_ecs::{
    error::{ErrorContext, Severity},
    prelude::*,
    utils::prelude::DebugName,
};

/// What reports, as error handlers call it.
struct Ownership;

/// Reports what nobody can handle here.
pub(crate) fn report(world: &World, error: impl Into<BevyError>) {
    let name = DebugName::type_name::<Ownership>();
    let error = error.into().with_severity(Severity::Warning);
    world.fallback_error_handler()(error, ErrorContext::Command { name });
}

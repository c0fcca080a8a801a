//! Running the system of a delayed command.

use alloc::boxed::Box;

use bevy_ecs::prelude::*;

use crate::system_pool::Pool;

/// Runs a system. The system may run a schedule, which may call this function again.
pub(super) type Runner = Box<dyn Fn(&mut World) -> Result + Send + Sync>;

/// Returns a function that runs a system.
///
/// All commands that run the same function share its state. A closure that captures values has its
/// own.
pub(super) fn runner<S, M: 'static>(system: S) -> Runner
where
    S: IntoSystem<(), (), M> + Send + Sync + 'static,
{
    let own = Pool::new(system);
    if size_of::<S>() > 0 {
        return Box::new(move |world| own.run(world, ()));
    }
    Box::new(move |world| {
        let shared = Pool::<()>::shared::<S>(world);
        // The first command of a function brings its system, and so does one that runs while the
        // system is running already.
        if shared.is_empty() {
            shared.put(own.take());
        }
        shared.run(world, ())
    })
}

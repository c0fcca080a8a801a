//! The systems that delayed commands run.

use alloc::boxed::Box;
use core::any::TypeId;

use bevy_ecs::{
    prelude::*,
    system::{BoxedSystem, RunSystemError, SystemId},
    world::WorldId,
};
use bevy_platform::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use crate::call::run_system;

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
    match size_of::<S>() {
        0 => shared(system),
        _ => own(system),
    }
}

/// The systems that are functions, by the type of the function.
#[derive(Resource, Default)]
struct Shared(HashMap<TypeId, SystemId>);

fn shared<S, M: 'static>(system: S) -> Runner
where
    S: IntoSystem<(), (), M> + Send + Sync + 'static,
{
    let unused = Mutex::new(Some(system));
    Box::new(move |world| {
        let shared = world.get_resource_or_init::<Shared>();
        let known = shared.0.get(&TypeId::of::<S>()).copied();
        let known = known.filter(|id| world.entities().contains_spawned(id.entity()));
        let id = match known.or_else(|| Some(world.register_system(take(&unused)?))) {
            Some(id) => id,
            None => return Err("the entity of the system was despawned".into()),
        };
        let mut shared = world.get_resource_or_init::<Shared>();
        shared.0.insert(TypeId::of::<S>(), id);
        run_system(world, id, ())
    })
}

/// The system lives and dies with the function.
fn own<S, M>(system: S) -> Runner
where
    S: IntoSystem<(), (), M> + Send + Sync + 'static,
{
    let system: BoxedSystem = Box::new(IntoSystem::into_system(system));
    let slot = Mutex::new(Some(Own {
        system,
        world: None,
    }));
    Box::new(move |world| {
        let mut running = Running {
            own: take(&slot),
            slot: &slot,
        };
        let own = running.own.as_mut();
        let own = own.ok_or("the system is already running")?;
        // Only once: it makes the system see all components as changed.
        if own.world != Some(world.id()) {
            own.system.initialize(world);
            own.world = Some(world.id());
        }
        match own.system.run((), world) {
            Ok(()) | Err(RunSystemError::Skipped(_)) => Ok(()),
            Err(RunSystemError::Failed(error)) => Err(error),
        }
    })
}

/// A system of one function.
struct Own {
    system: BoxedSystem,
    /// The world for which the system is initialized.
    world: Option<WorldId>,
}

/// A system that runs. It returns to its slot at the end, even after a panic.
struct Running<'a> {
    own: Option<Own>,
    slot: &'a Mutex<Option<Own>>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(own) = self.own.take() {
            let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
            *slot = Some(own);
        }
    }
}

fn take<T>(slot: &Mutex<Option<T>>) -> Option<T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

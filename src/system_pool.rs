//! Systems that callbacks, delayed commands and named handlers run.

use alloc::{boxed::Box, vec, vec::Vec};
use core::any::TypeId;

use bevy_ecs::{
    prelude::*,
    system::{BoxedSystem, RunSystemError, SystemInput},
    world::WorldId,
};
use bevy_platform::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// The systems that are functions, by the type of the function.
#[derive(Resource)]
struct Shared<I: SystemInput + 'static>(HashMap<TypeId, Pool<I>>);

/// The idle instances of a system. There is one, unless the system has run within itself.
pub(crate) struct Pool<I: SystemInput>(Arc<Mutex<Vec<Instance<I>>>>);

/// A system with its state.
pub(crate) struct Instance<I: SystemInput> {
    system: BoxedSystem<I>,
    /// The world for which the system is initialized.
    world: Option<WorldId>,
}

impl<I: SystemInput + 'static> Pool<I> {
    /// Returns the pool of a function, which all its users in a world share.
    pub(crate) fn shared<S: 'static>(world: &mut World) -> Self {
        let mut shared = world.get_resource_or_init::<Shared<I>>();
        shared.0.entry(TypeId::of::<S>()).or_default().clone()
    }

    pub(crate) fn new<M>(system: impl IntoSystem<I, (), M> + 'static) -> Self {
        let system = Box::new(IntoSystem::into_system(system));
        let instance = Instance {
            system,
            world: None,
        };
        Self(Arc::new(Mutex::new(vec![instance])))
    }

    /// Runs the system. A system that is skipped because of its parameters is not an error.
    pub(crate) fn run(&self, world: &mut World, input: I::Inner<'_>) -> Result {
        let mut running = Running {
            instance: self.take(),
            pool: self,
        };
        let instance = running.instance.as_mut();
        let Instance { system, world: of } = instance.ok_or("the system is already running")?;
        // Only once: it makes the system see all components as changed.
        if *of != Some(world.id()) {
            system.initialize(world);
            *of = Some(world.id());
        }
        match system.run(input, world) {
            Ok(()) | Err(RunSystemError::Skipped(_)) => Ok(()),
            Err(RunSystemError::Failed(error)) => Err(error),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        let instances = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        instances.is_empty()
    }

    pub(crate) fn take(&self) -> Option<Instance<I>> {
        let mut instances = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        instances.pop()
    }

    pub(crate) fn put(&self, instance: Option<Instance<I>>) {
        let mut instances = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        instances.extend(instance);
    }
}

/// A system that runs. It returns to its pool at the end, even after a panic.
struct Running<'a, I: SystemInput + 'static> {
    instance: Option<Instance<I>>,
    pool: &'a Pool<I>,
}

impl<I: SystemInput + 'static> Drop for Running<'_, I> {
    fn drop(&mut self) {
        self.pool.put(self.instance.take());
    }
}

impl<I: SystemInput> Clone for Pool<I> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<I: SystemInput> Default for Pool<I> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<I: SystemInput + 'static> Default for Shared<I> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

//! Systems that callbacks, delayed commands and named handlers run.

use alloc::boxed::Box;
use core::any::TypeId;

use bevy_ecs::{
    prelude::*,
    system::{BoxedSystem, RunSystemError, SystemInput},
    world::WorldId,
};
use bevy_platform::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, TryLockError},
};

/// A system that keeps its state from run to run.
pub(crate) struct KeptSystem<I: SystemInput> {
    instance: Mutex<Instance<I>>,
    /// The world that uses it first. A system of Bevy can't run in another one.
    world: OnceLock<WorldId>,
}

struct Instance<I: SystemInput> {
    system: BoxedSystem<I>,
    is_initialized: bool,
}

/// The systems that are functions, by the type of the function.
#[derive(Resource)]
struct Functions<I: SystemInput + 'static>(HashMap<TypeId, Arc<KeptSystem<I>>>);

impl<I: SystemInput + 'static> Default for Functions<I> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<I: SystemInput + 'static> KeptSystem<I> {
    pub(crate) fn new<M>(system: impl IntoSystem<I, (), M> + 'static) -> Arc<Self> {
        Arc::new(Self {
            instance: Mutex::new(Instance {
                system: Box::new(IntoSystem::into_system(system)),
                is_initialized: false,
            }),
            world: OnceLock::new(),
        })
    }

    /// Returns the system of the function `S` that all its users in a world share.
    ///
    /// The first user brings the system as its `own`. While the shared system runs, a nested run
    /// uses its `own`, too.
    pub(crate) fn shared<S: 'static>(
        world: &mut World,
        own: impl FnOnce() -> Arc<Self>,
    ) -> Arc<Self> {
        if size_of::<S>() > 0 {
            return own();
        }
        let id = world.id();
        let mut functions = world.get_resource_or_init::<Functions<I>>();
        let function = TypeId::of::<S>();
        match functions.0.get(&function) {
            Some(shared) if shared.is_running() => own(),
            Some(shared) => shared.clone(),
            None => {
                let own = own();
                if own.is_of(id) {
                    functions.0.insert(function, own.clone());
                }
                own
            }
        }
    }

    /// Returns `true` if this world uses the system first, now or before.
    fn is_of(&self, world: WorldId) -> bool {
        *self.world.get_or_init(|| world) == world
    }

    fn is_running(&self) -> bool {
        matches!(self.instance.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Runs the system. A system that is skipped because of its parameters is not an error.
    pub(crate) fn run(&self, world: &mut World, input: I::Inner<'_>) -> Result {
        if !self.is_of(world.id()) {
            return Err(
                "the system belongs to another world, which ran it first: create it again for this \
                 world instead of cloning the action or the callback"
                    .into(),
            );
        }
        let mut instance = match self.instance.try_lock() {
            Ok(instance) => instance,
            // The system panicked in an earlier run.
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(
                    "the system is already running, and runs a schedule that calls it: run the \
                     schedule by a command, such as `commands.run_schedule`"
                        .into(),
                );
            }
        };
        // Only once: it makes the system see all components as changed.
        if !instance.is_initialized {
            instance.system.initialize(world);
            instance.is_initialized = true;
        }
        let result = instance.system.run_without_applying_deferred(input, world);
        instance.system.queue_deferred(world.into());
        // The commands of the system may run it again.
        drop(instance);
        world.flush();
        match result {
            Ok(()) | Err(RunSystemError::Skipped(_)) => Ok(()),
            Err(RunSystemError::Failed(error)) => Err(error),
        }
    }
}

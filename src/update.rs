//! The [`UpdateComponent`]: a function of an entity that is called in every frame.

mod hooks;
mod owner;
mod pause;
mod run;

use alloc::boxed::Box;
use core::{fmt, time::Duration};

use bevy_ecs::{
    component::Component,
    entity::Entity,
    error::{BevyError, CommandOutput},
    system::{Commands, In, SystemId},
    world::{EntityMut, World},
};
use bevy_platform::sync::Arc;
#[cfg(feature = "bevy_reflect")]
use {bevy_ecs::reflect::ReflectComponent, bevy_reflect::Reflect};

use crate::{
    call::{run_system, to_result},
    clock::ClockId,
    seat::Seat,
};
pub(crate) use hooks::enroll;
pub use owner::{UpdateOf, Updates};
pub use pause::{UpdatesPaused, UpdatesPausedFrom};
pub(crate) use run::{UpdateParams, UpdateRun, run_updates, swap_updates, update_scope};

/// Calls a function of the entity in every frame, in [`DueSystems::Update`](crate::DueSystems::Update).
///
/// Insert it at any time, on any entity: its function is first called in the next frame (in this one
/// only where it is inserted before [`DueSystems::Swap`](crate::DueSystems::Swap)). From the moment when it is removed or replaced, or its entity despawned, it is not called any more, not
/// even later in the same frame. For several functions of one entity see [`UpdateOf`].
///
/// # When to use it
///
/// | for | use |
/// |---|---|
/// | what all entities of a kind do in every frame | a plain Bevy system: it is several times faster, and in parallel |
/// | what one entity does now and another not, chosen at run time: the state of a character, a script, a modifier | `UpdateComponent` |
/// | what is polled because nobody says when it is ready: a socket, a file, a task | `UpdateComponent` |
/// | what happens after a while, or every so often | a [`Timer`](crate::Timer): it costs nothing while it waits |
/// | what happens when somebody else says so | a [`MessageComponent`](crate::MessageComponent), or an observer |
///
/// # Order
///
/// Those of lower [priority](Self::with_priority) are called first, negative before zero before
/// positive; equal ones in the order in which they were inserted. What one does to the world by
/// [commands](UpdateContext::commands) is done before the next one is called.
///
/// # Clocks
///
/// Like a timer it lives on a clock: the one it was put [on](Self::on), or that of its entity or
/// owner ([`OnClock`](crate::OnClock)), or that of the game. It is called with the time that has
/// passed there, and not at all while that clock stands still. The clock is looked up when it is
/// inserted; when that is despawned, it stands still for good. On the fixed clock, or one that runs
/// on it, it is called in every step of the fixed schedule.
///
/// [`UpdatesPaused`] pauses those of an entity, [`UpdatesPausedFrom`] all from a priority on. Those
/// of a [disabled](bevy_ecs::entity_disabling::Disabled) entity are not called.
///
/// # Errors
///
/// An error that the function returns is told to Bevy's error handler, and the others go on: unless
/// that handler panics, as Bevy's own does for an error of the usual
/// [`Severity`](bevy_ecs::error::Severity). A panic goes on as that of any system does. Those that
/// would have come after it are not called in this frame; whoever catches it finds all of them there.
///
/// # Time complexity
///
/// In the number *n* of update components: a frame is *O*(*n*), inserting *O*(log *p*) in the number
/// of different priorities, removing *O*(log *n*), amortised. Nothing is sorted in a frame.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_app::prelude::*;
/// use bevy_due::prelude::*;
/// use bevy_ecs::prelude::*;
/// use bevy_time::{TimePlugin, TimeUpdateStrategy};
///
/// #[derive(Component)]
/// struct Height(f32);
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin))
///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)));
/// app.update(); // Bevy's first frame takes no time.
///
/// let fall = UpdateComponent::new(|mut me: UpdateContext| {
///     let Some(mut height) = me.entity.get_mut::<Height>() else { return };
///     height.0 -= 2.0 * me.delta.as_secs_f32();
///     if height.0 <= 0.0 {
///         me.commands.entity(me.entity.id()).remove::<UpdateComponent>();
///     }
/// });
/// let stone = app.world_mut().spawn((Height(1.25), fall)).id();
/// app.update();
/// app.update();
/// assert_eq!(app.world().get::<Height>(stone).unwrap().0, 0.25);
/// app.update();
/// assert!(!app.world().entity(stone).contains::<UpdateComponent>(), "it has landed");
/// ```
#[doc(alias("scheduleUpdate", "tick", "on_update", "process"))]
#[derive(Component, Clone)]
#[component(immutable, on_insert = hooks::on_insert, on_discard = hooks::on_discard)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(opaque),
    reflect(Component, Clone, Debug)
)]
pub struct UpdateComponent {
    call: Call,
    priority: i32,
    clock: Option<ClockId>,
    seat: Seat,
}

#[derive(Clone)]
enum Call {
    Closure(Arc<Closure>),
    System(Arc<System>),
}

type Closure = dyn Fn(UpdateContext) -> Result<(), BevyError> + Send + Sync;
type System = dyn Fn(&mut World, UpdateInput) -> Result<(), BevyError> + Send + Sync;

/// What the function of an [`UpdateComponent`] is given.
pub struct UpdateContext<'a> {
    /// The entity whose function it is, with all its components: the owner of what is an
    /// [`UpdateOf`].
    pub entity: EntityMut<'a>,
    /// Commands, which are applied before the next function is called.
    pub commands: Commands<'a, 'a>,
    /// The entity with the [`UpdateComponent`].
    pub update_entity: Entity,
    /// How much time has passed on its clock since the frame before, that of a
    /// [fast-forward](crate::FastForwardWorldExt) included.
    pub delta: Duration,
    /// What its clock shows.
    pub elapsed: Duration,
    /// The clock that it is on.
    pub clock: ClockId,
}

/// What a system of an [`UpdateComponent`] is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdateInput {
    /// The entity whose system it is: the owner of what is an [`UpdateOf`].
    pub entity: Entity,
    /// The entity with the [`UpdateComponent`].
    pub update_entity: Entity,
    /// How much time has passed on its clock since the frame before, that of a
    /// [fast-forward](crate::FastForwardWorldExt) included.
    pub delta: Duration,
    /// What its clock shows.
    pub elapsed: Duration,
    /// The clock that it is on.
    pub clock: ClockId,
}

impl UpdateComponent {
    /// Creates one that calls a closure.
    ///
    /// A closure keeps no state of its own: that belongs into components, where others can see it.
    /// It may return a `Result`.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::prelude::*;
    /// use bevy_ecs::prelude::*;
    ///
    /// #[derive(Component)]
    /// struct Fuel(f32);
    ///
    /// let burn = UpdateComponent::new(|mut me: UpdateContext| -> Result {
    ///     let delta = me.delta;
    ///     let mut fuel = me.entity.get_mut::<Fuel>().ok_or("no tank")?;
    ///     fuel.0 -= delta.as_secs_f32();
    ///     Ok(())
    /// });
    /// # World::new().spawn((Fuel(1.0), burn));
    /// ```
    #[must_use]
    pub fn new<Out: CommandOutput>(
        closure: impl Fn(UpdateContext) -> Out + Send + Sync + 'static,
    ) -> Self {
        let closure: Box<Closure> = Box::new(move |context| to_result(closure(context)));
        Self::calling(Call::Closure(closure.into()))
    }

    /// Creates one that runs a one-shot system, which is given [`UpdateInput`] and may return a `Result`.
    /// It costs several times as much as a closure, and sees the whole world.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::prelude::*;
    /// use bevy_ecs::prelude::*;
    ///
    /// #[derive(Component)]
    /// struct Homing(Entity);
    ///
    /// fn steer(In(missile): In<UpdateInput>, homing: Query<&Homing>) {
    ///     if let Ok(Homing(target)) = homing.get(missile.entity) {
    ///         // ..
    ///     }
    /// }
    ///
    /// fn launch(mut commands: Commands) {
    ///     let steer = commands.register_system(steer);
    ///     commands.spawn(UpdateComponent::system(steer));
    /// }
    /// # bevy_ecs::system::assert_is_system(launch);
    /// ```
    #[must_use]
    pub fn system(system: SystemId<In<UpdateInput>>) -> Self {
        let system: Box<System> =
            Box::new(move |world, updated| run_system(world, system, updated));
        Self::calling(Call::System(system.into()))
    }

    fn calling(call: Call) -> Self {
        Self {
            call,
            priority: 0,
            clock: None,
            seat: Seat::default(),
        }
    }

    /// Sets the priority, zero unless set: lower ones are called first.
    #[must_use]
    pub fn with_priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Puts it on a clock.
    ///
    /// If there is no such clock when it is inserted, Bevy's error handler is told, as a warning,
    /// and the component is removed.
    #[must_use]
    pub fn on(mut self, clock: impl Into<ClockId>) -> Self {
        self.clock = Some(clock.into());
        self
    }

    /// Returns the priority.
    #[must_use]
    pub fn priority(&self) -> i32 {
        self.priority
    }

    /// Returns the clock that it was put [on](Self::on), or `None` if that is its entity's, its
    /// owner's or the game's.
    #[must_use]
    pub fn clock(&self) -> Option<ClockId> {
        self.clock
    }
}

impl fmt::Debug for UpdateComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpdateComponent")
            .field("priority", &self.priority)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for UpdateContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpdateContext")
            .field("entity", &self.entity.id())
            .field("update_entity", &self.update_entity)
            .field("delta", &self.delta)
            .field("elapsed", &self.elapsed)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}

//! The [`UpdateComponent`]: a per-entity callback that runs every frame.

mod rosters;
mod run;

use alloc::boxed::Box;
use core::{fmt, time::Duration};

use bevy_ecs::{error::CommandOutput, prelude::*, system::SystemInput};
use bevy_platform::sync::Arc;
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::Reflect;

use crate::{
    call::{queue_system, to_result},
    clock::ClockId,
    seat::Seat,
};
pub(crate) use rosters::{
    UpdateRosters, enroll, follow_clocks, follow_default_clocks, leave_later_clocks,
    pause_updates_from,
};
#[cfg(feature = "worlds")]
pub(crate) use run::has_callbacks;
pub(crate) use run::{UpdateState, run_updates};

/// Calls a per-entity callback every frame, in [`DueSystems::Updates`](crate::DueSystems::Updates).
///
/// Insert the component at any time, on any entity. The callback is first called in the next run:
/// in this frame if [`DueSystems::Timers`](crate::DueSystems::Timers) has not started yet,
/// otherwise in the next one. It is never called again once the component is removed or replaced or
/// its entity despawns, not even later in the same frame. For several callbacks on one entity, see
/// [`OwnedBy`](crate::OwnedBy).
///
/// # When to use it
///
/// | for | use |
/// |---|---|
/// | behavior that all entities of a kind share | a plain Bevy system: it is several times faster, and parallel |
/// | behavior that one entity has for now, chosen at run time: a character state, a script, a modifier | `UpdateComponent` |
/// | polling a socket, a file or a task | `UpdateComponent` |
/// | something later, or periodically | a [`Timer`](crate::Timer): it costs nothing while it waits |
/// | reacting to another entity | a [`MessageComponent`](crate::message::MessageComponent), or an observer |
///
/// # Order
///
/// Callbacks run in ascending order of [priority](Self::with_priority): negative, zero, positive.
/// Callbacks of equal priority run in the order in which their components were inserted. The
/// [commands](UpdateContext::commands) of one callback are applied before the next callback runs.
///
/// # Clocks
///
/// Like a timer, the component is on a clock: the one given to [`on`](Self::on), or else the one of
/// its entity or owner ([`OnClock`](crate::OnClock)), or else the game clock. The callback gets the
/// time that has passed on that clock, and is not called while the clock stands still. A callback
/// that chose no clock follows its entity to another one, but not a later `OwnedBy`. If the clock is
/// despawned, the callback stops for good. If the clock is replaced or gets another parent, the
/// callback continues.
/// On the fixed clock, or a clock that runs on it, the callback runs in every step of the fixed
/// schedule.
///
/// [`Paused`](crate::Paused) and a [pause for a while](crate::DueEntityCommandsExt::pause_for) stop the
/// callbacks of an entity and of what it owns, and
/// [`pause_updates_from`](crate::DueCommandsExt::pause_updates_from) pauses all callbacks of a
/// given priority or higher. The callbacks of a [disabled](bevy_ecs::entity_disabling::Disabled)
/// entity are not called. Nor are those of an entity that holds a resource, and a warning says so.
///
/// # Errors
///
/// An error that the callback returns is passed to Bevy's error handler, and the other callbacks
/// run as usual. Bevy's default handler panics on an error of the default
/// [`Severity`](bevy_ecs::error::Severity). A panic propagates as in any system: the callbacks
/// after it are not called in this frame. If Bevy catches the panic and its error handler returns,
/// the next run calls all callbacks again, from the first one on. If your own `catch_unwind` around
/// `App::update` catches it instead, Bevy has lost the schedule, and nothing runs.
///
/// # Whole-world access
///
/// The callback sees its own entity only. To see more, queue a command, or
/// [run a system](UpdateContext::run). Both run before the next callback.
///
/// # Time complexity
///
/// With *n* update components of *p* different priorities: *O*(*n*) per frame, *O*(log *p*) to
/// insert one, *O*(log *n*) to remove one, amortized. Nothing is sorted during a frame.
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
/// app.add_plugins((TimePlugin, DuePlugin::default()))
///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)));
/// app.update(); // Bevy's first frame takes no time.
///
/// let fall = UpdateComponent::new(|mut me| {
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
#[component(immutable, on_insert = rosters::on_insert, on_discard = rosters::on_discard)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(opaque),
    reflect(Component, Clone, Debug)
)]
pub struct UpdateComponent {
    callback: Arc<Callback>,
    priority: i32,
    #[entities]
    clock: Option<ClockId>,
    /// The cadence of the clock, and the number in the roster.
    seat: Seat,
}

type Callback = dyn Fn(UpdateContext) -> Result + Send + Sync;

/// The argument of an [`UpdateComponent`]'s callback.
pub struct UpdateContext<'a> {
    /// The entity that the callback belongs to, with all its components. For a component with
    /// [`OwnedBy`](crate::OwnedBy) it is the owner.
    pub entity: EntityMut<'a>,
    /// Commands, which are applied before the next callback runs.
    pub commands: Commands<'a, 'a>,
    /// The entity that carries the [`UpdateComponent`].
    pub update_entity: Entity,
    /// The time that has passed on the clock since the previous run, including a
    /// [fast-forward](crate::DueWorldExt::fast_forward).
    pub delta: Duration,
    /// The reading of the clock. The time of a pause of the entity counts, though the callback missed it.
    pub elapsed: Duration,
    /// The clock that the component is on.
    pub clock: ClockId,
}

impl UpdateContext<'_> {
    /// Runs a system before the next callback, to reach other entities and resources.
    ///
    /// There is no need to register the system. A function, or a closure that captures nothing,
    /// keeps its state, such as a `Local`, from one run to the next. A closure that captures values
    /// starts anew in each run. The system may return a `Result`: an error goes to Bevy's error
    /// handler, which gets the names of the system and the entity. (Bevy's own
    /// `commands.run_system_cached_with` only logs it.)
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::prelude::*;
    /// use bevy_ecs::prelude::*;
    ///
    /// #[derive(Component)]
    /// struct Player;
    /// #[derive(Component)]
    /// struct Position(f32);
    ///
    /// fn hunt(
    ///     In(wolf): In<Entity>,
    ///     players: Query<Entity, With<Player>>,
    ///     mut all: Query<&mut Position>,
    /// ) -> Result {
    ///     let &Position(prey) = all.get(players.single()?)?;
    ///     let mut wolf = all.get_mut(wolf)?;
    ///     wolf.0 += (prey - wolf.0).clamp(-1.0, 1.0);
    ///     Ok(())
    /// }
    ///
    /// fn spawn_wolf(mut commands: Commands) {
    ///     let hunting = UpdateComponent::new(|mut me| me.run(hunt, me.entity.id()));
    ///     commands.spawn((Position(0.0), hunting));
    /// }
    /// # bevy_ecs::system::assert_is_system(spawn_wolf);
    /// ```
    pub fn run<I, M, S>(&mut self, system: S, input: I::Inner<'static>)
    where
        I: SystemInput<Inner<'static>: Send + Sync> + Send + 'static,
        M: 'static,
        S: IntoSystem<I, (), M> + Send + 'static,
    {
        let entity = self.entity.id();
        queue_system(&mut self.commands, "UpdateComponent", entity, system, input);
    }
}

impl UpdateComponent {
    /// Returns the place among the callbacks of the world. It rises with the order of their calls.
    #[cfg(feature = "serialize")]
    pub(crate) fn turn(&self) -> Option<u64> {
        self.seat.get().map(|(_, number)| number)
    }

    /// Creates a component that calls `callback` every frame.
    ///
    /// The callback may return a `Result`. Keep its state in components, where other code can see
    /// it.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::UpdateComponent;
    /// use bevy_ecs::prelude::*;
    ///
    /// #[derive(Component)]
    /// struct Fuel(f32);
    ///
    /// let burn = UpdateComponent::new(|mut me| -> Result {
    ///     let delta = me.delta;
    ///     let mut fuel = me.entity.get_mut::<Fuel>().ok_or("no tank")?;
    ///     fuel.0 -= delta.as_secs_f32();
    ///     Ok(())
    /// });
    /// # World::new().spawn((Fuel(1.0), burn));
    /// ```
    #[must_use]
    pub fn new<Out: CommandOutput>(
        callback: impl Fn(UpdateContext) -> Out + Send + Sync + 'static,
    ) -> Self {
        // Not `Arc::new`, which can't make an `Arc<dyn ..>` on platforms without atomics.
        let callback: Box<Callback> = Box::new(move |context| to_result(callback(context)));
        Self {
            callback: callback.into(),
            priority: 0,
            clock: None,
            seat: Seat::default(),
        }
    }

    /// Sets the priority. Lower priorities run first; the default is zero.
    #[must_use]
    pub fn with_priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Puts the component on a clock.
    ///
    /// If that clock does not exist when the component is inserted, the component is removed again,
    /// and Bevy's error handler gets a warning.
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

    /// Returns the clock given to [`on`](Self::on), if any.
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

//! The extension trait of [`World`].

use alloc::{borrow::Cow, vec::Vec};
use core::time::Duration;

use bevy_ecs::{entity::EntityHashMap, prelude::*};

use crate::{
    clock::{ClockError, ClockId, ClockTable},
    rollback::{TimerSnapshot, changed_since, restore_timers, snapshot_timers},
    timer::{
        ArmedTimers, IntoKey, NoSuchTimer, RunStats, TimerFired, TimerMut, add_timer_handler,
        cancel_keyed, change_keyed, change_timer, fast_forward, fast_forward_to_next, with_timers,
    },
};
#[cfg(feature = "serialize")]
use crate::{
    moving::{
        HeldMail, MoveError, MovedEntity, TimePassed, commit_entity, copy_entities, export_entity,
        forget_entity, import_entity,
    },
    save::{
        LoadError, SaveError, SavedTimers, Unsavable, load_timers, save_all, save_entity,
        save_timers,
    },
    timer::write_timer_states,
};

/// Registers handlers, asks about timers, and runs them without waiting.
pub trait DueWorldExt {
    /// Registers a system under a name that timers can refer to with
    /// [`TimerAction::named`](crate::TimerAction::named).
    ///
    /// The system receives the [`TimerFired`], and may return a `Result`.
    ///
    /// # Panics
    ///
    /// Panics if a handler is already registered under this name. Names that start with `bevy_due: `
    /// are for the crate.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Timer, prelude::*};
    /// use bevy_ecs::prelude::*;
    /// use bevy_time::TimePlugin;
    ///
    /// fn grow(In(fired): In<TimerFired>, mut commands: Commands) {
    ///     commands.entity(fired.owner()).log_components();
    /// }
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default()));
    /// app.world_mut().add_timer_handler("grow", grow);
    /// app.world_mut().spawn((Timer::every(60.0), TimerAction::named("grow")));
    /// ```
    #[track_caller]
    fn add_timer_handler<M>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        handler: impl IntoSystem<In<TimerFired>, (), M> + 'static,
    );

    /// Asks about the timers of this world, as a system with [`ArmedTimers`] does.
    ///
    /// Pending commands are applied first.
    ///
    /// # Panics
    ///
    /// Panics if the world has no [`DuePlugin`](crate::DuePlugin).
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Timer, prelude::*};
    /// use bevy_time::TimePlugin;
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default()));
    /// let bomb = app.world_mut().spawn(Timer::after(3.0)).id();
    /// let fuse = app.world_mut().with_timers(|timers| timers.get(bomb));
    /// assert_eq!(fuse.unwrap().remaining, Duration::from_secs(3));
    /// ```
    #[track_caller]
    fn with_timers<Out>(&mut self, ask: impl FnOnce(ArmedTimers) -> Out) -> Out;

    /// Returns the time that a clock shows. Systems use [`Clocks::now`](crate::Clocks::now).
    ///
    /// # Errors
    ///
    /// Returns [`ClockError::NoSuchClock`] if there is no such clock.
    fn clock_now(&self, clock: impl Into<ClockId>) -> Result<Duration, ClockError>;

    /// Changes the timer on an entity.
    ///
    /// # Errors
    ///
    /// Returns [`NoSuchTimer`] if the entity has no armed timer. It then has fired, or was cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use bevy_app::prelude::*;
    /// use bevy_due::{NoSuchTimer, Timer, prelude::*};
    /// use bevy_time::TimePlugin;
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default()));
    /// let world = app.world_mut();
    ///
    /// let bus = world.spawn(Timer::after(60)).id();
    /// let late = Duration::from_secs(90);
    /// assert!(world.change_timer(bus, |bus| bus.reschedule(late)).is_ok());
    ///
    /// let stop = world.spawn_empty().id();
    /// let error = NoSuchTimer { entity: stop, key: None };
    /// assert_eq!(world.change_timer(stop, |stop| stop.restart()), Err(error));
    /// ```
    fn change_timer(
        &mut self,
        entity: Entity,
        change: impl FnOnce(&mut TimerMut),
    ) -> Result<(), NoSuchTimer>;

    /// Changes the timer of an owner with this [key](crate::Keyed).
    ///
    /// # Errors
    ///
    /// Returns [`NoSuchTimer`] if the owner has no armed timer with this key.
    fn change_keyed_timer(
        &mut self,
        owner: Entity,
        key: impl IntoKey,
        change: impl FnOnce(&mut TimerMut),
    ) -> Result<(), NoSuchTimer>;

    /// Cancels the timer of an owner with this [key](crate::Keyed), and returns `true` if there was one.
    fn cancel_timer(&mut self, owner: Entity, key: impl IntoKey) -> bool;

    /// Runs a clock for `span` in one call, fires everything on the way in order, and returns the
    /// statistics.
    ///
    /// Use this in tests and tools, or to catch up on the time while the player was away.
    ///
    /// Each deadline gets its own run. Handlers see the clock at that deadline, and nothing is late
    /// or missed. Timers that handlers arm also fire on the way. A timer that is already due fires
    /// first. A zero-delay timer that a handler arms fires 15.625 ms later, as in a game of 64
    /// frames a second.
    ///
    /// The descendants of the clock advance with it. Its parent, such as Bevy's `Time`, does not
    /// advance and may be paused, so the clock is ahead of it afterwards. To advance only part of
    /// the game, give that part its own clock. The fast-forward ends early if a handler pauses or
    /// despawns the clock. No schedule runs on the way. Every firing is written as a message, so a
    /// span with a million firings takes the memory of a million messages.
    ///
    /// Messages wait for the next frame, so a request made on the way times out if its deadline is
    /// within the span. Update callbacks are called once afterwards, with the whole span as their
    /// delta.
    ///
    /// # Errors
    ///
    /// Returns [`ClockError`] if there is no such clock, if it is stopped, or if the call is
    /// made from a timer handler.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Timer, prelude::*};
    /// use bevy_ecs::prelude::*;
    /// use bevy_time::TimePlugin;
    ///
    /// #[derive(Resource, Default)]
    /// struct Gold(u32);
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default())).init_resource::<Gold>();
    /// app.world_mut()
    ///     .spawn(Timer::every(60.0))
    ///     .observe(|_: On<TimerFired>, mut gold: ResMut<Gold>| gold.0 += 1);
    ///
    /// // The player comes back after eight hours.
    /// let away = Duration::from_secs(8 * 3600);
    /// let stats = app.world_mut().fast_forward(ClockId::Virtual, away)?;
    /// assert_eq!(app.world().resource::<Gold>().0, 480);
    /// assert_eq!(stats.fired, 480);
    /// # Ok::<(), BevyError>(())
    /// ```
    #[doc(alias("offline", "simulate", "skip"))]
    fn fast_forward(
        &mut self,
        clock: impl Into<ClockId>,
        span: Duration,
    ) -> Result<RunStats, ClockError>;

    /// Runs a clock up to the next deadline on it or its descendants.
    ///
    /// Returns the distance, or `None` if no timer waits. The distance is zero if a timer is
    /// already due.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`fast_forward`](Self::fast_forward).
    fn fast_forward_to_next(
        &mut self,
        clock: impl Into<ClockId>,
    ) -> Result<Option<Duration>, ClockError>;

    /// Remembers the state of all timers, clocks and pauses, to go back to it later.
    ///
    /// The module [`rollback`](crate::rollback) lists what a snapshot holds, and has an example.
    ///
    /// # Panics
    ///
    /// Panics in a world without the plugin, and in a handler of a timer.
    ///
    /// # Time complexity
    ///
    /// *O*(*k*) in the number of timers and components of this crate that have changed since the
    /// previous snapshot, plus *O*(*n*) in the number of clocks, of [`Cooldown`](crate::Cooldown)s and
    /// [`OnClock`](crate::OnClock)s, and of timers that have come, been cancelled or finished since the
    /// previous run. An owner that gets or loses a timer counts with all its timers.
    ///
    /// While a snapshot exists, each change takes a constant time longer. The first snapshot spawns the
    /// observers that note the changes.
    fn snapshot_timers(&mut self) -> TimerSnapshot;

    /// Goes back to the state of a snapshot.
    ///
    /// No event is triggered, no message is written, and no timer is reported as cancelled. Entities
    /// with components of this crate are as they were:
    ///
    /// - An entity that still exists keeps its id.
    /// - An entity that has despawned since the snapshot is spawned again. Bevy does not reuse ids, so
    ///   it gets a new one. All references inside this crate lead there. If `entities` already leads to
    ///   an entity that exists, that one takes its place.
    /// - An entity that was spawned after the snapshot despawns.
    ///
    /// Each entity that was spawned again since the snapshot, by this restore or by an earlier one, is
    /// added to `entities` under its earlier ids. If you spawn entities again yourself, add them before
    /// you restore the timers, and pass the same map each time.
    ///
    /// Bevy's hooks and your observers of components (`Add`, `Insert`, `Remove`) run as for any other
    /// change, but must not change timers. They can't read timers and clocks either: an observer with
    /// [`ArmedTimers`] or [`Clocks`](crate::Clocks) fails during a restore. Write the parameter as
    /// [`If<ArmedTimers>`](If) to skip the observer then.
    ///
    /// # Panics
    ///
    /// Panics if the snapshot is of another world, in a world without the plugin, in a handler of a
    /// timer, and in an observer of another restore. If an observer panics, the world is between the two
    /// states until you restore the snapshot again.
    ///
    /// # Time complexity
    ///
    /// *O*(*k* log *n*), amortized, where *k* is the number of timers and components of this crate that
    /// have changed since the snapshot, and *n* the number of timers. As for a snapshot, clocks,
    /// cooldowns and new timers count whether they have changed or not. If an entity with a
    /// [`Clock`](crate::Clock) is spawned again, all timers are visited.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Timer, prelude::*};
    /// use bevy_ecs::{entity::EntityHashMap, prelude::*};
    /// use bevy_time::TimePlugin;
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default()));
    /// let world = app.world_mut();
    /// let bomb = world.spawn(Timer::after(3.0)).id();
    /// let snapshot = world.snapshot_timers();
    ///
    /// world.despawn(bomb);
    /// let new = world.spawn(Timer::after(1.0)).id();
    ///
    /// let mut entities = EntityHashMap::default();
    /// world.restore_timers(&snapshot, &mut entities);
    /// assert!(world.get_entity(new).is_err());
    /// assert!(world.get::<Timer>(entities[&bomb]).is_some());
    /// ```
    fn restore_timers(&mut self, snapshot: &TimerSnapshot, entities: &mut EntityHashMap<Entity>);

    /// Returns the entities whose timers or components of this crate have changed since a snapshot, in
    /// order, each once.
    ///
    /// Use it to store entities that must survive the end of the process: after each frame, store the
    /// entities that have changed since the previous one, and take the next snapshot.
    ///
    /// An entity has changed if a timer or a lifetime on it was armed, fired, finished, was paused, moved or
    /// cancelled, if a component of this crate was inserted, removed or changed, or if it has despawned. A
    /// request that is opened or completed changes its own entity and the asking one. An entity that gets or
    /// loses a timer, a pause or a speed modifier changes, too.
    ///
    /// Time is no change: the remaining time of a waiting timer, a cooldown that becomes ready, or the time
    /// that a clock shows. If anything else changes a clock, such as a new speed, a pause or a modifier, the
    /// answer holds the entity of the clock, and everything that runs on it or on the clocks below it: how
    /// far these have come no longer follows from the present speed. A built-in clock that
    /// [`ClocksMut`](crate::ClocksMut) has changed counts in the same way. A change of Bevy's `Time` does
    /// not: measure how far it advances.
    #[cfg_attr(
        feature = "serialize",
        doc = "
Data from [`copy_entities`](Self::copy_entities) therefore stays good until the entity, or something else in
the data, is in an answer. [Import](Self::import_entity) it with the
[time that has passed](crate::moving::TimePassed) on the built-in clocks since the copy. Waiting mail is not
part of this: it is in the data, but does not count as a change."
    )]
    ///
    /// Entities that a [restore](Self::restore_timers) has spawned again are in the answer under all their
    /// names. Conditions of [`run_clock_if`](crate::conditions::run_clock_if) change the clocks that they
    /// hold. The answer may hold a few more entities: a new timer counts again when the next run arms it.
    ///
    /// # Panics
    ///
    /// Panics if the snapshot is of another world, in a world without the plugin, and in a handler of a
    /// timer.
    ///
    /// # Time complexity
    ///
    /// *O*(*k* log *k*) in the number of timers and components of this crate that have changed since the
    /// snapshot, plus *O*(*n*) in the number that [`snapshot_timers`](Self::snapshot_timers) visits: clocks,
    /// cooldowns, [`OnClock`](crate::OnClock)s and new timers. If a clock has changed, everything on it
    /// counts, and if it is gone, so do the timers whose deadlines were moved. Changes since an older
    /// snapshot are copied first.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Timer, prelude::*};
    /// use bevy_time::{TimePlugin, TimeUpdateStrategy};
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default()))
    ///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)));
    /// let fast = app.world_mut().spawn(Timer::every(0.5)).id();
    /// let slow = app.world_mut().spawn(Timer::every(60.0)).id();
    /// app.update(); // Bevy's first frame takes no time.
    ///
    /// let mut snapshot = app.world_mut().snapshot_timers();
    /// let mut stored = Vec::new();
    /// for _ in 0..4 {
    ///     app.update();
    ///     stored.push(app.world_mut().changed_since(&snapshot));
    ///     snapshot = app.world_mut().snapshot_timers();
    /// }
    /// assert_eq!(stored, [vec![], vec![fast], vec![], vec![fast]]);
    ///
    /// app.world_mut().entity_mut(slow).insert(Paused);
    /// assert_eq!(app.world_mut().changed_since(&snapshot), [slow]);
    /// ```
    fn changed_since(&mut self, snapshot: &TimerSnapshot) -> Vec<Entity>;

    /// Writes the state of every timer out, so that the components can be serialized.
    ///
    /// Call this right before you serialize [`Timer`](crate::Timer)s and
    /// [`DespawnAfter`](crate::DespawnAfter)s with serde, by reflection, or as a `DynamicWorld`. Their
    /// serialized form then holds their state: the remaining time, the number of firings, and so on.
    /// Without this call, serializing an armed timer is an error. The states hold until
    /// the timer changes, the next frame or fixed step begins, a clock is disabled, fast-forwarded or
    /// removed, or, in a handler, the next timer fires. The components of [`Clock`](crate::Clock)s hold
    /// their times just as long.
    ///
    /// Entities that await the next run to despawn are marked as
    /// [`Finished`](crate::save::Finished).
    ///
    /// # Time complexity
    ///
    /// *O*(*n*) in the number of timers.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Timer, prelude::*};
    /// use bevy_time::TimePlugin;
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default()));
    /// let bomb = app.world_mut().spawn(Timer::after(3.0)).id();
    /// assert!(ron::to_string(app.world().get::<Timer>(bomb).unwrap()).is_err());
    ///
    /// app.world_mut().write_timer_states();
    /// assert!(ron::to_string(app.world().get::<Timer>(bomb).unwrap()).is_ok());
    /// ```
    #[cfg(feature = "serialize")]
    fn write_timer_states(&mut self);

    /// Saves all timers of this world, their owners and their clocks.
    ///
    /// # Errors
    ///
    /// Returns [`SaveError`](crate::save::SaveError) in a world without the plugin, and if the action of
    /// a timer is a closure, such as a delayed command. [`save_timers_without_closures`](Self::save_timers_without_closures) leaves
    /// these timers out.
    ///
    /// # Time complexity
    ///
    /// *O*(*n*) in the number of timers, owners and clocks.
    #[cfg(feature = "serialize")]
    fn save_timers(&mut self) -> Result<SavedTimers, SaveError>;

    /// Saves all timers of this world whose actions are data, and returns the timers that it left
    /// out.
    #[cfg(feature = "serialize")]
    fn save_timers_without_closures(&mut self) -> (SavedTimers, Vec<Unsavable>);

    /// Saves the timers of an entity, and everything that it owns.
    ///
    /// The clocks on which they run are saved only if the entity owns them. To load the result, map
    /// each other clock to a clock.
    ///
    /// # Errors
    ///
    /// Returns [`SaveError`](crate::save::SaveError) if the entity does not exist, in a world without the
    /// plugin, and if the action of a timer is a closure.
    ///
    /// # Time complexity
    ///
    /// *O*(*n* + *m*) in the number *n* of entities that are saved, and the number *m* of messages and ends of
    /// timers that wait for the next run. Other timers cost nothing.
    #[cfg(feature = "serialize")]
    fn save_entity(&mut self, entity: Entity) -> Result<SavedTimers, SaveError>;

    /// Loads saved timers into this world.
    ///
    /// `entities` maps saved entities to entities of this world. It may already contain entities that
    /// your game has loaded. Each other saved entity is spawned and added to the map.
    ///
    /// A timer keeps its remaining time. With equal deadlines, it fires after the timers that are
    /// armed already, and before those that are inserted later in this frame. If all timers of a world
    /// were saved, this also sets the built-in clocks, the number of random delays drawn so far, and
    /// the overstep of `Time<Fixed>`. Load them into a new app.
    ///
    /// # Errors
    ///
    /// Returns [`LoadError`](crate::save::LoadError), and leaves the world and the map as they were,
    /// if the data contradicts itself, the map or the world.
    #[cfg(feature = "serialize")]
    fn load_timers(
        &mut self,
        saved: &SavedTimers,
        entities: &mut EntityHashMap<Entity>,
    ) -> Result<(), LoadError>;

    /// Returns an entity as data for another world, with its timers, cooldowns, mail and open requests,
    /// and with everything that it owns.
    ///
    /// From here on the entity is [in transit](crate::moving::InTransit) until you
    /// [commit](Self::commit_entity) or [forget](Self::forget_entity) it. What you change on it
    /// meanwhile does not move. The module [`moving`](crate::moving) describes a move, and has an
    /// example.
    ///
    /// # Errors
    ///
    /// Returns [`MoveError`](crate::moving::MoveError), and leaves the world as it was, if the entity
    /// does not exist or is in transit, if one of its timers has a closure, or if a message that waits
    /// for it is neither a [`Packet`](crate::message::Packet) nor has a
    /// [codec](crate::message::MessageWorldExt::add_message_codec). A request that waits for it must be a
    /// packet, and a reply must be able to reach the asking entity from another world. Also fails in a timer
    /// handler.
    ///
    /// # Time complexity
    ///
    /// *O*(*n* + *m*) in the number *n* of entities that move, and the number *m* of messages and ends of
    /// timers that wait in the world.
    #[cfg(feature = "serialize")]
    fn export_entity(&mut self, entity: Entity) -> Result<MovedEntity, MoveError>;

    /// Returns entities as data, as [`export_entity`](Self::export_entity) does, and leaves them as they
    /// are.
    ///
    /// Use it to store entities that must survive the end of the process: [import](Self::import_entity) and
    /// [commit](Self::commit_entity) the data in the next one.
    /// [`changed_since`](Self::changed_since) returns the entities to store again. An entity that two of these own is in the
    /// data of both.
    ///
    /// # Errors
    ///
    /// Returns [`MoveError`](crate::moving::MoveError) in place of each entity that `export_entity` would
    /// refuse.
    ///
    /// # Time complexity
    ///
    /// *O*(*n* + *m*) in the number *n* of entities that are copied, and the number *m* of messages and ends
    /// of timers that wait in the world.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use bevy_app::prelude::*;
    /// use bevy_due::{
    ///     Timer,
    ///     moving::{HeldMail, MovedEntity},
    ///     prelude::*,
    /// };
    /// use bevy_ecs::{entity::EntityHashMap, prelude::*};
    /// use bevy_time::TimePlugin;
    ///
    /// fn game() -> App {
    ///     let mut app = App::new();
    ///     app.add_plugins((TimePlugin, DuePlugin::default()));
    ///     app
    /// }
    ///
    /// let mut before = game();
    /// let heroes = [2.0, 5.0].map(|secs| before.world_mut().spawn(Timer::after(secs)).id());
    /// let mut stored = Vec::new();
    /// for copy in before.world_mut().copy_entities(&heroes) {
    ///     stored.push(ron::to_string(&copy?)?);
    /// }
    /// drop(before);
    ///
    /// let mut after = game();
    /// for text in stored {
    ///     let copy: MovedEntity = ron::from_str(&text)?;
    ///     let mut entities = EntityHashMap::default();
    ///     let hero = after.world_mut().import_entity(&copy, Duration::ZERO, &mut entities)?;
    ///     after.world_mut().commit_entity(hero, &HeldMail::default())?;
    /// }
    /// assert_eq!(after.world_mut().with_timers(|timers| timers.iter().count()), 2);
    /// # Ok::<(), BevyError>(())
    /// ```
    #[cfg(feature = "serialize")]
    fn copy_entities(&mut self, entities: &[Entity]) -> Vec<Result<MovedEntity, MoveError>>;

    /// Brings an exported entity into this world, and returns it.
    ///
    /// `on_the_way` is the time that has passed on the built-in clocks since the export: a `Duration` for all
    /// but the clock of frames, or the [time of each](crate::moving::TimePassed). Clocks of your own advance
    /// by it at their speed. `entities` maps exported
    /// entities to entities of this world, as for [`load_timers`](Self::load_timers): map the clocks
    /// that do not move along, and the owner, if any.
    ///
    /// The entity is [in transit](crate::moving::InTransit) until you [commit](Self::commit_entity) it,
    /// or [forget](Self::forget_entity) it if the old world keeps it.
    #[cfg_attr(
        feature = "worlds",
        doc = "
Its [`StableKey`](crate::StableKey) moves along: from here on, parcels for the key come to this world."
    )]
    ///
    /// # Errors
    ///
    /// Returns [`MoveError`](crate::moving::MoveError), and leaves the world and the map as they were,
    /// if the data contradicts itself, the map or the world, or if a message needs a codec that is not
    /// registered.
    ///
    /// # Time complexity
    ///
    /// *O*(*n*) in the number of entities, messages and components in the data and of entries in the map.
    #[cfg(feature = "serialize")]
    fn import_entity(
        &mut self,
        moved: &MovedEntity,
        on_the_way: impl Into<TimePassed>,
        entities: &mut EntityHashMap<Entity>,
    ) -> Result<Entity, MoveError>;

    /// Despawns an entity that continues in another world, with everything that it owns, and returns the
    /// mail that was held for it here.
    ///
    /// Nothing is reported as cancelled, completed or lost. Pass the mail to the
    /// [commit](Self::commit_entity) in the other world. Timers of other entities on a clock that moves
    /// along are cancelled with [`ClockGone`](crate::CancelReason::ClockGone).
    ///
    /// # Errors
    ///
    /// Returns [`MoveError`](crate::moving::MoveError) if the entity is not in transit, or if a held
    /// message is not data, as for [`export_entity`](Self::export_entity). The entity then stays in
    /// transit, and nothing is lost: register a codec and try again, or commit the entity here.
    ///
    /// # Time complexity
    ///
    /// *O*(*n*) in the number of entities that move and of messages that wait in the world.
    #[cfg(feature = "serialize")]
    fn forget_entity(&mut self, entity: Entity) -> Result<HeldMail, MoveError>;

    /// Ends the move of an entity in this world: its timers and callbacks run again.
    ///
    /// Pass the mail that the other world has held, or `&HeldMail::default()` if the entity was never
    /// imported. In the new world, it is delivered after the mail that was exported, and before the mail
    /// that has arrived there. In the old world, it is delivered after the mail that was held there.
    #[cfg_attr(
        feature = "worlds",
        doc = "Parcels for a [`StableKey`](crate::StableKey) keep the order in which they were sent."
    )]
    ///
    /// # Errors
    ///
    /// Returns [`MoveError`](crate::moving::MoveError) if the entity is not in transit, or if the mail
    /// is invalid. The entity then stays in transit.
    ///
    /// # Time complexity
    ///
    /// *O*(*n*) in the number of entities that move and of messages held for them, and of messages that wait
    /// in the world if the other world has held any.
    #[cfg(feature = "serialize")]
    fn commit_entity(&mut self, entity: Entity, late: &HeldMail) -> Result<(), MoveError>;
}

impl DueWorldExt for World {
    fn add_timer_handler<M>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        handler: impl IntoSystem<In<TimerFired>, (), M> + 'static,
    ) {
        add_timer_handler(self, name.into(), handler);
    }

    fn with_timers<Out>(&mut self, ask: impl FnOnce(ArmedTimers) -> Out) -> Out {
        with_timers(self, ask)
    }

    fn clock_now(&self, clock: impl Into<ClockId>) -> Result<Duration, ClockError> {
        let clock = clock.into();
        let table = self.get_resource::<ClockTable>();
        table.ok_or(ClockError::NoSuchClock(clock))?.now(clock)
    }

    fn change_timer(
        &mut self,
        entity: Entity,
        change: impl FnOnce(&mut TimerMut),
    ) -> Result<(), NoSuchTimer> {
        change_timer(self, entity, change)
    }

    fn change_keyed_timer(
        &mut self,
        owner: Entity,
        key: impl IntoKey,
        change: impl FnOnce(&mut TimerMut),
    ) -> Result<(), NoSuchTimer> {
        change_keyed(self, owner, key, change)
    }

    fn cancel_timer(&mut self, owner: Entity, key: impl IntoKey) -> bool {
        cancel_keyed(self, owner, &key)
    }

    fn fast_forward(
        &mut self,
        clock: impl Into<ClockId>,
        span: Duration,
    ) -> Result<RunStats, ClockError> {
        fast_forward(self, clock.into(), span)
    }

    fn fast_forward_to_next(
        &mut self,
        clock: impl Into<ClockId>,
    ) -> Result<Option<Duration>, ClockError> {
        fast_forward_to_next(self, clock.into())
    }

    fn snapshot_timers(&mut self) -> TimerSnapshot {
        snapshot_timers(self)
    }

    fn restore_timers(&mut self, snapshot: &TimerSnapshot, entities: &mut EntityHashMap<Entity>) {
        restore_timers(self, snapshot, entities);
    }

    fn changed_since(&mut self, snapshot: &TimerSnapshot) -> Vec<Entity> {
        changed_since(self, snapshot)
    }

    #[cfg(feature = "serialize")]
    fn write_timer_states(&mut self) {
        write_timer_states(self);
    }

    #[cfg(feature = "serialize")]
    fn save_timers(&mut self) -> Result<SavedTimers, SaveError> {
        save_timers(self)
    }

    #[cfg(feature = "serialize")]
    fn save_timers_without_closures(&mut self) -> (SavedTimers, Vec<Unsavable>) {
        save_all(self)
    }

    #[cfg(feature = "serialize")]
    fn save_entity(&mut self, entity: Entity) -> Result<SavedTimers, SaveError> {
        save_entity(self, entity)
    }

    #[cfg(feature = "serialize")]
    fn load_timers(
        &mut self,
        saved: &SavedTimers,
        entities: &mut EntityHashMap<Entity>,
    ) -> Result<(), LoadError> {
        load_timers(self, saved, entities)
    }

    #[cfg(feature = "serialize")]
    fn export_entity(&mut self, entity: Entity) -> Result<MovedEntity, MoveError> {
        export_entity(self, entity)
    }

    #[cfg(feature = "serialize")]
    fn copy_entities(&mut self, entities: &[Entity]) -> Vec<Result<MovedEntity, MoveError>> {
        copy_entities(self, entities)
    }

    #[cfg(feature = "serialize")]
    fn import_entity(
        &mut self,
        moved: &MovedEntity,
        on_the_way: impl Into<TimePassed>,
        entities: &mut EntityHashMap<Entity>,
    ) -> Result<Entity, MoveError> {
        import_entity(self, moved, on_the_way.into(), entities)
    }

    #[cfg(feature = "serialize")]
    fn forget_entity(&mut self, entity: Entity) -> Result<HeldMail, MoveError> {
        forget_entity(self, entity)
    }

    #[cfg(feature = "serialize")]
    fn commit_entity(&mut self, entity: Entity, late: &HeldMail) -> Result<(), MoveError> {
        commit_entity(self, entity, late)
    }
}

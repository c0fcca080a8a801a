//! The extension trait of [`World`].

use alloc::vec::Vec;

use bevy_ecs::{entity::EntityHashMap, prelude::*};

use super::{
    ChangeMark, TimerSnapshot, begin_mark, changed_since, restore_timers, snapshot_timers,
};

/// Takes the timers and messages of a [`World`] back to an earlier state.
pub trait RollbackWorldExt {
    /// Remembers the state of all timers, clocks and pauses and the messages on their way, to go back to it
    /// later.
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
    /// previous snapshot, plus *O*(*n*) in the number of clocks, of [`Cooldown`](crate::Cooldown)s and registered
    /// components, of messages on their way, and of timers that have come, been cancelled or finished since the previous run. An owner that gets or loses a timer counts with all its timers.
    ///
    /// While a snapshot exists, each change takes a constant time longer. The first snapshot spawns the
    /// observers that note the changes.
    #[track_caller]
    fn snapshot_timers(&mut self) -> TimerSnapshot;

    /// Goes back to the state of a snapshot.
    ///
    /// No event is triggered, no message is written, and no timer is reported as cancelled. Entities that have
    /// something to restore, such as a timer, an owner, a pause, a clock or a cooldown, are as they were:
    ///
    /// - An entity that still exists keeps its id.
    /// - An entity that has despawned since the snapshot is spawned again. Bevy does not reuse ids, so
    ///   it gets a new one. All references inside this crate lead there. If `entities` already leads to
    ///   an entity that exists, that one takes its place.
    /// - An entity that was spawned after the snapshot despawns.
    ///
    /// So are the components of yours that are registered, and their entities. The others are yours to spawn and
    /// despawn, such as an entity with nothing but a
    /// [`MessageComponent`](crate::message::MessageComponent), or one whose timer has ended and is removed.
    ///
    /// Each entity that was spawned again since the snapshot, by this restore or by an earlier one, is
    /// added to `entities` under its earlier ids, so a new map for each restore is enough. If you spawn
    /// entities again yourself, add them before you restore the timers, and add them to later maps, too. Their mail
    /// goes to the new entities then. An entity inside a message keeps its id.
    ///
    /// Bevy's hooks and your observers of components (`Add`, `Insert`, `Remove`) run as for any other
    /// change, but must not change timers. They can't read timers and clocks either: an observer with
    /// [`ArmedTimers`](crate::ArmedTimers) or [`Clocks`](crate::Clocks) fails during a restore. Write the parameter as
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
    /// cooldowns, registered components, new timers and messages count whether they have changed or not. If an
    /// entity with a [`Clock`](crate::Clock) is spawned again, all timers are visited.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Timer, prelude::*, rollback::RollbackWorldExt};
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
    #[track_caller]
    fn restore_timers(&mut self, snapshot: &TimerSnapshot, entities: &mut EntityHashMap<Entity>);

    /// Begins to note what changes, for [`changed_since`](Self::changed_since).
    ///
    /// Prefer it to a [snapshot](Self::snapshot_timers) that is never restored: it copies no component of your game, and
    /// no message.
    ///
    /// # Panics
    ///
    /// Panics in a world without the plugin, and in a handler of a timer.
    ///
    /// # Time complexity
    ///
    /// As for a snapshot, without registered components and messages.
    #[track_caller]
    fn mark_changes(&mut self) -> ChangeMark;

    /// Returns the entities whose timers or components of this crate have changed since a mark or a snapshot, sorted,
    /// each once.
    ///
    /// Use it to store entities that must survive the end of the process: after each frame, store the
    /// entities that have changed since the previous one, and set the next mark. A timer or an effect of another entity
    /// is in the data of that one. The recipe `store_changes` in the [cookbook](crate::guide::cookbook) has the complete
    /// code.
    ///
    /// An entity has changed if a timer or a lifetime on it was armed, fired, finished, was paused, moved or
    /// cancelled, if a component of this crate was inserted, removed or changed, if a registered component was written,
    /// also by a restore, or if it has despawned. A
    /// request that is opened or completed changes its own entity and the asking one. An entity that gets or
    /// loses a timer, a pause or a speed modifier changes, too.
    ///
    /// Passing time does not count as a change: the remaining time of a waiting timer, a cooldown that becomes ready, or the time
    /// that a clock shows. If anything else changes a clock, such as a new speed, a pause or a modifier, the
    /// answer holds the entity of the clock, and everything that runs on it or on the clocks below it: how
    /// far these have come no longer follows from the present speed. A built-in clock that
    /// [`ClocksMut`](crate::ClocksMut) has changed counts in the same way. A change of Bevy's `Time` does
    /// not: measure how far it advances.
    #[cfg_attr(
        feature = "serialize",
        doc = "
Data from [`copy_entities`](crate::moving::MoveWorldExt::copy_entities) therefore stays good until the entity, or something else in
the data, is in an answer. [Put](crate::moving::MoveWorldExt::put_entity) it into a world with the
[time that has passed](crate::moving::TimePassed) on the built-in clocks since the copy. Waiting mail is not
part of this: it is in the data, but does not count as a change."
    )]
    ///
    /// Entities that a [restore](Self::restore_timers) has spawned again are in the answer under their
    /// first and their latest name. Conditions of [`run_clock_if`](crate::conditions::run_clock_if) change the clocks that they
    /// hold. While somebody else owns a speed modifier of a clock, that clock counts as changed: its data does not hold
    /// the modifier. The answer may hold a few more entities: a new timer counts again when the next run arms it.
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
    /// cooldowns and new timers. If a clock has changed, everything on it
    /// counts, and if it is gone, so do the timers that chose their clocks. Changes since an older
    /// snapshot are copied first.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Timer, prelude::*, rollback::RollbackWorldExt};
    /// use bevy_time::{TimePlugin, TimeUpdateStrategy};
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default()))
    ///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)));
    /// let fast = app.world_mut().spawn(Timer::every(0.5)).id();
    /// let slow = app.world_mut().spawn(Timer::every(60.0)).id();
    /// app.update(); // Bevy's first frame takes no time.
    ///
    /// let mut mark = app.world_mut().mark_changes();
    /// let mut stored = Vec::new();
    /// for _ in 0..4 {
    ///     app.update();
    ///     stored.push(app.world_mut().changed_since(&mark));
    ///     mark = app.world_mut().mark_changes();
    /// }
    /// assert_eq!(stored, [vec![], vec![fast], vec![], vec![fast]]);
    ///
    /// app.world_mut().entity_mut(slow).insert(Paused);
    /// assert_eq!(app.world_mut().changed_since(&mark), [slow]);
    /// ```
    #[track_caller]
    fn changed_since(&mut self, since: impl AsRef<ChangeMark>) -> Vec<Entity>;
}

impl RollbackWorldExt for World {
    #[track_caller]
    fn snapshot_timers(&mut self) -> TimerSnapshot {
        snapshot_timers(self)
    }

    #[track_caller]
    fn restore_timers(&mut self, snapshot: &TimerSnapshot, entities: &mut EntityHashMap<Entity>) {
        restore_timers(self, snapshot, entities);
    }

    #[track_caller]
    fn mark_changes(&mut self) -> ChangeMark {
        begin_mark(self, "mark changes")
    }

    #[track_caller]
    fn changed_since(&mut self, since: impl AsRef<ChangeMark>) -> Vec<Entity> {
        changed_since(self, since.as_ref())
    }
}

//! Going back to an earlier state of all timers, for rollback netcode.
//!
//! [`snapshot_timers`](crate::DueWorldExt::snapshot_timers) copies the state of this crate in memory,
//! and [`restore_timers`](crate::DueWorldExt::restore_timers) goes back to it. A game that restores a
//! snapshot and plays the same inputs again gets the same firings: with the same deadlines and counts,
//! in the same order, also among equal deadlines, and with the same random numbers.
//!
//! | restored | not restored |
//! |---|---|
//! | [`Timer`](crate::Timer), [`DespawnAfter`](crate::DespawnAfter), [`TimerAction`](crate::TimerAction), and how far they have come | the values that closures have captured and changed, such as the commands of a [one-time command](crate::TimedCommands) that has run |
//! | cancellations that have not been written, and timers that await their end | messages in Bevy's `Messages`, observers, [run conditions](crate::conditions) such as `every` |
//! | owners, keys, pauses, [`Disabled`](bevy_ecs::entity_disabling::Disabled) on their entities, [`Cooldown`](crate::Cooldown)s | your components, also those of a [`TimerKey`](crate::TimerKey) |
//! | clocks with their fractions, speed modifiers, the four built-in clocks, [`run_clock_if`](crate::conditions::run_clock_if) | Bevy's `Time` |
//! | open requests | [`MessageComponent`](crate::MessageComponent), [`UpdateComponent`](crate::UpdateComponent), and messages on their way |
//!
//! Copy Bevy's `Time` resources with each snapshot, and insert them again with it. The order of the two
//! steps does not matter.
//!
//! To store timers in a file, or to load them in another process, use the module `save` of the feature
//! `serialize`.
//!
//! # Examples
//!
//! Predict two frames, go back, and play them again:
//!
//! ```
//! use core::time::Duration;
//! use bevy_app::prelude::*;
//! use bevy_due::{Timer, prelude::*};
//! use bevy_ecs::{entity::EntityHashMap, prelude::*};
//! use bevy_time::prelude::*;
//! use bevy_time::{TimePlugin, TimeUpdateStrategy};
//!
//! #[derive(Resource, Default)]
//! struct Counts(Vec<u64>);
//!
//! let mut app = App::new();
//! app.add_plugins((TimePlugin, DuePlugin::default()))
//!     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)))
//!     .init_resource::<Counts>()
//!     .add_observer(|fired: On<TimerFired>, mut counts: ResMut<Counts>| {
//!         counts.0.push(fired.count());
//!     });
//! app.update(); // Bevy's first frame takes no time.
//! app.world_mut().spawn(Timer::every_secs(0.25));
//! app.update();
//!
//! let timers = app.world_mut().snapshot_timers();
//! let game_time = *app.world().resource::<Time<Virtual>>();
//! let fixed_time = *app.world().resource::<Time<Fixed>>();
//! app.update();
//! app.update();
//!
//! let mut entities = EntityHashMap::default();
//! app.world_mut().restore_timers(&timers, &mut entities);
//! app.insert_resource(game_time).insert_resource(fixed_time);
//! app.update();
//! app.update();
//! assert_eq!(app.world().resource::<Counts>().0, [1, 2, 3, 2, 3]);
//! ```

mod column;
mod components;
mod order;

use alloc::vec::Vec;
use core::{fmt, iter};

use bevy_ecs::{
    change_detection::Tick,
    entity::{EntityHashMap, EntityHashSet},
    prelude::*,
    world::WorldId,
};

use crate::{
    clock::{ClockTable, ClocksCopy, put_clocks_back},
    timer::{KeyTable, RunDepth, TimerLines, forget_written},
};
use column::Moved;
use components::{Components, all_holders};

/// The state of all timers, clocks and pauses of a world at one moment.
///
/// [`DueWorldExt::snapshot_timers`](crate::DueWorldExt::snapshot_timers) takes it. Any number of
/// snapshots can exist at a time, and each can be restored any number of times.
pub struct TimerSnapshot {
    world: WorldId,
    /// Entities that were spawned at a later tick are new.
    tick: Tick,
    lines: TimerLines,
    keys: KeyTable,
    clocks: ClocksCopy,
    components: Components,
    /// The entities that existed, and whose timers had finished.
    finished: Vec<Entity>,
}

/// Copies the state of all timers.
#[track_caller]
pub(crate) fn snapshot_timers(world: &mut World) -> TimerSnapshot {
    check(world, "take a snapshot");
    world.flush();
    let clocks = ClocksCopy::of(world);
    world.flush();
    TimerSnapshot {
        world: world.id(),
        lines: world.resource::<TimerLines>().copy(),
        keys: world.resource::<KeyTable>().clone(),
        clocks,
        finished: finished(world).collect(),
        components: Components::read(world),
        // Whatever is spawned from now on has a later tick.
        tick: world.increment_change_tick(),
    }
}

/// Goes back to a snapshot. Entities that have despawned since are spawned again, and added to
/// `entities`.
#[track_caller]
pub(crate) fn restore_timers(
    world: &mut World,
    snapshot: &TimerSnapshot,
    entities: &mut EntityHashMap<Entity>,
) {
    check(world, "restore timers");
    assert!(
        snapshot.world == world.id(),
        "the snapshot is of another world"
    );
    world.flush();
    forget_written(world);
    let moved = respawn(world, snapshot, entities);
    let new = spawned_since(world, snapshot.tick, &moved);
    // The hooks and observers of this crate do nothing in a world without these resources.
    world.resource_scope(|world, mut lines: Mut<TimerLines>| {
        world.resource_scope(|world, mut keys: Mut<KeyTable>| {
            world.resource_scope(|world, table: Mut<ClockTable>| {
                snapshot.components.insert_all(world, &moved);
                despawn(world, new);
                snapshot.components.put_in_order(world, &moved);
                snapshot.put_back(world, (&mut lines, &mut keys, &table), &moved);
            });
        });
    });
}

impl fmt::Debug for TimerSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerSnapshot").finish_non_exhaustive()
    }
}

impl TimerSnapshot {
    /// Puts the contents of the queues and the tables back.
    fn put_back(
        &self,
        world: &mut World,
        (lines, keys, table): (&mut TimerLines, &mut KeyTable, &ClockTable),
        moved: &Moved,
    ) {
        *lines = self.lines.copy();
        *keys = self.keys.clone();
        let mut clocks = self.clocks.clone();
        if !moved.0.is_empty() {
            lines.map_entities(&mut &*moved);
            keys.map_entities(&mut &*moved);
            clocks.map_entities(&mut &*moved);
        }
        put_clocks_back(world, table, clocks);
        self.components.timers.put_back(world, moved);
        self.components.lifetimes.put_back(world, moved);
    }
}

#[track_caller]
fn check(world: &World, what: &str) {
    assert!(
        world.contains_resource::<TimerLines>(),
        "can't {what} in a world without `DuePlugin`: add it to the app"
    );
    assert!(
        !RunDepth::is_active(world),
        "can't {what} in a handler of a timer: call this between two frames, or in a system"
    );
}

/// Spawns the entities that have despawned since the snapshot, unless the map has them.
fn respawn(
    world: &mut World,
    snapshot: &TimerSnapshot,
    entities: &mut EntityHashMap<Entity>,
) -> Moved {
    let mut moved = Moved::default();
    let finished = snapshot.finished.iter().copied();
    for entity in snapshot.components.entities().chain(finished) {
        if world.entities().contains_spawned(entity) || moved.0.contains_key(&entity) {
            continue;
        }
        let target = latest(world, entities, entity);
        let target = target.unwrap_or_else(|| world.spawn_empty().id());
        entities.insert(entity, target);
        moved.0.insert(entity, target);
    }
    moved
}

/// Follows an entity through all restores in which it was spawned again.
fn latest(world: &World, entities: &EntityHashMap<Entity>, entity: Entity) -> Option<Entity> {
    let next = |&entity: &Entity| entities.get(&entity).copied();
    let names = iter::successors(next(&entity), next);
    // The map may be any, so it may lead in a circle.
    let mut names = names.take(entities.len());
    names.find(|&name| world.entities().contains_spawned(name))
}

/// Returns the entities with components of this crate that were spawned after the snapshot.
fn spawned_since(world: &mut World, snapshot: Tick, moved: &Moved) -> Vec<Entity> {
    let now = world.change_tick();
    let is_new = |entity: &Entity| {
        let tick = world.entities().entity_get_spawn_or_despawn_tick(*entity);
        tick.is_some_and(|tick| tick.is_newer_than(snapshot, now))
    };
    let targets: EntityHashSet = moved.0.values().copied().collect();
    let new = all_holders(world).chain(finished(world)).filter(is_new);
    let mut new: Vec<Entity> = new.filter(|entity| !targets.contains(entity)).collect();
    new.sort_unstable();
    new.dedup();
    new
}

/// Returns the entities that the next run despawns, because their timers have finished.
fn finished(world: &World) -> impl Iterator<Item = Entity> {
    let finished = world.resource::<TimerLines>().finished();
    finished.filter(|&entity| world.entities().contains_spawned(entity))
}

/// Despawns entities to which nothing belongs by now.
fn despawn(world: &mut World, entities: Vec<Entity>) {
    for entity in entities {
        world.try_despawn(entity).ok();
    }
    world.flush();
}

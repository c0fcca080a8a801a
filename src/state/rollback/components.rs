//! The components of this crate that have changed.

use core::iter;

use bevy_ecs::{entity_disabling::Disabled, prelude::*};

use super::{
    column::{Column, Kept, holders},
    names::Names,
    order::Order,
};
use crate::{
    clock::{Clock, ClockId, OnClock, SpeedModifier, SpeedModifiers},
    message::{MovedRequest, OpenRequest},
    owner::{Owned, OwnedBy},
    pause::{Paused, PausedBy, Pauses},
    timer::{
        Arms, Cooldown, CrateTimer, DespawnAfter, Finished, Keyed, Kind, Timer, TimerAction,
        TimerLines,
    },
    transit::InTransit,
};

/// A component with a column among the components.
pub(super) trait HasColumn: Kept {
    fn column(components: &mut Components) -> &mut Column<Self>;
}

/// The target of a relationship, with a place among the components.
pub(super) trait HasOrder: RelationshipTarget {
    fn order(components: &mut Components) -> &mut Order;
}

/// Calls a macro with all components of this crate that a snapshot restores.
macro_rules! all_components {
    ($for_all:ident) => {
        $for_all! {
            columns {
                clocks: Clock,
                modifiers: SpeedModifier,
                on_clocks: OnClock,
                owners: OwnedBy,
                keys: Keyed,
                paused: Paused,
                pauses: Pauses,
                actions: TimerAction,
                timers: Timer,
                lifetimes: DespawnAfter,
                cooldowns: Cooldown,
                finished: Finished,
                requests: OpenRequest,
                moved_requests: MovedRequest,
                crate_timers: CrateTimer,
                transits: InTransit,
            }
            orders {
                owned: OwnedBy => Owned,
                paused_by: Pauses => PausedBy,
                modified: SpeedModifier => SpeedModifiers,
            }
        }
    };
}

pub(super) use all_components;

macro_rules! components {
    (
        columns { $($column:ident: $component:ty,)* }
        orders { $($order:ident: $relationship:ty => $target:ty,)* }
    ) => {
        /// The components of this crate that have changed, as they were, by entity.
        #[derive(Clone, Default)]
        pub(super) struct Components {
            $($column: Column<$component>,)*
            $($order: Order,)*
            disabled: Column<Disabled>,
        }

        impl Components {
            /// Adds the changes that came after these.
            pub(super) fn append(&mut self, later: Self) {
                $(self.$column.append(later.$column);)*
                $(self.$order.append(later.$order);)*
                self.disabled.append(later.disabled);
            }

            /// Returns the number of entries.
            #[cfg(test)]
            pub(super) fn len(&self) -> usize {
                self.disabled.len() $(+ self.$column.len())* $(+ self.$order.len())*
            }

            /// Returns the entities that have changed, some of them several times.
            pub(super) fn changed(&self) -> impl Iterator<Item = Entity> {
                iter::empty()
                    $(.chain(self.$column.iter().map(|(entity, _)| entity)))*
                    $(.chain(self.$order.iter().map(|(entity, _)| entity)))*
            }

            /// Returns the entities that had one of the changed components, some of them several
            /// times.
            pub(super) fn entities(&self) -> impl Iterator<Item = Entity> {
                iter::empty()
                    $(.chain(self.$column.entities()))*
                    $(.chain(self.$order.entities()))*
            }

            /// Returns the entities with a component that differs from the noted one, some of them
            /// several times.
            pub(super) fn differing(&self, world: &World) -> impl Iterator<Item = Entity> {
                self.disabled.differing(world)
                    $(.chain(self.$column.differing(world)))*
                    $(.chain(self.$order.differing::<$target>(world)))*
            }

            /// Returns `true` if an entity had a component of this crate.
            pub(super) fn had_any(&self, world: &World, names: &Names, entity: Entity) -> bool {
                false
                    $(|| self.$column.had(names, entity, || world.get::<$component>(entity).is_some()))*
                    $(|| self.$order.had(names, entity, || world.get::<$target>(entity).is_some()))*
            }

            /// Inserts and removes components until each entity has the same ones as before.
            ///
            /// `new` entities, which despawn later, come last. If an observer panics before that, the
            /// next restore finds them by their components.
            pub(super) fn put_back(&self, world: &mut World, names: &Names, new: &[Entity]) {
                let is_new = |entity| new.binary_search(&entity).is_ok();
                $(self.$column.put_back(world, names, |_, entity| !is_new(entity));)*
                // Only this crate's entities are enabled and disabled. New entities are gone then.
                self.disabled.put_back(world, names, |world, entity| {
                    world.get_entity(entity).is_ok_and(|entity| {
                        false $(|| entity.contains::<$component>())*
                            $(|| entity.get::<$target>().is_some_and(|list| !list.iter().all(is_new)))*
                    })
                });
                $(self.$column.put_back(world, names, |_, entity| is_new(entity));)*
                world.flush();
            }

            /// Brings the entities of each owner into their order.
            pub(super) fn put_in_order(&self, world: &mut World, names: &Names) {
                $(self.$order.put_in_order::<$target>(world, names);)*
            }
        }

        /// Returns `true` if an entity has a component of this crate.
        pub(super) fn has_any(world: &World, entity: Entity) -> bool {
            world.get_entity(entity).is_ok_and(|entity| {
                false $(|| entity.contains::<$component>())* $(|| entity.contains::<$target>())*
            })
        }

        $(impl HasColumn for $component {
            fn column(components: &mut Components) -> &mut Column<Self> {
                &mut components.$column
            }
        })*

        $(impl HasOrder for $target {
            fn order(components: &mut Components) -> &mut Order {
                &mut components.$order
            }
        })*
    };
}

all_components!(components);

impl HasColumn for Disabled {
    fn column(components: &mut Components) -> &mut Column<Self> {
        &mut components.disabled
    }
}

impl Components {
    /// Returns the entities that choose another clock for what is on them, some of them several times.
    pub(super) fn with_other_clock(&self, world: &World) -> impl Iterator<Item = Entity> {
        let on_clocks = self.on_clocks.differing(world);
        let clocks = self.clocks.differing(world);
        let modifiers = self.modifiers.differing(world);
        on_clocks.chain(clocks).chain(modifiers)
    }

    /// Notes the components that may change unseen: systems write to them, or the next run does.
    pub(super) fn note_unseen(&mut self, world: &World) {
        self.on_clocks.note_all(world);
        self.cooldowns.note_all(world);
        for (entity, kind) in world.resource::<TimerLines>().new_timers() {
            match kind {
                Kind::Timer => self.timers.note_each(world, [entity]),
                Kind::Lifetime => self.lifetimes.note_each(world, [entity]),
            }
        }
    }
}

/// Lets replies find the requests that were spawned again: each keeps the name under which it was made.
pub(super) fn name_requests(world: &mut World, names: &Names) {
    for (_, latest) in names.iter() {
        if let Some(first) = names.up_to(latest).last()
            && let Ok(mut request) = world.get_entity_mut(latest)
            && request.contains::<OpenRequest>()
            && !request.contains::<MovedRequest>()
        {
            request.insert(MovedRequest::here(first));
        }
    }
}

/// Renames the clocks in all timers. The timers on a clock end with it, except for those that have
/// moved to another clock.
pub(super) fn rename_clocks(world: &mut World, names: &Names) {
    for entity in holders::<Timer>(world) {
        let clock = world.get::<Timer>(entity).and_then(Timer::clock);
        if let Some(ClockId::Own(clock)) = clock
            && names.latest(clock) != clock
            && let Some(timer) = world.get::<Timer>(entity)
        {
            let mut timer = timer.copy();
            Kept::map(&mut timer, &mut &*names);
            world.entity_mut(entity).insert(timer);
        }
    }
}

//! The components of this crate that a snapshot copies.

use core::iter;

use bevy_ecs::{entity::EntityHashSet, entity_disabling::Disabled, prelude::*};

use super::{
    column::{Column, Moved, holders},
    order::Order,
};
use crate::{
    clock::{Clock, OnClock, SpeedModifier, SpeedModifiers},
    message::OpenRequest,
    owner::{Owned, OwnedBy},
    pause::{Paused, PausedBy, Pauses},
    timer::{
        Cooldown, DespawnAfter, Finished, Keyed, Limit, SurvivesCancelAll, Timer, TimerAction,
        Unannounced,
    },
};

macro_rules! components {
    (
        columns { $($column:ident: $component:ty,)* }
        orders { $($order:ident: $target:ty,)* }
    ) => {
        /// The components of this crate on all entities.
        pub(super) struct Components {
            $(pub(super) $column: Column<$component>,)*
            $($order: Order,)*
            disabled: Column<Disabled>,
        }

        impl Components {
            pub(super) fn read(world: &World) -> Self {
                let mut components = Self {
                    $($column: Column::read(world),)*
                    $($order: Order::read::<$target>(world),)*
                    disabled: Column::read(world),
                };
                if !components.disabled.is_empty() {
                    let entities = components.entities().collect();
                    components.disabled.retain(&entities);
                }
                components
            }

            /// Returns the entities with a component of this crate, some of them several times.
            pub(super) fn entities(&self) -> impl Iterator<Item = Entity> {
                iter::empty()
                    $(.chain(self.$column.entities()))*
                    $(.chain(self.$order.entities()))*
            }

            /// Inserts and removes components until each entity has the same ones as in the snapshot.
            pub(super) fn insert_all(&self, world: &mut World, moved: &Moved) {
                $(self.$column.insert_all(world, moved, |_| true);)*
                if !self.disabled.is_empty() || !holders::<Disabled>(world).is_empty() {
                    let ours = self.entities().map(|entity| moved.target(entity));
                    let ours: EntityHashSet = ours.collect();
                    let is_ours = |entity| ours.contains(&entity);
                    self.disabled.insert_all(world, moved, is_ours);
                }
                world.flush();
            }

            /// Brings the entities of each owner into their order.
            pub(super) fn put_in_order(&self, world: &mut World, moved: &Moved) {
                $(self.$order.put_back::<$target>(world, moved);)*
            }
        }

        /// Returns the entities with a component of this crate, some of them several times.
        pub(super) fn all_holders(world: &World) -> impl Iterator<Item = Entity> {
            iter::empty()
                $(.chain(holders::<$component>(world)))*
                $(.chain(holders::<$target>(world)))*
        }
    };
}

components! {
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
        unannounced: Unannounced,
        survivors: SurvivesCancelAll,
        limits: Limit,
    }
    orders {
        owned: Owned,
        paused_by: PausedBy,
        modified: SpeedModifiers,
    }
}

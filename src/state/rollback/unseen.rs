//! The components that systems write to unseen.

use bevy_ecs::{
    change_detection::Tick,
    entity::{EntityHashMap, EntityHashSet},
    prelude::*,
};

use super::changed::holders;
use crate::{clock::OnClock, state::part::Part, timer::Cooldown};

/// The components that systems write to unseen, as they were at the last look.
///
/// A write is unseen if it triggers no observer. The log copies only entities that were written since the last look:
/// copying each entity for each snapshot would cost more than everything else.
pub(super) struct Unseen {
    looked_at: Tick,
    clocks: EntityHashMap<OnClock>,
    cooldowns: EntityHashMap<Cooldown>,
}

impl Unseen {
    pub(super) fn of(world: &mut World) -> Self {
        let mut unseen = Self {
            looked_at: world.change_tick(),
            clocks: EntityHashMap::default(),
            cooldowns: EntityHashMap::default(),
        };
        let mut all: EntityHashSet = holders::<OnClock>(world).collect();
        all.extend(holders::<Cooldown>(world));
        unseen.look(world, &all);
        unseen
    }

    /// Puts the values of the last look into a copy of an entity.
    pub(super) fn put_into(&self, entity: Entity, parts: &mut [Part]) {
        for part in parts {
            match part {
                Part::OnClock(clock) => *clock = *self.clocks.get(&entity).unwrap_or(clock),
                Part::Cooldown(cooldown) => {
                    *cooldown = *self.cooldowns.get(&entity).unwrap_or(cooldown);
                }
                _ => {}
            }
        }
    }

    /// Returns the entities with a component that was written since the last look.
    pub(super) fn written(&self, world: &World) -> EntityHashSet {
        let mut written = EntityHashSet::default();
        add_written::<OnClock>(world, self.looked_at, &mut written);
        add_written::<Cooldown>(world, self.looked_at, &mut written);
        written
    }

    /// Looks again at the entities that were written.
    pub(super) fn look(&mut self, world: &mut World, written: &EntityHashSet) {
        look(&mut self.clocks, world, written);
        look(&mut self.cooldowns, world, written);
        self.looked_at = world.increment_change_tick();
    }
}

fn add_written<C: Component>(world: &World, since: Tick, written: &mut EntityHashSet) {
    let now = world.read_change_tick();
    written.extend(holders::<C>(world).filter(|&entity| {
        let ticks = world.entity(entity).get_change_ticks::<C>();
        ticks.is_some_and(|ticks| ticks.is_changed(since, now))
    }));
}

fn look<C: Component + Copy>(
    values: &mut EntityHashMap<C>,
    world: &World,
    written: &EntityHashSet,
) {
    for &entity in written {
        if let Some(&value) = world.get::<C>(entity) {
            values.insert(entity, value);
        }
    }
    // Each holder has a value. So if there are more values, some have lost the component.
    if values.len() > holders::<C>(world).count() {
        values.retain(|&entity, _| world.get::<C>(entity).is_some());
    }
}

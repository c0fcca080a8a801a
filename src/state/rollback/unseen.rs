//! The cooldowns, which systems write to unseen.

use bevy_ecs::{
    change_detection::Tick,
    entity::{EntityHashMap, EntityHashSet},
    prelude::*,
};

use super::changed::holders;
use crate::{state::part::Part, timer::Cooldown};

/// The cooldowns as they were at the last look.
///
/// A write to one triggers no observer. The log copies only entities that were written since the last look: copying each
/// entity for each snapshot would cost more than everything else.
pub(super) struct Unseen {
    looked_at: Tick,
    cooldowns: EntityHashMap<Cooldown>,
}

impl Unseen {
    pub(super) fn of(world: &mut World) -> Self {
        let mut unseen = Self {
            looked_at: world.change_tick(),
            cooldowns: EntityHashMap::default(),
        };
        let all = holders::<Cooldown>(world).collect();
        unseen.look(world, &all);
        unseen
    }

    /// Puts the value of the last look into a copy of an entity.
    pub(super) fn put_into(&self, entity: Entity, parts: &mut [Part]) {
        for part in parts {
            if let Part::Cooldown(cooldown) = part {
                *cooldown = *self.cooldowns.get(&entity).unwrap_or(cooldown);
            }
        }
    }

    /// Returns the entities whose cooldown was written since the last look.
    pub(super) fn written(&self, world: &World) -> EntityHashSet {
        let now = world.read_change_tick();
        let written = holders::<Cooldown>(world).filter(|&entity| {
            let ticks = world.entity(entity).get_change_ticks::<Cooldown>();
            ticks.is_some_and(|ticks| ticks.is_changed(self.looked_at, now))
        });
        written.collect()
    }

    /// Looks again at the entities that were written.
    pub(super) fn look(&mut self, world: &mut World, written: &EntityHashSet) {
        for &entity in written {
            if let Some(&cooldown) = world.get(entity) {
                self.cooldowns.insert(entity, cooldown);
            }
        }
        // Each holder has a value. So if there are more values, some have lost the component.
        if self.cooldowns.len() > holders::<Cooldown>(world).count() {
            self.cooldowns
                .retain(|&entity, _| world.get::<Cooldown>(entity).is_some());
        }
        self.looked_at = world.increment_change_tick();
    }
}

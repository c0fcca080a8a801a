//! The plugin that makes a world a zone: what it does in a frame, in order.

use bevy_app::prelude::*;
use bevy_due::{DueSystems, worlds::StableKey};
use bevy_ecs::prelude::*;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    components::Declared,
    noted::{Noted, Outgoing, note_birth, note_death},
    shard::Shard,
    zone::{ZoneState, open, with_zone},
};

/// Makes a world a zone: a world whose entities with a [`StableKey`] survive a crash, and can move to other
/// zones. [`Shard::zone`] creates it.
///
/// # A frame
///
/// | schedule | what happens |
/// |---|---|
/// | `PreStartup`, once | the entities in the journal come back, and trigger [`Arrived`](crate::Arrived) |
/// | `PreUpdate` | after [`DueSystems::Messages`]: entities and letters from other zones arrive |
/// | `Last` | what has changed goes to the journal. Entities leave |
/// | later, on the thread of the journal | it syncs the disk. Then parcels, replies and letters of the frame leave the world |
///
/// The world never waits for the disk. If the disk is slow, several frames are stored as one.
///
/// # What is stored
///
/// An entity with a `StableKey`, and everything that it owns: timers, cooldowns, pauses, open requests and
/// waiting mail, as [`bevy_due::moving`] lists them, and the [declared](Self::component) components. All
/// else is not: spawn it in a startup system, or when the entity [arrives](crate::Arrived).
///
/// An entity with a `StableKey` that is owned by another one is stored and moves with its owner. It gets no
/// letters of its own.
///
/// # Closures
///
/// A timer that runs a closure is no data. A new entity with such a timer is reported, and is not stored until its
/// key is inserted again. If an entity gets one that the journal has already, the world ends: it would come back as it
/// was before. Use [named handlers](bevy_due::DueWorldExt::add_timer_handler) or observers.
#[derive(Clone, Debug)]
pub struct ZonePlugin {
    shard: Shard,
    key: StableKey,
    declared: Vec<Declared>,
}

impl ZonePlugin {
    pub(crate) fn new(shard: Shard, key: StableKey) -> Self {
        let declared = Vec::new();
        Self {
            shard,
            key,
            declared,
        }
    }

    /// Stores the component `C` of durable entities, and of entities that they own. All zones between which
    /// entities move must declare it under the same name.
    ///
    /// Bevy's change detection finds what to store, so a component that changes without it is stored late.
    ///
    /// # Panics
    ///
    /// Panics if the name is declared already.
    #[must_use]
    pub fn component<C: Component + Serialize + DeserializeOwned>(
        mut self,
        name: &'static str,
    ) -> Self {
        let is_new = self.declared.iter().all(|declared| declared.name != name);
        assert!(is_new, "a component is declared as {name:?} already");
        self.declared.push(Declared::new::<C>(name));
        self
    }
}

/// The zone to be opened in `PreStartup`.
#[derive(Resource)]
struct Opening(ZonePlugin);

impl Plugin for ZonePlugin {
    fn build(&self, app: &mut App) {
        app.insert_resource(Opening(self.clone()))
            .init_resource::<Noted>()
            .init_resource::<Outgoing>()
            .add_observer(note_birth)
            .add_observer(note_death)
            .add_systems(PreStartup, open_zone)
            .add_systems(PreUpdate, receive.after(DueSystems::Messages))
            .add_systems(Last, store);
        for declared in &self.declared {
            declared.watch(app);
        }
    }
}

fn open_zone(world: &mut World) -> Result {
    let Some(Opening(ZonePlugin {
        shard,
        key,
        declared,
    })) = world.remove_resource()
    else {
        return Ok(());
    };
    let opened = open(world, shard, key, declared);
    end_if_failed(world, opened)
}

fn receive(world: &mut World) -> Result {
    let received = with_zone(world, ZoneState::receive).unwrap_or(Ok(()));
    end_if_failed(world, received)
}

pub(crate) fn store(world: &mut World) -> Result {
    let stored = with_zone(world, ZoneState::store).unwrap_or(Ok(()));
    end_if_failed(world, stored)
}

/// Ends the world after an error, and its zone at once: a later frame would confirm what this one has not stored.
fn end_if_failed(world: &mut World, result: Result) -> Result {
    if result.is_err() {
        world.remove_resource::<ZoneState>();
        world.write_message(AppExit::error());
    }
    result
}

//! The plugin that makes a world a zone: what it does in a frame, in order.

use bevy_app::prelude::*;
use bevy_due::{DueSystems, worlds::StableKey};
use bevy_ecs::{observer::IntoObserver, prelude::*};

use crate::{
    changes::{Noted, Outgoing, StoreFrame, note_birth, note_death},
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
/// The world does not wait for the disk. If the disk is slow, several frames are stored as one. If it is behind by more
/// than a second, or 16 MiB of parcels, the world waits in its frame, and ends after ten seconds.
///
/// # What is stored
///
/// An entity with a `StableKey`, and everything that it owns: timers, cooldowns, pauses, open requests and
/// waiting mail, as [`bevy_due::moving`] lists them, and the components that the game has
/// [registered](bevy_due::save::SaveWorldExt::add_saved_component). All
/// else is not: spawn it in a startup system, or when the entity [arrives](crate::Arrived).
///
/// Register the components before the first frame, and in all zones between which entities move. Bevy's change detection
/// finds what to store, so a component that changes without it is stored late. A build that knows only an older version
/// of a component than that of an entity can't load the entity: see [`allow_unloadable`](Self::allow_unloadable).
///
/// An entity with a `StableKey` that is owned by a durable entity is stored and moves with its owner. It gets no
/// letters of its own.
///
/// # Other processes
///
/// They learn the key of the zone, and no key of an entity. A `post` or `ask_world` from another process to a durable
/// entity is refused with [`UnknownKey`](bevy_due::message::RefusalReason::UnknownKey). Use
/// [`mail`](crate::DurableEntityCommandsExt::mail), or send to the key of the zone. To hear what comes there, add
/// callbacks to those of the zone:
///
/// ```
/// use bevy_due::{message::Packet, prelude::*, worlds::StableKey};
/// use bevy_due_ownership::Zone;
/// use bevy_ecs::{observer::IntoObserver, prelude::*};
///
/// const PING: u32 = 1;
/// const PONG: u32 = 2;
///
/// /// A startup system.
/// fn listen(
///     zone: Res<Zone>,
///     keys: Query<(Entity, &StableKey, &MessageComponent)>,
///     mut commands: Commands,
/// ) {
///     let mut keys = keys.iter();
///     if let Some((entity, _, callbacks)) = keys.find(|(_, key, _)| **key == zone.key()) {
///         let with_ping = callbacks.clone().on_packet(PING, |mut me, _| me.reply(Packet::new(PONG, [])));
///         commands.entity(entity).insert(with_ping);
///     }
/// }
/// # bevy_ecs::system::assert_is_system(listen);
/// ```
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
    allows_unloadable: bool,
}

impl Shard {
    /// Returns the plugin that makes a world a zone of this shard. Add it after
    /// [`DuePlugin`](bevy_due::DuePlugin).
    ///
    /// `key` is the key of the zone: other zones find it under this key, so no zone and no entity of the group
    /// may have the same. Other processes learn [no other key](ZonePlugin#other-processes) of its world. The world
    /// must be a member of a group, and each zone can be open once.
    #[must_use]
    pub fn zone(&self, key: StableKey) -> ZonePlugin {
        ZonePlugin {
            shard: self.clone(),
            key,
            allows_unloadable: false,
        }
    }
}

impl ZonePlugin {
    /// Opens the zone also if this build can't load some of its entities. They stay in the file, with their letters,
    /// until a build can load them: see [`Zone::unloadable`](crate::Zone::unloadable). Pauses, clocks and owners that lead to
    /// them are dropped from the other entities, which are stored without them.
    ///
    /// Without this call, the world ends, so that a game does not go on without them by mistake.
    #[must_use]
    pub fn allow_unloadable(mut self) -> Self {
        self.allows_unloadable = true;
        self
    }
}

/// The zone to be opened in `PreStartup`.
#[derive(Resource)]
struct Opening(ZonePlugin);

impl Plugin for ZonePlugin {
    fn build(&self, app: &mut App) {
        // An observer shares the entity of a resource, any one: a game that despawns every entity without a resource
        // spares it.
        let world = app.world_mut();
        world.spawn((Noted::default(), note_birth.into_observer()));
        world.spawn((Outgoing::default(), note_death.into_observer()));
        app.insert_resource(Opening(self.clone()))
            .add_systems(PreStartup, open_zone)
            .add_systems(PreUpdate, receive.after(DueSystems::Messages))
            .add_systems(Last, store.in_set(StoreFrame));
    }
}

fn open_zone(world: &mut World) -> Result {
    let Some(Opening(ZonePlugin {
        shard,
        key,
        allows_unloadable,
    })) = world.remove_resource()
    else {
        return Ok(());
    };
    let opened = open(world, shard, key, allows_unloadable);
    end_if_failed(world, opened)
}

fn receive(world: &mut World) -> Result {
    let received = with_zone(world, ZoneState::receive).unwrap_or(Ok(()));
    end_if_failed(world, received)
}

fn store(world: &mut World) -> Result {
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

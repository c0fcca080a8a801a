//! Serialized values from anywhere.

use core::time::Duration;

use bevy_due::{
    Clock, ClockId, Cooldown, DespawnAfter, DuePlugin, DueWorldExt, MissedTicks, OnClock, Owned,
    OwnedBy, Paused, Timer, TimerAction,
    clock::SpeedModifier,
    message::{Delivery, MessageComponent, MessageWorldExt, Packet, RefusalReason},
    moving::{MoveWorldExt, MovedEntity},
    timer::{Keyed, Pauses},
    worlds::{Address, Parcel, ParcelCommandsExt, StableKey},
};
use bevy_ecs::{
    entity::{EntityHashMap, EntityMapper},
    prelude::*,
    query::QueryFilter,
};
use bevy_time::{Time, Virtual};
use serde::de::DeserializeOwned;

use super::{
    app::{app, fixed_step, frame},
    bytes::Bytes,
};

/// The number of entities that get components.
const ENTITIES: usize = 4;

/// The entities that get components, and one that does not exist. Loaded entities become these.
#[derive(Resource, Clone, Copy)]
struct Slots([Entity; ENTITIES + 1]);

impl EntityMapper for Slots {
    fn get_mapped(&mut self, source: Entity) -> Entity {
        self.0[source.to_bits() as usize % self.0.len()]
    }

    fn set_mapped(&mut self, _source: Entity, _target: Entity) {}
}

/// Loads values from bytes into a world, and runs it. Invalid bytes must be an error. A value that
/// loads must not break the world.
///
/// A value takes a byte for its type, a byte for its format and its entity, a byte for its length,
/// and the serialized bytes.
///
/// # Panics
///
/// Panics if a value breaks the world.
pub fn load(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    let mut app = app(DuePlugin::default());
    let world = app.world_mut();
    let ears = || MessageComponent::new().on_packet(1, |_, _: &Packet| ());
    let entities = [(); ENTITIES + 1].map(|()| world.spawn(ears()).id());
    world.despawn(entities[ENTITIES]);
    world.insert_resource(Slots(entities));
    frame(world, Duration::from_secs(1));
    while !bytes.is_empty() {
        let (kind, place, len) = (bytes.byte(), usize::from(bytes.byte()), bytes.byte());
        let value = Value {
            format: [Format::Ron, Format::Json, Format::Postcard][place / ENTITIES % 3],
            bytes: bytes.take(usize::from(len)),
        };
        load_one(kind, value, entities[place % ENTITIES], world);
        if kind >= 128 {
            frame(world, Duration::from_millis(1));
        }
    }
    run(world);
}

/// Loads one value. A new type gets a new line at the end, so that the corpus keeps its meaning.
fn load_one(kind: u8, value: Value, entity: Entity, world: &mut World) {
    match kind % 32 {
        0 => value.insert::<Timer>(entity, world),
        1 => value.insert::<Clock>(entity, world),
        2 => value.insert::<OnClock>(entity, world),
        3 => value.insert::<Cooldown>(entity, world),
        4 => value.insert::<DespawnAfter>(entity, world),
        5 => value.insert::<Keyed>(entity, world),
        6 => value.insert::<OwnedBy>(entity, world),
        7 => value.insert::<Owned>(entity, world),
        8 => value.insert::<Paused>(entity, world),
        9 => value.insert::<Pauses>(entity, world),
        10 => value.insert::<SpeedModifier>(entity, world),
        11 => value.insert::<StableKey>(entity, world),
        12 => value.insert::<TimerAction>(entity, world),
        13 => value.with(|clock: ClockId| {
            let timer = Timer::every(0.5).on(clock);
            insert(timer, entity, world);
        }),
        14 => value.with(|policy: MissedTicks| {
            let timer = Timer::every(0.5).with_missed_ticks(policy);
            insert(timer, entity, world);
        }),
        15 => value.with(|to: Delivery| world.send(to, Packet::new(1, [])).unwrap()),
        16 => value.with(|packet: Packet| world.send(Delivery::All, packet).unwrap()),
        17 => value.with(|parcel: Parcel| world.commands().post(parcel)),
        18 => value.with(|Address { group, key }| {
            let parcel = Parcel::new(group, key, Packet::new(1, []));
            world.commands().post(parcel);
        }),
        19 => value.with(|reason: RefusalReason| assert!(!reason.to_string().is_empty())),
        20 => value.with(|moved: MovedEntity| {
            let mut map = EntityHashMap::default();
            let on_the_way = Duration::from_secs(1);
            if let Ok(here) = world.put_entity(moved, on_the_way, &mut map) {
                // Despawned with the others.
                world
                    .entity_mut(here)
                    .insert_if_new(MessageComponent::new());
            }
        }),
        _ => {}
    }
}

#[derive(Clone, Copy)]
enum Format {
    Ron,
    Json,
    Postcard,
}

struct Value<'a> {
    format: Format,
    bytes: &'a [u8],
}

impl Value<'_> {
    /// Passes the value on, unless the bytes are invalid.
    fn with<T: DeserializeOwned>(&self, use_value: impl FnOnce(T)) {
        let value = match self.format {
            Format::Ron => ron::de::from_bytes(self.bytes).ok(),
            Format::Json => serde_json::from_slice(self.bytes).ok(),
            Format::Postcard => postcard::from_bytes(self.bytes).ok(),
        };
        if let Some(value) = value {
            use_value(value);
        }
    }

    /// Inserts a component, with its entities mapped as a scene does.
    fn insert<T: DeserializeOwned + Component>(&self, entity: Entity, world: &mut World) {
        self.with(|mut component: T| {
            T::map_entities(&mut component, &mut *world.resource_mut::<Slots>());
            insert(component, entity, world);
        });
    }
}

/// Inserts a component, unless an earlier value has despawned the entity.
fn insert(component: impl Component, entity: Entity, world: &mut World) {
    if let Ok(mut entity) = world.get_entity_mut(entity) {
        entity.insert(component);
    }
    world.flush();
}

/// Runs frames, from short ones to a jump, then despawns everything.
fn run(world: &mut World) {
    for span in [0, 1_000_000, 50_000_000, 3_600_000_000_000, u64::MAX >> 4] {
        let span = Duration::from_nanos(span);
        frame(world, span);
        fixed_step(world, span);
        use_cooldowns(world);
        check_timers(world);
    }
    let timers = world.query_filtered::<Entity, With<Timer>>();
    despawn_all(timers, world);
    check_timers(world);
    let rest = world.query_filtered::<Entity, With<MessageComponent>>();
    despawn_all(rest, world);
    frame(world, Duration::from_secs(1));
    assert_eq!(world.with_timers(|timers| timers.count()), 0);
}

/// Every `Timer` must be counted, listed and found.
fn check_timers(world: &mut World) {
    let mut timers = world.query_filtered::<Entity, With<Timer>>();
    let timers: Vec<_> = timers.iter(world).collect();
    world.with_timers(|armed| {
        assert_eq!(armed.count(), timers.len());
        assert_eq!(armed.iter().count(), timers.len());
        assert!(timers.iter().all(|&timer| armed.get(timer).is_some()));
    });
}

fn use_cooldowns(world: &mut World) {
    let mut cooldowns = world.query::<(Entity, &Cooldown)>();
    let cooldowns: Vec<_> = cooldowns.iter(world).map(|(at, old)| (at, *old)).collect();
    let now = world.resource::<Time<Virtual>>().elapsed();
    for (entity, mut cooldown) in cooldowns {
        let fraction = cooldown.fraction(now);
        assert!((0.0..=1.0).contains(&fraction), "{cooldown:?}: {fraction}");
        assert!(cooldown.charges(now) <= cooldown.max_charges());
        let is_ready = cooldown.is_ready(now);
        assert_eq!(cooldown.try_use(now), is_ready, "{cooldown:?}");
        world.entity_mut(entity).insert(cooldown);
    }
}

fn despawn_all<F: QueryFilter>(mut query: QueryState<Entity, F>, world: &mut World) {
    let entities: Vec<_> = query.iter(world).collect();
    for entity in entities {
        if world.get_entity(entity).is_ok() {
            world.despawn(entity);
        }
    }
}

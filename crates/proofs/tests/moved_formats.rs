//! A moved entity and its held mail in RON, JSON and postcard.

use core::time::Duration;

use bevy_app::App;
use bevy_due::{
    Cooldown, DuePlugin, Timer,
    message::{MessageWorldExt, Packet},
    moving::{MoveWorldExt, MovedEntity},
    prelude::*,
};
use bevy_ecs::{entity::EntityHashMap, prelude::*};
use bevy_time::{TimePlugin, TimeUpdateStrategy};
use serde::{Serialize, de::DeserializeOwned};

#[derive(Message)]
struct Hit(u8);

#[derive(Component, Default)]
struct Heard(Vec<u8>);

fn zone() -> App {
    let step = Duration::from_millis(10);
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .insert_resource(TimeUpdateStrategy::ManualDuration(step));
    app.world_mut().add_message_codec(
        "hit",
        |hit: &Hit| Ok(postcard::to_allocvec(&hit.0)?),
        |data| Ok(Hit(postcard::from_bytes(data)?)),
    );
    app.update();
    app
}

fn ears() -> impl Bundle {
    let follows = MessageComponent::new()
        .on(|mut me, hit: &Hit| me.entity.get_mut::<Heard>().unwrap().0.push(hit.0))
        .on_packet(1, |mut me, packet| {
            let mut heard = me.entity.get_mut::<Heard>().unwrap();
            heard.0.extend(packet.payload());
        });
    (Heard::default(), follows)
}

/// Takes a busy entity out of its world.
fn taken() -> MovedEntity {
    let mut forest = zone();
    let hero = forest
        .world_mut()
        .spawn((ears(), Timer::every(0.1), Cooldown::new(1.0)))
        .id();
    let random = Timer::every_between(Duration::from_millis(5)..=Duration::from_millis(9));
    forest.world_mut().spawn((OwnedBy(hero), random));
    for _ in 0..3 {
        forest.update();
    }
    forest.world_mut().send(hero, Hit(1)).unwrap();
    forest.world_mut().send(hero, Packet::new(1, [2])).unwrap();
    forest.world_mut().take_entity(hero).unwrap()
}

/// Moves an entity through a format.
fn check(through: impl Fn(&MovedEntity) -> MovedEntity) {
    let moved = through(&taken());
    let mut town = zone();
    let mut map = EntityHashMap::default();
    let world = town.world_mut();
    let here = world.put_entity(moved, Duration::from_millis(5), &mut map);
    let here = here.unwrap();
    world.entity_mut(here).insert(ears());
    let timer = world.with_timers(|timers| timers.get(here)).unwrap();
    assert_eq!(timer.remaining, Duration::from_millis(65));
    town.update();
    assert_eq!(town.world().get::<Heard>(here).unwrap().0, [1, 2]);
}

fn through_ron<T: Serialize + DeserializeOwned>(value: &T) -> T {
    ron::from_str(&ron::to_string(value).unwrap()).unwrap()
}

fn through_json<T: Serialize + DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

fn through_postcard<T: Serialize + DeserializeOwned>(value: &T) -> T {
    postcard::from_bytes(&postcard::to_allocvec(value).unwrap()).unwrap()
}

#[test]
fn an_entity_moves_through_every_format() {
    check(through_ron);
    check(through_json);
    check(through_postcard);
}

#[test]
fn changed_bytes_are_an_error_that_changes_nothing_or_a_valid_entity() {
    let moved = taken();
    let bytes = postcard::to_allocvec(&moved).unwrap();
    let mut errors = 0;
    for at in 0..bytes.len() {
        assert!(postcard::from_bytes::<MovedEntity>(&bytes[..at]).is_err());
        for bit in 0..8 {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << bit;
            let Ok(moved) = postcard::from_bytes::<MovedEntity>(&bytes) else {
                continue;
            };
            let mut town = zone();
            let mut map = EntityHashMap::default();
            let world = town.world_mut();
            // Bevy adds entities for resources on first use.
            world.with_timers(|timers| timers.count());
            let before = world.entities().count_spawned();
            match world.put_entity(moved, Duration::from_secs(1), &mut map) {
                Ok(_) => {
                    for _ in 0..3 {
                        town.update();
                    }
                }
                Err(_) => {
                    errors += 1;
                    assert!(map.is_empty());
                    assert_eq!(world.entities().count_spawned(), before);
                    assert_eq!(world.with_timers(|timers| timers.count()), 0);
                }
            }
        }
    }
    assert!(errors > 100, "{errors} errors of {} bytes", bytes.len());
}

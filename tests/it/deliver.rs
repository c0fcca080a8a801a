//! `World::deliver` calls an entity for a packet at once.

use bevy_due::message::{MessageComponent, MessageStats, MessageWorldExt, Packet};
use bevy_ecs::{entity_disabling::Disabled, prelude::*};

use crate::support::*;

const NOTE: u32 = 1;

#[derive(Component, Default)]
struct Heard(Vec<u8>);

fn ears() -> impl Bundle {
    let callbacks = MessageComponent::new().on_packet(NOTE, |mut me, note| {
        let nth = note.payload()[0];
        me.commands.queue(move |world: &mut World| {
            world.resource_mut::<Applied>().0.push(nth);
        });
        me.entity.get_mut::<Heard>().expect("ears").0.push(nth);
    });
    (Heard::default(), callbacks)
}

#[derive(Resource, Default)]
struct Applied(Vec<u8>);

fn note(nth: u8) -> Packet {
    Packet::new(NOTE, [nth])
}

#[test]
fn it_comes_before_the_messages_that_wait_and_applies_its_commands() {
    let mut app = app();
    app.init_resource::<Applied>();
    let world = app.world_mut();
    let hero = world.spawn(ears()).id();
    world.send(hero, note(1)).expect("there is room");
    assert!(world.deliver(hero, &note(2)).expect("it has the plugin"));
    assert_eq!(world.get::<Heard>(hero).unwrap().0, [2]);
    assert_eq!(world.resource::<Applied>().0, [2]);
    app.update();
    let world = app.world();
    assert_eq!(world.get::<Heard>(hero).unwrap().0, [2, 1]);
    assert_eq!(world.resource::<MessageStats>().delivered, 2);
}

#[test]
fn an_entity_that_can_not_be_called_is_told_and_nothing_is_counted() {
    let mut app = app();
    app.init_resource::<Applied>();
    let world = app.world_mut();
    let [deaf, disabled, gone] = [(); 3].map(|()| world.spawn(ears()).id());
    world.entity_mut(deaf).remove::<MessageComponent>();
    world.entity_mut(disabled).insert(Disabled);
    world.despawn(gone);
    for entity in [deaf, disabled, gone] {
        let called = world.deliver(entity, &note(1));
        assert!(!called.expect("it has the plugin"), "{entity}");
    }
    let packet = Packet::new(9, []);
    world.entity_mut(disabled).remove::<Disabled>();
    assert!(!world.deliver(disabled, &packet).expect("it has the plugin"));
    app.update();
    assert!(app.world().get::<Heard>(disabled).unwrap().0.is_empty());
    assert_eq!(app.world().resource::<MessageStats>().undeliverable, 0);
}

#[test]
fn a_callback_can_not_call_again() {
    let mut app = app();
    app.init_resource::<Applied>();
    let world = app.world_mut();
    let other = world.spawn(ears()).id();
    let callbacks = MessageComponent::new().on_packet(NOTE, move |mut me, _| {
        me.commands.queue(move |world: &mut World| {
            assert!(world.deliver(other, &note(2)).is_err());
            world.send(other, note(3)).expect("there is room");
        });
    });
    let first = world.spawn(callbacks).id();
    assert!(world.deliver(first, &note(1)).expect("it has the plugin"));
    app.update();
    assert_eq!(app.world().get::<Heard>(other).unwrap().0, [3]);
}

#[test]
fn a_world_without_the_plugin_is_an_error() {
    let mut world = World::new();
    let entity = world.spawn_empty().id();
    assert!(world.deliver(entity, &note(1)).is_err());
}

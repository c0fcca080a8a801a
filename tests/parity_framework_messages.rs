//! What the messages of a component framework can do, row by row of the design.

mod support;

use std::{sync::Arc, thread};

use bevy_app::App;
use bevy_due::{MessageContext, MessageStats, Packet, prelude::*};
use bevy_ecs::prelude::*;
use support::*;

/// What has been received, in order: by whom, and which packet.
#[derive(Resource, Default)]
struct Received(Vec<(&'static str, u32)>);

fn framework_app() -> App {
    let mut app = app();
    app.init_resource::<Received>();
    app
}

/// Follows packets of these numbers, and says so.
fn following(name: &'static str, ids: &[u32]) -> MessageComponent {
    ids.iter().fold(MessageComponent::new(), |component, &id| {
        component.on_packet(id, move |mut me: MessageContext, packet: &Packet| {
            let received = (name, packet.id());
            me.commands.queue(move |world: &mut World| {
                world.resource_mut::<Received>().0.push(received);
            });
        })
    })
}

fn received(app: &mut App) -> Vec<(&'static str, u32)> {
    core::mem::take(&mut app.world_mut().resource_mut::<Received>().0)
}

/// Sends an entity the packets 1 to 4, and says which of them it has received.
fn received_of_four(app: &mut App, entity: Entity) -> Vec<u32> {
    for id in 1..=4 {
        app.world_mut().send(entity, Packet::new(id, []));
    }
    advance_ms(app, 10);
    received(app).into_iter().map(|(_, id)| id).collect()
}

/// Message component: which message ids it follows, a function for each; replaced at run time
/// (follows 1 and 2, later 3 and 4).
#[test]
fn an_entity_follows_1_and_2_and_later_3_and_4() {
    let mut app = framework_app();
    let entity = app.world_mut().spawn(following("x", &[1, 2])).id();
    assert_eq!(received_of_four(&mut app, entity), [1, 2]);
    app.world_mut()
        .entity_mut(entity)
        .insert(following("x", &[3, 4]));
    assert_eq!(received_of_four(&mut app, entity), [3, 4]);

    // By itself, in the middle of a frame: the rest of it waits for the new functions.
    let changing = following("x", &[1]).on_packet(2, |mut me: MessageContext, _: &Packet| {
        let mut me = me.commands.entity(me.entity.id());
        me.insert(following("x", &[3, 4]));
    });
    app.world_mut().entity_mut(entity).insert(changing);
    assert_eq!(received_of_four(&mut app, entity), [1]);
    advance_ms(&mut app, 10);
    assert_eq!(received(&mut app), [("x", 3), ("x", 4)]);

    app.world_mut()
        .entity_mut(entity)
        .remove::<MessageComponent>();
    assert_eq!(received_of_four(&mut app, entity), [0; 0]);
}

/// Message system: packets queued from any thread under a lock, double-buffered, dispatched each
/// frame, freed when all readers are done.
#[test]
fn packets_from_any_thread_are_dispatched_each_frame_and_freed_after_the_last_reader() {
    /// What a reader keeps.
    #[derive(Component, Default)]
    struct Kept(Option<Packet>);

    let mut app = framework_app();
    app.world_mut().spawn(following("reader", &[1]));
    let keeps = MessageComponent::new().on_packet(1, |mut me: MessageContext, packet: &Packet| {
        me.entity.get_mut::<Kept>().unwrap().0 = Some(packet.clone());
    });
    let keeper = app.world_mut().spawn((Kept::default(), keeps)).id();
    let sender = app.world_mut().message_sender();
    let bytes: Arc<[u8]> = Arc::from(*b"hello");
    let of_thread = sender.clone();
    let to_send = Packet::new(1, bytes.clone());
    let thread = thread::spawn(move || of_thread.send(Delivery::All, to_send));
    thread.join().unwrap().unwrap();
    assert_eq!(Arc::strong_count(&bytes), 2, "queued");

    // While this one is dispatched, the next one is queued.
    let next = MessageComponent::new().on_packet(1, move |_: MessageContext, packet: &Packet| {
        if packet.payload() == b"hello" {
            sender
                .send(Delivery::All, Packet::new(1, *b"next"))
                .unwrap();
        }
    });
    app.world_mut().spawn(next);
    advance_ms(&mut app, 10);
    assert_eq!(received(&mut app), [("reader", 1)], "only the first");
    assert_eq!(Arc::strong_count(&bytes), 2, "one reader still has it");
    let kept = app.world().get::<Kept>(keeper).unwrap().0.as_ref().unwrap();
    assert_eq!(kept.payload(), b"hello");
    advance_ms(&mut app, 10);
    assert_eq!(received(&mut app), [("reader", 1)]);
    assert_eq!(
        Arc::strong_count(&bytes),
        1,
        "freed: the reader has the next"
    );
    advance_ms(&mut app, 10);
    assert_eq!(received(&mut app), []);
    assert_eq!(app.world().resource::<MessageStats>().delivered, 6);
}

/// Broadcast to all of a kind, or to exactly one in turn (round robin), among entities.
#[test]
fn a_packet_goes_to_all_entities_of_a_kind_or_to_exactly_one_in_turn() {
    const LOGIN: u32 = 1;
    const QUERY: u32 = 2;

    let mut app = framework_app();
    let logic = ["logic 1", "logic 2"];
    let database = ["database 1", "database 2", "database 3"];
    for (names, id) in [(&logic[..], LOGIN), (&database[..], QUERY)] {
        for &name in names {
            app.world_mut().spawn(following(name, &[id]));
        }
    }
    let mut sent = |delivery: Delivery, id: u32| {
        app.world_mut().send(delivery, Packet::new(id, []));
        advance_ms(&mut app, 10);
        received(&mut app)
            .into_iter()
            .map(|(name, _)| name)
            .collect::<Vec<_>>()
    };
    assert_eq!(sent(Delivery::All, LOGIN), logic);
    assert_eq!(sent(Delivery::All, QUERY), database);
    for turn in 0..7 {
        assert_eq!(sent(Delivery::InTurn, QUERY), [database[turn % 3]]);
        assert_eq!(sent(Delivery::InTurn, LOGIN), [logic[turn % 2]]);
    }
}

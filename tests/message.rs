//! `MessageComponent`: functions that are called for messages.

mod support;

use bevy_app::App;
use bevy_due::{MessageContext, MessageStats, Packet, prelude::*};
use bevy_ecs::{message::Messages, prelude::*};
use support::*;

#[derive(Message)]
struct Word(&'static str);

/// What has been received, in order: by whom, and what.
#[derive(Resource, Default)]
struct Heard(Vec<(&'static str, &'static str)>);

fn message_app() -> App {
    let mut app = app();
    app.init_resource::<Heard>();
    app
}

/// Follows words, and says who has heard which.
fn listener(name: &'static str) -> MessageComponent {
    MessageComponent::new().on(move |mut me: MessageContext, word: &Word| {
        let heard = (name, word.0);
        me.commands
            .queue(move |world: &mut World| world.resource_mut::<Heard>().0.push(heard));
    })
}

fn heard(app: &mut App) -> Vec<(&'static str, &'static str)> {
    core::mem::take(&mut app.world_mut().resource_mut::<Heard>().0)
}

#[test]
fn a_message_goes_to_one_to_all_or_to_one_in_turn() {
    let mut app = message_app();
    let [a, _, _] = ["a", "b", "c"].map(|name| app.world_mut().spawn(listener(name)).id());
    let world = app.world_mut();
    world.send(a, Word("one"));
    world.send(Delivery::All, Word("all"));
    for _ in 0..4 {
        world.send(Delivery::InTurn, Word("turn"));
    }
    advance_ms(&mut app, 10);
    assert_eq!(
        heard(&mut app),
        [
            ("a", "one"),
            ("a", "all"),
            ("b", "all"),
            ("c", "all"),
            ("a", "turn"),
            ("b", "turn"),
            ("c", "turn"),
            ("a", "turn"),
        ]
    );
    let stats = *app.world().resource::<MessageStats>();
    assert_eq!((stats.delivered, stats.undeliverable), (8, 0));
}

#[test]
fn what_bevys_writers_write_goes_to_all_that_follow_it() {
    let mut app = message_app();
    app.add_message::<Word>();
    app.world_mut().spawn(listener("a"));
    app.world_mut().spawn(listener("b"));
    for word in ["one", "two"] {
        app.world_mut().write_message(Word(word));
        advance_ms(&mut app, 10);
        assert_eq!(heard(&mut app), [("a", word), ("b", word)]);
    }
    advance_ms(&mut app, 10);
    assert_eq!(heard(&mut app), [], "each one once");
    let written = app.world().resource::<Messages<Word>>();
    assert!(!written.is_empty(), "others can still read it");
}

#[test]
fn what_is_sent_while_functions_are_replaced_waits_for_the_new_ones() {
    let mut app = message_app();
    let stranger = MessageComponent::new().on_packet(1, |mut me: MessageContext, _: &Packet| {
        let friend = MessageComponent::new().on_packet(3, |mut me: MessageContext, _: &Packet| {
            me.commands
                .queue(|world: &mut World| world.resource_mut::<Heard>().0.push(("me", "three")));
        });
        me.commands.entity(me.entity.id()).insert(friend);
    });
    let me = app.world_mut().spawn(stranger).id();
    for id in [3, 1, 3, 1, 3] {
        app.world_mut().send(me, Packet::new(id, []));
    }
    advance_ms(&mut app, 10);
    assert_eq!(heard(&mut app), []);
    advance_ms(&mut app, 10);
    assert_eq!(heard(&mut app), [("me", "three"), ("me", "three")]);
    let stats = *app.world().resource::<MessageStats>();
    assert_eq!((stats.delivered, stats.undeliverable), (3, 2));
}

//! `MessageComponent`: per-entity callbacks that run once per message.

use core::{
    cell::RefCell,
    sync::atomic::{AtomicU32, Ordering},
};
use std::sync::{Arc, Mutex};

use crate::support::{errors::*, *};
use bevy_app::{App, PostUpdate, PreUpdate, Update};
use bevy_due::{
    DueSystems, OnClock, Timer,
    message::{
        Delivery, MessageCommandsExt, MessageContext, MessageEntityCommandsExt, MessageStats,
        MessageWorldExt, Outbox, Packet, Payload,
    },
    prelude::*,
};
use bevy_ecs::{
    entity_disabling::Disabled,
    error::{BevyError, ErrorContext, FallbackErrorHandler},
    message::Messages,
    prelude::*,
    system::{EntityCommands, RunSystemOnce, SystemId, command},
};
use bevy_time::{Fixed, Time, TimePlugin, Virtual};

#[derive(Message, Clone, PartialEq, Debug)]
struct Word(&'static str);

#[derive(Message)]
struct Number(u32);

/// The received messages, in order: the receiver and the word.
#[derive(Resource, Default)]
struct Heard(Vec<(&'static str, &'static str)>);

fn message_app() -> App {
    let mut app = app();
    app.init_resource::<Heard>()
        .insert_resource(FallbackErrorHandler(record));
    app
}

/// Follows words, and logs them under a name.
fn listener(name: &'static str) -> MessageComponent {
    MessageComponent::new().on(move |mut me: MessageContext, word: &Word| {
        say(&mut me, name, word.0);
    })
}

/// Follows words, logs them, and acts on its entity.
fn acting(
    name: &'static str,
    act: impl Fn(EntityCommands) + Send + Sync + 'static,
) -> MessageComponent {
    MessageComponent::new().on(move |mut me: MessageContext, word: &Word| {
        say(&mut me, name, word.0);
        act(me.commands.entity(me.entity.id()));
    })
}

/// Follows words with a one-shot system, which gets the entity and the word.
fn running(system: SystemId<In<(Entity, Word)>>) -> MessageComponent {
    MessageComponent::new().on(move |mut me: MessageContext, word: &Word| {
        let input = (me.entity.id(), word.clone());
        me.commands.queue(command::run_system_with(system, input));
    })
}

fn say(me: &mut MessageContext, name: &'static str, what: &'static str) {
    me.commands
        .queue(move |world: &mut World| world.resource_mut::<Heard>().0.push((name, what)));
}

fn spawn_listeners<const N: usize>(app: &mut App, names: [&'static str; N]) -> [Entity; N] {
    names.map(|name| app.world_mut().spawn(listener(name)).id())
}

fn heard(app: &mut App) -> Vec<(&'static str, &'static str)> {
    core::mem::take(&mut app.world_mut().resource_mut::<Heard>().0)
}

/// Sends a word, runs a frame, and returns the receivers.
fn hear(app: &mut App, to: impl Into<Delivery>) -> Vec<&'static str> {
    app.world_mut().send(to, Word("word")).unwrap();
    frame(app)
}

/// Runs a frame, and returns the receivers of its messages.
fn frame(app: &mut App) -> Vec<&'static str> {
    advance_ms(app, 10);
    heard(app).into_iter().map(|(name, _)| name).collect()
}

/// The numbers of delivered and undeliverable messages.
fn counts(app: &App) -> (u64, u64) {
    let stats = app.world().resource::<MessageStats>();
    (stats.delivered, stats.undeliverable)
}

#[test]
fn a_message_goes_to_one_entity_to_all_followers_or_to_one_in_turn() {
    let mut app = message_app();
    let [a, _, _] = spawn_listeners(&mut app, ["a", "b", "c"]);
    let world = app.world_mut();
    world.send(a, Word("one")).unwrap();
    world.send(Delivery::All, Word("all")).unwrap();
    for _ in 0..4 {
        world.send(Delivery::InTurn, Word("turn")).unwrap();
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
    assert_eq!(counts(&app), (8, 0));
}

#[test]
fn messages_of_bevys_writers_go_to_all_followers() {
    let mut app = message_app();
    app.add_message::<Word>();
    spawn_listeners(&mut app, ["a", "b"]);
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
fn a_replaced_callback_gets_the_messages_that_were_sent_before() {
    let mut app = message_app();
    let stranger = MessageComponent::new().on_packet(1, |mut me: MessageContext, _: &Packet| {
        let friend = MessageComponent::new().on_packet(3, |mut me: MessageContext, _: &Packet| {
            say(&mut me, "me", "three");
        });
        me.commands.entity(me.entity.id()).insert(friend);
    });
    let me = app.world_mut().spawn(stranger).id();
    for id in [3, 1, 3, 1, 3] {
        app.world_mut().send(me, Packet::new(id, [])).unwrap();
    }
    advance_ms(&mut app, 10);
    assert_eq!(heard(&mut app), [("me", "three"), ("me", "three")]);
    assert_eq!(counts(&app), (3, 2));
}

#[test]
fn an_entity_follows_messages_by_type_and_packets_by_id() {
    let mut app = message_app();
    let me = listener("word")
        .on(|mut me: MessageContext, _: &Number| say(&mut me, "number", ""))
        .on_packet(1, |mut me: MessageContext, _: &Packet| {
            say(&mut me, "one", "");
        })
        .on_packet(2, |mut me: MessageContext, packet: &Packet| {
            assert_eq!((packet.id(), packet.payload()), (2, [7].as_slice()));
            say(&mut me, "two", "");
        });
    let names = format!("{me:?}");
    for part in ["Word", "Number", "packet 1", "packet 2"] {
        assert!(names.contains(part), "{names} should name {part}");
    }
    let me = app.world_mut().spawn(me).id();
    let world = app.world_mut();
    world.send(me, Packet::new(2, [7])).unwrap();
    world.send(Delivery::All, Number(1)).unwrap();
    world.send(me, Packet::new(3, [])).unwrap();
    world.send(Delivery::InTurn, Packet::new(1, [])).unwrap();
    world.send(me, Word("word")).unwrap();
    assert_eq!(frame(&mut app), ["two", "number", "one", "word"]);
    assert_eq!(counts(&app), (4, 1));
}

#[test]
fn the_later_of_two_callbacks_for_a_message_is_called() {
    let mut app = message_app();
    let me = listener("earlier").on(|mut me: MessageContext, _: &Word| say(&mut me, "later", ""));
    app.world_mut().spawn(me);
    assert_eq!(hear(&mut app, Delivery::All), ["later"]);
}

#[test]
fn a_clone_calls_the_same_callbacks_on_its_own_entity() {
    let mut app = message_app();
    let whom = MessageComponent::new().on(|me: MessageContext, word: &Word| {
        assert_eq!(me.entity.get::<Tag>().unwrap().0, word.0);
    });
    let [a, b] = ["a", "b"].map(|tag| app.world_mut().spawn((Tag(tag), whom.clone())).id());
    let c = app.world_mut().entity_mut(b).clone_and_spawn();
    for (to, tag) in [(a, "a"), (b, "b"), (c, "b")] {
        app.world_mut().send(to, Word(tag)).unwrap();
    }
    advance_ms(&mut app, 10);
    assert_eq!(counts(&app), (3, 0));
}

#[test]
fn a_component_can_be_replaced_and_removed_from_outside() {
    let mut app = message_app();
    let [me] = spawn_listeners(&mut app, ["old"]);
    assert_eq!(hear(&mut app, me), ["old"]);
    app.world_mut().entity_mut(me).insert(listener("new"));
    assert_eq!(hear(&mut app, Delivery::All), ["new"]);
    app.world_mut().entity_mut(me).remove::<MessageComponent>();
    assert_eq!(hear(&mut app, Delivery::All), [""; 0]);
    assert_eq!(hear(&mut app, me), [""; 0]);
    app.world_mut().entity_mut(me).insert(listener("back"));
    assert_eq!(hear(&mut app, Delivery::InTurn), ["back"]);
    assert_eq!(counts(&app), (3, 2));
}

#[test]
fn turns_stay_fair_when_followers_join_and_leave() {
    let mut app = message_app();
    let [a, b, _] = spawn_listeners(&mut app, ["a", "b", "c"]);
    let turn = Delivery::InTurn;
    assert_eq!(hear(&mut app, turn), ["a"]);
    app.world_mut().despawn(b);
    assert_eq!(hear(&mut app, turn), ["c"]);
    spawn_listeners(&mut app, ["d"]);
    assert_eq!(hear(&mut app, turn), ["d"]);
    assert_eq!(hear(&mut app, turn), ["a"]);
    app.world_mut().entity_mut(a).insert(listener("a again"));
    assert_eq!(hear(&mut app, turn), ["c"]);
    assert_eq!(hear(&mut app, turn), ["d"]);
    assert_eq!(hear(&mut app, turn), ["a again"], "in its old place");
    app.world_mut().entity_mut(a).remove::<MessageComponent>();
    app.world_mut().entity_mut(a).insert(listener("a behind"));
    for _ in 0..3 {
        app.world_mut().send(turn, Word("word")).unwrap();
    }
    assert_eq!(frame(&mut app), ["c", "d", "a behind"]);
}

#[test]
fn followers_that_replace_their_callbacks_in_turn_share_evenly() {
    fn worker(name: &'static str) -> MessageComponent {
        acting(name, move |mut entity| _ = entity.insert(worker(name)))
    }

    for frames in [1, 3, 12] {
        let mut app = message_app();
        for name in ["a", "b", "c"] {
            app.world_mut().spawn(worker(name));
        }
        let mut heard = Vec::new();
        for _ in 0..frames {
            for _ in 0..12 / frames {
                app.world_mut().send(Delivery::InTurn, Word("job")).unwrap();
            }
            heard.extend(frame(&mut app));
        }
        assert_eq!(heard, ["a", "b", "c"].repeat(4), "{frames} frames");
        assert_eq!(counts(&app), (12, 0));
    }
}

#[test]
fn each_message_has_its_own_turns() {
    let mut app = message_app();
    for name in ["a", "b"] {
        let both = listener(name).on(move |mut me: MessageContext, _: &Number| {
            say(&mut me, name, "");
        });
        app.world_mut().spawn(both);
    }
    for _ in 0..2 {
        app.world_mut()
            .send(Delivery::InTurn, Word("word"))
            .unwrap();
        app.world_mut().send(Delivery::InTurn, Number(1)).unwrap();
    }
    assert_eq!(frame(&mut app), ["a", "a", "b", "b"]);
}

#[test]
fn despawned_disabled_and_other_entities_are_skipped_and_counted() {
    let mut app = message_app();
    app.add_message::<Word>();
    let [gone, disabled, deaf] = spawn_listeners(&mut app, ["gone", "disabled", "deaf"]);
    app.world_mut().despawn(gone);
    app.world_mut().entity_mut(disabled).insert(Disabled);
    app.world_mut()
        .entity_mut(deaf)
        .insert(MessageComponent::new());
    let bare = app.world_mut().spawn_empty().id();
    let all = [gone, disabled, deaf, bare].map(Delivery::To);
    for to in all.into_iter().chain([Delivery::All, Delivery::InTurn]) {
        app.world_mut().send(to, Word("nobody")).unwrap();
    }
    app.world_mut().write_message(Word("others may read it"));
    assert_eq!(frame(&mut app), [""; 0]);
    assert_eq!(counts(&app), (0, 6));

    spawn_listeners(&mut app, ["b"]);
    for _ in 0..2 {
        assert_eq!(hear(&mut app, Delivery::InTurn), ["b"]);
    }
    app.world_mut().entity_mut(disabled).remove::<Disabled>();
    assert_eq!(hear(&mut app, Delivery::All), ["disabled", "b"]);
    assert_eq!(counts(&app), (4, 6));
    assert_eq!(errors(), [""; 0]);
}

#[test]
fn a_follower_that_is_removed_during_a_broadcast_does_not_get_it() {
    let ways: [fn(EntityCommands); 5] = [
        |mut other| _ = other.remove::<MessageComponent>(),
        |mut other| other.despawn(),
        |mut other| _ = other.insert(Disabled),
        |mut other| _ = other.insert(MessageComponent::new()),
        |mut other| _ = other.remove::<MessageComponent>().insert(listener("new")),
    ];
    for (nth, way) in ways.into_iter().enumerate() {
        for writer in [false, true] {
            let frames = frames_with_a_victim(way, writer);
            let expected = [&["a", "itself", "z"][..], &[]];
            assert_eq!(frames, expected, "way {nth}, by a writer: {writer}");
        }
    }
}

#[test]
fn a_follower_that_is_replaced_during_a_broadcast_gets_it_exactly_once() {
    let replace: fn(EntityCommands) = |mut other| _ = other.insert(listener("new"));
    for writer in [false, true] {
        let frames = frames_with_a_victim(replace, writer);
        let expected = [&["a", "itself", "new", "z"][..], &[]];
        assert_eq!(frames, expected, "by a writer: {writer}");
    }
}

/// Delivers a word to all followers. The first acts on another, and the second on itself. Returns
/// the receivers of two frames.
fn frames_with_a_victim(act: fn(EntityCommands), writer: bool) -> [Vec<&'static str>; 2] {
    let mut app = message_app();
    app.add_message::<Word>();
    let world = app.world_mut();
    let victim = world.spawn_empty().id();
    let on_victim = acting("a", move |mut me| act(me.commands().entity(victim)));
    world.spawn(on_victim);
    world.spawn(acting("itself", act));
    world.entity_mut(victim).insert(listener("victim"));
    world.spawn(listener("z"));
    if writer {
        world.write_message(Word("word"));
    } else {
        world.send(Delivery::All, Word("word")).unwrap();
    }
    [(); 2].map(|()| frame(&mut app))
}

#[test]
fn messages_to_all_reach_followers_that_replace_their_callbacks() {
    fn worker(name: &'static str) -> MessageComponent {
        acting(name, move |mut entity| _ = entity.insert(worker(name)))
    }

    for writer in [false, true] {
        let mut app = message_app();
        app.add_message::<Word>();
        for name in ["a", "b"] {
            app.world_mut().spawn(worker(name));
        }
        frame(&mut app);
        for word in ["1", "2", "3", "4"] {
            if writer {
                app.world_mut().write_message(Word(word));
            } else {
                app.world_mut().send(Delivery::All, Word(word)).unwrap();
            }
        }
        advance_ms(&mut app, 10);
        let heard = heard(&mut app);
        for name in ["a", "b"] {
            let words = heard.iter().filter(|(other, _)| *other == name);
            let words: Vec<_> = words.map(|(_, word)| *word).collect();
            assert_eq!(words, ["1", "2", "3", "4"], "{name}, by a writer: {writer}");
        }
        assert_eq!(counts(&app), (8, 0));
    }
}

#[test]
fn a_new_follower_gets_the_messages_to_all_that_are_delivered_after_it_joined() {
    let mut app = message_app();
    let spawner = acting("spawner", |mut entity| {
        for name in ["a", "b"] {
            _ = entity.commands().spawn(
                MessageComponent::new().on(move |mut me, _: &Number| say(&mut me, name, "number")),
            );
        }
    });
    let spawner = app.world_mut().spawn(spawner).id();
    frame(&mut app);
    app.world_mut().send(spawner, Word("go")).unwrap();
    app.world_mut().send(Delivery::All, Number(1)).unwrap();
    app.world_mut()
        .send(Delivery::All, Packet::new(1, []))
        .unwrap();
    assert_eq!(frame(&mut app), ["spawner", "a", "b"]);
    assert_eq!(counts(&app), (3, 1), "nobody follows the packet");
}

#[test]
fn a_component_that_is_replaced_in_every_frame_gets_its_messages() {
    let mut app = message_app();
    let replaces = UpdateComponent::new(|mut me| {
        let id = me.entity.id();
        me.commands.entity(id).insert(listener("me"));
    });
    let me = app.world_mut().spawn((replaces, listener("old"))).id();
    frame(&mut app);
    for _ in 0..3 {
        for to in [me.into(), Delivery::All, Delivery::InTurn] {
            assert_eq!(hear(&mut app, to), ["me"], "{to:?}");
        }
    }
    assert_eq!(counts(&app), (9, 0));
}

#[test]
fn a_follower_that_joins_during_a_broadcast_starts_with_the_next_message() {
    let mut app = message_app();
    let come = acting("a", |mut me| _ = me.commands().spawn(listener("new")));
    app.world_mut().spawn(come);
    spawn_listeners(&mut app, ["b"]);
    assert_eq!(hear(&mut app, Delivery::All), ["a", "b"]);
    app.world_mut().send(Delivery::All, Word("first")).unwrap();
    assert_eq!(
        hear(&mut app, Delivery::All),
        ["a", "b", "new", "a", "b", "new", "new"]
    );
}

#[test]
fn an_error_is_reported_and_does_not_stop_other_callbacks() {
    let mut app = message_app();
    let one_shot: SystemId<_> = app
        .world_mut()
        .register_system(|_: In<(Entity, Word)>| -> Result { Err("system".into()) });
    let gone = app.world_mut().register_system(|_: In<(Entity, Word)>| {});
    app.world_mut().unregister_system(gone).unwrap();
    let closure = |_: MessageContext, word: &Word| -> Result { Err(word.0.into()) };
    app.world_mut().spawn(MessageComponent::new().on(closure));
    app.world_mut().spawn(running(one_shot));
    app.world_mut().spawn(running(gone));
    spawn_listeners(&mut app, ["last"]);
    app.world_mut().send(Delivery::All, Word("one")).unwrap();
    app.world_mut().send(Delivery::All, Word("two")).unwrap();
    assert_eq!(frame(&mut app), ["last", "last"]);
    let errors = errors();
    assert_eq!(errors.len(), 6, "{errors:?}");
    for (error, part) in errors
        .iter()
        .zip(["one", "system", "", "two", "system", ""])
    {
        assert!(error.contains(part), "{error:?} should name {part:?}");
    }
    assert_eq!(counts(&app), (8, 0));
}

#[test]
fn after_a_caught_panic_the_rest_is_delivered_in_the_next_frame() {
    for writer in [false, true] {
        let mut app = message_app();
        app.add_message::<Word>();
        spawn_listeners(&mut app, ["a"]);
        let panics = MessageComponent::new().on(|_: MessageContext, word: &Word| {
            assert_ne!(word.0, "boom", "on purpose");
        });
        app.world_mut().spawn(panics);
        spawn_listeners(&mut app, ["z"]);
        for word in ["boom", "after"] {
            if writer {
                app.world_mut().write_message(Word(word));
            } else {
                app.world_mut().send(Delivery::All, Word(word)).unwrap();
            }
        }
        // Bevy passes a panic to its error handler, and this handler ignores it.
        assert_eq!(frame(&mut app), ["a"]);
        assert_eq!(errors().len(), 1);
        advance_ms(&mut app, 10);
        let rest = [("z", "boom"), ("a", "after"), ("z", "after")];
        assert_eq!(heard(&mut app), rest, "by a writer: {writer}");
        assert_eq!(errors(), [""; 0]);
    }
}

#[test]
fn a_panic_in_the_only_message_leaves_the_other_followers_for_the_next_frame() {
    let mut app = message_app();
    let panics = MessageComponent::new().on(|_: MessageContext, _: &Word| panic!("on purpose"));
    app.world_mut().spawn(panics);
    spawn_listeners(&mut app, ["z"]);
    app.world_mut().send(Delivery::All, Word("boom")).unwrap();
    assert_eq!(frame(&mut app), [""; 0]);
    assert_eq!(errors().len(), 1);
    assert_eq!(frame(&mut app), ["z"]);
    assert_eq!(errors(), [""; 0]);
}

#[test]
fn messages_to_one_entity_keep_their_order_after_a_panic() {
    let mut app = message_app();
    let [a] = spawn_listeners(&mut app, ["old"]);
    let panics = MessageComponent::new().on(|_: MessageContext, _: &Word| panic!("on purpose"));
    let panics = app.world_mut().spawn(panics).id();
    let change = acting("change", move |mut me| {
        me.commands().entity(a).insert(listener("a"));
    });
    let change = app.world_mut().spawn(change).id();
    for (to, word) in [(change, ""), (a, "1"), (panics, "!"), (a, "2")] {
        app.world_mut().send(to, Word(word)).unwrap();
    }
    advance_ms(&mut app, 10);
    assert_eq!(heard(&mut app), [("change", ""), ("a", "1")]);
    assert_eq!(errors().len(), 1);
    advance_ms(&mut app, 10);
    assert_eq!(heard(&mut app), [("a", "2")]);
}

#[test]
fn messages_of_an_outbox_to_one_entity_keep_their_order_after_a_panic() {
    let mut app = message_app();
    let [a] = spawn_listeners(&mut app, ["old"]);
    let panics = MessageComponent::new().on(|_: MessageContext, _: &Word| panic!("on purpose"));
    let panics = app.world_mut().spawn(panics).id();
    let change = acting("change", move |mut me| {
        me.commands().entity(a).insert(listener("a"));
    });
    let change = app.world_mut().spawn(change).id();
    let send = move |mut outbox: Outbox| {
        for (to, word) in [(change, ""), (a, "1"), (panics, "!"), (a, "2")] {
            outbox.send(to, Word(word)).unwrap();
        }
    };
    app.world_mut().run_system_once(send).unwrap();
    advance_ms(&mut app, 10);
    assert_eq!(heard(&mut app), [("change", ""), ("a", "1")]);
    assert_eq!(errors().len(), 1);
    advance_ms(&mut app, 10);
    assert_eq!(heard(&mut app), [("a", "2")]);
}

#[test]
fn one_shot_systems_run_in_order_with_callbacks() {
    fn system(In((entity, word)): In<(Entity, Word)>, tags: Query<&Tag>, mut commands: Commands) {
        let (tag, word) = (tags.get(entity).unwrap().0, word.0);
        commands.queue(move |world: &mut World| {
            world.resource_mut::<Heard>().0.push((tag, word));
        });
    }

    let mut app = message_app();
    app.add_message::<Word>();
    let system = app.world_mut().register_system(system);
    let a = (Tag("a"), running(system));
    let a = app.world_mut().spawn(a).id();
    spawn_listeners(&mut app, ["b"]);
    let c = (Tag("c"), running(system));
    app.world_mut().spawn(c);

    app.world_mut().send(Delivery::All, Word("all")).unwrap();
    app.world_mut().send(a, Word("one")).unwrap();
    app.world_mut()
        .send(Delivery::InTurn, Word("turn"))
        .unwrap();
    app.world_mut().write_message(Word("written"));
    advance_ms(&mut app, 10);
    let expected = [
        "aall", "ball", "call", "aone", "aturn", "awritten", "bwritten", "cwritten",
    ];
    let heard = heard(&mut app).into_iter();
    let heard: Vec<_> = heard.map(|(who, what)| format!("{who}{what}")).collect();
    assert_eq!(heard, expected);
}

#[test]
fn written_messages_come_type_by_type_after_sent_ones() {
    let mut app = message_app();
    app.add_message::<Number>().add_message::<Word>();
    let me = listener("word").on(|mut me: MessageContext, number: &Number| {
        assert!(number.0 < 2);
        say(&mut me, "number", "");
    });
    let me = app.world_mut().spawn(me).id();
    let world = app.world_mut();
    world.write_message(Number(0));
    world.write_message(Word("written"));
    world.write_message(Number(1));
    world.send(me, Word("sent")).unwrap();
    assert_eq!(frame(&mut app), ["word", "word", "number", "number"]);
    assert_eq!(frame(&mut app), [""; 0]);
}

#[test]
fn a_message_written_in_update_is_delivered_once_in_the_next_frame() {
    let mut app = message_app();
    app.add_message::<Word>()
        .add_systems(Update, |mut words: MessageWriter<Word>| {
            words.write(Word("word"));
        });
    spawn_listeners(&mut app, ["a"]);
    assert_eq!(frame(&mut app), [""; 0]);
    for _ in 0..5 {
        assert_eq!(frame(&mut app), ["a"]);
    }
    spawn_listeners(&mut app, ["b"]);
    assert_eq!(frame(&mut app), ["a", "b"]);
}

#[test]
fn a_callback_that_panics_has_had_its_turn() {
    let mut app = message_app();
    let panicking = MessageComponent::new()
        .on(|_, _: &Word| std::panic::resume_unwind(Box::new("the callback panics")));
    app.world_mut().spawn(panicking);
    spawn_listeners(&mut app, ["next"]);
    assert!(hear(&mut app, Delivery::InTurn).is_empty());
    assert_eq!(hear(&mut app, Delivery::InTurn), ["next"]);
}

#[test]
fn a_message_written_after_the_only_follower_left_in_its_callback_is_delivered() {
    let mut app = message_app();
    let leaving = acting("leaving", |mut me| me.despawn());
    app.world_mut().spawn(leaving);
    app.add_message::<Word>();
    app.world_mut().write_message(Word("written"));
    assert_eq!(frame(&mut app), ["leaving"]);
    assert_eq!(counts(&app), (1, 0));

    spawn_listeners(&mut app, ["new"]);
    app.world_mut().write_message(Word("written"));
    assert_eq!(frame(&mut app), ["new"]);
    assert_eq!(counts(&app), (2, 0));
}

#[test]
fn the_first_follower_gets_messages_written_since_the_start_of_its_frame() {
    let mut app = message_app();
    // Bevy drops old messages after a fixed step.
    app.insert_resource(Time::<Fixed>::from_duration(ms(10)))
        .add_message::<Word>();
    app.world_mut().write_message(Word("long ago"));
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 10);
    app.world_mut().write_message(Word("before"));
    spawn_listeners(&mut app, ["a"]);
    app.world_mut().write_message(Word("after"));
    advance_ms(&mut app, 10);
    assert_eq!(heard(&mut app), [("a", "before"), ("a", "after")]);
}

#[test]
fn a_message_type_can_be_sent_before_it_is_added() {
    let mut app = message_app();
    spawn_listeners(&mut app, ["a"]);
    assert_eq!(hear(&mut app, Delivery::All), ["a"]);
    app.add_message::<Word>();
    for _ in 0..3 {
        app.world_mut().write_message(Word("written"));
        assert_eq!(frame(&mut app), ["a"]);
    }
    // A new collection counts from zero again.
    app.world_mut().remove_resource::<Messages<Word>>();
    assert_eq!(frame(&mut app), [""; 0]);
    app.world_mut().init_resource::<Messages<Word>>();
    app.world_mut().write_message(Word("written"));
    assert_eq!(frame(&mut app), ["a"]);
}

#[test]
fn timer_firings_can_be_followed_like_any_message() {
    let mut app = message_app();
    let me = MessageComponent::new().on(|mut me: MessageContext, fired: &TimerFired| {
        assert_eq!(fired.deadline(), ms(10));
        say(&mut me, "fired", "");
    });
    app.world_mut().spawn(me);
    advance_ms(&mut app, 0);
    app.world_mut().spawn(Timer::after(ms(10)));
    assert_eq!(frame(&mut app), ["fired"], "in the frame in which it fires");
    assert_eq!(frame(&mut app), [""; 0]);
}

#[test]
fn messages_are_delivered_while_the_game_is_paused() {
    let mut app = message_app();
    app.add_message::<Word>();
    spawn_listeners(&mut app, ["a"]);
    app.world_mut().resource_mut::<Time<Virtual>>().pause();
    let sender = app.world_mut().message_sender();
    for _ in 0..2 {
        app.world_mut().write_message(Word("written"));
        sender.send(Delivery::All, Word("from a thread")).unwrap();
        assert_eq!(hear(&mut app, Delivery::All), ["a"; 3]);
    }
}

#[test]
fn messages_sent_or_written_during_the_delivery_wait_for_the_next_frame() {
    let mut app = message_app();
    app.add_message::<Word>().add_message::<Number>();
    // Numbers are followed later than words, so they are delivered later.
    let echo = listener("echo").on(|mut me: MessageContext, _: &Number| {
        say(&mut me, "number", "");
        me.commands.write_message(Number(1));
    });
    app.world_mut().spawn(echo);
    let loops = acting("a", |mut me| {
        let id = me.id();
        me.commands().send(id, Word("again"));
        me.commands().write_message(Number(1));
    });
    let a = app.world_mut().spawn(loops).id();
    assert_eq!(hear(&mut app, a), ["a"]);
    assert_eq!(frame(&mut app), ["a", "number"]);
    assert_eq!(frame(&mut app), ["a", "number", "number"]);
    app.world_mut().despawn(a);
    app.world_mut().write_message(Word("written"));
    let from_the_frame_before = ["number"; 3];
    assert_eq!(frame(&mut app)[1..], from_the_frame_before);
}

/// Sends the owner of a timer a message.
fn send(message: impl Payload + Clone) -> TimerAction {
    TimerAction::call(move |world, fired| world.send(fired.owner(), message.clone()))
}

#[test]
fn a_message_from_a_timer_is_delivered_in_the_frame_of_its_firing() {
    let mut app = message_app();
    let [a, _] = spawn_listeners(&mut app, ["a", "b"]);
    advance_ms(&mut app, 0);
    let own = (Timer::after(ms(9)), send(Word("own")));
    app.world_mut().entity_mut(a).insert(own);
    let packet = send(Packet::new(1, []));
    let late = send(Word("tick"));
    app.world_mut()
        .spawn((OwnedBy(a), Timer::after(ms(7)), packet));
    let every = Timer::every(ms(4));
    app.world_mut().spawn((OwnedBy(a), every, late));
    app.world_mut().send(Delivery::All, Word("first")).unwrap();
    advance_ms(&mut app, 10);
    let expected = [
        ("a", "first"),
        ("b", "first"),
        ("a", "tick"),
        ("a", "tick"),
        ("a", "own"),
    ];
    assert_eq!(
        heard(&mut app),
        expected,
        "in the order of sending and firing"
    );
    assert_eq!(counts(&app), (5, 1), "the packet is not followed");
}

#[test]
fn messages_from_systems_come_in_the_order_of_the_systems() {
    let mut app = message_app();
    let [a] = spawn_listeners(&mut app, ["a"]);
    let sends = |word| {
        move |mut outbox: Outbox, mut commands: Commands| {
            outbox.send(a, Word(word)).unwrap();
            commands.send(Delivery::All, Word("by commands"));
            outbox.send(Delivery::InTurn, Word(word)).unwrap();
        }
    };
    app.add_systems(PostUpdate, sends("four"))
        .add_systems(Update, (sends("two"), sends("three")).chain())
        .add_systems(PreUpdate, sends("one").before(DueSystems::Messages))
        .add_systems(PreUpdate, sends("five").after(DueSystems::Messages));
    let words = |app: &mut App| {
        advance_ms(app, 10);
        let heard = heard(app).into_iter().map(|(_, word)| word);
        heard
            .filter(|&word| word != "by commands")
            .collect::<Vec<_>>()
    };
    assert_eq!(words(&mut app), ["one"; 2]);
    let expected = ["five", "two", "three", "four", "one"];
    assert_eq!(words(&mut app), expected.map(|word| [word; 2]).concat());
}

#[test]
fn observers_have_an_outbox() {
    let mut app = message_app();
    let [a] = spawn_listeners(&mut app, ["a"]);
    app.add_observer(move |_: On<TimerFired>, mut outbox: Outbox| {
        outbox.send(a, Word("fired")).unwrap();
    });
    app.world_mut().spawn(Timer::after(ms(0)));
    advance_ms(&mut app, 10);
    assert_eq!(heard(&mut app), [("a", "fired")], "in the same frame");
}

const BY_COMMANDS: Word = Word("by commands");
const BY_OUTBOX: Word = Word("by the outbox");

#[test]
fn in_a_system_commands_and_outbox_send_in_the_order_of_the_parameters() {
    let mut app = message_app();
    let [a] = spawn_listeners(&mut app, ["a"]);
    let commands_first = move |mut commands: Commands, mut outbox: Outbox| {
        outbox.send(a, BY_OUTBOX).unwrap();
        commands.send(a, BY_COMMANDS);
    };
    app.world_mut().run_system_once(commands_first).unwrap();
    advance_ms(&mut app, 10);
    assert_eq!(heard(&mut app), [("a", BY_COMMANDS.0), ("a", BY_OUTBOX.0)]);

    let outbox_first = move |mut outbox: Outbox, mut commands: Commands| {
        commands.send(a, BY_COMMANDS);
        outbox.send(a, BY_OUTBOX).unwrap();
    };
    app.world_mut().run_system_once(outbox_first).unwrap();
    advance_ms(&mut app, 10);
    assert_eq!(heard(&mut app), [("a", BY_OUTBOX.0), ("a", BY_COMMANDS.0)]);
}

#[test]
fn in_an_observer_commands_and_outbox_send_in_the_order_of_the_parameters() {
    #[derive(Event)]
    struct CommandsFirst;
    #[derive(Event)]
    struct OutboxFirst;

    let mut app = message_app();
    let [a] = spawn_listeners(&mut app, ["a"]);
    app.add_observer(
        move |_: On<CommandsFirst>, mut commands: Commands, mut outbox: Outbox| {
            outbox.send(a, BY_OUTBOX).unwrap();
            commands.send(a, BY_COMMANDS);
        },
    );
    app.add_observer(
        move |_: On<OutboxFirst>, mut outbox: Outbox, mut commands: Commands| {
            commands.send(a, BY_COMMANDS);
            outbox.send(a, BY_OUTBOX).unwrap();
        },
    );
    app.world_mut().trigger(CommandsFirst);
    advance_ms(&mut app, 10);
    assert_eq!(heard(&mut app), [("a", BY_COMMANDS.0), ("a", BY_OUTBOX.0)]);
    app.world_mut().trigger(OutboxFirst);
    advance_ms(&mut app, 10);
    assert_eq!(heard(&mut app), [("a", BY_OUTBOX.0), ("a", BY_COMMANDS.0)]);
}

#[test]
fn a_message_is_shared_and_dropped_once() {
    /// A message that can't be cloned.
    #[derive(Message)]
    struct Precious(Arc<AtomicU32>);

    impl Drop for Precious {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[derive(Message)]
    struct Counted(Arc<AtomicU32>);

    impl Clone for Counted {
        fn clone(&self) -> Self {
            self.0.fetch_add(1, Ordering::Relaxed);
            Self(self.0.clone())
        }
    }

    let mut app = message_app();
    let me = MessageComponent::new()
        .on(|_: MessageContext, precious: &Precious| {
            assert_eq!(precious.0.load(Ordering::Relaxed), 0, "not yet dropped");
        })
        .on(|_: MessageContext, _: &Counted| {});
    let [a, ..] = [(); 5].map(|()| app.world_mut().spawn(me.clone()).id());
    let gone = app.world_mut().spawn_empty().id();
    app.world_mut().despawn(gone);
    for to in [
        Delivery::To(a),
        Delivery::All,
        Delivery::InTurn,
        Delivery::To(gone),
    ] {
        let (drops, clones) = (Arc::default(), Arc::default());
        app.world_mut()
            .send(to, Precious(Arc::clone(&drops)))
            .unwrap();
        app.world_mut()
            .send(to, Counted(Arc::clone(&clones)))
            .unwrap();
        advance_ms(&mut app, 10);
        assert_eq!(drops.load(Ordering::Relaxed), 1, "dropped once: {to:?}");
        assert_eq!(clones.load(Ordering::Relaxed), 0, "never copied: {to:?}");
        assert_eq!(Arc::strong_count(&clones), 1, "and not kept: {to:?}");
    }
    app.add_message::<Counted>();
    let clones = Arc::default();
    app.world_mut().write_message(Counted(Arc::clone(&clones)));
    advance_ms(&mut app, 10);
    assert!(
        clones.load(Ordering::Relaxed) <= 5,
        "never copied, or once per callback"
    );
}

#[test]
fn earlier_components_take_part_once_the_plugin_is_added() {
    let mut app = App::new();
    app.init_resource::<Heard>().add_plugins(TimePlugin);
    app.world_mut().spawn(listener("a"));
    let [b] = spawn_listeners(&mut app, ["b"]);
    app.world_mut().entity_mut(b).insert(listener("b again"));
    app.world_mut().send(Delivery::All, Word("lost")).unwrap();
    assert!(app.world_mut().close_inbox().is_empty());
    app.update();
    app.add_plugins(DuePlugin::default());
    let mut by_name = hear(&mut app, Delivery::All);
    by_name.sort_unstable();
    assert_eq!(by_name, ["a", "b again"]);
}

#[test]
fn an_outbox_reaches_its_entities_in_any_order() {
    let log = Arc::new(Mutex::new(String::new()));
    // Without commands, so that one callback runs straight after another.
    let listener = |name: char| {
        let log = log.clone();
        MessageComponent::new()
            .on(move |_: MessageContext, _: &Word| log.lock().unwrap().push(name))
    };
    let mut app = message_app();
    let mut entities = ['a', 'b', 'c', 'd', 'e'].map(|it| app.world_mut().spawn(listener(it)).id());
    let send = |app: &mut App, entities: [Entity; 5], order: &[usize]| {
        let to: Vec<Entity> = order.iter().map(|&nth| entities[nth]).collect();
        let send = move |mut outbox: Outbox| {
            for &to in &to {
                outbox.send(to, Word("x")).unwrap();
            }
        };
        app.world_mut().run_system_once(send).unwrap();
        advance_ms(app, 10);
        core::mem::take(&mut *log.lock().unwrap())
    };
    assert_eq!(send(&mut app, entities, &[0, 1, 2, 3, 4]), "abcde");
    assert_eq!(
        send(&mut app, entities, &[4, 3, 3, 4, 0, 1, 1, 2]),
        "eddeabbc"
    );
    // The place of the second stays free.
    app.world_mut().despawn(entities[1]);
    assert_eq!(send(&mut app, entities, &[0, 1, 2, 3, 1, 4]), "acde");
    // The first stays in its place.
    app.world_mut()
        .entity_mut(entities[0])
        .insert(listener('A'));
    assert_eq!(send(&mut app, entities, &[0, 2, 3, 4, 0, 2]), "AcdeAc");
    entities[1] = app.world_mut().spawn(listener('B')).id();
    app.world_mut().despawn(entities[2]);
    assert_eq!(send(&mut app, entities, &[3, 4, 0, 1, 2, 3]), "deABd");
    assert_eq!(counts(&app), (28, 3));
}

#[test]
fn commands_are_applied_before_the_next_callback() {
    #[derive(Component, Default)]
    struct Count(u32);

    let mut app = message_app();
    let count = MessageComponent::new().on(|mut me: MessageContext, number: &Number| {
        if let Some(mut count) = me.entity.get_mut::<Count>() {
            assert_eq!(count.0, number.0);
            count.0 += 1;
        } else {
            me.commands.entity(me.entity.id()).insert(Count(1));
        }
    });
    let me = app.world_mut().spawn(count).id();
    for number in 0..10 {
        app.world_mut().send(me, Number(number)).unwrap();
    }
    advance_ms(&mut app, 10);
    assert_eq!(app.world().get::<Count>(me).unwrap().0, 10);
}

#[test]
fn an_outbox_keeps_the_order_of_its_messages() {
    fn note(In((_, word)): In<(Entity, Word)>, mut heard: ResMut<Heard>) {
        heard.0.push(("system", word.0));
    }

    let mut app = message_app();
    let note = app.world_mut().register_system(note);
    let by_system = app.world_mut().spawn(running(note)).id();
    let numbers = listener("a").on(|mut me: MessageContext, _: &Number| say(&mut me, "a", "#"));
    let a = app.world_mut().spawn(numbers).id();
    let changing = acting("old", |mut me| _ = me.insert(listener("new")));
    let changing = app.world_mut().spawn(changing).id();
    let gone = app.world_mut().spawn_empty().id();
    app.world_mut().despawn(gone);
    let panics = MessageComponent::new().on(|_: MessageContext, _: &Word| panic!("on purpose"));
    let panics = app.world_mut().spawn(panics).id();
    let send = move |mut outbox: Outbox| {
        for (to, word) in [(a, "1"), (by_system, "2"), (gone, "?"), (changing, "3")] {
            outbox.send(to, Word(word)).unwrap();
        }
        outbox.send(changing, Word("later")).unwrap();
        outbox.send(a, Number(4)).unwrap();
        outbox.send(a, Word("5")).unwrap();
        outbox.send(panics, Word("!")).unwrap();
        outbox.send(a, Word("6")).unwrap();
    };
    app.world_mut().run_system_once(send).unwrap();
    advance_ms(&mut app, 10);
    let expected = [
        ("a", "1"),
        ("system", "2"),
        ("old", "3"),
        ("new", "later"),
        ("a", "#"),
        ("a", "5"),
    ];
    assert_eq!(heard(&mut app), expected);
    assert_eq!(errors().len(), 1);
    advance_ms(&mut app, 10);
    assert_eq!(heard(&mut app), [("a", "6")]);
    assert_eq!(counts(&app), (7, 1));

    // Messages of a batch that are left at the end are handed back one by one.
    let echo = app.world_mut().register_system(
        move |In((_, word)): In<(Entity, Word)>, mut outbox: Outbox| {
            outbox.send(a, word).unwrap();
            outbox.send(a, Word("echo")).unwrap();
        },
    );
    let echo = app.world_mut().spawn(running(echo)).id();
    app.world_mut().send(echo, Word("last")).unwrap();
    let left = app.world_mut().close_inbox();
    let left: Vec<_> = left.iter().map(|letter| letter.message()).collect();
    assert_eq!(left, [Some(&Word("last")), Some(&Word("echo"))]);
}

#[test]
fn a_request_reaches_a_follower_that_is_spawned_before_it_is_delivered() {
    for to in [Delivery::InTurn, Delivery::All] {
        let mut app = message_app();
        let spawner = acting("spawner", |mut entity| {
            let replies = MessageComponent::new().on(|mut me, _: &Number| {
                say(&mut me, "newcomer", "asked");
                me.reply(Word("reply")).unwrap();
            });
            _ = entity.commands().spawn(replies);
        });
        let spawner = app.world_mut().spawn(spawner).id();
        let asker = app.world_mut().spawn(listener("asker")).id();
        frame(&mut app);
        app.world_mut().send(spawner, Word("go")).unwrap();
        let mut commands = app.world_mut().commands();
        let patience = Timer::after(1.0);
        commands.entity(asker).ask(to, Number(1), patience);
        app.world_mut().flush();
        assert_eq!(frame(&mut app), ["spawner", "newcomer"], "{to:?}");
        assert_eq!(frame(&mut app), ["asker"], "{to:?}");
    }
}

#[test]
fn a_callback_sees_the_time_of_its_entity() {
    fn telling(name: &'static str) -> MessageComponent {
        MessageComponent::new().on(move |mut me: MessageContext, _: &Word| {
            let millis = me.elapsed().as_millis();
            me.commands.queue(move |world: &mut World| {
                world.resource_mut::<Times>().0.push((name, millis));
            });
        })
    }

    #[derive(Resource, Default)]
    struct Times(Vec<(&'static str, u128)>);

    for writer in [false, true] {
        let mut app = message_app();
        app.add_message::<Word>().init_resource::<Times>();
        let world = app.world_mut();
        let half = world.spawn(Clock::new().with_speed(0.5)).id();
        world.spawn(telling("game"));
        world.spawn((telling("on a clock"), OnClock::new(half)));
        let clock = Clock::new().with_speed(3.0);
        let owner = world.spawn((telling("own clock"), clock)).id();
        world.spawn((telling("clock of the owner"), OwnedBy(owner)));
        world.spawn((telling("fixed"), OnClock::new(ClockId::Fixed)));
        for (millis, paused) in [(100, false), (100, true), (0, false)] {
            if paused {
                change_clock(&mut app, half, |clock| clock.pause());
            }
            if writer {
                app.world_mut().write_message(Word("word"));
            } else {
                app.world_mut().send(Delivery::All, Word("word")).unwrap();
            }
            advance_ms(&mut app, millis);
        }
        let times = core::mem::take(&mut app.world_mut().resource_mut::<Times>().0);
        let times: Vec<_> = times.into_iter().collect();
        let names = [
            ("game", [100, 200, 200]),
            ("on a clock", [50, 50, 50]),
            ("own clock", [300, 600, 600]),
            ("clock of the owner", [300, 600, 600]),
            ("fixed", [0, 0, 0]),
        ];
        let expected: Vec<_> = (0..3)
            .flat_map(|frame| names.map(|(name, millis)| (name, millis[frame])))
            .collect();
        assert_eq!(times, expected, "by a writer: {writer}");
    }
}

#[test]
fn a_callback_whose_clock_is_gone_sees_the_game_time() {
    let mut app = message_app();
    let clock = app.world_mut().spawn(Clock::new().with_speed(2.0)).id();
    let telling = MessageComponent::new().on(move |mut me: MessageContext, _: &Word| {
        let is_game_time = me.elapsed() == ms(20);
        say(&mut me, "me", if is_game_time { "game time" } else { "" });
    });
    let me = app.world_mut().spawn((telling, OnClock::new(clock))).id();
    advance_ms(&mut app, 10);
    app.world_mut().despawn(clock);
    app.world_mut().send(me, Word("word")).unwrap();
    advance_ms(&mut app, 10);
    assert_eq!(heard(&mut app), [("me", "game time")]);
}

#[test]
fn a_callback_can_run_a_system() {
    thread_local!(static REPORTS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) });

    fn report(error: BevyError, context: ErrorContext) {
        REPORTS.with_borrow_mut(|reports| reports.push(format!("{context} {error}")));
    }

    fn note(
        In((me, word)): In<(Entity, Word)>,
        tags: Query<&Tag>,
        mut heard: ResMut<Heard>,
    ) -> Result {
        if word.0 == "error" {
            return Err("as expected".into());
        }
        heard.0.push((tags.get(me)?.0, word.0));
        Ok(())
    }

    let mut app = message_app();
    app.insert_resource(FallbackErrorHandler(report));
    let ears = MessageComponent::new().on(|mut me, word: &Word| {
        me.run(note, (me.entity.id(), word.clone()));
    });
    let a = app.world_mut().spawn((Tag("a"), ears.clone())).id();
    app.world_mut().spawn((Tag("b"), ears));
    for word in ["one", "error", "two"] {
        app.world_mut().send(Delivery::All, Word(word)).unwrap();
    }
    advance_ms(&mut app, 10);
    let expected = [("a", "one"), ("b", "one"), ("a", "two"), ("b", "two")];
    assert_eq!(heard(&mut app), expected);
    let reports = REPORTS.take();
    assert_eq!(reports.len(), 2, "{reports:?}");
    for part in ["as expected", "note", "MessageComponent", &a.to_string()] {
        assert!(reports[0].contains(part), "{:?} names {part:?}", reports[0]);
    }
}

//! Messages on their way are saved with the world, and arrive after loading.

use bevy_app::App;
use bevy_due::{
    ClockId, OwnedBy, Timer,
    message::{
        Delivery, MessageCommandsExt, MessageEntityCommandsExt, MessageStats, MessageWorldExt,
        NoAnswer, Packet, ReplyTo,
    },
    moving::MoveWorldExt,
    prelude::*,
    save::{LoadError, SaveError, SaveWorldExt, SavedTimers, Unsavable, UnsavableReason},
};
use bevy_ecs::{
    entity::EntityHashMap, entity_disabling::Disabled, error::FallbackErrorHandler, prelude::*,
};

use crate::support::{errors::*, *};

const NOTE: u32 = 1;

/// A message with a codec in [`game`].
#[derive(Message, Clone)]
struct Hit(u8);

/// A reply with a codec in [`game`].
#[derive(Message)]
struct Answer(u8);

/// A message without a codec.
#[derive(Message)]
struct Look;

/// What each entity has heard, in order.
#[derive(Resource, Default)]
struct Heard(Vec<(Entity, u8)>);

/// The request that an entity has heard and not answered.
#[derive(Component)]
struct Asked(ReplyTo);

const ANSWERED: u8 = 200;
const TIMED_OUT: u8 = 255;

fn hear(mut me: bevy_due::message::MessageContext, what: u8) {
    let entity = me.entity.id();
    let reply_to = me.reply_to().cloned();
    me.commands.queue(move |world: &mut World| {
        world.resource_mut::<Heard>().0.push((entity, what));
        if let Some(reply_to) = reply_to {
            world.entity_mut(entity).insert(Asked(reply_to));
        }
    });
}

/// Follows notes, hits, answers and time-outs.
fn ears() -> MessageComponent {
    MessageComponent::new()
        .on_packet(NOTE, |me, note| hear(me, note.payload()[0]))
        .on(|me, hit: &Hit| hear(me, 100 + hit.0))
        .on(|me, answer: &Answer| hear(me, ANSWERED + answer.0))
        .on(|me, _: &NoAnswer| hear(me, TIMED_OUT))
}

fn decode(data: &[u8]) -> Result<u8> {
    match data {
        [byte] => Ok(*byte),
        _ => Err(format!("{} bytes", data.len()).into()),
    }
}

/// An app with codecs and manual time.
fn game() -> App {
    let mut app = app();
    app.init_resource::<Heard>();
    let world = app.world_mut();
    world.add_message_codec(
        "hit",
        |hit: &Hit| Ok([hit.0].into()),
        |data| decode(data).map(Hit),
    );
    world.add_message_codec(
        "answer",
        |answer: &Answer| Ok([answer.0].into()),
        |data| decode(data).map(Answer),
    );
    app
}

fn note(nth: u8) -> Packet {
    Packet::new(NOTE, [nth])
}

fn send(app: &mut App, to: impl Into<Delivery>, nth: u8) {
    let sent = app.world_mut().send(to, note(nth));
    sent.expect("there is room");
}

fn hit(app: &mut App, to: impl Into<Delivery>, nth: u8) {
    let sent = app.world_mut().send(to, Hit(nth));
    sent.expect("there is room");
}

fn ask(app: &mut App, asker: Entity, asked: Entity, millis: u64) {
    let mut commands = app.world_mut().commands();
    commands
        .entity(asker)
        .ask(asked, Hit(1), Timer::after(ms(millis)));
    app.world_mut().flush();
}

/// Replies to the request that an entity has heard.
fn reply(app: &mut App, asked: Entity, nth: u8) {
    let asked = app.world_mut().entity_mut(asked).take::<Asked>();
    let Asked(reply_to) = asked.expect("it was asked");
    app.world_mut().commands().reply(reply_to, Answer(nth));
    app.world_mut().flush();
}

fn heard(app: &mut App) -> Vec<(Entity, u8)> {
    core::mem::take(&mut app.world_mut().resource_mut::<Heard>().0)
}

fn through_text(saved: &SavedTimers) -> SavedTimers {
    let text = ron::to_string(saved).expect("it should serialize");
    ron::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn through_bytes(saved: &SavedTimers) -> SavedTimers {
    let bytes = postcard::to_allocvec(saved).expect("it should serialize");
    postcard::from_bytes(&bytes).expect("it is data")
}

/// Loads into a new game, in which entities have other numbers. Those of the array get ears.
#[track_caller]
fn load<const N: usize>(saved: &SavedTimers, entities: [Entity; N]) -> (App, [Entity; N]) {
    let mut app = game();
    for _ in 0..7 {
        app.world_mut().spawn_empty();
    }
    let mut map = EntityHashMap::default();
    for entity in entities {
        map.insert(entity, app.world_mut().spawn(ears()).id());
    }
    let loaded = app.world_mut().load_timers(saved, &mut map);
    loaded.expect("the data should be valid");
    (app, entities.map(|entity| map[&entity]))
}

/// Saves, and goes on in a new game.
#[track_caller]
fn reload<const N: usize>(app: &mut App, entities: [Entity; N]) -> (App, [Entity; N]) {
    let saved = app.world_mut().save_timers().expect("all is data");
    load(&through_text(&saved), entities)
}

#[test]
fn messages_arrive_after_loading_in_the_order_of_sending() {
    for through in [through_text, through_bytes] {
        let mut app = game();
        let [hero, pet] = [(); 2].map(|()| app.world_mut().spawn(ears()).id());
        send(&mut app, pet, 1);
        hit(&mut app, hero, 2);
        send(&mut app, pet, 3);
        app.world_mut().commands().send(hero, note(4));
        let sender = app.world_mut().message_sender();
        sender.send(pet, Hit(5)).expect("there is room");
        let saved = app.world_mut().save_timers().expect("all is data");
        let (mut app, [hero, pet]) = load(&through(&saved), [hero, pet]);
        advance_ms(&mut app, 0);
        let expected = [(pet, 1), (hero, 102), (pet, 3), (hero, 4), (pet, 105)];
        assert_eq!(heard(&mut app), expected);
        advance_ms(&mut app, 0);
        assert_eq!(heard(&mut app), [], "once");
    }
}

#[test]
fn a_save_leaves_the_messages_in_the_world() {
    let mut app = game();
    let hero = app.world_mut().spawn(ears()).id();
    send(&mut app, hero, 1);
    app.world_mut().save_timers().expect("all is data");
    advance_ms(&mut app, 0);
    assert_eq!(heard(&mut app), [(hero, 1)]);
}

#[test]
fn a_recipient_without_timers_is_spawned_on_loading() {
    let mut app = game();
    let hero = app.world_mut().spawn(ears()).id();
    send(&mut app, hero, 1);
    let saved = app.world_mut().save_timers().expect("all is data");
    assert!(saved.entities().any(|entity| entity == hero));
    let mut app = game();
    let mut map = EntityHashMap::default();
    let loaded = app.world_mut().load_timers(&saved, &mut map);
    loaded.expect("the data should be valid");
    app.world_mut().entity_mut(map[&hero]).insert(ears());
    advance_ms(&mut app, 0);
    assert_eq!(heard(&mut app), [(map[&hero], 1)]);
}

#[test]
fn messages_to_all_and_in_turn_find_the_followers_of_the_loaded_world() {
    let mut app = game();
    let followers = [(); 2].map(|()| app.world_mut().spawn(ears()).id());
    hit(&mut app, Delivery::InTurn, 1);
    send(&mut app, Delivery::All, 2);
    hit(&mut app, Delivery::InTurn, 3);
    hit(&mut app, Delivery::InTurn, 4);
    let (mut app, [a, b]) = reload(&mut app, followers);
    advance_ms(&mut app, 0);
    let expected = [(a, 101), (a, 2), (b, 2), (b, 103), (a, 104)];
    assert_eq!(heard(&mut app), expected);
}

#[test]
fn a_message_to_all_that_some_have_got_reaches_the_others_after_loading() {
    #[derive(Resource)]
    struct Saved(SavedTimers);
    let mut app = game();
    let saving = MessageComponent::new().on_packet(NOTE, |mut me, _| {
        me.commands.queue(|world: &mut World| {
            let saved = world.save_timers().expect("all is data");
            world.insert_resource(Saved(saved));
        });
    });
    let first = app.world_mut().spawn(ears()).id();
    let second = app.world_mut().spawn(saving).id();
    let others = [(); 2].map(|()| app.world_mut().spawn(ears()).id());
    send(&mut app, Delivery::All, 1);
    advance_ms(&mut app, 0);
    assert_eq!(heard(&mut app).len(), 3);
    let Saved(saved) = app.world_mut().remove_resource().expect("it was saved");
    let [third, fourth] = others;
    let entities = [first, second, third, fourth];
    let (mut app, [.., third, fourth]) = load(&through_text(&saved), entities);
    advance_ms(&mut app, 0);
    assert_eq!(heard(&mut app), [(third, 1), (fourth, 1)]);
}

#[test]
fn a_message_to_an_entity_that_is_gone_is_undeliverable_after_loading() {
    let mut app = game();
    let gone = app.world_mut().spawn_empty().id();
    app.world_mut().despawn(gone);
    send(&mut app, gone, 1);
    let (mut app, []) = reload(&mut app, []);
    advance_ms(&mut app, 0);
    assert_eq!(app.world().resource::<MessageStats>().undeliverable, 1);
}

#[cfg(feature = "worlds")]
#[test]
fn a_message_to_a_key_goes_to_the_entity_that_has_it_after_loading() {
    use bevy_due::worlds::{Parcel, StableKey, WorldGroups};

    let groups = WorldGroups::new();
    let mut app = game();
    groups.add("zones", &mut app);
    app.world_mut().spawn((ears(), StableKey(7)));
    let posted = groups.post(Parcel::new("zones", StableKey(7), note(1)));
    posted.expect("a world has the key");
    let (mut app, []) = reload(&mut app, []);
    let hero = app.world_mut().spawn((ears(), StableKey(7))).id();
    advance_ms(&mut app, 0);
    assert_eq!(heard(&mut app), [(hero, 1)]);
}

#[test]
fn a_request_on_its_way_is_answered_once_after_loading() {
    let mut app = game();
    let entities = [(); 2].map(|()| app.world_mut().spawn(ears()).id());
    let [hero, sage] = entities;
    ask(&mut app, hero, sage, 100);
    let (mut app, [hero, sage]) = reload(&mut app, [hero, sage]);
    advance_ms(&mut app, 50);
    assert_eq!(heard(&mut app), [(sage, 101)]);
    reply(&mut app, sage, 7);
    advance_ms(&mut app, 0);
    assert_eq!(heard(&mut app), [(hero, ANSWERED + 7)]);
    advance_ms(&mut app, 1000);
    advance_ms(&mut app, 0);
    assert_eq!(heard(&mut app), [], "once");
}

#[test]
fn a_request_on_its_way_times_out_after_loading() {
    let mut app = game();
    let entities = [(); 2].map(|()| app.world_mut().spawn(ears()).id());
    let [hero, sage] = entities;
    ask(&mut app, hero, sage, 100);
    let (mut app, [hero, sage]) = reload(&mut app, [hero, sage]);
    advance_ms(&mut app, 99);
    assert_eq!(heard(&mut app), [(sage, 101)]);
    advance_ms(&mut app, 1);
    advance_ms(&mut app, 0);
    assert_eq!(heard(&mut app), [(hero, TIMED_OUT)]);
    reply(&mut app, sage, 7);
    advance_ms(&mut app, 0);
    assert_eq!(heard(&mut app), [], "it is too late");
    assert_eq!(app.world().resource::<MessageStats>().late, 1);
}

#[test]
fn a_time_out_on_its_way_arrives_once_and_in_order_after_loading() {
    let mut app = game();
    let entities = [(); 2].map(|()| app.world_mut().spawn(ears()).id());
    let [hero, sage] = entities;
    ask(&mut app, hero, sage, 10);
    advance_ms(&mut app, 0);
    assert_eq!(heard(&mut app), [(sage, 101)]);
    send(&mut app, hero, 1);
    let forwarded = app.world_mut().fast_forward(ClockId::Virtual, ms(10));
    forwarded.expect("the clock exists");
    send(&mut app, hero, 2);
    reply(&mut app, sage, 7);
    let (mut app, [hero, _]) = reload(&mut app, entities);
    for _ in 0..3 {
        advance_ms(&mut app, 100);
    }
    assert_eq!(heard(&mut app), [(hero, 1), (hero, TIMED_OUT), (hero, 2)]);
    assert_eq!(app.world().resource::<MessageStats>().late, 1);
}

#[test]
fn an_answer_on_its_way_arrives_once_after_loading() {
    let mut app = game();
    let entities = [(); 2].map(|()| app.world_mut().spawn(ears()).id());
    let [hero, sage] = entities;
    ask(&mut app, hero, sage, 100);
    advance_ms(&mut app, 0);
    reply(&mut app, sage, 7);
    let (mut app, [hero, _]) = reload(&mut app, [hero, sage]);
    for _ in 0..3 {
        advance_ms(&mut app, 100);
    }
    assert_eq!(heard(&mut app), [(hero, ANSWERED + 7)]);
}

#[test]
fn an_answer_that_waits_for_a_disabled_entity_arrives_after_loading() {
    let mut app = game();
    let entities = [(); 2].map(|()| app.world_mut().spawn(ears()).id());
    let [hero, sage] = entities;
    ask(&mut app, hero, sage, 100);
    advance_ms(&mut app, 0);
    reply(&mut app, sage, 7);
    app.world_mut().entity_mut(hero).insert(Disabled);
    advance_ms(&mut app, 0);
    let (mut app, [hero, _]) = reload(&mut app, [hero, sage]);
    advance_ms(&mut app, 0);
    assert_eq!(heard(&mut app), []);
    app.world_mut().entity_mut(hero).remove::<Disabled>();
    advance_ms(&mut app, 0);
    assert_eq!(heard(&mut app), [(hero, ANSWERED + 7)]);
}

#[test]
fn an_entity_is_saved_with_the_messages_to_it_and_to_what_it_owns() {
    let mut app = game();
    let hero = app.world_mut().spawn(ears()).id();
    let pet = app.world_mut().spawn((ears(), OwnedBy(hero))).id();
    let other = app.world_mut().spawn(ears()).id();
    send(&mut app, pet, 1);
    send(&mut app, other, 2);
    send(&mut app, Delivery::All, 3);
    hit(&mut app, hero, 4);
    ask(&mut app, hero, pet, 100);
    let saved = app.world_mut().save_entity(hero).expect("all is data");
    let (mut app, [hero, pet]) = load(&through_text(&saved), [hero, pet]);
    advance_ms(&mut app, 0);
    assert_eq!(heard(&mut app), [(pet, 1), (hero, 104), (pet, 101)]);
    reply(&mut app, pet, 7);
    advance_ms(&mut app, 0);
    assert_eq!(heard(&mut app), [(hero, ANSWERED + 7)]);
}

#[test]
fn a_message_of_an_entity_that_is_not_saved_is_refused_until_that_is_mapped() {
    let mut app = game();
    let [hero, other] = [(); 2].map(|()| app.world_mut().spawn(ears()).id());
    ask(&mut app, other, hero, 100);
    let saved = app.world_mut().save_entity(hero).expect("all is data");
    let before = app.world().entities().count_spawned();
    let mut map = EntityHashMap::default();
    let error = app.world_mut().load_timers(&saved, &mut map);
    let error = error.expect_err("the asking entity is not saved");
    let LoadError::UnknownInMessage { message, to } = &error else {
        panic!("{error}");
    };
    assert_eq!((message.as_str(), *to), ("hit", other));
    let text = error.to_string();
    assert!(text.contains("map of entities") && text.contains("hit"));
    assert!(text.contains(&other.to_string()), "{text}");
    assert!(map.is_empty());
    assert_eq!(app.world().entities().count_spawned(), before);
    advance_ms(&mut app, 0);
    assert_eq!(heard(&mut app), [(hero, 101)], "only the first one");

    let request = app.world().get::<Asked>(hero).expect("it was asked");
    let request = request.0.request().entity().expect("it was made here");
    map.extend([(other, other), (request, request)]);
    let loaded = app.world_mut().load_timers(&saved, &mut map);
    loaded.expect("the data should be valid");
    let copy = map[&hero];
    app.world_mut().entity_mut(copy).insert(ears());
    advance_ms(&mut app, 0);
    assert_eq!(heard(&mut app), [(copy, 101)]);
    reply(&mut app, copy, 7);
    reply(&mut app, hero, 8);
    advance_ms(&mut app, 0);
    assert_eq!(heard(&mut app), [(other, ANSWERED + 7)], "the first one");
}

#[test]
fn a_message_without_a_codec_is_an_error_that_names_it_and_what_to_do() {
    let mut app = game();
    let [hero, other] = [(); 2].map(|()| app.world_mut().spawn(ears()).id());
    app.world_mut().send(hero, Look).expect("there is room");
    send(&mut app, hero, 1);
    let to_all = app.world_mut().send(Delivery::All, Look);
    to_all.expect("there is room");
    let error = app.world_mut().save_timers().expect_err("it has no codec");
    let SaveError::Unsavable(unsavable) = &error else {
        panic!("{error}");
    };
    assert_eq!(unsavable.len(), 2);
    let text = error.to_string();
    let entity = format!("entity {hero}");
    let parts = ["mail::Look", "all followers", "add_message_codec", &entity];
    for part in parts {
        assert!(text.contains(part), "{text:?} should contain {part:?}");
    }
    assert!(app.world_mut().save_entity(hero).is_err());
    assert!(app.world_mut().save_entity(other).is_ok());

    let (saved, unsavable) = app.world_mut().save_timers_without_closures();
    let looks = unsavable.iter().map(|unsavable| match unsavable {
        Unsavable::Message(mail) => (mail.to, mail.reason.clone()),
        other => panic!("{other}"),
    });
    let looks: Vec<_> = looks.collect();
    let reason = UnsavableReason::NoCodec;
    let expected = [Delivery::To(hero), Delivery::All].map(|to| (Some(to), reason.clone()));
    assert_eq!(looks, expected);
    let (mut app, [hero]) = load(&through_text(&saved), [hero]);
    advance_ms(&mut app, 0);
    assert_eq!(heard(&mut app), [(hero, 1)], "the others are saved");
}

#[test]
fn a_type_without_a_codec_is_a_warning_once_an_entity_follows_it() {
    let mut app = game();
    app.insert_resource(FallbackErrorHandler(record));
    let looks = || MessageComponent::new().on(|_, _: &Look| {});
    app.world_mut().spawn(looks());
    app.world_mut().spawn(looks());
    app.world_mut()
        .spawn(MessageComponent::new().on(|_, _: &NoAnswer| {}));
    let [warning] = &errors()[..] else {
        panic!("one warning for the type")
    };
    for part in ["mail::Look", "leave_out_message"] {
        assert!(
            warning.contains(part),
            "{warning:?} should contain {part:?}"
        );
    }
    let mut app = game();
    app.insert_resource(FallbackErrorHandler(record));
    app.world_mut().leave_out_message::<Look>();
    app.world_mut().spawn(looks());
    assert_eq!(errors(), [""; 0]);
}

#[test]
fn a_message_that_the_game_leaves_out_is_neither_saved_nor_moved() {
    let mut app = game();
    let hero = app.world_mut().spawn((ears(), Timer::after(1.0))).id();
    hit(&mut app, hero, 1);
    app.world_mut().send(hero, Look).expect("the plugin");
    app.world_mut()
        .send(Delivery::All, Look)
        .expect("the plugin");
    app.world_mut().leave_out_message::<Look>();
    let saved = app.world_mut().save_timers().expect("the rest is data");
    let (mut loaded, [there]) = load(&through_text(&saved), [hero]);
    advance_ms(&mut loaded, 0);
    assert_eq!(heard(&mut loaded), [(there, 101)]);
    assert!(app.world_mut().take_entity(hero).is_ok());
}

#[test]
#[should_panic(expected = "has a codec")]
fn a_type_with_a_codec_is_not_left_out() {
    game().world_mut().leave_out_message::<Hit>();
}

#[test]
#[should_panic(expected = "saves leave the message")]
fn a_type_that_is_left_out_has_no_codec() {
    let mut app = game();
    app.world_mut().leave_out_message::<Look>();
    let codec = |_: &Look| Ok(Vec::new());
    app.world_mut()
        .add_message_codec("look", codec, |_| Ok(Look));
}

#[test]
fn a_game_without_codecs_has_no_warning_about_one() {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(record));
    app.world_mut().leave_out_message::<Hit>();
    let looks = MessageComponent::new().on(|_, _: &Look| {});
    app.world_mut().spawn(looks);
    assert_eq!(errors(), [""; 0]);
}

#[test]
fn a_message_that_can_not_be_decoded_is_refused_and_nothing_is_loaded() {
    let mut app = game();
    let hero = app.world_mut().spawn((ears(), Timer::after(1.0))).id();
    send(&mut app, hero, 1);
    hit(&mut app, hero, 2);
    let saved = app.world_mut().save_timers().expect("all is data");
    let text = ron::to_string(&saved).expect("it should serialize");
    let refused = |from: &str, to: &str| {
        assert!(text.contains(from), "{text} should contain {from}");
        let saved: SavedTimers = ron::from_str(&text.replace(from, to)).expect("it is data");
        let mut app = game();
        let before = app.world().entities().count_spawned();
        let mut map = EntityHashMap::default();
        let loaded = app.world_mut().load_timers(&saved, &mut map);
        assert_eq!(app.world().entities().count_spawned(), before);
        assert!(map.is_empty());
        advance_ms(&mut app, 0);
        assert_eq!(app.world().resource::<MessageStats>().undeliverable, 0);
        loaded.expect_err("the data is invalid").to_string()
    };
    let error = refused("\"hit\"", "\"hat\"");
    assert!(error.contains("\"hat\"") && error.contains("add_message_codec"));
    let error = refused("data:[2]", "data:[2,2]");
    assert!(error.contains("\"hit\"") && error.contains("2 bytes"));
    let bits = hero.to_bits();
    let stranger = format!("(to:Entity({}),content:Named", bits - 1000);
    let error = refused(&format!("(to:Entity({bits}),content:Named"), &stranger);
    assert!(error.contains("hit") && error.contains("not saved"));
}

#[test]
fn data_without_messages_is_loaded() {
    let saved = ron::from_str("V2((world:None,entities:[]))");
    let (mut app, []) = load(&saved.expect("it is data"), []);
    advance_ms(&mut app, 0);
    assert_eq!(heard(&mut app), []);
}

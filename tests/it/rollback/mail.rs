//! Messages on their way go back with the timers.

use bevy_app::App;
use bevy_due::{
    Timer,
    message::{
        Delivery, MessageCommandsExt, MessageContext, MessageEntityCommandsExt, MessageWorldExt,
        NoAnswer, ReplyTo,
    },
    prelude::*,
    rollback::{RollbackWorldExt, TimerSnapshot},
};
use bevy_ecs::{entity::EntityHashMap, entity_disabling::Disabled, prelude::*};
use bevy_time::{Time, Virtual};

use crate::support::*;

/// A message that can't be cloned and has no codec.
#[derive(Message)]
struct Hit(u32);

#[derive(Message)]
struct Question;

#[derive(Message)]
struct Answer(u32);

/// What each entity has heard, in order.
#[derive(Resource, Default)]
struct Heard(Vec<(Entity, u32)>);

/// The last request that was heard.
#[derive(Resource)]
struct Asked(ReplyTo);

const QUESTION: u32 = 1000;
const ANSWERED: u32 = 2000;
const TIMED_OUT: u32 = 3000;

fn hear(mut me: MessageContext, what: u32) {
    let entity = me.entity.id();
    let reply_to = me.reply_to().cloned();
    me.commands.queue(move |world: &mut World| {
        world.resource_mut::<Heard>().0.push((entity, what));
        if let Some(reply_to) = reply_to {
            world.insert_resource(Asked(reply_to));
        }
    });
}

fn ears() -> MessageComponent {
    MessageComponent::new()
        .on(|me, hit: &Hit| hear(me, hit.0))
        .on(|me, _: &Question| hear(me, QUESTION))
        .on(|me, answer: &Answer| hear(me, ANSWERED + answer.0))
        .on(|me, _: &NoAnswer| hear(me, TIMED_OUT))
}

fn game() -> App {
    let mut app = app();
    app.init_resource::<Heard>();
    app
}

fn spawn<const N: usize>(app: &mut App) -> [Entity; N] {
    [(); N].map(|()| app.world_mut().spawn(ears()).id())
}

fn send(app: &mut App, to: impl Into<Delivery>, nth: u32) {
    let sent = app.world_mut().send(to, Hit(nth));
    sent.expect("there is room");
}

fn ask(app: &mut App, asker: Entity, asked: Entity) {
    let mut commands = app.world_mut().commands();
    commands
        .entity(asker)
        .ask(asked, Question, Timer::after(ms(100)));
    app.world_mut().flush();
}

fn reply(app: &mut App, nth: u32) {
    let reply_to = app.world().resource::<Asked>().0.clone();
    app.world_mut().commands().reply(reply_to, Answer(nth));
    app.world_mut().flush();
}

/// What a game goes back to.
#[derive(Resource)]
struct Moment(TimerSnapshot, Time<Virtual>);

fn snapshot(app: &mut App) -> Moment {
    let time = *app.world().resource();
    Moment(app.world_mut().snapshot_timers(), time)
}

fn restore(app: &mut App, Moment(snapshot, time): &Moment) -> EntityHashMap<Entity> {
    let mut map = EntityHashMap::default();
    app.world_mut().restore_timers(snapshot, &mut map);
    app.insert_resource(*time);
    map
}

/// Plays a frame, and returns what was heard in it.
fn play(app: &mut App) -> Vec<(Entity, u32)> {
    advance_ms(app, 10);
    core::mem::take(&mut app.world_mut().resource_mut::<Heard>().0)
}

#[test]
fn what_was_sent_before_the_snapshot_arrives_again_and_nothing_else() {
    let mut app = game();
    let [hero, pet] = spawn(&mut app);
    send(&mut app, hero, 1);
    send(&mut app, pet, 2);
    send(&mut app, Delivery::All, 3);
    let sender = app.world_mut().message_sender();
    sender.send(hero, Hit(4)).expect("there is room");
    let snapshot = snapshot(&mut app);
    let expected = [(hero, 1), (pet, 2), (hero, 3), (pet, 3), (hero, 4)];
    for _ in 0..3 {
        assert_eq!(play(&mut app), expected);
        assert_eq!(play(&mut app), []);
        send(&mut app, hero, 5);
        restore(&mut app, &snapshot);
        restore(&mut app, &snapshot);
    }
    drop(snapshot);
    assert_eq!(play(&mut app), expected);
}

#[test]
fn a_message_sent_after_the_snapshot_never_arrives() {
    let mut app = game();
    let [hero] = spawn(&mut app);
    let snapshot = snapshot(&mut app);
    send(&mut app, hero, 1);
    send(&mut app, Delivery::InTurn, 2);
    restore(&mut app, &snapshot);
    assert_eq!(play(&mut app), []);
}

#[test]
fn what_other_threads_have_sent_since_the_last_frame_stays() {
    let mut app = game();
    let [hero] = spawn(&mut app);
    let snapshot = snapshot(&mut app);
    let sender = app.world_mut().message_sender();
    sender.send(hero, Hit(1)).expect("there is room");
    restore(&mut app, &snapshot);
    assert_eq!(play(&mut app), [(hero, 1)]);
}

#[test]
fn snapshots_are_restored_in_any_order() {
    let mut app = game();
    let [hero] = spawn(&mut app);
    send(&mut app, hero, 1);
    let first = snapshot(&mut app);
    send(&mut app, hero, 2);
    let second = snapshot(&mut app);
    assert_eq!(play(&mut app), [(hero, 1), (hero, 2)]);
    send(&mut app, hero, 3);
    let third = snapshot(&mut app);
    let all = [(&first, vec![1]), (&second, vec![1, 2]), (&third, vec![3])];
    for nth in [1, 0, 2, 1, 1, 2, 0] {
        let (snapshot, expected) = &all[nth];
        restore(&mut app, snapshot);
        let heard: Vec<u32> = play(&mut app).into_iter().map(|(_, nth)| nth).collect();
        assert_eq!(heard, *expected);
    }
}

#[test]
fn messages_in_turn_go_to_the_same_followers_again() {
    let mut app = game();
    let [a, b, c] = spawn(&mut app);
    send(&mut app, Delivery::InTurn, 1);
    assert_eq!(play(&mut app), [(a, 1)]);
    send(&mut app, Delivery::InTurn, 2);
    let snapshot = snapshot(&mut app);
    for _ in 0..2 {
        assert_eq!(play(&mut app), [(b, 2)]);
        send(&mut app, Delivery::InTurn, 3);
        assert_eq!(play(&mut app), [(c, 3)]);
        restore(&mut app, &snapshot);
    }
}

#[test]
fn a_message_finds_an_entity_that_was_spawned_again() {
    let mut app = game();
    let [hero, asker] = spawn(&mut app);
    app.world_mut().entity_mut(hero).insert(Timer::after(9.0));
    app.world_mut().entity_mut(asker).insert(Timer::after(9.0));
    send(&mut app, hero, 1);
    ask(&mut app, asker, hero);
    let snapshot = snapshot(&mut app);
    app.world_mut().despawn(hero);
    app.world_mut().despawn(asker);
    let map = restore(&mut app, &snapshot);
    let (hero, asker) = (map[&hero], map[&asker]);
    for entity in [hero, asker] {
        app.world_mut().entity_mut(entity).insert(ears());
    }
    assert_eq!(play(&mut app), [(hero, 1), (hero, QUESTION)]);
    reply(&mut app, 7);
    assert_eq!(play(&mut app), [(asker, ANSWERED + 7)]);
}

#[test]
fn a_request_and_its_answer_complete_once_after_each_restore() {
    let mut app = game();
    let [hero, sage] = spawn(&mut app);
    ask(&mut app, hero, sage);
    let asked = snapshot(&mut app);
    assert_eq!(play(&mut app), [(sage, QUESTION)]);
    reply(&mut app, 1);
    let answered = snapshot(&mut app);
    for _ in 0..2 {
        assert_eq!(play(&mut app), [(hero, ANSWERED + 1)]);
        advance_ms(&mut app, 1000);
        assert_eq!(play(&mut app), []);
        restore(&mut app, &answered);
    }
    restore(&mut app, &asked);
    assert_eq!(play(&mut app), [(sage, QUESTION)]);
    advance_ms(&mut app, 1000);
    assert_eq!(play(&mut app), [(hero, TIMED_OUT)]);
    restore(&mut app, &asked);
    assert_eq!(play(&mut app), [(sage, QUESTION)]);
    reply(&mut app, 2);
    assert_eq!(play(&mut app), [(hero, ANSWERED + 2)]);
}

#[test]
fn an_answer_that_waits_for_a_disabled_entity_waits_again() {
    let mut app = game();
    let [hero, sage] = spawn(&mut app);
    ask(&mut app, hero, sage);
    play(&mut app);
    reply(&mut app, 1);
    app.world_mut().entity_mut(hero).insert(Disabled);
    assert_eq!(play(&mut app), []);
    let snapshot = snapshot(&mut app);
    for _ in 0..2 {
        app.world_mut().entity_mut(hero).remove::<Disabled>();
        assert_eq!(play(&mut app), [(hero, ANSWERED + 1)]);
        restore(&mut app, &snapshot);
        app.world_mut().entity_mut(hero).insert(Disabled);
        assert_eq!(play(&mut app), []);
    }
}

#[test]
fn a_snapshot_in_the_middle_of_a_delivery_leaves_it_as_it_is() {
    let mut app = game();
    let [first] = spawn(&mut app);
    let taking = MessageComponent::new().on(|mut me, _: &Hit| {
        me.commands.queue(|world: &mut World| {
            let time = *world.resource();
            let moment = Moment(world.snapshot_timers(), time);
            world.insert_resource(moment);
        });
    });
    app.world_mut().spawn(taking);
    let [third, fourth] = spawn(&mut app);
    send(&mut app, Delivery::All, 1);
    send(&mut app, fourth, 2);
    let rest = [(third, 1), (fourth, 1), (fourth, 2)];
    assert_eq!(play(&mut app), [&[(first, 1)], &rest[..]].concat());
    let snapshot: Moment = app.world_mut().remove_resource().expect("it was taken");
    for _ in 0..2 {
        restore(&mut app, &snapshot);
        assert_eq!(play(&mut app), rest);
    }
}

#[test]
fn mail_goes_to_the_entity_that_the_game_has_spawned_again() {
    let mut app = game();
    let [gone] = spawn(&mut app);
    play(&mut app);
    send(&mut app, gone, 1);
    let Moment(snapshot, time) = snapshot(&mut app);

    app.world_mut().despawn(gone);
    play(&mut app);
    let [again] = spawn(&mut app);
    let mut map = EntityHashMap::from_iter([(gone, again)]);
    app.world_mut().restore_timers(&snapshot, &mut map);
    app.insert_resource(time);
    assert_eq!(play(&mut app), [(again, 1)]);
}

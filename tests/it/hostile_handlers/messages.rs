//! Messages, requests and sent commands around panics, replaced components and lost owners.

use super::*;
use crate::support::*;
use bevy_due::message::{
    Delivery, MessageCommandsExt, MessageEntityCommandsExt, MessageWorldExt, NoAnswer, Outbox,
};
use bevy_ecs::system::RunSystemOnce;
use std::collections::HashMap;

#[derive(Message, Clone)]
struct Word(u64);

#[derive(Message, Clone)]
struct Ask;

#[derive(Message, Clone)]
struct Answer;

/// The words that each entity received, in order.
#[derive(Resource, Default)]
struct Received(HashMap<Entity, Vec<u64>>);

/// Whether an answer or `NoAnswer` arrived.
#[derive(Resource, Default)]
struct IsAnswered(bool);

/// Logs words. The first word replaces the component; the tenth panics.
fn listener() -> MessageComponent {
    MessageComponent::new().on(|mut me, &Word(word): &Word| {
        let listener_entity = me.entity.id();
        me.commands.queue(move |world: &mut World| {
            let mut received = world.resource_mut::<Received>();
            received.0.entry(listener_entity).or_default().push(word);
        });
        if word == 1 {
            me.commands.entity(listener_entity).insert(listener());
        }
        assert!(word != 10, "a callback");
    })
}

#[test]
fn words_behind_a_replaced_component_or_a_panic_arrive_once_and_in_order() {
    let mut app = app();
    ignore_errors(&mut app);
    app.init_resource::<Received>();
    let [replaced, panicking] = [(); 2].map(|()| app.world_mut().spawn(listener()).id());
    advance_ms(&mut app, 1);
    app.world_mut()
        .run_system_once(move |mut outbox: Outbox| {
            for word in [1, 2, 3] {
                outbox.send(replaced, Word(word)).unwrap();
            }
            outbox.send(panicking, Word(10)).unwrap();
            outbox.send(panicking, Word(11)).unwrap();
            outbox.send(replaced, Word(4)).unwrap();
        })
        .unwrap();
    app.world_mut().send(replaced, Word(5)).unwrap();
    app.world_mut().send(Delivery::All, Word(6)).unwrap();
    advance_ms(&mut app, 1);
    app.world_mut().send(replaced, Word(7)).unwrap();
    advance_ms(&mut app, 1);
    advance_ms(&mut app, 1);
    let received = &app.world().resource::<Received>().0;
    assert_eq!(
        received[&replaced],
        [1, 2, 3, 4, 5, 6, 7],
        "the new component should get the remaining words"
    );
    assert_eq!(
        received[&panicking],
        [10, 11, 6],
        "the words after the panic should arrive"
    );
}

#[test]
fn a_request_taken_from_its_owner_is_withdrawn() {
    let mut app = app();
    app.init_resource::<IsAnswered>();
    let note = |world: &mut World| world.resource_mut::<IsAnswered>().0 = true;
    let asker = MessageComponent::new()
        .on(move |mut me, _: &Answer| me.commands.queue(note))
        .on(move |mut me, _: &NoAnswer| me.commands.queue(note));
    let answerer = MessageComponent::new().on(|mut me, _: &Ask| {
        let reply_to = me.reply_to().cloned().unwrap();
        me.commands.reply(reply_to, Answer);
    });
    let [asker, answerer] = [asker, answerer].map(|who| app.world_mut().spawn(who).id());
    advance_ms(&mut app, 1);
    let time_out = Timer::after(ms(50));
    let mut commands = app.world_mut().commands();
    commands.entity(asker).ask(answerer, Ask, time_out);
    app.world_mut().flush();
    let request = owned(app.world(), asker)[0];
    app.world_mut().entity_mut(request).remove::<OwnedBy>();
    for _ in 0..10 {
        advance_ms(&mut app, 10);
    }
    assert!(
        !app.world().resource::<IsAnswered>().0,
        "a withdrawn request should get neither an answer nor `NoAnswer`"
    );
    assert!(
        app.world().get_entity(request).is_err(),
        "the entity of the request should despawn"
    );
}

#[test]
fn commands_of_a_sender_run_in_order_after_a_panic() {
    #[derive(Resource, Default)]
    struct Ran(Vec<u32>);
    let mut app = app();
    ignore_errors(&mut app);
    app.init_resource::<Ran>();
    let sender = app.world_mut().message_sender();
    let note = |number| move |world: &mut World| world.resource_mut::<Ran>().0.push(number);
    let sent = [
        sender.run(note(1)).is_ok(),
        sender.run(|_: &mut World| panic!("a command")).is_ok(),
        sender.run(note(2)).is_ok(),
        sender.run(note(3)).is_ok(),
    ];
    assert_eq!(sent, [true; 4], "the sender should accept every command");
    advance_ms(&mut app, 1);
    advance_ms(&mut app, 1);
    assert_eq!(
        app.world().resource::<Ran>().0,
        [1, 2, 3],
        "the commands after the panic should run in order"
    );
}

//! The bound of the messages that wait in a world.

use crate::support::{errors::*, *};
use bevy_app::{App, Update};
use bevy_due::{
    DuePlugin, Timer,
    message::{
        Delivery, MessageCommandsExt, MessageContext, MessageEntityCommandsExt, MessageStats,
        MessageWorldExt, NoAnswer, Outbox, Packet, SendError,
    },
    prelude::*,
};
use bevy_ecs::{entity_disabling::Disabled, error::FallbackErrorHandler, prelude::*};
use bevy_time::TimePlugin;

#[derive(Message, Clone, PartialEq, Debug)]
struct Nth(u32);

/// The numbers received so far, in order.
#[derive(Component, Default)]
struct Received(Vec<u32>);

fn listener() -> MessageComponent {
    MessageComponent::new().on(|mut me: MessageContext, nth: &Nth| {
        me.entity.get_mut::<Received>().unwrap().0.push(nth.0);
    })
}

/// Creates an app with this capacity, and a listener.
fn bounded_app(mailbox_capacity: usize) -> (App, Entity) {
    let mut app = app_with(DuePlugin {
        mailbox_capacity,
        ..DuePlugin::default()
    });
    app.insert_resource(FallbackErrorHandler(record));
    let entity = app.world_mut().spawn((listener(), Received::default()));
    let entity = entity.id();
    (app, entity)
}

fn received(app: &mut App, entity: Entity) -> Vec<u32> {
    core::mem::take(&mut app.world_mut().get_mut::<Received>(entity).unwrap().0)
}

#[test]
fn a_full_world_hands_messages_back_and_loses_none() {
    let (mut app, entity) = bounded_app(3);
    for to in [entity.into(), Delivery::All, Delivery::InTurn] {
        // Room is free again after each frame.
        for _ in 0..3 {
            for nth in 0..3 {
                assert_eq!(app.world_mut().send(to, Nth(nth)), Ok(()));
            }
            let refused = app.world_mut().send(to, Nth(3));
            assert_eq!(refused, Err(SendError::Full(Nth(3))));
            advance_ms(&mut app, 10);
            assert_eq!(received(&mut app, entity), [0, 1, 2], "{to:?}");
        }
    }
    assert_eq!(DuePlugin::default().mailbox_capacity, 1 << 20);
}

#[test]
fn all_outboxes_share_the_room() {
    fn send(mut outbox: Outbox, all: Query<Entity, With<Received>>) {
        for nth in 0..10 {
            let sent = outbox.send(all.single().unwrap(), Nth(nth));
            assert_eq!(sent.is_ok(), nth < 4, "{nth}");
        }
    }

    fn send_more(mut outbox: Outbox) {
        let refused = outbox.send(Delivery::All, Nth(0));
        assert_eq!(refused, Err(SendError::Full(Nth(0))));
    }

    let (mut app, entity) = bounded_app(4);
    app.add_systems(Update, (send, send_more).chain());
    advance_ms(&mut app, 10);
    assert_eq!(received(&mut app, entity), []);
    for _ in 0..3 {
        advance_ms(&mut app, 10);
        assert_eq!(received(&mut app, entity), [0, 1, 2, 3]);
    }
}

/// Sends as many messages as there is room for, and delivers them.
fn fill(app: &mut App, entity: Entity) -> usize {
    let sent = (0..).take_while(|&nth| app.world_mut().send(entity, Nth(nth)).is_ok());
    let sent = sent.count();
    advance_ms(app, 10);
    sent
}

#[test]
fn an_outbox_keeps_no_room_that_it_has_not_used() {
    #[derive(Event)]
    struct Send;

    let (mut app, entity) = bounded_app(1000);
    let send = move |mut outbox: Outbox| {
        outbox.send(entity, Nth(0)).unwrap();
    };
    let on_send = move |_: On<Send>, mut outbox: Outbox| {
        outbox.send(entity, Nth(0)).unwrap();
        outbox.send(Delivery::All, Nth(0)).unwrap();
    };
    app.add_systems(Update, send).add_observer(on_send);
    for _ in 0..20 {
        advance_ms(&mut app, 10);
        app.world_mut().trigger(Send);
        assert_eq!(fill(&mut app, entity), 1000 - 3);
    }
}

#[test]
fn an_outbox_drops_what_it_got_before_the_plugin_was_added() {
    let mut app = App::new();
    app.insert_resource(FallbackErrorHandler(|_, _| {}));
    let entity = app
        .world_mut()
        .spawn((listener(), Received::default()))
        .id();
    let mut next = 0;
    app.add_systems(Update, move |mut outbox: Outbox| {
        next += 1;
        outbox.send(entity, Nth(next)).unwrap();
    });
    app.update();
    app.add_plugins((TimePlugin, DuePlugin::default()));
    for _ in 0..3 {
        app.update();
    }
    assert_eq!(received(&mut app, entity), [2, 3]);
}

#[test]
fn outboxes_take_no_more_than_the_room() {
    fn send(mut outbox: Outbox, all: Query<Entity, With<Received>>) {
        let entity = all.single().unwrap();
        while outbox.send(entity, Nth(0)).is_ok() {}
    }

    for capacity in [1, 63, 127, 128, 129, 200, 1000] {
        let (mut app, entity) = bounded_app(capacity);
        app.add_systems(Update, (send, send, send));
        for _ in 0..3 {
            advance_ms(&mut app, 10);
            let stats = *app.world().resource::<MessageStats>();
            assert_eq!(fill(&mut app, entity), 0, "{capacity}: it is full");
            let delivered = app.world().resource::<MessageStats>().delivered;
            assert_eq!(delivered - stats.delivered, capacity as u64);
        }
    }
}

#[test]
fn a_refused_command_is_an_error_that_names_the_recipient() {
    let (mut app, entity) = bounded_app(1);
    let mut commands = app.world_mut().commands();
    for (nth, to) in [
        entity.into(),
        entity.into(),
        Delivery::All,
        Delivery::InTurn,
    ]
    .into_iter()
    .enumerate()
    {
        commands.send(to, Nth(nth as u32));
    }
    app.world_mut().flush();
    let errors = errors();
    let names = [&format!("entity {entity}"), "all followers", "one follower"];
    assert_eq!(errors.len(), names.len(), "{errors:?}");
    for (error, name) in errors.iter().zip(names) {
        assert!(error.contains(name), "{error} should contain {name}");
        assert!(error.contains("Nth") && error.contains("mailbox_capacity"));
    }
    advance_ms(&mut app, 10);
    assert_eq!(received(&mut app, entity), [0]);
}

#[test]
fn a_storm_within_a_world_is_bounded() {
    let (mut app, _) = bounded_app(100);
    let doubling = MessageComponent::new().on(|mut me: MessageContext, nth: &Nth| {
        let id = me.entity.id();
        for _ in 0..2 {
            me.commands.send(id, Nth(nth.0 + 1));
        }
    });
    let doubling = app.world_mut().spawn(doubling).id();
    app.world_mut().send(doubling, Nth(0)).unwrap();
    let mut before = 0;
    for frame in 0..30 {
        advance_ms(&mut app, 10);
        let delivered = app.world().resource::<MessageStats>().delivered;
        let in_frame = delivered - before;
        before = delivered;
        let expected = if frame < 7 { 1 << frame } else { 100 };
        assert_eq!(in_frame.min(100), expected.min(100), "frame {frame}");
        assert!(in_frame <= 100, "{in_frame} in frame {frame}");
    }
    assert!(!errors().is_empty());
    assert_eq!(app.world().resource::<MessageStats>().undeliverable, 0);
}

#[test]
fn a_refused_request_times_out_and_replies_are_never_refused() {
    let (mut app, _) = bounded_app(1);
    let asker = MessageComponent::new()
        .on(|mut me: MessageContext, nth: &Nth| {
            me.entity.get_mut::<Received>().unwrap().0.push(nth.0);
        })
        .on(|mut me: MessageContext, _: &NoAnswer| {
            me.entity.get_mut::<Received>().unwrap().0.push(99);
        });
    let asker = (asker, Received::default());
    let asker = app.world_mut().spawn(asker).id();
    let replies = MessageComponent::new().on_packet(1, |mut me: MessageContext, _: &Packet| {
        // The room of the request is free again.
        let own = me.entity.id();
        me.commands.send(own, Packet::new(2, []));
        me.reply(Nth(7)).unwrap();
    });
    let replies = app.world_mut().spawn(replies).id();
    let mut commands = app.world_mut().commands();
    for _ in 0..2 {
        let patience = Timer::after(1.0);
        commands
            .entity(asker)
            .ask(replies, Packet::new(1, []), patience);
    }
    app.world_mut().flush();
    assert_eq!(errors().len(), 1);
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 10);
    assert_eq!(received(&mut app, asker), [7]);
    advance_ms(&mut app, 1000);
    assert_eq!(received(&mut app, asker), [99]);
}

#[test]
fn messages_that_wait_longer_keep_their_room() {
    let (mut app, entity) = bounded_app(2);
    let replies = MessageComponent::new().on_packet(1, |mut me: MessageContext, _: &Packet| {
        me.reply(Nth(1)).unwrap();
    });
    let replies = app.world_mut().spawn(replies).id();
    let mut commands = app.world_mut().commands();
    let patience = Timer::after(1.0);
    let request = Packet::new(1, []);
    commands.entity(entity).ask(replies, request, patience);
    app.world_mut().flush();
    app.world_mut().entity_mut(entity).insert(Disabled);
    advance_ms(&mut app, 10);
    // The reply waits for the disabled entity.
    for _ in 0..2 {
        advance_ms(&mut app, 10);
        assert_eq!(app.world_mut().send(entity, Nth(2)), Ok(()));
        let refused = app.world_mut().send(entity, Nth(3));
        assert_eq!(refused, Err(SendError::Full(Nth(3))));
    }
    app.world_mut().entity_mut(entity).remove::<Disabled>();
    advance_ms(&mut app, 10);
    assert_eq!(received(&mut app, entity), [1, 2]);
    for nth in 0..2 {
        app.world_mut().send(entity, Nth(nth)).unwrap();
    }
}

#[test]
fn a_world_gives_back_the_memory_of_a_burst() {
    const MANY: u32 = 50_000;

    fn flood(mut outbox: Outbox, mut bursts: Local<u32>, all: Query<Entity, With<Received>>) {
        *bursts += 1;
        if *bursts == 1 {
            for nth in 0..MANY {
                outbox.send(Delivery::All, Packet::new(nth, [])).unwrap();
                outbox.send(all.single().unwrap(), Nth(nth)).unwrap();
            }
        }
    }

    let (mut app, entity) = bounded_app(1 << 20);
    app.add_systems(Update, flood);
    for _ in 0..3 {
        app.world_mut().send(entity, Nth(0)).unwrap();
    }
    let sender = app.world_mut().message_sender();
    let quiet = |app: &mut App| {
        for _ in 0..600 {
            advance_ms(app, 1);
        }
    };
    let used = allocation_counter::measure(|| {
        for nth in 0..MANY {
            app.world_mut().send(entity, Nth(nth)).unwrap();
            sender.send(entity, Nth(nth)).unwrap();
        }
        advance_ms(&mut app, 1);
        advance_ms(&mut app, 1);
        let received = core::mem::take(&mut *app.world_mut().get_mut::<Received>(entity).unwrap());
        assert_eq!(received.0.len(), 3 * MANY as usize + 3);
        quiet(&mut app);
    });
    assert!(used.bytes_current < 200_000, "{} bytes", used.bytes_current);
}

#[test]
fn closing_the_inbox_and_a_caught_panic_free_the_room() {
    let (mut app, entity) = bounded_app(2);
    let panics = MessageComponent::new().on_packet(1, |_: MessageContext, _: &Packet| {
        panic!("on purpose");
    });
    let panics = app.world_mut().spawn(panics).id();
    for to in [panics.into(), Delivery::All, Delivery::InTurn] {
        for _ in 0..3 {
            app.world_mut().send(to, Packet::new(1, [])).unwrap();
            advance_ms(&mut app, 10);
            advance_ms(&mut app, 10);
        }
    }
    let echoes = MessageComponent::new().on_packet(2, move |mut me: MessageContext, _: &Packet| {
        me.commands.send(entity, Nth(5));
        me.commands.send(entity, Nth(6));
    });
    app.world_mut().spawn(echoes);
    app.world_mut()
        .send(Delivery::InTurn, Packet::new(2, []))
        .unwrap();
    assert_eq!(app.world_mut().close_inbox().len(), 2);
    for nth in 0..2 {
        app.world_mut().send(entity, Nth(nth)).unwrap();
    }
    errors();
}

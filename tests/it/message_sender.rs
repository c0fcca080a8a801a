//! `MessageSender`: messages from other threads.

use core::panic::AssertUnwindSafe;
use std::{
    panic::catch_unwind,
    sync::{Arc, Weak},
    thread,
};

use crate::support::*;
use bevy_app::{App, First, Last, PreUpdate, Update};
use bevy_due::{
    Timer, TimerAction,
    message::{
        Delivery, MessageCommandsExt, MessageContext, MessageSender, MessageStats, MessageWorldExt,
        Packet, SendError,
    },
    prelude::*,
};
use bevy_ecs::{error::FallbackErrorHandler, prelude::*, schedule::ScheduleLabel};
use bevy_time::TimePlugin;

/// The n-th message of a sender.
#[derive(Message, Clone, Copy, Debug, PartialEq)]
struct Nth(usize, u32);

/// The messages that an entity has received.
#[derive(Component, Default)]
struct Got(Vec<Nth>);

fn listener() -> impl Bundle {
    let note = |mut me: MessageContext, nth: &Nth| {
        me.entity.get_mut::<Got>().unwrap().0.push(*nth);
    };
    (Got::default(), MessageComponent::new().on(note))
}

fn got(app: &mut App, entity: Entity) -> Vec<Nth> {
    core::mem::take(&mut app.world_mut().get_mut::<Got>(entity).unwrap().0)
}

/// An app with an inbox of this capacity, a listening entity, and a sender.
fn sender_app(capacity: usize) -> (App, Entity, MessageSender) {
    let mut app = App::new();
    let due = DuePlugin {
        inbox_capacity: capacity,
        ..DuePlugin::default()
    };
    app.add_plugins((TimePlugin, due));
    let entity = app.world_mut().spawn(listener()).id();
    let sender = app.world_mut().message_sender();
    (app, entity, sender)
}

#[test]
fn messages_of_each_thread_arrive_in_order_and_none_is_lost() {
    const THREADS: usize = 4;
    const EACH: u32 = 1_000;

    let (mut app, entity, sender) = sender_app(100);
    let threads: Vec<_> = (0..THREADS)
        .map(|who| {
            let sender = sender.clone();
            thread::spawn(move || {
                for nth in 0..EACH {
                    let mut message = Nth(who, nth);
                    while let Err(error) = sender.send(entity, message) {
                        assert!(matches!(error, SendError::Full(_)), "{error}");
                        message = error.into_inner();
                        thread::yield_now();
                    }
                }
            })
        })
        .collect();
    let mut all = Vec::new();
    while all.len() < THREADS * EACH as usize {
        advance_ms(&mut app, 10);
        let got = got(&mut app, entity);
        assert!(got.len() <= 100, "no more than the capacity in a frame");
        all.extend(got);
    }
    for thread in threads {
        thread.join().unwrap();
    }
    for who in 0..THREADS {
        let of_this = all.iter().filter(|nth| nth.0 == who).map(|nth| nth.1);
        assert!(
            of_this.eq(0..EACH),
            "in the order of sending, each one once"
        );
    }
    advance_ms(&mut app, 10);
    assert_eq!(got(&mut app, entity), []);
}

#[test]
fn a_full_inbox_hands_messages_back_until_the_next_frame() {
    #[derive(Message)]
    struct Unique(Box<u32>);

    let (mut app, entity, sender) = sender_app(2);
    for _ in 0..3 {
        sender.send(entity, Nth(0, 1)).unwrap();
        sender.run(|_: &mut World| {}).unwrap();
        let unique = Box::new(7);
        let place: *const u32 = &raw const *unique;
        let error = sender.send(Delivery::All, Unique(unique)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "too many messages wait: retry in the next frame, or raise `DuePlugin::inbox_capacity` \
         and `inbox_bytes` for messages from other threads, `DuePlugin::mailbox_capacity` for others"
        );
        let SendError::Full(unique) = error else {
            panic!("{error:?}");
        };
        assert_eq!((&raw const *unique.0, *unique.0), (place, 7));

        let mark = move |world: &mut World| world.send(entity, Nth(0, 2)).unwrap();
        // The caller can keep a function that is handed back.
        let SendError::Full(mark) = sender.run(mark).unwrap_err() else {
            panic!("should be full");
        };
        mark(app.world_mut());

        advance_ms(&mut app, 10);
        assert_eq!(got(&mut app, entity), [Nth(0, 2), Nth(0, 1)]);
    }
    assert!(!sender.is_closed());
}

#[test]
fn messages_from_threads_allocate_nothing_in_a_steady_state() {
    let (mut app, entity, sender) = sender_app(1000);
    let send = || {
        for nth in 0..1000 {
            sender.send(entity, Nth(0, nth)).unwrap();
        }
    };
    for frame in 0..5 {
        let used = allocation_counter::measure(send);
        assert!(
            used.count_total == 0 || frame < 3,
            "{used:?} in frame {frame}"
        );
        assert!(
            sender.send(entity, Nth(0, 1000)).is_err(),
            "each one counts"
        );
        advance_ms(&mut app, 10);
        let got = got(&mut app, entity);
        assert!(got.into_iter().map(|nth| nth.1).eq(0..1000));
    }
}

#[test]
fn messages_of_different_types_keep_their_order() {
    #[derive(Message)]
    struct Other(u32);

    let (mut app, entity, sender) = sender_app(1000);
    let note = |mut me: MessageContext, nth| me.entity.get_mut::<Got>().unwrap().0.push(nth);
    let follows = MessageComponent::new()
        .on(move |me: MessageContext, nth: &Nth| note(me, *nth))
        .on(move |me: MessageContext, other: &Other| note(me, Nth(1, other.0)))
        .on_packet(7, move |me: MessageContext, _: &Packet| note(me, Nth(2, 0)))
        .on_packet(8, move |me: MessageContext, _: &Packet| note(me, Nth(3, 0)));
    app.world_mut().entity_mut(entity).insert(follows);
    let mut expected = Vec::new();
    for nth in 0..100 {
        // Runs of each kind, some longer than a batch.
        match nth / 9 % 5 {
            0 => sender.send(entity, Nth(0, nth)).unwrap(),
            1 => sender.send(entity, Other(nth)).unwrap(),
            2 => sender.send(Delivery::All, Nth(0, nth)).unwrap(),
            _ => sender.send(entity, Packet::new(7 + nth % 2, [])).unwrap(),
        }
        expected.push(match nth / 9 % 5 {
            0 | 2 => Nth(0, nth),
            1 => Nth(1, nth),
            _ => Nth(2 + nth as usize % 2, 0),
        });
    }
    advance_ms(&mut app, 10);
    assert_eq!(got(&mut app, entity), expected);
}

#[test]
fn an_inbox_has_room_for_a_number_of_bytes() {
    let mut app = app_with(DuePlugin {
        inbox_bytes: 10,
        ..DuePlugin::default()
    });
    let sender = app.world_mut().message_sender();
    let packet = |bytes| Packet::new(1, vec![0; bytes]);
    for _ in 0..3 {
        for bytes in [0, 4, 6, 0] {
            assert_eq!(sender.send(Delivery::All, packet(bytes)), Ok(()));
        }
        sender.send(Delivery::All, Nth(0, 0)).unwrap();
        let refused = sender.send(Delivery::All, packet(1));
        assert_eq!(refused, Err(SendError::Full(packet(1))));
        advance_ms(&mut app, 10);
        // A packet that never fits can go alone.
        assert_eq!(sender.send(Delivery::All, packet(1000)), Ok(()));
        let refused = sender.send(Delivery::All, packet(1));
        assert_eq!(refused, Err(SendError::Full(packet(1))));
        advance_ms(&mut app, 10);
    }
    assert_eq!(DuePlugin::default().inbox_bytes, 64 << 20);
}

#[test]
fn messages_of_the_world_itself_have_a_bound_of_their_own() {
    let (mut app, entity, _) = sender_app(0);
    for nth in 0..100 {
        app.world_mut().send(entity, Nth(0, nth)).unwrap();
    }
    advance_ms(&mut app, 10);
    assert_eq!(got(&mut app, entity).len(), 100);
}

#[test]
fn a_sender_that_outlives_its_world_gets_an_error() {
    let (app, entity, sender) = sender_app(10);
    let thread = thread::spawn(move || {
        let mut error = None;
        while error.is_none() {
            // Until the world is gone.
            error = sender.send(entity, Nth(7, 7)).err();
            error = error.filter(|error| matches!(error, SendError::Closed(_)));
        }
        assert!(sender.is_closed());
        let refused = sender.run(|_: &mut World| unreachable!());
        assert!(matches!(refused, Err(SendError::Closed(_))));
        error.unwrap()
    });
    drop(app);
    let error = thread.join().unwrap();
    assert_eq!(error.to_string(), "the world has ended or closed its inbox");
    assert_eq!(error.into_inner(), Nth(7, 7));
}

#[test]
fn waiting_messages_are_dropped_with_the_app() {
    /// The message and the inbox could keep each other alive.
    #[derive(Message)]
    #[expect(dead_code, reason = "they are there to be held")]
    struct Holding(MessageSender, Arc<()>);

    let (app, entity, sender) = sender_app(10);
    let held = Arc::new(());
    let weak: Weak<()> = Arc::downgrade(&held);
    let message = Holding(sender.clone(), held);
    sender.send(entity, message).unwrap();
    drop(app);
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_sender_from_before_the_plugin_keeps_its_inbox() {
    let mut app = App::new();
    let sender = app.world_mut().message_sender();
    let due = DuePlugin {
        inbox_capacity: 1,
        ..DuePlugin::default()
    };
    app.add_plugins((TimePlugin, due));
    let entity = app.world_mut().spawn(listener()).id();
    sender.send(entity, Nth(0, 1)).unwrap();
    assert!(matches!(
        sender.send(entity, Nth(0, 2)),
        Err(SendError::Full(_))
    ));
    advance_ms(&mut app, 10);
    assert_eq!(got(&mut app, entity), [Nth(0, 1)]);
    assert_eq!(DuePlugin::default().inbox_capacity, 1 << 16);
}

#[test]
fn closing_delivers_queued_messages_and_hands_back_later_ones() {
    #[derive(Resource, Default)]
    struct Ran(u32);

    let (mut app, entity, sender) = sender_app(10);
    app.init_resource::<Ran>();
    // The component takes part in this last delivery.
    let newcomer = MessageComponent::new().on(|mut me: MessageContext, nth: &Nth| {
        me.commands.send(Delivery::All, Nth(2, nth.1));
        me.commands.send(Delivery::InTurn, Packet::new(nth.1, []));
    });
    app.world_mut().spawn(newcomer);
    app.world_mut().send(entity, Nth(0, 0)).unwrap();
    sender.send(entity, Nth(1, 1)).unwrap();
    sender
        .run(|world: &mut World| world.resource_mut::<Ran>().0 += 1)
        .unwrap();
    sender.send(Delivery::All, Nth(1, 2)).unwrap();
    let left = app.world_mut().close_inbox();
    assert_eq!(got(&mut app, entity), [Nth(0, 0), Nth(1, 1), Nth(1, 2)]);
    assert_eq!(app.world().resource::<Ran>().0, 1);
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(left[0].message(), Some(&Nth(2, 2)));
    assert_eq!(left[0].packet(), None);
    assert_eq!(left[1].packet(), Some(&Packet::new(2, [])));
    assert!(sender.is_closed());

    let stats = *app.world().resource::<MessageStats>();
    assert_eq!((stats.delivered, stats.undeliverable), (4, 0));
    assert!(app.world_mut().close_inbox().is_empty(), "a second time");
    advance_ms(&mut app, 10);
    assert_eq!(got(&mut app, entity), [], "what is handed back has gone");
}

#[test]
fn new_callbacks_get_messages_as_the_inbox_closes() {
    let (mut app, entity, sender) = sender_app(10);
    sender
        .run(move |world: &mut World| {
            world.entity_mut(entity).insert(listener());
        })
        .unwrap();
    sender.send(entity, Nth(0, 1)).unwrap();
    let left = app.world_mut().close_inbox();
    assert_eq!(got(&mut app, entity), [Nth(0, 1)]);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_function_runs_on_the_game_thread_in_its_turn() {
    let (mut app, entity, sender) = sender_app(10);
    let game = thread::current().id();
    let sent = thread::spawn(move || {
        let other = thread::current().id();
        sender.send(entity, Nth(0, 0)).unwrap();
        let function = move |world: &mut World| {
            assert_ne!(thread::current().id(), other);
            assert_eq!(thread::current().id(), game);
            let mut got = world.get_mut::<Got>(entity).unwrap();
            assert_eq!(got.0, [Nth(0, 0)], "after what was sent before");
            got.0.push(Nth(0, 1));
            world.commands().send(entity, Nth(1, 0));
        };
        sender.run(function).unwrap();
        sender.send(entity, Nth(0, 2)).unwrap();
    });
    sent.join().unwrap();
    advance_ms(&mut app, 10);
    assert_eq!(got(&mut app, entity), [Nth(0, 0), Nth(0, 1), Nth(0, 2)]);
    advance_ms(&mut app, 10);
    assert_eq!(got(&mut app, entity), [Nth(1, 0)], "in the next frame");
}

#[test]
fn a_function_may_do_anything() {
    let (mut app, entity, sender) = sender_app(10);
    sender
        .run(move |world: &mut World| {
            world.despawn(entity);
            world.spawn(listener());
            // This delivers the message behind the function.
            let left = world.close_inbox();
            assert!(left.is_empty());
        })
        .unwrap();
    sender.send(entity, Nth(0, 0)).unwrap();
    advance_ms(&mut app, 10);
    let stats = *app.world().resource::<MessageStats>();
    assert_eq!((stats.delivered, stats.undeliverable), (0, 1));
}

#[test]
fn messages_are_delivered_after_a_function_that_panics() {
    let (mut app, entity, sender) = sender_app(10);
    app.insert_resource(FallbackErrorHandler(|_, _| {}));
    sender.send(entity, Nth(0, 0)).unwrap();
    sender.run(|_: &mut World| panic!("on purpose")).unwrap();
    sender.send(entity, Nth(0, 1)).unwrap();
    advance_ms(&mut app, 10);
    // Bevy catches the panic of a command.
    assert_eq!(got(&mut app, entity), [Nth(0, 0), Nth(0, 1)]);
}

#[test]
fn a_panic_that_ends_the_game_loses_no_waiting_message() {
    let (mut app, entity, sender) = sender_app(10);
    sender.run(|_: &mut World| panic!("on purpose")).unwrap();
    sender.send(entity, Nth(0, 1)).unwrap();
    catch_unwind(AssertUnwindSafe(|| advance_ms(&mut app, 10))).unwrap_err();
    assert!(app.world_mut().close_inbox().is_empty());
    assert_eq!(got(&mut app, entity), [Nth(0, 1)]);
}

#[test]
fn messages_sent_by_threads_during_the_delivery_wait_for_the_next_frame() {
    let (mut app, entity, sender) = sender_app(10);
    let asks = MessageComponent::new().on(move |_: MessageContext, nth: &Nth| {
        let (sender, nth) = (sender.clone(), nth.1);
        // The game waits for this thread, so sending must not wait for the game.
        let send = thread::spawn(move || sender.send(entity, Nth(1, nth)));
        send.join().unwrap().unwrap();
    });
    let asking = app.world_mut().spawn(asks).id();
    for nth in 0..3 {
        app.world_mut().send(asking, Nth(0, nth)).unwrap();
        app.world_mut().send(entity, Nth(0, nth)).unwrap();
        advance_ms(&mut app, 10);
        let before = nth.checked_sub(1).map(|before| Nth(1, before));
        let expected: Vec<_> = [Nth(0, nth)].into_iter().chain(before).collect();
        assert_eq!(
            got(&mut app, entity),
            expected,
            "after what the world sends"
        );
    }
}

#[test]
fn a_sender_works_without_any_message_component() {
    #[derive(Resource, Default)]
    struct Ran(Vec<&'static str>);

    fn say(what: &'static str) -> impl FnOnce(&mut World) + Send {
        move |world: &mut World| world.resource_mut::<Ran>().0.push(what)
    }

    let mut app = app();
    app.init_resource::<Ran>();
    let sender = app.world_mut().message_sender();
    sender.run(say("at once")).unwrap();
    advance_ms(&mut app, 10);
    assert_eq!(app.world().resource::<Ran>().0, ["at once"]);

    // Sent from any schedule, during its run.
    for label in [
        First.intern(),
        PreUpdate.intern(),
        Update.intern(),
        Last.intern(),
    ] {
        let mut app = self::app();
        app.init_resource::<Ran>();
        let mut is_done = false;
        app.add_systems(label, move |sender: Local<MessageSender>| {
            if !core::mem::replace(&mut is_done, true) {
                sender.run(say("late")).unwrap();
            }
        });
        for _ in 0..3 {
            advance_ms(&mut app, 10);
        }
        assert_eq!(app.world().resource::<Ran>().0, ["late"], "{label:?}");
    }
}

#[test]
fn messages_from_the_first_timer_are_not_lost() {
    let mut app = app();
    let call = TimerAction::call(|world: &mut World, _| {
        let sender = world.message_sender();
        let entity = world.spawn(listener()).id();
        sender.send(entity, Nth(0, 0)).unwrap();
        world.send(entity, Nth(0, 1)).unwrap();
    });
    app.world_mut().spawn((Timer::after(ms(10)), call));
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 10);
    let mut listeners = app.world_mut().query_filtered::<Entity, With<Got>>();
    let entity = listeners.single(app.world()).unwrap();
    assert_eq!(got(&mut app, entity), [Nth(0, 1), Nth(0, 0)]);
}

#[test]
fn an_inbox_belongs_to_one_world() {
    let mut apps = [sender_app(10), sender_app(10)];
    let mut entities = Vec::new();
    for (nth, (_, entity, sender)) in (1..).zip(&apps) {
        sender.send(Delivery::All, Nth(nth, 0)).unwrap();
        entities.push((nth, *entity));
    }
    for ((app, ..), (nth, entity)) in apps.iter_mut().zip(entities) {
        advance_ms(app, 10);
        assert_eq!(got(app, entity), [Nth(nth, 0)]);
    }
}

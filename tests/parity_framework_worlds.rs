//! What the worlds of the component framework can do, row by row of the design: threads of kinds, and
//! what passes between them.

#![cfg(feature = "std")]

use core::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};
use std::{
    collections::HashSet,
    sync::mpsc::{self, Receiver, Sender},
    thread::{self, ThreadId},
};

use bevy_app::prelude::*;
use bevy_due::{
    LoopInterval, MessageStats, Parcel, Received, StableKey, Timer, WorldGroups, WorldLink,
    prelude::*,
};
use bevy_ecs::prelude::*;

const LOGIN: u32 = 1;
const SHUT_DOWN: u32 = 2;
const WHO_IS_THERE: u32 = 3;
const LIST: u32 = 4;

fn next<T>(receiver: &Receiver<T>) -> T {
    let next = receiver.recv_timeout(Duration::from_secs(10));
    next.expect("it should have come long ago")
}

/// Builds worlds that tell which of them has been given which packet.
fn worlds(given: Sender<(u32, u32)>) -> impl Fn(&mut App) + Send + Sync + 'static {
    let worlds = AtomicU32::new(0);
    move |app| {
        let nth = worlds.fetch_add(1, Ordering::Relaxed);
        let mut component = MessageComponent::new();
        for id in [LOGIN, SHUT_DOWN] {
            let given = given.clone();
            component = component.on_packet(id, move |_: MessageContext, packet: &Packet| {
                given.send((packet.id(), nth)).ok();
            });
        }
        app.world_mut().spawn(component);
    }
}

/// Broadcast to all threads of a kind, or to exactly one in turn (round robin).
#[test]
fn a_packet_goes_to_all_threads_of_a_kind_or_to_exactly_one_in_turn() {
    let (give, given) = mpsc::channel();
    let mut groups = WorldGroups::new();
    groups.start("logic", 3, worlds(give)).unwrap();
    // From a thread of another kind, as it does with what it has read from a connection.
    let listen = |app: &mut App| {
        app.add_systems(Startup, |mut commands: Commands| {
            for _ in 0..6 {
                commands.post(Parcel::new(
                    "logic",
                    Delivery::InTurn,
                    Packet::new(LOGIN, []),
                ));
            }
            commands.post(Parcel::new(
                "logic",
                Delivery::All,
                Packet::new(SHUT_DOWN, []),
            ));
        });
    };
    groups.start("listen", 1, listen).unwrap();
    let mut all: Vec<_> = (0..9).map(|_| next(&given)).collect();
    groups.stop();
    assert_eq!(given.iter().count(), 0);
    all.sort();
    let one = |packet, world| (packet, world);
    let expected = [
        [0, 0, 1, 1, 2, 2].map(|world| one(LOGIN, world)).to_vec(),
        [0, 1, 2].map(|world| one(SHUT_DOWN, world)).to_vec(),
    ];
    assert_eq!(all, expected.concat());
}

/// Threads of kinds (main, listen, connect, logic, database), each with its own world and loop.
#[test]
fn there_are_threads_of_kinds_each_with_its_own_world_and_loop() {
    #[derive(Resource, Default)]
    struct Frames(u32);

    let (tell, told) = mpsc::channel::<(String, ThreadId)>();
    let kinds = [("listen", 1), ("connect", 2), ("logic", 2), ("database", 1)];
    let mut groups = WorldGroups::new();
    for (nth, (kind, threads)) in kinds.into_iter().enumerate() {
        let tell = tell.clone();
        let build = move |app: &mut App| {
            let tell = tell.clone();
            let tenth = move |frames: Res<Frames>, link: Res<WorldLink>| {
                if frames.0 == 10 {
                    tell.send((link.group().into(), thread::current().id()))
                        .ok();
                }
            };
            app.init_resource::<Frames>()
                // Each kind at a pace of its own.
                .insert_resource(LoopInterval(Duration::from_micros(100 << nth)))
                .add_systems(
                    Update,
                    (|mut frames: ResMut<Frames>| frames.0 += 1, tenth).chain(),
                );
        };
        groups.start(kind, threads, build).unwrap();
    }
    // And the main thread with its own.
    let mut main = App::new();
    main.add_plugins((bevy_time::TimePlugin, DuePlugin));
    groups.join("main", &mut main);
    main.update();

    let all: HashSet<_> = (0..6).map(|_| next(&told)).collect();
    let threads: HashSet<_> = all.iter().map(|(_, thread)| *thread).collect();
    assert_eq!(threads.len(), 6, "each has one of its own");
    for (kind, threads) in kinds {
        let of_kind = all.iter().filter(|(group, _)| group == kind);
        assert_eq!(of_kind.count(), threads, "{kind}");
        assert_eq!(groups.running(kind), threads);
    }
    assert_eq!(groups.running("main"), 1);
    let reports = groups.stop();
    assert_eq!(reports.len(), 6);
    assert!(reports.iter().all(|report| report.panic.is_none()));
}

/// See all live objects of a thread.
#[test]
fn a_thread_is_asked_for_a_list_of_its_objects() {
    #[derive(Component)]
    struct Asker;

    /// Lists what has a name, with its timers, and what has become of the messages.
    fn list(
        In(question): In<Received<Question>>,
        named: Query<(&Name, Option<&Timers>), Without<Clock>>,
        stats: Res<MessageStats>,
        mut commands: Commands,
    ) {
        let mut lines: Vec<_> = named
            .iter()
            .map(|(name, timers)| format!("{name}: {}", timers.map_or(0, Timers::len)))
            .collect();
        lines.sort();
        lines.push(format!("delivered: {}", stats.delivered));
        let list = Packet::new(LIST, lines.join(", ").into_bytes());
        commands.answer(question.message.0.clone(), list);
    }

    /// A packet is for closures; those who need the world pass it on to a system.
    #[derive(Message, Clone)]
    struct Question(bevy_due::ReplyTo);

    let logic = |app: &mut App| {
        let list = app.register_system(list);
        let registry = MessageComponent::new()
            .on_packet(WHO_IS_THERE, |mut me: MessageContext, _: &Packet| {
                let reply_to = me.reply_to().unwrap().clone();
                let me_too = me.entity.id();
                me.commands.send(me_too, Question(reply_to));
            })
            .on_system(list);
        app.world_mut().spawn((StableKey(1), registry));
        let world = app.world_mut();
        world.spawn(Name::new("guard"));
        world.spawn((
            Name::new("boss"),
            related!(Timers[Timer::after_secs(60.0), Timer::every_secs(8.0)]),
        ));
    };
    let (tell, told) = mpsc::channel();
    let console = move |app: &mut App| {
        let tell = tell.clone();
        let print = move |_: MessageContext, list: &Packet| {
            tell.send(String::from_utf8_lossy(list.payload()).into_owned())
                .ok();
        };
        let asker = MessageComponent::new().on_packet(LIST, print);
        app.world_mut().spawn((Asker, StableKey(1), asker));
        let ask = |asker: Single<Entity, With<Asker>>, mut commands: Commands| {
            let question = Parcel::new("logic", StableKey(1), Packet::new(WHO_IS_THERE, []));
            let mut asker = commands.entity(*asker);
            asker.ask_world(question, Timer::after_secs(60.0));
        };
        app.add_systems(Startup, ask);
    };
    let mut groups = WorldGroups::new();
    groups.start("logic", 1, logic).unwrap();
    groups.start("console", 1, console).unwrap();
    // The question, and what is passed on: that it is being delivered is counted already.
    assert_eq!(next(&told), "boss: 2, guard: 0, delivered: 2");
}

//! The features of an entity-component-system framework for servers, one by one.

use core::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use std::sync::Arc;

use crate::support::{updates::*, *};
use allocation_counter::measure;
use bevy_app::{App, Update};
use bevy_due::{ArmedTimers, Timer, UpdateContext, prelude::*};
use bevy_ecs::{
    lifecycle::Remove,
    prelude::*,
    schedule::{Schedules, SingleThreadedExecutor},
    system::SystemState,
};
use bevy_time::{Fixed, Time};

/// Collections of components: additions and removals wait for a swap in the next frame. Here,
/// additions wait, but removals take effect immediately.
#[test]
fn additions_wait_for_the_next_frame_and_removals_do_not() {
    let mut app = update_app();
    let b = app.world_mut().spawn_empty().id();
    app.world_mut().spawn(doing("a", move |world, a| {
        world.spawn(say("new"));
        world.spawn((Tag("new timer"), Timer::after(ms(0))));
        world.entity_mut(b).remove::<UpdateComponent>();
        world.entity_mut(a).remove::<UpdateComponent>();
    }));
    app.world_mut().entity_mut(b).insert(say("b"));
    app.world_mut().spawn(say("c"));
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "c"], "removed at once");
    assert!(fired(&mut app).is_empty());
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["c", "new"], "added with the swap");
    assert_eq!(fired(&mut app), ["new timer"]);
}

/// Update components: each holds a function. Any entity can gain or lose one at run time.
#[test]
fn any_entity_can_gain_and_lose_a_callback_at_run_time() {
    let mut app = update_app();
    let timer = spawn(&mut app, "a timer", Timer::every(ms(10)));
    let clock = app.world_mut().spawn(Clock::new()).id();
    let plain = app.world_mut().spawn_empty().id();
    advance_ms(&mut app, 5);
    for (entity, what) in [(timer, "timer"), (clock, "clock"), (plain, "plain")] {
        app.world_mut().entity_mut(entity).insert(say(what));
    }
    advance_ms(&mut app, 5);
    assert_eq!(called(&mut app), ["timer", "clock", "plain"]);
    assert_eq!(fired(&mut app), ["a timer"]);

    app.world_mut().entity_mut(clock).insert(say("another"));
    app.world_mut()
        .entity_mut(timer)
        .remove::<UpdateComponent>();
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["plain", "another"]);
    assert_eq!(fired(&mut app), ["a timer"], "it has lost only that");
}

/// Pools of reused objects, without locks. Here, adding and removing timers and callbacks in every
/// frame allocates nothing in the steady state.
#[test]
fn adding_and_removing_in_every_frame_allocates_nothing() {
    #[derive(Component)]
    struct Churn(UpdateComponent);

    let mut app = unobserved_app();
    // Bevy drops old messages only after a fixed step, so let every frame have one.
    app.insert_resource(Time::<Fixed>::from_duration(ms(10)));
    let calls = Arc::new(AtomicU64::new(0));
    let counter = calls.clone();
    let update = UpdateComponent::new(move |_: UpdateContext| {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    for nth in 0..20 {
        let update = update.clone().with_priority(nth % 5);
        app.world_mut().spawn(Churn(update));
    }
    app.add_systems(
        Update,
        |churning: Query<(Entity, &Churn, Has<UpdateComponent>)>, mut commands: Commands| {
            for (entity, Churn(update), is_in) in &churning {
                match is_in {
                    true => commands.entity(entity).remove::<(UpdateComponent, Timer)>(),
                    false => commands
                        .entity(entity)
                        .insert((update.clone(), Timer::every(ms(30)))),
                };
                commands.spawn((Timer::after(ms(10)), TimerAction::despawn()));
            }
        },
    );
    for (_, schedule) in app.world_mut().resource_mut::<Schedules>().iter_mut() {
        schedule.set_executor(SingleThreadedExecutor::new());
    }
    let run = |app: &mut App, frames| (0..frames).for_each(|_| advance_ms(app, 10));
    run(&mut app, 100);
    let before = calls.load(Ordering::Relaxed);
    let frames = measure(|| run(&mut app, 100));
    assert_eq!(calls.load(Ordering::Relaxed) - before, 10 * 100);
    assert_eq!(frames.count_total, 0, "{frames:?}");
}

/// Spawns a timer from the arguments of the framework's `add`.
fn add(
    app: &mut App,
    owner: Entity,
    total: Option<u32>,
    interval: Duration,
    at_once: bool,
    first_delay: Option<Duration>,
    function: &'static str,
) -> Entity {
    let mut timer = Timer::every(interval);
    if let Some(total) = total {
        timer = timer.times(total);
    }
    if at_once {
        timer = timer.immediately();
    }
    if let Some(first_delay) = first_delay {
        timer = timer.first_after(first_delay);
    }
    let call = TimerAction::call(move |world: &mut World, _: TimerFired| note(world, function));
    app.world_mut().spawn((OwnedBy(owner), timer, call)).id()
}

/// Timer heap: `add(total, interval, at_once, first_delay, function)`.
#[test]
fn a_timer_can_have_a_total_an_interval_a_first_delay_and_a_function() {
    let mut app = update_app();
    let owner = app.world_mut().spawn_empty().id();
    let mut add = |total, at_once, first_delay, function| {
        add(
            &mut app,
            owner,
            total,
            ms(20),
            at_once,
            first_delay,
            function,
        );
    };
    add(Some(2), false, None, "twice");
    add(None, false, None, "for ever");
    add(Some(2), true, None, "at once");
    add(Some(1), false, Some(ms(10)), "delayed");
    let expected: [&[&str]; 6] = [
        &["at once"],
        &["delayed"],
        &["twice", "for ever", "at once"],
        &[],
        &["twice", "for ever"],
        &[],
    ];
    for (nth, expected) in expected.into_iter().enumerate() {
        advance_ms(&mut app, if nth == 0 { 0 } else { 10 });
        assert_eq!(called(&mut app), expected, "after {} ms", 10 * nth);
    }
}

/// Timer heap: remove a list of timers.
#[test]
fn a_list_of_timers_can_be_removed() {
    let mut app = update_app();
    let owner = app.world_mut().spawn_empty().id();
    let mut add = |function| add(&mut app, owner, None, ms(10), false, None, function);
    let list = [add("a"), add("b"), add("c")];
    let d = add("d");
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "b", "c", "d"]);
    let mut commands = app.world_mut().commands();
    for timer in list {
        commands.entity(timer).despawn();
    }
    app.world_mut().flush();
    assert_eq!(owned(app.world(), owner), [d]);
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["d"]);
}

/// Timers die with their component. Here, they die with their entity, and an observer can cancel
/// them when a component is removed.
#[test]
fn timers_and_callbacks_die_with_their_component() {
    #[derive(Component)]
    struct Connection;

    fn close(closed: On<Remove<Connection>>, mut commands: Commands) {
        if closed.trigger().new_archetype.is_some() {
            let mut entity = commands.entity(closed.entity);
            entity.cancel_timers().despawn_related::<Owned>();
        }
    }

    let mut app = update_app();
    app.add_observer(close);
    let entities = [1, 2].map(|_| {
        let entity = app.world_mut().spawn(Connection).id();
        add(&mut app, entity, None, ms(10), false, None, "ping");
        app.world_mut().spawn((OwnedBy(entity), say("read")));
        entity
    });
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["ping", "ping", "read", "read"]);
    let [kept, gone] = entities;
    app.world_mut().entity_mut(kept).remove::<Connection>();
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["ping", "read"], "those of the other");
    assert!(app.world().get_entity(kept).is_ok());
    app.world_mut().despawn(gone);
    advance_ms(&mut app, 10);
    assert!(called(&mut app).is_empty());
}

/// List all live objects of a thread.
#[test]
fn all_live_timers_and_callbacks_can_be_listed() {
    let mut app = update_app();
    let owner = app.world_mut().spawn_empty().id();
    let ping = add(&mut app, owner, None, ms(10), false, None, "ping");
    app.world_mut().entity_mut(ping).insert(Name::new("ping"));
    for (name, priority) in [("read", 1), ("think", 2)] {
        let update = say(name).with_priority(priority);
        app.world_mut()
            .spawn((Name::new(name), OwnedBy(owner), update));
    }
    let mut timers = SystemState::<ArmedTimers>::new(app.world_mut());
    let mut updates = app.world_mut().query::<(&Name, &UpdateComponent)>();
    for frame in 0..2 {
        let timers = timers.get(app.world()).unwrap();
        assert_eq!(timers.count(), 1);
        let listing = timers.to_string();
        assert!(listing.contains("ping"), "{listing}");
        let mut seen: Vec<_> = updates
            .iter(app.world())
            .map(|(name, update)| (update.priority(), name.as_str()))
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, [(1, "read"), (2, "think")], "frame {frame}");
        advance_ms(&mut app, 10);
    }
    app.world_mut().despawn(owner);
    assert_eq!(timers.get(app.world()).unwrap().count(), 0);
    assert_eq!(updates.iter(app.world()).count(), 0);
}

/// Poll in an update callback where that is simpler than a timer.
#[test]
fn a_callback_can_poll_until_data_arrives() {
    /// The value that another thread has stored, or zero.
    #[derive(Component, Clone, Default)]
    struct Socket(Arc<AtomicU64>);

    #[derive(Component)]
    struct Received(u64);

    let poll = UpdateComponent::new(|mut me: UpdateContext| {
        let received = me
            .entity
            .get::<Socket>()
            .unwrap()
            .0
            .swap(0, Ordering::Relaxed);
        if received > 0 {
            let mut socket = me.commands.entity(me.entity.id());
            socket
                .insert(Received(received))
                .remove::<UpdateComponent>();
        }
    });
    let mut app = update_app();
    let socket = Socket::default();
    let entity = app.world_mut().spawn((socket.clone(), poll)).id();
    advance_ms(&mut app, 10);
    assert!(!app.world().entity(entity).contains::<Received>());
    std::thread::spawn(move || socket.0.store(7, Ordering::Relaxed))
        .join()
        .unwrap();
    advance_ms(&mut app, 10);
    assert_eq!(app.world().get::<Received>(entity).unwrap().0, 7);
    assert!(!app.world().entity(entity).contains::<UpdateComponent>());
}

/// Message components and the message system.
mod messages {
    use std::{sync::Arc, thread};

    use crate::support::*;
    use bevy_app::App;
    use bevy_due::{
        message::{Delivery, MessageContext, MessageStats, MessageWorldExt, Packet},
        prelude::*,
    };
    use bevy_ecs::prelude::*;

    /// The receiver's name and the packet id of each delivery, in order.
    #[derive(Resource, Default)]
    struct Received(Vec<(&'static str, u32)>);

    fn framework_app() -> App {
        let mut app = app();
        app.init_resource::<Received>();
        app
    }

    /// Returns a component that follows packets with these ids, and logs them under `name`.
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

    /// Sends an entity the packets 1 to 4, and returns the ids that it received.
    fn received_of_four(app: &mut App, entity: Entity) -> Vec<u32> {
        for id in 1..=4 {
            app.world_mut().send(entity, Packet::new(id, [])).unwrap();
        }
        advance_ms(app, 10);
        received(app).into_iter().map(|(_, id)| id).collect()
    }

    /// Message components: each follows message ids, with a function per id. It can be replaced at
    /// run time (it follows 1 and 2, later 3 and 4).
    #[test]
    fn an_entity_follows_1_and_2_and_later_3_and_4() {
        let mut app = framework_app();
        let entity = app.world_mut().spawn(following("x", &[1, 2])).id();
        assert_eq!(received_of_four(&mut app, entity), [1, 2]);
        app.world_mut()
            .entity_mut(entity)
            .insert(following("x", &[3, 4]));
        assert_eq!(received_of_four(&mut app, entity), [3, 4]);

        // The entity replaces its own component during a frame. Later packets go to the new one.
        let changing = following("x", &[1]).on_packet(2, |mut me: MessageContext, _: &Packet| {
            let mut me = me.commands.entity(me.entity.id());
            me.insert(following("x", &[3, 4]));
        });
        app.world_mut().entity_mut(entity).insert(changing);
        assert_eq!(received_of_four(&mut app, entity), [1, 3, 4]);

        app.world_mut()
            .entity_mut(entity)
            .remove::<MessageComponent>();
        assert_eq!(received_of_four(&mut app, entity), [0; 0]);
    }

    /// Message system: packets from any thread are queued under a lock, double-buffered, dispatched
    /// each frame, and freed after the last reader.
    #[test]
    fn packets_from_any_thread_are_dispatched_each_frame_and_freed_after_the_last_reader() {
        /// The last packet, which its reader keeps.
        #[derive(Component, Default)]
        struct Kept(Option<Packet>);

        let mut app = framework_app();
        app.world_mut().spawn(following("reader", &[1]));
        let keeps =
            MessageComponent::new().on_packet(1, |mut me: MessageContext, packet: &Packet| {
                me.entity.get_mut::<Kept>().unwrap().0 = Some(packet.clone());
            });
        let keeper = app.world_mut().spawn((Kept::default(), keeps)).id();
        let sender = app.world_mut().message_sender();
        let bytes: Arc<[u8]> = Arc::from(*b"hello");
        let thread_sender = sender.clone();
        let to_send = Packet::new(1, bytes.clone());
        let thread = thread::spawn(move || thread_sender.send(Delivery::All, to_send));
        thread.join().unwrap().unwrap();
        assert_eq!(Arc::strong_count(&bytes), 2, "queued");

        // This reader queues the next packet while the first one is dispatched.
        let next =
            MessageComponent::new().on_packet(1, move |_: MessageContext, packet: &Packet| {
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

    /// Broadcast to all entities of a kind, or send to exactly one in turn (round robin).
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
            app.world_mut().send(delivery, Packet::new(id, [])).unwrap();
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
}

/// Kinds of threads, and the packets that they exchange.
#[cfg(feature = "worlds")]
mod worlds {
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
        Timer,
        message::{Delivery, MessageCommandsExt, MessageContext, MessageStats, Packet, ReplyTo},
        prelude::*,
        worlds::{
            LoopInterval, Parcel, ParcelCommandsExt, ParcelEntityCommandsExt, StableKey,
            WorldGroups, WorldLink,
        },
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

    /// Builds worlds that report the id of each packet they receive, and the number of the world.
    fn worlds(report: Sender<(u32, u32)>) -> impl Fn(&mut App) + Send + Sync + 'static {
        let worlds = AtomicU32::new(0);
        move |app| {
            let nth = worlds.fetch_add(1, Ordering::Relaxed);
            let mut component = MessageComponent::new();
            for id in [LOGIN, SHUT_DOWN] {
                let report = report.clone();
                component = component.on_packet(id, move |_: MessageContext, packet: &Packet| {
                    report.send((packet.id(), nth)).ok();
                });
            }
            app.add_plugins(DuePlugin::default())
                .world_mut()
                .spawn(component);
        }
    }

    /// Broadcast to all threads of a kind, or send to exactly one in turn (round robin).
    #[test]
    fn a_packet_goes_to_all_threads_of_a_kind_or_to_exactly_one_in_turn() {
        let (report, reports) = mpsc::channel();
        let mut groups = WorldGroups::new();
        groups.start("logic", 3, worlds(report)).unwrap();
        // A thread of another kind sends the packets, as if it had read them from a connection.
        let listen = |app: &mut App| {
            app.add_plugins(DuePlugin::default());
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
        let mut all: Vec<_> = (0..9).map(|_| next(&reports)).collect();
        groups.stop();
        assert_eq!(reports.iter().count(), 0);
        all.sort();
        let one = |packet, world| (packet, world);
        let expected = [
            [0, 0, 1, 1, 2, 2].map(|world| one(LOGIN, world)).to_vec(),
            [0, 1, 2].map(|world| one(SHUT_DOWN, world)).to_vec(),
        ];
        assert_eq!(all, expected.concat());
    }

    /// Threads of several kinds (main, listen, connect, logic, database), each with its own world
    /// and loop.
    #[test]
    fn every_thread_of_every_kind_has_its_own_world_and_loop() {
        #[derive(Resource, Default)]
        struct Frames(u32);

        let (tell, told) = mpsc::channel::<(String, ThreadId)>();
        let kinds = [("listen", 1), ("connect", 2), ("logic", 2), ("database", 1)];
        let mut groups = WorldGroups::new();
        for (nth, (kind, threads)) in kinds.into_iter().enumerate() {
            let tell = tell.clone();
            let build = move |app: &mut App| {
                let tell = tell.clone();
                let report_tenth = move |frames: Res<Frames>, link: Res<WorldLink>| {
                    if frames.0 == 10 {
                        tell.send((link.group().into(), thread::current().id()))
                            .ok();
                    }
                };
                app.add_plugins(DuePlugin::default())
                    .init_resource::<Frames>()
                    // Each kind runs at its own pace.
                    .insert_resource(LoopInterval::Every(Duration::from_micros(100 << nth)))
                    .add_systems(
                        Update,
                        (|mut frames: ResMut<Frames>| frames.0 += 1, report_tenth).chain(),
                    );
            };
            groups.start(kind, threads, build).unwrap();
        }
        // The main thread also has its own world.
        let mut main = App::new();
        main.add_plugins((bevy_time::TimePlugin, DuePlugin::default()));
        groups.add("main", &mut main);
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

    /// List all live objects of a thread.
    #[test]
    fn a_thread_lists_its_objects_on_request() {
        #[derive(Component)]
        struct Asker;

        /// Replies with the named entities, their numbers of timers, and the number of messages
        /// delivered.
        fn list(
            In(asker): In<ReplyTo>,
            named: Query<(&Name, Option<&Owned>), Without<Clock>>,
            stats: Res<MessageStats>,
            mut commands: Commands,
        ) {
            let mut lines: Vec<_> = named
                .iter()
                .map(|(name, owned)| format!("{name}: {}", owned.map_or(0, |owned| owned.len())))
                .collect();
            lines.sort();
            lines.push(format!("delivered: {}", stats.delivered));
            let list = Packet::new(LIST, lines.join(", ").into_bytes());
            commands.reply(asker, list);
        }

        let logic = |app: &mut App| {
            let list = app.register_system(list);
            let listing = move |mut me: MessageContext, _: &Packet| {
                let asker = me.reply_to().unwrap().clone();
                me.commands.run_system_with(list, asker);
            };
            app.add_plugins(DuePlugin::default());
            let registry = MessageComponent::new().on_packet(WHO_IS_THERE, listing);
            app.world_mut().spawn((StableKey(1), registry));
            let world = app.world_mut();
            world.spawn(Name::new("guard"));
            world.spawn((
                Name::new("boss"),
                related!(Owned[Timer::after(60.0), Timer::every(8.0)]),
            ));
        };
        let (tell, told) = mpsc::channel();
        let console = move |app: &mut App| {
            app.add_plugins(DuePlugin::default());
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
                asker.ask_world(question, Timer::after(60.0));
            };
            app.add_systems(Startup, ask);
        };
        let mut groups = WorldGroups::new();
        groups.start("logic", 1, logic).unwrap();
        groups.start("console", 1, console).unwrap();
        // The request itself does not count yet, because its delivery is not over.
        assert_eq!(next(&told), "boss: 2, guard: 0, delivered: 0");
    }
}

//! Messages to entities. Each entity sums up the values that it receives.

use std::{
    sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    thread,
};

use bevy_app::prelude::*;
use bevy_due::{
    DueSystems,
    message::{Delivery, MessageContext, MessageSender, MessageWorldExt, Outbox, SendError},
    prelude::*,
};
use bevy_ecs::prelude::*;
use bevy_platform::cell::SyncCell;
use bevy_time::TimePlugin;

use crate::{
    contenders::on_one_thread,
    frames::frames,
    sides::{Done, Side, Table, timed},
    work::random,
};

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

/// One in this many entities follows the broadcast messages.
const ENTITIES_PER_FOLLOWER: usize = 100;

/// The number of messages broadcast per frame.
const BROADCASTS: u64 = 10;

const THREADS: [usize; 2] = [1, 4];

/// The capacity of the inbox and of the channels.
const CAPACITY: usize = 1 << 14;

/// The number of entities that receive messages from other threads.
const RECEIVERS: usize = 1_000;

/// The sum of the values that an entity has received so far.
#[derive(Component, Default)]
struct Sum(u64);

#[derive(Message, Clone, Copy)]
struct Hit(u64);

/// The message that all other entities follow.
#[derive(Message)]
struct Miss;

/// Marks the followers in a peer's app.
#[derive(Component)]
struct Follows;

/// A [`Hit`] as an entity event.
#[derive(EntityEvent)]
struct HitOn {
    entity: Entity,
    by: u64,
}

/// A [`Hit`] as a global event.
#[derive(Event)]
struct HitAt {
    entity: Entity,
    by: u64,
}

pub fn compare(table: &mut Table) {
    for n in SIZES {
        for (peer, theirs) in [
            ("entity_observers", entity_observers as fn(usize) -> App),
            ("shared_observer", shared_observer),
        ] {
            let side = |app: fn(usize) -> App| {
                move |units| frames(on_one_thread(app(n)), units / n + 1, n, checksum)
            };
            let name = ("message_to_one", n, peer);
            table.line(name, None, side(message_to_one), side(theirs));
        }
    }
    for n in SIZES {
        for (peer, theirs) in [
            ("global_observer", global_observer as fn(usize) -> App),
            ("message_reader", message_reader),
        ] {
            let side = |app: fn(usize) -> App| {
                let deliveries = BROADCASTS as usize * n / ENTITIES_PER_FOLLOWER;
                move |units| {
                    let app = on_one_thread(app(n));
                    frames(app, units / deliveries + 1, deliveries, checksum)
                }
            };
            let name = ("message_broadcast", n, peer);
            table.line(name, None, side(message_to_all), side(theirs));
        }
    }
    for n in THREADS {
        let name = "message_from_thread";
        table.line((name, n, "sync_channel"), None, sender(n), channel(n));
        table.line(
            (name, n, "crossbeam_channel"),
            None,
            sender(n),
            crossbeam(n),
        );
    }
}

fn app() -> App {
    let mut app = App::new();
    app.add_plugins(TimePlugin).init_resource::<Frame>();
    app.add_systems(First, |mut frame: ResMut<Frame>| frame.0 += 1);
    app
}

fn due_app() -> App {
    let mut app = app();
    app.add_plugins(DuePlugin::default());
    app
}

/// The number of frames run so far.
#[derive(Resource, Default)]
struct Frame(u64);

impl Frame {
    /// Returns the value sent in this frame.
    fn by(&self) -> u64 {
        random(self.0) % 100
    }
}

fn adding() -> MessageComponent {
    MessageComponent::new().on(|mut me: MessageContext, hit: &Hit| {
        if let Some(mut sum) = me.entity.get_mut::<Sum>() {
            sum.0 += hit.0;
        }
    })
}

fn checksum(app: &mut App) -> u64 {
    let mut sums = app.world_mut().query::<&Sum>();
    sums.iter(app.world()).map(|sum| sum.0).sum()
}

/// This crate's outbox, which sends a message to each entity.
fn message_to_one(n: usize) -> App {
    let mut app = due_app();
    app.world_mut()
        .spawn_batch((0..n).map(|_| (Sum(0), adding())));
    app.add_systems(
        PreUpdate,
        (|entities: Query<Entity, With<Sum>>, frame: Res<Frame>, mut outbox: Outbox| {
            let hit = Hit(frame.by());
            for entity in &entities {
                outbox.send(entity, hit).unwrap();
            }
        })
        .before(DueSystems::Messages),
    );
    app
}

fn add_to(hit: On<HitOn>, mut sums: Query<&mut Sum>) {
    if let Ok(mut sum) = sums.get_mut(hit.entity) {
        sum.0 += hit.by;
    }
}

fn trigger_each(entities: Query<Entity, With<Sum>>, frame: Res<Frame>, mut commands: Commands) {
    let by = frame.by();
    for entity in &entities {
        commands.trigger(HitOn { entity, by });
    }
}

/// An observer per entity.
fn entity_observers(n: usize) -> App {
    let mut app = app();
    for _ in 0..n {
        app.world_mut().spawn(Sum(0)).observe(add_to);
    }
    app.add_systems(PreUpdate, trigger_each);
    app
}

/// One observer that watches all entities.
fn shared_observer(n: usize) -> App {
    let mut app = app();
    let entities = app.world_mut().spawn_batch((0..n).map(|_| Sum(0)));
    let observer = Observer::new(add_to).with_entities(entities.collect::<Vec<_>>());
    app.world_mut().spawn(observer);
    app.add_systems(PreUpdate, trigger_each);
    app
}

/// This crate's outbox, which broadcasts to all followers.
fn message_to_all(n: usize) -> App {
    let mut app = due_app();
    let missing = MessageComponent::new().on(|_: MessageContext, _: &Miss| ());
    for nth in 0..n {
        let component = if nth % ENTITIES_PER_FOLLOWER == 0 {
            adding()
        } else {
            missing.clone()
        };
        app.world_mut().spawn((Sum(0), component));
    }
    app.add_systems(
        PreUpdate,
        (|frame: Res<Frame>, mut outbox: Outbox| {
            let hit = Hit(frame.by());
            for _ in 0..BROADCASTS {
                outbox.send(Delivery::All, hit).unwrap();
            }
        })
        .before(DueSystems::Messages),
    );
    app
}

fn spawn_followers(app: &mut App, n: usize) {
    for nth in 0..n {
        let mut entity = app.world_mut().spawn(Sum(0));
        if nth % ENTITIES_PER_FOLLOWER == 0 {
            entity.insert(Follows);
        }
    }
}

/// A global observer, triggered once per follower.
fn global_observer(n: usize) -> App {
    let mut app = app();
    spawn_followers(&mut app, n);
    app.add_observer(|hit: On<HitAt>, mut sums: Query<&mut Sum>| {
        if let Ok(mut sum) = sums.get_mut(hit.entity) {
            sum.0 += hit.by;
        }
    });
    app.add_systems(
        PreUpdate,
        |followers: Query<Entity, With<Follows>>, frame: Res<Frame>, mut commands: Commands| {
            let by = frame.by();
            for _ in 0..BROADCASTS {
                for entity in &followers {
                    commands.trigger(HitAt { entity, by });
                }
            }
        },
    );
    app
}

/// A system that reads each message and adds its value to every follower.
fn message_reader(n: usize) -> App {
    let mut app = app();
    spawn_followers(&mut app, n);
    app.add_message::<Hit>();
    let write = |frame: Res<Frame>, mut hits: MessageWriter<Hit>| {
        let hit = Hit(frame.by());
        for _ in 0..BROADCASTS {
            hits.write(hit);
        }
    };
    let read = |mut hits: MessageReader<Hit>, mut sums: Query<&mut Sum, With<Follows>>| {
        for hit in hits.read() {
            for mut sum in &mut sums {
                sum.0 += hit.0;
            }
        }
    };
    app.add_systems(PreUpdate, (write, read).chain());
    app
}

/// Sends a message without waiting. Returns `false` if there is no room.
type Send = Box<dyn FnMut(Entity, Hit) -> bool + core::marker::Send>;

/// Returns a side in which threads send as fast as they can, while the app runs frames until all
/// messages have arrived.
fn from_threads(
    mut app: App,
    receivers: Vec<Entity>,
    threads: usize,
    units: usize,
    send: impl Fn() -> Send + 'static,
) -> Side {
    let messages_per_thread = units / threads;
    let mut app = {
        app.update();
        on_one_thread(app)
    };
    let mut done = Done::default();
    Box::new(move || {
        let sending: Vec<_> = (0..threads)
            .map(|index| (index, send(), receivers.clone()))
            .collect();
        done.units += (threads * messages_per_thread) as u64;
        let time = timed(|| {
            let threads: Vec<_> = sending
                .into_iter()
                .map(|(index, mut send, receivers)| {
                    thread::spawn(move || {
                        for nth in 0..messages_per_thread {
                            let to = receivers[(index + nth) % receivers.len()];
                            while !send(to, Hit(1)) {
                                thread::yield_now();
                            }
                        }
                    })
                })
                .collect();
            let mut is_over = false;
            while !is_over {
                // Checked before the frame, so that the last frame receives all remaining messages.
                is_over = threads.iter().all(|thread| thread.is_finished());
                app.update();
            }
        });
        done.checksum = checksum(&mut app);
        assert_eq!(done.checksum, done.units, "all has arrived");
        (time, done)
    })
}

fn spawn_receivers<B: Bundle>(app: &mut App, bundle: impl Fn() -> B) -> Vec<Entity> {
    let bundles = (0..RECEIVERS).map(|_| bundle()).collect::<Vec<_>>();
    let receivers = bundles
        .into_iter()
        .map(|bundle| app.world_mut().spawn(bundle).id());
    receivers.collect()
}

/// This crate's [`MessageSender`].
fn sender(threads: usize) -> impl FnOnce(usize) -> Side {
    move |units| {
        let mut app = app();
        app.add_plugins(DuePlugin {
            inbox_capacity: CAPACITY,
            ..DuePlugin::default()
        });
        let receivers = spawn_receivers(&mut app, || (Sum(0), adding()));
        let sender = app.world_mut().message_sender();
        let send = move || -> Send {
            let sender: MessageSender = sender.clone();
            Box::new(move |to, hit| match sender.send(to, hit) {
                Ok(()) => true,
                Err(SendError::Full(_)) => false,
                Err(SendError::Closed(_)) => unreachable!("the app is still there"),
            })
        };
        from_threads(app, receivers, threads, units, send)
    }
}

/// Returns an app with receivers, and with a system that delivers the messages from `receive`.
fn app_with_receivers(
    mut receive: impl FnMut() -> Option<(Entity, Hit)> + core::marker::Send + Sync + 'static,
) -> (App, Vec<Entity>) {
    let mut app = app();
    let receivers = spawn_receivers(&mut app, || Sum(0));
    app.add_systems(PreUpdate, move |mut sums: Query<&mut Sum>| {
        // At most one full channel per frame, even if the threads keep sending.
        for _ in 0..CAPACITY {
            let Some((to, hit)) = receive() else { break };
            if let Ok(mut sum) = sums.get_mut(to) {
                sum.0 += hit.0;
            }
        }
    });
    (app, receivers)
}

/// The channel of the standard library.
fn channel(threads: usize) -> impl FnOnce(usize) -> Side {
    move |units| {
        let (sender, receiver): (SyncSender<_>, Receiver<_>) = sync_channel(CAPACITY);
        let mut receiver = SyncCell::new(receiver);
        let (app, receivers) = app_with_receivers(move || receiver.get().try_recv().ok());
        let send = move || -> Send {
            let sender = sender.clone();
            Box::new(move |to, hit| match sender.try_send((to, hit)) {
                Ok(()) => true,
                Err(TrySendError::Full(_)) => false,
                Err(TrySendError::Disconnected(_)) => unreachable!("the app is still there"),
            })
        };
        from_threads(app, receivers, threads, units, send)
    }
}

/// The channel of crossbeam.
fn crossbeam(threads: usize) -> impl FnOnce(usize) -> Side {
    move |units| {
        let (sender, receiver) = crossbeam_channel::bounded(CAPACITY);
        let (app, receivers) = app_with_receivers(move || receiver.try_recv().ok());
        let send = move || -> Send {
            let sender = sender.clone();
            Box::new(move |to, hit| sender.try_send((to, hit)).is_ok())
        };
        from_threads(app, receivers, threads, units, send)
    }
}

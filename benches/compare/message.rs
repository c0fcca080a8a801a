//! Messages to entities, each of which adds what it is given to what it has.

use std::{
    sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    thread,
};

use bevy_app::prelude::*;
use bevy_due::{DueSystems, MessageContext, MessageSender, Outbox, SendError, prelude::*};
use bevy_ecs::prelude::*;
use bevy_platform::cell::SyncCell;
use bevy_time::TimePlugin;

use crate::{
    contenders::on_one_thread,
    sides::{Done, Side, Table, timed},
    work::random,
};

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

/// How many of the entities follow what is broadcast: one of so many.
const FOLLOWERS: usize = 100;

/// How many messages are broadcast in a frame.
const BROADCASTS: u64 = 10;

const THREADS: [usize; 2] = [1, 4];

/// How many messages from other threads can wait.
const ROOM: usize = 1 << 14;

/// To how many entities they go.
const RECEIVERS: usize = 1_000;

/// What an entity has been given.
#[derive(Component, Default)]
struct Sum(u64);

#[derive(Message, Clone, Copy)]
struct Hit(u64);

/// What the others follow.
#[derive(Message)]
struct Miss;

/// Marks those that a peer gives what is broadcast.
#[derive(Component)]
struct Follows;

/// The same as an event.
#[derive(EntityEvent)]
struct HitOn {
    entity: Entity,
    by: u64,
}

/// The same as one that nobody is the target of.
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
                move |units| frames(on_one_thread(app(n)), units / n + 1, n)
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
                let each = BROADCASTS as usize * n / FOLLOWERS;
                move |units| frames(on_one_thread(app(n)), units / each + 1, each)
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

/// How many frames have been run.
#[derive(Resource, Default)]
struct Frame(u64);

impl Frame {
    /// What is sent in this frame.
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

/// An app that runs so many frames in a turn, with so many units in each.
fn frames(mut app: App, frames: usize, each: usize) -> Side {
    let mut units = 0;
    Box::new(move || {
        let time = timed(|| {
            for _ in 0..frames {
                app.update();
            }
        });
        units += (frames * each) as u64;
        let checksum = checksum(&mut app);
        (time, Done { units, checksum })
    })
}

/// An outbox, to each of them.
fn message_to_one(n: usize) -> App {
    let mut app = due_app();
    app.world_mut()
        .spawn_batch((0..n).map(|_| (Sum(0), adding())));
    app.add_systems(
        PreUpdate,
        (|entities: Query<Entity, With<Sum>>, frame: Res<Frame>, mut outbox: Outbox| {
            for entity in &entities {
                outbox.send(entity, Hit(frame.by()));
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
    for entity in &entities {
        let by = frame.by();
        commands.trigger(HitOn { entity, by });
    }
}

/// An observer of each of them.
fn entity_observers(n: usize) -> App {
    let mut app = app();
    for _ in 0..n {
        app.world_mut().spawn(Sum(0)).observe(add_to);
    }
    app.add_systems(PreUpdate, trigger_each);
    app
}

/// One observer that observes each of them.
fn shared_observer(n: usize) -> App {
    let mut app = app();
    let entities = app.world_mut().spawn_batch((0..n).map(|_| Sum(0)));
    let observer = Observer::new(add_to).with_entities(entities.collect::<Vec<_>>());
    app.world_mut().spawn(observer);
    app.add_systems(PreUpdate, trigger_each);
    app
}

/// An outbox, to all that follow it.
fn message_to_all(n: usize) -> App {
    let mut app = due_app();
    let missing = MessageComponent::new().on(|_: MessageContext, _: &Miss| ());
    for nth in 0..n {
        let component = if nth % FOLLOWERS == 0 {
            adding()
        } else {
            missing.clone()
        };
        app.world_mut().spawn((Sum(0), component));
    }
    app.add_systems(
        PreUpdate,
        (|frame: Res<Frame>, mut outbox: Outbox| {
            for _ in 0..BROADCASTS {
                outbox.send(Delivery::All, Hit(frame.by()));
            }
        })
        .before(DueSystems::Messages),
    );
    app
}

fn spawn_followers(app: &mut App, n: usize) {
    for nth in 0..n {
        let mut entity = app.world_mut().spawn(Sum(0));
        if nth % FOLLOWERS == 0 {
            entity.insert(Follows);
        }
    }
}

/// An observer of something that happens to each of them.
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
            for _ in 0..BROADCASTS {
                for entity in &followers {
                    let by = frame.by();
                    commands.trigger(HitAt { entity, by });
                }
            }
        },
    );
    app
}

/// A system that knows what to do with each of them.
fn message_reader(n: usize) -> App {
    let mut app = app();
    spawn_followers(&mut app, n);
    app.add_message::<Hit>();
    let write = |frame: Res<Frame>, mut hits: MessageWriter<Hit>| {
        for _ in 0..BROADCASTS {
            hits.write(Hit(frame.by()));
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

/// Sends a message without waiting, or gives it back if there is no room.
type Send = Box<dyn FnMut(Entity, Hit) -> bool + core::marker::Send>;

/// Threads that send as fast as they can, and an app that runs frames until all has arrived.
fn from_threads(
    mut app: App,
    receivers: Vec<Entity>,
    threads: usize,
    units: usize,
    send: impl Fn() -> Send + 'static,
) -> Side {
    let each = units / threads;
    let mut app = {
        app.update();
        on_one_thread(app)
    };
    let mut done = Done::default();
    Box::new(move || {
        let sending: Vec<_> = (0..threads)
            .map(|who| (who, send(), receivers.clone()))
            .collect();
        done.units += (threads * each) as u64;
        let time = timed(|| {
            let threads: Vec<_> = sending
                .into_iter()
                .map(|(who, mut send, receivers)| {
                    thread::spawn(move || {
                        for nth in 0..each {
                            let to = receivers[(who + nth) % receivers.len()];
                            while !send(to, Hit(1)) {
                                thread::yield_now();
                            }
                        }
                    })
                })
                .collect();
            let mut is_over = false;
            while !is_over {
                // What has been sent until now is received in this frame.
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

/// A sender of this crate.
fn sender(threads: usize) -> impl FnOnce(usize) -> Side {
    move |units| {
        let mut app = app();
        app.add_plugins(DuePlugin {
            inbox_capacity: ROOM,
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

/// An app with a system that gives everybody what `receive` gives.
fn draining(
    mut receive: impl FnMut() -> Option<(Entity, Hit)> + core::marker::Send + Sync + 'static,
) -> (App, Vec<Entity>) {
    let mut app = app();
    let receivers = spawn_receivers(&mut app, || Sum(0));
    app.add_systems(PreUpdate, move |mut sums: Query<&mut Sum>| {
        // No more than has been there at the start, as far as can be told.
        for _ in 0..ROOM {
            let Some((to, hit)) = receive() else { break };
            if let Ok(mut sum) = sums.get_mut(to) {
                sum.0 += hit.0;
            }
        }
    });
    (app, receivers)
}

/// A channel of the standard library.
fn channel(threads: usize) -> impl FnOnce(usize) -> Side {
    move |units| {
        let (sender, receiver): (SyncSender<_>, Receiver<_>) = sync_channel(ROOM);
        let mut receiver = SyncCell::new(receiver);
        let (app, receivers) = draining(move || receiver.get().try_recv().ok());
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
        let (sender, receiver) = crossbeam_channel::bounded(ROOM);
        let (app, receivers) = draining(move || receiver.try_recv().ok());
        let send = move || -> Send {
            let sender = sender.clone();
            Box::new(move |to, hit| sender.try_send((to, hit)).is_ok())
        };
        from_threads(app, receivers, threads, units, send)
    }
}

//! Costs that can be counted: allocations and memory.

use core::time::Duration;

use allocation_counter::measure;
use bevy_app::prelude::*;
use bevy_due::{
    Clock, ClockId, DespawnAfter, DueEntityCommandsExt, DuePlugin, DueWorldExt, OwnedBy, Paused,
    Timer, TimerFired, UpdateComponent, UpdateContext,
    message::{
        Delivery, MessageComponent, MessageEntityCommandsExt, MessageWorldExt, Outbox, Packet,
    },
    queue::TimerQueue,
    rollback::RollbackWorldExt,
    timer::TimerStatus,
};
#[cfg(feature = "serialize")]
use bevy_due::{moving::MoveWorldExt, save::SaveWorldExt};
use bevy_ecs::{
    entity::EntityHashMap,
    prelude::*,
    schedule::{Schedules, SingleThreadedExecutor},
};
use bevy_time::{Time, TimePlugin, TimeUpdateStrategy, Virtual};

const SECOND: u64 = 1_000_000_000;
const FRAME: u64 = SECOND / 60;
const TIMERS: u64 = 20_000;

/// Returns a pseudo-random number that is the same on every run.
fn scramble(n: u64) -> u64 {
    let n = (n ^ n >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (n ^ n >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 8
}

/// Arms and cancels timers of one hour for a whole day.
#[test]
fn endless_arming_and_cancelling_allocates_nothing() {
    let mut queue = TimerQueue::new();
    let mut keys = std::collections::VecDeque::with_capacity(10_000);
    let mut hour = |queue: &mut TimerQueue<u64>, hour: u64| {
        for second in 0..3600 {
            let now = (hour * 3600 + second) * SECOND;
            for n in 0..20 {
                keys.push_back(queue.insert(now + 3600 * SECOND + scramble(now + n) % SECOND, 0));
            }
            while keys.len() > 6000 {
                queue.cancel(keys.pop_front().unwrap());
            }
            assert!(queue.pop_due(now).is_none());
        }
    };
    hour(&mut queue, 0);
    hour(&mut queue, 1);
    let rest_of_the_day = measure(|| (2..24).for_each(|n| hour(&mut queue, n)));
    assert_eq!(rest_of_the_day.count_total, 0, "{rest_of_the_day:?}");
    assert_eq!(queue.len(), 6000);
}

/// Returns the memory that a queue holds 500 frames after it was filled and emptied again.
fn memory_of_an_empty_queue(fill_and_empty: impl FnOnce(&mut TimerQueue<u64>)) -> i64 {
    let mut queue = TimerQueue::new();
    let left = measure(|| {
        fill_and_empty(&mut queue);
        assert!(queue.is_empty());
        (0..500).for_each(|_| queue.trim());
    });
    left.bytes_current
}

#[test]
fn an_empty_queue_gives_its_memory_back() {
    const MANY: u64 = 1 << 16;
    let pop_all = |queue: &mut TimerQueue<u64>| while queue.pop_due(100 * SECOND).is_some() {};
    let buckets = memory_of_an_empty_queue(|queue| {
        let far = |nth| SECOND + scramble(nth) % (1000 * SECOND);
        let keys = (0..MANY).map(|nth| queue.insert(far(nth), nth));
        for key in keys.collect::<Vec<_>>() {
            queue.cancel(key);
        }
    });
    let one_bucket = memory_of_an_empty_queue(|queue| {
        (0..MANY).for_each(|nth| _ = queue.insert(SECOND + scramble(nth) % FRAME, nth));
        pop_all(queue);
    });
    let heap = memory_of_an_empty_queue(|queue| {
        // The buckets start here.
        (0..4000).for_each(|nth| _ = queue.insert(90 * SECOND, nth));
        assert!(queue.pop_due(80 * SECOND).is_none());
        (0..MANY).for_each(|nth| _ = queue.insert(SECOND, nth));
        pop_all(queue);
    });
    let parked = memory_of_an_empty_queue(|queue| {
        let keys = (0..MANY).map(|nth| queue.insert_parked(0, nth));
        for key in keys.collect::<Vec<_>>() {
            queue.cancel(key);
        }
    });
    for left in [buckets, one_bucket, heap, parked] {
        assert!(left <= 20_000, "{left} bytes are left");
    }
}

#[test]
fn a_queue_whose_length_goes_up_and_down_allocates_nothing() {
    let mut queue = TimerQueue::new();
    let mut keys = Vec::with_capacity(20_000);
    let mut frame = |queue: &mut TimerQueue<u64>, frame: u64| {
        let now = frame * FRAME;
        if frame.is_multiple_of(10) {
            let far = |nth| now + SECOND + scramble(nth) % SECOND;
            keys.extend((0..20_000).map(|nth| queue.insert(far(nth), 0)));
            // Most of them are due in one frame.
            (0..5_000).for_each(|_| _ = queue.insert(now + FRAME, 0));
        }
        while queue.pop_due(now).is_some() {}
        if frame % 10 == 5 {
            keys.drain(..).for_each(|key| _ = queue.cancel(key));
        }
        queue.trim();
    };
    (0..1000).for_each(|nth| frame(&mut queue, nth));
    let frames = measure(|| (1000..2000).for_each(|nth| frame(&mut queue, nth)));
    assert_eq!(frames.count_total, 0, "{frames:?}");
}

#[derive(Resource, Default)]
struct Fired(usize);

/// Returns a single-threaded app with periodic timers that counts firings.
fn app_with(timers: u64, observed: bool) -> App {
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_nanos(
            FRAME,
        )))
        .init_resource::<Fired>();
    if observed {
        app.add_observer(|_: On<TimerFired>, mut fired: ResMut<Fired>| fired.0 += 1);
    } else {
        app.add_systems(
            Update,
            |mut messages: MessageReader<TimerFired>, mut fired: ResMut<Fired>| {
                fired.0 += messages.read().count();
            },
        );
    }
    for timer in 0..timers {
        let period = SECOND + scramble(timer + TIMERS) % (59 * SECOND);
        let first = Duration::from_nanos(scramble(timer) % period);
        let timer = Timer::every(Duration::from_nanos(period)).first_after(first);
        app.world_mut().spawn(timer);
    }
    for (_, schedule) in app.world_mut().resource_mut::<Schedules>().iter_mut() {
        schedule.set_executor(SingleThreadedExecutor::new());
    }
    app
}

#[test]
fn a_frame_in_steady_state_allocates_nothing() {
    for observed in [false, true] {
        let mut app = app_with(10_000, observed);
        let tenth = TimeUpdateStrategy::ManualDuration(Duration::from_millis(100));
        app.insert_resource(tenth);
        for _ in 0..130 * 10 {
            app.update();
        }
        let before = app.world().resource::<Fired>().0;
        let frames = measure(|| (0..60 * 10).for_each(|_| app.update()));
        assert!(app.world().resource::<Fired>().0 - before > 30_000);
        assert_eq!(frames.count_total, 0, "{frames:?}");
    }
}

#[derive(Component)]
struct Count(u64);

#[test]
fn refreshing_a_timer_status_allocates_nothing() {
    let mut app = app_with(0, false);
    let shown = |nth| {
        (
            Timer::every(Duration::from_millis(nth)),
            TimerStatus::default(),
        )
    };
    app.world_mut().spawn_batch((1..=1000).map(shown));
    // Until the memory that only the spawning needed has gone back.
    for _ in 0..200 {
        app.update();
    }
    let frames = measure(|| (0..60).for_each(|_| app.update()));
    assert_eq!(frames.count_total, 0, "allocations in sixty frames");
}

/// Returns an app with callbacks on several priorities and clocks. Every tenth callback queues a
/// command.
fn app_with_updates(updates: u64) -> App {
    let mut app = app_with(0, false);
    for nth in 0..updates {
        let update = UpdateComponent::new(move |mut me: UpdateContext| {
            me.entity.get_mut::<Count>().unwrap().0 += 1;
            if nth % 10 == 0 {
                let id = me.update_entity;
                me.commands
                    .queue(move |world: &mut World| world.get_mut::<Count>(id).unwrap().0 += 1);
            }
        });
        let clocks = [ClockId::Virtual, ClockId::Real, ClockId::Fixed];
        let update = update
            .on(clocks[nth as usize % 3])
            .with_priority(nth as i32 % 5);
        app.world_mut().spawn((Count(0), update));
    }
    for _ in 0..60 {
        app.update();
    }
    app
}

#[test]
fn calling_callbacks_every_frame_allocates_nothing() {
    let mut app = app_with_updates(1000);
    let mut counts = app.world_mut().query::<&Count>();
    let mut sum = |app: &App| counts.iter(app.world()).map(|count| count.0).sum::<u64>();
    let before = sum(&app);
    let frames = measure(|| (0..60).for_each(|_| app.update()));
    assert!(sum(&app) - before > 60 * 1000);
    assert_eq!(frames.count_total, 0, "{frames:?}");
}

/// Packet ids come from a network, so there may be very many of them in the life of a server.
#[test]
fn packet_ids_without_followers_take_no_memory() {
    let mut app = app_with(0, false);
    let mut id = 0;
    let mut turn = |app: &mut App| {
        id += 1;
        let follows = MessageComponent::new().on_packet(id, |_, _: &Packet| ());
        let entity = app.world_mut().spawn(follows).id();
        app.update();
        app.world_mut().despawn(entity);
    };
    (0..100).for_each(|_| turn(&mut app));
    let turns = measure(|| (0..5_000).for_each(|_| turn(&mut app)));
    assert!(turns.bytes_current < 10_000, "{turns:?}");
}

/// A timer that is paused, rescheduled or random takes room beside the queue while it lives.
#[test]
fn timers_that_are_gone_take_no_memory() {
    let mut app = app_with(0, false);
    let turn = |app: &mut App| {
        let timer = Timer::every_between(1.0..=2.0);
        let timer = app.world_mut().spawn(timer).id();
        app.update();
        let delayed = app
            .world_mut()
            .change_timer(timer, |timer| timer.reschedule(Duration::from_secs(1)));
        delayed.expect("it is armed");
        app.world_mut().entity_mut(timer).insert(Paused);
        app.update();
        app.world_mut().despawn(timer);
    };
    (0..100).for_each(|_| turn(&mut app));
    let turns = measure(|| (0..5_000).for_each(|_| turn(&mut app)));
    assert!(turns.bytes_current < 10_000, "{turns:?}");
}

/// Sends messages through an outbox every frame, in a system or an observer, and counts the
/// allocations of one frame.
fn allocations_of_an_outbox(messages: u64, in_observer: bool) -> u64 {
    #[derive(Message)]
    struct Hit;
    #[derive(Event)]
    struct Go;

    let mut app = app_with(0, false);
    let follows = MessageComponent::new().on(|mut me, _: &Hit| {
        me.entity.get_mut::<Count>().unwrap().0 += 1;
    });
    let entity = app.world_mut().spawn((Count(0), follows)).id();
    let send = move |outbox: &mut Outbox| {
        for _ in 0..messages {
            outbox.send(entity, Hit).unwrap();
        }
    };
    if in_observer {
        app.add_observer(move |_: On<Go>, mut outbox: Outbox| send(&mut outbox));
        app.add_systems(Update, |mut commands: Commands| commands.trigger(Go));
    } else {
        app.add_systems(Update, move |mut outbox: Outbox| send(&mut outbox));
    }
    for _ in 0..9 {
        app.update();
    }
    let frame = measure(|| app.update());
    let received = app.world().get::<Count>(entity).unwrap().0;
    assert_eq!(
        received,
        9 * messages,
        "the last ones wait for the next frame"
    );
    frame.count_total
}

#[test]
fn an_outbox_allocates_nothing_in_a_steady_state() {
    for in_observer in [false, true] {
        for messages in [1, 1 << 10] {
            let allocated = allocations_of_an_outbox(messages, in_observer);
            assert_eq!(allocated, 0, "{messages} messages, {in_observer}");
        }
    }
}

#[test]
fn unused_priorities_take_no_memory() {
    let mut app = app_with_updates(10);
    let update = UpdateComponent::new(|_: UpdateContext| ());
    let mut nth = 0;
    let mut turn = |app: &mut App| {
        for _ in 0..10 {
            nth += 1;
            let priority = 6 + (scramble(nth) % (1 << 30)) as i32;
            app.world_mut()
                .spawn(update.clone().with_priority(priority));
        }
        app.update();
        let mut all = app.world_mut().query::<(Entity, &UpdateComponent)>();
        let gone: Vec<_> = all
            .iter(app.world())
            .filter_map(|(entity, update)| (update.priority() > 5).then_some(entity))
            .collect();
        for entity in gone {
            app.world_mut().despawn(entity);
        }
        app.update();
    };
    (0..100).for_each(|_| turn(&mut app));
    let turns = measure(|| (0..1000).for_each(|_| turn(&mut app)));
    assert!(turns.bytes_current < 1000, "{turns:?}");
}

#[derive(Component)]
struct Marker;

/// Returns the memory that entities take.
fn memory_of(entities: u64, spawn: impl Fn(&mut World, u64)) -> u64 {
    let mut app = app_with(0, false);
    app.update();
    let spawned = measure(|| {
        for nth in 0..entities {
            spawn(app.world_mut(), nth);
            if nth % 1000 == 0 {
                app.update();
            }
        }
        app.update();
    });
    u64::try_from(spawned.bytes_current).unwrap()
}

fn timer(nth: u64) -> Timer {
    let period = SECOND + scramble(nth) % (59 * SECOND);
    Timer::every(Duration::from_nanos(period))
}

/// Counts everything: the component with its change ticks, the slot and the item in a bucket.
#[test]
fn an_armed_timer_takes_at_most_128_bytes() {
    let entities = 1 << 17;
    let without = memory_of(entities, |world, _| _ = world.spawn(Marker));
    let with = memory_of(entities, |world, nth| {
        world.spawn((Marker, timer(nth)));
    });
    let each = (with - without) / entities;
    assert!(each <= 128, "an armed timer takes {each} bytes");
}

/// Counts the timer's entity, and what its owner keeps about it.
#[test]
fn an_owned_keyed_timer_takes_at_most_400_bytes() {
    let timers = 1 << 14;
    for keys in [&["only"][..], &["first", "second", "third", "fourth"]] {
        let owners = timers / keys.len() as u64;
        let without = memory_of(owners, |world, _| _ = world.spawn(Marker));
        let with = memory_of(owners, |world, nth| {
            let mut owner = world.spawn(Marker);
            for &key in keys {
                owner.set_timer(key, timer(nth));
            }
        });
        let each = (with - without) / timers;
        let keys = keys.len();
        assert!(each <= 400, "each of {keys} timers takes {each} bytes");
    }
}

/// Strangers may choose keys, as in a game that loads or imports them.
#[test]
fn keys_from_data_take_no_memory_once_their_timers_are_gone() {
    let mut app = app_with(0, false);
    let owner = app.world_mut().spawn(Marker).id();
    let mut set_and_cancel = |keys: core::ops::Range<u32>| {
        for key in keys {
            let mut owner = app.world_mut().entity_mut(owner);
            owner.set_timer(format!("a key from data {key}"), timer(0));
            owner.cancel_timer(format!("a key from data {key}"));
            owner.cancel_timer(format!("a key that no timer has {key}"));
            if key % 1000 == 0 {
                app.update();
            }
        }
    };
    set_and_cancel(0..10_000);
    let later = measure(|| set_and_cancel(10_000..50_000));
    let grown = later.bytes_current;
    assert!(grown < 3 << 20, "40,000 keys leave {grown} bytes behind");
}

/// A collection that moves all paused timers when it grows would take more in one of the pauses.
#[test]
fn pausing_an_owner_takes_memory_for_its_timers_only() {
    const OWNERS: usize = 32;
    const TIMERS_EACH: usize = 250;
    // One allocation for each timer.
    let limit = 128 * TIMERS_EACH as u64;

    let mut app = app_with(0, false);
    let owners = [(); OWNERS].map(|()| app.world_mut().spawn_empty().id());
    for owner in owners {
        for _ in 0..TIMERS_EACH {
            let timer = Timer::after(3600.0);
            app.world_mut().spawn((OwnedBy(owner), timer));
        }
    }
    app.update();
    let pauses = owners.map(|owner| {
        let pause = measure(|| _ = app.world_mut().entity_mut(owner).insert(Paused));
        pause.bytes_total
    });
    // The first pause of an app also makes Bevy's archetypes.
    let most = pauses.into_iter().skip(1).max().expect("there are owners");
    assert!(
        most <= limit,
        "a pause of {TIMERS_EACH} timers takes {most} bytes"
    );
}

/// The fixed schedule may stand still for long, for example while the game is paused.
#[test]
fn changing_a_timer_between_two_runs_takes_no_memory() {
    let mut app = app_with(0, false);
    let timer = Timer::after(60.0).on(ClockId::Fixed);
    let timer = app.world_mut().spawn(timer).id();
    app.world_mut().resource_mut::<Time<Virtual>>().pause();
    app.update();
    let mut run_frames = |frames| {
        for _ in 0..frames {
            for _ in 0..1000 {
                app.world_mut().entity_mut(timer).insert(Paused);
                app.world_mut().entity_mut(timer).remove::<Paused>();
            }
            app.update();
        }
    };
    run_frames(3);
    let changed = measure(|| run_frames(20));
    let taken = changed.bytes_current;
    assert!(taken <= 1000, "20,000 pauses of a timer take {taken} bytes");
}

/// Messages of two types alternate, and each request gets a reply.
#[test]
fn messages_and_requests_in_a_steady_state_allocate_nothing() {
    #[derive(Message)]
    struct Hit;

    let mut app = app_with(0, false);
    let follows = MessageComponent::new()
        .on(|mut me, _: &Hit| me.entity.get_mut::<Count>().unwrap().0 += 1)
        .on_packet(1, |mut me, packet: &Packet| {
            me.entity.get_mut::<Count>().unwrap().0 += 1;
            if me.reply_to().is_some() {
                me.reply(packet.clone()).unwrap();
            }
        });
    let entity = app.world_mut().spawn((Count(0), follows)).id();
    let sender = app.world_mut().message_sender();
    let packet = Packet::new(1, []);
    let sends = |app: &mut App, requests: usize| {
        for _ in 0..100 {
            sender.send(Delivery::InTurn, packet.clone()).unwrap();
            sender.send(entity, Hit).unwrap();
            app.world_mut().send(entity, Hit).unwrap();
            app.world_mut().send(Delivery::All, packet.clone()).unwrap();
        }
        for _ in 0..requests {
            let mut commands = app.world_mut().commands();
            let until = Timer::after(60.0);
            commands.entity(entity).ask(entity, packet.clone(), until);
        }
        app.update();
    };
    (0..10).for_each(|_| sends(&mut app, 100));
    let asked = measure(|| (0..10).for_each(|_| sends(&mut app, 100)));
    // The list of what the entity owns grows and shrinks.
    assert!(asked.count_total < 100, "1,000 requests: {asked:?}");
    (0..10).for_each(|_| sends(&mut app, 0));
    let sent = measure(|| (0..10).for_each(|_| sends(&mut app, 0)));
    assert_eq!(sent.count_total, 0, "{sent:?}");
}

#[test]
fn a_request_allocates_nothing_of_its_own() {
    #[derive(Message)]
    struct Question;

    let mut app = app_with(0, false);
    let asker = app.world_mut().spawn_empty().id();
    let mut ask = |requests| {
        for _ in 0..requests {
            let mut commands = app.world_mut().commands();
            let until = Timer::after(0.01);
            commands.entity(asker).ask(Delivery::All, Question, until);
            app.world_mut().flush();
        }
        app.update();
        app.update();
    };
    (0..10).for_each(|_| ask(100));
    let asked = measure(|| ask(100)).count_total;
    assert!(
        asked < 50,
        "100 requests allocate {asked} times, for the growth of collections"
    );
}

/// Returns what a snapshot and a restore allocate in a world in which a hundred timers fire each
/// frame, and all others wait.
fn memory_of_a_rollback(waiting: u64) -> (u64, u64) {
    let mut app = app_with(0, false);
    for nth in 0..waiting {
        let delay = Duration::from_secs(3600 + scramble(nth) % 3600);
        app.world_mut().spawn(Timer::after(delay));
    }
    let firing = (0..100).map(|_| Timer::every(Duration::from_nanos(FRAME)));
    app.world_mut().spawn_batch(firing);
    let mut kept = None;
    for _ in 0..10 {
        app.update();
        kept = Some(app.world_mut().snapshot_timers());
    }
    let rollback = measure(|| {
        let snapshot = app.world_mut().snapshot_timers();
        app.update();
        let mut names = EntityHashMap::default();
        app.world_mut().restore_timers(&snapshot, &mut names);
    });
    drop(kept);
    (rollback.count_total, rollback.bytes_total)
}

#[test]
fn a_rollback_costs_what_has_changed() {
    let (few, few_bytes) = memory_of_a_rollback(1_000);
    let (many, many_bytes) = memory_of_a_rollback(50_000);
    assert!(many <= few + 20, "{few} and {many} allocations");
    // A copy of all timers would take three million bytes. A collection that grows takes some.
    assert!(
        many_bytes <= 4 * few_bytes,
        "{few_bytes} and {many_bytes} bytes"
    );
}

#[test]
fn a_snapshot_does_not_copy_the_cancellations_of_earlier_frames() {
    let bytes = |cancelled: usize| {
        let mut app = app_with(0, false);
        let timers = (0..cancelled).map(|_| Timer::after(1.0));
        let timers: Vec<Entity> = app.world_mut().spawn_batch(timers).collect();
        app.update();
        for timer in timers {
            app.world_mut().despawn(timer);
        }
        app.update();
        app.update();
        let first = app.world_mut().snapshot_timers();
        let bytes = measure(|| _ = app.world_mut().snapshot_timers()).bytes_total;
        drop(first);
        bytes
    };
    let [few, many] = [10, 5_000].map(bytes);
    assert!(many <= few + 1_000, "{few} and {many} bytes");
}

#[test]
fn a_world_whose_snapshots_were_dropped_keeps_no_journal() {
    let mut app = app_with(0, false);
    let firing = (0..100).map(|_| Timer::every(Duration::from_nanos(FRAME)));
    app.world_mut().spawn_batch(firing);
    let frames = |app: &mut App| (0..100).for_each(|_| app.update());
    frames(&mut app);
    let snapshot = app.world_mut().snapshot_timers();
    let watched = measure(|| frames(&mut app));
    assert!(watched.count_total > 0, "the timers should be noted");
    drop(snapshot);
    app.update();
    let after = measure(|| frames(&mut app));
    assert_eq!(after.count_total, 0, "{after:?}");
}

/// Returns what it allocates to save one entity, and to take it, among others with timers.
#[cfg(feature = "serialize")]
fn memory_of_one_save(others: u64) -> [u64; 2] {
    let mut app = app_with(others, false);
    app.update();
    let world = app.world_mut();
    let hero = world.spawn(timer(1)).id();
    world.spawn((timer(2), OwnedBy(hero)));
    // These wait for the next run.
    world.spawn_batch((0..others).map(timer));
    let saved = measure(|| {
        world.save_entity(hero).expect("it can be saved");
    });
    let taken = measure(|| {
        drop(world.take_entity(hero).expect("it can move"));
    });
    [saved.bytes_total, taken.bytes_total]
}

#[cfg(feature = "serialize")]
#[test]
fn saving_one_entity_costs_nothing_for_the_others() {
    memory_of_one_save(10);
    let [few, many] = [10, 10_000].map(memory_of_one_save);
    for (few, many) in few.into_iter().zip(many) {
        assert!(many <= few + few / 2, "{few} and {many} bytes");
    }
}

/// Returns the memory that a save of so many timers takes for each, at most at a time.
#[cfg(feature = "serialize")]
fn memory_of_a_save(spawn: impl Fn(&mut World, u64)) -> u64 {
    let timers = 10_000;
    let mut app = app_with(0, false);
    (0..timers).for_each(|nth| spawn(app.world_mut(), nth));
    app.update();
    let saved = measure(|| {
        app.world_mut().save_timers().expect("they can be saved");
    });
    saved.bytes_max / timers
}

#[cfg(feature = "serialize")]
#[test]
fn a_saved_timer_takes_at_most_300_bytes() {
    let plain = memory_of_a_save(|world, nth| _ = world.spawn(timer(nth)));
    let owned = memory_of_a_save(|world, nth| {
        world.spawn_empty().set_timer("key", timer(nth));
    });
    assert!(plain <= 300, "a saved timer takes {plain} bytes");
    assert!(
        owned <= 450,
        "a saved timer with an owner and a key takes {owned} bytes"
    );
}

#[cfg(feature = "serialize")]
#[test]
fn a_timer_saved_as_text_takes_at_most_250_bytes() {
    let timers = 1000;
    let mut app = app_with(timers, false);
    app.update();
    let saved = app.world_mut().save_timers().expect("they can be saved");
    let text = ron::to_string(&saved).expect("it is plain data");
    let each = text.len() as u64 / timers;
    assert!(each <= 250, "a timer takes {each} bytes");
}

/// Returns the processor time that it takes to copy an entity for which 300 requests wait, in a world in
/// which so many other entities have keys.
#[cfg(all(feature = "serialize", feature = "worlds"))]
fn time_of_copied_requests(keys: u64) -> Duration {
    use bevy_due::worlds::{StableKey, WorldGroups};
    use cpu_time::ThreadTime;

    let groups = WorldGroups::new();
    let mut app = app_with(0, false);
    groups.add("zone", &mut app);
    let world = app.world_mut();
    world.spawn_batch((0..keys).map(StableKey));
    let asker = world.spawn(StableKey(keys)).id();
    let hero = world.spawn_empty().id();
    for _ in 0..300 {
        let mut commands = world.commands();
        let until = Timer::after(10.0);
        commands.entity(asker).ask(hero, Packet::new(1, []), until);
    }
    world.flush();
    let times = (0..5).map(|_| {
        let start = ThreadTime::now();
        let copies = world.copy_entities(&[hero]);
        assert!(copies.iter().all(Result::is_ok), "it can move");
        start.elapsed()
    });
    times.min().expect("there are five")
}

#[cfg(all(feature = "serialize", feature = "worlds"))]
#[test]
fn a_request_that_moves_costs_nothing_for_the_keys_of_others() {
    let [few, many] = [10, 20_000].map(time_of_copied_requests);
    assert!(many <= 8 * few, "{few:?} and {many:?}");
}

const PEAK: u64 = 1 << 16;

/// Returns the memory that is left 500 frames after `peak` has filled a world and emptied it again.
fn memory_left(peak: impl FnOnce(&mut App)) -> i64 {
    let mut app = app_with(0, false);
    (0..10).for_each(|_| app.update());
    let left = measure(|| {
        peak(&mut app);
        (0..500).for_each(|_| app.update());
    });
    left.bytes_current
}

/// Despawns the entities with a component, a few in each frame.
fn despawn_all<C: Component>(app: &mut App) {
    let mut all = app.world_mut().query_filtered::<Entity, With<C>>();
    let all: Vec<_> = all.iter(app.world()).collect();
    for some in all.chunks(1 << 12) {
        for &entity in some {
            app.world_mut().despawn(entity);
        }
        app.update();
    }
}

/// Asserts that a peak of timers leaves at most 1.3 times as much memory as one of plain entities of the same size.
/// Bevy keeps the memory of entities and components.
fn assert_gives_memory_back(peak: impl FnOnce(&mut App)) {
    #[derive(Component)]
    struct Plain {
        _data: [u64; size_of::<Timer>() / 8],
    }

    let plain = memory_left(|app| {
        let data = [0; size_of::<Timer>() / 8];
        let entities = (0..PEAK).map(|_| (Marker, Plain { _data: data }));
        app.world_mut().spawn_batch(entities);
        app.update();
        despawn_all::<Marker>(app);
    });
    let timers = memory_left(peak);
    assert!(
        10 * timers <= 13 * plain,
        "{timers} bytes are left after timers, {plain} after entities"
    );
}

#[test]
fn timers_that_are_cancelled_give_their_memory_back() {
    assert_gives_memory_back(|app| {
        let timers = (0..PEAK).map(|nth| (Marker, timer(nth)));
        app.world_mut().spawn_batch(timers);
        app.update();
        despawn_all::<Marker>(app);
    });
}

/// Their deadlines are in different frames, in the same frame, or have passed when they are armed.
#[test]
fn lifetimes_that_end_give_their_memory_back() {
    for span in [SECOND, FRAME / 2, 0] {
        assert_gives_memory_back(|app| {
            let lifetime =
                |nth| DespawnAfter::new(Duration::from_nanos(span + scramble(nth) % (span + 1)));
            let lifetimes = (0..PEAK).map(|nth| (Marker, lifetime(nth)));
            app.world_mut().spawn_batch(lifetimes);
            (0..130).for_each(|_| app.update());
            assert_eq!(
                app.world_mut().query::<&Marker>().iter(app.world()).count(),
                0
            );
        });
    }
}

/// The last one was armed when the queue was largest.
#[test]
fn one_timer_that_lasts_holds_no_memory_of_others() {
    assert_gives_memory_back(|app| {
        let timers = (0..PEAK).map(|nth| (Marker, timer(nth)));
        app.world_mut().spawn_batch(timers);
        app.world_mut().spawn(Timer::after(3600.0));
        app.update();
        despawn_all::<Marker>(app);
    });
}

#[test]
fn clocks_that_are_gone_give_the_memory_of_their_queues_back() {
    let left = |with_timers: bool| {
        memory_left(|app| {
            for _ in 0..1 << 14 {
                let clock = app.world_mut().spawn(Clock::new()).id();
                let timer = Timer::after(60.0);
                let timer = if with_timers { timer.on(clock) } else { timer };
                app.world_mut().spawn((Marker, timer));
            }
            app.update();
            despawn_all::<Clock>(app);
            app.update();
            despawn_all::<Marker>(app);
        })
    };
    let [without, with] = [false, true].map(left);
    let each = (with - without) >> 14;
    assert!(each <= 64, "the queue of a clock leaves {each} bytes");
}

//! Processes and links that misbehave, and settings that nobody would choose.

use core::panic::AssertUnwindSafe;
use std::{collections::BTreeSet, panic::catch_unwind};

use super::{raw::*, *};

#[test]
fn a_claim_with_the_last_epoch_does_not_stop_others() {
    let here = WorldGroups::new();
    let mut app = member(&here, "zones");
    let mut raw = Raw::connect(&here, QUICK);
    raw.send(&[bound("zones", 1, u64::MAX)]).unwrap();
    app.world_mut().spawn(StableKey(2));
    assert!(here.post(say("zones", StableKey(2), 0)).is_ok());
}

#[test]
fn a_parcel_that_was_passed_on_too_often_is_refused() {
    let here = WorldGroups::new();
    let _app = member(&here, "zones");
    let mut raw = Raw::connect(&here, QUICK);
    raw.send(&[bound("zones", 1, 9), parcel("zones", 1, 1, 255, &[])])
        .unwrap();
}

#[test]
fn processes_agree_on_claims_of_the_same_age() {
    let processes = [(); 2].map(|()| WorldGroups::new());
    let [a, b] = &processes;
    let mut apps = processes.each_ref().map(|groups| member(groups, "zones"));
    for app in &mut apps {
        app.world_mut().spawn(StableKey(5));
    }
    let _wire = Wire::connect(a, b);
    wait_for_worlds(a, "zones", 2);
    wait_for_worlds(b, "zones", 2);
    thread::sleep(Duration::from_millis(50));
    let taken = |apps: &mut [App; 2]| {
        let taken = apps.each_mut().map(|app| {
            app.update();
            app.world().resource::<MessageStats>().undeliverable
        });
        taken[0] + taken[1]
    };
    for from in [a, b] {
        let before = taken(&mut apps);
        from.post(say("zones", StableKey(5), 1)).unwrap();
        wait_until(|| taken(&mut apps) > before, "one of the two takes it");
    }
}

#[test]
fn a_key_that_is_bound_again_and_goes_is_forgotten() {
    let [here, there] = [WorldGroups::new(), WorldGroups::new()];
    let mut app = member(&there, "zones");
    let first = app.world_mut().spawn(StableKey(5)).id();
    let wire = Wire::connect(&here, &there);
    wait_for_key(&here, "zones", 5);
    {
        let _held = wire.ways[1].hold();
        // Occupies the thread that sends.
        app.world_mut().spawn(StableKey(6));
        thread::sleep(Duration::from_millis(50));
        let second = app.world_mut().spawn(StableKey(5)).id();
        app.world_mut().despawn(first);
        app.world_mut().despawn(second);
        app.world_mut().spawn(StableKey(7));
    }
    wait_for_key(&here, "zones", 7);
    assert!(here.post(say("zones", StableKey(5), 0)).is_err());
}

#[test]
fn a_peer_of_groups_that_are_gone_is_closed() {
    let groups = WorldGroups::new();
    let handle = groups.handle();
    drop(groups);
    assert_eq!(handle.connect("b", QUICK).next_batch(), None);
}

#[test]
fn a_filter_may_set_another_filter() {
    let here = Arc::new(WorldGroups::new());
    let groups = here.clone();
    here.permit(move |_, _| {
        groups.permit(|_, _| true);
        true
    });
    let (done, was_done) = mpsc::channel();
    let process = here.clone();
    thread::spawn(move || {
        let mut raw = Raw::connect(&process, QUICK);
        raw.send(&[worlds("ears", 1)]).unwrap();
        done.send(()).unwrap();
        // Only at the end of the test process.
        core::mem::forget(raw);
    });
    next(&was_done);
    assert_eq!(here.running("ears"), 1);
}

#[test]
fn a_large_parcel_after_a_small_one_does_not_wait_for_a_heartbeat() {
    let (hear, heard) = mpsc::channel();
    let [here, mut there] = [WorldGroups::new(), WorldGroups::new()];
    there.start_worlds("ears", 1, listener(hear)).unwrap();
    let settings = PeerSettings {
        heartbeat: Duration::from_secs(3600),
        ..QUICK
    };
    let wire = Wire::with([&here, &there], ["a", "b"], settings);
    wait_for_worlds(&here, "ears", 1);
    let large = Packet::new(WAIT, vec![0; settings.parcel_bytes]);
    for nth in 0..4 {
        let large = Parcel::new("ears", Delivery::InTurn, large.clone());
        here.post(large).unwrap();
        here.post(say("ears", Delivery::InTurn, nth)).unwrap();
        assert_eq!(next(&heard).1, nth);
    }
    drop(wire);
}

/// Returns the number of batches that two idle processes exchange in a tenth of a second.
fn idle_batches(settings: PeerSettings) -> usize {
    let [here, there] = [WorldGroups::new(), WorldGroups::new()];
    let _far = member(&there, "ears");
    let wire = Wire::with([&here, &there], ["a", "b"], settings);
    wait_for_worlds(&here, "ears", 1);
    let batches = Arc::new(AtomicUsize::new(0));
    let count = batches.clone();
    wire.ways[0].set(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        1
    });
    thread::sleep(Duration::from_millis(100));
    batches.load(Ordering::Relaxed)
}

#[test]
fn idle_processes_with_a_small_window_only_send_heartbeats() {
    for window_bytes in [0, 100] {
        let settings = PeerSettings {
            window_bytes,
            ..QUICK
        };
        let batches = idle_batches(settings);
        assert!(batches < 30, "{window_bytes}: {batches}");
    }
}

#[test]
fn a_queue_without_a_bound_takes_refusals() {
    let settings = PeerSettings {
        queue_bytes: usize::MAX,
        ..QUICK
    };
    let here = WorldGroups::new();
    let mut raw = Raw::connect(&here, settings);
    raw.send(&[parcel("nobody", 1, 1, 0, &[])]).unwrap();
    while raw.next().is_empty() {}
}

#[test]
fn changes_of_keys_wait_for_a_process_that_confirms_nothing() {
    let here = WorldGroups::new();
    let mut app = member(&here, "zones");
    let settings = PeerSettings {
        window_bytes: 100,
        ..QUICK
    };
    let mut raw = Raw::connect(&here, settings);
    let mut bytes = 0;
    for key in 0..100 {
        app.world_mut().spawn(StableKey(key));
        bytes += raw.next().len();
    }
    assert!(bytes < 1000, "{bytes}");
}

#[test]
fn many_keys_go_out_in_batches_of_bounded_length() {
    let here = WorldGroups::new();
    let mut app = member(&here, "zones");
    for key in 0..10_000 {
        app.world_mut().spawn(StableKey(key));
    }
    let mut raw = Raw::connect(&here, QUICK);
    let mut bytes = 0;
    loop {
        let frames = raw.next();
        if frames.is_empty() && bytes > 0 {
            break;
        }
        assert!(frames.len() < 2 * QUICK.batch_bytes, "{}", frames.len());
        bytes += frames.len();
    }
    assert!(bytes > 200_000, "{bytes}");
}

#[test]
fn a_peer_that_closes_sends_more_than_the_window_holds() {
    let (hear, heard) = mpsc::channel();
    let [here, mut there] = [WorldGroups::new(), WorldGroups::new()];
    there.start_worlds("ears", 1, listener(hear)).unwrap();
    let settings = PeerSettings {
        window_bytes: 1000,
        batch_bytes: 100,
        ..QUICK
    };
    let wire = Wire::with([&here, &there], ["a", "b"], settings);
    wait_for_worlds(&here, "ears", 1);
    for nth in 0..1000 {
        here.post(say("ears", Delivery::InTurn, nth)).unwrap();
    }
    wire.ends[0].close();
    for nth in 0..1000 {
        assert_eq!(next(&heard).1, nth);
    }
}

#[test]
fn a_heartbeat_of_zero_does_not_spin() {
    let settings = PeerSettings {
        heartbeat: Duration::ZERO,
        ..QUICK
    };
    let batches = idle_batches(settings);
    assert!(batches < 300, "{batches}");
}

#[test]
fn a_long_heartbeat_does_not_hide_silence() {
    let here = WorldGroups::new();
    let mut app = member(&here, "main");
    record::<PeerChanged>(&mut app);
    let settings = PeerSettings {
        heartbeat: Duration::from_secs(3600),
        down_after: Duration::from_millis(50),
        ..QUICK
    };
    let mut raw = Raw::connect(&here, settings);
    assert_eq!(receive::<PeerChanged>(&mut app)[0].liveness, Liveness::Up);
    thread::spawn(move || {
        loop {
            raw.next();
        }
    });
    assert_eq!(receive::<PeerChanged>(&mut app)[0].liveness, Liveness::Down);
}

#[test]
fn a_request_to_all_stays_open_while_a_world_may_reply() {
    let here = WorldGroups::new();
    let mut app = member(&here, "askers");
    record::<NoAnswer>(&mut app);
    let _local = member(&here, "answerers");
    let settings = PeerSettings {
        parcel_bytes: 1000,
        ..QUICK
    };
    let mut raw = Raw::connect(&here, settings);
    raw.send(&[worlds("answerers", 1)]).unwrap();
    let asker = app.world_mut().spawn(StableKey(1)).id();
    let told = Arc::new(AtomicUsize::new(0));
    let tell = told.clone();
    let ears = MessageComponent::new().on(move |_: MessageContext, _: &NoAnswer| {
        tell.fetch_add(1, Ordering::Relaxed);
    });
    app.world_mut().entity_mut(asker).insert(ears);
    let question = Parcel::new("answerers", Delivery::All, number(QUESTION, 1));
    let mut commands = app.world_mut().commands();
    commands
        .entity(asker)
        .ask_world(question, Timer::after_secs(3600.0));
    app.world_mut().flush();
    // The copy for the other process is lost.
    raw.peer.disconnected();
    for _ in 0..3 {
        app.update();
    }
    assert_eq!(told.load(Ordering::Relaxed), 0, "the world here may reply");
}

#[test]
fn a_request_to_all_fails_at_once_when_the_only_process_goes() {
    let here = WorldGroups::new();
    let mut app = member(&here, "askers");
    let mut raw = Raw::connect(&here, QUICK);
    raw.send(&[worlds("answerers", 1)]).unwrap();
    let told = Arc::new(AtomicUsize::new(0));
    let tell = told.clone();
    let ears = MessageComponent::new().on(move |_: MessageContext, _: &NoAnswer| {
        tell.fetch_add(1, Ordering::Relaxed);
    });
    let asker = app.world_mut().spawn((StableKey(1), ears)).id();
    let question = Parcel::new("answerers", Delivery::All, number(QUESTION, 1));
    let mut commands = app.world_mut().commands();
    commands
        .entity(asker)
        .ask_world(question, Timer::after_secs(3600.0));
    app.world_mut().flush();
    while !raw.next().is_empty() {}
    raw.peer.disconnected();
    for _ in 0..3 {
        app.update();
    }
    assert_eq!(told.load(Ordering::Relaxed), 1);
}

#[test]
fn the_end_of_a_connection_does_not_fail_requests_of_the_next() {
    let here = WorldGroups::new();
    let mut app = member(&here, "askers");
    let mut raw = Raw::connect(&here, QUICK);
    raw.send(&[worlds("answerers", 1)]).unwrap();
    app.update();
    // The world has yet to learn of the end.
    raw.peer.disconnected();
    while !raw.next().is_empty() {}
    raw.reset();
    raw.send(&[worlds("answerers", 1)]).unwrap();
    let told = Arc::new(AtomicUsize::new(0));
    let tell = told.clone();
    let ears = MessageComponent::new().on(move |_: MessageContext, _: &NoAnswer| {
        tell.fetch_add(1, Ordering::Relaxed);
    });
    let asker = app.world_mut().spawn((StableKey(1), ears)).id();
    let question = Parcel::new("answerers", Delivery::InTurn, number(QUESTION, 1));
    let mut commands = app.world_mut().commands();
    commands
        .entity(asker)
        .ask_world(question, Timer::after_secs(3600.0));
    app.world_mut().flush();
    for _ in 0..3 {
        app.update();
    }
    assert_eq!(told.load(Ordering::Relaxed), 0, "the process may reply");
}

#[test]
fn a_world_that_joins_later_learns_which_processes_are_there() {
    let here = WorldGroups::new();
    let _raw = Raw::connect(&here, QUICK);
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()));
    record::<PeerChanged>(&mut app);
    here.add("main", &mut app);
    assert_eq!(receive::<PeerChanged>(&mut app)[0].liveness, Liveness::Up);
}

#[test]
fn many_senders_to_a_full_world_hold_up_nobody() {
    let here = WorldGroups::new();
    let mut app = App::new();
    let small = DuePlugin {
        inbox_capacity: 1,
        ..DuePlugin::default()
    };
    app.add_plugins((TimePlugin, small));
    here.add("ears", &mut app);
    app.world_mut().spawn(StableKey(1));
    let mut raw = Raw::connect(&here, QUICK);
    let start = Instant::now();
    for world in 0..30_000 {
        raw.send(&[parcel("ears", 1, world, 0, &[])]).unwrap();
    }
    let took = start.elapsed();
    assert!(took < Duration::from_secs(3), "{took:?}");
}

#[test]
fn a_full_world_that_ends_makes_room() {
    let [here, there] = [WorldGroups::new(), WorldGroups::new()];
    let mut app = member(&here, "main");
    record::<HasRoom>(&mut app);
    let mut far = App::new();
    let small = DuePlugin {
        inbox_capacity: 1,
        ..DuePlugin::default()
    };
    far.add_plugins((TimePlugin, small));
    here.add("ears", &mut far);
    for _ in 0..2 {
        let link = app.world().resource::<WorldLink>();
        link.post(say("ears", Delivery::InTurn, 1)).ok();
    }
    drop(far);
    drop(there);
    let group = "ears".into();
    assert_eq!(receive::<HasRoom>(&mut app), [HasRoom { group }]);
}

#[test]
fn a_parcel_that_is_too_large_for_the_receiver_is_refused() {
    let here = WorldGroups::new();
    let mut app = member(&here, "ears");
    app.world_mut().spawn(StableKey(1));
    let settings = PeerSettings {
        parcel_bytes: 100,
        ..QUICK
    };
    let mut raw = Raw::connect(&here, settings);
    raw.send(&[parcel("ears", 1, 1, 0, &[0; 101])]).unwrap();
    // After the worlds and the keys.
    raw.next();
    let frames = raw.next();
    assert_eq!(frames[..2], [2, 6]);
}

#[test]
fn peers_that_come_and_go_leave_nothing_behind() {
    let here = WorldGroups::new();
    let mut app = member(&here, "zones");
    app.world_mut().spawn(StableKey(1));
    for nth in 0..10_000 {
        let mut raw = Raw::connect(&here, QUICK);
        raw.send(&[worlds("zones", 1), bound("zones", nth + 2, nth)])
            .unwrap();
        assert_eq!(here.running("zones"), 2);
        drop(raw);
        assert_eq!(here.running("zones"), 1);
        if nth % 100 == 0 {
            app.update();
        }
    }
    let debug = format!("{here:?}");
    assert!(debug.len() < 3000, "{}: {debug}", debug.len());
}

#[test]
fn worlds_hear_of_each_connection_once_while_threads_end_it() {
    let [here, there] = [WorldGroups::new(), WorldGroups::new()];
    let mut apps = [member(&here, "main"), member(&there, "main")];
    for app in &mut apps {
        record::<PeerChanged>(app);
    }
    let settings = PeerSettings {
        heartbeat: Duration::from_millis(1),
        suspect_after: Duration::from_millis(2),
        ..QUICK
    };
    let wire = Wire::with([&here, &there], ["a", "b"], settings);
    let mut changes = [Vec::new(), Vec::new()];
    let mut keys = BTreeSet::new();
    thread::scope(|scope| {
        for end in &wire.ends {
            scope.spawn(|| {
                for _ in 0..200 {
                    thread::sleep(Duration::from_millis(1));
                    end.disconnected();
                }
            });
        }
        for nth in 0..400_u64 {
            let key = nth * 7 % 20 + 1;
            for (app, changes) in apps.iter_mut().zip(&mut changes) {
                changes.extend(received::<PeerChanged>(app));
            }
            let world = apps[0].world_mut();
            match keys.remove(&key) {
                true => {
                    let mut all = world.query::<(Entity, &StableKey)>();
                    let (entity, _) = all.iter(world).find(|(_, it)| it.0 == key).unwrap();
                    world.despawn(entity);
                }
                false => {
                    keys.insert(key);
                    world.spawn(StableKey(key));
                }
            }
            thread::sleep(Duration::from_micros(500));
        }
    });
    wait_for_worlds(&there, "main", 2);
    let known = || {
        let known = (1..=20).filter(|&key| there.post(say("main", StableKey(key), 0)).is_ok());
        known.collect::<BTreeSet<u64>>()
    };
    wait_until(|| known() == keys, "the keys");
    for (app, mut changes) in apps.iter_mut().zip(changes) {
        changes.extend(received::<PeerChanged>(app));
        let mut is_up = false;
        for (nth, change) in changes.iter().enumerate() {
            let before = nth.checked_sub(1).map(|nth| changes[nth].liveness);
            match change.liveness {
                Liveness::Up if is_up => assert_ne!(before, Some(Liveness::Down)),
                Liveness::Suspect | Liveness::Down => assert!(is_up, "{nth}: {changes:?}"),
                Liveness::Up => {}
            }
            is_up = change.liveness != Liveness::Down;
        }
        assert!(changes.len() > 50, "{}", changes.len());
    }
}

#[test]
fn two_processes_that_fill_both_windows_go_on() {
    const PARCELS: u32 = 3000;

    let (hear, heard) = mpsc::channel();
    let mut processes = [(); 2].map(|()| WorldGroups::new());
    for (groups, name) in processes.iter_mut().zip(["ears 0", "ears 1"]) {
        groups
            .start_worlds(name, 1, listener(hear.clone()))
            .unwrap();
    }
    let settings = PeerSettings {
        window_bytes: 300,
        batch_bytes: 100,
        heartbeat: Duration::from_secs(3600),
        ..QUICK
    };
    let [here, there] = &processes;
    let _wire = Wire::with([here, there], ["a", "b"], settings);
    wait_for_worlds(here, "ears 1", 1);
    wait_for_worlds(there, "ears 0", 1);
    for nth in 0..PARCELS {
        here.post(say("ears 1", Delivery::All, nth)).unwrap();
        there.post(say("ears 0", Delivery::All, nth)).unwrap();
    }
    let said = sorted((0..2 * PARCELS).map(|_| next(&heard).1));
    assert!(
        said.chunks(2)
            .zip(0..)
            .all(|(both, nth)| both == [nth, nth])
    );
}

#[test]
fn a_filter_that_panics_ends_the_connection() {
    let here = WorldGroups::new();
    let mut app = member(&here, "main");
    record::<PeerChanged>(&mut app);
    here.permit(|_, what| match what {
        FromPeer::Key(address) => panic!("key {:?}", address.key),
        _ => true,
    });
    let mut raw = Raw::connect(&here, QUICK);
    assert_eq!(receive::<PeerChanged>(&mut app)[0].liveness, Liveness::Up);
    let frames = [bound("main", 1, 1), worlds("main", 1)];
    let sent = catch_unwind(AssertUnwindSafe(|| raw.send(&frames)));
    assert!(sent.is_err());
    assert_eq!(receive::<PeerChanged>(&mut app)[0].liveness, Liveness::Down);
}

#[test]
fn a_link_that_panics_does_not_keep_others_open() {
    struct Panics(Sender<()>, bool);

    impl Link for Panics {
        fn open(&mut self, _: bevy_due::GroupsHandle) -> Result {
            Ok(())
        }

        fn close(&mut self) {
            self.0.send(()).ok();
            assert!(!self.1, "as the test wants");
        }
    }

    let (tell, told) = mpsc::channel();
    let mut groups = WorldGroups::new();
    groups.join(Panics(tell.clone(), false)).unwrap();
    groups.join(Panics(tell, true)).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| groups.stop())).is_err());
    assert_eq!(told.iter().count(), 2);
}

#[test]
fn a_process_does_not_join_itself() {
    let (hear, heard) = mpsc::channel();
    let mut groups = WorldGroups::new();
    groups.start_worlds("ears", 1, listener(hear)).unwrap();
    let wire = Wire::connect(&groups, &groups);
    let batches = Arc::new(AtomicUsize::new(0));
    let count = batches.clone();
    wire.ways[0].set(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        1
    });
    let carried = || batches.load(Ordering::Relaxed) > 3;
    wait_until(carried, "the two ends shake hands");
    assert_eq!(groups.running("ears"), 1);
    groups.post(say("ears", Delivery::All, 1)).unwrap();
    assert_eq!(next(&heard).1, 1);
    drop(wire);
    end_well(&groups.stop());
    assert_eq!(heard.iter().count(), 0, "doubled");
}

#[test]
fn each_request_ends_once_while_threads_end_the_connection() {
    #[derive(Resource, Default)]
    struct Ends(Vec<Option<bevy_due::Request>>);

    fn end(me: &mut MessageContext) {
        let request = me.request();
        let note = move |world: &mut World| world.resource_mut::<Ends>().0.push(request);
        me.commands.queue(note);
    }

    let [here, mut there] = [WorldGroups::new(), WorldGroups::new()];
    there.start_worlds("answerers", 2, answerer).unwrap();
    let mut app = member(&here, "askers");
    app.init_resource::<Ends>();
    let ears = MessageComponent::new()
        .on_packet(ANSWER, |mut me: MessageContext, _: &Packet| end(&mut me))
        .on(|mut me: MessageContext, _: &NoAnswer| end(&mut me));
    let asker = app.world_mut().spawn((StableKey(7), ears)).id();
    let settings = PeerSettings {
        heartbeat: Duration::from_millis(1),
        ..QUICK
    };
    let wire = Wire::with([&here, &there], ["a", "b"], settings);
    let mut asked = 0;
    thread::scope(|scope| {
        for (nth, end) in (3..).zip(&wire.ends) {
            scope.spawn(move || {
                for _ in 0..60 {
                    thread::sleep(Duration::from_millis(nth));
                    end.disconnected();
                }
            });
        }
        for _ in 0..1000 {
            let question = Parcel::new("answerers", Delivery::InTurn, number(QUESTION, 21));
            let mut commands = app.world_mut().commands();
            let until = Timer::after_secs(3600.0);
            commands.entity(asker).ask_world(question, until);
            asked += 1;
            app.update();
            thread::sleep(Duration::from_micros(200));
        }
    });
    let ended = |app: &App| app.world().resource::<Ends>().0.len();
    wait_until(
        || {
            app.update();
            ended(&app) >= asked
        },
        "all requests end",
    );
    let ends: HashSet<_> = app.world().resource::<Ends>().0.iter().collect();
    assert_eq!((ends.len(), ended(&app)), (asked, asked));
}

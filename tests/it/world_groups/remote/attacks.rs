//! Processes, links and filters that misbehave.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

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
    let reason = raw.next_frame(|frame| match frame {
        Frame::Refused(refused, _) => Some(refused.reason),
        _ => None,
    });
    assert_eq!(reason, RefusalReason::UnknownKey);
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
    let told = ask(&mut app, Delivery::All);
    // The copy for the other process is lost.
    raw.peer.disconnected();
    for _ in 0..3 {
        app.update();
    }
    assert_eq!(told.load(Ordering::Relaxed), 0, "the world here may reply");
}

/// Asks the "answerers", and counts how often the request ends without a reply.
fn ask(app: &mut App, to: Delivery<StableKey>) -> Arc<AtomicUsize> {
    let told = Arc::new(AtomicUsize::new(0));
    let tell = told.clone();
    let ears = MessageComponent::new().on(move |_: MessageContext, _: &NoAnswer| {
        tell.fetch_add(1, Ordering::Relaxed);
    });
    let asker = app.world_mut().spawn((StableKey(1), ears)).id();
    let question = Parcel::new("answerers", to, number(QUESTION, 1));
    let mut commands = app.world_mut().commands();
    commands
        .entity(asker)
        .ask_world(question, Timer::after(3600.0));
    app.world_mut().flush();
    told
}

#[test]
fn a_request_to_all_fails_at_once_when_the_only_process_goes() {
    let here = WorldGroups::new();
    let mut app = member(&here, "askers");
    let mut raw = Raw::connect(&here, QUICK);
    raw.send(&[worlds("answerers", 1)]).unwrap();
    let told = ask(&mut app, Delivery::All);
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
    let told = ask(&mut app, Delivery::InTurn);
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
        fn open(&mut self, _: bevy_due::worlds::GroupsHandle) -> Result {
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
fn a_process_refuses_only_what_it_got_and_only_once() {
    let here = WorldGroups::new();
    let mut app = member(&here, "main");
    record::<Refused>(&mut app);
    record::<HasRoom>(&mut app);
    let mut raw = Raw::connect(&here, QUICK);
    raw.send(&[raw::worlds("ears", 1)]).unwrap();
    let mut post = |app: &App, nth| {
        let link = app.world().resource::<WorldLink>();
        link.post(say("ears", Delivery::InTurn, nth)).unwrap();
        raw.next_frame(|frame| match frame {
            Frame::Parcel(parcel, source) => Some((parcel, source)),
            _ => None,
        })
    };
    let [first, second] = [1, 2].map(|nth| post(&app, nth));
    let mut forged = second.clone();
    forged.0.packet = number(SAY, 3);
    let refusals = [&forged, &first, &first, &first].map(raw::refused);
    let rooms = [&first, &first, &first].map(|parcel| raw::room("ears", parcel));
    raw.send(&[&rooms[..1], &refusals[..], &rooms[..]].concat())
        .unwrap();
    let refused = receive::<Refused>(&mut app);
    let refused: Vec<_> = refused.iter().map(|it| read(&it.parcel.packet)).collect();
    // The forgery counts as one of the two that it could refuse.
    assert_eq!(refused, [1]);
    assert_eq!(receive::<HasRoom>(&mut app).len(), 2);
}

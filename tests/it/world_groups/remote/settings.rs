//! The bounds of a connection, also with settings that nobody would choose.

use super::{raw::*, *};

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
fn a_heartbeat_of_zero_does_not_spin() {
    let settings = PeerSettings {
        heartbeat: Duration::ZERO,
        ..QUICK
    };
    let batches = idle_batches(settings);
    assert!(batches < 300, "{batches}");
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
    let mut keys = Vec::new();
    loop {
        let frames = raw.next();
        if frames.is_empty() && !keys.is_empty() {
            break;
        }
        assert!(frames.len() < 2 * QUICK.batch_bytes, "{}", frames.len());
        keys.extend(raw::frames_of(&frames).iter().filter_map(Frame::bound_key));
    }
    keys.sort();
    assert!(keys.into_iter().eq(0..10_000), "each key goes out once");
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
    let reason = raw.next_frame(|frame| match frame {
        Frame::Refused(refused, _) => Some(refused.reason),
        _ => None,
    });
    assert_eq!(reason, RefusalReason::TooLarge);
}

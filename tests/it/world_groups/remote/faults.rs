//! Faults of the wire between two processes, and of the other process.

use core::sync::atomic::AtomicU32;
use std::collections::BTreeSet;

use bevy_due::worlds::link::BatchError;

use super::*;

#[test]
fn a_batch_that_comes_twice_counts_once() {
    let (hear, heard) = mpsc::channel();
    let [here, mut there] = [WorldGroups::new(), WorldGroups::new()];
    there.start_worlds("ears", 1, listener(hear)).unwrap();
    let wire = Wire::connect(&here, &there);
    for way in &wire.ways {
        way.set(|_| 2);
    }
    wait_for_worlds(&here, "ears", 1);
    for nth in 0..1000 {
        here.post(say("ears", Delivery::InTurn, nth)).unwrap();
    }
    for nth in 0..1000 {
        assert_eq!(next(&heard).1, nth);
    }
}

#[test]
fn both_processes_begin_anew_after_a_missing_batch() {
    for direction in [0, 1] {
        let [here, there] = [WorldGroups::new(), WorldGroups::new()];
        let mut apps = [member(&here, "main"), member(&there, "main")];
        for (key, app) in (1..).zip(&mut apps) {
            app.world_mut().spawn(StableKey(key));
            record::<PeerChanged>(app);
        }
        let wire = Wire::connect(&here, &there);
        wait_for_key(&here, "main", 2);
        wait_for_key(&there, "main", 1);
        for app in &mut apps {
            receive::<PeerChanged>(app);
        }
        // Loses the next batch with a frame.
        let is_lost = AtomicUsize::new(0);
        let empty = 45;
        wire.ways[direction].set(move |batch| {
            let lose = batch.len() > empty && is_lost.fetch_add(1, Ordering::Relaxed) == 0;
            usize::from(!lose)
        });
        let (from, key) = [(&here, 2), (&there, 1)][direction];
        from.post(say("main", StableKey(key), 1)).unwrap();
        // The next frame shows that one is missing.
        from.post(say("main", StableKey(key), 2)).ok();
        let mut liveness = Vec::new();
        for app in &mut apps {
            let mut changes = Vec::new();
            while changes.len() < 2 {
                changes.extend(receive::<PeerChanged>(app));
                from.post(say("main", StableKey(key), 3)).ok();
            }
            liveness.push(sorted_changes(&changes));
        }
        let down_and_up = [Liveness::Down, Liveness::Up];
        assert_eq!(liveness, [down_and_up, down_and_up]);
        wait_for_key(&here, "main", 2);
        wait_for_key(&there, "main", 1);
    }
}

fn sorted_changes(changes: &[PeerChanged]) -> [Liveness; 2] {
    [changes[0].liveness, changes[1].liveness]
}

#[test]
fn a_process_that_was_restarted_begins_anew() {
    let here = WorldGroups::new();
    for life in 0..3 {
        let (hear, heard) = mpsc::channel();
        let mut there = WorldGroups::new();
        there.start_worlds("ears", 1, listener(hear)).unwrap();
        let wire = Wire::connect(&here, &there);
        wait_for_key(&here, "ears", 0);
        here.post(say("ears", StableKey(0), life)).unwrap();
        assert_eq!(next(&heard).1, life);
        // Nobody says goodbye.
        wire.ways[1].set(|_| 0);
        drop(there);
        wire.ends[0].disconnected();
        assert_eq!(here.running("ears"), 0);
    }
}

#[test]
fn a_batch_that_cannot_be_read_changes_nothing() {
    let [here, mut there] = [WorldGroups::new(), WorldGroups::new()];
    there.start_worlds("ears", 1, |_: &mut App| ()).unwrap();
    let wire = Wire::connect(&here, &there);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let copy = seen.clone();
    wire.ways[1].set(move |batch| {
        copy.lock().unwrap().push(batch.clone());
        1
    });
    wait_for_worlds(&here, "ears", 1);
    let [end, _] = &wire.ends;
    let mut of_version_9 = seen.lock().unwrap().pop().unwrap_or(vec![1; 37]);
    of_version_9[0] = 9;
    let error = end.receive(&of_version_9).unwrap_err();
    assert_eq!(error, BatchError::Version(9));
    assert!(error.to_string().contains("version 9"), "{error}");
    for garbage in [
        &[][..],
        &[1],
        &[1; 36],
        &[1; 100],
        b"GET / HTTP/1.1\r\n\r\n",
    ] {
        assert!(end.receive(garbage).is_err(), "{garbage:?}");
    }
    assert_eq!(here.running("ears"), 1);
}

/// A small generator of random numbers, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % end
    }
}

#[test]
fn changed_bytes_do_no_harm() {
    let (hear, heard) = mpsc::channel();
    let [here, mut there] = [WorldGroups::new(), WorldGroups::new()];
    there.start_worlds("ears", 1, listener(hear)).unwrap();
    let wire = Wire::connect(&here, &there);
    wait_for_key(&here, "ears", 0);
    for (seed, way) in (1..).zip(&wire.ways) {
        let mut random = Random(seed);
        way.set(move |batch| {
            for _ in 0..random.below(4) {
                let place = random.below(batch.len());
                batch[place] = random.below(256) as u8;
            }
            1
        });
    }
    for nth in 0..2000 {
        here.post(say("ears", StableKey(0), nth)).ok();
        here.post(say("ears", Delivery::All, nth)).ok();
        if nth % 100 == 0 {
            thread::sleep(Duration::from_millis(5));
        }
    }
    for way in &wire.ways {
        way.set(|_| 1);
    }
    // A changed frame may have bound a key in the wrong group.
    wire.ends[0].disconnected();
    wait_for_key(&here, "ears", 0);
    while heard.try_recv().is_ok() {}
    wait_until(
        || {
            here.post(say("ears", StableKey(0), 77_777)).ok();
            let heard = heard.recv_timeout(Duration::from_millis(10));
            heard.is_ok_and(|(_, said)| said == 77_777)
        },
        "all is well again",
    );
}

#[test]
fn a_bad_wire_doubles_nothing_and_mends_itself() {
    for seed in 1..=8 {
        lose_and_double(seed);
    }
}

/// Loses and doubles batches at random. No parcel comes twice or out of order, and afterwards both sides
/// know each other as before.
fn lose_and_double(seed: u64) {
    static NEXT: AtomicU32 = AtomicU32::new(0);

    let (hear, heard) = mpsc::channel();
    let [here, mut there] = [WorldGroups::new(), WorldGroups::new()];
    there.start_worlds("ears", 1, listener(hear)).unwrap();
    let mut app = member(&here, "main");
    let wire = Wire::connect(&here, &there);
    for (nth, way) in (0..).zip(&wire.ways) {
        let mut random = Random(2 * seed + nth);
        way.set(move |_| match random.below(8) {
            0 => 0,
            1 => 2,
            _ => 1,
        });
    }
    let mut keys = BTreeSet::new();
    let mut random = Random(seed);
    for nth in 0..400 {
        here.post(say(
            "ears",
            Delivery::InTurn,
            NEXT.fetch_add(1, Ordering::Relaxed),
        ))
        .ok();
        if nth % 4 == 0 {
            let key = random.below(20) as u64 + 1;
            match keys.remove(&key) {
                true => {
                    let mut all = app.world_mut().query::<(Entity, &StableKey)>();
                    let mut all = all.iter(app.world());
                    let (entity, _) = all.find(|(_, other)| other.0 == key).unwrap();
                    app.world_mut().despawn(entity);
                }
                false => {
                    keys.insert(key);
                    app.world_mut().spawn(StableKey(key));
                }
            }
            thread::sleep(Duration::from_micros(300));
        }
    }
    for way in &wire.ways {
        way.set(|_| 1);
    }
    wait_for_worlds(&here, "ears", 1);
    let known = || {
        let known = (1..=20).filter(|&key| there.post(say("main", StableKey(key), 0)).is_ok());
        known.collect::<BTreeSet<u64>>()
    };
    wait_until(|| known() == keys, &format!("the keys of seed {seed}"));
    drop(wire);
    end_well(&there.stop());
    let said: Vec<u32> = heard.iter().map(|(_, said)| said).collect();
    assert!(said.is_sorted_by(|a, b| a < b), "seed {seed}: {said:?}");
}

#[test]
fn a_process_that_reads_nothing_does_not_hold_up_the_others() {
    let (hear, heard) = mpsc::channel();
    let [mut here, there] = [WorldGroups::new(), WorldGroups::new()];
    here.start_worlds("ears", 1, listener(hear)).unwrap();
    let _far = member(&there, "ears");
    let settings = PeerSettings {
        queue_bytes: 10_000,
        ..QUICK
    };
    let wire = Wire::with([&here, &there], ["a", "b"], settings);
    wait_for_worlds(&here, "ears", 2);
    let _held = wire.ways[0].hold();
    let mut refused = 0;
    for nth in 0..10_000 {
        let sent = here.post(say("ears", Delivery::All, nth));
        refused += u32::from(sent.is_err_and(|it| it.reason == RefusalReason::InPart));
        assert_eq!(next(&heard).1, nth);
    }
    assert!(refused > 5000, "{refused}");
}

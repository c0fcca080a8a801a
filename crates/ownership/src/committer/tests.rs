//! The effects of a frame run when the frame is durable, in order, and never before.

use core::time::Duration;
use std::{
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Instant,
};

use bevy_due::worlds::StableKey;

use super::{Committer, Effect, Submitter};
use crate::{
    JournalError, SimulatedDisk,
    ids::Life,
    journal::{Change, Journal, rows},
};

const ZONE: StableKey = StableKey(1);

type Frame = (Vec<Change>, Vec<Effect>);

fn frame(key: u64, effect: impl FnOnce() + Send + 'static) -> Frame {
    (vec![entity(key)], vec![Box::new(effect)])
}

fn entity(key: u64) -> Change {
    let key = StableKey(key);
    Change::Put(rows::entity(ZONE, Life { key, birth: 1 }), vec![1; 300])
}

fn start(disk: &SimulatedDisk) -> Committer {
    Committer::start(Journal::open_simulated(disk.clone()).unwrap()).unwrap()
}

/// Returns the keys that are on a disk.
fn keys(disk: SimulatedDisk) -> Vec<u64> {
    let contents = Journal::open_simulated(disk).unwrap().read().unwrap();
    let places = contents.rows.into_keys();
    places.map(|place| rows::life_at(place).key.0).collect()
}

fn wait_until(what: &str, mut is_done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_done() {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "waited for {what}"
        );
        thread::sleep(Duration::from_millis(1));
    }
}

fn submit(submitter: &Submitter, (changes, effects): Frame) {
    wait_until("room", || submitter.has_room());
    submitter.submit(changes, effects).unwrap();
}

#[test]
fn an_effect_finds_its_frame_on_the_disk() {
    let disk = SimulatedDisk::new(1);
    let committer = start(&disk);
    let (seen, effects) = mpsc::channel();
    thread::scope(|scope| {
        for world in 0..3 {
            let (submitter, disk, seen) = (committer.submitter(), disk.clone(), seen.clone());
            scope.spawn(move || {
                for number in 0..30 {
                    let key = world * 1000 + number;
                    let (disk, seen) = (disk.clone(), seen.clone());
                    let check = move || {
                        // Seed 0 loses everything that was not synced.
                        let is_there = keys(disk.after_power_loss(0)).contains(&key);
                        seen.send((world, number, is_there)).unwrap();
                    };
                    submit(&submitter, frame(key, check));
                }
            });
        }
    });
    drop(committer);
    drop(seen);
    let mut next = [0; 3];
    for (world, number, is_there) in effects {
        assert!(
            is_there,
            "frame {number} of world {world} had an effect too early"
        );
        let expected = &mut next[world as usize];
        assert_eq!(number, *expected, "effects run in the order of the frames");
        *expected += 1;
    }
    assert_eq!(next, [30; 3]);
    assert_eq!(keys(disk.after_kill()).len(), 90);
}

#[test]
fn a_frame_without_changes_waits_for_those_before_it() {
    let disk = SimulatedDisk::new(2);
    let committer = start(&disk);
    let submitter = committer.submitter();
    let order = Arc::new(Mutex::new(Vec::new()));
    for number in 0..10 {
        let order = order.clone();
        let mut frame = frame(number, move || order.lock().unwrap().push(number));
        if number % 2 == 1 {
            frame.0.clear();
        }
        submit(&submitter, frame);
    }
    committer.wait().unwrap();
    assert_eq!(*order.lock().unwrap(), (0..10).collect::<Vec<_>>());
}

#[test]
fn frames_that_wait_are_written_together() {
    let disk = SimulatedDisk::new(3);
    let committer = start(&disk);
    let blocked = committer.submitter();
    let (release, wait) = mpsc::channel::<()>();
    let (entered, has_entered) = mpsc::channel();
    let block = move || {
        entered.send(()).unwrap();
        _ = wait.recv();
    };
    submit(&blocked, frame(1, block));
    has_entered.recv().unwrap();
    let others = [(); 5].map(|()| committer.submitter());
    let one = {
        let before = disk.syncs();
        drop(start(&SimulatedDisk::new(4)));
        before
    };
    for (other, key) in others.iter().zip(10..) {
        submit(other, frame(key, || {}));
    }
    release.send(()).unwrap();
    committer.wait().unwrap();
    assert_eq!(disk.syncs() - one, 1, "five frames are one commit");
}

#[test]
fn an_error_stops_the_committer_for_good() {
    let disk = SimulatedDisk::new(4);
    let committer = start(&disk);
    let submitter = committer.submitter();
    let (told, effects) = mpsc::channel();
    disk.fail_sync_after(0);
    submit(&submitter, frame(1, move || told.send(()).unwrap()));
    let error = committer.wait().unwrap_err();
    assert!(error.to_string().contains("failed to sync"), "{error}");
    let syncs = disk.syncs();
    for _ in 0..3 {
        let again = submitter.submit(vec![entity(2)], Vec::new()).unwrap_err();
        assert_eq!(again.to_string(), error.to_string());
    }
    assert!(
        effects.recv().is_err(),
        "the effect was dropped, and did not run"
    );
    drop(committer);
    assert_eq!(disk.syncs(), syncs, "nothing is written any more");
}

#[test]
fn a_full_disk_is_reported_and_tried_again() {
    let disk = SimulatedDisk::new(5);
    let committer = start(&disk);
    let submitter = committer.submitter();
    disk.set_free_bytes(1 << 16);
    let mut key = 0;
    wait_until("a full disk", || {
        if submitter.has_room() {
            submitter.submit(vec![entity(key)], Vec::new()).unwrap();
            key += 1;
        }
        committer.stall().is_some()
    });
    let error = committer.stall().unwrap().error.unwrap().to_string();
    assert!(error.contains("free some space"), "{error}");
    disk.set_free_bytes(1 << 24);
    committer.wait().unwrap();
    assert!(committer.stall().is_none());
    drop(committer);
    assert_eq!(
        keys(disk.after_kill()).len() as u64,
        key,
        "no frame is lost"
    );
}

#[test]
fn a_committer_can_be_closed_while_the_disk_is_full() {
    let disk = SimulatedDisk::new(6);
    let committer = start(&disk);
    let submitter = committer.submitter();
    disk.set_free_bytes(0);
    let large = Change::Put(rows::readings(ZONE), vec![0; 10_000_000]);
    submit(&submitter, (vec![large], Vec::new()));
    wait_until("a full disk", || committer.stall().is_some());
    drop(committer);
    assert!(matches!(submitter.error(), Some(JournalError::Full { .. })));
}

#[test]
fn a_disk_that_hangs_is_a_stall() {
    let disk = SimulatedDisk::new(7);
    let committer = start(&disk);
    let submitter = committer.submitter();
    disk.set_sync_time(Duration::from_millis(1500));
    for key in 0..2 {
        submit(&submitter, frame(key, || {}));
    }
    let stall = submitter
        .wait_for_room(Duration::from_millis(1200))
        .unwrap();
    assert!(stall.is_some_and(|stall| stall.error.is_none()));
    disk.set_sync_time(Duration::ZERO);
    assert!(
        submitter
            .wait_for_room(Duration::from_secs(10))
            .unwrap()
            .is_none()
    );
    committer.wait().unwrap();
    assert!(committer.stall().is_none());
}

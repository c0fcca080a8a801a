//! The effects of a frame run when the frame is durable, in order, and never before.

mod support;

use core::time::Duration;
use std::{
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Instant,
};

use bevy_due_ownership::{
    Committer, Effect, Frame, Journal, JournalError, SimulatedDisk, SubmitError, Submitter,
};
use support::{entity, live, open, recover, small};

fn frame(key: u64, effect: impl FnOnce() + Send + 'static) -> Frame {
    Frame {
        records: vec![entity(key, &[1; 300])],
        effects: vec![Box::new(effect) as Effect],
    }
}

/// Submits when there is room.
fn submit(submitter: &mut Submitter, mut frame: Frame) -> Result<u64, SubmitError> {
    loop {
        match submitter.submit(frame) {
            Err(SubmitError::Busy(again)) => frame = again,
            result => return result,
        }
        thread::yield_now();
    }
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

fn start(disk: &SimulatedDisk) -> Committer {
    Committer::start(open(disk, &small(4096)).unwrap()).unwrap()
}

#[test]
fn an_effect_finds_its_frame_on_the_disk() {
    let disk = SimulatedDisk::new(1);
    let committer = start(&disk);
    let (seen, effects) = mpsc::channel();
    thread::scope(|scope| {
        for world in 0..3 {
            let (mut submitter, disk, seen) = (committer.submitter(2), disk.clone(), seen.clone());
            scope.spawn(move || {
                for frame_number in 0..60 {
                    let key = world * 1000 + frame_number;
                    let (disk, seen) = (disk.clone(), seen.clone());
                    let check = move || {
                        // Seed 0 loses everything that was not synced.
                        let durable = recover(&disk.after_power_loss(0), &small(4096)).unwrap();
                        let is_there = durable.contains(&entity(key, &[1; 300]));
                        seen.send((world, frame_number, is_there)).unwrap();
                    };
                    submit(&mut submitter, frame(key, check)).unwrap();
                }
            });
        }
    });
    let mut journal = committer.close().unwrap();
    drop(seen);
    let mut next = [0; 3];
    for (world, frame_number, is_there) in effects {
        assert!(
            is_there,
            "frame {frame_number} of world {world} had an effect too early"
        );
        assert_eq!(
            frame_number, next[world as usize],
            "effects run in the order of the frames"
        );
        next[world as usize] += 1;
    }
    assert_eq!(next, [60; 3]);
    assert_eq!(live(&mut journal).unwrap().len(), 180);
}

#[test]
fn a_frame_without_records_waits_for_those_before_it() {
    let disk = SimulatedDisk::new(2);
    let committer = start(&disk);
    let mut submitter = committer.submitter(10);
    let order = Arc::new(Mutex::new(Vec::new()));
    for number in 0..10 {
        let order = order.clone();
        let mut frame = frame(number, move || order.lock().unwrap().push(number));
        if number % 2 == 1 {
            frame.records.clear();
        }
        submitter.submit(frame).unwrap();
    }
    committer.close().unwrap();
    assert_eq!(*order.lock().unwrap(), (0..10).collect::<Vec<_>>());
    assert_eq!(submitter.committed(), 10);
}

#[test]
fn frames_in_flight_are_bounded_and_written_together() {
    let disk = SimulatedDisk::new(3);
    let committer = start(&disk);
    let mut blocked = committer.submitter(1);
    let (release, wait) = mpsc::channel::<()>();
    let (entered, has_entered) = mpsc::channel();
    let block = move || {
        entered.send(()).unwrap();
        _ = wait.recv();
    };
    blocked.submit(frame(1, block)).unwrap();
    has_entered.recv().unwrap();
    let Err(SubmitError::Busy(refused)) = blocked.submit(frame(2, || {})) else {
        panic!("one frame is in flight")
    };
    assert_eq!(
        refused.records,
        [entity(2, &[1; 300])],
        "the frame is handed back"
    );

    let mut others = [(); 5].map(|()| committer.submitter(1));
    let before = disk.operations();
    for (other, key) in others.iter_mut().zip(10..) {
        assert_eq!(other.submit(frame(key, || {})).unwrap(), 1);
    }
    release.send(()).unwrap();
    committer.close().unwrap();
    assert_eq!(blocked.committed(), 1);
    assert!(others.iter().all(|other| other.committed() == 1));
    // A batch is written in two halves and synced once. It may need a new segment.
    assert!(
        disk.operations() - before < 3 + 8,
        "five frames are one batch"
    );
}

#[test]
fn an_error_stops_the_committer_for_good() {
    let disk = SimulatedDisk::new(4);
    let committer = start(&disk);
    let mut submitter = committer.submitter(2);
    let mut late = committer.submitter(2);
    disk.fail_sync_after(0);
    let (told, effects) = mpsc::channel();
    submitter
        .submit(frame(1, move || told.send(()).unwrap()))
        .unwrap();
    wait_until("the error", || {
        matches!(late.submit(Frame::default()), Err(SubmitError::Stopped(..)))
    });
    let operations = disk.operations();
    for _ in 0..3 {
        let Err(SubmitError::Stopped(refused, Some(error))) = late.submit(frame(2, || {})) else {
            panic!("the committer has stopped")
        };
        assert_eq!(refused.records.len(), 1);
        assert!(support::is_of_sync(&error), "{error}");
    }
    assert!(
        effects.recv().is_err(),
        "the effect was dropped, and did not run"
    );
    assert_eq!(submitter.committed(), 0);
    let error = committer.close().unwrap_err();
    assert!(support::is_of_sync(&error), "{error}");
    assert_eq!(
        disk.operations(),
        operations,
        "the file is never touched again"
    );
}

#[test]
fn a_full_disk_is_reported_and_tried_again() {
    let disk = SimulatedDisk::new(5);
    let committer = start(&disk);
    let mut submitter = committer.submitter(1);
    disk.set_free_bytes(1000);
    let mut key = 0;
    wait_until("a full disk", || {
        key += u64::from(submitter.submit(frame(key, || {})).is_ok());
        committer.stall().is_some()
    });
    let committed = submitter.committed();
    let error = committer.stall().unwrap().error.to_string();
    assert!(error.contains("free some space"), "{error}");
    disk.set_free_bytes(1 << 20);
    wait_until("the batch", || submitter.committed() > committed);
    assert!(committer.stall().is_none());
    let mut journal = committer.close().unwrap();
    assert_eq!(
        live(&mut journal).unwrap().len() as u64,
        key,
        "no frame is lost"
    );
}

#[test]
fn a_committer_can_be_closed_while_the_disk_is_full() {
    let disk = SimulatedDisk::new(6);
    let committer = start(&disk);
    let mut submitter = committer.submitter(1);
    disk.set_free_bytes(0);
    wait_until("a full disk", || {
        _ = submitter.submit(frame(1, || {}));
        let batch = Frame {
            records: vec![entity(2, &[0; 5000])],
            effects: Vec::new(),
        };
        _ = submitter.submit(batch);
        committer.stall().is_some()
    });
    assert!(matches!(committer.close(), Err(JournalError::Full { .. })));
}

#[test]
fn a_panicking_effect_stops_the_committer() {
    let disk = SimulatedDisk::new(7);
    let committer = start(&disk);
    let mut submitter = committer.submitter(2);
    submitter
        .submit(frame(1, || panic!("expected by this test")))
        .unwrap();
    wait_until("the panic", || {
        matches!(
            submitter.submit(Frame::default()),
            Err(SubmitError::Stopped(..))
        )
    });
    assert!(matches!(
        committer.close(),
        Err(JournalError::EffectPanicked)
    ));
    assert_eq!(
        recover(&disk, &small(4096)).unwrap(),
        [entity(1, &[1; 300])],
        "its frame is durable"
    );
}

#[test]
fn a_closed_committer_takes_no_frames() {
    let disk = SimulatedDisk::new(8);
    let committer = start(&disk);
    let mut submitter = committer.submitter(2);
    submitter.submit(frame(1, || {})).unwrap();
    let _: Journal = committer.close().unwrap();
    assert_eq!(submitter.committed(), 1, "frames that wait are committed");
    assert!(matches!(
        submitter.submit(Frame::default()),
        Err(SubmitError::Stopped(_, None))
    ));
}

//! A torn batch is cut off. Everything else that has changed is an error.

mod support;

use bevy_due_ownership::{JournalError, JournalOptions, Record, SimulatedDisk};
use proptest::prelude::*;
use support::{entity, live, open, recover, small};

const SECTOR: usize = 512;

/// A disk with a few batches, the records before the last batch, and those with it.
struct Written {
    disk: SimulatedDisk,
    before: Vec<Record>,
    after: Vec<Record>,
    file: String,
    bytes: Vec<u8>,
    /// Where the last batch begins and ends.
    batch: core::ops::Range<usize>,
}

fn write(last: &[Record]) -> Written {
    let disk = SimulatedDisk::new(1);
    let mut journal = open(&disk, &small(10 << 10)).unwrap();
    for key in 1..4 {
        journal.append(&[entity(key, &[key as u8; 700])]).unwrap();
    }
    let before = live(&mut journal).unwrap();
    let (file, old) = disk.files().pop_last().unwrap();
    journal.append(last).unwrap();
    let after = live(&mut journal).unwrap();
    let bytes = disk.files()[&file].clone();
    let used = |bytes: &[u8]| bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    let batch = used(&old).next_multiple_of(SECTOR)..used(&bytes).next_multiple_of(SECTOR);
    Written {
        disk,
        before,
        after,
        file,
        bytes,
        batch,
    }
}

fn last_batch() -> Vec<Record> {
    vec![entity(1, &[9; 1500]), entity(8, &[8; 900])]
}

#[test]
fn every_prefix_of_the_last_batch_is_cut_off() {
    let w = write(&last_batch());
    assert!(w.batch.len() >= 5 * SECTOR, "the batch spans sectors");
    for cut in w.batch.clone() {
        let mut bytes = w.bytes.clone();
        bytes[cut..].fill(0);
        // Cut-off zeros change nothing.
        let expected = if bytes == w.bytes {
            &w.after
        } else {
            &w.before
        };
        w.disk.replace(&w.file, bytes);
        assert_eq!(
            &recover(&w.disk, &small(10 << 10)).unwrap(),
            expected,
            "cut at {cut}"
        );
    }
}

#[test]
fn a_lost_sector_of_the_last_batch_ends_the_journal_before_it() {
    let w = write(&last_batch());
    for lost in w.batch.clone().step_by(SECTOR) {
        let mut bytes = w.bytes.clone();
        bytes[lost..lost + SECTOR].fill(0);
        w.disk.replace(&w.file, bytes);
        let disk = w.disk.after_kill();
        let mut journal = open(&disk, &small(10 << 10)).unwrap();
        assert_eq!(live(&mut journal).unwrap(), w.before, "sector at {lost}");
        // The rest of the batch is gone. `Boot` has one sector.
        let behind = &disk.files()[&w.file][w.batch.start + SECTOR..];
        assert!(behind.iter().all(|&byte| byte == 0), "sector at {lost}");
        journal.append(&[entity(5, b"new")]).unwrap();
        let next = live(&mut journal).unwrap();
        assert_eq!(next.len(), w.before.len() + 1);
        drop(journal);
        assert_eq!(recover(&disk, &small(10 << 10)).unwrap(), next);
    }
}

#[test]
fn a_flipped_bit_before_the_last_batch_is_damage() {
    let w = write(&last_batch());
    for byte in 0..w.batch.start {
        for bit in 0..8 {
            let mut bytes = w.bytes.clone();
            bytes[byte] ^= 1 << bit;
            w.disk.replace(&w.file, bytes);
            match recover(&w.disk, &small(10 << 10)) {
                Err(JournalError::Damaged { file, offset, .. }) => {
                    assert_eq!(file.to_str(), Some(&*w.file));
                    assert!(
                        offset <= byte as u64,
                        "{offset} names the batch of byte {byte}"
                    );
                }
                other => panic!("bit {bit} of byte {byte} gave {other:?}"),
            }
        }
    }
}

#[test]
fn a_flipped_bit_in_an_earlier_segment_is_damage() {
    let disk = SimulatedDisk::new(2);
    let options = small(3 * SECTOR as u64);
    let mut journal = open(&disk, &options).unwrap();
    for key in 1..4 {
        journal.append(&[entity(key, &[key as u8; 600])]).unwrap();
    }
    drop(journal);
    let files = disk.files();
    assert!(files.len() > 3, "the journal has several segments");
    let last = files.keys().next_back().unwrap();
    for (name, bytes) in files.iter().filter(|(name, _)| *name != last) {
        let used = bytes.iter().rposition(|&byte| byte != 0).unwrap();
        for byte in 0..(used + 1).next_multiple_of(SECTOR) {
            let mut flipped = bytes.clone();
            flipped[byte] ^= 1 << (byte % 8);
            disk.replace(name, flipped);
            let result = recover(&disk, &options);
            assert!(
                matches!(result, Err(JournalError::Damaged { .. })),
                "byte {byte} of {name}"
            );
        }
        disk.replace(name, bytes.clone());
    }
}

#[test]
fn an_earlier_segment_without_its_last_batch_is_damage() {
    let disk = SimulatedDisk::new(3);
    let options = small(3 * SECTOR as u64);
    let mut journal = open(&disk, &options).unwrap();
    journal.append(&[entity(1, b"first")]).unwrap();
    journal.append(&[entity(2, &[2; 600])]).unwrap();
    drop(journal);
    let (name, mut bytes) = disk.files().pop_first().unwrap();
    // As if the disk had said that the batch was durable, and had lost it.
    bytes[2 * SECTOR..].fill(0);
    disk.replace(&name, bytes);
    let error = recover(&disk, &options).unwrap_err();
    assert!(
        matches!(error, JournalError::Damaged { offset: 1024, .. }),
        "{error}"
    );
}

#[test]
fn a_torn_batch_is_cut_once() {
    let w = write(&last_batch());
    let mut bytes = w.bytes.clone();
    bytes[w.batch.start..w.batch.start + SECTOR].fill(0);
    w.disk.replace(&w.file, bytes);
    for boot in 2..6 {
        let mut journal = open(&w.disk, &small(10 << 10)).unwrap();
        assert_eq!(live(&mut journal).unwrap(), w.before);
        assert_eq!(journal.boot(), boot, "each start is counted");
    }
}

#[test]
fn a_failed_sync_does_not_damage_the_journal_later() {
    let disk = SimulatedDisk::new(4);
    // Nothing is cleaned: the segment of the failed sync stays.
    let options = JournalOptions {
        spare_bytes: 1 << 20,
        ..small(4 * SECTOR as u64)
    };
    let mut journal = open(&disk, &options).unwrap();
    journal.append(&[entity(1, b"durable")]).unwrap();
    disk.fail_sync_after(0);
    let error = journal.append(&[entity(2, b"only in memory")]).unwrap_err();
    assert!(support::is_of_sync(&error), "{error}");
    let operations = disk.operations();
    assert_eq!(
        journal.append(&[entity(3, b"")]).unwrap_err().to_string(),
        error.to_string()
    );
    assert_eq!(
        disk.operations(),
        operations,
        "the file is never touched again"
    );

    // The next process can read the batch, although the disk does not have it.
    let disk = disk.after_kill();
    let mut journal = open(&disk, &options).unwrap();
    let read = live(&mut journal).unwrap();
    for key in 4..8 {
        journal.append(&[entity(key, &[1; 600])]).unwrap();
    }
    drop(journal);
    let after = recover(&disk.after_power_loss(0), &options).unwrap();
    assert_eq!(after.len(), read.len() + 4);
    assert!(read.iter().all(|record| after.contains(record)));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]
    #[test]
    fn any_sectors_of_the_last_batch_may_be_lost(lost in 0u32..256, sizes in proptest::collection::vec(0usize..900, 1..5)) {
        let records: Vec<_> =
            sizes.iter().zip(20..).map(|(&size, key)| entity(key, &vec![key as u8; size])).collect();
        let w = write(&records);
        let mut bytes = w.bytes.clone();
        for (sector, start) in w.batch.clone().step_by(SECTOR).enumerate() {
            if lost >> sector & 1 == 1 {
                bytes[start..start + SECTOR].fill(0);
            }
        }
        let expected = if bytes == w.bytes { &w.after } else { &w.before };
        w.disk.replace(&w.file, bytes);
        prop_assert_eq!(&recover(&w.disk, &small(10 << 10)).unwrap(), expected);
    }
}

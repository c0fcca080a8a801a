//! Each error names the file and what to do.

mod support;

use bevy_due_ownership::{Journal, JournalError, JournalOptions, SimulatedDisk};
use support::{entity, open, recover, small};

#[test]
fn a_directory_can_be_open_once() {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("open_once_{}", std::process::id()));
    _ = std::fs::remove_dir_all(&directory);
    let options = JournalOptions {
        segment_bytes: 4096,
        ..Default::default()
    };
    let first = Journal::open(&directory, options.clone()).unwrap();
    let error = Journal::open(&directory, options.clone()).unwrap_err();
    assert!(matches!(error, JournalError::InUse { .. }), "{error}");
    assert!(
        error.to_string().contains("is in use: stop the process"),
        "{error}"
    );
    drop(first);
    assert_eq!(Journal::open(&directory, options).unwrap().boot(), 2);
    std::fs::remove_dir_all(directory).unwrap();
}

/// A disk with one segment, and the bytes of the segment.
fn disk_with_a_segment() -> (SimulatedDisk, String, Vec<u8>) {
    let disk = SimulatedDisk::new(1);
    open(&disk, &small(4096))
        .unwrap()
        .append(&[entity(1, b"one")])
        .unwrap();
    let (name, bytes) = disk.files().pop_first().unwrap();
    (disk, name, bytes)
}

#[test]
fn a_newer_format_is_an_error() {
    let (disk, name, mut bytes) = disk_with_a_segment();
    bytes[4] = 2;
    let sum = crc32fast::hash(&bytes[..508]).to_le_bytes();
    bytes[508..512].copy_from_slice(&sum);
    disk.replace(&name, bytes);
    let error = recover(&disk, &small(4096)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "segment-0000000001.due has version 2 of the format, and this release knows version 1: start the \
         release that wrote it, or a newer one"
    );
}

#[test]
fn an_unknown_record_is_an_error_that_names_it() {
    let (disk, name, mut bytes) = disk_with_a_segment();
    // The second batch has the entity. Its checksum covers salt, offset, length and padded records.
    let batch = 1024;
    bytes[batch + 8] = 77;
    let mut covered = bytes[32..40].to_vec();
    covered.extend((batch as u64).to_le_bytes());
    covered.extend(&bytes[batch..batch + 4]);
    covered.extend(&bytes[batch + 8..batch + 512]);
    let sum = crc32fast::hash(&covered).to_le_bytes();
    bytes[batch + 4..batch + 8].copy_from_slice(&sum);
    disk.replace(&name, bytes);
    let error = recover(&disk, &small(4096)).unwrap_err();
    let expected =
        "segment-0000000001.due has a record of the unknown kind 77 in the batch at byte 1024";
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[test]
fn a_missing_segment_is_damage() {
    let disk = SimulatedDisk::new(1);
    let mut journal = open(&disk, &small(1024)).unwrap();
    journal.append(&[entity(1, &[1; 300])]).unwrap();
    journal.append(&[entity(2, &[1; 300])]).unwrap();
    drop(journal);
    let rest = SimulatedDisk::new(2);
    for (name, bytes) in disk.files() {
        if name != "segment-0000000002.due" {
            rest.replace(&name, bytes);
        }
    }
    let error = recover(&rest, &small(1024)).unwrap_err().to_string();
    assert!(error.starts_with("segment-0000000002.due is damaged at byte 0: the file is missing"));
}

#[test]
fn a_segment_of_another_journal_is_damage() {
    let (disk, ..) = disk_with_a_segment();
    let other = SimulatedDisk::new(99);
    let mut journal = open(&other, &small(1024)).unwrap();
    journal.append(&[entity(1, &[1; 300])]).unwrap();
    let (name, bytes) = other.files().pop_last().unwrap();
    assert_eq!(name, "segment-0000000002.due");
    disk.replace(&name, bytes);
    let error = recover(&disk, &small(1024)).unwrap_err().to_string();
    assert!(error.contains("it belongs to another journal"), "{error}");
}

//! A journal has what was committed, whatever the disk does.

use std::{collections::BTreeSet, fs, path::PathBuf};

use bevy_due::worlds::StableKey;
use proptest::prelude::*;

use super::{Change, Journal, JournalId, Rows, SimulatedDisk, rows};
use crate::{JournalError, ids::Life};

fn place() -> impl Strategy<Value = rows::Place> {
    (1..3u64, 0..3u8, 1..4u128, 1..5u64)
}

fn change() -> impl Strategy<Value = Change> {
    let body = prop::collection::vec(any::<u8>(), 0..3000);
    prop_oneof![
        3 => (place(), body).prop_map(|(place, body)| Change::Put(place, body)),
        1 => place().prop_map(Change::remove),
        1 => (place(), 1..5u64).prop_map(|((zone, kind, about, first), last)| {
            let (first, last) = (first.min(last), first.max(last));
            Change::Remove((zone, kind, about, first)..=(zone, kind, about, last))
        }),
    ]
}

fn apply(rows: &mut Rows, change: &Change) {
    match change {
        Change::Put(place, body) => _ = rows.insert(*place, body.clone()),
        Change::Remove(places) => rows.retain(|place, _| !places.contains(place)),
    }
}

fn read(disk: SimulatedDisk) -> Rows {
    Journal::open_simulated(disk).unwrap().read().unwrap().rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 48 } else { 2000 }))]

    /// After a loss of power, the journal has all commits that have returned, and perhaps the one after them. After
    /// an error, it can be opened again and goes on.
    #[test]
    fn power_losses(
        batches in prop::collection::vec(prop::collection::vec(change(), 1..6), 1..20),
        crashes in prop::collection::vec((0..60u64, any::<u64>(), any::<bool>()), 1..5),
    ) {
        let mut disk = SimulatedDisk::new(1);
        let mut journal = Journal::open_simulated(disk.clone()).unwrap();
        let mut crashes = crashes.into_iter();
        let mut next_crash = crashes.next();
        let mut expected = Rows::new();
        for batch in batches {
            if let Some((operations, seed, loses_power)) = next_crash {
                match seed % 3 {
                    0 => disk.fail_sync_after(operations / 8),
                    _ => disk.crash_after(operations),
                }
                let result = journal.append(&batch);
                let before = expected.clone();
                for change in &batch {
                    apply(&mut expected, change);
                }
                disk = match loses_power {
                    true => disk.after_power_loss(seed),
                    false => disk.after_kill(),
                };
                let found = read(disk.clone());
                if result.is_ok() {
                    prop_assert_eq!(&found, &expected);
                } else {
                    prop_assert!(found == expected || found == before);
                }
                expected = found;
                journal = Journal::open_simulated(disk.clone()).unwrap();
                next_crash = crashes.next();
            } else {
                journal.append(&batch).unwrap();
                for change in &batch {
                    apply(&mut expected, change);
                }
            }
        }
        drop(journal);
        prop_assert_eq!(read(disk.after_power_loss(0)), expected);
    }

    /// A full disk changes nothing, and the same changes succeed when there is space.
    #[test]
    fn full_disks(batches in prop::collection::vec(prop::collection::vec(change(), 1..6), 1..10)) {
        let disk = SimulatedDisk::new(2);
        let mut journal = Journal::open_simulated(disk.clone()).unwrap();
        let mut expected = Rows::new();
        for batch in batches {
            disk.set_free_bytes(0);
            match journal.append(&batch) {
                Ok(()) => {}
                Err(error) => {
                    prop_assert!(error.is_full(), "{}", error);
                    prop_assert_eq!(read(disk.after_kill()), expected.clone());
                    disk.set_free_bytes(1 << 24);
                    journal.append(&batch).unwrap();
                }
            }
            for change in &batch {
                apply(&mut expected, change);
            }
        }
        prop_assert_eq!(read(disk.after_power_loss(0)), expected);
    }
}

/// A file in the folder for tests, which is removed at the end.
struct TestFile(PathBuf);

impl TestFile {
    fn new(name: &str) -> Self {
        let name = format!("due_{name}_{}.redb", std::process::id());
        let file = Self(std::env::temp_dir().join(name));
        fs::remove_file(&file.0).ok();
        file
    }

    /// A file with a journal and 300 entities.
    fn filled(name: &str) -> (Self, JournalId) {
        let file = Self::new(name);
        Journal::create(&file.0).unwrap();
        let mut journal = Journal::open(&file.0).unwrap();
        for key in 0..300 {
            let key = StableKey(key);
            let entity = rows::entity(StableKey(1), Life { key, birth: 1 });
            let change = Change::Put(entity, vec![7; 1000]);
            journal.append(&[change]).unwrap();
        }
        let id = journal.id();
        (file, id)
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}

#[test]
fn a_file_is_created_once_and_opened_once() {
    let file = TestFile::new("once");
    let missing = Journal::open(&file.0).unwrap_err();
    assert!(matches!(missing, JournalError::Missing { .. }));
    let text = missing.to_string();
    assert!(
        text.contains(&*file.0.to_string_lossy()) && text.contains("Shard::create"),
        "{text}"
    );
    Journal::create(&file.0).unwrap();
    assert!(matches!(
        Journal::create(&file.0),
        Err(JournalError::Exists { .. })
    ));
    let journal = Journal::open(&file.0).unwrap();
    assert!(matches!(
        Journal::open(&file.0),
        Err(JournalError::InUse { .. })
    ));
    let id = journal.id();
    drop(journal);
    assert_eq!(Journal::open(&file.0).unwrap().id(), id);
}

#[test]
fn an_interrupted_creation_can_be_repeated() {
    let file = TestFile::new("interrupted");
    let unfinished = TestFile(PathBuf::from(format!("{}.new", file.0.display())));
    fs::write(&unfinished.0, vec![3; 100_000]).unwrap();
    Journal::create(&file.0).unwrap();
    assert!(
        Journal::open(&file.0)
            .unwrap()
            .read()
            .unwrap()
            .rows
            .is_empty()
    );
    assert!(!unfinished.0.exists());
}

#[test]
fn a_truncated_file_is_damaged() {
    let (file, id) = TestFile::filled("truncated");
    let bytes = fs::read(&file.0).unwrap();
    for (len, has_id) in [
        (0, false),
        (100, false),
        (bytes.len() / 2, true),
        (bytes.len() - 4096, true),
    ] {
        fs::write(&file.0, &bytes[..len]).unwrap();
        let error = Journal::open(&file.0).unwrap_err();
        let text = error.to_string();
        assert!(
            matches!(error, JournalError::Damaged { .. }),
            "{len}: {text}"
        );
        assert!(
            text.contains("Check the disk") && text.contains("Shard::reclaim"),
            "{text}"
        );
        assert!(!has_id || text.contains(&id.to_string()), "{len}: {text}");
    }
}

#[test]
fn a_changed_byte_is_never_read() {
    let (file, _) = TestFile::filled("flipped");
    let bytes = fs::read(&file.0).unwrap();
    let whole = Journal::open(&file.0).unwrap().read().unwrap();
    let mut outcomes = BTreeSet::new();
    let step = bytes.len() / if cfg!(debug_assertions) { 60 } else { 600 };
    for at in (7..bytes.len()).step_by(step) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&file.0, &damaged).unwrap();
        match Journal::open(&file.0).and_then(|journal| journal.read()) {
            Ok(found) => {
                assert_eq!(found, whole, "a bit at {at} of {} bytes", bytes.len());
                outcomes.insert("unused");
            }
            Err(JournalError::Damaged { .. } | JournalError::Newer { .. }) => {
                outcomes.insert("damaged");
            }
            Err(error) => panic!("a bit at {at}: {error}"),
        }
    }
    assert_eq!(outcomes.len(), 2, "{outcomes:?}");
}

//! A journal has what was committed, whatever the disk does.

use core::ops::Range;
use std::{collections::BTreeSet, fs, path::PathBuf};

use bevy_due::worlds::StableKey;
use proptest::prelude::*;

use super::{Contents, Journal, JournalId, Life, Record, Recovered, SimulatedDisk, ZoneId};
use crate::JournalError;

const ZONES: Range<u64> = 1..4;

fn life() -> impl Strategy<Value = Life> {
    (1..6u64, 1..3u64).prop_map(|(key, birth)| life_of(key, birth))
}

fn life_of(key: u64, birth: u64) -> Life {
    let key = StableKey(key);
    Life { key, birth }
}

fn zone() -> impl Strategy<Value = StableKey> {
    ZONES.prop_map(StableKey)
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..3000)
}

fn record() -> impl Strategy<Value = Record> {
    let journal = || (1..4u128).prop_map(JournalId);
    let peer = (journal(), zone()).prop_map(|(journal, zone)| ZoneId { journal, zone });
    prop_oneof![
        (zone(), body()).prop_map(|(zone, body)| Record::World { zone, body }),
        (zone(), life(), 0..4u64, body()).prop_map(|(zone, life, epoch, body)| Record::Entity {
            zone,
            life,
            epoch,
            body
        }),
        (zone(), life(), 0..4u64).prop_map(|(zone, life, epoch)| Record::Gone {
            zone,
            life,
            epoch
        }),
        (zone(), zone(), 1..9u64, body()).prop_map(|(from, to, number, body)| Record::Item {
            from,
            to,
            number,
            body
        }),
        (zone(), zone(), 1..9u64).prop_map(|(from, to, number)| Record::Done { from, to, number }),
        (zone(), peer, 0..9u64, 0..9u64).prop_map(|(zone, peer, acked, taken)| Record::Stream {
            zone,
            peer,
            acked,
            taken
        }),
        (zone(), journal()).prop_map(|(zone, journal)| Record::Dead { zone, journal }),
    ]
}

/// The journal as its records describe it.
fn apply(contents: &mut Contents, record: &Record) {
    match record {
        Record::World { zone: of, body } => contents.zone(of.0).readings = Some(body.clone()),
        Record::Entity {
            zone: of,
            life,
            epoch,
            body,
        } => {
            let entities = &mut contents.zone(of.0).entities;
            entities.insert(*life, (*epoch, body.clone()));
        }
        Record::Gone {
            zone: of,
            life,
            epoch,
        } => contents
            .zone(of.0)
            .entities
            .retain(|it, (known, _)| it != life || *known > *epoch),
        Record::Item {
            from,
            to,
            number,
            body,
        } => {
            let items = &mut contents.zone(from.0).items;
            items.insert((*to, *number), body.clone());
        }
        Record::Done { from, to, number } => {
            contents.zone(from.0).items.remove(&(*to, *number));
        }
        Record::Stream {
            zone: of,
            peer,
            acked,
            taken,
        } => {
            let zone = contents.zone(of.0);
            zone.streams.insert(*peer, (*acked, *taken));
            zone.items
                .retain(|&(to, number), _| to != peer.zone || number > *acked);
        }
        Record::Dead { zone: of, journal } => {
            contents.dead.insert(*journal);
            let streams = &mut contents.zone(of.0).streams;
            streams.retain(|peer, _| peer.journal != *journal);
        }
    }
}

fn read(disk: SimulatedDisk) -> Contents {
    let mut contents = Journal::open_simulated(disk).unwrap().read().unwrap();
    contents
        .zones
        .retain(|_, zone| *zone != Recovered::default());
    contents
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 48 } else { 2000 }))]

    /// After a loss of power, the journal has all commits that have returned, and perhaps the one after them. After
    /// an error, it can be opened again and goes on.
    #[test]
    fn power_losses(
        batches in prop::collection::vec(prop::collection::vec(record(), 1..6), 1..20),
        crashes in prop::collection::vec((0..60u64, any::<u64>(), any::<bool>()), 1..5),
    ) {
        let mut disk = SimulatedDisk::new(1);
        let mut journal = Journal::open_simulated(disk.clone()).unwrap();
        let mut crashes = crashes.into_iter();
        let mut next_crash = crashes.next();
        let mut expected = Contents::default();
        for batch in batches {
            if let Some((operations, seed, loses_power)) = next_crash {
                match seed % 3 {
                    0 => disk.fail_sync_after(operations / 8),
                    _ => disk.crash_after(operations),
                }
                let result = journal.append(&batch);
                let before = expected.clone();
                for record in &batch {
                    apply(&mut expected, record);
                }
                expected.zones.retain(|_, zone| *zone != Recovered::default());
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
                for record in &batch {
                    apply(&mut expected, record);
                }
                expected.zones.retain(|_, zone| *zone != Recovered::default());
            }
        }
        drop(journal);
        prop_assert_eq!(read(disk.after_power_loss(0)), expected);
    }

    /// A full disk changes nothing, and the same changes succeed when there is space.
    #[test]
    fn full_disks(batches in prop::collection::vec(prop::collection::vec(record(), 1..6), 1..10)) {
        let disk = SimulatedDisk::new(2);
        let mut journal = Journal::open_simulated(disk.clone()).unwrap();
        let mut expected = Contents::default();
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
            for record in &batch {
                apply(&mut expected, record);
            }
            expected.zones.retain(|_, zone| *zone != Recovered::default());
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
            let entity = Record::Entity {
                zone: StableKey(1),
                life: life_of(key, 1),
                epoch: 1,
                body: vec![7; 1000],
            };
            journal.append(&[entity]).unwrap();
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
            .zones
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

//! The bytes of the format. A change of them is a new version.

mod support;

use bevy_due::worlds::StableKey;
use bevy_due_ownership::{JournalId, Record, SimulatedDisk};
use support::{live, open, place, small};

const SEGMENT_V1: &[u8] = include_bytes!("golden/segment_v1.due");
const NAME: &str = "segment-0000000001.due";

/// Each kind of record, so that all but the ends are live.
fn batches() -> [Vec<Record>; 3] {
    let (key, zone, peer, body) = (StableKey(300), StableKey(1), place(2), vec![1, 2, 3]);
    let item = |number| Record::Item {
        from: zone,
        to: peer.zone,
        number,
        body: body.clone(),
    };
    let entity = |key| Record::Entity {
        key,
        epoch: 1,
        zone,
        body: body.clone(),
    };
    [
        vec![
            Record::World {
                zone,
                body: body.clone(),
            },
            entity(key),
            entity(StableKey(6)),
            item(1),
            item(2),
            item(3),
        ],
        vec![
            Record::Gone {
                zone,
                key: StableKey(6),
                epoch: 70_000,
            },
            Record::Done {
                from: zone,
                to: peer.zone,
                number: 3,
            },
            Record::Stream {
                zone,
                peer,
                acked: 1,
                taken: u64::MAX,
            },
        ],
        vec![Record::Dead {
            journal: JournalId(u128::MAX),
        }],
    ]
}

fn expected() -> Vec<Record> {
    let mut records = batches().concat();
    records.retain(|record| {
        !matches!(
            record,
            Record::Entity {
                key: StableKey(6),
                ..
            } | Record::Gone { .. }
                | Record::Done { .. }
                | Record::Item { number: 1 | 3, .. }
        )
    });
    records.sort();
    records
}

#[test]
fn the_format_is_the_golden_file() {
    let disk = SimulatedDisk::new(1);
    let mut journal = open(&disk, &small(4096)).unwrap();
    for batch in batches() {
        journal.append(&batch).unwrap();
    }
    let written = &disk.files()[NAME];
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/segment_v1.due");
        std::fs::write(path, written).unwrap();
    }
    assert!(
        written == SEGMENT_V1,
        "the format has changed: it needs a new version"
    );
}

#[test]
fn the_golden_file_can_be_read() {
    let disk = SimulatedDisk::new(2);
    disk.replace(NAME, SEGMENT_V1.to_vec());
    let mut journal = open(&disk, &small(4096)).unwrap();
    assert_eq!(journal.boot(), 2);
    assert_eq!(live(&mut journal).unwrap(), expected());
}

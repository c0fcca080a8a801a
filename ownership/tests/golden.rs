//! The bytes of the format. A change of them is a new version.

mod support;

use bevy_due_ownership::{JournalId, Key, Record, SimulatedDisk};
use support::{live, open, place, small};

const SEGMENT_V1: &[u8] = include_bytes!("golden/segment_v1.due");
const NAME: &str = "segment-0000000001.due";

/// Each kind of record, so that all but the ends are live.
fn batches() -> [Vec<Record>; 3] {
    let (key, zone, to, body) = (Key(300), Key(1), place(2), vec![1, 2, 3]);
    let lost = JournalId(u128::MAX);
    [
        vec![
            Record::World {
                zone,
                frame: 70_000,
                body: body.clone(),
            },
            Record::Entity {
                key,
                epoch: 1,
                zone,
                body: body.clone(),
            },
            Record::Letter {
                from: key,
                epoch: 1,
                to: Key(5),
                number: 1,
                body: body.clone(),
            },
            Record::Letter {
                from: key,
                epoch: 1,
                to: Key(5),
                number: 2,
                body: body.clone(),
            },
            Record::Giving {
                key,
                epoch: 2,
                from: zone,
                to,
                number: 1,
            },
            Record::Taken {
                from: to,
                to: zone,
                number: 9,
            },
        ],
        vec![
            Record::Acked {
                from: key,
                to: Key(5),
                number: 1,
            },
            Record::Gone {
                key: Key(6),
                epoch: 1,
            },
            Record::Lost {
                key: Key(7),
                epoch: 4,
            },
            Record::Dead { journal: lost },
        ],
        vec![Record::Given {
            from: Key(8),
            to,
            number: u64::MAX,
        }],
    ]
}

fn expected() -> Vec<Record> {
    let mut records = batches().concat();
    records.retain(|record| {
        !matches!(
            record,
            Record::Acked { .. }
                | Record::Gone { .. }
                | Record::Lost { .. }
                | Record::Letter { number: 1, .. }
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

//! Random writes, crashes, cleaning and restarts against a model in memory.

mod support;

use std::{collections::HashMap, thread};

use bevy_due::worlds::StableKey;
use bevy_due_ownership::{JournalError, JournalId, Place, Record, SimulatedDisk};
use support::{live, open, random::Random, small};

/// The live records, by the rules in the docs of `Record`.
#[derive(Clone, Debug, Default)]
struct Model(Vec<Record>);

impl Model {
    fn with(&self, batch: &[Record]) -> Self {
        let mut next = self.clone();
        batch.iter().for_each(|record| next.apply(record));
        next
    }

    fn sorted(mut self) -> Vec<Record> {
        self.0.sort();
        self.0
    }

    fn apply(&mut self, record: &Record) {
        use Record as R;
        let live = &mut self.0;
        match *record {
            R::World { zone, .. } => {
                live.retain(|r| !matches!(r, R::World { zone: z, .. } if *z == zone));
            }
            R::Entity { zone, key, .. } => {
                live.retain(
                    |r| !matches!(r, R::Entity { zone: z, key: k, .. } if (*z, *k) == (zone, key)),
                );
            }
            R::Gone { zone, key, epoch } => live.retain(|r| {
                !matches!(r, R::Entity { zone: z, key: k, epoch: e, .. }
                    if (*z, *k) == (zone, key) && *e <= epoch)
            }),
            R::Item {
                from, to, number, ..
            }
            | R::Done { from, to, number } => live.retain(|r| {
                !matches!(r, R::Item { from: f, to: t, number: n, .. }
                    if (*f, *t, *n) == (from, to, number))
            }),
            R::Stream {
                zone, peer, acked, ..
            } => live.retain(|r| match r {
                R::Item {
                    from, to, number, ..
                } => (*from, *to) != (zone, peer.zone) || *number > acked,
                R::Stream {
                    zone: z, peer: p, ..
                } => (*z, *p) != (zone, peer),
                _ => true,
            }),
            R::Dead { .. } => live.retain(|r| r != record),
            R::Boot { .. } => {}
        }
        let stays = !matches!(record, R::Done { .. } | R::Gone { .. } | R::Boot { .. });
        if stays {
            self.0.push(record.clone());
        }
    }
}

/// Writes what a shard could write.
struct Writer {
    random: Random,
    epochs: HashMap<StableKey, u64>,
    items: u64,
}

impl Writer {
    fn batch(&mut self) -> Vec<Record> {
        let most = if self.random.below(20) == 0 { 40 } else { 4 };
        (0..=self.random.below(most))
            .map(|_| self.record())
            .collect()
    }

    fn record(&mut self) -> Record {
        let random = &mut self.random;
        let key = StableKey(random.below(12));
        let (zone, to) = (StableKey(random.below(3)), StableKey(random.below(3)));
        let journal = JournalId(random.below(4).into());
        let epoch = *self.epochs.entry(key).or_insert(1);
        let body = random.bytes(200);
        match random.below(40) {
            0..2 => Record::World { zone, body },
            2..20 => Record::Entity {
                key,
                epoch,
                zone,
                body,
            },
            20..28 => {
                self.items += 1;
                Record::Item {
                    from: zone,
                    to,
                    number: self.items,
                    body,
                }
            }
            28..31 => Record::Done {
                from: zone,
                to,
                number: self.items - random.below(5).min(self.items),
            },
            31..36 => Record::Stream {
                zone,
                peer: Place { journal, zone: to },
                acked: random.below(self.items + 1),
                taken: random.next(),
            },
            36..39 => {
                // It comes back with the epoch after the next.
                self.epochs.insert(key, epoch + 2);
                Record::Gone { zone, key, epoch }
            }
            _ if random.below(10) == 0 => Record::Dead { journal },
            _ => Record::Gone { zone, key, epoch },
        }
    }
}

#[derive(Default)]
struct Seen {
    lost: u32,
    kept: u32,
    failed_opens: u32,
    cleaned: u32,
    full: u32,
}

/// Plays one seed.
fn play(seed: u64, seen: &mut Seen) {
    let random = Random(seed.wrapping_mul(0x1234_5678_9ABC_DEF1));
    let mut writer = Writer {
        random,
        epochs: HashMap::new(),
        items: 0,
    };
    let options = small(1024 << (seed % 4));
    let mut disk = SimulatedDisk::new(seed);
    let mut synced = Model::default();
    let mut undecided = None;
    let mut boot = 0;
    for _ in 0..12 {
        if writer.random.below(3) == 0 {
            disk.crash_after(writer.random.below(40));
        }
        let opened = open(&disk, &options).and_then(|mut journal| {
            let live = live(&mut journal)?;
            Ok((journal, live))
        });
        if let Ok((mut journal, live)) = opened {
            let expected = synced.clone().sorted();
            match undecided.take().map(Model::sorted) {
                Some(batch) if batch == live && batch != expected => {
                    seen.kept += 1;
                    synced = Model(batch);
                }
                was_undecided => {
                    assert_eq!(live, expected, "seed {seed}");
                    seen.lost += u32::from(was_undecided.is_some());
                }
            }
            assert!(
                journal.boot() > boot,
                "seed {seed}: boot {}",
                journal.boot()
            );
            boot = journal.boot();
            disk.crash_after(writer.random.below(300));
            loop {
                let batch = writer.batch();
                let next = synced.with(&batch);
                if writer.random.below(4) == 0 {
                    disk.set_free_bytes(0);
                }
                let mut appended = journal.append(&batch);
                if matches!(appended, Err(JournalError::Full { .. })) {
                    disk.set_free_bytes(usize::MAX);
                    seen.full += 1;
                    appended = journal.append(&batch);
                }
                if appended.is_err() {
                    undecided = Some(next);
                    break;
                }
                synced = next;
            }
            seen.cleaned += u32::from(!disk.files().contains_key("segment-0000000001.due"));
        } else {
            let crashed = disk.operations() > 0 && opened.is_err();
            assert!(
                crashed && !matches!(opened, Err(ref e) if e.to_string().contains("damaged")),
                "seed {seed}: {opened:?}"
            );
            seen.failed_opens += 1;
        }
        disk.set_free_bytes(usize::MAX);
        disk = match writer.random.below(3) {
            0 => disk.after_kill(),
            _ => disk.after_power_loss(writer.random.next()),
        };
    }
}

#[test]
fn a_journal_has_what_was_synced_after_any_crash() {
    let half = |first| {
        let mut seen = Seen::default();
        (first..1000)
            .step_by(2)
            .for_each(|seed| play(seed, &mut seen));
        seen
    };
    let [even, odd] = thread::scope(|scope| {
        [0, 1]
            .map(|first| scope.spawn(move || half(first)))
            .map(|half| half.join().unwrap())
    });
    // The seeds reach every kind of end often.
    for Seen {
        lost,
        kept,
        failed_opens,
        cleaned,
        full,
    } in [even, odd]
    {
        println!(
            "lost {lost}, kept {kept}, failed opens {failed_opens}, cleaned {cleaned}, full {full}"
        );
        assert!(lost.min(kept).min(failed_opens).min(cleaned).min(full) > 300);
    }
}

#[test]
fn the_files_stay_in_proportion_to_the_live_records() {
    for segment_bytes in [16 << 10, 64 << 10] {
        let options = small(segment_bytes);
        let mut journal = open(&SimulatedDisk::new(5), &options).unwrap();
        let mut random = Random(5);
        for _ in 0..3000 {
            let key = random.below(400);
            let batch = [0, 1, 2].map(|n| support::entity(key + n, &[n as u8; 150]));
            journal.append(&batch).unwrap();
            // The zeros behind each batch count, too.
            let most = 7 * journal.live_bytes() / 2 + options.spare_bytes + 2 * segment_bytes;
            let bytes = journal.file_bytes();
            assert!(
                bytes <= most,
                "{bytes} bytes, {} live",
                journal.live_bytes()
            );
        }
        assert!(journal.live_bytes() > 60_000, "the bound is not trivial");
    }
}

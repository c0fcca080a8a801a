//! Prints what a journal on this disk can do: `cargo run --release --example journal_figures -- [directory]`.

use core::{error::Error, time::Duration};
use std::{env, path::PathBuf, sync::mpsc, thread, time::Instant};

use bevy_due::worlds::StableKey;
use bevy_due_ownership::{Committer, Effect, Frame, Journal, JournalOptions, Record, SubmitError};

fn main() -> Result<(), Box<dyn Error>> {
    let parent = env::args().nth(1).map_or_else(env::temp_dir, PathBuf::from);
    let directory = parent.join(format!("journal_figures_{}", std::process::id()));
    println!("{}", directory.display());
    for (entities, bytes) in [(1, 100), (50, 1000), (1000, 1000)] {
        batches(&directory, entities, bytes)?;
    }
    frames(&directory)?;
    std::fs::remove_dir_all(directory)?;
    Ok(())
}

fn open(directory: &PathBuf) -> Result<Journal, Box<dyn Error>> {
    _ = std::fs::remove_dir_all(directory);
    Ok(Journal::open(directory, JournalOptions::default())?)
}

fn records(first: u64, count: u64, bytes: usize) -> Vec<Record> {
    let record = |key| Record::Entity {
        key: StableKey(key),
        epoch: 1,
        zone: StableKey(1),
        body: vec![7; bytes],
    };
    // 20,000 entities live, so that files are cleaned.
    (first..first + count)
        .map(|number| record(number % 20_000))
        .collect()
}

/// Appends batches for three seconds.
fn batches(directory: &PathBuf, entities: u64, bytes: usize) -> Result<(), Box<dyn Error>> {
    let mut journal = open(directory)?;
    let mut times = Vec::new();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(3) {
        let batch = records(times.len() as u64 * entities, entities, bytes);
        let begun = Instant::now();
        journal.append(&batch)?;
        times.push(begun.elapsed());
    }
    let seconds = start.elapsed().as_secs_f64();
    let megabytes = times.len() as f64 * entities as f64 * bytes as f64 / 1e6;
    print!(
        "batches of {entities} x {bytes} B: {:.0} batches/s, ",
        times.len() as f64 / seconds
    );
    println!("{:.1} MB/s, {}", megabytes / seconds, percentiles(times));
    println!(
        "  files {} MB, live {} MB",
        journal.file_bytes() >> 20,
        journal.live_bytes() >> 20
    );
    let live = journal.live_bytes();
    drop(journal);
    let begun = Instant::now();
    let journal = Journal::open(directory, JournalOptions::default())?;
    println!(
        "  opened again in {:.0} ms",
        begun.elapsed().as_secs_f64() * 1e3
    );
    assert!(journal.live_bytes() >= live, "no record is lost");
    Ok(())
}

/// Four worlds at 60 frames per second, with 50 changed entities each: from `submit` to the effect.
fn frames(directory: &PathBuf) -> Result<(), Box<dyn Error>> {
    let committer = Committer::start(open(directory)?)?;
    let (done, times) = mpsc::channel();
    thread::scope(|scope| {
        for world in 0..4 {
            let (mut submitter, done) = (committer.submitter(2), done.clone());
            scope.spawn(move || {
                for number in 0..300 {
                    let (done, begun) = (done.clone(), Instant::now());
                    let effect: Effect = Box::new(move || _ = done.send(begun.elapsed()));
                    let records = records(world * 5000 + number * 50 % 5000, 50, 1000);
                    let frame = Frame {
                        records,
                        effects: vec![effect],
                    };
                    if let Err(SubmitError::Stopped(_, Some(error))) = submitter.submit(frame) {
                        eprintln!("{error}");
                    }
                    thread::sleep(Duration::from_micros(16_667));
                }
            });
        }
    });
    committer.close()?;
    drop(done);
    let times: Vec<_> = times.iter().collect();
    println!(
        "four worlds at 60 Hz, 50 x 1000 B each: {} effects, {}",
        times.len(),
        percentiles(times)
    );
    Ok(())
}

fn percentiles(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
    format!(
        "median {:.2} ms, p99 {:.2} ms, worst {:.2} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    )
}

//! A process that is killed at each crash point loses nothing that others have seen.
#![cfg(unix)]

mod support;

use core::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use std::{
    env,
    io::Write,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Instant,
};

use bevy_due::worlds::StableKey;
use bevy_due_ownership::{
    Committer, Effect, Frame, JOURNAL_CRASH_POINTS, Journal, JournalOptions, Record, SubmitError,
    set_crash_hook,
};
use rustix::process::{Signal, getpid, kill_process};
use support::live;

/// `<crash point>:<pass>` for the child.
const CRASH: &str = "BEVY_DUE_CRASH";
const DIRECTORY: &str = "BEVY_DUE_DIRECTORY";
/// More frames than any crash point needs.
const FRAMES: u64 = 3000;
const KEYS: u64 = 8;

fn options() -> JournalOptions {
    JournalOptions {
        segment_bytes: 4096,
        spare_bytes: 8192,
        ..Default::default()
    }
}

/// The state of a key after frame `number`, which changes one key.
fn record(number: u64) -> Record {
    let body = number.to_le_bytes().repeat(20);
    Record::Entity {
        key: StableKey(number % KEYS),
        epoch: 1,
        zone: StableKey(1),
        body,
    }
}

fn number(record: &Record) -> u64 {
    let Record::Entity { key, body, .. } = record else {
        panic!("unexpected {record:?}")
    };
    let number = u64::from_le_bytes(*body.first_chunk().unwrap());
    assert_eq!((number % KEYS, body.len()), (key.0, 160));
    number
}

/// The number of the last frame in the journal. The journal must have each key as of that frame.
fn last_frame(journal: &mut Journal) -> u64 {
    let mut numbers: Vec<_> = live(journal).unwrap().iter().map(number).collect();
    numbers.sort_unstable();
    let last = numbers.last().copied().unwrap_or(0);
    let expected: Vec<_> = (last.saturating_sub(KEYS - 1).max(1)..=last).collect();
    assert_eq!(numbers, expected, "the frames are a prefix");
    last
}

/// The child: commits frames from the last one on, and says what it submits and what it has shown.
#[test]
fn child() {
    let (Ok(crash), Ok(directory)) = (env::var(CRASH), env::var(DIRECTORY)) else {
        return;
    };
    let (point, pass) = crash.split_once(':').unwrap();
    let (point, passes_left) = (point.to_owned(), AtomicU64::new(pass.parse().unwrap()));
    set_crash_hook(move |name| {
        if name == point && passes_left.fetch_sub(1, Ordering::Relaxed) == 1 {
            kill_process(getpid(), Signal::KILL).unwrap();
            // No further step of this thread, until the signal is there.
            loop {
                thread::park();
            }
        }
    });
    let mut journal = Journal::open(directory, options()).unwrap();
    let first = last_frame(&mut journal) + 1;
    let committer = Committer::start(journal).unwrap();
    let mut submitter = committer.submitter(4);
    for number in first..first + FRAMES {
        say("submitted", number);
        let effects: Vec<Effect> = vec![
            Box::new(move || say("shown", number)),
            Box::new(move || say("shown", number)),
        ];
        let mut frame = Frame {
            records: vec![record(number)],
            effects,
        };
        while let Err(SubmitError::Busy(again)) = submitter.submit(frame) {
            frame = again;
            thread::yield_now();
        }
    }
    committer.close().unwrap();
}

/// Writes a line at once: the process may be killed after it.
fn say(what: &str, number: u64) {
    std::io::stderr()
        .write_all(format!("{what} {number}\n").as_bytes())
        .unwrap();
}

struct Run {
    submitted: u64,
    shown: u64,
}

/// Starts a child that is killed at a crash point.
fn run_and_kill(directory: &Path, point: &str, pass: u64) -> Run {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .envs([(CRASH, format!("{point}:{pass}"))])
        .env(DIRECTORY, directory)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = child.stderr.take().unwrap();
    let reader = thread::spawn(move || std::io::read_to_string(&mut said).unwrap());
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("the child at {point}:{pass} has not ended in time");
        }
        thread::sleep(Duration::from_millis(1));
    };
    let said = reader.join().unwrap();
    let end = &said[said.len().saturating_sub(300)..];
    assert_eq!(
        status.signal(),
        Some(9),
        "{point}:{pass} was not reached: {end}"
    );
    let last = |what: &str| {
        let numbers = said
            .lines()
            .filter_map(|line| line.strip_prefix(what)?.trim().parse().ok());
        numbers.max().unwrap_or(0)
    };
    Run {
        submitted: last("submitted"),
        shown: last("shown"),
    }
}

#[test]
fn a_process_killed_at_any_crash_point_recovers() {
    let directory =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kills_{}", std::process::id()));
    let (mut kills, mut frames, mut undecided) = (0, 0, 0);
    for pass in 1..=4 {
        _ = std::fs::remove_dir_all(&directory);
        let mut before = 0;
        for point in JOURNAL_CRASH_POINTS {
            // These points come once in each start.
            let once = ["tail.cut", "boot.synced", "journal.opened"].contains(point);
            let run = run_and_kill(&directory, point, if once { 1 } else { pass * pass });
            let mut journal = Journal::open(&directory, options()).unwrap();
            let last = last_frame(&mut journal);
            let Run { submitted, shown } = run;
            assert!(
                shown <= last,
                "{point}:{pass}: frame {shown} was shown, {last} is durable"
            );
            assert!(
                before <= last,
                "{point}:{pass}: frame {before} is lost, {last} is there"
            );
            assert!(
                last <= submitted.max(before),
                "{point}:{pass}: nobody wrote frame {last}"
            );
            undecided += u64::from(last > shown.max(before));
            frames += last - before;
            before = last;
            kills += 1;
        }
    }
    println!("{kills} kills, {frames} frames, {undecided} with frames that nobody had seen");
    assert_eq!(kills, 4 * JOURNAL_CRASH_POINTS.len());
    std::fs::remove_dir_all(directory).unwrap();
}

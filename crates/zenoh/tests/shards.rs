//! The example `shards`, whose processes are killed at random.

use core::time::Duration;
use std::{
    env,
    io::Read,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Instant,
};

/// The example gives up by itself a minute after its eight seconds.
const LIMIT: Duration = Duration::from_secs(120);

/// Ends a process that a failed test leaves.
struct Example(Child);

impl Drop for Example {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Returns what the example prints, after it has ended.
fn run(arguments: &str) -> String {
    let test = env::current_exe().expect("a path");
    let target = test.parent().and_then(Path::parent).expect("a folder");
    let example = target.join("examples/shards");
    let hint = "`cargo test` builds it, `cargo test --test` does not";
    assert!(example.exists(), "{}: {hint}", example.display());
    let child = Command::new(example)
        .args(arguments.split(' '))
        .stdout(Stdio::piped())
        .spawn();
    let mut example = Example(child.expect("the example starts"));
    let mut output = example.0.stdout.take().expect("it is piped");
    let lines = thread::spawn(move || {
        let mut lines = String::new();
        output.read_to_string(&mut lines).map(|_| lines)
    });
    let start = Instant::now();
    let status = loop {
        if let Some(status) = example.0.try_wait().expect("it is a child") {
            break status;
        }
        assert!(start.elapsed() < LIMIT, "the example should have ended");
        thread::sleep(Duration::from_millis(50));
    };
    let lines = lines.join().expect("it reads").expect("it is text");
    assert!(status.success(), "{status}: {lines}");
    lines
}

/// Returns the number in front of a word.
fn number(line: &str, word: &str) -> u64 {
    let parts = line.split(", ");
    let number = parts.filter_map(|part| part.strip_suffix(word)).next();
    let number = number.and_then(|number| number.trim().parse().ok());
    number.unwrap_or_else(|| panic!("there should be a number of {word} in {line:?}"))
}

#[test]
fn shards_that_are_killed_lose_nothing() {
    let output = run("--kill --players 50 --seconds 8");
    let line = output.lines().last().expect("a line");
    for something in ["moves", "letters", "requests", "kills"] {
        assert!(number(line, something) > 0, "{line}");
    }
    for nothing in ["lost", "doubled"] {
        assert_eq!(number(line, nothing), 0, "{output}");
    }
    let timers = line.rsplit(", ").next().expect("the last part");
    let (fired, counted) = timers.split_once(" of ").expect("two numbers");
    let counted = counted.split(' ').next().expect("a number");
    assert_eq!(fired, counted, "{line}");
    assert_ne!(fired, "0", "{line}");
}

//! The search for a script on which the app and the model differ.

use core::{fmt::Debug, time::Duration};
use std::{
    env,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::{
    any::any_script,
    entry::{Entry, View},
    op::Op,
    play::play,
    print,
    progress::{self, Progress},
    rules::Rules,
};

/// The scripts that are played with one seed.
const CASES: u32 = 64;

/// The most scripts that are played to find a shorter one that fails.
const MOST_TRIES: u32 = 20_000;

/// What a search has done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) scripts: u64,
    pub(crate) ops: u64,
    pub(crate) frames: u64,
    pub(crate) firings: u64,
    pub(crate) calls: u64,
    pub(crate) messages: u64,
}

impl Figures {
    /// Counts an operation and the operations of its handlers.
    pub(crate) fn count_op(&mut self, op: &Op) {
        let then = match op {
            Op::Frame(_, then)
            | Op::Reload(_, then)
            | Op::Revive(.., then)
            | Op::Move(.., then) => {
                self.frames += 1;
                then
            }
            Op::Forward(.., then) | Op::ForwardToNext(_, then) => then,
            _ => {
                self.ops += 1;
                return;
            }
        };
        self.ops += 1 + then.0.iter().map(Vec::len).sum::<usize>() as u64;
    }

    pub(crate) fn count_view(&mut self, view: &View) {
        self.firings += view.fired.len() as u64;
        for entry in &view.log {
            self.calls += u64::from(matches!(entry, Entry::Called(_)));
            self.messages += u64::from(matches!(entry, Entry::Heard(_)));
        }
    }

    fn add(&mut self, other: Self) {
        self.scripts += other.scripts;
        self.ops += other.ops;
        self.frames += other.frames;
        self.firings += other.firings;
        self.calls += other.calls;
        self.messages += other.messages;
    }
}

/// Plays random scripts with `ORACLE_SEEDS` seeds, or with one, or with as many as there are in
/// `ORACLE_SECONDS`. The first is `ORACLE_SEED`; otherwise it is 1, or a new one if there are seconds.
///
/// Prints the figures, or the shortest script that fails as a test to paste.
pub(crate) fn search(name: &str, rules: Rules) {
    let number = |name| {
        env::var(name)
            .ok()
            .map(|text| text.parse().expect("a number"))
    };
    let (seconds, fixed): (Option<u64>, Option<u64>) =
        (number("ORACLE_SECONDS"), number("ORACLE_SEED"));
    let first = fixed.unwrap_or_else(|| seconds.map_or(1, |_| new_seed()));
    let seeds = number("ORACLE_SEEDS").unwrap_or(1);
    progress::print(format_args!("{name}: the first seed is {first}"));
    let (start, mut figures, mut seed) = (Instant::now(), Figures::default(), first);
    let mut progress = Progress::new(seconds.unwrap_or(seeds));
    loop {
        figures.add(search_with(name, rules, seed));
        let done = match seconds {
            Some(_) => start.elapsed().as_secs(),
            None => seed - first + 1,
        };
        if progress.reach(done) {
            break;
        }
        seed += 1;
    }
    let secs = start.elapsed().as_secs_f32();
    progress::print(format_args!(
        "{name}: {figures:?} in {secs:.1} s with the seeds {first}..={seed}"
    ));
}

fn new_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or(Duration::ZERO).as_micros() as u64
}

fn search_with(name: &str, rules: Rules, seed: u64) -> Figures {
    let config = Config {
        cases: CASES,
        max_shrink_iters: MOST_TRIES,
        failure_persistence: None,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut figures = Figures::default();
    let total = core::cell::RefCell::new(&mut figures);
    let found = TestRunner::new_with_rng(config, rng).run(&any_script(), |ops| {
        let figures = play(rules, &ops).map_err(TestCaseError::fail)?;
        total.borrow_mut().add(figures);
        Ok(())
    });
    if let Err(TestError::Fail(reason, ops)) = found {
        let test = print::test(name, rules, &ops);
        progress::clear();
        panic!("the seed {seed} finds a difference: {reason}\n\nTo see it again:\n\n{test}");
    }
    figures
}

/// Compares what both sides show, one part after another.
pub(crate) fn compare(shown: &View, expected: &View, op: &Op) -> Result<(), String> {
    let compare = || {
        same("events", &shown.log, &expected.log)?;
        same("firing messages", &shown.fired, &expected.fired)?;
        same(
            "cancellation messages",
            &shown.cancelled,
            &expected.cancelled,
        )?;
        same("entities", &shown.alive, &expected.alive)?;
        same("timers", &shown.timers, &expected.timers)?;
        same("armed timers", &shown.armed, &expected.armed)?;
        same("deadlines", &shown.plans, &expected.plans)?;
        same("keys", &shown.keyed, &expected.keyed)?;
        same("owned entities", &shown.owned, &expected.owned)?;
        same("lifetimes", &shown.lifetimes, &expected.lifetimes)?;
        same("clocks", &shown.clocks, &expected.clocks)?;
        same("statistics", &shown.runs, &expected.runs)?;
        same("message counts", &shown.messages, &expected.messages)
    };
    compare().map_err(|difference| format!("{difference}\nafter {op:?}"))
}

/// Compares two lists, and describes their first difference.
fn same<T: Debug + PartialEq>(what: &str, shown: &[T], expected: &[T]) -> Result<(), String> {
    if shown == expected {
        return Ok(());
    }
    let longest = shown.len().max(expected.len());
    let first = (0..longest).find(|&nth| shown.get(nth) != expected.get(nth));
    let nth = first.unwrap_or_default();
    let list = |list: &[T]| {
        let lines = list.iter().enumerate().take(nth + 4);
        let lines = lines.skip(nth.saturating_sub(3));
        let lines: Vec<String> = lines
            .map(|(nth, it)| format!("  {nth}: {it:?}\n"))
            .collect();
        lines.concat()
    };
    let (shown, expected) = (list(shown), list(expected));
    Err(format!(
        "the {what} differ from number {nth} on\nthe app:\n{shown}the model:\n{expected}"
    ))
}

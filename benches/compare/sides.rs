//! Runs two sides alternately on the same work, and prints a table of their times.

use core::time::Duration;
use std::time::Instant;

use indicatif::ProgressBar;

/// The amount of work per line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The number of measured turns per side.
    pub pairs: usize,
    /// The number of units that make a turn long enough to measure.
    pub units: usize,
    /// The largest `n` to measure.
    pub max_n: usize,
}

/// The work that a side has done since it was set up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The number of units. The time is divided by it.
    pub units: u64,
    /// The checksum of all firings.
    pub checksum: u64,
}

impl Done {
    /// Records an expiry. The checksum depends on the order.
    pub fn record(&mut self, deadline: u64, id: u32) {
        self.units += 1;
        self.checksum = (self.checksum ^ deadline ^ u64::from(id) << 40)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(27);
    }
}

/// Takes a turn. Returns its measured time and the total work so far.
pub type Side = Box<dyn FnMut() -> (Duration, Done)>;

pub fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// A measured line of the table.
#[derive(Debug)]
pub struct Line {
    pub workload: &'static str,
    pub n: usize,
    pub peer: &'static str,
    pub ours_ns: f64,
    pub peer_ns: f64,
}

/// A pass over all workloads.
enum Pass {
    /// Counts the turns.
    Plan { turns: u64 },
    /// Takes the turns, and shows how many. It draws only between them, on this thread.
    Measure { taken: ProgressBar },
}

/// Measures the lines of the table one by one, and prints each.
pub struct Table {
    effort: Effort,
    filter: String,
    pass: Pass,
    lines: Vec<Line>,
}

impl Table {
    /// Measures and prints the lines whose name `workload,n,peer` contains `filter`.
    ///
    /// `workloads` adds all lines. It is called twice: the first time only counts them.
    pub fn measure(effort: Effort, filter: String, workloads: fn(&mut Self)) -> Vec<Line> {
        println!("workload,n,peer,ours_ns,peer_ns,ratio");
        let mut table = Self {
            effort,
            filter,
            pass: Pass::Plan { turns: 0 },
            lines: Vec::new(),
        };
        workloads(&mut table);
        if let Pass::Plan { turns } = table.pass {
            let taken = ProgressBar::new(turns);
            table.pass = Pass::Measure { taken };
        }
        workloads(&mut table);
        table.lines
    }

    /// Measures a line and adds it to the table, unless the filter or `max_n` excludes it.
    ///
    /// Both sides must do exactly the same work. With `slack`, only the numbers of units are compared,
    /// and they may differ by that much.
    pub fn line(
        &mut self,
        (workload, n, peer): (&'static str, usize, &'static str),
        slack: Option<u64>,
        ours: impl FnOnce(usize) -> Side,
        theirs: impl FnOnce(usize) -> Side,
    ) {
        let name = format!("{workload},{n},{peer}");
        let Effort {
            pairs,
            units,
            max_n,
        } = self.effort;
        if n > max_n || !name.contains(&self.filter) {
            return;
        }
        let taken = match &mut self.pass {
            Pass::Plan { turns } => return *turns += 2 * (1 + pairs as u64),
            Pass::Measure { taken } => taken,
        };
        let sides = [ours(units), theirs(units)];
        let [ours_ns, peer_ns] = take_turns(&name, pairs, slack, sides, taken);
        let ratio = peer_ns / ours_ns;
        taken.suspend(|| println!("{name},{ours_ns:.1},{peer_ns:.1},{ratio:.2}"));
        self.lines.push(Line {
            workload,
            n,
            peer,
            ours_ns,
            peer_ns,
        });
    }
}

/// Lets the sides take turns, and returns the median time of each per unit, in nanoseconds.
fn take_turns(
    name: &str,
    pairs: usize,
    slack: Option<u64>,
    mut sides: [Side; 2],
    taken: &ProgressBar,
) -> [f64; 2] {
    let mut times = [Vec::new(), Vec::new()];
    let mut done = [Done::default(); 2];
    for pair in 0..=pairs {
        for side in 0..2 {
            let before = done[side].units;
            let (time, now) = sides[side]();
            done[side] = now;
            let units = now.units - before;
            assert!(units > 0, "{name}: a turn should do some work");
            // The first turn only warms up.
            if pair > 0 {
                times[side].push(time.as_nanos() as f64 / units as f64);
            }
            taken.inc(1);
        }
        let [ours, theirs] = done;
        assert!(
            match slack {
                None => ours == theirs,
                Some(slack) => ours.units.abs_diff(theirs.units) <= slack,
            },
            "{name}: we did {ours:?}, the peer did {theirs:?}"
        );
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    })
}

//! Runs two sides alternately on the same work, and prints a table of their times.

use core::time::Duration;
use std::time::Instant;

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

/// Measures the lines of the table one by one, and prints each.
pub struct Table {
    effort: Effort,
    filter: String,
    lines: Vec<Line>,
}

impl Table {
    /// Creates a table of the lines whose name `workload,n,peer` contains `filter`, and prints the
    /// header.
    pub fn new(effort: Effort, filter: String) -> Self {
        println!("workload,n,peer,ours_ns,peer_ns,ratio");
        Self {
            effort,
            filter,
            lines: Vec::new(),
        }
    }

    /// Measures a line and adds it to the table, unless the filter or `max_n` excludes it.
    ///
    /// The sides take turns. Both must do exactly the same work. With `slack`, only the numbers of
    /// units are compared, and they may differ by that much.
    pub fn line(
        &mut self,
        (workload, n, peer): (&'static str, usize, &'static str),
        slack: Option<u64>,
        ours: impl FnOnce(usize) -> Side,
        theirs: impl FnOnce(usize) -> Side,
    ) {
        let name = format!("{workload},{n},{peer}");
        if n > self.effort.max_n || !name.contains(&self.filter) {
            return;
        }
        let units = self.effort.units;
        let mut sides = [ours(units), theirs(units)];
        let mut times = [Vec::new(), Vec::new()];
        let mut done = [Done::default(); 2];
        for pair in 0..=self.effort.pairs {
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
        let [ours_ns, peer_ns] = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        });
        println!("{name},{ours_ns:.1},{peer_ns:.1},{:.2}", peer_ns / ours_ns);
        self.lines.push(Line {
            workload,
            n,
            peer,
            ours_ns,
            peer_ns,
        });
    }

    /// Returns the lines measured so far.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }
}

//! Two sides that do the same work in turns, and the table of what it takes them.

use core::time::Duration;
use std::time::Instant;

/// How much to do.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How often both sides take their turn.
    pub pairs: usize,
    /// How many units make a turn long enough to measure.
    pub units: usize,
    /// Lines with more timers are left out.
    pub most: usize,
}

/// What a side has done since it was set up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// By what its time is divided.
    pub units: u64,
    /// Of what has fired.
    pub checksum: u64,
}

impl Done {
    /// Notes what fires in its order.
    pub fn note(&mut self, deadline: u64, id: u32) {
        self.units += 1;
        self.checksum = (self.checksum ^ deadline ^ u64::from(id) << 40)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(27);
    }
}

/// A side, set up: takes a turn, says how long the part took that counts, and what has been done
/// in all.
pub type Side = Box<dyn FnMut() -> (Duration, Done)>;

pub fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// A line of the table.
#[derive(Debug)]
pub struct Line {
    pub workload: &'static str,
    pub n: usize,
    pub peer: &'static str,
    pub ours_ns: f64,
    pub peer_ns: f64,
}

/// Measures line by line, and prints what it measures.
pub struct Table {
    effort: Effort,
    filter: String,
    lines: Vec<Line>,
}

impl Table {
    /// A table of the lines whose beginning contains the filter.
    pub fn new(effort: Effort, filter: String) -> Self {
        println!("workload,n,peer,ours_ns,peer_ns,ratio");
        Self {
            effort,
            filter,
            lines: Vec::new(),
        }
    }

    /// Lets both sides take turns, if the line is wanted, and adds it with the medians.
    ///
    /// Both must have done the same, or with some slack as many units.
    pub fn line(
        &mut self,
        (workload, n, peer): (&'static str, usize, &'static str),
        slack: Option<u64>,
        ours: impl FnOnce(usize) -> Side,
        theirs: impl FnOnce(usize) -> Side,
    ) {
        let name = format!("{workload},{n},{peer}");
        if n > self.effort.most || !name.contains(&self.filter) {
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
                assert!(units > 0, "{name}: nothing was done");
                // The first turn is for warming up.
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
                "{name}: {ours:?} is not {theirs:?}"
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

    /// What has been measured so far.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }
}

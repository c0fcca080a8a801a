//! Two sides that do the same work in turns.

use std::time::Instant;

use crate::Effort;

/// What a side has done, for comparing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    pub units: u64,
    /// Of what was fired, in order.
    pub checksum: u64,
}

impl Done {
    pub fn note(&mut self, deadline: u64, id: u32) {
        self.units += 1;
        self.checksum = (self.checksum ^ deadline ^ u64::from(id) << 40)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(27);
    }
}

/// One line of the table: runs both sides in turns, and prints the medians.
///
/// A turn returns what has been done in all since the side was set up; its time is divided by the
/// units that it has added. Both must have done the same, or with some slack as many units.
pub fn compare(
    effort: Effort,
    (workload, n, peer): (&str, usize, &str),
    slack: Option<u64>,
    mut ours: impl FnMut() -> Done,
    mut theirs: impl FnMut() -> Done,
) {
    let mut times = [Vec::new(), Vec::new()];
    let mut done = [Done::default(); 2];
    for pair in 0..=effort.pairs {
        let sides: [&mut dyn FnMut() -> Done; 2] = [&mut ours, &mut theirs];
        for (side, turn) in sides.into_iter().enumerate() {
            let before = done[side].units;
            let start = Instant::now();
            done[side] = turn();
            let time = start.elapsed().as_nanos() as f64;
            let units = done[side].units - before;
            assert!(units > 0, "{workload} {n} {peer}: nothing was done");
            // The first turn is for warming up.
            if pair > 0 {
                times[side].push(time / units as f64);
            }
        }
        let [ours, theirs] = done;
        assert!(
            match slack {
                None => ours == theirs,
                Some(slack) => ours.units.abs_diff(theirs.units) <= slack,
            },
            "{workload} {n} {peer}: {ours:?} is not {theirs:?}"
        );
    }
    let [ours, theirs] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    println!(
        "{workload},{n},{peer},{ours:.1},{theirs:.1},{:.2}",
        theirs / ours
    );
}

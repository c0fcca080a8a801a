//! The queues alone.

use crate::{
    Effort,
    peers::{BevyDue, BigWorld, Cocos, Framework, Queue, Skynet, StdBinaryHeap, Trinity},
    sides::{self, Done},
};

const SECOND: u64 = 1_000_000_000;
const FRAME: u64 = SECOND / 60;
const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];

#[derive(Clone, Copy, PartialEq)]
enum Workload {
    /// Periods of 1 to 60 seconds.
    Periodic,
    /// Periods out of seven.
    Clustered,
    /// Everything in every frame.
    Burst,
    /// A five-hundredth of n armed in each frame, nine in ten cancelled before their time.
    Cancel90,
}

impl Workload {
    const ALL: [Self; 4] = [Self::Periodic, Self::Clustered, Self::Burst, Self::Cancel90];

    fn name(self) -> &'static str {
        match self {
            Self::Periodic => "queue_periodic",
            Self::Clustered => "queue_clustered",
            Self::Burst => "queue_burst",
            Self::Cancel90 => "queue_cancel_90",
        }
    }

    fn period(self, id: u64) -> u64 {
        match self {
            Self::Clustered => [1, 2, 4, 10, 20, 60, 120][id as usize % 7] * SECOND / 2,
            Self::Burst => FRAME,
            Self::Periodic | Self::Cancel90 => SECOND + random(id) % (59 * SECOND),
        }
    }

    /// Expiries in a frame, about.
    fn in_a_frame(self, n: usize) -> usize {
        match self {
            Self::Periodic => n / 864,
            Self::Clustered => n / 109,
            Self::Burst => n,
            Self::Cancel90 => n / 500,
        }
    }
}

/// The same numbers on every run and for all.
fn random(n: u64) -> u64 {
    let n = (n ^ n >> 31)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (n ^ n >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 8
}

pub fn compare(effort: Effort, filter: &str) {
    for workload in Workload::ALL {
        if !workload.name().contains(filter) {
            continue;
        }
        for n in SIZES {
            against::<StdBinaryHeap>("binary_heap", workload, n, effort);
            against::<BigWorld>("bigworld", workload, n, effort);
            against::<Trinity>("trinity", workload, n, effort);
            against::<Skynet>("skynet", workload, n, effort);
            against::<Cocos>("cocos", workload, n, effort);
            against::<Framework>("framework", workload, n, effort);
        }
    }
}

fn against<Q: Queue + 'static>(peer: &str, workload: Workload, n: usize, effort: Effort) {
    if n > Q::MOST {
        return;
    }
    // As many frames as make a turn long enough to measure.
    let expiries = if effort.quick { 400_000 } else { 2_000_000 };
    let frames = (expiries / workload.in_a_frame(n).max(1)).clamp(2, Q::MOST_FRAMES);
    // Coarse ticks are behind by the expiries of a frame or two.
    let slack = (!Q::EXACT).then(|| 2 * workload.in_a_frame(n) as u64 + 2);
    sides::compare(
        effort,
        (workload.name(), n, peer),
        slack,
        turns::<BevyDue>(workload, n, frames),
        turns::<Q>(workload, n, frames),
    );
}

/// A side, set up, which does so many frames in a turn.
fn turns<Q: Queue + 'static>(
    workload: Workload,
    n: usize,
    frames: usize,
) -> Box<dyn FnMut() -> Done> {
    if workload == Workload::Cancel90 {
        let mut side = Cancelling::<Q>::new(n);
        Box::new(move || side.frames(frames))
    } else {
        let mut side = Repeating::<Q>::new(workload, n);
        Box::new(move || side.frames(frames))
    }
}

/// Timers that repeat for ever, each somewhere in its period when it starts.
struct Repeating<Q> {
    queue: Q,
    periods: Vec<u64>,
    now: u64,
    done: Done,
}

impl<Q: Queue> Repeating<Q> {
    fn new(workload: Workload, n: usize) -> Self {
        let mut queue = Q::new(n);
        let periods: Vec<u64> = (0..n as u64).map(|id| workload.period(id)).collect();
        for (id, period) in (0..).zip(&periods) {
            queue.arm(id, 1 + random(u64::from(id) + 7) % period);
        }
        Self {
            queue,
            periods,
            now: 0,
            done: Done::default(),
        }
    }

    fn frames(&mut self, frames: usize) -> Done {
        for _ in 0..frames {
            self.now += FRAME;
            let (periods, done) = (&self.periods, &mut self.done);
            self.queue.expire(self.now, &mut |id, deadline| {
                done.note(deadline, id);
                Some(deadline + periods[id as usize])
            });
        }
        self.done
    }
}

/// Timers that are armed in every frame, and mostly cancelled.
struct Cancelling<Q> {
    queue: Q,
    in_a_frame: usize,
    next: u64,
    ids: u64,
    /// Whom to cancel, by frame: a ring of as many frames as the longest delay has.
    cancels: Vec<Vec<u32>>,
    now: u64,
    expired: Done,
    cancelled: u64,
}

const LONGEST: u64 = 61 * 60;

impl<Q: Queue> Cancelling<Q> {
    fn new(n: usize) -> Self {
        let in_a_frame = n.div_ceil(500);
        let ids = (in_a_frame as u64 * LONGEST) as usize;
        let mut cancelling = Self {
            queue: Q::new(ids),
            in_a_frame,
            next: 0,
            ids: ids as u64,
            cancels: vec![Vec::new(); LONGEST as usize],
            now: 0,
            expired: Done::default(),
            cancelled: 0,
        };
        // Until as many come as go: for as long as the longest delay.
        cancelling.frames(LONGEST as usize);
        cancelling
    }

    fn frames(&mut self, frames: usize) -> Done {
        for _ in 0..frames {
            let frame = self.now / FRAME;
            for _ in 0..self.in_a_frame {
                let id = (self.next % self.ids) as u32;
                let delay = Workload::Cancel90.period(self.next);
                self.queue.arm(id, self.now + delay);
                if random(self.next + 3).is_multiple_of(10) {
                    self.next += 1;
                    continue;
                }
                let after = random(self.next + 5) % (delay / FRAME);
                self.cancels[((frame + after) % LONGEST) as usize].push(id);
                self.next += 1;
            }
            let due = &mut self.cancels[(frame % LONGEST) as usize];
            self.cancelled += due.len() as u64;
            for id in due.drain(..) {
                self.queue.cancel(id);
            }
            self.now += FRAME;
            let expired = &mut self.expired;
            self.queue.expire(self.now, &mut |id, deadline| {
                expired.note(deadline, id);
                None
            });
        }
        Done {
            units: self.expired.units + self.cancelled,
            ..self.expired
        }
    }
}

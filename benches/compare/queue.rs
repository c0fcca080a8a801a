//! Workloads of the queues alone.

use bevy_due::queue::TimerQueue;

use crate::{
    peers::{
        BigWorld, Cocos, DelayQueue, Framework, HashWheel, Payload, Queue, Skynet, StdBTreeMap,
        StdBinaryHeap, Trinity,
    },
    sides::{Done, Side, Table, timed},
    work::{FRAME, SECOND, first_deadline, period_up_to, random},
};

const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];

#[derive(Clone, Copy, PartialEq)]
enum Workload {
    /// Periods of 1 to 60 seconds.
    Periodic,
    /// Seven different periods.
    Clustered,
    /// Every timer is due in every frame.
    Burst,
    /// Arms n/500 timers per frame for 1 to 30 seconds and cancels nine in ten early, so that about n
    /// are armed at any time.
    Cancel90,
}

impl Workload {
    const ALL: [Self; 4] = [Self::Periodic, Self::Cancel90, Self::Burst, Self::Clustered];

    fn name(self) -> &'static str {
        match self {
            Self::Periodic => "queue_periodic",
            Self::Cancel90 => "queue_cancel_90",
            Self::Burst => "queue_burst",
            Self::Clustered => "queue_clustered",
        }
    }

    fn period(self, id: u64) -> u64 {
        match self {
            Self::Periodic => period_up_to(60, id),
            Self::Cancel90 => period_up_to(30, id),
            Self::Burst => FRAME,
            Self::Clustered => [1, 2, 4, 10, 20, 60, 120][id as usize % 7] * SECOND / 2,
        }
    }

    /// Returns the approximate number of units per frame.
    fn units_per_frame(self, n: usize) -> usize {
        match self {
            Self::Periodic => n / 864,
            Self::Cancel90 => n / 500,
            Self::Burst => n,
            Self::Clustered => n / 109,
        }
    }
}

pub fn compare(table: &mut Table) {
    for workload in Workload::ALL {
        for n in SIZES {
            against::<StdBinaryHeap>(table, "binary_heap", workload, n);
            against::<BigWorld>(table, "bigworld", workload, n);
            against::<Trinity>(table, "trinity", workload, n);
            against::<StdBTreeMap>(table, "btree_map", workload, n);
            against::<Skynet>(table, "skynet", workload, n);
            against::<HashWheel>(table, "hash_wheel", workload, n);
            against::<DelayQueue>(table, "delay_queue", workload, n);
            against::<Cocos>(table, "cocos", workload, n);
            against::<Framework>(table, "framework", workload, n);
        }
    }
}

fn against<Q: Queue>(table: &mut Table, peer: &'static str, workload: Workload, n: usize) {
    let max_frames = Q::max_frames(n, workload == Workload::Cancel90);
    if max_frames == 0 {
        return;
    }
    let per_frame = workload.units_per_frame(n).max(1);
    // A peer with coarse ticks lags by the units of a frame or two, and their number varies.
    let slack = (!Q::EXACT).then(|| 3 * per_frame as u64 + 30);
    let frames = |units: usize| (units / per_frame).clamp(1, max_frames);
    table.line(
        (workload.name(), n, peer),
        slack,
        |units| side::<TimerQueue<Payload>>(workload, n, frames(units)),
        |units| side::<Q>(workload, n, frames(units)),
    );
}

/// Returns a side that runs `frames` frames per turn.
fn side<Q: Queue>(workload: Workload, n: usize, frames: usize) -> Side {
    if workload == Workload::Cancel90 {
        let mut side = Cancelling::<Q>::new(n);
        Box::new(move || (timed(|| side.frames(frames)), side.done()))
    } else {
        let mut side = Periodic::<Q>::new(workload, n);
        Box::new(move || (timed(|| side.frames(frames)), side.done))
    }
}

/// Timers that repeat forever, each at a random point of its period at first.
struct Periodic<Q> {
    queue: Q,
    now: u64,
    done: Done,
}

impl<Q: Queue> Periodic<Q> {
    fn new(workload: Workload, n: usize) -> Self {
        let mut queue = Q::new(n);
        for id in 0..n as u32 {
            let period = workload.period(id.into());
            queue.arm(first_deadline(id, period), Payload { id, period });
        }
        Self {
            queue,
            now: 0,
            done: Done::default(),
        }
    }

    fn frames(&mut self, frames: usize) {
        for _ in 0..frames {
            self.now += FRAME;
            self.queue.expire(self.now, &mut |deadline, timer| {
                self.done.record(deadline, timer.id);
                Some(deadline + timer.period)
            });
        }
    }
}

/// Timers that are armed in every frame. Most of them are cancelled.
struct Cancelling<Q: Queue> {
    queue: Q,
    per_frame: u64,
    armed: u64,
    /// The timers to cancel, by frame: a ring with as many frames as the longest delay.
    cancels: Vec<Vec<Q::Key>>,
    frame: u64,
    expired: Done,
    cancelled: u64,
}

/// The number of frames before time zero. They arm the timers that are waiting at time zero.
const WARM_UP_FRAMES: u64 = 30 * 60 + 1;

impl<Q: Queue> Cancelling<Q> {
    fn new(n: usize) -> Self {
        let mut cancelling = Self {
            queue: Q::new(n),
            per_frame: n.div_ceil(500) as u64,
            armed: 0,
            cancels: (0..WARM_UP_FRAMES).map(|_| Vec::new()).collect(),
            frame: 0,
            expired: Done::default(),
            cancelled: 0,
        };
        // Reaches the steady state, in which as many timers come as go. Queues that keep cancelled
        // timers until they are due also hold those.
        for _ in 0..WARM_UP_FRAMES {
            cancelling.arm_and_cancel();
        }
        cancelling.cancelled = 0;
        cancelling
    }

    fn done(&self) -> Done {
        Done {
            units: self.expired.units + self.cancelled,
            ..self.expired
        }
    }

    fn frames(&mut self, frames: usize) {
        for _ in 0..frames {
            self.arm_and_cancel();
            let now = (self.frame - WARM_UP_FRAMES) * FRAME;
            self.queue.expire(now, &mut |deadline, timer| {
                self.expired.record(deadline, timer.id);
                None
            });
        }
    }

    fn arm_and_cancel(&mut self) {
        for _ in 0..self.per_frame {
            self.armed += 1;
            let period = Workload::Cancel90.period(self.armed);
            let Some(deadline @ 1..) =
                (self.frame * FRAME + period).checked_sub(WARM_UP_FRAMES * FRAME)
            else {
                continue;
            };
            let id = self.armed as u32;
            let key = self.queue.arm(deadline, Payload { id, period });
            let chance = random(self.armed + 3);
            if !chance.is_multiple_of(10) {
                let after = (chance >> 8) % (period / FRAME);
                self.cancels[((self.frame + after) % WARM_UP_FRAMES) as usize].push(key);
            }
        }
        let due = &mut self.cancels[(self.frame % WARM_UP_FRAMES) as usize];
        self.cancelled += due.len() as u64;
        for key in due.drain(..) {
            self.queue.cancel(key);
        }
        self.frame += 1;
    }
}

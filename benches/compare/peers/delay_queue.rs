//! tokio-util's `DelayQueue`: a hierarchical wheel over a slab, with ticks of 1 ms on the clock of a
//! tokio runtime.
//!
//! The clock is paused and advanced by hand. The measured time includes one pass of the runtime per
//! frame, which is most of it with a thousand timers.

use core::{future, task::Poll, time::Duration};

use tokio::{
    runtime::{Builder, Runtime},
    task,
    time::{self, Instant},
};
use tokio_util::time::{DelayQueue as Inner, delay_queue::Key};

use super::{Payload, Queue};

pub struct DelayQueue {
    /// The items carry exact deadlines, because the queue keeps only milliseconds.
    queue: Inner<(u64, Payload)>,
    start: Instant,
    now: u64,
    runtime: Runtime,
}

impl Queue for DelayQueue {
    type Key = Key;

    const EXACT: bool = false;

    fn new(_: usize) -> Self {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime with nothing but a timer should build");
        let entered = runtime.enter();
        let (queue, start) = (Inner::new(), Instant::now());
        drop(entered);
        Self {
            queue,
            start,
            now: 0,
            runtime,
        }
    }

    fn arm(&mut self, deadline: u64, payload: Payload) -> Key {
        let _entered = self.runtime.enter();
        let at = self.start + Duration::from_nanos(deadline);
        self.queue.insert_at((deadline, payload), at)
    }

    fn cancel(&mut self, key: Key) {
        self.queue.remove(&key);
    }

    fn expire(&mut self, now: u64, fire: &mut impl FnMut(u64, &Payload) -> Option<u64>) {
        let passed = Duration::from_nanos(now - self.now);
        self.now = now;
        let (queue, start) = (&mut self.queue, self.start);
        // Unconstrained, because the cooperative budget would stop the loop before the queue is empty.
        self.runtime.block_on(task::unconstrained(async {
            time::advance(passed).await;
            future::poll_fn(|cx| {
                while let Poll::Ready(Some(due)) = queue.poll_expired(cx) {
                    let (deadline, payload) = due.into_inner();
                    if let Some(next) = fire(deadline, &payload) {
                        queue.insert_at((next, payload), start + Duration::from_nanos(next));
                    }
                }
                Poll::Ready(())
            })
            .await;
        }));
    }
}

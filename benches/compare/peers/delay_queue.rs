//! tokio-util's `DelayQueue`: a hierarchical wheel over a slab, a tick of 1 ms, read from the clock
//! of a tokio runtime, which stands still here and is moved on by hand. The turn that the runtime
//! takes for that in each frame is in its time, and is most of it with a thousand timers.

use core::{future, task::Poll, time::Duration};

use tokio::{
    runtime::{Builder, Runtime},
    task,
    time::{self, Instant},
};
use tokio_util::time::{DelayQueue as Inner, delay_queue::Key};

use super::{Payload, Queue};

pub struct DelayQueue {
    /// With the deadlines, of which it keeps the milliseconds.
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
            .expect("a runtime of one thread needs no more than memory");
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
        // As long as something is due, and not only until it is the turn of another task.
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

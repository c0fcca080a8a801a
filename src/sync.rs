//! The primitives through which threads share state.
//!
//! `--cfg shuttle` replaces them by the primitives of a checker, which chooses the thread that takes
//! each step: see `crates/proofs/model_check`.

#[cfg(not(shuttle))]
pub(crate) use bevy_platform::sync::{Mutex, MutexGuard, PoisonError, atomic::AtomicUsize};
#[cfg(shuttle)]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, PoisonError, atomic::AtomicUsize};

#[cfg(feature = "worlds")]
pub(crate) use of_worlds::*;

#[cfg(all(feature = "worlds", not(shuttle)))]
mod of_worlds {
    pub(crate) use core::sync::atomic::{AtomicBool, AtomicU64};
    use core::{hint::spin_loop, time::Duration};
    use std::time::Instant;
    pub(crate) use std::{
        sync::{Condvar, RwLock, RwLockReadGuard, RwLockWriteGuard, mpsc},
        thread,
    };

    /// Waits until a condition holds or the time ends, and keeps the thread awake. Yields once first. Returns `true` if
    /// the condition holds before the end.
    pub(crate) fn spin_until(end: Instant, holds: impl Fn() -> bool) -> bool {
        // Whoever makes it hold may be waiting for this processor.
        if !holds() {
            thread::yield_now();
        }
        while Instant::now() < end {
            if holds() {
                return true;
            }
            spin_loop();
        }
        false
    }

    /// Waits until a channel is disconnected. Returns `false` if the limit passes first.
    pub(crate) fn wait_for_end(channel: &mpsc::Receiver<()>, limit: Duration) -> bool {
        channel.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Disconnected)
    }
}

#[cfg(all(feature = "worlds", shuttle))]
mod of_worlds {
    use core::time::Duration;
    use std::time::Instant;

    use shuttle::rand::{Rng, thread_rng};
    pub(crate) use shuttle::{
        sync::{
            Condvar, RwLock, RwLockReadGuard, RwLockWriteGuard,
            atomic::{AtomicBool, AtomicU64},
            mpsc,
        },
        thread,
    };

    /// Waits briefly until a condition holds. The checker has no clock, and it can hold up a thread
    /// before any step, so this need not wait.
    pub(crate) fn spin_until(_end: Instant, holds: impl Fn() -> bool) -> bool {
        holds()
    }

    /// Waits until a channel is disconnected. The checker has no clock, so the limit may pass at any
    /// step.
    pub(crate) fn wait_for_end(channel: &mpsc::Receiver<()>, _limit: Duration) -> bool {
        while channel.try_recv() != Err(mpsc::TryRecvError::Disconnected) {
            if thread_rng().gen_ratio(1, 8) {
                return false;
            }
            thread::yield_now();
        }
        true
    }
}

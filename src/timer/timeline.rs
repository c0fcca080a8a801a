//! All timers of one clock.

use alloc::vec::Drain;
use core::time::Duration;

use bevy_ecs::{entity::Entity, resource::Resource};

use super::{ArmedTimer, TimerCancelled, TimerFired, armed::Firing};
use crate::{
    clock::Reading,
    deferred::DeferredBuffer,
    queue::{TimerKey, TimerQueue},
};

/// The timers of one clock: those in the queue, those added since, and the clock's last reading.
#[derive(Resource, Debug, Default)]
pub(crate) struct Timeline {
    pub(crate) reading: Reading,
    queue: TimerQueue<ArmedTimer>,
    added: DeferredBuffer<Added>,
    pub(super) cancelled: DeferredBuffer<TimerCancelled>,
    /// The entities of owned timers that have fired their last.
    pub(crate) finished: DeferredBuffer<Entity>,
    /// The timer whose component is being discarded: between two hooks of one operation.
    pub(super) discarded: Option<ArmedTimer>,
}

/// A timer that enters the queue with the next swap.
#[derive(Debug)]
struct Added {
    key: TimerKey,
    deadline: u64,
}

impl Timeline {
    /// Arms a timer, due `delay` after the last reading of the clock.
    pub(super) fn add(&mut self, delay: u64, timer: ArmedTimer) -> TimerKey {
        let key = self.queue.reserve(timer);
        let deadline = self.reading.now.saturating_add(delay);
        self.added.push(Added { key, deadline });
        key
    }

    pub(super) fn cancel(&mut self, key: TimerKey) -> Option<ArmedTimer> {
        self.queue.cancel(key)
    }

    pub(super) fn set_owner(&mut self, key: TimerKey, owner: Entity) {
        if let Some(timer) = self.queue.get_mut(key) {
            timer.owner = owner;
        }
    }

    /// Puts what has been added since the last swap into the queue.
    pub(crate) fn swap_added(&mut self) {
        for Added { key, deadline } in self.added.swap() {
            // False for what has been cancelled meanwhile.
            self.queue.arm(key, deadline);
        }
    }

    /// Hands out what has been cancelled since the last swap.
    pub(crate) fn swap_cancelled(&mut self) -> Option<Drain<'_, TimerCancelled>> {
        (!self.cancelled.is_empty()).then(|| self.cancelled.swap())
    }

    /// Takes the next firing that is due, and re-arms its timer or takes it out of the queue.
    ///
    /// The queue is whole and up to date between two calls, so handlers can run there and do
    /// anything.
    pub(crate) fn next_fired(&mut self, burst_limit: u32) -> Option<(TimerKey, TimerFired)> {
        let Reading { now, stopped } = self.reading;
        if stopped {
            return None;
        }
        let mut due = self.queue.pop_due(now)?;
        let (key, deadline) = (due.key(), due.deadline());
        let Firing { missed, next } = due.fire(deadline, now, burst_limit);
        let fired = TimerFired {
            entity: due.entity,
            owner: due.owner,
            deadline: Duration::from_nanos(deadline),
            lateness: Duration::from_nanos(now - deadline),
            missed,
            count: due.count,
            last: next.is_none(),
        };
        if let Some(next) = next {
            due.rearm(next);
        }
        Some((key, fired))
    }
}

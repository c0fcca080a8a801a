//! All timers of one clock.

use core::{num::NonZeroU32, time::Duration};

use bevy_ecs::{
    entity::Entity,
    message::Messages,
    resource::Resource,
    system::{Res, ResMut},
};
use bevy_time::{Time, Virtual};

use super::{ArmedTimer, TimerCancelled, TimerFired, armed::Firing};
use crate::{
    clock::Reading,
    deferred::DeferredBuffer,
    queue::{TimerKey, TimerQueue},
};

/// The timers of one clock: those in the queue, those added since, and what the clock says in this run.
#[derive(Resource, Debug, Default)]
pub(crate) struct Timeline {
    reading: Reading,
    queue: TimerQueue<ArmedTimer>,
    added: DeferredBuffer<Added>,
    pub(super) cancelled: DeferredBuffer<TimerCancelled>,
    /// The entities of owned timers that have fired their last.
    pub(crate) finished: DeferredBuffer<Entity>,
    /// The timer whose component is being discarded: between two hooks of one operation.
    pub(crate) discarded: Option<TimerCancelled>,
    /// The timer that is firing its last: until its handlers have run.
    pub(crate) ending: Option<(Entity, TimerKey)>,
}

/// A timer that enters the queue with the next swap.
#[derive(Debug)]
struct Added {
    key: TimerKey,
    deadline: u64,
}

impl Timeline {
    /// Takes a timer in, to be armed with the next swap.
    pub(super) fn add(&mut self, deadline: u64, timer: ArmedTimer) -> TimerKey {
        let key = self.queue.insert_parked(deadline, timer);
        self.added.push(Added { key, deadline });
        key
    }

    /// Says whether there was something to cancel.
    pub(super) fn cancel(&mut self, key: TimerKey) -> bool {
        self.queue.cancel(key).is_some()
    }

    pub(super) fn set_owner(&mut self, key: TimerKey, owner: Entity) {
        if let Some(timer) = self.queue.get_mut(key) {
            timer.owner = owner;
        }
    }

    /// Fires the first timer that is due, if any is. It is re-armed, or out of the queue and
    /// [`ending`](Self::ending).
    ///
    /// The queue is whole and up to date when this returns, so handlers can run and do anything.
    #[inline]
    pub(crate) fn fire(&mut self, burst_limit: NonZeroU32) -> Option<TimerFired> {
        let Reading { now, stopped } = self.reading;
        if stopped {
            return None;
        }
        let mut due = self.queue.pop_due(now)?;
        let deadline = due.deadline();
        let timer = &mut *due;
        let Firing { missed, next } = timer.fire(deadline, now, burst_limit.get());
        let fired = TimerFired {
            entity: timer.entity,
            owner: timer.owner,
            deadline: Duration::from_nanos(deadline),
            lateness: Duration::from_nanos(now - deadline),
            missed,
            count: timer.count,
            last: next.is_none(),
        };
        match next {
            Some(next) => due.rearm(next),
            None => self.ending = Some((fired.entity, due.key())),
        }
        Some(fired)
    }
}

pub(crate) fn read_clock(time: Res<Time<Virtual>>, mut timeline: ResMut<Timeline>) {
    timeline.reading = Reading::from(&*time);
}

pub(crate) fn swap_added(
    mut timeline: ResMut<Timeline>,
    mut messages: ResMut<Messages<TimerCancelled>>,
) {
    let Timeline {
        queue,
        added,
        cancelled,
        ..
    } = &mut *timeline;
    added.swap();
    for Added { key, deadline } in added.drain() {
        // False for what has been cancelled meanwhile.
        queue.arm(key, deadline);
    }
    cancelled.swap();
    if !cancelled.is_empty() {
        messages.write_batch(cancelled.drain());
    }
}

//! Arming a timer with a state that was read before.

use core::num::NonZeroU32;

use bevy_ecs::prelude::*;

use super::state::{Progress, TimerState};
use crate::{
    clock::{ClockTable, Reading},
    queue::NEVER,
    timer::{
        Kind, TimerQueues,
        place::NO_CLOCK,
        queued::{ArmedTimer, Mark},
        setting::Setting,
    },
};

/// Gives a timer that was just inserted the state of an earlier one. It fires after the timers that are armed already
/// and have the same deadline.
pub(crate) fn put_state(
    world: &mut World,
    entity: Entity,
    kind: Kind,
    state: &TimerState,
) -> Option<()> {
    let setting = Setting::of(world, entity, kind)?;
    let component = kind.get(world, entity)?;
    let inserted = component.seat.place()?;
    let mut timer = ArmedTimer::new(entity, kind, component);
    let table = world.get_resource::<ClockTable>()?;
    let (clock, reading, deadline) = match state {
        TimerState::Finished => {
            let mut queues = world.get_resource_mut::<TimerQueues>()?;
            queues.take(inserted, |_, _| ());
            return Some(());
        }
        // The swap looks for its clock, and starts its delay.
        TimerState::New { random, .. } => {
            timer.set(Mark::New, true);
            timer.set(Mark::Chosen, component.clock().is_some());
            if random.is_some() {
                timer.change_rare(|rare| rare.random = *random);
            }
            (NO_CLOCK, Reading::default(), NEVER)
        }
        TimerState::Armed(progress) => {
            let (found, reading) = table.read(progress.clock).ok()?;
            progress.put_into(&mut timer, component.delay);
            (found.key, reading, progress.deadline(reading))
        }
    };
    setting.apply(&mut timer, reading.now);
    let mut queues = world.get_resource_mut::<TimerQueues>()?;
    queues.take(inserted, |_, _| ());
    let place = queues.add(clock, deadline, timer);
    kind.get(world, entity)?.seat.move_to(Some(place));
    Some(())
}

impl Progress {
    /// Continues a new timer with this delay from here.
    fn put_into(&self, timer: &mut ArmedTimer, delay: u64) {
        timer.set_count(self.count);
        timer.interval = self.interval;
        timer.set_left(self.left.map(NonZeroU32::get));
        if self.random.is_some() {
            timer.change_rare(|rare| rare.random = self.random);
        }
        timer.set_wait(self.wait, delay);
        timer.set(Mark::Chosen, self.is_chosen);
        timer.set(Mark::New, self.is_new);
    }

    /// Returns the deadline on a clock that shows the same time as the earlier one.
    fn deadline(&self, reading: Reading) -> u64 {
        let deadline = reading.now.saturating_add(self.remaining);
        deadline.saturating_sub(self.lateness)
    }
}

//! The components that arm a timer.

use bevy_ecs::prelude::*;

use super::{
    Kind, TimerState, place::Place, random_interval::RandomInterval, saving::sheet::NotWritten,
    slack::Window, timer_seat::TimerSeat,
};
use crate::clock::{ClockId, Reading};

/// A component that arms a timer when it is inserted.
#[cfg_attr(
    not(feature = "serialize"),
    allow(dead_code, reason = "only saving uses all of it")
)]
pub(crate) trait Arms: Component {
    const KIND: Kind;
    /// The component in an error message.
    const NAME: &'static str;

    fn seat(&self) -> &TimerSeat;

    /// Returns `true` if the component decides nothing but its delay.
    fn is_plain(&self) -> bool;

    /// Returns the clock that the component names, or the clock on which it was saved.
    fn chosen_clock(&self) -> Option<ClockId>;

    /// Returns the state in which the component was loaded, until it is armed.
    fn loaded(&self) -> Option<&TimerState>;

    /// Puts the timer into a saved state when the component is inserted.
    fn load(&mut self, state: TimerState);

    /// Lets time pass on the clock of a saved timer.
    #[cfg(feature = "serialize")]
    fn pass(&mut self, passed: impl Fn(ClockId) -> u64) {
        if let Some(mut state) = self.loaded().copied() {
            state.pass(passed);
            self.load(state);
        }
    }

    /// Notes that the loaded state, if any, has been used.
    fn use_loaded(&self);

    /// Returns the wait for the first deadline.
    fn first_wait(&self) -> u64;

    /// Returns `true` if a random delay is added to the delay.
    fn has_jitter(&self) -> bool;

    /// Returns the random intervals of the timer, if any.
    fn intervals(&self, seed: impl FnOnce() -> u64) -> Option<RandomInterval> {
        _ = seed;
        None
    }

    /// Returns the window in which the timer chooses its deadlines, if any. `shift` is the choice that
    /// was saved.
    fn window(&self, shift: Option<u64>) -> Option<Window> {
        _ = shift;
        None
    }

    /// Returns the priority of a timer that may wait for a later frame when it is due.
    fn priority(&self) -> Option<i32> {
        None
    }

    /// Starts the delay at this reading of the clock, and returns the deadline.
    fn start(&self, reading: Reading, random: u64) -> u64;

    /// Returns an exact copy, with the place of the timer and the state in which it was loaded.
    fn copy(&self) -> Self;

    /// Goes back to the place of the timer at the time of the copy.
    fn put_back(&self, copy: &Self) {
        self.seat().move_to(copy.seat().place());
    }

    /// Returns the component in its written state, or `None` if the timer is not armed.
    fn saved(&self) -> Option<Self>
    where
        Self: Clone,
    {
        let state = self.written_state().ok()??;
        let mut saved = self.clone();
        saved.load(state);
        Some(saved)
    }

    /// Returns the component in its written state, or in its first one if there is none.
    #[cfg(feature = "bevy_reflect")]
    fn saved_or_clone(&self) -> Self
    where
        Self: Clone,
    {
        self.saved().unwrap_or_else(|| self.clone())
    }

    /// Returns a copy to serialize later. The copy of an armed timer whose state has not been written
    /// can't be serialized either.
    #[cfg(feature = "bevy_reflect")]
    fn detached(&self) -> Self
    where
        Self: Clone,
    {
        let copy = self.saved_or_clone();
        if self.written_state().is_err() {
            copy.seat().leave_unwritten();
        }
        copy
    }

    /// Returns the state to serialize, or `None` if the timer is not armed.
    fn written_state(&self) -> Result<Option<TimerState>, NotWritten> {
        if let Some(written) = self.seat().written() {
            return written.map(Some);
        }
        match self.seat().place() {
            Place::Nowhere | Place::Reported(_) => Ok(self.loaded().copied()),
            Place::Pending(_) | Place::Armed(..) => Err(NotWritten),
        }
    }
}

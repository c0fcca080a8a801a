//! The state of timers as data: what a save writes and a load reads.

#[cfg(feature = "serialize")]
mod capture;
#[cfg(feature = "serialize")]
mod data;
#[cfg(feature = "serialize")]
mod fields;
pub(super) mod sheet;
mod state;
#[cfg(feature = "serialize")]
mod world_state;

#[cfg(feature = "serialize")]
pub(crate) use capture::Capture;
#[cfg(feature = "serialize")]
pub(super) use data::{LifetimeData, TimerData};
pub(super) use sheet::Sheet;
pub(crate) use sheet::forget_written;
#[cfg(feature = "serialize")]
pub(crate) use sheet::write_timer_states;
pub(super) use state::Loaded;
pub(crate) use state::TimerState;
#[cfg(feature = "serialize")]
pub(crate) use world_state::{MAX_STEPS, SavedWorld, load_world_state};

use bevy_platform::sync::OnceLock;

#[cfg(feature = "serialize")]
use super::ClockId;
use super::Timer;
use sheet::NotWritten;

impl Timer {
    /// Returns the state in which the component was loaded, until it is armed.
    pub(crate) fn loaded(&self) -> Option<&TimerState> {
        let Loaded { state, used } = self.extra.as_deref()?.loaded.as_ref()?;
        used.get().is_none().then_some(state)
    }

    /// Puts the timer into a saved state when the component is inserted.
    pub(super) fn load(&mut self, state: TimerState) {
        let extra = self.extra.get_or_insert_default();
        let used = OnceLock::new();
        extra.loaded = Some(Loaded { state, used });
    }

    /// Notes that the loaded state, if any, has been used.
    pub(super) fn use_loaded(&self) {
        let extra = self.extra.as_deref();
        if let Some(loaded) = extra.and_then(|extra| extra.loaded.as_ref()) {
            _ = loaded.used.set(());
        }
    }

    /// Lets time pass on the clock of a saved timer.
    #[cfg(feature = "serialize")]
    pub(crate) fn pass(&mut self, passed: impl Fn(ClockId) -> u64) {
        if let Some(TimerState::Armed(mut progress)) = self.loaded().copied() {
            progress.pass(passed(progress.clock));
            self.load(TimerState::Armed(progress));
        }
    }

    /// Puts a saved timer on the default clock if it runs on one of these.
    #[cfg(feature = "serialize")]
    pub(crate) fn leave_clock(&mut self, is_missing: impl Fn(ClockId) -> bool) {
        if let Some(TimerState::Armed(mut progress)) = self.loaded().copied()
            && is_missing(progress.clock)
        {
            progress.clock = ClockId::default();
            self.load(TimerState::Armed(progress));
        }
        if let Some(extra) = &mut self.extra
            && extra.options.clock.is_some_and(is_missing)
        {
            extra.options.clock = None;
        }
    }

    /// Returns an exact copy, with the place of the timer and the state in which it was loaded.
    pub(crate) fn copy(&self) -> Self {
        let copy = Self {
            extra: self.extra.clone(),
            ..self.clone()
        };
        copy.take_place_of(self);
        copy
    }

    /// Takes over the place of another timer in the queue.
    pub(crate) fn take_place_of(&self, other: &Self) {
        self.seat.move_to(other.seat.place());
    }

    /// Returns a copy that is data. It is in the state that was written, if any. If the timer has changed
    /// since, the copy can't be serialized.
    #[cfg(feature = "bevy_reflect")]
    pub(super) fn detached(&self) -> Self {
        let mut copy = self.clone();
        match self.written_state() {
            Ok(None) => {}
            Ok(Some(state)) => copy.load(state),
            Err(NotWritten) => copy.seat.leave_unwritten(),
        }
        copy
    }

    /// Returns the state to serialize, or `None` if the timer is not armed.
    fn written_state(&self) -> Result<Option<TimerState>, NotWritten> {
        if let Some(written) = self.seat.written() {
            return written.map(Some);
        }
        match self.seat.place() {
            None => Ok(self.loaded().copied()),
            Some(_) => Err(NotWritten),
        }
    }
}

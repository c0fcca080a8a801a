//! The fault: one call of one handler panics.

use std::{
    collections::BTreeMap,
    panic::resume_unwind,
    sync::{Arc, Mutex, MutexGuard},
};

use bevy_ecs::prelude::*;

/// A kind of handler that may panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    EntityObserver,
    GlobalObserver,
    OwnerObserver,
    ObserverCommand,
    Action,
    NamedHandler,
    DelayedCommands,
    DelayedSystem,
    TimerInserted,
    TimerRemoved,
    LifetimeRemoved,
    EntityDespawned,
    Cancelled,
    OwnedCancelled,
    CancelCommand,
    RunCondition,
    ClockCondition,
    UpdateCallback,
    UpdateCommand,
    UpdateSystem,
    MessageCallback,
    MessageCommand,
    MessageSystem,
}

/// Counts the calls of each kind of handler, and lets one of them panic.
#[derive(Resource, Clone, Default)]
pub(crate) struct Fault(Arc<Mutex<Calls>>);

#[derive(Default)]
struct Calls {
    made: BTreeMap<Place, u64>,
    /// This call panics. The first call has the number zero.
    chosen: Option<(Place, u64)>,
    is_struck: bool,
}

impl Fault {
    pub(crate) fn at(place: Place, nth: u64) -> Self {
        let fault = Self::default();
        fault.calls().chosen = Some((place, nth));
        fault
    }

    /// Counts a call, and panics without a message if it is the chosen one.
    pub(crate) fn strike(&self, place: Place) {
        if self.is_next(place) {
            resume_unwind(Box::new("the chosen call panics"));
        }
    }

    fn is_next(&self, place: Place) -> bool {
        let mut calls = self.calls();
        let made = calls.made.entry(place).or_default();
        let call = (place, *made);
        *made += 1;
        let is_chosen = calls.chosen == Some(call);
        calls.is_struck |= is_chosen;
        is_chosen
    }

    pub(crate) fn is_struck(&self) -> bool {
        self.calls().is_struck
    }

    /// Returns the number of calls of each kind of handler.
    pub(crate) fn made(&self) -> Vec<(Place, u64)> {
        let calls = self.calls();
        calls
            .made
            .iter()
            .map(|(&place, &made)| (place, made))
            .collect()
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().expect("no panic holds the lock")
    }
}

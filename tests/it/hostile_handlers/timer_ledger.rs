//! The bookkeeping of a game with timers: how each timer began and ended, by events and by messages.

use crate::support::*;
use bevy_app::App;
use bevy_due::{ArmedTimers, CancelReason, Timer, TimerCancelled, TimerFired, prelude::*};
use bevy_ecs::{
    entity::EntityHashMap,
    entity_disabling::Disabled,
    message::{MessageCursor, Messages},
    prelude::*,
    query::Allow,
    system::{SystemParam, SystemState},
};
use std::collections::HashMap;

#[derive(Resource, Default)]
pub(crate) struct Ledger {
    insertions: EntityHashMap<u64>,
    /// The last firings, after which a timer is done.
    ends: EntityHashMap<u64>,
    cancellations: EntityHashMap<u64>,
    last_firings: EntityHashMap<Firing>,
    events: Reports,
    messages: Reports,
    fired_cursor: MessageCursor<TimerFired>,
    cancelled_cursor: MessageCursor<TimerCancelled>,
    /// Wrong firings. An assertion in an observer would be lost: the crate catches its panic.
    errors: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Firing {
    count: u64,
    is_last: bool,
}

/// What all events, or all messages, reported.
#[derive(Debug, Default, PartialEq)]
struct Reports {
    firings: u64,
    cancellations: HashMap<(Entity, CancelReason), u64>,
}

impl Reports {
    fn add_cancellation(&mut self, cancelled: &TimerCancelled) {
        let key = (cancelled.entity(), cancelled.reason());
        *self.cancellations.entry(key).or_default() += 1;
    }
}

/// Compares each firing with the world at that moment, and writes it down.
#[derive(SystemParam)]
pub(crate) struct FiringRecorder<'w, 's> {
    ledger: ResMut<'w, Ledger>,
    owners: Query<'w, 's, &'static OwnedBy, Allow<Disabled>>,
    stopped: Query<'w, 's, (), (Allow<Disabled>, Or<(With<Paused>, With<Disabled>)>)>,
    entities: Query<'w, 's, (), Allow<Disabled>>,
}

impl FiringRecorder<'_, '_> {
    pub(crate) fn record(&mut self, fired: &TimerFired) {
        let timer = fired.entity();
        let owned_by = self.owners.get(timer);
        let owner = owned_by.map_or(timer, |owned_by| owned_by.0);
        let errors = &mut self.ledger.errors;
        if !self.entities.contains(timer) {
            errors.push(format!("{timer} fired without an entity"));
        }
        if self.stopped.contains(timer) || self.stopped.contains(owner) {
            let error = format!("{timer} of {owner} fired while paused or disabled");
            errors.push(error);
        }
        if fired.owner() != owner {
            let error = format!("{timer} of {owner} named the owner {}", fired.owner());
            errors.push(error);
        }
        self.ledger.record_count(fired);
    }
}

impl Ledger {
    pub(crate) fn record_insertion(&mut self, timer: Entity) {
        *self.insertions.entry(timer).or_default() += 1;
        self.last_firings.remove(&timer);
    }

    pub(crate) fn record_cancellation(&mut self, cancelled: &TimerCancelled) {
        *self.cancellations.entry(cancelled.entity()).or_default() += 1;
        self.events.add_cancellation(cancelled);
    }

    fn record_count(&mut self, fired: &TimerFired) {
        let timer = fired.entity();
        self.events.firings += 1;
        let firing = Firing {
            count: fired.count(),
            is_last: fired.is_last(),
        };
        let previous = self.last_firings.insert(timer, firing).unwrap_or_default();
        if previous.is_last || firing.count != previous.count + 1 {
            let error = format!("{timer} had {firing:?} after {previous:?}");
            self.errors.push(error);
        }
        if firing.is_last {
            *self.ends.entry(timer).or_default() += 1;
        }
    }

    fn read_messages(
        &mut self,
        fired: &Messages<TimerFired>,
        cancelled: &Messages<TimerCancelled>,
    ) {
        self.messages.firings += self.fired_cursor.read(fired).count() as u64;
        for cancelled in self.cancelled_cursor.read(cancelled) {
            self.messages.add_cancellation(cancelled);
        }
    }
}

/// Runs a frame, and adds its messages to the ledger.
pub(crate) fn advance_and_read(app: &mut App, millis: u64) {
    advance_ms(app, millis);
    app.world_mut()
        .resource_scope(|world, mut ledger: Mut<Ledger>| {
            ledger.read_messages(world.resource(), world.resource());
        });
}

/// Checks what must hold between frames, once the commands of the handlers have been applied.
pub(crate) fn check_invariants(world: &mut World) {
    let mut timers = world.query_filtered::<Entity, (With<Timer>, Allow<Disabled>)>();
    let timers: Vec<Entity> = timers.iter(world).collect();
    check_every_timer_is_armed(world, &timers);
    check_every_timer_ended_at_most_once(world, &timers);
    let ledger = world.resource::<Ledger>();
    check_firings_were_right(ledger);
    check_events_and_messages_agree(ledger);
}

fn check_every_timer_is_armed(world: &mut World, timers: &[Entity]) {
    let mut state = SystemState::<ArmedTimers>::new(world);
    let armed = state.get(world).unwrap();
    for &timer in timers {
        assert!(
            armed.get(timer).is_some(),
            "{timer} has a `Timer` that is not armed"
        );
    }
    assert_eq!(
        armed.count(),
        timers.len(),
        "only entities with a `Timer` should count as armed"
    );
}

/// Each inserted timer fired for the last time, was cancelled, or is still there.
fn check_every_timer_ended_at_most_once(world: &World, timers: &[Entity]) {
    let ledger = world.resource::<Ledger>();
    let count = |counts: &EntityHashMap<u64>, timer| counts.get(timer).copied().unwrap_or(0);
    for (timer, &insertions) in &ledger.insertions {
        let ends = count(&ledger.ends, timer);
        let cancellations = count(&ledger.cancellations, timer);
        let is_armed = timers.contains(timer);
        assert_eq!(
            insertions,
            ends + cancellations + u64::from(is_armed),
            "{timer} was inserted {insertions} times, ended {ends} times and was cancelled \
             {cancellations} times, armed: {is_armed}"
        );
    }
}

fn check_firings_were_right(ledger: &Ledger) {
    assert!(
        ledger.errors.is_empty(),
        "every firing should be allowed and counted: {:#?}",
        ledger.errors
    );
}

fn check_events_and_messages_agree(ledger: &Ledger) {
    assert_eq!(
        ledger.events, ledger.messages,
        "each event should have its message"
    );
}

//! The checks of each firing, and the log of a script.

use std::collections::HashMap;

use core::time::Duration;

use bevy_due::{
    CancelReason, Clock, ClockId, Clocks, OwnedBy, Paused, PausedBy, Timer, TimerCancelled,
    TimerFired, timer::Pauses,
};
use bevy_ecs::prelude::*;

/// An event of a script.
#[derive(Debug, PartialEq)]
pub(super) enum Entry {
    Fired(TimerFired),
    Cancelled(Entity, CancelReason),
    Heard(Entity, u32),
}

/// Follows the timers of a script.
#[derive(Resource, Default)]
pub(super) struct Watch {
    pub(super) log: Vec<Entry>,
    pub(super) frames: u64,
    pub(super) updates: u64,
    timers: HashMap<Entity, Watched>,
    /// The last deadline and place of each clock in this run.
    last: HashMap<ClockId, (Duration, Option<u64>)>,
    /// The clocks that were paused when the run began.
    stopped: Vec<Entity>,
    /// Whether an operation of this run has set a clock back.
    pub(super) is_set_back: bool,
    inserted: u64,
}

/// The last known state of an entity with a timer.
struct Watched {
    state: State,
    count: u64,
    /// Its place among equal deadlines, unless an operation may have changed it.
    place: Option<u64>,
}

#[derive(PartialEq)]
enum State {
    Armed,
    /// The component is gone: the timer fires its last, or was cancelled.
    Removed,
    Cancelled,
}

impl Watch {
    /// Forgets the order of the last run.
    pub(super) fn begin_run(world: &mut World) {
        let mut clocks = world.query::<(Entity, &Clock)>();
        let stopped = clocks.iter(world).filter(|(_, clock)| clock.is_paused());
        let stopped = stopped.map(|(entity, _)| entity).collect();
        let mut watch = world.resource_mut::<Self>();
        watch.last.clear();
        watch.stopped = stopped;
        watch.is_set_back = false;
    }

    /// Notes that the places of timers among equal deadlines may have changed.
    pub(super) fn forget_places(&mut self) {
        for timer in self.timers.values_mut() {
            timer.place = None;
        }
    }

    fn check_fired(&mut self, fired: &TimerFired) {
        let timer = self.timers.get_mut(&fired.entity()).expect("it was armed");
        let may_fire = match timer.state {
            State::Armed => true,
            State::Removed => fired.is_last(),
            State::Cancelled => false,
        };
        assert!(may_fire, "fired after its end: {fired:?}");
        assert_eq!(fired.count(), timer.count + 1, "{fired:?}");
        timer.count += 1;
        let here = (fired.deadline(), timer.place);
        let last = self.last.insert(fired.clock(), here);
        if let Some((deadline, place)) = last {
            assert!(deadline <= here.0, "{deadline:?} came before {fired:?}");
            let is_tie = deadline == here.0;
            if let (true, Some(before), Some(after)) = (is_tie, place, here.1) {
                assert!(before <= after, "armed later, fired earlier than {fired:?}");
            }
        }
    }
}

pub(super) fn add_observers(world: &mut World) {
    world.init_resource::<Watch>();
    world.add_observer(on_insert);
    world.add_observer(on_remove);
    world.add_observer(on_cancelled);
    world.add_observer(on_fired);
}

fn on_insert(inserted: On<Insert<Timer>>, mut watch: ResMut<Watch>) {
    watch.inserted += 1;
    let timer = Watched {
        state: State::Armed,
        count: 0,
        place: Some(watch.inserted),
    };
    watch.timers.insert(inserted.entity, timer);
}

fn on_remove(removed: On<Remove<Timer>>, mut watch: ResMut<Watch>) {
    if let Some(timer) = watch.timers.get_mut(&removed.entity) {
        timer.state = State::Removed;
    }
}

fn on_cancelled(cancelled: On<TimerCancelled>, mut watch: ResMut<Watch>) {
    if cancelled.event_target() != cancelled.entity() {
        return;
    }
    let (entity, reason) = (cancelled.entity(), cancelled.reason());
    watch.log.push(Entry::Cancelled(entity, reason));
    // The event comes after the new timer has arrived.
    if reason != CancelReason::Replaced
        && let Some(timer) = watch.timers.get_mut(&entity)
    {
        timer.state = State::Cancelled;
    }
}

type IsPaused = Or<(With<Paused>, With<PausedBy>)>;

fn on_fired(
    fired: On<TimerFired>,
    mut watch: ResMut<Watch>,
    clocks: Clocks,
    paused: Query<(), IsPaused>,
    owners: Query<(&OwnedBy, Option<&Pauses>)>,
    own_clocks: Query<&Clock>,
) {
    // An observed owner gets the event again.
    if fired.event_target() != fired.entity() {
        return;
    }
    let fired = *fired;
    watch.log.push(Entry::Fired(fired));
    watch.check_fired(&fired);
    assert!(
        !paused.contains(fired.entity()),
        "fired while paused: {fired:?}"
    );
    // The end of a pause is not held by it.
    if let Ok((owner, pauses)) = owners.get(fired.entity())
        && pauses.is_none_or(|pauses| pauses.0 != owner.0)
    {
        assert!(
            !paused.contains(owner.0),
            "fired while its owner is paused: {fired:?}"
        );
    }
    if let ClockId::Own(clock) = fired.clock()
        && watch.stopped.contains(&clock)
        && let Ok(clock) = own_clocks.get(clock)
    {
        assert!(!clock.is_paused(), "fired on a stopped clock: {fired:?}");
    }
    if let Ok(now) = clocks.now(fired.clock())
        && !watch.is_set_back
    {
        assert!(fired.deadline() <= now, "early: {fired:?} at {now:?}");
    }
}

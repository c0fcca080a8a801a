//! The end of a timer: its last firing is over, or it can never fire.

use alloc::{
    collections::{BTreeSet, VecDeque},
    vec::Vec,
};

use bevy_ecs::{prelude::*, world::DeferredWorld};

use super::{
    CancelReason, DespawnAfter, Kind, Place, Timer, TimerQueues, WhenDone,
    cancel::{cancel, cancel_silently},
    late_clock::follow_clock,
    open_request::time_out,
    place::NO_CLOCK,
    queued::Mark,
    queues::{is_armed, is_queued},
    setting::Setting,
};
use crate::{
    clock::{Cadence, ClockKey, ClockTable, SpeedModifier, clock_of},
    owner::{OwnedBy, owner_of, with_all_owned},
    pause::Pauses,
    queue::NEVER,
    recent_peak::RecentPeak,
};

/// Entities whose timers have finished.
#[derive(Clone, Debug, Default)]
pub(super) struct EndedTimers {
    /// By the run that cleans them up: that of a cadence, or whichever comes first.
    ended: [VecDeque<Ended>; 3],
    peak: RecentPeak,
}

/// The ends that the next run of either cadence cleans up.
const ANY_RUN: usize = 2;

fn index(ends_in: Option<Cadence>) -> usize {
    ends_in.map_or(ANY_RUN, |cadence| cadence as usize)
}

/// An entity whose timer or lifetime has finished.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Ended {
    pub(crate) entity: Entity,
    pub(super) kind: Kind,
    pub(super) when_done: WhenDone,
}

impl Ended {
    pub(super) fn timer(entity: Entity, when_done: WhenDone) -> Self {
        Self {
            entity,
            kind: Kind::Timer,
            when_done,
        }
    }

    pub(super) fn lifetime(entity: Entity) -> Self {
        Self {
            kind: Kind::Lifetime,
            ..Self::timer(entity, WhenDone::Despawn)
        }
    }
}

impl EndedTimers {
    /// Returns `true` if a run of this cadence has nothing to clean up.
    pub(super) fn is_empty(&self, cadence: Cadence) -> bool {
        let mut ends = [cadence as usize, ANY_RUN].into_iter();
        ends.all(|ends_in| self.ended[ends_in].is_empty())
    }

    /// Returns the number of ends that a run has to clean up. Their list gives back memory that was not
    /// needed recently.
    fn begin(&mut self, ends_in: usize) -> usize {
        let ended = &mut self.ended[ends_in];
        self.peak.note(ended.len());
        self.peak.trim(ended);
        ended.len()
    }

    /// Gives back memory that was not needed recently. Call this once per frame.
    pub(super) fn trim(&mut self) {
        let longest = self.ended.iter().map(VecDeque::len).max();
        self.peak.note(longest.unwrap_or(0));
        for ended in &mut self.ended {
            self.peak.trim(ended);
        }
    }

    /// Adds an end for the next run of a cadence, or for whichever run comes first.
    pub(super) fn push(&mut self, ends_in: impl Into<Option<Cadence>>, ended: Ended) {
        self.ended[index(ends_in.into())].push_back(ended);
    }

    /// Returns all ends, with the index of the run that cleans them up.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, Ended)> {
        let ends = self.ended.iter().enumerate();
        ends.flat_map(|(ends_in, ended)| ended.iter().map(move |&it| (ends_in, it)))
    }

    /// Returns the entities whose timers or lifetimes have finished in only one of the two.
    pub(super) fn differences(&self, other: &Self) -> Vec<Entity> {
        let finished = |ends: &Self| {
            let ends = ends.iter();
            let ends = ends.map(|(_, ended)| (ended.entity, ended.kind));
            ends.collect::<BTreeSet<_>>()
        };
        let (here, there) = (finished(self), finished(other));
        let different = here.symmetric_difference(&there);
        different.map(|&(entity, _)| entity).collect()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Ended> {
        self.ended.iter_mut().flatten()
    }

    /// Withdraws the last end of the timer or the lifetime of an entity: it is complete, or a handler
    /// gave the entity another one.
    pub(super) fn take_back(
        &mut self,
        ends_in: impl Into<Option<Cadence>>,
        entity: Entity,
        kind: Kind,
    ) {
        let ended = &mut self.ended[index(ends_in.into())];
        let is_it = |ended: &Ended| ended.entity == entity && ended.kind == kind;
        if let Some(nth) = ended.iter().rposition(is_it) {
            ended.remove(nth);
        }
    }
}

/// Lets the next run end what it would have ended in the saved world.
#[cfg(feature = "serialize")]
pub(crate) fn put_ends(world: &mut World, ends: impl IntoIterator<Item = (usize, Ended)>) {
    if let Some(mut queues) = world.get_resource_mut::<TimerQueues>() {
        for (ends_in, ended) in ends {
            queues.reports.ended.ended[ends_in.min(ANY_RUN)].push_back(ended);
        }
    }
}

/// Ends the timers that finished in the previous run. Systems have read their messages by now.
///
/// The `Timer` itself was removed after its last firing, unless a handler panicked and the panic
/// was caught.
pub(super) fn end_finished(world: &mut World, cadence: Cadence) {
    for ends_in in [cadence as usize, ANY_RUN] {
        let mut queues = world.resource_mut::<TimerQueues>();
        // What handlers add meanwhile waits for the next run.
        for _ in 0..queues.reports.ended.begin(ends_in) {
            let mut queues = world.resource_mut::<TimerQueues>();
            let Some(ended) = queues.reports.ended.ended[ends_in].pop_front() else {
                break;
            };
            // Recorded again: if an observer panics, the next run ends it.
            end_recorded(world, cadence, ended, |world| match ended.kind {
                Kind::Timer | Kind::Request => end_unarmed(world, ended.entity, ended.when_done),
                Kind::Lifetime => end_life(world, ended.entity),
            });
        }
    }
}

/// Calls `end`. If a handler panics in it and the game catches the panic, the next run completes
/// `ended`.
pub(super) fn end_recorded(
    world: &mut World,
    ends_in: impl Into<Option<Cadence>>,
    ended: Ended,
    end: impl FnOnce(&mut World),
) {
    let ends_in = ends_in.into();
    if let Some(mut queues) = world.get_resource_mut::<TimerQueues>() {
        queues.reports.ended.push(ends_in, ended);
    }
    end(world);
    if let Some(mut queues) = world.get_resource_mut::<TimerQueues>() {
        let reports = &mut queues.reports;
        reports.ended.take_back(ends_in, ended.entity, ended.kind);
    }
}

/// Ends what an entity that despawns in the next run does to others, and what it owns does. It lasts no longer than its
/// timer.
pub(super) fn end_effects(world: &mut World, entity: Entity, when_done: WhenDone) {
    if !despawns(world, entity, when_done) {
        return;
    }
    for carrier in with_all_owned(world, entity) {
        if let Ok(mut carrier) = world.get_entity_mut(carrier)
            && (carrier.contains::<Pauses>() || carrier.contains::<SpeedModifier>())
        {
            carrier.remove::<(Pauses, SpeedModifier)>();
        }
    }
}

/// Ends the timer on an entity, unless a timer is armed there.
pub(super) fn end_unarmed(world: &mut World, entity: Entity, when_done: WhenDone) {
    let timer = world.get::<Timer>(entity);
    let is_armed = timer.map(|timer| is_queued(world, timer));
    if is_armed != Some(true) && despawns(world, entity, when_done) {
        world.try_despawn(entity).ok();
        return;
    }
    if is_armed == Some(false) {
        world.entity_mut(entity).remove::<Timer>();
    }
}

/// Despawns an entity whose lifetime is over, unless it has got another one.
fn end_life(world: &mut World, entity: Entity) {
    if world.get::<DespawnAfter>(entity).is_some() && !is_armed(world, entity, Kind::Lifetime) {
        world.try_despawn(entity).ok();
    }
}

/// Cancels the timers of a clock that is removed or despawned, in the order in which they were armed.
///
/// A new timer is not settled on the clock yet. The next swap decides.
pub(crate) fn cancel_timers_of_clock(world: &mut DeferredWorld, clock: Entity, is_despawned: bool) {
    let table = world.get_resource::<ClockTable>();
    let Some(clock_key) = table.and_then(|table| table.key_of(clock)) else {
        return;
    };
    let queues = world.get_resource::<TimerQueues>();
    let queue = queues.and_then(|queues| queues.get(clock_key));
    let timers = queue.into_iter().flat_map(|queue| {
        let timers = queue.timers.iter();
        timers.map(|(key, _, timer)| (queue.armed_as(key), key, timer.clone()))
    });
    let mut timers: Vec<_> = timers.collect();
    // The order in the queue depends on its past, which a loaded world does not share.
    timers.sort_unstable_by_key(|&(order, ..)| order);
    for (_, key, timer) in timers {
        let (entity, kind) = (timer.entity, timer.kind());
        if timer.is(Mark::New) {
            unsettle(world, (clock_key, key), entity, kind);
            continue;
        }
        if leave_clock(world, clock_key, entity, kind).is_some() {
            continue;
        }
        let is_owner = |timer: EntityRef| owner_of(timer) == clock;
        // If the clock is also the owner, `OwnerGone` is the more precise reason.
        let reason = match is_despawned && world.get_entity(entity).is_ok_and(is_owner) {
            true => CancelReason::OwnerGone,
            false => CancelReason::ClockGone,
        };
        match kind {
            Kind::Timer => _ = cancel(world, entity, reason),
            Kind::Request | Kind::Lifetime => cancel_silently(world, entity, kind),
        }
        // One command per timer: if one panics, the others still run.
        let mut commands = world.commands();
        commands.queue(move |world: &mut World| retire(world, entity, kind));
    }
    if let Some(mut queues) = world.get_resource_mut::<TimerQueues>() {
        queues.forget_clock(clock_key);
    }
}

/// Moves a timer off a clock that is removed, if it has yet to follow its default clock to another one. The clock that
/// a speed modifier modifies may have got another parent.
fn leave_clock(
    world: &mut DeferredWorld,
    clock: ClockKey,
    entity: Entity,
    kind: Kind,
) -> Option<()> {
    let entity_ref = world.get_entity(entity).ok()?;
    let chosen = kind.on(entity_ref)?.clock();
    let default = clock_of(world, entity_ref, owner_of(entity_ref), chosen);
    let found = world.get_resource::<ClockTable>()?.find(default).ok()?;
    if found.key == clock {
        return None;
    }
    follow_clock(world, entity, kind)
}

/// Takes a new timer off a clock that is removed.
fn unsettle(world: &mut DeferredWorld, place: Place, entity: Entity, kind: Kind) {
    let queues = world.get_resource_mut::<TimerQueues>();
    let place = queues.and_then(|mut queues| queues.move_new(place, NO_CLOCK, NEVER, 0));
    if let (Some(_), Some(timer)) = (place, kind.get(world, entity)) {
        timer.seat.move_to(place);
    }
}

/// Cancels a timer of an entity, unless its clock exists by now.
pub(super) fn cancel_without_clock(world: &mut World, entity: Entity, kind: Kind) {
    let setting = Setting::of(world, entity, kind);
    let table = world.get_resource::<ClockTable>();
    let (Some(setting), Some(table)) = (setting, table) else {
        return;
    };
    if table.find(setting.clock).is_ok() {
        // An observer of another cancellation has added it.
        follow_clock(&mut world.into(), entity, kind);
        return;
    }
    match kind {
        Kind::Timer => _ = cancel(&mut world.into(), entity, CancelReason::ClockGone),
        Kind::Request | Kind::Lifetime => cancel_silently(&mut world.into(), entity, kind),
    }
    retire(world, entity, kind);
}

/// Removes the component whose timer was cancelled because its clock does not exist, unless the
/// entity has a new one.
fn retire(world: &mut World, entity: Entity, kind: Kind) {
    let timer = kind.get(world, entity);
    if timer.is_none_or(|timer| timer.seat.place().is_some()) {
        return;
    }
    match kind {
        Kind::Timer => {
            let when_done = when_done(world, entity);
            let ended = Ended::timer(entity, when_done);
            end_recorded(world, Cadence::Frame, ended, |world| {
                end_unarmed(world, entity, when_done);
            });
        }
        Kind::Request => time_out(world, entity),
        Kind::Lifetime => {
            let mut entity = world.entity_mut(entity);
            if entity.contains::<Pauses>() || entity.contains::<SpeedModifier>() {
                // Nothing else would end this effect.
                entity.despawn();
            } else {
                entity.remove::<DespawnAfter>();
            }
        }
    }
}

/// Takes the timers of an entity, of any kind, out of their queues, without an event.
#[cfg(feature = "serialize")]
pub(crate) fn forget_timers(world: &mut World, entity: Entity) {
    for kind in Kind::ALL {
        cancel_silently(&mut world.into(), entity, kind);
    }
}

/// Removes the `Timer` of an entity whose owner does not exist, and despawns the entity in the next
/// run.
///
/// The despawn is delayed because the caller may still have commands for the entity.
pub(super) fn retire_later(world: &mut World, entity: Entity) {
    if let Ok(mut entity) = world.get_entity_mut(entity) {
        entity.remove::<Timer>();
    }
    if let Some(mut queues) = world.get_resource_mut::<TimerQueues>() {
        let ended = Ended::timer(entity, WhenDone::DespawnUnlessOwned);
        queues.reports.ended.push(None, ended);
    }
}

/// Returns what happens to an entity whose timer finishes now. Without an owner, it is kept.
pub(super) fn when_done(world: &World, entity: Entity) -> WhenDone {
    let when_done = world.get::<Timer>(entity).map(Timer::when_done);
    let when_done = when_done.unwrap_or_default();
    match despawns(world, entity, when_done) {
        true => when_done,
        false => WhenDone::Keep,
    }
}

/// Returns `true` if an entity despawns now that its timer has finished.
fn despawns(world: &World, entity: Entity, when_done: WhenDone) -> bool {
    match when_done {
        WhenDone::DespawnIfOwned => world.get::<OwnedBy>(entity).is_some(),
        WhenDone::Keep => false,
        WhenDone::Despawn => true,
        WhenDone::DespawnUnlessOwned => world.get::<OwnedBy>(entity).is_none(),
    }
}

//! Arming: the two steps of a timer on its way into the queue.
//!
//! Inserting the component puts the timer into the queue of its clock at once, parked, and on the list of new timers. A
//! clock, an owner or a pause that arrives later moves or halts it through its own hook. The swap at the start of the
//! next run lets the timer wait for its deadline.

use alloc::vec::Vec;
use core::mem;

use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};

use super::{
    Kind, TimerAction, TimerQueues,
    end::cancel_without_clock,
    late_clock::{add_modified_clocks, follow_clock},
    place::{NO_CLOCK, Place},
    queued::{ArmedTimer, Mark},
    random::Numbers,
    setting::{Modified, Modifiers, Setting},
};
use crate::{
    clock::{ClockError, ClockId, ClockTable, DueClock, Reading, add_missing_clock, warn},
    missing_plugin::warn_without_plugin,
    owner::OwnedBy,
    recent_peak::RecentPeak,
};

/// What arming needs beside the queues.
#[derive(Debug)]
pub(super) struct Arming {
    pub(super) swap_list: SwapList,
    /// The sequence of the timer that is armed next, on whichever clock.
    pub(super) next_sequence: u64,
    pub(super) numbers: Numbers,
    pub(super) modifiers: Modifiers,
    /// The depth of the chain to which the timers belong that are armed now: zero, except in a handler in an exact
    /// frame.
    pub(super) depth: u32,
    /// The actions since the last run whose handlers were unknown when they were inserted.
    pub(super) unhandled: Vec<Entity>,
    /// Kept for its memory: the clocks with due timers in a run.
    pub(super) due: Vec<DueClock>,
}

/// The timers that the next swap arms. A timer that is cancelled leaves its entry.
#[derive(Clone, Debug, Default)]
pub(super) struct SwapList {
    timers: Vec<Place>,
    /// The length at which cancelled timers are forgotten.
    limit: usize,
    peak: RecentPeak,
}

/// The bit in the sequence of a lifetime: at equal deadlines, lifetimes end after all timers have fired and all
/// requests have timed out.
pub(super) const LIFETIME: u64 = 1 << 63;

impl Arming {
    pub(super) fn new(modifiers: Modifiers, seed: u64) -> Self {
        Self {
            swap_list: SwapList::default(),
            next_sequence: 0,
            numbers: Numbers::new(seed),
            modifiers,
            depth: 0,
            unhandled: Vec::new(),
            due: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn next_sequence(&mut self, kind: Kind) -> u64 {
        self.next_sequence += 1;
        match kind {
            Kind::Timer | Kind::Request => self.next_sequence,
            Kind::Lifetime => self.next_sequence | LIFETIME,
        }
    }
}

impl SwapList {
    pub(super) fn is_empty(&self) -> bool {
        self.timers.is_empty()
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.timers.len() >= self.limit
    }

    #[inline]
    pub(super) fn push(&mut self, place: Place) {
        self.timers.push(place);
    }

    /// Keeps the timers that are needed, and makes room for as many again.
    pub(super) fn retain(&mut self, is_needed: impl Fn(Place) -> bool) {
        self.timers.retain(|&place| is_needed(place));
        self.limit = 2 * self.timers.len() + 64;
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Place> {
        self.timers.iter().copied()
    }

    /// Takes all timers. Hand the memory back with [`reuse`](Self::reuse).
    fn take(&mut self) -> Vec<Place> {
        mem::take(&mut self.timers)
    }

    /// Gives back memory that was not needed recently. Call this once per frame.
    pub(super) fn trim(&mut self) {
        self.peak.note(self.timers.len());
        let enough = self.peak.enough(self.timers.capacity());
        self.timers.shrink_to(enough);
    }

    /// Keeps the memory of timers that were taken, unless much less was needed recently.
    fn reuse(&mut self, mut taken: Vec<Place>) {
        self.peak.note(taken.len());
        taken.clear();
        taken.shrink_to(self.peak.enough(taken.capacity()));
        taken.append(&mut self.timers);
        self.timers = taken;
    }
}

pub(super) fn on_insert(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    add_timer(&mut world, entity, Kind::Timer);
}

pub(super) fn on_insert_request(mut world: DeferredWorld, context: HookContext) {
    // A request has an owner, so it is never plain.
    if add_owned(&mut world, context.entity, Kind::Request).is_none() {
        add_any(&mut world, context.entity, Kind::Request);
    }
}

pub(super) fn on_insert_lifetime(mut world: DeferredWorld, context: HookContext) {
    add_timer(&mut world, context.entity, Kind::Lifetime);
}

/// Puts the timer of this kind on `entity` into a queue. The next swap arms it.
///
/// Does nothing in a world without the plugin, such as one that holds a scene. A `Timer` is plain
/// data there.
#[inline(always)]
pub(crate) fn add_timer(world: &mut DeferredWorld, entity: Entity, kind: Kind) {
    if add_plain(world, entity, kind).is_none() && add_owned(world, entity, kind).is_none() {
        add_any(world, entity, kind);
    }
}

#[inline(never)]
fn add_any(world: &mut DeferredWorld, entity: Entity, kind: Kind) {
    if !world.contains_resource::<TimerQueues>() {
        let name = match kind {
            Kind::Timer => "a `Timer`",
            Kind::Request => "a request",
            Kind::Lifetime => "a `DespawnAfter`",
        };
        return warn_without_plugin(world, name);
    }
    add_set(world, entity, kind);
}

/// Adds a plain timer on an entity without modifiers. Most timers are like that.
/// Returns `None` for any other timer.
#[inline(always)]
fn add_plain(world: &mut DeferredWorld, entity: Entity, kind: Kind) -> Option<()> {
    let (queues, table, entity) = queues_and_entity(world, entity)?;
    let modified = queues.arming.modifiers.note(entity.archetype());
    if modified.by != Modified::Nothing {
        return None;
    }
    add_to_game_clock(queues, table, entity, kind, |armed| {
        armed.set(Mark::Observed, modified.is_observed);
    })
}

/// Adds a plain timer on an entity whose owner has no modifiers. Returns `None` for any other timer.
fn add_owned(world: &mut DeferredWorld, entity: Entity, kind: Kind) -> Option<()> {
    let &OwnedBy(owner) = world.get(entity)?;
    let [queues, table] = entities_of_resources(world)?;
    let entities = [queues, table, entity, owner];
    let [queues, table, entity, owner] = world.get_entity_mut(entities).ok()?;
    let queues = queues.into_mut::<TimerQueues>()?.into_inner();
    let modifiers = &mut queues.arming.modifiers;
    let (modified, of_owner) = (
        modifiers.note(entity.archetype()),
        modifiers.note(owner.archetype()),
    );
    if modified.by != Modified::OwnerOrAction || of_owner.by != Modified::Nothing {
        return None;
    }
    let (table, entity) = (table.into_readonly().get()?, entity.into_readonly());
    add_to_game_clock(queues, table, entity, kind, |armed| {
        armed.set(Mark::Owned, true);
        armed.set(Mark::Observed, modified.is_observed || of_owner.is_observed);
        armed.set_acts(entity.contains::<TimerAction>());
    })
}

/// Adds a plain timer to the clock of the game. Returns `None` for any other timer.
#[inline(always)]
fn add_to_game_clock(
    queues: &mut TimerQueues,
    table: &ClockTable,
    entity: EntityRef,
    kind: Kind,
    set: impl FnOnce(&mut ArmedTimer),
) -> Option<()> {
    let timer = kind.on(entity).filter(|timer| timer.is_plain())?;
    let (clock, _) = ClockTable::GAME;
    let mut armed = ArmedTimer::new(entity.id(), kind, timer);
    armed.set(Mark::New, true);
    set(&mut armed);
    let deadline = table.game_time().saturating_add(timer.delay);
    let place = queues.add(clock, deadline, armed);
    timer.seat.move_to(Some(place));
    Some(())
}

/// Borrows the queues, the clocks and an entity at once. Returns `None` if one of them is missing.
#[inline(always)]
pub(super) fn queues_and_entity<'w>(
    world: &'w mut DeferredWorld,
    entity: Entity,
) -> Option<(&'w mut TimerQueues, &'w ClockTable, EntityRef<'w>)> {
    let [queues, table] = entities_of_resources(world)?;
    let [queues, table, entity] = world.get_entity_mut([queues, table, entity]).ok()?;
    let queues = queues.into_mut::<TimerQueues>()?.into_inner();
    Some((queues, table.into_readonly().get()?, entity.into_readonly()))
}

/// Returns the entities of the queues and of the clocks. A resource is a component of its own entity.
#[inline(always)]
fn entities_of_resources(world: &DeferredWorld) -> Option<[Entity; 2]> {
    let (components, resources) = (world.components(), world.resource_entities());
    let queues = resources.get(components.valid_component_id::<TimerQueues>()?)?;
    let table = resources.get(components.valid_component_id::<ClockTable>()?)?;
    Some([queues, table])
}

/// Adds a timer whose setting differs from the default.
fn add_set(world: &mut DeferredWorld, entity: Entity, kind: Kind) -> Option<()> {
    let mut setting = Setting::of(world, entity, kind)?;
    if let ClockId::Own(_) = setting.clock {
        add_missing_clock(world, setting.clock);
        setting = Setting::of(world, entity, kind)?;
    }
    let mut numbers = world.get_resource::<TimerQueues>()?.arming.numbers;
    let component = kind.get(world, entity)?;
    let table = world.get_resource::<ClockTable>()?;
    let read = table.read(setting.clock).ok();
    let read = read.map(|(found, reading)| (found.key, reading));
    let (clock, reading) = read.unwrap_or((NO_CLOCK, Reading::default()));
    let mut timer = ArmedTimer::new(entity, kind, component);
    timer.set(Mark::Chosen, component.clock().is_some());
    let (deadline, wait) = component.start(reading, &mut numbers);
    timer.set_wait(wait, component.delay);
    component.begin_draws(&mut timer, &mut numbers);
    timer.set(Mark::New, true);
    setting.apply(&mut timer, reading.now);
    let mut queues = world.get_resource_mut::<TimerQueues>()?;
    queues.arming.numbers = numbers;
    let place = queues.add(clock, deadline, timer);
    let component = kind.get(world, entity)?;
    component.seat.move_to(Some(place));
    Some(())
}

/// The swap: releases the timers that were added or changed since the last one. A new timer whose clock does
/// not exist is cancelled.
pub(crate) fn swap(world: &mut World) {
    let mut queues = world.resource_mut::<TimerQueues>();
    if !queues.is_running() {
        // A panic may have kept the previous run from it.
        queues.end_bursts();
        queues.arming.depth = 0;
    }
    add_modified_clocks(world);
    let queues = world.resource::<TimerQueues>();
    if queues.arming.swap_list.is_empty() {
        return;
    }
    let is_any_without_clock = queues
        .get(NO_CLOCK)
        .is_some_and(|queue| !queue.timers.is_empty());
    if is_any_without_clock {
        find_clocks(world);
    }
    let Some((queues, table)) = queues_and_clocks(world) else {
        return;
    };
    let listed = queues.arming.swap_list.take();
    queues.release(table, &listed);
    queues.arming.swap_list.reuse(listed);
    world.flush();
}

/// Looks for the clocks of the timers without one again, and cancels those whose clock still does not exist, in the
/// order of arming.
fn find_clocks(world: &mut World) {
    let queues = world.resource::<TimerQueues>();
    let timers = queues.arming.swap_list.iter();
    let timers = timers.filter(|&(clock, _)| clock == NO_CLOCK);
    let timers = timers.filter_map(|place @ (clock, key)| {
        let sequence = queues.get(clock)?.armed_as(key)?;
        let timer = queues.timer(place)?;
        Some((sequence, timer.entity, timer.kind()))
    });
    let mut timers: Vec<_> = timers.collect();
    timers.sort_unstable_by_key(|&(sequence, ..)| sequence);
    for (_, entity, kind) in timers {
        follow_clock(&mut world.into(), entity, kind);
        let place = kind.get(world, entity).and_then(|timer| timer.seat.place());
        let Some(setting) = Setting::of(world, entity, kind) else {
            continue;
        };
        if place.is_some_and(|(clock, _)| clock == NO_CLOCK) {
            warn(&mut world.into(), ClockError::NoSuchClock(setting.clock));
            // One command per timer: if one panics, the others still run. A command before it may cancel the timer or
            // add the clock.
            let mut commands = world.commands();
            commands.queue(move |world: &mut World| {
                cancel_without_clock(world, entity, kind);
            });
        }
    }
}

/// Borrows the queues and the clocks at once.
fn queues_and_clocks(world: &mut World) -> Option<(&mut TimerQueues, &mut ClockTable)> {
    let entities = entities_of_resources(&DeferredWorld::from(&mut *world))?;
    let [queues, table] = world.get_entity_mut(entities).ok()?;
    let queues = queues.into_mut::<TimerQueues>()?.into_inner();
    Some((queues, table.into_mut::<ClockTable>()?.into_inner()))
}

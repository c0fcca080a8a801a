//! Arming: the two steps of a timer on its way into the queue.
//!
//! Inserting the component puts the timer into the queue of its clock at once, parked, and on the list
//! of new timers. The swap at the start of the next run settles the clock, because all components have
//! arrived by then, and lets the timer wait for its deadline.

use alloc::vec::Vec;
use core::mem;

use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};

use super::{
    Kind, Timer, TimerAction, TimerQueues, TimerState,
    end::{cancel_without_clock, end_in_next_run},
    place::{NO_CLOCK, Place},
    queued::{ArmedTimer, Mark},
    queues::index,
    random::Numbers,
    setting::{Modified, Modifiers, Setting},
};
use crate::{
    clock::{
        ClockError, ClockId, ClockKey, ClockTable, DueClock, Reading, add_missing_clock, warn,
    },
    missing_plugin::warn_without_plugin,
    owner::OwnedBy,
    queue::NEVER,
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
    /// The actions since the last run whose handlers were unknown when they were inserted.
    pub(super) unhandled: Vec<Entity>,
    /// Kept for its memory: the clocks with due timers in a run.
    pub(super) due: Vec<DueClock>,
}

/// The timers that the next swap arms. A timer that is cancelled leaves its entry.
#[derive(Clone, Debug, Default)]
pub(super) struct SwapList {
    timers: Vec<Place>,
    /// The number of timers in a saved state.
    pub(super) loaded: usize,
    /// How many of these there were when they last got their saved order.
    pub(super) ordered: usize,
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
        (self.loaded, self.ordered) = (0, 0);
        mem::take(&mut self.timers)
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
    let Some(timer) = kind.get(world, entity) else {
        return;
    };
    if timer.loaded() == Some(&TimerState::Finished) {
        return end_in_next_run(world, entity, kind);
    }
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
    if queues.arming.modifiers.note(entity.archetype()) != Modified::Nothing {
        return None;
    }
    add_to_game_clock(queues, table, entity, kind, |_| ())
}

/// Adds a plain timer on an entity whose owner has no modifiers. Returns `None` for any other timer.
fn add_owned(world: &mut DeferredWorld, entity: Entity, kind: Kind) -> Option<()> {
    let &OwnedBy(owner) = world.get(entity)?;
    let [queues, table] = entities_of_resources(world)?;
    let entities = [queues, table, entity, owner];
    let [queues, table, entity, owner] = world.get_entity_mut(entities).ok()?;
    let queues = queues.into_mut::<TimerQueues>()?.into_inner();
    let modifiers = &mut queues.arming.modifiers;
    if modifiers.note(entity.archetype()) != Modified::OwnerOrAction
        || modifiers.note(owner.archetype()) != Modified::Nothing
    {
        return None;
    }
    let (table, entity) = (table.into_readonly().get()?, entity.into_readonly());
    add_to_game_clock(queues, table, entity, kind, |armed| {
        armed.set(Mark::Owned, true);
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
    armed.set(Mark::Unsettled, true);
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

/// Adds a timer with settings.
fn add_set(world: &mut DeferredWorld, entity: Entity, kind: Kind) -> Option<()> {
    let mut setting = Setting::of(world, entity, kind)?;
    if let ClockId::Own(_) = setting.clock {
        add_missing_clock(world, setting.clock);
        setting = Setting::of(world, entity, kind)?;
    }
    let mut numbers = world.get_resource::<TimerQueues>()?.arming.numbers;
    let component = kind.get(world, entity)?;
    let table = world.get_resource::<ClockTable>()?;
    let loaded = component.loaded().copied();
    let read = match loaded {
        // Its delay has not started.
        Some(TimerState::Unsettled { .. }) => None,
        Some(_) | None => table.read(setting.clock).ok(),
    };
    let (clock, reading) = match read {
        Some((found, reading)) => (found.key, reading),
        None => (NO_CLOCK, Reading::default()),
    };
    let mut timer = ArmedTimer::new(entity, kind, component);
    let deadline = match &loaded {
        Some(TimerState::Armed(progress)) => {
            progress.put_into(&mut timer, component.delay);
            progress.deadline(reading)
        }
        // The swap starts its delay.
        Some(TimerState::Unsettled { random, .. }) => {
            if random.is_some() {
                timer.change_rare(|rare| rare.random = *random);
            }
            NEVER
        }
        Some(TimerState::Finished) => NEVER,
        None => {
            let (deadline, wait) = component.start(reading, &mut numbers);
            timer.set_wait(wait, component.delay);
            component.begin_draws(&mut timer, &mut numbers);
            deadline
        }
    };
    timer.set(Mark::Unsettled, true);
    timer.set(Mark::Owned, setting.owner != entity);
    timer.set_acts(setting.acts);
    timer.halt(setting.halt, reading.now);
    let mut queues = world.get_resource_mut::<TimerQueues>()?;
    queues.arming.numbers = numbers;
    queues.arming.swap_list.loaded += usize::from(loaded.is_some());
    let place = queues.add(clock, deadline, timer);
    let component = kind.get(world, entity)?;
    component.seat.move_to(Some(place));
    Some(())
}

/// The swap: arms the timers that were added or changed since the last one. A new timer whose clock does
/// not exist is cancelled.
pub(crate) fn swap(world: &mut World) {
    if world.resource::<TimerQueues>().arming.swap_list.is_empty() {
        return;
    }
    let lost = world.resource_scope(|world, mut queues: Mut<TimerQueues>| {
        let queues = &mut *queues;
        let is_any_loaded = queues.arming.swap_list.loaded > 0;
        let mut listed = queues.arming.swap_list.take();
        let mut plain = 0;
        match is_any_loaded {
            true => put_in_saved_order(world, queues, &mut listed),
            false => plain = queues.arm_plain(world, &mut listed),
        }
        let mut lost = Vec::new();
        let mut settling = Settling::new(world);
        listed.retain_mut(|listed| match settling.settle(queues, *listed) {
            Ok(settled) => {
                *listed = settled;
                true
            }
            Err(unknown) => {
                // It stays on the list, because a command before its own may cancel it or add the clock.
                queues.arming.swap_list.push(*listed);
                lost.push(unknown);
                false
            }
        });
        let mut table = world.resource_mut::<ClockTable>();
        queues.reports.armed += plain + queues.release(&mut table, &listed);
        let (game, _) = ClockTable::GAME;
        if plain > 0
            && let Some(queue) = queues.get(game)
        {
            table.set_look(game, queue.timers.first_look());
        }
        queues.arming.swap_list.reuse(listed);
        lost
    });
    for (entity, kind, clock) in lost {
        warn(&mut world.into(), ClockError::NoSuchClock(clock));
        // One command per timer: if one panics, the others still run.
        let mut commands = world.commands();
        commands.queue(move |world: &mut World| {
            cancel_without_clock(world, entity, kind);
        });
    }
    world.flush();
}

impl TimerQueues {
    /// Arms the plain timers on the list whose entities and owners have no modifiers, and takes them off it. Most
    /// timers are like that: this looks at each of them once. Returns their number.
    fn arm_plain(&mut self, world: &World, listed: &mut Vec<Place>) -> u64 {
        let (game, _) = ClockTable::GAME;
        let now = world.resource::<ClockTable>().game_time();
        let Some(queue) = self.queues.get_mut(index(game)) else {
            return 0;
        };
        // The queue may not have been checked for a long time.
        queue.timers.advance_to(now);
        let modifiers = &mut self.arming.modifiers;
        let before = listed.len();
        listed.retain(|&place| {
            if place.0 != game {
                return true;
            }
            if let Some(journal) = &mut self.journal {
                queue.note(journal, place);
            }
            let is_armed = queue.timers.release_if(place.1, |timer| {
                let is_plain = timer.is(Mark::Unsettled)
                    && timer.rare().is_none()
                    && modifiers.has_default(world, timer.entity);
                if is_plain {
                    timer.set(Mark::Unsettled, false);
                    timer.set(Mark::Listed, false);
                }
                is_plain
            });
            !is_armed
        });
        (before - listed.len()) as u64
    }
}

/// Settles the clock of the timer at a place now, if the next swap would do it. Its delay starts if
/// it had no clock. Returns its place, or `None` if it is gone.
///
/// # Errors
///
/// Returns its clock if this does not exist.
pub(super) fn settle_now(world: &mut World, place: Place) -> Option<Result<Place, ClockId>> {
    let queues = world.get_resource::<TimerQueues>()?;
    if !queues.timer(place)?.is(Mark::Unsettled) {
        return Some(Ok(place));
    }
    Some(world.resource_scope(|world, mut queues: Mut<TimerQueues>| {
        // The swap orders only the timers that are not settled by then.
        order_list(world, &mut queues);
        let mut settling = Settling::new(world);
        let settled = settling.settle(&mut queues, place);
        let settled = settled.map_err(|(.., clock)| clock)?;
        if settled != place {
            queues.arming.swap_list.push(settled);
        }
        Ok(settled)
    }))
}

/// Starts the delay of a new timer again, if a component that has arrived puts it on another clock.
pub(super) fn start_again(world: &mut World, entity: Entity, kind: Kind) -> Option<()> {
    let component = kind.get(world, entity)?;
    let place = component.seat.place()?;
    let queues = world.get_resource::<TimerQueues>()?;
    // The delay of a loaded timer may have started before the save.
    let has_started = matches!(component.loaded(), Some(TimerState::Armed(_)));
    if has_started || !queues.timer(place)?.is(Mark::Unsettled) {
        return None;
    }
    put_on_its_clock(world, entity, kind, place)
}

/// Puts a loaded timer on its clock, which was loaded after it. The timer stays loaded, so that the swap gives it its
/// place among all timers of the load.
pub(super) fn put_on_loaded_clock(world: &mut World, entity: Entity, kind: Kind) -> Option<()> {
    let place = kind.get(world, entity)?.seat.place()?;
    if place.0 != NO_CLOCK {
        return None;
    }
    put_on_its_clock(world, entity, kind, place)
}

/// Puts a timer on the clock that it is on by now, if this is another one. The swap settles it.
fn put_on_its_clock(world: &mut World, entity: Entity, kind: Kind, place: Place) -> Option<()> {
    world.resource_scope(|world, mut queues: Mut<TimerQueues>| {
        let entity = world.get_entity(entity).ok()?;
        let mut settling = Settling::new(world);
        let put = settling.put_on_clock(&mut queues, entity, kind.on(entity)?, place);
        let put = put.ok().filter(|&put| put != place)?;
        queues.arming.swap_list.push(put);
        Some(())
    })
}

/// Gives the loaded timers on the list their saved order before the swap does, so that they are saved in it.
#[cfg(feature = "serialize")]
pub(crate) fn order_loaded(world: &mut World) {
    if world.contains_resource::<TimerQueues>() {
        world.resource_scope(|world, mut queues: Mut<TimerQueues>| order_list(world, &mut queues));
    }
}

/// Gives the loaded timers on the list their saved order, unless they have it.
fn order_list(world: &World, queues: &mut TimerQueues) {
    let list = &mut queues.arming.swap_list;
    if list.ordered != list.loaded {
        list.ordered = list.loaded;
        let mut listed = mem::take(&mut list.timers);
        put_in_saved_order(world, queues, &mut listed);
        queues.arming.swap_list.timers = listed;
    }
}

/// Gives loaded timers the order in which they were saved, and sorts the list.
fn put_in_saved_order(world: &World, queues: &mut TimerQueues, listed: &mut [Place]) {
    let loaded = listed.iter().filter_map(|&(clock, key)| {
        let queue = queues.get(clock)?;
        let timer = queue.timers.get(key)?;
        let new = Some(timer).filter(|timer| timer.is(Mark::Unsettled))?;
        let order = new.kind().get(world, new.entity)?.loaded()?.order();
        let is_lifetime = new.kind() == Kind::Lifetime;
        let order = (is_lifetime, order, queue.timers.sequence(key)?);
        Some((order, clock, key))
    });
    let mut loaded: Vec<_> = loaded.collect();
    let sequences = loaded.iter().map(|&((.., sequence), ..)| sequence);
    let mut sequences: Vec<u64> = sequences.collect();
    sequences.sort_unstable();
    loaded.sort_by_key(|&(order, ..)| order);
    for ((_, clock, key), sequence) in loaded.into_iter().zip(sequences) {
        queues.note((clock, key));
        if let Some(queue) = queues.get_mut(clock) {
            queue.timers.set_sequence(key, sequence);
        }
    }
    listed.sort_by_cached_key(|&(clock, key)| queues.get(clock)?.armed_as(key));
}

/// Settles the clocks of new timers.
struct Settling<'w> {
    world: &'w World,
    table: &'w ClockTable,
    /// The last clock. Timers that are inserted together are often on the same one.
    last: Option<(ClockId, ClockKey)>,
}

impl<'w> Settling<'w> {
    fn new(world: &'w World) -> Self {
        Self {
            world,
            table: world.resource(),
            last: None,
        }
    }

    /// Settles the clock of a timer, if it is new, and returns its place. If this is another clock than at
    /// insertion, the delay starts now.
    ///
    /// # Errors
    ///
    /// Returns the timer and its clock if this does not exist.
    fn settle(
        &mut self,
        queues: &mut TimerQueues,
        place: Place,
    ) -> Result<Place, (Entity, Kind, ClockId)> {
        let Some(timer) = queues.timer(place).filter(|it| it.is(Mark::Unsettled)) else {
            return Ok(place);
        };
        let (entity, kind) = (timer.entity, timer.kind());
        let Ok(entity_ref) = self.world.get_entity(entity) else {
            return Ok(place);
        };
        let settled = self.settle_new(queues, (entity_ref, kind), place);
        let place = settled.map_err(|clock| (entity, kind, clock))?;
        if let Some(timer) = queues.timer_mut(place) {
            timer.set(Mark::Unsettled, false);
        }
        Ok(place)
    }

    fn settle_new(
        &mut self,
        queues: &mut TimerQueues,
        (entity, kind): (EntityRef, Kind),
        place: Place,
    ) -> Result<Place, ClockId> {
        let Some(component) = kind.on(entity) else {
            return Ok(place);
        };
        let place = self.put_on_clock(queues, entity, component, place)?;
        component.use_loaded();
        Ok(place)
    }

    /// Puts a new timer on its clock, and starts its delay if it had none.
    fn put_on_clock(
        &mut self,
        queues: &mut TimerQueues,
        entity: EntityRef,
        component: &Timer,
        place: Place,
    ) -> Result<Place, ClockId> {
        let modifiers = &mut queues.arming.modifiers;
        modifiers.note(entity.archetype());
        let setting = Setting::new(self.world, modifiers, entity, component.chosen_clock());
        if let Ok(owner) = self.world.get_entity(setting.owner) {
            modifiers.note(owner.archetype());
        }
        let clock = self.find(setting.clock)?;
        let place = match clock == place.0 {
            true => Some(place),
            false => {
                let reading = self.table.reading(clock).ok_or(setting.clock)?;
                let deadline = late_start(queues, place, component, reading);
                queues.move_new(place, clock, deadline, reading.now)
            }
        };
        let place = place.ok_or(setting.clock)?;
        component.seat.move_to(Some(place));
        Ok(place)
    }

    fn find(&mut self, clock: ClockId) -> Result<ClockKey, ClockId> {
        if let Some((last, key)) = self.last
            && last == clock
        {
            return Ok(key);
        }
        let key = self.table.find(clock).map_err(|_| clock)?.key;
        self.last = Some((clock, key));
        Ok(key)
    }
}

/// Starts the delay of a timer whose clock was unknown at insertion, and returns the deadline.
fn late_start(queues: &mut TimerQueues, place: Place, component: &Timer, reading: Reading) -> u64 {
    let mut numbers = queues.arming.numbers;
    let Some(timer) = queues.timer_mut(place) else {
        return NEVER;
    };
    let deadline = match component.loaded() {
        Some(TimerState::Armed(progress)) => match timer.paused_at() {
            // The wait stood still from the start.
            Some(_) => progress.deadline(reading),
            None => progress.deadline_on_loaded(reading),
        },
        _ => {
            let (deadline, wait) = component.start(reading, &mut numbers);
            timer.set_wait(wait, component.delay);
            deadline
        }
    };
    queues.arming.numbers = numbers;
    deadline
}

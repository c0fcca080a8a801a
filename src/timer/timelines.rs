//! All timers of a world, clock by clock.

use alloc::{collections::BTreeMap, vec::Vec};
use core::{iter, num::NonZeroU32, ops::Bound};

use bevy_ecs::entity_disabling::Disabled;
use bevy_ecs::{
    change_detection::DetectChangesMut,
    component::ComponentId,
    entity::{Entity, EntityHashMap},
    error::BevyError,
    lifecycle::{Discard, Insert},
    message::Messages,
    name::Name,
    observer::On,
    query::Has,
    resource::Resource,
    system::{Query, Res, ResMut, SystemParam},
    world::{DeferredWorld, World},
};
use bevy_time::{Fixed, Real, Time, Virtual};

use super::{
    ArmedTimer, CancelReason, OnClock, Timer, TimerAction, TimerCancelled, TimerFired, TimerOf,
    TimersPaused,
    hooks::{Plan, cancel_for},
    timeline::{Source, Timeline},
};
use crate::{
    clock::{Clock, ClockId, Reading, UnknownClock, saturating_nanos},
    deferred::DeferredBuffer,
    queue::TimerKey,
};

/// Names a clock as long as there is a timer on it.
pub(crate) type ClockKey = u32;

/// How many clocks there were before this one: clocks run in the order of their age.
pub(crate) type Age = u64;

const REAL: ClockKey = 0;
const VIRTUAL: ClockKey = 1;
const FRAMES: ClockKey = 2;
const FIXED: ClockKey = 3;

/// A frame on the clock of frames.
pub(crate) const FRAME: u64 = 1_000_000_000;

/// The clocks that take part in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    /// Whether they are those of the fixed schedule, or the others.
    pub(crate) is_fixed: bool,
    /// If not all of these, then this one and those that run on it.
    pub(crate) root: Option<ClockKey>,
}

impl Scope {
    pub(crate) const FRAME: Self = Self {
        is_fixed: false,
        root: None,
    };
    pub(crate) const FIXED: Self = Self {
        is_fixed: true,
        root: None,
    };
}

/// All clocks of a world with their timers, and what is to be done about them.
#[derive(Resource, Debug)]
pub(crate) struct Timelines {
    lines: Vec<Option<Timeline>>,
    vacant: Vec<ClockKey>,
    by_age: BTreeMap<Age, ClockKey>,
    by_entity: EntityHashMap<ClockKey>,
    next_age: Age,
    frames: u64,
    draws: u64,
    /// The components beside a timer that say something about it.
    pub(super) besides: [ComponentId; 6],
    pub(super) cancelled: DeferredBuffer<TimerCancelled>,
    /// The entities that are to be despawned because their timers have fired their last: those of
    /// the frame, and those of the fixed schedule.
    finished: [DeferredBuffer<Entity>; 2],
    /// The timer whose component is being discarded: between two hooks of one operation.
    pub(crate) discarded: Option<TimerCancelled>,
    /// The timer of which more than the message is to be done: until that is done.
    pub(crate) unfinished: Option<Unfinished>,
    /// Whether handlers are running.
    pub(crate) is_running: bool,
    /// What the last run did: that of the frame, and that of the fixed schedule.
    pub(crate) stats: [RunStats; 2],
}

/// A timer that has fired, and has an action to run, or an end to come to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unfinished {
    pub(crate) fired: TimerFired,
    pub(crate) key: TimerKey,
    pub(crate) acts: bool,
}

/// What the last run did: see [`ArmedTimers::last_run`](crate::ArmedTimers::last_run).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunStats {
    /// How many timers were armed.
    pub armed: u64,
    /// How many times a timer fired.
    pub fired: u64,
    /// How many deadlines passed without a firing of their own.
    pub missed: u64,
    /// How many timers were cancelled since the run before.
    pub cancelled: u64,
}

impl Timelines {
    /// Makes the clocks that are there from the start.
    pub(crate) fn new(world: &mut World) -> Self {
        let mut timelines = Self {
            lines: Vec::new(),
            vacant: Vec::new(),
            by_age: BTreeMap::new(),
            by_entity: EntityHashMap::default(),
            next_age: 0,
            frames: 0,
            draws: 0,
            besides: [
                world.register_component::<TimerOf>(),
                world.register_component::<TimerAction>(),
                world.register_component::<TimersPaused>(),
                world.register_component::<Disabled>(),
                world.register_component::<OnClock>(),
                world.register_component::<Clock>(),
            ],
            cancelled: DeferredBuffer::default(),
            finished: [DeferredBuffer::default(), DeferredBuffer::default()],
            discarded: None,
            unfinished: None,
            is_running: false,
            stats: [RunStats::default(); 2],
        };
        for (id, source) in [
            (ClockId::Real, Source::Real),
            (ClockId::Virtual, Source::Virtual),
            (ClockId::Frames, Source::Frames),
            (ClockId::Fixed, Source::Fixed),
        ] {
            let name = Name::new(alloc::format!("{id} clock"));
            let clock = world.spawn((name, Clock::of(id))).id();
            timelines.add(clock, source, id == ClockId::Fixed);
        }
        timelines
    }

    fn add(&mut self, clock: Entity, source: Source, is_fixed: bool) {
        let line = Timeline::new(clock, self.next_age, source, is_fixed);
        let key = match self.vacant.pop() {
            Some(key) => {
                self.lines[key as usize] = Some(line);
                key
            }
            None => {
                self.lines.push(Some(line));
                self.lines.len() as ClockKey - 1
            }
        };
        self.by_age.insert(self.next_age, key);
        self.by_entity.insert(clock, key);
        self.next_age += 1;
    }

    fn remove(&mut self, clock: Entity) {
        if let Some(key) = self.by_entity.remove(&clock)
            && let Some(line) = self.lines[key as usize].take()
        {
            self.by_age.remove(&line.age);
            self.vacant.push(key);
        }
    }

    pub(crate) fn get(&self, key: ClockKey) -> Option<&Timeline> {
        self.lines.get(key as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, key: ClockKey) -> Option<&mut Timeline> {
        self.lines.get_mut(key as usize)?.as_mut()
    }

    pub(crate) fn key(&self, clock: ClockId) -> Option<ClockKey> {
        match clock {
            ClockId::Real => Some(REAL),
            ClockId::Virtual => Some(VIRTUAL),
            ClockId::Frames => Some(FRAMES),
            ClockId::Fixed => Some(FIXED),
            ClockId::Own(clock) => self.by_entity.get(&clock).copied(),
        }
        .filter(|&key| self.get(key).is_some())
    }

    pub(crate) fn find(&self, clock: ClockId) -> Result<(ClockKey, &Timeline), UnknownClock> {
        let found = self.key(clock).and_then(|key| Some((key, self.get(key)?)));
        found.ok_or(UnknownClock(clock))
    }

    pub(crate) fn id(&self, key: ClockKey) -> Option<ClockId> {
        Some(match key {
            REAL => ClockId::Real,
            VIRTUAL => ClockId::Virtual,
            FRAMES => ClockId::Frames,
            FIXED => ClockId::Fixed,
            _ => ClockId::Own(self.get(key)?.clock),
        })
    }

    /// The clocks with their timers, by age.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ClockKey, &Timeline)> {
        self.after(None)
    }

    /// Returns the first clock of those that take part that comes after one of this age. Clocks
    /// may come and go between two calls.
    pub(crate) fn next(&self, scope: Scope, after: Option<Age>) -> Option<(ClockKey, &Timeline)> {
        self.after(after).find(|&(key, _)| self.is_in(key, scope))
    }

    /// Whether a clock takes part.
    pub(crate) fn is_in(&self, key: ClockKey, scope: Scope) -> bool {
        match (self.get(key), scope.root) {
            (None, _) => false,
            (Some(line), None) => line.is_fixed == scope.is_fixed,
            (Some(_), Some(root)) if key == root => true,
            (Some(line), Some(_)) => match line.source {
                Source::Clock(parent) => self.is_in(parent, scope),
                _ => false,
            },
        }
    }

    fn after(&self, age: Option<Age>) -> impl Iterator<Item = (ClockKey, &Timeline)> {
        let start = age.map_or(Bound::Unbounded, Bound::Excluded);
        let later = self.by_age.range((start, Bound::Unbounded));
        later.filter_map(|(_, &key)| Some((key, self.get(key)?)))
    }

    /// Fires what is due on a clock, one after the other, until there is more to do for a timer
    /// than to say so: it is [`unfinished`](Self::unfinished) then.
    pub(crate) fn firings(
        &mut self,
        clock: ClockKey,
        burst_limit: NonZeroU32,
    ) -> impl Iterator<Item = TimerFired> {
        let Self {
            lines,
            unfinished,
            stats,
            ..
        } = self;
        let mut line = lines.get_mut(clock as usize).and_then(Option::as_mut);
        let fixed = line.as_ref().is_some_and(|line| line.is_fixed);
        let stats = &mut stats[usize::from(fixed)];
        iter::from_fn(move || {
            if unfinished.is_some() {
                return None;
            }
            let (fired, key, acts) = line.as_mut()?.fire(burst_limit)?;
            stats.fired += 1;
            stats.missed += fired.missed;
            if acts || fired.last {
                *unfinished = Some(Unfinished { fired, key, acts });
            }
            Some(fired)
        })
    }

    pub(crate) fn timer_mut(&mut self, line: ClockKey, key: TimerKey) -> Option<&mut ArmedTimer> {
        self.get_mut(line)?.queue.get_mut(key)
    }

    /// Takes a timer in.
    pub(super) fn add_timer(&mut self, plan: Plan) {
        self.draws = self.draws.wrapping_add(1);
        if let Some(line) = self.get_mut(plan.line) {
            let key = line.add(plan.deadline, plan.timer, plan.paused_at);
            debug_assert_eq!(key, plan.key);
        }
    }

    /// Says whether there was something to cancel.
    pub(super) fn cancel(&mut self, line: ClockKey, timer: TimerKey) -> bool {
        let line = self.get_mut(line);
        line.is_some_and(|line| line.cancel(timer).is_some())
    }

    /// Numbers the timers that are armed, for those that draw a random number.
    pub(super) fn next_draw(&self) -> u64 {
        self.draws
    }

    pub(crate) fn finished(&mut self, scope: Scope) -> &mut DeferredBuffer<Entity> {
        &mut self.finished[usize::from(scope.is_fixed)]
    }

    /// Returns what drives a clock in this run, and whether that stands still.
    fn driven_by(&self, source: Source, times: &Times) -> Option<(u64, bool)> {
        Some(match source {
            Source::Real => (saturating_nanos(times.real.elapsed()), false),
            Source::Virtual => {
                let time = &times.virtual_time;
                (saturating_nanos(time.elapsed()), time.was_paused())
            }
            Source::Fixed => (saturating_nanos(times.fixed.elapsed()), false),
            Source::Frames => (self.frames.saturating_mul(FRAME), false),
            Source::Clock(parent) => {
                let Reading { now, stopped, .. } = self.get(parent)?.reading;
                (now, stopped)
            }
            Source::Nothing => return None,
        })
    }

    /// Lets a clock go on to where it is driven.
    pub(crate) fn tick(&mut self, key: ClockKey, clocks: &mut AnyClocks, times: &Times) {
        let Some(line) = self.get(key) else {
            return;
        };
        let driven = self.driven_by(line.source, times);
        let clock = clocks.get_mut(line.clock);
        let reading = match (driven, clock) {
            (Some((now, parent_stopped)), Ok((mut clock, disabled))) => {
                let clock = clock.bypass_change_detection();
                if disabled {
                    clock.begin(now);
                }
                let mut reading = clock.tick(now);
                reading.stopped |= parent_stopped | disabled;
                reading
            }
            _ => Reading {
                stopped: true,
                ..line.reading
            },
        };
        if let Some(line) = self.get_mut(key) {
            line.reading = reading;
        }
    }

    /// Lets a clock go on by itself.
    pub(crate) fn advance(&mut self, key: ClockKey, nanos: u64, clocks: &mut AnyClocks) {
        if let Some(line) = self.get_mut(key)
            && let Ok((mut clock, _)) = clocks.get_mut(line.clock)
        {
            clock.go(nanos);
            line.reading = clock.read();
        }
    }

    /// Returns how far `root` has to go until something is due on the clock `key`, which runs on
    /// it, or `None` if that is never.
    pub(crate) fn until_next(
        &self,
        key: ClockKey,
        root: ClockKey,
        overdue: u64,
        clocks: &AnyClocks,
    ) -> Option<u64> {
        let line = self.get(key)?;
        let wait = |deadline: u64| match deadline.saturating_sub(line.reading.now) {
            0 => overdue,
            wait => wait,
        };
        let waiting = line.queue.next_deadline().into_iter();
        let mut next = waiting.chain(line.added_deadlines()).map(wait).min()?;
        let mut at = (key, line);
        loop {
            let (clock, is_disabled) = clocks.get(at.1.clock).ok()?;
            if clock.is_stopped() || is_disabled {
                return None;
            }
            match at.1.source {
                _ if at.0 == root => return Some(next),
                Source::Clock(parent) => {
                    next = clock.parent_time(next)?;
                    at = (parent, self.get(parent)?);
                }
                _ => return None,
            }
        }
    }

    /// Returns a clock and what it says at this moment. It may have been set since it was read for a run,
    /// and so may what drives it.
    pub(crate) fn read_now(&self, world: &World, clock: ClockId) -> Option<(ClockKey, Reading)> {
        let key = self.key(clock)?;
        Some((key, self.read_line_now(world, key)?))
    }

    pub(crate) fn read_line_now(&self, world: &World, key: ClockKey) -> Option<Reading> {
        fn elapsed<T: Default + Send + Sync + 'static>(world: &World) -> u64 {
            let time = world.get_resource::<Time<T>>();
            time.map_or(0, |time| saturating_nanos(time.elapsed()))
        }

        let line = self.get(key)?;
        let mut clock = *world.get::<Clock>(line.clock)?;
        let driven = match line.source {
            Source::Real => elapsed::<Real>(world),
            Source::Virtual => elapsed::<Virtual>(world),
            Source::Fixed => elapsed::<Fixed>(world),
            Source::Frames => self.frames.saturating_mul(FRAME),
            Source::Clock(parent) => match self.read_line_now(world, parent) {
                Some(parent) => parent.now,
                None => return Some(clock.read()),
            },
            Source::Nothing => return Some(clock.read()),
        };
        Some(clock.tick(driven))
    }
}

/// All clocks, also of disabled entities.
pub(crate) type AnyClocks<'w, 's> = Query<'w, 's, (&'static mut Clock, Has<Disabled>)>;

/// Bevy's clocks.
#[derive(SystemParam)]
pub(crate) struct Times<'w> {
    real: Res<'w, Time<Real>>,
    virtual_time: Res<'w, Time<Virtual>>,
    fixed: Res<'w, Time<Fixed>>,
}

/// Reads the clocks, each once for the whole run, parents before children.
pub(crate) fn read_clocks(scope: Scope) -> impl Fn(ResMut<Timelines>, AnyClocks, Times) {
    move |mut timelines, mut clocks, times| {
        timelines.stats[usize::from(scope.is_fixed)] = RunStats::default();
        if scope == Scope::FRAME {
            timelines.frames = timelines.frames.saturating_add(1);
        }
        let mut last = None;
        while let Some((key, line)) = timelines.next(scope, last) {
            last = Some(line.age);
            timelines.tick(key, &mut clocks, &times);
        }
    }
}

/// Whether there is anything to do in the fixed schedule.
pub(crate) fn has_fixed_timers(timelines: Res<Timelines>) -> bool {
    let mut lines = timelines.lines.iter().flatten();
    lines.any(|line| line.is_fixed && !line.queue.is_empty())
        || timelines.finished[usize::from(Scope::FIXED.is_fixed)]
            .pending()
            .next()
            .is_some()
}

/// Arms what has been added, and writes what has been cancelled.
pub(crate) fn swap_added(
    scope: Scope,
) -> impl Fn(ResMut<Timelines>, ResMut<Messages<TimerCancelled>>) {
    move |mut timelines, mut messages| {
        let timelines = &mut *timelines;
        timelines.cancelled.swap();
        let mut stats = RunStats::default();
        if !timelines.cancelled.is_empty() {
            let cancelled = timelines.cancelled.drain();
            stats.cancelled = messages.write_batch(cancelled).len() as u64;
        }
        for key in 0..timelines.lines.len() as ClockKey {
            if timelines.is_in(key, scope)
                && let Some(line) = timelines.get_mut(key)
            {
                stats.armed += line.swap_added();
            }
        }
        timelines.stats[usize::from(scope.is_fixed)] = stats;
    }
}

pub(crate) fn on_insert_clock(inserted: On<Insert<Clock>>, mut world: DeferredWorld) {
    begin_clock(&mut world, inserted.entity);
}

pub(crate) fn on_discard_clock(discarded: On<Discard<Clock>>, mut world: DeferredWorld) {
    let despawned = discarded.trigger().new_archetype.is_none();
    end_clock(&mut world, discarded.entity, despawned);
}

/// Takes a clock in, if it is not yet known.
pub(crate) fn begin_clock(world: &mut DeferredWorld, entity: Entity) {
    let (Some(&clock), Some(timelines)) = (
        world.get::<Clock>(entity),
        world.get_resource::<Timelines>(),
    ) else {
        return;
    };
    if timelines.by_entity.contains_key(&entity) {
        return;
    }
    let parent = timelines.find(clock.parent());
    let (source, is_fixed) = match parent {
        Ok((key, line)) => (Source::Clock(key), line.is_fixed),
        Err(error) => {
            warn(world, error);
            (Source::Nothing, false)
        }
    };
    let Some(timelines) = world.get_resource::<Timelines>() else {
        return;
    };
    let parent_now = match source {
        Source::Clock(parent) => timelines.read_line_now(world, parent),
        _ => None,
    };
    if let (Some(parent), Some(mut clock)) = (parent_now, world.get_mut::<Clock>(entity)) {
        clock.begin(parent.now);
    }
    if let Some(mut timelines) = world.get_resource_mut::<Timelines>() {
        timelines.add(entity, source, is_fixed);
    }
}

/// Cancels all timers of a clock.
fn end_clock(world: &mut DeferredWorld, clock: Entity, despawned: bool) {
    let timelines = world.get_resource::<Timelines>();
    let Some(Ok((_, line))) = timelines.map(|timelines| timelines.find(clock.into())) else {
        return;
    };
    let reason = |timer: &ArmedTimer| match timer {
        timer if !despawned || timer.owner != clock => CancelReason::ClockGone,
        timer if timer.entity == clock => CancelReason::Despawned,
        _ => CancelReason::OwnerGone,
    };
    let timers = line.queue.iter();
    let timers: Vec<_> = timers
        .map(|(.., timer)| (timer.entity, reason(timer)))
        .collect();
    for &(timer, reason) in &timers {
        cancel_for(world, timer, reason);
    }
    if let Some(mut timelines) = world.get_resource_mut::<Timelines>() {
        timelines.remove(clock);
    }
    world.commands().queue(move |world: &mut World| {
        for (timer, _) in timers {
            retire(world, timer);
        }
    });
}

/// Takes an entity out of use whose timer is over: the `Timer` goes, and so does the entity of an
/// owned timer.
pub(crate) fn retire(world: &mut World, entity: Entity) {
    let Ok(mut entity) = world.get_entity_mut(entity) else {
        return;
    };
    if entity
        .get::<Timer>()
        .is_some_and(|timer| timer.key() == TimerKey::NONE)
    {
        if entity.contains::<TimerOf>() {
            entity.despawn();
        } else {
            entity.remove::<Timer>();
        }
    }
}

/// Tells Bevy's error handler, when the world is free.
pub(super) fn warn(world: &mut DeferredWorld, error: UnknownClock) {
    let result = Err::<(), _>(BevyError::warning(error));
    world.commands().queue(move |_: &mut World| result);
}

//! All timers of a world, clock by clock.

use alloc::vec::Vec;
use core::{iter, num::NonZeroU32};

use bevy_ecs::{
    component::ComponentId,
    entity::{Entity, EntityHashMap},
    entity_disabling::Disabled,
    message::Messages,
    name::Name,
    resource::Resource,
    system::ResMut,
    world::World,
};

use super::{
    ArmedTimer, OnClock, TimerAction, TimerCancelled, TimerFired, TimerOf, TimersPaused,
    hooks::Plan,
    timeline::{Source, Timeline},
};
use crate::{
    clock::{Clock, ClockId, Reading, UnknownClock},
    deferred::Deferred,
    queue::TimerKey,
};

/// Names a clock. That of one that has gone is given to another.
pub(crate) type ClockKey = u32;

/// How many clocks there were before this one: clocks run in the order of their age.
pub(crate) type Age = u64;

const REAL: ClockKey = 0;
const VIRTUAL: ClockKey = 1;
const FRAMES: ClockKey = 2;
const FIXED: ClockKey = 3;

/// The clocks that are there from the start, by their keys, which are also their ages.
const BUILT_IN: [(ClockId, Source); 4] = [
    (ClockId::Real, Source::Real),
    (ClockId::Virtual, Source::Virtual),
    (ClockId::Frames, Source::Frames),
    (ClockId::Fixed, Source::Fixed),
];

/// The clocks that take part in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Those that run in every frame.
    Frame,
    /// Those that run in the fixed schedule.
    Fixed,
    /// The clock of this age, and those that run on it.
    Under(Age),
}

/// All clocks of a world with their timers, and what is to be done about them.
#[derive(Resource, Debug)]
pub(crate) struct Timelines {
    /// By key. Those that are vacant keep their queues, so that no key of a timer comes again.
    lines: Vec<Timeline>,
    vacant: Vec<ClockKey>,
    by_age: Vec<(Age, ClockKey)>,
    by_entity: EntityHashMap<ClockKey>,
    next_age: Age,
    /// The entities of the clocks that are there from the start.
    built_in: Vec<Entity>,
    pub(super) frames: u64,
    /// Whether the steps of the fixed schedule read their clocks.
    pub(crate) is_read_in_steps: bool,
    draws: u64,
    /// The components beside a timer that say something about it.
    pub(super) modifiers: [ComponentId; 6],
    pub(super) cancelled: Deferred<TimerCancelled>,
    /// The entities that are to be despawned because their timers have fired their last: those of
    /// the frame, and those of the fixed schedule.
    finished: [Deferred<Entity>; 2],
    /// The timer whose component is being discarded: between two hooks of one operation.
    pub(crate) discarded: Option<TimerCancelled>,
    /// The timer of which more than the message is to be done: until that is done.
    pub(crate) unfinished: Option<Unfinished>,
    /// Whether handlers are running.
    pub(crate) is_firing: bool,
    stats: [RunStats; 3],
    /// What lets the clocks of the fixed schedule run, until it has.
    add_fixed_run: Option<fn(&mut World)>,
}

/// A timer that has fired, and has an action to run, or an end to come to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unfinished {
    pub(crate) fired: TimerFired,
    pub(crate) clock: ClockKey,
    pub(crate) key: TimerKey,
    pub(crate) acts: bool,
}

/// What a run did: see [`ArmedTimers::last_run`](crate::ArmedTimers::last_run).
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
    pub(crate) fn new(world: &mut World, add_fixed_run: fn(&mut World)) -> Self {
        let mut timelines = Self {
            lines: Vec::new(),
            vacant: Vec::new(),
            by_age: Vec::new(),
            by_entity: EntityHashMap::default(),
            next_age: 0,
            built_in: Vec::new(),
            frames: 0,
            is_read_in_steps: false,
            draws: 0,
            modifiers: [
                world.register_component::<TimerOf>(),
                world.register_component::<TimerAction>(),
                world.register_component::<TimersPaused>(),
                world.register_component::<Disabled>(),
                world.register_component::<OnClock>(),
                world.register_component::<Clock>(),
            ],
            cancelled: Deferred::default(),
            finished: [Deferred::default(), Deferred::default()],
            discarded: None,
            unfinished: None,
            is_firing: false,
            stats: [RunStats::default(); 3],
            add_fixed_run: Some(add_fixed_run),
        };
        for (id, source) in BUILT_IN {
            let name = Name::new(alloc::format!("{id} clock"));
            let clock = world.spawn((name, Clock::of(id))).id();
            timelines.built_in.push(clock);
            let key = timelines.add_clock(clock, source, id == ClockId::Fixed);
            let reading = timelines.read_line_now(world, key).unwrap_or_default();
            timelines.begin_line(key, reading);
        }
        timelines
    }

    /// Lets time pass from now on, for those who are told of it.
    pub(super) fn begin_line(&mut self, key: ClockKey, reading: Reading) {
        if let Some(line) = self.get_mut(key) {
            line.last_run = reading.now;
        }
    }

    /// Takes in one of the clocks that were there from the start again, if this is one.
    pub(super) fn restore_clock(&mut self, clock: Entity) -> Option<ClockKey> {
        let mut built_in = self.built_in.iter();
        let nth = built_in.position(|&built_in| built_in == clock)?;
        let (id, source) = BUILT_IN[nth];
        let (key, age) = (nth as ClockKey, nth as Age);
        self.put_clock(key, age, clock, source, id == ClockId::Fixed);
        Some(key)
    }

    pub(super) fn add_clock(&mut self, clock: Entity, source: Source, is_fixed: bool) -> ClockKey {
        let key = self.vacant.pop().unwrap_or_else(|| {
            self.lines.push(Timeline::default());
            self.lines.len() as ClockKey - 1
        });
        self.put_clock(key, self.next_age, clock, source, is_fixed);
        self.next_age += 1;
        key
    }

    fn put_clock(
        &mut self,
        key: ClockKey,
        age: Age,
        clock: Entity,
        source: Source,
        is_fixed: bool,
    ) {
        let line = &mut self.lines[key as usize];
        line.clock = Some(clock);
        line.age = age;
        line.source = source;
        line.is_fixed = is_fixed;
        let place = self.by_age.partition_point(|&(other, _)| other < age);
        self.by_age.insert(place, (age, key));
        self.by_entity.insert(clock, key);
    }

    /// Takes out a clock of which all timers have been cancelled. Those that run on it stand still.
    pub(super) fn remove_clock(&mut self, clock: Entity) {
        let Some(key) = self.by_entity.remove(&clock) else {
            return;
        };
        let line = &mut self.lines[key as usize];
        line.clock = None;
        self.by_age.retain(|&(_, other)| other != key);
        for line in &mut self.lines {
            if line.source == Source::Clock(key) {
                line.source = Source::Nothing;
            }
        }
        // The places of the clocks that are there from the start stay theirs.
        if key > FIXED {
            self.vacant.push(key);
        }
    }

    pub(crate) fn get(&self, key: ClockKey) -> Option<&Timeline> {
        let line = self.lines.get(key as usize);
        line.filter(|line| line.clock.is_some())
    }

    pub(crate) fn get_mut(&mut self, key: ClockKey) -> Option<&mut Timeline> {
        let line = self.lines.get_mut(key as usize);
        line.filter(|line| line.clock.is_some())
    }

    pub(crate) fn key(&self, clock: ClockId) -> Option<ClockKey> {
        match clock {
            ClockId::Real => Some(REAL),
            ClockId::Virtual => Some(VIRTUAL),
            ClockId::Frames => Some(FRAMES),
            ClockId::Fixed => Some(FIXED),
            ClockId::Own(clock) => self.key_of(clock),
        }
        .filter(|&key| self.get(key).is_some())
    }

    /// Returns the key of the clock on an entity, also of one that is there from the start.
    pub(super) fn key_of(&self, clock: Entity) -> Option<ClockKey> {
        self.by_entity.get(&clock).copied()
    }

    pub(crate) fn find(&self, clock: ClockId) -> Result<(ClockKey, &Timeline), UnknownClock> {
        let found = self.key(clock).and_then(|key| Some((key, self.get(key)?)));
        found.ok_or(UnknownClock(clock))
    }

    pub(super) fn entity(&self, clock: ClockId) -> Result<Entity, UnknownClock> {
        let (_, line) = self.find(clock)?;
        line.clock.ok_or(UnknownClock(clock))
    }

    pub(crate) fn id(&self, key: ClockKey) -> Option<ClockId> {
        Some(match key {
            REAL => ClockId::Real,
            VIRTUAL => ClockId::Virtual,
            FRAMES => ClockId::Frames,
            FIXED => ClockId::Fixed,
            _ => ClockId::Own(self.get(key)?.clock?),
        })
    }

    /// The clocks with their timers, by age.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ClockKey, &Timeline)> {
        self.after(None)
    }

    /// Returns the first clock of those that take part that comes after one of this age. Clocks
    /// may come and go between two calls.
    pub(crate) fn next(&self, scope: Scope, after: Option<Age>) -> Option<(ClockKey, &Timeline)> {
        let mut later = self.after(after);
        later.find(|(_, line)| self.is_in(line, scope))
    }

    /// Whether a clock takes part.
    pub(crate) fn is_in(&self, line: &Timeline, scope: Scope) -> bool {
        match scope {
            Scope::Frame => !line.is_fixed,
            Scope::Fixed => line.is_fixed,
            Scope::Under(root) => self.lineage(line).any(|line| line.age == root),
        }
    }

    /// A clock, the one that it runs on, and so on.
    pub(crate) fn lineage<'a>(&'a self, line: &'a Timeline) -> impl Iterator<Item = &'a Timeline> {
        // Each is older than the one before, so this ends.
        iter::successors(Some(line), |line| match line.source {
            Source::Clock(parent) => self.get(parent),
            _ => None,
        })
    }

    /// Whether nothing drives a clock, or one that it runs on.
    pub(crate) fn is_cut_off(&self, line: &Timeline) -> bool {
        self.lineage(line).any(Timeline::is_orphan)
    }

    fn after(&self, age: Option<Age>) -> impl Iterator<Item = (ClockKey, &Timeline)> {
        let start = self
            .by_age
            .partition_point(|&(other, _)| Some(other) <= age);
        let later = self.by_age[start..].iter();
        later.filter_map(|&(_, key)| Some((key, self.get(key)?)))
    }

    /// Whether something may be due, or left to be done.
    pub(crate) fn has_work(&self, scope: Scope) -> bool {
        let finished = scope.finishes().map(|nth| &self.finished[nth]);
        finished.is_some_and(|finished| finished.pending().next().is_some())
            || self.discarded.is_some()
            || self.unfinished.is_some()
            || self.next_due(scope, None).is_some()
    }

    /// Returns the first clock of those that take part that comes after one of this age, and on which
    /// something may be due.
    pub(crate) fn next_due(&self, scope: Scope, after: Option<Age>) -> Option<(ClockKey, Age)> {
        let mut later = self.after(after);
        let may_fire =
            |line: &Timeline| line.may_fire() && !self.is_cut_off(line) && self.is_in(line, scope);
        later.find_map(|(key, line)| may_fire(line).then_some((key, line.age)))
    }

    /// Fires what is due on a clock, one after the other, until there is more to do for a timer
    /// than to say so: it is [`unfinished`](Self::unfinished) then.
    pub(crate) fn firings(
        &mut self,
        scope: Scope,
        clock: ClockKey,
        burst_limit: NonZeroU32,
    ) -> impl Iterator<Item = TimerFired> {
        let line = self.get(clock);
        let goes_on = line.is_some_and(|line| !self.is_cut_off(line));
        let Self {
            lines,
            unfinished,
            stats,
            ..
        } = self;
        let stats = &mut stats[scope.index()];
        let mut line = lines.get_mut(clock as usize).filter(|_| goes_on);
        iter::from_fn(move || {
            if unfinished.is_some() {
                return None;
            }
            let (fired, key, acts) = line.as_mut()?.fire(burst_limit)?;
            stats.fired += 1;
            stats.missed += fired.missed;
            if acts || fired.last {
                *unfinished = Some(Unfinished {
                    fired,
                    clock,
                    key,
                    acts,
                });
            }
            Some(fired)
        })
    }

    pub(super) fn timer_mut(&mut self, line: ClockKey, key: TimerKey) -> Option<&mut ArmedTimer> {
        self.get_mut(line)?.queue.get_mut(key)
    }

    /// Takes a timer in. Returns what lets it run, if it is the first one of the fixed schedule.
    pub(super) fn add_timer(&mut self, plan: Plan) -> Option<fn(&mut World)> {
        self.draws = self.draws.wrapping_add(1);
        let line = self.get_mut(plan.line)?;
        let key = line.add(plan.deadline, plan.timer, plan.paused_at);
        debug_assert_eq!(key, plan.key);
        if line.is_fixed {
            self.take_fixed_run()
        } else {
            None
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

    /// Takes note of an entity that is to be despawned in the next run.
    pub(crate) fn finish(&mut self, entity: Entity, is_fixed: bool) {
        self.finished[usize::from(is_fixed)].push(entity);
    }

    /// Returns the entities that a run of this scope is to despawn.
    pub(crate) fn finished(&mut self, scope: Scope) -> Option<&mut Deferred<Entity>> {
        scope.finishes().map(|nth| &mut self.finished[nth])
    }

    /// Arms what has been added on the clocks of a scope, and writes what has been cancelled.
    pub(crate) fn swap_added(&mut self, scope: Scope, messages: &mut Messages<TimerCancelled>) {
        let mut stats = RunStats::default();
        self.cancelled.swap();
        if !self.cancelled.is_empty() {
            stats.cancelled = messages.write_batch(self.cancelled.drain()).len() as u64;
        }
        let mut last = None;
        while let Some((key, line)) = self.next(scope, last) {
            last = Some(line.age);
            if let Some(line) = self.get_mut(key) {
                stats.armed += line.swap_added();
            }
        }
        self.stats[scope.index()] = stats;
    }

    /// Whether there is a timer on a clock of the fixed schedule, or one to forget.
    pub(crate) fn has_fixed_timers(&self) -> bool {
        let mut lines = self.lines.iter();
        lines.any(|line| line.is_fixed && !line.is_idle())
    }

    /// Takes what lets the clocks of the fixed schedule run, if it has not yet.
    pub(crate) fn take_fixed_run(&mut self) -> Option<fn(&mut World)> {
        self.add_fixed_run.take()
    }

    pub(crate) fn stats(&self, scope: Scope) -> RunStats {
        self.stats[scope.index()]
    }

    pub(crate) fn reset_stats(&mut self, scope: Scope) {
        self.stats[scope.index()] = RunStats::default();
    }
}

impl Scope {
    /// Which of the finished entities are its business. Under a clock that is fast-forwarded, nobody
    /// has read of them yet.
    fn finishes(self) -> Option<usize> {
        match self {
            Self::Frame => Some(0),
            Self::Fixed => Some(1),
            Self::Under(_) => None,
        }
    }

    /// Whether those that are called in every run are called in this one.
    pub(super) fn is_run(self) -> bool {
        !matches!(self, Self::Under(_))
    }

    fn index(self) -> usize {
        match self {
            Self::Frame => 0,
            Self::Fixed => 1,
            Self::Under(_) => 2,
        }
    }
}

/// Arms what has been added on the clocks of the frame, and writes what has been cancelled.
pub(crate) fn swap_added(
    mut timelines: ResMut<Timelines>,
    mut messages: ResMut<Messages<TimerCancelled>>,
) {
    timelines.swap_added(Scope::Frame, &mut messages);
}

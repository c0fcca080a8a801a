//! Reading the clocks: once for a whole run, or at any moment.

use core::{mem, time::Duration};

use bevy_ecs::{entity_disabling::Disabled, prelude::*, system::SystemParam};
use bevy_time::{Fixed, Real, Time, Virtual};
use smallvec::SmallVec;

use super::{
    Clock, ClockId,
    reading::{Reading, saturating_nanos},
    table::{Age, BevyTime, Cadence, ClockKey, ClockTable, Row, Scope, Source},
};

/// The length of one frame on the frame clock.
pub(crate) const FRAME: u64 = 1_000_000_000;

/// All clocks, including the clocks of disabled entities.
pub(crate) type AnyClocks<'w, 's> = Query<'w, 's, (&'static mut Clock, Has<Disabled>)>;

/// Bevy's clocks.
#[derive(SystemParam)]
pub(crate) struct Times<'w> {
    real: Res<'w, Time<Real>>,
    virtual_time: Res<'w, Time<Virtual>>,
    fixed: Res<'w, Time<Fixed>>,
}

impl Times<'_> {
    /// Returns the reading of one of Bevy's clocks.
    pub(super) fn elapsed(&self, time: BevyTime) -> Duration {
        match time {
            BevyTime::Real => self.real.elapsed(),
            BevyTime::Virtual => self.virtual_time.elapsed(),
            BevyTime::Fixed => self.fixed.elapsed(),
        }
    }
}

/// A source of clocks and Bevy's times: a world, or system parameters.
pub(super) trait TimeSource {
    /// Returns the clock on an entity.
    fn clock(&self, entity: Entity) -> Option<Clock>;

    /// Returns `true` if an entity is disabled.
    fn is_disabled(&self, entity: Entity) -> bool;

    /// Returns the reading of one of Bevy's clocks.
    fn elapsed(&self, time: BevyTime) -> Duration;
}

impl TimeSource for World {
    fn clock(&self, entity: Entity) -> Option<Clock> {
        self.get(entity).copied()
    }

    fn is_disabled(&self, entity: Entity) -> bool {
        self.get::<Disabled>(entity).is_some()
    }

    fn elapsed(&self, time: BevyTime) -> Duration {
        fn elapsed<T: Default + Send + Sync + 'static>(world: &World) -> Duration {
            let time = world.get_resource::<Time<T>>();
            time.map_or(Duration::ZERO, Time::elapsed)
        }
        match time {
            BevyTime::Real => elapsed::<Real>(self),
            BevyTime::Virtual => elapsed::<Virtual>(self),
            BevyTime::Fixed => elapsed::<Fixed>(self),
        }
    }
}

/// Returns the reading of one of Bevy's clocks, or zero for any other source.
pub(super) fn source_now(world: &World, source: Source) -> u64 {
    match source {
        Source::Bevy(time) => saturating_nanos(world.elapsed(time)),
        Source::Frames | Source::Clock(..) | Source::Missing => 0,
    }
}

/// The time on a clock in this run, as callbacks see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick {
    pub(crate) clock: ClockId,
    /// The time between this run and the previous one.
    pub(crate) delta: Duration,
    /// The reading of the clock.
    pub(crate) elapsed: Duration,
}

/// Returns `true` if there is a clock on `entity` that is not stopped itself.
pub(crate) fn is_running(clocks: &AnyClocks, entity: Entity) -> bool {
    let clock = clocks.get(entity);
    clock.is_ok_and(|(clock, is_disabled)| !clock.is_stopped() && !is_disabled)
}

/// Returns `true` if the entity carries a clock that is not stopped itself.
pub(crate) fn is_running_clock(entity: EntityRef) -> bool {
    let runs = |clock: &Clock| !clock.is_stopped();
    entity.get::<Clock>().is_some_and(runs) && !entity.contains::<Disabled>()
}

impl ClockTable {
    /// Reads the clocks of a cadence for a run, parents before children.
    pub(crate) fn read(&mut self, cadence: Cadence, clocks: &mut AnyClocks, times: &Times) {
        for place in self.places_after(None) {
            if let Some(row) = self.read_at(place, Scope::Of(cadence), clocks, times) {
                row.delta = row.reading.now.saturating_sub(row.last_run);
                row.last_run = row.reading.now;
            }
        }
    }

    /// Reads the descendants of the clock of this age, parents before children.
    pub(crate) fn read_under(&mut self, root: Age, clocks: &mut AnyClocks, times: &Times) {
        for place in self.places_after(Some(root)) {
            self.read_at(place, Scope::Under(root), clocks, times);
        }
    }

    /// Reads the clock at a place in the order of age, and returns it, if it is in a scope.
    fn read_at(
        &mut self,
        place: usize,
        scope: Scope,
        clocks: &mut AnyClocks,
        times: &Times,
    ) -> Option<&mut Row> {
        let (key, row) = self.at(place)?;
        if !self.is_in(row, scope) {
            return None;
        }
        let driven = self.driven(row, times);
        let row = self.get_mut(key)?;
        row.follow(driven, clocks);
        Some(row)
    }

    /// Returns the time of the source of a clock in this run, and whether the source is stopped.
    fn driven(&self, row: &Row, times: &Times) -> (u64, bool) {
        match row.source {
            Source::Frames => (row.seen.saturating_add(FRAME), false),
            Source::Clock(..) | Source::Missing => match self.parent(row) {
                Some(parent) => (parent.reading.now, parent.reading.stopped),
                None => (row.seen, true),
            },
            Source::Bevy(time) => {
                let stopped = time == BevyTime::Virtual && times.virtual_time.was_paused();
                (saturating_nanos(times.elapsed(time)), stopped)
            }
        }
    }

    /// Returns the time on the clock of this key and age in this run, or `None` if it is stopped.
    pub(crate) fn tick(
        &self,
        key: ClockKey,
        age: Age,
        is_running: impl Fn(Entity) -> bool,
    ) -> Option<Tick> {
        let reading = self.reading(key, age, is_running)?;
        Some(Tick {
            clock: self.id(key)?,
            delta: Duration::from_nanos(self.get(key)?.delta),
            elapsed: reading.shown(reading.now),
        })
    }

    /// Returns what a clock shows in this run, stopped or not. If the clock is gone, this is what the
    /// game clock shows.
    pub(crate) fn shown(&self, clock: Option<(ClockKey, Age)>) -> Duration {
        let own = clock.and_then(|(key, age)| self.get(key).filter(|row| row.age == age));
        let row = own.or_else(|| Some(self.find(ClockId::Virtual).ok()?.1));
        row.map_or(Duration::ZERO, |row| row.reading.shown(row.reading.now))
    }

    /// Returns the reading of the clock of this key and age in this run, or `None` if the clock or
    /// an ancestor of it is stopped or gone by now.
    pub(crate) fn reading(
        &self,
        key: ClockKey,
        age: Age,
        is_running: impl Fn(Entity) -> bool,
    ) -> Option<&Reading> {
        let row = self.get(key).filter(|row| row.age == age)?;
        let runs = |row: &Row| is_running(row.entity) && !self.has_lost_parent(row);
        let is_running = !row.reading.stopped && self.lineage(row).all(runs);
        is_running.then_some(&row.reading)
    }

    /// Returns the current state of a clock. The clock or its source may have been set since the
    /// last run.
    pub(super) fn clock_now(&self, key: ClockKey, source: &impl TimeSource) -> Option<Clock> {
        let row = self.get(key)?;
        let mut parent_now = None;
        if self.parent(row).is_some() {
            // A loop over the ancestors, because a chain of clocks may be longer than the stack.
            let ancestors: SmallVec<[&Row; 4]> = self.lineage(row).skip(1).collect();
            for ancestor in ancestors.into_iter().rev() {
                let clock = row_now(ancestor, parent_now, source)?;
                parent_now = Some(clock.read().now);
            }
        }
        row_now(row, parent_now, source)
    }

    /// Reads the current state of a clock.
    pub(crate) fn read_now(&self, world: &World, key: ClockKey) -> Option<Reading> {
        Some(self.clock_now(key, world)?.read())
    }

    /// Advances a clock on its own, without its parent.
    pub(crate) fn advance(&mut self, key: ClockKey, nanos: u64, clocks: &mut AnyClocks) {
        if let Some(row) = self.get_mut(key)
            && let Ok((mut clock, _)) = clocks.get_mut(row.entity)
        {
            clock.advance_by_nanos(nanos);
            row.reading = clock.read();
        }
    }

    /// Converts a span on a clock into the span on its ancestor of age `root`, or returns `None` if
    /// it takes forever.
    pub(crate) fn span_on(
        &self,
        root: Age,
        row: &Row,
        span: u64,
        clocks: &AnyClocks,
    ) -> Option<u64> {
        let mut span = span;
        for row in self.lineage(row).take_while(|row| row.age != root) {
            let (clock, is_disabled) = clocks.get(row.entity).ok()?;
            span = clock.parent_span(span).filter(|_| !is_disabled)?;
        }
        Some(span)
    }
}

impl Row {
    /// Advances the clock to follow the time that drives it.
    fn follow(&mut self, (now, parent_stopped): (u64, bool), clocks: &mut AnyClocks) {
        let seen = mem::replace(&mut self.seen, now);
        if let Ok((mut clock, is_disabled)) = clocks.get_mut(self.entity) {
            self.reading = match is_disabled {
                true => clock.read(),
                false => clock.bypass_change_detection().follow(seen, now),
            };
            self.reading.stopped |= parent_stopped || is_disabled;
        }
    }
}

/// Returns the current state of a clock whose parent, if any, shows `parent_now`.
fn row_now(row: &Row, parent_now: Option<u64>, source: &impl TimeSource) -> Option<Clock> {
    let mut clock = source.clock(row.entity)?;
    let driven = match row.source {
        Source::Bevy(time) => saturating_nanos(source.elapsed(time)),
        Source::Frames | Source::Clock(..) | Source::Missing => parent_now.unwrap_or(row.seen),
    };
    if driven != row.seen && !source.is_disabled(row.entity) {
        clock.follow(row.seen, driven);
    }
    Some(clock)
}

//! Reading the clocks.

use core::time::Duration;

use bevy_ecs::{
    change_detection::DetectChangesMut,
    entity::Entity,
    entity_disabling::Disabled,
    query::Has,
    system::{Query, Res, ResMut, SystemParam},
    world::{EntityRef, World},
};
use bevy_time::{Fixed, Real, Time, Virtual};

use super::{
    Timelines,
    timeline::{Source, Timeline},
    timelines::{Age, ClockKey, Scope},
};
use crate::clock::{Clock, ClockId, Reading, saturating_nanos};

/// A frame on the clock of frames.
pub(super) const FRAME: u64 = 1_000_000_000;

/// All clocks, also of disabled entities.
pub(crate) type AnyClocks<'w, 's> = Query<'w, 's, (&'static mut Clock, Has<Disabled>)>;

/// Bevy's clocks.
#[derive(SystemParam)]
pub(crate) struct Times<'w> {
    real: Res<'w, Time<Real>>,
    virtual_time: Res<'w, Time<Virtual>>,
    fixed: Res<'w, Time<Fixed>>,
}

impl Times<'_> {
    /// Returns what one of them shows; that of the game for what is none of them.
    pub(super) fn elapsed(&self, source: Source) -> Duration {
        match source {
            Source::Real => self.real.elapsed(),
            Source::Fixed => self.fixed.elapsed(),
            _ => self.virtual_time.elapsed(),
        }
    }
}

/// What time it is on a clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick {
    pub(crate) clock: ClockId,
    /// How much has passed between this run and the one before.
    pub(crate) delta: Duration,
    /// What it shows.
    pub(crate) elapsed: Duration,
}

/// Reads the clocks, each once for the whole run. Once there is anything to run in the steps of the
/// fixed schedule, those of that are read there instead: no time may pass between two steps that
/// neither of them is told.
pub(crate) fn read_clocks(mut timelines: ResMut<Timelines>, mut clocks: AnyClocks, times: Times) {
    timelines.is_firing = false;
    timelines.frames = timelines.frames.saturating_add(1);
    if !timelines.is_read_in_steps {
        timelines.read(Scope::Fixed, None, &mut clocks, &times);
    }
    timelines.read(Scope::Frame, None, &mut clocks, &times);
}

/// Whether there is a clock on this entity that has not been told to stand still.
pub(crate) fn goes_on(world: &World, clock: Entity) -> bool {
    world.get_entity(clock).is_ok_and(is_going_on)
}

/// Whether this is a clock that has not been told to stand still.
pub(crate) fn is_going_on(clock: EntityRef) -> bool {
    let is_told_to = |clock: &Clock| !clock.is_stopped();
    clock.get::<Clock>().is_some_and(is_told_to) && !clock.contains::<Disabled>()
}

impl Timelines {
    /// Reads the clocks of a scope that are younger than `after`, parents before children.
    pub(crate) fn read(
        &mut self,
        scope: Scope,
        mut after: Option<Age>,
        clocks: &mut AnyClocks,
        times: &Times,
    ) {
        while let Some((key, line)) = self.next(scope, after) {
            after = Some(line.age);
            self.tick(key, clocks, times);
            if let Some(line) = self.get_mut(key).filter(|_| scope.is_run()) {
                line.delta = line.reading.now.saturating_sub(line.last_run);
                line.last_run = line.reading.now;
            }
        }
    }

    /// Returns what time it is on the clock of this key and age, unless it stands still.
    pub(crate) fn tick_of(
        &self,
        key: ClockKey,
        age: Age,
        goes_on: impl Fn(Entity) -> bool,
    ) -> Option<Tick> {
        let line = self.get(key).filter(|line| line.age == age)?;
        let Reading { now, stopped, .. } = line.reading;
        if stopped || self.is_cut_off(line) || !self.clocks(line).all(goes_on) {
            return None;
        }
        Some(Tick {
            clock: self.id(key)?,
            delta: Duration::from_nanos(line.delta),
            elapsed: line.reading.shown(now),
        })
    }

    /// Lets a clock go on to where it is driven.
    fn tick(&mut self, key: ClockKey, clocks: &mut AnyClocks, times: &Times) {
        let Some(line) = self.get(key) else {
            return;
        };
        let driven = self.driven_by(line.source, times);
        let Some(line) = self.get_mut(key) else {
            return;
        };
        let (now, parent_stopped) = driven.unwrap_or((line.seen, true));
        let seen = core::mem::replace(&mut line.seen, now);
        let clock = line.clock.and_then(|clock| clocks.get_mut(clock).ok());
        if let Some((mut clock, is_disabled)) = clock {
            line.reading = match is_disabled {
                true => clock.read(),
                false => clock.bypass_change_detection().follow(seen, now),
            };
            line.reading.stopped |= parent_stopped || is_disabled;
        }
    }

    /// Returns what drives a clock in this run, and whether that stands still.
    fn driven_by(&self, source: Source, times: &Times) -> Option<(u64, bool)> {
        Some(match source {
            Source::Frames => (self.frames_passed(), false),
            Source::Clock(parent) => {
                let Reading { now, stopped, .. } = self.get(parent)?.reading;
                (now, stopped)
            }
            Source::Nothing => return None,
            bevys => {
                let stopped = bevys == Source::Virtual && times.virtual_time.was_paused();
                (saturating_nanos(times.elapsed(bevys)), stopped)
            }
        })
    }

    /// Returns a clock as it is at this moment: it may have been set since it was read for a run, and
    /// so may what drives it. Where clocks and Bevy's times are found is for the caller to say.
    pub(super) fn live(
        &self,
        key: ClockKey,
        find: &impl Fn(Entity) -> Option<(Clock, bool)>,
        elapsed: &impl Fn(Source) -> Duration,
    ) -> Option<Clock> {
        let line = self.get(key)?;
        let (mut clock, is_disabled) = find(line.clock?)?;
        let driven = match line.source {
            Source::Clock(parent) => self.live(parent, find, elapsed)?.read().now,
            Source::Frames => self.frames_passed(),
            Source::Nothing => line.seen,
            bevys => saturating_nanos(elapsed(bevys)),
        };
        if driven != line.seen && !is_disabled {
            clock.follow(line.seen, driven);
        }
        Some(clock)
    }

    /// Returns a clock, and what it says at this moment.
    pub(super) fn read_now(&self, world: &World, clock: ClockId) -> Option<(ClockKey, Reading)> {
        let key = self.key(clock)?;
        Some((key, self.read_line_now(world, key)?))
    }

    pub(super) fn read_line_now(&self, world: &World, key: ClockKey) -> Option<Reading> {
        fn elapsed<T: Default + Send + Sync + 'static>(world: &World) -> Duration {
            let time = world.get_resource::<Time<T>>();
            time.map_or(Duration::ZERO, Time::elapsed)
        }

        let find = |clock: Entity| {
            let clock = world.get_entity(clock).ok()?;
            Some((*clock.get::<Clock>()?, clock.contains::<Disabled>()))
        };
        let elapsed = |source| match source {
            Source::Real => elapsed::<Real>(world),
            Source::Fixed => elapsed::<Fixed>(world),
            _ => elapsed::<Virtual>(world),
        };
        Some(self.live(key, &find, &elapsed)?.read())
    }

    fn frames_passed(&self) -> u64 {
        self.frames.saturating_mul(FRAME)
    }

    /// The entities of a clock and those that it runs on.
    pub(crate) fn clocks<'a>(&'a self, line: &'a Timeline) -> impl Iterator<Item = Entity> + 'a {
        self.lineage(line).filter_map(|line| line.clock)
    }

    /// Lets a clock go on by itself.
    pub(crate) fn advance(&mut self, key: ClockKey, nanos: u64, clocks: &mut AnyClocks) {
        if let Some(line) = self.get_mut(key)
            && let Some((mut clock, _)) = line.clock.and_then(|clock| clocks.get_mut(clock).ok())
        {
            clock.go(nanos);
            line.reading = clock.read();
        }
    }

    /// Returns how far the clock of the age `root` has to go until something is due on this one,
    /// which runs on it, or `None` if that is never.
    pub(crate) fn until_next(&self, line: &Timeline, root: Age, clocks: &AnyClocks) -> Option<u64> {
        let mut next = line.until_next()?;
        for line in self.lineage(line).take_while(|line| line.age != root) {
            let (clock, is_disabled) = clocks.get(line.clock?).ok()?;
            next = clock.parent_time(next).filter(|_| !is_disabled)?;
        }
        Some(next)
    }
}

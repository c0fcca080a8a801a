//! Clocks as values: what a save reads, and a load puts.

use alloc::vec::Vec;
use core::time::Duration;

use bevy_ecs::{entity::MapEntities, prelude::*};
use bevy_platform::collections::HashMap;
use serde::{Deserialize, Deserializer, Serialize, de};

use super::{
    Clock, Parent,
    id::ClockId,
    row::{Age, BUILT_IN, ClockKey, Driver},
    table::{ClockTable, FRAME},
    time::{Reading, Speed, saturating_nanos},
};

/// Checks a speed from data.
pub(super) fn deserialize_speed<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<f64, D::Error> {
    let speed = f64::deserialize(deserializer)?;
    Speed::try_from(speed).map_err(de::Error::custom)?;
    Ok(speed)
}

/// A clock, with how far it has come.
#[derive(MapEntities, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClockState {
    /// With its present settings and the time that it shows.
    #[entities]
    clock: Clock,
    /// The fraction of a nanosecond that has passed beyond that time, in units of 2^-64.
    #[serde(default)]
    fraction: u64,
    /// The time to which the clock last skipped.
    #[serde(default)]
    skipped_to: Option<Duration>,
    /// The place among the clocks of its world.
    #[serde(default)]
    pub(crate) order: Age,
    /// Whether a condition held the clock or one above it.
    #[serde(default)]
    pub(crate) is_held: bool,
}

impl From<Clock> for ClockState {
    fn from(clock: Clock) -> Self {
        Self {
            clock,
            fraction: 0,
            skipped_to: None,
            order: Age::MAX,
            is_held: false,
        }
    }
}

impl ClockState {
    /// Returns the clock that drives this one, unless it is manual.
    pub(crate) fn parent(&self) -> Option<ClockId> {
        self.clock.parent()
    }

    /// Leaves the clock without a parent.
    pub(crate) fn lose_parent(&mut self) {
        if let Parent::Default(parent) | Parent::Chosen(parent) = &mut self.clock.parent {
            *parent = Entity::PLACEHOLDER.into();
        }
    }

    /// Lets the game clock drive this one.
    pub(crate) fn leave_parent(&mut self) {
        self.clock.parent = Parent::Chosen(ClockId::Virtual);
    }

    /// Inserts the clock. A clock that is there already shows the time of this one, and the timers on it keep their
    /// remaining times. What brakes it stays.
    pub(crate) fn put(self, entity: &mut EntityWorldMut) {
        entity.insert(self.clock.clone());
        let id = entity.id();
        entity.world_scope(|world| {
            if let Some(mut table) = world.get_resource_mut::<ClockTable>()
                && let Some(key) = table.key_of(id)
            {
                table.put(key, &self);
            }
        });
    }
}

/// The times of the clocks of a world. Each is worked out once, so a deep chain of clocks takes no longer
/// than as many clocks side by side.
pub(crate) struct ClockTimes<'w> {
    table: &'w ClockTable,
    /// The times, and whether a condition holds the clock or one above it.
    known: HashMap<ClockKey, (Reading, bool)>,
}

impl<'w> ClockTimes<'w> {
    pub(crate) fn of(world: &'w World) -> Option<Self> {
        Some(Self {
            table: world.get_resource()?,
            known: HashMap::default(),
        })
    }

    /// Returns the time of a clock, and whether a condition holds it or one above it.
    pub(crate) fn look_up(&mut self, key: ClockKey) -> Option<(Reading, bool)> {
        let (mut above, mut path) = (None, Vec::new());
        let mut next = Some(key);
        while let Some(key) = next {
            above = self.known.get(&key).copied();
            if above.is_some() {
                break;
            }
            path.push(key);
            next = self.table.rows.parent(key);
        }
        for key in path.into_iter().rev() {
            let row = self.table.rows.get(key)?;
            let is_held = !row.brakes.held_by.is_empty();
            let found = above.map_or((row.time, is_held), |(above, above_is_held)| {
                (row.time_at(above.now), is_held || above_is_held)
            });
            self.known.insert(key, found);
            above = Some(found);
        }
        above
    }

    /// Returns the time that a clock shows, or zero if there is none, and whether a condition holds it or one above it.
    pub(crate) fn now(&mut self, clock: ClockId) -> (Duration, bool) {
        let found = self.table.find(clock).ok();
        let found = found.and_then(|found| self.look_up(found.key));
        found.map_or((Duration::ZERO, false), |(time, is_held)| {
            (time.shown_now(), is_held)
        })
    }

    /// Returns a clock to save, with its present settings and time. The clocks have been [settled](settle_clocks).
    pub(crate) fn read(&mut self, key: ClockKey) -> Option<ClockState> {
        let row = self.table.rows.get(key)?;
        let (time, is_held) = self.look_up(key)?;
        Some(ClockState {
            clock: row.clock_at(&time),
            fraction: time.carry,
            skipped_to: row.skipped_to.map(|skipped_to| time.shown(skipped_to)),
            order: row.age,
            is_held,
        })
    }

    /// Returns the state of the clock on an entity. One that waits because its parent runs on it has no parent there.
    pub(crate) fn read_of(&mut self, entity: EntityRef) -> Option<ClockState> {
        let Some(key) = self.table.key_of(entity.id()) else {
            return entity.get::<Clock>().cloned().map(ClockState::from);
        };
        let mut state = self.read(key)?;
        let is_waiting = self.table.rows.get(key)?.driver == Driver::Missing;
        if is_waiting
            && let Some(parent) = state.parent()
            && self.table.find(parent).is_ok()
        {
            state.lose_parent();
        }
        Some(state)
    }
}

impl ClockTable {
    /// Gives a clock everything of a state but its parent.
    fn put(&mut self, key: ClockKey, state: &ClockState) {
        self.change(key, |row| {
            (row.settings.speed, row.settings.paused) = (state.clock.speed, state.clock.paused);
            row.time.carry = state.fraction;
            row.time.set_shown(state.clock.now);
            let skipped_to = state.skipped_to;
            row.skipped_to = skipped_to.map(|skipped_to| row.time.passed(skipped_to));
        });
    }
}

/// Returns the states of the built-in clocks: real, virtual, frames, fixed.
pub(crate) fn save_built_in(world: &World) -> Option<[ClockState; BUILT_IN.len()]> {
    let mut times = ClockTimes::of(world)?;
    let mut clocks = BUILT_IN.map(|clock| ClockState::from(Clock::of(clock)));
    for (key, clock) in (0..).zip(&mut clocks) {
        *clock = times.read(key)?;
    }
    Some(clocks)
}

/// Puts the built-in clocks into these states. Every timer keeps its remaining time.
///
/// Does nothing in a world without the plugin.
pub(crate) fn load_built_in(world: &mut World, saved: &[ClockState; BUILT_IN.len()]) {
    if let Some(mut table) = world.get_resource_mut::<ClockTable>() {
        for (key, clock) in (0..).zip(saved) {
            table.put(key, clock);
        }
    }
}

/// The time that has passed on each of the built-in clocks since an entity was taken out of its world, or
/// copied.
///
/// A `Duration` stands for the same time on all of them but the clock of frames. That is right for a
/// move, because both worlds keep running. An entity that comes back from a file has missed what each
/// clock of its world has shown since then.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_due::moving::TimePassed;
///
/// let second = Duration::from_secs(1);
/// let paused = TimePassed { real: second, ..TimePassed::default() };
/// assert_ne!(paused, TimePassed::from(second));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimePassed {
    /// On [`ClockId::Real`](crate::ClockId::Real).
    pub real: Duration,
    /// On [`ClockId::Virtual`](crate::ClockId::Virtual), the game clock.
    pub game: Duration,
    /// On [`ClockId::Fixed`](crate::ClockId::Fixed).
    pub fixed: Duration,
    /// On [`ClockId::Frames`](crate::ClockId::Frames).
    pub frames: u32,
}

impl From<Duration> for TimePassed {
    fn from(passed: Duration) -> Self {
        Self {
            real: passed,
            game: passed,
            fixed: passed,
            frames: 0,
        }
    }
}

impl TimePassed {
    /// Returns the nanoseconds that a built-in clock has advanced.
    pub(super) fn on(&self, clock: ClockId) -> u64 {
        match clock {
            ClockId::Real => saturating_nanos(self.real),
            ClockId::Virtual => saturating_nanos(self.game),
            ClockId::Fixed => saturating_nanos(self.fixed),
            ClockId::Frames => u64::from(self.frames) * FRAME,
            ClockId::Own(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::vec::Vec;

    use bevy_app::App;
    use bevy_ecs::system::RunSystemOnce;
    use bevy_time::{Fixed, Time, TimePlugin, TimeUpdateStrategy};

    use super::*;
    use crate::{ArmedTimers, ClockId, Clocks, ClocksMut, DuePlugin, Timer, clock::ClockMut};

    const CLOCKS: [ClockId; 4] = [
        ClockId::Real,
        ClockId::Virtual,
        ClockId::Frames,
        ClockId::Fixed,
    ];

    fn app() -> App {
        let mut app = App::new();
        app.add_plugins((TimePlugin, DuePlugin::default()))
            .insert_resource(Time::<Fixed>::from_duration(Duration::from_nanos(7)));
        advance(&mut app, 0);
        app
    }

    fn advance(app: &mut App, nanos: u64) {
        let step = Duration::from_nanos(nanos);
        app.insert_resource(TimeUpdateStrategy::ManualDuration(step));
        app.update();
    }

    fn change(app: &mut App, mut change: impl FnMut(&mut ClockMut) + Send + Sync + 'static) {
        let change = move |mut clocks: ClocksMut| {
            for id in CLOCKS {
                change(&mut clocks.get_mut(id).expect("built in"));
            }
        };
        app.world_mut().run_system_once(change).expect("a system");
    }

    fn shown(app: &mut App) -> [(Clock, Duration); 4] {
        let shown = |clocks: Clocks| {
            CLOCKS.map(|id| {
                let now = clocks.now(id).expect("built in");
                (clocks.get(id).expect("built in"), now)
            })
        };
        app.world_mut().run_system_once(shown).expect("a system")
    }

    fn remaining(app: &mut App) -> Vec<u128> {
        let remaining = |timers: ArmedTimers| {
            let timers = timers.iter();
            timers
                .map(|timer| timer.remaining.as_nanos())
                .collect::<Vec<_>>()
        };
        app.world_mut()
            .run_system_once(remaining)
            .expect("a system")
    }

    fn arm(app: &mut App) {
        for id in CLOCKS {
            let timer = Timer::after(Duration::from_secs(100)).on(id);
            app.world_mut().spawn(timer);
        }
        advance(app, 0);
    }

    #[test]
    fn loaded_built_in_clocks_go_on_as_the_saved_ones() {
        let mut game = app();
        advance(&mut game, 100);
        change(&mut game, |clock| match clock.id() {
            ClockId::Real => clock.set_speed(1.0 / 3.0),
            ClockId::Virtual => clock.set_speed(0.3),
            ClockId::Frames => clock.pause(),
            _ => clock.set_now(Duration::from_secs(5)),
        });
        advance(&mut game, 20);
        let saved = save_built_in(game.world()).expect("the plugin");

        let mut loaded = app();
        // The fixed schedule is as far into its step as in the saved world.
        advance(&mut loaded, 120);
        arm(&mut loaded);
        change(&mut loaded, |clock| clock.set_speed(9.0));
        let before = remaining(&mut loaded);
        load_built_in(loaded.world_mut(), &saved);
        assert_eq!(remaining(&mut loaded), before, "deadlines move along");
        for nanos in [0, 1, 10, 1000, 33] {
            advance(&mut game, nanos);
            advance(&mut loaded, nanos);
            assert_eq!(shown(&mut loaded), shown(&mut game));
        }
        let [(real, _), (game_time, _), (frames, _), (_, fixed)] = shown(&mut loaded);
        assert!(frames.is_paused());
        assert!(fixed > Duration::from_secs(5));
        assert_eq!((real.speed(), game_time.speed()), (1.0 / 3.0, 0.3));
    }
}

//! The components of the built-in clocks, which are not entities.

use core::array;

use bevy_ecs::prelude::*;

use super::{Clock, row::ClockKey, shared::ClockTable, table::BUILT_IN};

/// The `Clock` of each built-in clock, by key.
#[derive(Resource)]
pub(crate) struct BuiltInClocks(pub(super) [Clock; BUILT_IN.len()]);

impl BuiltInClocks {
    /// Creates the handles of the built-in clocks, whose key is also their age.
    pub(crate) fn new(table: &ClockTable) -> Self {
        Self(array::from_fn(|key| {
            table.handle(key as ClockKey, key as u64).into()
        }))
    }
}

/// Returns copies of the built-in clocks to save: real, virtual, frames, fixed.
#[cfg(any(test, feature = "serialize"))]
pub(crate) fn save_built_in(world: &World) -> Option<[Clock; BUILT_IN.len()]> {
    Some(world.get_resource::<BuiltInClocks>()?.0.clone())
}

/// Lets the built-in clocks show the saved time and its fraction, with the saved speed and pause.
/// Every timer keeps its remaining time.
///
/// Does nothing in a world without the plugin.
#[cfg(any(test, feature = "serialize"))]
pub(crate) fn load_built_in(world: &mut World, saved: &[Clock; BUILT_IN.len()]) {
    let Some(table) = world.get_resource::<ClockTable>().cloned() else {
        return;
    };
    for (key, clock) in (0..).zip(saved) {
        restore(world, &table, key, clock);
    }
    // A change that was assigned before is lost.
    world.insert_resource(BuiltInClocks::new(&table));
}

/// Inserts a saved clock. A clock that is there already takes over its time, too, and every timer
/// keeps its remaining time.
#[cfg(feature = "serialize")]
pub(crate) fn load_clock(entity: &mut EntityWorldMut, saved: Clock) {
    let is_there = entity.contains::<Clock>();
    entity.insert(saved.clone());
    let Some(table) = entity.get_resource::<ClockTable>().cloned() else {
        return;
    };
    if let Some(key) = table.key_of(entity.id()).filter(|_| is_there) {
        restore(entity.world(), &table, key, &saved);
    }
}

/// Restores everything but the parent.
#[cfg(any(test, feature = "serialize"))]
fn restore(world: &World, table: &ClockTable, key: ClockKey, saved: &Clock) {
    let (saved, beside) = saved.saved_state();
    let mut table = table.lock();
    table.change(key, |row| {
        let state = &mut row.state;
        (state.speed, state.paused, state.carry) = (saved.speed, saved.paused, saved.carry);
        state.set_shown(saved.shown());
        // Callbacks see the time of the last reading, which may be long ago on the fixed clock.
        row.run.reading.offset = row.state.offset;
    });
    if beside.behind > 0 {
        table.fall_behind(key, beside.behind, world);
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
    use crate::{ArmedTimers, ClockId, Clocks, ClocksMut, DuePlugin, Timer};

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

    fn change(app: &mut App, mut change: impl FnMut(ClockId, &mut Clock) + Send + Sync + 'static) {
        let change = move |mut clocks: ClocksMut| {
            for id in CLOCKS {
                change(id, &mut clocks.get_mut(id).expect("built in"));
            }
        };
        app.world_mut().run_system_once(change).expect("a system");
    }

    fn shown(app: &mut App) -> [Clock; 4] {
        let shown = |clocks: Clocks| CLOCKS.map(|id| clocks.get(id).expect("built in"));
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
        change(&mut game, |id, clock| match id {
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
        change(&mut loaded, |_, clock| {
            *clock = Clock::new().with_speed(9.0);
        });
        let before = remaining(&mut loaded);
        load_built_in(loaded.world_mut(), &saved);
        assert_eq!(remaining(&mut loaded), before, "deadlines move along");
        for nanos in [0, 1, 10, 1000, 33] {
            advance(&mut game, nanos);
            advance(&mut loaded, nanos);
            assert_eq!(shown(&mut loaded), shown(&mut game));
        }
        let [real, game_time, frames, fixed] = shown(&mut loaded);
        assert!(frames.is_paused());
        assert!(fixed.now() > Duration::from_secs(5));
        assert_eq!((real.speed(), game_time.speed()), (1.0 / 3.0, 0.3));
    }
}

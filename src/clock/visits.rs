//! The number of clocks that an operation looks at, counted in tests.

#[cfg(test)]
use core::cell::Cell;

#[cfg(test)]
std::thread_local!(static VISITED: Cell<u64> = const { Cell::new(0) });

/// Counts a visit to a clock.
pub(super) fn visit() {
    #[cfg(test)]
    VISITED.set(VISITED.get() + 1);
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::{prelude::rust_2024::*, vec::Vec};

    use bevy_app::App;
    use bevy_ecs::prelude::*;
    use bevy_time::{Time, TimePlugin, TimeUpdateStrategy, Virtual};

    use super::VISITED;
    use crate::{Clock, DuePlugin, DueWorldExt, Timer, TimerFired};

    const CLOCKS: usize = 1000;
    /// The visits to the built-in clocks in a frame, and some to spare.
    const FEW: u64 = 150;
    const MS: Duration = Duration::from_millis(1);

    fn app() -> App {
        let mut app = App::new();
        app.add_plugins((TimePlugin, DuePlugin::default()))
            .insert_resource(TimeUpdateStrategy::ManualDuration(MS));
        app.update();
        app
    }

    /// Spawns clocks side by side, with a timer each.
    fn spawn_many(app: &mut App, clocks: usize, timer: &Timer) -> Vec<Entity> {
        let world = app.world_mut();
        let clocks = (0..clocks).map(|_| world.spawn((Clock::new(), timer.clone())).id());
        clocks.collect()
    }

    /// Spawns a chain of clocks, each driven by the one before.
    fn spawn_chain(app: &mut App, clocks: usize) -> Vec<Entity> {
        let mut chain: Vec<Entity> = Vec::new();
        for _ in 0..clocks {
            let clock = chain.last().map_or(Clock::new(), |&last| Clock::of(last));
            chain.push(app.world_mut().spawn(clock).id());
        }
        chain
    }

    fn visited(operate: impl FnOnce()) -> u64 {
        VISITED.set(0);
        operate();
        VISITED.get()
    }

    #[track_caller]
    fn assert_few(visited: u64, few: u64) {
        assert!(visited <= few, "{visited} visits, at most {few} expected");
    }

    #[test]
    fn an_idle_frame_visits_few_clocks() {
        let [few, many] = [10, CLOCKS].map(|clocks| {
            let mut app = app();
            spawn_many(&mut app, clocks, &Timer::after(10.0));
            app.update();
            app.update();
            visited(|| app.update())
        });
        assert_eq!(few, many, "the number of clocks should not matter");
        assert_few(many, FEW);
    }

    #[test]
    fn one_due_timer_visits_its_own_clock_only() {
        let mut app = app();
        let clocks = spawn_many(&mut app, CLOCKS, &Timer::after(10.0));
        let soon = Timer::every(MS).on(clocks[CLOCKS / 2]);
        app.world_mut().spawn(soon);
        app.update();
        app.update();
        assert_few(visited(|| app.update()), 2 * FEW);
    }

    #[test]
    fn changing_a_clock_visits_few_clocks_whatever_depends_on_it() {
        let mut app = app();
        let clocks = spawn_many(&mut app, CLOCKS, &Timer::after(10.0));
        let arena = app.world_mut().spawn(Clock::new()).id();
        for clock in clocks {
            let mut clock = app.world_mut().get_mut::<Clock>(clock).expect("spawned");
            clock.set_parent(arena).expect("no cycle");
        }
        app.update();
        let mut change = |change: fn(&mut Clock)| {
            let mut arena = app.world_mut().get_mut::<Clock>(arena).expect("spawned");
            assert_few(visited(|| change(&mut arena)), FEW);
            assert_few(visited(|| app.update()), FEW);
        };
        change(Clock::pause);
        change(Clock::unpause);
        change(|clock| clock.set_speed(0.5));
    }

    #[test]
    fn despawning_a_clock_visits_few_clocks() {
        let mut app = app();
        let clocks = spawn_many(&mut app, CLOCKS, &Timer::after(10.0));
        app.update();
        let visited = visited(|| _ = app.world_mut().despawn(clocks[CLOCKS / 2]));
        assert_few(visited, FEW);
    }

    #[test]
    fn spawning_a_chain_of_clocks_is_linear() {
        let mut app = app();
        let clocks = CLOCKS as u64;
        assert_few(visited(|| _ = spawn_chain(&mut app, CLOCKS)), 50 * clocks);
        // Bevy's time may also be ahead of the last run.
        app.world_mut()
            .resource_mut::<Time<Virtual>>()
            .advance_by(MS);
        assert_few(visited(|| _ = spawn_chain(&mut app, CLOCKS)), 50 * clocks);
    }

    #[test]
    fn a_firing_on_a_deep_clock_does_not_walk_the_chain_again() {
        #[derive(Resource, Default)]
        struct Firings(u64);

        let mut app = app();
        app.init_resource::<Firings>()
            .add_observer(|_: On<TimerFired>, mut firings: ResMut<Firings>| firings.0 += 1);
        let chain = spawn_chain(&mut app, CLOCKS);
        for _ in 0..CLOCKS {
            app.world_mut()
                .spawn(Timer::after(2 * MS).on(chain[CLOCKS - 1]));
        }
        app.update();
        let visited = visited(|| app.update());
        let firings = app.world().resource::<Firings>().0;
        assert_eq!(
            firings, CLOCKS as u64,
            "all timers should fire in one frame"
        );
        assert_few(visited, 50 * CLOCKS as u64 + FEW);
    }

    #[test]
    fn a_fast_forward_step_over_a_chain_is_linear() {
        let mut app = app();
        let chain = spawn_chain(&mut app, CLOCKS);
        app.world_mut()
            .spawn(Timer::every(MS).on(chain[CLOCKS - 1]));
        app.update();
        let visited = visited(|| {
            let stats = app.world_mut().fast_forward(chain[0], 10 * MS);
            assert_eq!(stats.expect("should run").fired, 10);
        });
        assert_few(visited, 10 * 100 * CLOCKS as u64);
    }
}

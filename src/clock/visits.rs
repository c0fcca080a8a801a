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
    use std::{prelude::rust_2024::*, vec::Vec};

    use bevy_app::App;
    use bevy_ecs::entity::Entity;
    use bevy_time::TimePlugin;

    use super::VISITED;
    use crate::{Clock, DuePlugin};

    const CLOCKS: usize = 1000;
    /// Ten visits to each built-in clock, and some to spare.
    const FEW: u64 = 50;

    fn app() -> (App, Vec<Entity>) {
        let mut app = App::new();
        app.add_plugins((TimePlugin, DuePlugin::default()));
        let clocks = (0..CLOCKS).map(|_| app.world_mut().spawn(Clock::new()).id());
        let clocks = clocks.collect();
        app.update();
        (app, clocks)
    }

    fn visited(operate: impl FnOnce()) -> u64 {
        VISITED.set(0);
        operate();
        VISITED.get()
    }

    #[test]
    #[ignore = "every run reads every clock, also those on which nothing waits"]
    fn an_idle_frame_visits_few_clocks() {
        let (mut app, _) = app();
        let visited = visited(|| app.update());
        assert!(visited <= FEW, "{visited} visits with {CLOCKS} clocks");
    }

    #[test]
    fn despawning_a_clock_visits_few_clocks() {
        let (mut app, clocks) = app();
        let visited = visited(|| _ = app.world_mut().despawn(clocks[CLOCKS / 2]));
        assert!(visited <= FEW, "{visited} visits with {CLOCKS} clocks");
    }
}

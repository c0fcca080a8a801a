//! A property test of the whole crate against an obviously correct model.
//!
//! Timers run on several clocks, in frames of any length. Their handlers arm, pause, move, cancel
//! and despawn each other, their owners and their clocks. For any script, the app must behave like
//! the model.

#[path = "../support/mod.rs"]
mod support;

mod clocks;
mod game;
mod model;
mod script;

use game::Game;
use model::Model;
use proptest::{prelude::*, test_runner::FileFailurePersistence};
use script::{LogEntry, Op, Script, Step, any_script, any_steps};

/// The maximum number of firings of one timer in one run.
const BURST_LIMIT: u32 = 4;

/// Spawns a slow clock, a fast clock, and a second slow clock that runs on the first.
const INITIAL_CLOCKS: [Op; 3] = [
    Op::SpawnClock {
        clock: 1,
        parent: 0,
        quarters: 2,
    },
    Op::SpawnClock {
        clock: 2,
        parent: 0,
        quarters: 8,
    },
    Op::SpawnClock {
        clock: 3,
        parent: 1,
        quarters: 1,
    },
];

fn check(script: Script, steps: Vec<Step>, by_action: bool) {
    let mut game = Game::new(script.clone(), by_action);
    let mut model = Model::new(script);
    let initial = INITIAL_CLOCKS.map(Step::Do);
    for step in initial.into_iter().chain(steps) {
        game.run_step(step);
        model.run_step(step);
        assert_eq!(
            game.timers(),
            model.timers(),
            "the armed timers should match"
        );
        assert_eq!(
            game.entities(),
            model.entities(),
            "the existing entities should match"
        );
        assert_eq!(
            game.fired(),
            fired(model.log()),
            "the firing messages should match"
        );
        if by_action {
            assert_eq!(game.log(), not_fired(model.log()));
        } else {
            assert_eq!(game.log(), model.log());
        }
        let stats = game.last_run();
        assert_eq!((stats.fired, stats.cancelled), model.last_run());
    }
}

fn fired(log: &[LogEntry]) -> Vec<LogEntry> {
    log.iter().copied().filter(LogEntry::is_fired).collect()
}

fn not_fired(log: &[LogEntry]) -> Vec<LogEntry> {
    let others = log.iter().copied().filter(|entry| !entry.is_fired());
    others.collect()
}

fn config() -> ProptestConfig {
    let failures = FileFailurePersistence::Direct("proptest-regressions/oracle.txt");
    ProptestConfig {
        failure_persistence: Some(Box::new(failures)),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn timers_with_observers_match_the_model(script in any_script(), steps in any_steps()) {
        check(script, steps, false);
    }

    /// Without observers, timers fire in batches.
    #[test]
    fn timers_with_actions_match_the_model(
        script in any_script(),
        steps in any_steps(),
    ) {
        check(script, steps, true);
    }
}

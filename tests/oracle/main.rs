//! The whole against a list that is searched: timers on several clocks, whose handlers arm, pause,
//! move, cancel and despawn each other, their owners and their clocks in frames of any length, fire
//! as the promises say, for any script.

#[path = "../support/mod.rs"]
mod support;

mod clocks;
mod game;
mod model;
mod script;

use game::Game;
use model::Model;
use proptest::{prelude::*, test_runner::FileFailurePersistence};
use script::{Happened, Op, Script, Step, any_script, any_steps};

/// The most firings of one timer in one run.
const BURST_LIMIT: u32 = 4;

/// A slow clock and a fast one, and a slow one on the slow one.
const BEGINNING: [Op; 3] = [
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
    let beginning = BEGINNING.map(Step::Do);
    for step in beginning.into_iter().chain(steps) {
        game.take(step);
        model.take(step);
        assert_eq!(game.timers(), model.timers(), "who has a timer, due when");
        assert_eq!(game.entities(), model.entities(), "whose entity is there");
        assert_eq!(game.fired(), fired(model.log()), "the messages");
        if by_action {
            assert_eq!(game.log(), not_fired(model.log()));
        } else {
            assert_eq!(game.log(), model.log());
        }
        let stats = game.last_run();
        assert_eq!((stats.fired, stats.cancelled), model.last_run());
    }
}

fn fired(log: &[Happened]) -> Vec<Happened> {
    log.iter().copied().filter(Happened::is_fired).collect()
}

fn not_fired(log: &[Happened]) -> Vec<Happened> {
    let others = log.iter().copied().filter(|happened| !happened.is_fired());
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
    fn timers_do_what_a_searched_list_does(script in any_script(), steps in any_steps()) {
        check(script, steps, false);
    }

    /// Where nobody observes, timers fire many at a time.
    #[test]
    fn timers_with_actions_do_what_a_searched_list_does(
        script in any_script(),
        steps in any_steps(),
    ) {
        check(script, steps, true);
    }
}

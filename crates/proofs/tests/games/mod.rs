//! The random game of `tests/it/interrupted.rs`, which goes on in a new app at some frame.

#[path = "../../../../tests/it/interrupted/game.rs"]
pub(crate) mod game;
#[path = "../../../../tests/it/interrupted/play.rs"]
mod play;
#[path = "../../../../tests/it/interrupted/script.rs"]
#[allow(dead_code, reason = "the games are interrupted in other ways")]
mod script;

use proptest::test_runner::{Config, TestRunner};

pub(crate) use game::Game;
use script::{Act, Script, any_script};

/// Checks that games without messages go on as the uninterrupted ones: 40 of them, or `GAMES`.
pub(crate) fn check(interrupt: impl Fn(&mut Game)) {
    let games = std::env::var("GAMES").ok();
    let config = Config {
        cases: games.map_or(40, |games| games.parse().expect("a number of games")),
        failure_persistence: None,
        ..Config::default()
    };
    let checked = TestRunner::new(config).run(&any_script(60, 0), |mut script| {
        simplify(&mut script);
        let [mut interrupted, mut uninterrupted] = [(); 2].map(|()| Game::new(&script));
        let at = script.seed as usize % script.frames.len();
        for (nth, frame) in script.frames.iter().enumerate() {
            if nth == at {
                interrupted.sweep();
                interrupt(&mut interrupted);
            }
            let (seen, expected) = (interrupted.play(frame), uninterrupted.play(frame));
            if let Some(difference) = seen.difference(&expected, false) {
                panic!("{difference}in frame {nth}, interrupted before frame {at}, of\n{script:?}");
            }
        }
        Ok(())
    });
    checked.unwrap_or_else(|error| panic!("{error}"));
}

/// Leaves out messages, which no scene holds.
fn simplify(script: &mut Script) {
    let is_left_out = |act: &Act| matches!(act, Act::Hear(..) | Act::Ask(..));
    for frame in &mut script.frames {
        frame.ops.retain(|(_, (_, act))| !is_left_out(act));
        for reaction in &mut frame.reactions {
            reaction.retain(|(_, act)| !is_left_out(act));
        }
    }
}

//! Comparing a game that is saved and loaded with an uninterrupted one.

use super::{
    game::{Frame, Game},
    script::Random,
};

/// The frames of each game.
const FRAMES: usize = 60;

/// Plays a game, and reloads it at some frame if there is one.
fn play(seed: u64, reload_at: Option<usize>, reload: impl Fn(Game) -> Game) -> Vec<Frame> {
    let mut game = Game::new(seed);
    let mut frames = Vec::new();
    for frame in 0..FRAMES {
        game.prepare(frame);
        if reload_at == Some(frame) {
            game = reload(game);
        }
        frames.push(game.play(frame));
    }
    frames
}

/// Checks that a game goes on in the same way after a reload.
pub(crate) fn check(seed: u64, reload: impl Fn(Game) -> Game) {
    let reload_at = Random::new(seed).below(FRAMES as u64 - 20) as usize;
    let uninterrupted = play(seed, None, &reload);
    let reloaded = play(seed, Some(reload_at), &reload);
    for (nth, (expected, frame)) in uninterrupted.iter().zip(&reloaded).enumerate() {
        let difference = frame.difference(expected);
        assert_eq!(
            difference, None,
            "frame {nth} of game {seed}, saved at frame {reload_at}"
        );
    }
}

/// Returns the games to play: `GAMES` of them from `FIRST_GAME` on, if these variables are set.
pub(crate) fn games() -> core::ops::Range<u64> {
    let number = |name| {
        let number = std::env::var(name).ok();
        number.map(|number| number.parse::<u64>().expect("a number of games"))
    };
    let from = number("FIRST_GAME").unwrap_or(0);
    from..from + number("GAMES").unwrap_or(40)
}

//! The entities that have not changed since a snapshot continue from the data stored then.

mod game;
pub(crate) mod random;
mod rules;
mod store;
use game::Game;
use random::Random;
use store::Store;

/// The frames of each game.
const FRAMES: u64 = 40;

fn games() -> core::ops::Range<u64> {
    let number = |name| {
        let number = std::env::var(name).ok();
        number.map(|number| number.parse::<u64>().expect("a number of games"))
    };
    let from = number("FIRST_GAME").unwrap_or(0);
    from..from + number("GAMES").unwrap_or(1)
}

/// Plays a game, and stores after each frame, or after some, what has changed since.
fn play(seed: u64, stride: u64) {
    let mut game = Game::new(seed);
    let mut store = Store::new(&mut game);
    let random = &mut Random::new(!seed);
    for frame in 0..FRAMES {
        game.play(frame);
        if random.one_in(3) {
            // Another snapshot that comes and goes.
            let other = game.snapshot();
            game.play(frame + FRAMES);
            drop(other);
        }
        if frame % stride == 0 {
            store.update(&mut game, &format!("frame {frame} of game {seed}"));
        }
    }
}

#[test]
fn a_store_of_what_has_changed_in_each_frame_is_complete() {
    for seed in games() {
        play(seed, 1);
    }
}

#[test]
fn a_store_of_what_has_changed_in_several_frames_is_complete() {
    for seed in games() {
        play(seed + 1000, 2 + seed % 4);
    }
}

#[test]
fn a_frame_in_which_no_time_passes_changes_nothing() {
    for seed in games() {
        let mut game = Game::new(seed);
        for frame in 0..FRAMES {
            game.play(frame);
            // What came last is armed, and what finished last is gone.
            game.rest();
            game.rest();
            let snapshot = game.snapshot();
            game.rest();
            let changed = game.changed_since(&snapshot);
            assert_eq!(changed, [], "frame {frame} of game {seed}");
        }
    }
}

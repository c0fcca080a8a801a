//! Saved and loaded worlds fire exactly as uninterrupted ones.

#![cfg(feature = "serialize")]

mod game;
mod script;

use bevy_due::save::SavedTimers;

use game::{Frame, Game};
use script::Random;

/// The frames of each game.
const FRAMES: usize = 60;

/// Plays a game, and saves and loads it at some frame if there is one.
fn play(
    seed: u64,
    save_at: Option<usize>,
    load: impl Fn(SavedTimers) -> SavedTimers,
) -> Vec<Frame> {
    let mut game = Game::new(seed);
    let mut frames = Vec::new();
    for frame in 0..FRAMES {
        game.prepare(frame);
        if save_at == Some(frame) {
            game = game.save_and_load(&load);
        }
        frames.push(game.play(frame));
    }
    frames
}

fn check(seed: u64, load: impl Fn(SavedTimers) -> SavedTimers) {
    let save_at = Random::new(seed).below(FRAMES as u64 - 20) as usize;
    let uninterrupted = play(seed, None, &load);
    let saved = play(seed, Some(save_at), &load);
    for (nth, (expected, frame)) in uninterrupted.iter().zip(&saved).enumerate() {
        let difference = frame.difference(expected);
        assert_eq!(
            difference, None,
            "frame {nth} of game {seed}, saved at frame {save_at}"
        );
    }
}

fn games() -> core::ops::Range<u64> {
    let number = |name| {
        let number = std::env::var(name).ok();
        number.map(|number| number.parse::<u64>().expect("a number of games"))
    };
    let from = number("FIRST_GAME").unwrap_or(0);
    from..from + number("GAMES").unwrap_or(40)
}

#[test]
fn a_loaded_world_fires_as_the_uninterrupted_one() {
    for seed in games() {
        check(seed, |saved| saved);
    }
}

#[test]
fn a_world_loaded_from_ron_fires_as_the_uninterrupted_one() {
    for seed in games() {
        check(seed, |saved| {
            let text = ron::to_string(&saved).expect("the timers should be saved");
            ron::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
        });
    }
}

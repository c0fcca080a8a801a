//! Games that roll back fire exactly as games that never did.

mod crowd;
mod mail;
mod rewind;
mod rules;

use std::collections::VecDeque;

use bevy_ecs::entity::EntityHashMap;

use crate::saving::{
    game::{Frame, Game},
    script::Random,
};
use rewind::Checkpoint;

/// The frames of each game.
const FRAMES: usize = 60;
/// The longest prediction.
const AHEAD: u64 = 8;

/// The seeds of the games.
fn games() -> core::ops::Range<u64> {
    let number = |name| {
        let number = std::env::var(name).ok();
        number.map(|number| number.parse::<u64>().expect("a number of games"))
    };
    let from = number("FIRST_GAME").unwrap_or(0);
    from..from + number("GAMES").unwrap_or(8)
}

fn play(game: &mut Game, frame: usize) -> Frame {
    game.prepare(frame);
    game.play(frame)
}

fn uninterrupted(seed: u64) -> Vec<Frame> {
    let mut game = Game::new(seed);
    (0..FRAMES).map(|frame| play(&mut game, frame)).collect()
}

#[track_caller]
fn assert_same(frame: &Frame, expected: &Frame, seed: u64, nth: usize) {
    let difference = frame.difference(expected);
    assert_eq!(difference, None, "frame {nth} of game {seed}");
}

#[test]
fn a_replay_of_the_same_inputs_fires_as_the_prediction() {
    for seed in games() {
        let expected = uninterrupted(seed);
        let random = &mut Random::new(seed);
        let mut game = Game::new(seed);
        let mut names = EntityHashMap::default();
        let mut frame = 0;
        while frame < FRAMES {
            let checkpoint = Checkpoint::of(&mut game);
            let end = FRAMES.min(frame + random.below(AHEAD + 1) as usize);
            for (nth, expected) in expected.iter().enumerate().take(end).skip(frame) {
                assert_same(&play(&mut game, nth), expected, seed, nth);
            }
            checkpoint.restore(&mut game, &mut names);
            assert_same(&play(&mut game, frame), &expected[frame], seed, frame);
            frame += 1;
        }
    }
}

#[test]
fn a_wrong_prediction_leaves_no_trace() {
    for seed in games() {
        let expected = uninterrupted(seed);
        let random = &mut Random::new(seed);
        let mut game = Game::new(seed);
        let mut names = EntityHashMap::default();
        for (frame, expected) in expected.iter().enumerate() {
            let checkpoint = Checkpoint::of(&mut game);
            // Other changes and other lengths of frames.
            game.seed = random.next();
            for nth in 0..random.below(AHEAD + 1) as usize {
                play(&mut game, frame + nth);
            }
            checkpoint.restore(&mut game, &mut names);
            assert_same(&play(&mut game, frame), expected, seed, frame);
        }
    }
}

#[test]
fn the_last_eight_frames_can_be_restored_in_any_order() {
    for seed in games() {
        let expected = uninterrupted(seed);
        let random = &mut Random::new(seed);
        let mut game = Game::new(seed);
        let mut names = EntityHashMap::default();
        let mut checkpoints = VecDeque::new();
        let mut frame = 0;
        for _ in 0..2 * FRAMES {
            if frame == FRAMES {
                break;
            }
            checkpoints.retain(|&(nth, _)| nth != frame);
            checkpoints.push_back((frame, Checkpoint::of(&mut game)));
            if checkpoints.len() > AHEAD as usize {
                checkpoints.pop_front();
            }
            if random.one_in(3) {
                let nth = random.below(checkpoints.len() as u64) as usize;
                let (back_to, checkpoint) = &checkpoints[nth];
                checkpoint.restore(&mut game, &mut names);
                if random.one_in(2) {
                    checkpoint.restore(&mut game, &mut names);
                }
                frame = *back_to;
            }
            assert_same(&play(&mut game, frame), &expected[frame], seed, frame);
            frame += 1;
        }
    }
}

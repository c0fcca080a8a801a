//! An oracle of the whole crate: a model that is slow and obviously right plays the same operations
//! as a real app, and both must show the same after each of them.

#![cfg(feature = "serialize")]

#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "it needs only some of these helpers")]
mod support;

mod any;
mod entry;
#[rustfmt::skip]
mod found;
mod game;
mod model;
mod op;
mod print;
mod progress;
mod rules;
mod search;

use game::Game;
use model::Model;
use op::Op;
use rules::Rules;
use search::{Figures, search};

/// Plays a script on both sides, and compares what they show after each operation.
#[track_caller]
fn check(rules: Rules, ops: &[Op]) {
    if let Err(difference) = play(rules, ops) {
        panic!("{difference}");
    }
}

fn play(rules: Rules, ops: &[Op]) -> Result<Figures, String> {
    let mut figures = Figures::default();
    let (mut game, mut model) = (Game::new(rules), Model::new(rules));
    for op in ops {
        game.play(op);
        model.play(op);
        let (unsettled, mut expected) = model.view();
        let mut shown = game.view(&unsettled);
        expected.sort();
        shown.sort();
        figures.count_op(op);
        figures.count_view(&expected);
        search::compare(&shown, &expected, op)?;
    }
    figures.scripts = 1;
    Ok(figures)
}

#[test]
fn short_times_are_played_like_the_model() {
    search("short_times", rules::TINY);
}

#[test]
fn timers_without_observers_are_played_like_the_model() {
    search("without_observers", rules::BATCHES);
}

#[test]
fn times_of_a_game_are_played_like_the_model() {
    search("times_of_a_game", rules::REAL);
}

#[test]
fn the_end_of_time_is_played_like_the_model() {
    search("the_end_of_time", rules::LAST);
}

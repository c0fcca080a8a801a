//! Saved and loaded worlds fire exactly as uninterrupted ones.

mod check;
mod errors;
pub(crate) mod game;
mod mail;
mod order;
pub(crate) mod script;

use check::{check, games};

#[test]
fn a_loaded_world_fires_as_the_uninterrupted_one() {
    for seed in games() {
        check(seed, |game| game.save_and_load(|saved| saved));
    }
}

#[test]
fn games_that_once_went_wrong_go_on_as_the_uninterrupted_ones() {
    // A timer with jitter lost its clock, and drew a second random number.
    check(2535, |game| game.save_and_load(|saved| saved));
    // A clock below the fixed clock was saved between a jump of its parent and the next fixed step.
    check(4648, |game| game.save_and_load(|saved| saved));
}

#[test]
fn a_world_loaded_from_ron_fires_as_the_uninterrupted_one() {
    for seed in games() {
        check(seed, |game| {
            game.save_and_load(|saved| {
                let text = ron::to_string(&saved).expect("the timers should be saved");
                ron::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
            })
        });
    }
}

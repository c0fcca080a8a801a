//! One script, played on both sides.

use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use crate::{
    any::any_steps,
    game::Game,
    model::Model,
    op::Op,
    print,
    rules::{self, Rules},
    search::{Figures, compare},
};

/// The longest script of the fuzzer, so that no input takes long.
const MAX_STEPS: usize = 200;

/// Plays a script on both sides, and compares what they show after each operation.
#[track_caller]
pub(crate) fn check(rules: Rules, ops: &[Op]) {
    if let Err(difference) = play(rules, ops) {
        panic!("{difference}");
    }
}

pub(crate) fn play(rules: Rules, ops: &[Op]) -> Result<Figures, String> {
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
        compare(&shown, &expected, op)?;
    }
    figures.scripts = 1;
    Ok(figures)
}

/// Plays the script that these bytes choose. The first byte chooses the rules and the kind of script, and
/// each two more are the seed of a step.
///
/// # Panics
///
/// Panics if both sides differ, with the script as a test to paste.
pub(crate) fn play_bytes(bytes: &[u8]) {
    let Some((&first, seeds)) = bytes.split_first() else {
        return;
    };
    let (rules, steps) = (rules::ALL, any_steps());
    let kind = usize::from(first);
    let rules = rules[kind % rules.len()];
    let steps = &steps[kind / rules::ALL.len() % steps.len()];
    let step = |bytes: &[u8]| {
        let mut seed = [0; 32];
        seed[..bytes.len()].copy_from_slice(bytes);
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        Some(steps.new_tree(&mut runner).ok()?.current())
    };
    let ops: Vec<Op> = seeds.chunks(2).take(MAX_STEPS).filter_map(step).collect();
    if let Err(difference) = play(rules, &ops) {
        let test = print::test("found_by_fuzzing", rules, &ops);
        panic!("{difference}\n\nTo see it again:\n\n{test}");
    }
}

//! The random script of a game with messages: its operations, and the reactions of its callbacks.

use proptest::{
    collection::vec,
    option::{self, weighted},
    prelude::*,
};

/// The number of entities that send and receive.
pub(crate) const PEOPLE: usize = 5;

/// The number of custom clocks for time-outs.
pub(crate) const CLOCKS: usize = 3;

const MAX_FRAMES: usize = 30;

/// An operation of the person, or on the clock, with this index.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Ask(usize, Question),
    /// Sends this many words to the person.
    SendWords(usize, usize),
    ReplaceComponent(usize),
    Disable(usize),
    Enable(usize),
    CancelTimers(usize),
    /// Despawns a clock and spawns another one in its place.
    ReplaceClock(usize),
}

#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// The person to ask, or `None` for the next one in turn.
    pub(crate) to: Option<usize>,
    pub(crate) time_out_millis: u64,
    /// The custom clock of the time-out, or `None` for the clock of the game.
    pub(crate) clock: Option<usize>,
}

/// The behaviour of a callback in one of its calls.
#[derive(Clone, Debug)]
pub(crate) struct Reaction {
    /// The number of replies to a question.
    pub(crate) replies: usize,
    pub(crate) op: Option<Op>,
    pub(crate) panic: Option<PanicAt>,
}

impl Default for Reaction {
    /// Replies to a question, and does nothing else.
    fn default() -> Self {
        Self {
            replies: 1,
            op: None,
            panic: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PanicAt {
    StartOfCallback,
    EndOfCallback,
    /// In a command that the callback queues after its operation.
    Command,
}

#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// Played before the frame runs.
    pub(crate) ops: Vec<Op>,
    /// Used by one call of a callback each. The calls after the last one do the default.
    pub(crate) reactions: Vec<Reaction>,
    pub(crate) millis: u64,
}

fn any_question() -> impl Strategy<Value = Question> {
    let to = weighted(0.75, 0..PEOPLE);
    let clock = weighted(0.33, 0..CLOCKS);
    (to, 0..60_u64, clock).prop_map(|(to, time_out_millis, clock)| Question {
        to,
        time_out_millis,
        clock,
    })
}

fn any_op() -> impl Strategy<Value = Op> {
    let person = 0..PEOPLE;
    prop_oneof![
        3 => (person.clone(), any_question()).prop_map(|(asker, question)| Op::Ask(asker, question)),
        2 => (person.clone(), 1..4_usize).prop_map(|(to, words)| Op::SendWords(to, words)),
        1 => person.clone().prop_map(Op::ReplaceComponent),
        1 => person.clone().prop_map(Op::Disable),
        1 => person.clone().prop_map(Op::Enable),
        1 => person.prop_map(Op::CancelTimers),
        1 => (0..CLOCKS).prop_map(Op::ReplaceClock),
    ]
}

fn any_reaction() -> impl Strategy<Value = Reaction> {
    let replies = prop_oneof![2 => Just(1), 2 => Just(0), 1 => Just(2)];
    let panic = prop::sample::select(vec![
        PanicAt::StartOfCallback,
        PanicAt::EndOfCallback,
        PanicAt::Command,
    ]);
    (
        replies,
        option::weighted(0.75, any_op()),
        weighted(0.2, panic),
    )
        .prop_map(|(replies, op, panic)| Reaction { replies, op, panic })
}

fn any_frame() -> impl Strategy<Value = Frame> {
    (vec(any_op(), 0..8), vec(any_reaction(), 0..30), 0..30_u64).prop_map(
        |(ops, reactions, millis)| Frame {
            ops,
            reactions,
            millis,
        },
    )
}

pub(crate) fn any_frames() -> impl Strategy<Value = Vec<Frame>> {
    vec(any_frame(), 1..MAX_FRAMES)
}

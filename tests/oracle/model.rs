//! A model of the crate that is slow and obviously right: lists that are searched from end to end.

mod apply;
mod arming;
mod cancelling;
mod changing;
mod clock;
mod clocks;
mod entities;
mod exact;
mod firing;
mod forward;
mod frame;
mod ids;
mod loading;
mod mail;
mod messages;
mod moving;
mod pauses;
mod random;
mod reload;
mod requests;
mod revive;
mod rollback;
mod setting;
mod timers;
mod updates;
mod view;
mod written;

use std::collections::VecDeque;

use crate::{
    entry::{Entry, Id},
    op::{Op, SLOTS},
    rules::Rules,
};
use clocks::Clocks;
use entities::Entity;
use exact::Course;
use mail::Mail;
use rollback::Rollback;
use timers::{Done, Timer};
use updates::Updates;

#[derive(Clone)]
pub(crate) struct Model {
    rules: Rules,
    /// Every entity ever spawned.
    entities: Vec<Entity>,
    /// The last entity in each slot.
    slots: [Option<Id>; SLOTS],
    clocks: Clocks,
    /// The entities with modifiers but no clock, until the next reading.
    modified: Vec<Id>,
    /// The last timer that took each key of each owner.
    keys: Vec<((Id, usize), Id)>,
    /// The timers and lifetimes that are pending, armed or paused, in the order of insertion.
    timers: Vec<Timer>,
    /// The number of timers ever inserted or moved.
    inserted: u64,
    /// The number of times that a timer took a place in the order of equal deadlines.
    sequence: u64,
    /// The number of random numbers drawn.
    draws: u64,
    /// The entities whose timers have finished, by cadence. The last ones end in any run.
    ended: [Vec<(Id, Done)>; 3],
    /// The runs so far. A burst ends with its run.
    runs: u64,
    /// The length of the chain of timers, each armed by the handler of the one before, that fires.
    chain: u32,
    /// The way of the clocks through a frame that is played exactly.
    course: Option<Course>,
    updates: Updates,
    mail: Mail,
    /// The condition of the clocks that are marked, and whether game time is paused from the next
    /// frame on.
    condition: bool,
    is_game_paused: bool,
    /// The time since the last fixed step.
    overstep: u64,
    reactions: VecDeque<Vec<Op>>,
    log: Vec<Entry>,
    /// The firings that were written, and the cancellations before and after they were written.
    fired: Vec<Entry>,
    unwritten: Vec<Entry>,
    cancelled: Vec<Entry>,
    stats: [[u64; 3]; 2],
    rollback: Rollback,
}

/// The panic of a handler, which ends its run.
#[derive(Debug)]
struct Panicked;

/// What ends early when a handler panics.
type Flow = Result<(), Panicked>;

/// How a handler plays its reaction.
#[derive(Clone, Copy, PartialEq)]
enum Handler {
    /// In a command. Bevy catches its panic.
    Command,
    /// With exclusive access to the world.
    Exclusive,
}

impl Model {
    pub(crate) fn new(rules: Rules) -> Self {
        let mut model = Self {
            rules,
            entities: Vec::new(),
            slots: [None; SLOTS],
            clocks: Clocks::new(),
            modified: Vec::new(),
            keys: Vec::new(),
            timers: Vec::new(),
            inserted: 0,
            sequence: 0,
            draws: 0,
            ended: Default::default(),
            runs: 0,
            chain: 0,
            course: None,
            updates: Updates::default(),
            mail: Mail::default(),
            condition: true,
            is_game_paused: false,
            overstep: 0,
            reactions: VecDeque::new(),
            log: Vec::new(),
            fired: Vec::new(),
            unwritten: Vec::new(),
            cancelled: Vec::new(),
            stats: Default::default(),
            rollback: Rollback::default(),
        };
        model.frame(0);
        for clock in &mut model.clocks.all {
            clock.advance(rules.ahead);
        }
        model
    }

    /// Plays an operation between frames.
    pub(crate) fn play(&mut self, op: &Op) {
        match op {
            Op::Frame(by, then) => {
                self.reactions = then.0.iter().cloned().collect();
                self.frame(self.rules.nanos(*by));
            }
            Op::Reload(by, then) => {
                self.reload();
                self.reactions = then.0.iter().cloned().collect();
                self.frame(self.rules.nanos(*by));
            }
            Op::Revive(slot, by, then) => {
                self.revive(*slot);
                self.reactions = then.0.iter().cloned().collect();
                self.frame(self.rules.nanos(*by));
            }
            Op::Move(slot, on_the_way, by, then) => {
                self.move_away_and_back(*slot, self.rules.nanos(*on_the_way));
                self.reactions = then.0.iter().cloned().collect();
                self.frame(self.rules.nanos(*by));
            }
            Op::Forward(at, span, then) => {
                self.frame(0);
                self.reactions = then.0.iter().cloned().collect();
                let stats = self.fast_forward(*at, self.rules.nanos(*span));
                self.log.push(Entry::Forwarded(stats.ok().flatten()));
            }
            Op::ForwardToNext(at, then) => {
                self.frame(0);
                self.reactions = then.0.iter().cloned().collect();
                let by = self.fast_forward_to_next(*at);
                self.log.push(Entry::ForwardedBy(by.ok().flatten()));
            }
            Op::Snapshot => self.snapshot(),
            Op::Restore(nth) => self.restore(*nth),
            op => self.apply(op),
        }
        self.reactions.clear();
    }

    /// Returns `true` if the next handler itself panics.
    fn is_panic_next(&self) -> bool {
        let ops = self.reactions.front();
        ops.is_some_and(|ops| ops.first() == Some(&Op::Panic))
    }

    /// A handler plays its reaction up to the panic in it, if any.
    fn react(&mut self, handler: Handler) -> Flow {
        let ops = self.reactions.pop_front().unwrap_or_default();
        for (nth, op) in ops.iter().enumerate() {
            if *op != Op::Panic {
                self.apply(op);
            } else if nth == 0 || handler == Handler::Exclusive {
                return Err(Panicked);
            } else {
                return Ok(());
            }
        }
        Ok(())
    }
}

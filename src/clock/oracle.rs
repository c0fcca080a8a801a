//! The table against a model that reads every clock in every run.

mod model;

use std::{prelude::rust_2024::*, vec, vec::Vec};

use bevy_ecs::prelude::*;
use proptest::{collection, prelude::*, sample::select};

use super::{
    ClockId,
    load::Saved,
    row::{Brakes, Cadence, ClockKey, Source},
    speed::Speed,
    state::ClockState,
    table::{BUILT_IN, Start, Table},
};
use model::{Clock, From, Model, Times};

const CLOCKS: usize = 6;
/// The built-in clocks come first.
const ALL: usize = BUILT_IN.len() + CLOCKS;

#[derive(Clone, Debug)]
enum Op {
    Spawn(usize, usize, f64),
    Remove(usize),
    SetParent(usize, usize),
    SetSpeed(usize, f64),
    Pause(usize, bool),
    Hold(usize, bool),
    SetFactor(usize, f64),
    Advance(usize, u64),
    FastForward(usize, u64),
    Plan(usize, u64),
    /// Sets the elapsed real, virtual or fixed time.
    SetTime(usize, u64),
    Run(Cadence),
}

struct Game {
    world: World,
    entities: Vec<Option<Entity>>,
    table: Table,
    model: Model,
    /// Whether a clock was advanced since the last run of each cadence.
    is_advanced: [bool; 2],
}

impl Game {
    fn new() -> Self {
        let table = Table::new(&Times::default());
        let mut clocks = vec![None; ALL];
        for (at, (id, source)) in BUILT_IN.into_iter().enumerate() {
            let state = ClockState::new(id);
            clocks[at] = Some(Clock {
                key: at as ClockKey,
                source: From::Time(source),
                cadence: match id {
                    ClockId::Fixed => Cadence::FixedStep,
                    _ => Cadence::Frame,
                },
                state,
                brakes: Brakes::default(),
                seen: 0,
                read: (state.now, false),
                ticks: (state.now, state.now),
                deadline: None,
            });
        }
        let times = Times::default();
        Self {
            world: World::new(),
            entities: vec![None; ALL],
            table,
            model: Model { clocks, times },
            is_advanced: [false; 2],
        }
    }

    fn id(&self, at: usize) -> ClockId {
        match self.entities[at] {
            Some(entity) => entity.into(),
            None => BUILT_IN[at].0,
        }
    }

    fn play(&mut self, op: Op) {
        match op {
            Op::Spawn(at, parent, speed) => self.spawn(at, parent, speed),
            Op::Remove(at) => self.remove(at),
            Op::SetParent(at, parent) => self.set_parent(at, parent),
            Op::SetSpeed(at, ratio) => self.change(at, |state, _| state.speed = speed(ratio)),
            Op::Pause(at, paused) => self.change(at, |state, _| state.paused = paused),
            Op::Hold(at, held) => self.change(at, |_, brakes| brakes.holds = held.into()),
            Op::SetFactor(at, factor) => self.change(at, |_, brakes| brakes.factor = factor),
            Op::Advance(at, by) => {
                self.is_advanced = [true; 2];
                self.change(at, |state, _| state.advance(by));
            }
            Op::FastForward(at, by) => self.fast_forward(at, by),
            Op::Plan(at, after) => self.plan(at, after),
            Op::SetTime(time, to) => self.model.times.0[time] = to,
            Op::Run(cadence) => self.run(cadence),
        }
    }

    fn spawn(&mut self, at: usize, parent: usize, ratio: f64) {
        let Some(cadence) = self.model.clock(parent).map(|clock| clock.cadence) else {
            return;
        };
        if self.model.clock(at).is_some() {
            return;
        }
        let entity = self.world.spawn_empty().id();
        let mut state = ClockState::new(self.id(parent));
        state.speed = speed(ratio);
        let (parent_key, row) = self.table.find(state.parent).expect("the parent exists");
        let (source, root) = (Source::Clock(parent_key, row.age), row.root);
        let times = self.model.times;
        let seen = self
            .table
            .live(parent_key, &times)
            .expect("the parent exists")
            .now;
        let start = Start {
            source,
            root,
            seen,
            moment: self.table.moment(parent_key, &times),
            run: self
                .table
                .run_reading(parent_key)
                .expect("the parent exists"),
        };
        let (key, _) = self.table.add(
            Some(entity),
            (state, Saved::default()),
            Brakes::default(),
            start,
        );
        self.entities[at] = Some(entity);
        self.model.clocks[at] = Some(Clock {
            key,
            source: From::Clock(parent),
            cadence,
            state,
            brakes: Brakes::default(),
            seen: self.model.live(parent),
            read: (state.now, state.speed.is_zero()),
            ticks: (state.now, state.now),
            deadline: None,
        });
    }

    fn remove(&mut self, at: usize) {
        let Some(entity) = self.entities[at].take() else {
            return;
        };
        self.table.remove(entity);
        self.model.clocks[at] = None;
        for clock in self.model.clocks.iter_mut().flatten() {
            if clock.source == From::Clock(at) {
                clock.source = From::Nothing;
            }
        }
    }

    fn set_parent(&mut self, at: usize, parent: usize) {
        let (Some(clock), Some(driver)) = (self.model.clock(at), self.model.clock(parent)) else {
            return;
        };
        let (key, source, seen) = (clock.key, clock.source, driver.read.0);
        let (before, cadence) = (clock.cadence, driver.cadence);
        let result = self.table.set_parent(key, self.id(parent));
        assert_eq!(
            result.is_err(),
            self.model.runs_on(parent, at),
            "{result:?}"
        );
        if result.is_err() || source == From::Clock(parent) {
            return;
        }
        let descendants = (0..ALL).filter(|&clock| self.model.runs_on(clock, at));
        let descendants: Vec<usize> = descendants.collect();
        for clock in descendants.into_iter().filter(|_| before != cadence) {
            if let Some(clock) = &mut self.model.clocks[clock] {
                clock.cadence = cadence;
                clock.ticks = (clock.state.now, clock.state.now);
            }
        }
        if let Some(clock) = &mut self.model.clocks[at] {
            (clock.source, clock.seen) = (From::Clock(parent), seen);
        }
    }

    fn change(&mut self, at: usize, change: impl Fn(&mut ClockState, &mut Brakes)) {
        if let Some(clock) = &mut self.model.clocks[at] {
            change(&mut clock.state, &mut clock.brakes);
            let key = clock.key;
            self.table
                .change(key, |row| change(&mut row.state, &mut row.brakes));
        }
    }

    fn fast_forward(&mut self, at: usize, by: u64) {
        // Otherwise it would matter whether a step also reads the other clocks again.
        if self.is_advanced != [false; 2] {
            return;
        }
        let is_read = |clock: &Clock| match clock.source {
            From::Time(source) => self
                .model
                .elapsed(source)
                .is_none_or(|now| now == clock.seen),
            _ => true,
        };
        // A clock that was spawned between two runs, and whose driver then moved to another schedule, has
        // seen a time of its driver that never comes. The table corrects that here, and the model in the
        // next run.
        let is_astray = |clock: &Clock| match clock.source {
            From::Clock(parent) => {
                let driver = self.model.clock(parent);
                driver.is_some_and(|driver| clock.seen != driver.state.now)
            }
            _ => false,
        };
        let mut clocks = self.model.clocks.iter().flatten();
        if clocks.clone().any(is_astray) || !clocks.all(is_read) {
            return;
        }
        if let Some(clock) = &mut self.model.clocks[at] {
            clock.state.advance(by);
            let key = clock.key;
            self.table.fast_forward(key, by);
            let cadence = clock.cadence;
            self.model.read(cadence, Some(at));
        }
    }

    fn plan(&mut self, at: usize, after: u64) {
        let now = match self.model.clock(at) {
            Some(_) => self.model.live(at),
            None => return,
        };
        if let Some(clock) = &mut self.model.clocks[at] {
            clock.deadline = Some(now.saturating_add(after));
            self.table.set_deadline(clock.key, clock.deadline);
        }
    }

    fn run(&mut self, cadence: Cadence) {
        let times = self.model.times;
        self.is_advanced[cadence as usize] = false;
        self.table.begin_run(cadence, &times);
        self.model.read(cadence, None);
        let mut found = Vec::new();
        self.table.find_due(Table::built_in(cadence), &mut found);
        let found: Vec<ClockKey> = found.into_iter().map(|(_, key)| key).collect();
        for at in 0..ALL {
            if !self.model.is_of(at, cadence) || self.model.root(at).is_none() {
                continue;
            }
            let Some(clock) = &mut self.model.clocks[at] else {
                continue;
            };
            let is_due = clock.deadline.is_some_and(|time| time <= clock.read.0) && !clock.read.1;
            if at >= BUILT_IN.len() {
                assert_eq!(
                    found.contains(&clock.key),
                    is_due,
                    "clock {at} in {found:?}"
                );
            }
            if is_due {
                clock.deadline = None;
                self.table.set_deadline(clock.key, None);
            }
            let ticks = self.table.ticks(clock.key).expect("the clock exists");
            assert_eq!(
                (ticks.last, ticks.previous),
                clock.ticks,
                "ticks of clock {at}"
            );
        }
    }

    fn check(&mut self) {
        for at in 0..ALL {
            let Some(clock) = self.model.clock(at) else {
                continue;
            };
            let (key, state) = (clock.key, clock.state);
            let current = self.table.current(key).expect("the clock exists");
            assert_eq!(
                (current.now, current.carry),
                (state.now, state.carry),
                "the time of clock {at}"
            );
            let times = self.model.times;
            let live = self.table.live(key, &times).expect("the clock exists");
            assert_eq!(live.now, self.model.live(at), "the live time of clock {at}");
        }
    }
}

fn speed(ratio: f64) -> Speed {
    Speed::try_from(ratio).expect("a good speed")
}

fn any_op() -> impl Strategy<Value = Op> {
    let own = || BUILT_IN.len()..ALL;
    let every = || 0..ALL;
    let ratio = || select(vec![0.0, 0.25, 1.0 / 3.0, 1.0, 1.5, 7.0]);
    let cadence = select(vec![Cadence::Frame, Cadence::Frame, Cadence::FixedStep]);
    prop_oneof![
        6 => (own(), every(), ratio()).prop_map(|(at, parent, ratio)| Op::Spawn(at, parent, ratio)),
        1 => own().prop_map(Op::Remove),
        4 => (own(), every()).prop_map(|(at, parent)| Op::SetParent(at, parent)),
        3 => (every(), ratio()).prop_map(|(at, ratio)| Op::SetSpeed(at, ratio)),
        2 => (every(), any::<bool>()).prop_map(|(at, paused)| Op::Pause(at, paused)),
        2 => (own(), any::<bool>()).prop_map(|(at, held)| Op::Hold(at, held)),
        2 => (own(), ratio()).prop_map(|(at, factor)| Op::SetFactor(at, factor)),
        2 => (every(), 0..200_u64).prop_map(|(at, by)| Op::Advance(at, by)),
        2 => (every(), 0..200_u64).prop_map(|(at, by)| Op::FastForward(at, by)),
        6 => (own(), 0..300_u64).prop_map(|(at, after)| Op::Plan(at, after)),
        8 => (0..3_usize, 0..1000_u64).prop_map(|(time, to)| Op::SetTime(time, to)),
        8 => cadence.prop_map(Op::Run),
    ]
}

proptest! {
    #[test]
    fn clocks_show_the_same_time_as_if_they_were_read_in_every_run(
        ops in collection::vec(any_op(), 0..120),
    ) {
        let mut game = Game::new();
        for op in ops {
            game.play(op);
            game.check();
        }
    }
}

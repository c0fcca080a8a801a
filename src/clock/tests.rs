//! The table against a model that reads every clock at every reading.

use std::{prelude::rust_2024::*, vec, vec::Vec};

use bevy_ecs::prelude::*;
use proptest::{collection, prelude::*, sample::select};

use super::{
    Cadence, ClockId, ClockTable, Parent, Scope,
    row::{BUILT_IN, Brakes, ClockKey},
    time::Speed,
};

const CLOCKS: usize = 6;
/// The built-in clocks come first.
const ALL: usize = BUILT_IN.len() + CLOCKS;
const FRAMES: usize = 2;
const FIXED: usize = 3;

#[derive(Clone, Debug)]
enum Op {
    Spawn(usize, usize, f64),
    Remove(usize),
    SetParent(usize, usize),
    Set(usize, f64, bool),
    SetFactor(usize, f64),
    Advance(usize, u64),
    FastForward(usize, u64),
    Plan(usize, u64),
    Read(Cadence, u64),
}

/// A clock of the model.
#[derive(Clone, Debug)]
struct Clock {
    parent: Option<usize>,
    /// The built-in clock that drives it, or the last one that did.
    root: usize,
    speed: f64,
    factor: f64,
    is_paused: bool,
    now: u64,
    carry: u64,
    deadline: Option<u64>,
}

struct Game {
    world: World,
    entities: Vec<Option<Entity>>,
    table: ClockTable,
    model: Vec<Option<Clock>>,
    times: [u64; BUILT_IN.len()],
}

impl Clock {
    fn follow(&mut self, nanos: u64) {
        let speed = Speed::try_from(self.speed).expect("it is valid");
        if !self.is_paused {
            let (by, carry) = speed.times(self.factor).scale(nanos, self.carry);
            (self.now, self.carry) = (self.now + by, carry);
        }
    }

    fn is_stopped(&self) -> bool {
        self.is_paused || self.speed * self.factor == 0.0
    }
}

impl Game {
    fn new() -> Self {
        let table = ClockTable::new(false, |_| 0);
        let mut model = vec![None; ALL];
        for (nth, clock) in model.iter_mut().enumerate().take(BUILT_IN.len()) {
            *clock = Some(Clock {
                parent: None,
                root: nth,
                speed: 1.0,
                factor: 1.0,
                is_paused: false,
                now: table.reading(nth as ClockKey).expect("built in").now,
                carry: 0,
                deadline: None,
            });
        }
        Self {
            world: World::new(),
            entities: vec![None; ALL],
            table,
            model,
            times: [0; BUILT_IN.len()],
        }
    }

    fn id(&self, nth: usize) -> ClockId {
        let own = self.entities[nth].unwrap_or(Entity::PLACEHOLDER);
        BUILT_IN.get(nth).copied().unwrap_or(own.into())
    }

    fn key(&self, nth: usize) -> Option<ClockKey> {
        Some(self.table.find(self.id(nth)).ok()?.key)
    }

    fn runs_on(&self, nth: usize, root: usize) -> bool {
        let parent = || self.model[nth].as_ref()?.parent;
        nth == root || parent().is_some_and(|parent| self.runs_on(parent, root))
    }

    fn advance(&mut self, nth: usize, nanos: u64) {
        let before = self.model[nth].as_ref().map_or(0, |clock| clock.now);
        self.follow(nth, &|clock| clock.now = before + nanos);
    }

    /// Changes the time of a clock, and lets the clocks below it follow.
    fn follow(&mut self, nth: usize, change: &dyn Fn(&mut Clock)) {
        let Some(clock) = &mut self.model[nth] else {
            return;
        };
        let before = clock.now;
        change(clock);
        let by = clock.now - before;
        for child in 0..ALL {
            if self.model[child].as_ref().and_then(|it| it.parent) == Some(nth) {
                self.follow(child, &|clock| clock.follow(by));
            }
        }
    }

    fn play(&mut self, op: Op) {
        match op {
            Op::Spawn(nth, parent, speed) if self.model[nth].is_none() => {
                let Some(above) = self.model[parent].clone() else {
                    return;
                };
                let entity = self.world.spawn_empty().id();
                let clock = super::Clock::of(self.id(parent)).with_speed(speed);
                self.table.add(entity, &clock, Brakes::default());
                self.entities[nth] = Some(entity);
                let now = self.table.reading(self.key(nth).expect("spawned"));
                self.model[nth] = Some(Clock {
                    parent: Some(parent),
                    speed,
                    factor: 1.0,
                    is_paused: false,
                    now: now.expect("spawned").now,
                    carry: 0,
                    deadline: None,
                    ..above
                });
            }
            Op::Remove(nth) => {
                if let Some(entity) = self.entities[nth].take() {
                    self.table.remove(entity);
                    self.model[nth] = None;
                    for clock in self.model.iter_mut().flatten() {
                        clock.parent = clock.parent.filter(|&parent| parent != nth);
                    }
                }
            }
            Op::SetParent(nth, parent) => {
                let Some(key) = self.key(nth).filter(|_| nth >= BUILT_IN.len()) else {
                    return;
                };
                let is_set = self
                    .table
                    .set_parent(key, Parent::Chosen(self.id(parent)))
                    .is_ok();
                let can_be = self.model[parent].is_some() && !self.runs_on(parent, nth);
                assert_eq!(is_set, can_be);
                if is_set {
                    let root = self.model[parent].as_ref().map_or(0, |above| above.root);
                    for at in 0..ALL {
                        if self.runs_on(at, nth)
                            && let Some(clock) = &mut self.model[at]
                        {
                            clock.root = root;
                        }
                    }
                    self.model[nth].as_mut().expect("it has a key").parent = Some(parent);
                }
            }
            Op::Set(nth, speed, is_paused) => {
                let (Some(key), Some(clock)) = (self.key(nth), &mut self.model[nth]) else {
                    return;
                };
                (clock.speed, clock.is_paused) = (speed, is_paused);
                self.table.change(key, |row| {
                    (row.settings.speed, row.settings.paused) = (speed, is_paused);
                });
            }
            Op::SetFactor(nth, factor) => {
                let (Some(key), Some(clock)) = (self.key(nth), &mut self.model[nth]) else {
                    return;
                };
                clock.factor = factor;
                self.table.change(key, |row| row.brakes.factor = factor);
            }
            Op::Advance(nth, by) | Op::FastForward(nth, by) => {
                let Some(key) = self.key(nth) else {
                    return;
                };
                self.advance(nth, by);
                match op {
                    Op::Advance(..) => self.table.change(key, |row| row.time.advance(by)),
                    _ => {
                        self.table.begin_forward(key, false);
                        self.table.fast_forward(key, by);
                        self.table.end_forward();
                    }
                }
            }
            Op::Plan(nth, wait) => {
                let (Some(key), Some(clock)) = (self.key(nth), &mut self.model[nth]) else {
                    return;
                };
                clock.deadline = Some(clock.now + wait);
                self.table.set_look(key, clock.deadline);
            }
            Op::Read(cadence, by) => {
                for &root in cadence.roots() {
                    let by = if root as usize == FRAMES {
                        super::FRAME
                    } else {
                        by
                    };
                    self.times[root as usize] += by;
                    self.follow(root as usize, &|clock| clock.follow(by));
                }
                let times = self.times.map(|time| (time, by));
                self.table.advance(cadence, times);
            }
            Op::Spawn(..) => {}
        }
        self.check();
    }

    fn check(&mut self) {
        for (nth, clock) in self.model.iter().enumerate() {
            let shown = self.key(nth).and_then(|key| self.table.reading(key));
            let expected = clock.as_ref().map(|clock| clock.now);
            assert_eq!(shown.map(|reading| reading.now), expected, "clock {nth}");
        }
        for cadence in [Cadence::Frame, Cadence::FixedStep] {
            let is_here = |clock: &Clock| (clock.root == FIXED) == (cadence == Cadence::FixedStep);
            self.check_due(Scope::Of(cadence), |game, nth| {
                game.model[nth].as_ref().is_some_and(is_here) && game.is_running(nth, None)
            });
        }
        for root in 0..ALL {
            if let Some(key) = self.key(root) {
                let is_here = |game: &Self, nth| game.is_running(nth, Some(root));
                self.table.begin_forward(key, false);
                self.check_due(Scope::Under(key), is_here);
                self.table.end_forward();
            }
        }
    }

    /// Returns `true` if a clock runs, up to `root` if there is one. Built-in clocks keep their time line.
    fn is_running(&self, nth: usize, root: Option<usize>) -> bool {
        let Some(clock) = &self.model[nth] else {
            return false;
        };
        match clock.parent {
            _ if root == Some(nth) => true,
            _ if nth < BUILT_IN.len() => root.is_none(),
            _ if clock.is_stopped() => false,
            Some(parent) => self.is_running(parent, root),
            None => false,
        }
    }

    /// Every clock on which something is due is found. A search may find more.
    fn check_due(&mut self, scope: Scope, is_here: impl Fn(&Self, usize) -> bool) {
        let mut found = Vec::new();
        self.table.find_due(scope, &mut found);
        for (nth, clock) in self.model.iter().enumerate() {
            let Some(clock) = clock else { continue };
            let is_due = clock.deadline.is_some_and(|deadline| deadline <= clock.now);
            let key = self.key(nth).expect("it exists");
            let is_found = found.iter().any(|&(.., found)| found == key);
            if is_here(self, nth) {
                assert_eq!(is_found, is_due, "clock {nth} in {scope:?}");
            }
        }
    }
}

fn op() -> impl Strategy<Value = Op> {
    let (own, any) = (BUILT_IN.len()..ALL, 0..ALL);
    let speed = || select(vec![0.0, 0.25, 1.0 / 3.0, 1.0, 3.0]);
    prop_oneof![
        (own.clone(), any.clone(), speed()).prop_map(|(nth, at, by)| Op::Spawn(nth, at, by)),
        own.clone().prop_map(Op::Remove),
        (own.clone(), any.clone()).prop_map(|(nth, parent)| Op::SetParent(nth, parent)),
        (any.clone(), speed(), prop::bool::ANY).prop_map(|(nth, by, is)| Op::Set(nth, by, is)),
        (own, speed()).prop_map(|(nth, by)| Op::SetFactor(nth, by)),
        (any.clone(), 0..50_u64).prop_map(|(nth, by)| Op::Advance(nth, by)),
        (any.clone(), 0..50_u64).prop_map(|(nth, by)| Op::FastForward(nth, by)),
        (any, 0..50_u64).prop_map(|(nth, wait)| Op::Plan(nth, wait)),
        (0..50_u64).prop_map(|by| Op::Read(Cadence::Frame, by)),
        (0..50_u64).prop_map(|by| Op::Read(Cadence::FixedStep, by)),
    ]
}

proptest! {
    #[test]
    fn the_table_shows_and_finds_what_the_model_does(ops in collection::vec(op(), 0..60)) {
        let mut game = Game::new();
        for op in ops {
            game.play(op);
        }
    }
}

//! An obviously correct scheduler: a list of timers, searched from end to end. All times are
//! nanoseconds.

use bevy_due::{CancelReason, MissedTicks};

use crate::{
    BURST_LIMIT,
    clocks::{Clock, Clocks, Reading},
    script::{Armed, LogEntry, Op, PLACES, Script, Spec, Step, TICK, sort_by_place},
};

pub(crate) struct Model {
    script: Script,
    run: u64,
    next_sequence: u64,
    next_entity: u64,
    clocks: Clocks,
    entities: [Option<Entity>; PLACES.len()],
    timers: Vec<Listed>,
    log: Vec<LogEntry>,
    /// The number of cancellations since the last run.
    cancelled: u64,
    fired_and_cancelled_in_run: (u64, u64),
}

struct Entity {
    id: u64,
    paused: bool,
    /// Whether its timer is firing for the last time and is still visible to handlers.
    is_finishing: bool,
    /// Whether its timer fired for the last time in the previous run.
    is_finished: bool,
}

struct Listed {
    place: usize,
    clock: usize,
    wait: Wait,
    state: State,
    sequence: u64,
    /// The last run that had begun when it was armed, resumed or moved. It fires in later runs.
    listed_in_run: u64,
    spec: Spec,
    count: u64,
    /// The last run in which it fired, and the number of firings in that run.
    burst: (u64, u32),
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Inserted since the last swap.
    Pending,
    /// Inserted since the last swap, on a clock that does not exist.
    Lost,
    Armed,
}

#[derive(Clone, Copy)]
enum Wait {
    Until(i64),
    /// Paused with this much time remaining.
    Paused(i64),
}

impl Model {
    pub(crate) fn new(script: Script) -> Self {
        Self {
            script,
            run: 0,
            next_sequence: 0,
            next_entity: 0,
            clocks: Clocks::new(),
            entities: [const { None }; PLACES.len()],
            timers: Vec::new(),
            log: Vec::new(),
            cancelled: 0,
            fired_and_cancelled_in_run: (0, 0),
        }
    }

    pub(crate) fn run_step(&mut self, step: Step) {
        match step {
            Step::Do(op) => self.apply(op),
            Step::Frame(by) => self.frame(nanos(by)),
        }
    }

    pub(crate) fn log(&self) -> &[LogEntry] {
        &self.log
    }

    pub(crate) fn last_run(&self) -> (u64, u64) {
        self.fired_and_cancelled_in_run
    }

    pub(crate) fn entities(&self) -> Vec<usize> {
        let exists = |&place: &usize| self.entities[place].is_some();
        (0..PLACES.len()).filter(exists).collect()
    }

    pub(crate) fn timers(&self) -> Vec<Armed> {
        let places = (0..PLACES.len()).filter_map(|place| self.find(place));
        let places = places.filter(|&at| self.timers[at].state != State::Lost);
        let armed = places.map(|at| {
            let timer = &self.timers[at];
            let clock = &self.clocks.all[timer.clock];
            let (due, paused) = match timer.wait {
                Wait::Until(deadline) => (deadline, false),
                Wait::Paused(left) => (clock.now + left, true),
            };
            let number = self
                .clocks
                .current
                .iter()
                .position(|&at| at == Some(timer.clock));
            Armed {
                place: timer.place,
                clock: number.expect("a timer is cancelled with its clock"),
                deadline: (due + clock.offset).max(0),
                count: timer.count,
                paused,
            }
        });
        armed.collect()
    }

    fn frame(&mut self, by: i64) {
        self.run += 1;
        self.clocks.advance(by);
        self.resolve();
        self.fired_and_cancelled_in_run = (0, core::mem::take(&mut self.cancelled));
        for place in 0..PLACES.len() {
            let is_armed = self.find(place).is_some();
            let entity = &mut self.entities[place];
            let is_finished = |entity: &mut Entity| core::mem::take(&mut entity.is_finished);
            if entity.as_mut().is_some_and(is_finished) && !is_armed {
                *entity = None;
            }
        }
        let mut clock = 0;
        while clock < self.clocks.all.len() {
            while self.clocks.may_fire(clock)
                && let Some(at) = self.first_due(clock)
            {
                self.fire(at);
            }
            clock += 1;
        }
    }

    fn first_due(&self, clock: usize) -> Option<usize> {
        let now = self.clocks.all[clock].reading.now;
        let due = self.timers.iter().enumerate().filter_map(|(at, timer)| {
            let Wait::Until(deadline) = timer.wait else {
                return None;
            };
            let is_due = timer.clock == clock && timer.listed_in_run < self.run && deadline <= now;
            is_due.then_some((deadline, timer.sequence, at))
        });
        due.min().map(|(.., at)| at)
    }

    fn fire(&mut self, at: usize) {
        let timer = &mut self.timers[at];
        let Wait::Until(deadline) = timer.wait else {
            unreachable!("a due timer is not paused");
        };
        let Reading { now, offset, .. } = self.clocks.all[timer.clock].reading;
        let (place, interval) = (timer.place, nanos(timer.spec.interval));
        timer.count += 1;
        timer.burst = match timer.burst {
            (run, times) if run == self.run => (run, times + 1),
            _ => (self.run, 1),
        };
        let count = timer.count;
        let last = interval == 0 || count == u64::from(timer.spec.times);
        let policy = timer.spec.missed_ticks;
        let mut next = deadline + interval;
        let mut missed = 0;
        let continues_burst = policy == MissedTicks::Burst && timer.burst.1 < BURST_LIMIT;
        if !last && !continues_burst {
            while next <= now {
                missed += 1;
                next += interval;
            }
            if policy == MissedTicks::Delay {
                next = now + interval;
            }
        }
        timer.wait = Wait::Until(next);
        if last {
            self.timers.remove(at);
        }
        self.log.push(LogEntry::Fired {
            place,
            deadline: (deadline + offset).max(0),
            lateness: now - deadline,
            count,
            missed,
            last,
        });
        self.fired_and_cancelled_in_run.0 += 1;
        self.set_finishing(place, last);
        let id = self.entities[place].as_ref().map(|entity| entity.id);
        let ops = self.script.get(&(place, count)).cloned();
        for op in ops.unwrap_or_default() {
            self.apply(op);
        }
        let is_armed = self.find(place).is_some();
        if let Some(entity) = &mut self.entities[place]
            && Some(entity.id) == id
        {
            entity.is_finishing = false;
            entity.is_finished |= last && !is_armed && PLACES[place].owner.is_some();
        }
    }

    fn apply(&mut self, op: Op) {
        let before = self.log.len();
        match op {
            Op::Arm(place, spec) => {
                self.ensure_owner(place);
                self.ensure(place);
                if spec.paused {
                    self.set_paused(place, true);
                }
                self.cancel(place, CancelReason::Replaced);
                self.start(place, spec);
            }
            Op::Set(place, spec) => {
                self.ensure_owner(place);
                self.cancel(place, CancelReason::Replaced);
                self.entities[place] = None;
                self.ensure(place);
                if spec.paused {
                    self.set_paused(place, true);
                }
                self.start(place, spec);
            }
            Op::Remove(place) => self.remove(place, CancelReason::Removed),
            Op::Despawn(place) => self.despawn(place, CancelReason::Despawned),
            Op::PauseTimers(place) => self.set_paused(place, true),
            Op::ResumeTimers(place) => self.set_paused(place, false),
            Op::CancelKey(place) => {
                let entity = self.entities[place].as_ref();
                let is_armed = self.find(place).is_some();
                if is_armed || entity.is_some_and(|entity| entity.is_finishing) {
                    self.despawn(place, CancelReason::Cancelled);
                }
                if !is_armed {
                    self.log.push(LogEntry::Refused(place));
                }
            }
            Op::CancelDeletable(owner) => {
                for place in self.timers_of(owner) {
                    if !PLACES[place].survives && place == owner {
                        self.remove(place, CancelReason::Removed);
                    } else if !PLACES[place].survives {
                        self.despawn(place, CancelReason::Despawned);
                    }
                }
            }
            Op::CancelAll(owner) => {
                let carried = self.carried_timers();
                for place in self.timers_of(owner) {
                    if carried.contains(&place) && place == owner {
                        self.remove(place, CancelReason::Cancelled);
                    } else if carried.contains(&place) {
                        self.despawn(place, CancelReason::Cancelled);
                    }
                }
            }
            Op::Reschedule(place, shown) => {
                let to = |clock: &Clock, _| nanos(shown) - clock.offset;
                if !self.move_deadline(place, to) {
                    self.log.push(LogEntry::Refused(place));
                }
            }
            Op::DelayBy(place, by) => {
                if !self.move_deadline(place, |_, deadline| deadline + nanos(by)) {
                    self.log.push(LogEntry::Refused(place));
                }
            }
            Op::DelayAllBy(owner, by) => {
                for place in self.timers_of(owner) {
                    self.move_deadline(place, |_, deadline| deadline + nanos(by));
                }
            }
            Op::SpawnClock {
                clock,
                parent,
                quarters,
            } => {
                if !self.clocks.replace(clock, parent, quarters) {
                    self.clocks.spawn(clock, parent, quarters);
                }
            }
            Op::DespawnClock(clock) => self.despawn_clock(clock),
            Op::SetSpeed(clock, quarters) => {
                self.clocks
                    .set(clock, |clock| clock.quarters = i64::from(quarters));
            }
            Op::PauseClock(clock) => self.clocks.set(clock, |clock| clock.paused = true),
            Op::ResumeClock(clock) => self.clocks.set(clock, |clock| clock.paused = false),
            Op::AdvanceBy(clock, by) => self.clocks.set(clock, |clock| clock.now += nanos(by)),
            Op::SetNow(clock, shown) => {
                self.clocks
                    .set(clock, |clock| clock.offset = nanos(shown) - clock.now);
            }
        }
        sort_by_place(&mut self.log[before..]);
    }

    fn find(&self, place: usize) -> Option<usize> {
        self.timers.iter().position(|timer| timer.place == place)
    }

    fn cancel(&mut self, place: usize, reason: CancelReason) {
        if let Some(at) = self.find(place) {
            self.timers.remove(at);
            self.note_cancelled(place, reason);
        }
    }

    fn remove(&mut self, place: usize, reason: CancelReason) {
        self.set_finishing(place, false);
        self.cancel(place, reason);
    }

    /// Arms the pending timers, and cancels those without a clock.
    fn resolve(&mut self) {
        let lost = self
            .timers
            .iter()
            .filter(|timer| timer.state == State::Lost);
        let lost: Vec<usize> = lost.map(|timer| timer.place).collect();
        for place in lost {
            self.cancel(place, CancelReason::ClockGone);
            self.retire(place);
        }
        for timer in &mut self.timers {
            timer.state = State::Armed;
        }
    }

    fn set_finishing(&mut self, place: usize, is_finishing: bool) {
        if let Some(entity) = &mut self.entities[place] {
            entity.is_finishing = is_finishing;
        }
    }

    fn note_cancelled(&mut self, place: usize, reason: CancelReason) {
        self.log.push(LogEntry::Cancelled(place, reason));
        self.cancelled += 1;
    }

    fn start(&mut self, place: usize, spec: Spec) {
        self.set_finishing(place, false);
        let current = self.clocks.current[spec.clock];
        // A lost timer never fires, so its clock does not matter.
        let clock = current.unwrap_or_default();
        let delay = nanos(spec.delay);
        self.timers.push(Listed {
            place,
            clock,
            state: match current {
                Some(_) => State::Pending,
                None => State::Lost,
            },
            wait: if self.is_paused(place) {
                Wait::Paused(delay)
            } else {
                Wait::Until(self.clocks.now(clock) + delay)
            },
            sequence: self.next_sequence,
            listed_in_run: self.run,
            spec,
            count: 0,
            burst: (0, 0),
        });
        self.next_sequence += 1;
    }

    /// Despawns the entity of an owned timer whose clock no longer exists.
    fn retire(&mut self, place: usize) {
        if PLACES[place].owner.is_some() {
            self.entities[place] = None;
        }
    }

    fn ensure(&mut self, place: usize) {
        let id = self.next_entity;
        self.next_entity += 1;
        self.entities[place].get_or_insert(Entity {
            id,
            paused: false,
            is_finishing: false,
            is_finished: false,
        });
    }

    fn ensure_owner(&mut self, place: usize) {
        if let Some(owner) = PLACES[place].owner {
            self.ensure(owner);
        }
    }

    fn despawn(&mut self, place: usize, reason: CancelReason) {
        if self.entities[place].take().is_none() {
            return;
        }
        self.cancel(place, reason);
        for owned in self.timers_of(place) {
            self.cancel(owned, CancelReason::OwnerGone);
            self.entities[owned] = None;
        }
    }

    /// Returns the places whose entity has a timer: armed, or firing for the last time.
    fn carried_timers(&self) -> Vec<usize> {
        let is_finishing = |place: usize| {
            let entity = self.entities[place].as_ref();
            entity.is_some_and(|entity| entity.is_finishing)
        };
        let carries = |&place: &usize| self.find(place).is_some() || is_finishing(place);
        (0..PLACES.len()).filter(carries).collect()
    }

    /// Returns the place of an owner, then the places that it owns in the order of their spawning.
    fn timers_of(&self, owner: usize) -> Vec<usize> {
        let belongs = |&place: &usize| place == owner || PLACES[place].owner == Some(owner);
        let mut places: Vec<usize> = (0..PLACES.len()).filter(belongs).collect();
        let age = |place: usize| self.entities[place].as_ref().map(|entity| entity.id);
        places.sort_by_key(|&place| (place != owner, age(place)));
        places
    }

    fn is_paused(&self, place: usize) -> bool {
        let has_pause = |place: usize| {
            self.entities[place]
                .as_ref()
                .is_some_and(|entity| entity.paused)
        };
        has_pause(place) || PLACES[place].owner.is_some_and(has_pause)
    }

    fn set_paused(&mut self, place: usize, paused: bool) {
        let Some(entity) = &mut self.entities[place] else {
            return;
        };
        entity.paused = paused;
        for place in self.timers_of(place) {
            let Some(at) = self.find(place) else {
                continue;
            };
            let now = self.clocks.now(self.timers[at].clock);
            let paused = self.is_paused(place);
            let timer = &mut self.timers[at];
            match timer.wait {
                Wait::Until(deadline) if paused => timer.wait = Wait::Paused(deadline - now),
                Wait::Paused(left) if !paused => {
                    timer.wait = Wait::Until(now + left);
                    timer.listed_in_run = self.run;
                }
                _ => {}
            }
        }
    }

    /// Moves a deadline, and returns `true` if the timer is armed.
    fn move_deadline(&mut self, place: usize, to: impl Fn(&Clock, i64) -> i64) -> bool {
        if self.find(place).is_some() {
            self.resolve();
        }
        let Some(at) = self.find(place) else {
            return false;
        };
        let timer = &mut self.timers[at];
        let (clock, wait) = (timer.clock, timer.wait);
        timer.sequence = self.next_sequence;
        timer.listed_in_run = self.run;
        self.next_sequence += 1;
        let now = self.clocks.now(clock);
        let clock = &self.clocks.all[clock];
        self.timers[at].wait = match wait {
            Wait::Until(deadline) => Wait::Until(to(clock, deadline)),
            Wait::Paused(left) => Wait::Paused(to(clock, now + left) - now),
        };
        true
    }

    fn despawn_clock(&mut self, clock: usize) {
        let Some(clock) = self.clocks.despawn(clock) else {
            return;
        };
        for place in 0..PLACES.len() {
            if let Some(at) = self.find(place)
                && self.timers[at].clock == clock
                && self.timers[at].state != State::Lost
            {
                if self.timers[at].state == State::Pending {
                    self.timers[at].state = State::Lost;
                    continue;
                }
                self.cancel(place, CancelReason::ClockGone);
                self.retire(place);
            }
        }
    }
}

pub(crate) fn nanos(ticks: u64) -> i64 {
    i64::try_from(ticks * TICK).expect("times in a script are short")
}

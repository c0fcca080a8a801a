//! Exact frames: a run goes through the instants of a frame or a fixed step at which something is due.

use super::{
    Flow, Model,
    clock::{Driver, FRAME},
    clocks::{Clocks, Nth, Scope},
    timers::Timer,
};

/// The way of the clocks through a frame or a fixed step. It has as many instants as the longest of Bevy's times
/// has nanoseconds to go.
#[derive(Clone)]
pub(super) struct Course {
    is_fixed: bool,
    /// The clocks that Bevy drives, and how far they go.
    roots: Vec<(Nth, u64)>,
    last: u64,
    /// The instant that the clocks have reached.
    at: u64,
    /// Whether the clocks have reached the end, where the frame clock advances.
    pub(super) is_over: bool,
}

impl Course {
    /// Returns how far a clock goes up to an instant, of `span` in all.
    fn way(&self, span: u64, at: u64) -> u64 {
        match self.last {
            0 => 0,
            last => (u128::from(span) * u128::from(at) / u128::from(last)) as u64,
        }
    }
}

impl Model {
    /// Everything that is due at an instant fires, in the usual order, before the clocks advance to the next one.
    /// What handlers arm may be due later in the same run. The frame clock advances at the end.
    pub(super) fn run_exactly(&mut self, is_fixed: bool, stats: &mut [u64; 3]) -> Flow {
        let scope = Scope::Of { is_fixed };
        self.course = Some(self.clocks.course(is_fixed));
        self.begin_run(scope, stats);
        let played = self.play_course(is_fixed, stats);
        self.course = None;
        played
    }

    /// What waits for the next run in other than exact frames waits for the end of the instant.
    fn play_course(&mut self, is_fixed: bool, stats: &mut [u64; 3]) -> Flow {
        let scope = Scope::Of { is_fixed };
        let mut deepest = self.fire_due(scope, stats)?;
        while self.course.as_ref().is_some_and(|course| !course.is_over) {
            self.chain = deepest;
            loop {
                self.end_finished(scope);
                self.add_modified_clocks();
                self.clocks.stop_awaiting();
                self.swap(scope);
                if !self.is_any_new(scope) {
                    break;
                }
                self.chain += 1;
            }
            self.chain = 0;
            let next = self.next_instant(scope);
            if let Some(course) = &mut self.course {
                self.clocks.advance_on(course, next);
                if course.is_over {
                    self.clocks.end_reading(is_fixed);
                }
            }
            deepest = self.fire_due(scope, stats)?;
        }
        Ok(())
    }

    /// Returns the first instant at which something is due.
    fn next_instant(&self, scope: Scope) -> Option<u64> {
        let course = self.course.as_ref()?;
        first_where(course.at, course.last, |at| {
            let mut clocks = self.clocks.clone();
            clocks.advance_on(&mut course.clone(), Some(at));
            self.is_any_due(&clocks, scope)
        })
    }

    /// Returns `true` if a swap would release a timer.
    fn is_any_new(&self, scope: Scope) -> bool {
        self.timers.iter().any(|timer| {
            let is_in = |clock| self.clocks.is_in(clock, scope);
            !timer.is_released && timer.clock.is_none_or(is_in) && self.may_fire(timer)
        })
    }

    /// Returns `true` if any timer is due at the time of these clocks, also if it is not released yet.
    pub(super) fn is_any_due(&self, clocks: &Clocks, scope: Scope) -> bool {
        self.timers.iter().any(|timer| {
            let Some(clock) = timer.clock else {
                return false;
            };
            let is_running = clocks.is_in(clock, scope) && clocks.is_running(clock, scope);
            is_running && self.may_fire(timer) && timer.deadline <= clocks.all[clock].now
        })
    }

    /// In a frame, a chain of timers, each armed by the handler of the one before, is no longer than a burst.
    pub(super) fn waits_for_next_frame(&self, timer: &Timer) -> bool {
        self.course.is_some() && timer.burst_in(self.runs) >= self.rules.burst_limit
    }
}

impl Clocks {
    fn course(&self, is_fixed: bool) -> Course {
        let way = |nth: Nth| Some((nth, self.bevy_time(nth)? - self.all[nth].seen));
        let roots = (0..self.all.len()).filter(|&nth| self.all[nth].is_fixed == is_fixed);
        // While the game is paused, no time passes on its clock. What is left of an earlier frame passes later.
        let is_paused =
            |nth: Nth| self.all[nth].driver == Driver::Game && self.times.is_game_paused;
        let roots: Vec<_> = roots
            .filter(|&nth| !is_paused(nth))
            .filter_map(way)
            .collect();
        let last = roots.iter().map(|&(_, way)| way).max();
        Course {
            is_fixed,
            roots,
            last: last.unwrap_or(0),
            at: 0,
            is_over: false,
        }
    }

    /// The clocks advance to an instant, or to the end. A handler may have paused the game since the last one.
    fn advance_on(&mut self, course: &mut Course, instant: Option<u64>) {
        let to = instant.unwrap_or(course.last);
        if instant.is_none() && !course.is_over {
            course.is_over = true;
            if !course.is_fixed {
                let frames = core::mem::take(&mut self.times.frames);
                let clock = self
                    .all
                    .iter_mut()
                    .find(|clock| clock.driver == Driver::Frames);
                clock.expect("it is built in").run(FRAME * frames);
            }
        }
        for &(nth, span) in &course.roots {
            let by = course.way(span, to) - course.way(span, course.at);
            let clock = &mut self.all[nth];
            if clock.driver != Driver::Game || !self.times.is_paused_by_now {
                clock.follow(clock.seen + by);
            }
        }
        course.at = to;
        for nth in self.parents_first() {
            if self.all[nth].is_fixed == course.is_fixed {
                self.follow_parent(nth);
            }
        }
    }

    /// Returns the time on each clock at the end of a frame or a fixed step, as it looks now.
    pub(super) fn at_end_of(&self, course: &Course) -> Vec<u64> {
        let mut clocks = self.clone();
        clocks.advance_on(&mut course.clone(), None);
        clocks.all.iter().map(|clock| clock.now).collect()
    }
}

/// Returns the first number for which something holds. It also holds for all higher ones.
pub(super) fn first_where(first: u64, last: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut low, mut high) = (first, last);
    if low > high || !holds(high) {
        return None;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        match holds(middle) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Some(low)
}

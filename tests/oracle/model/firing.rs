//! Runs: the due timers of one clock after another fire by deadline, then in the order of arming.

use bevy_due::{CancelReason, MissedTicks};

use super::{
    Flow, Handler, Model, Panicked,
    clock::{Clock, NEVER},
    clocks::{Nth, Scope},
    random::{GOLDEN, mix, scale},
    timers::{Done, Kind, Timer, done},
};
use crate::{
    entry::{Entry, Firing, Id, Named},
    op::{Action, FIRED},
};

/// The most missed deadlines that a firing reports.
const MOST_MISSED: u64 = (1 << 48) - 1;

impl Model {
    /// Releases the timers that were armed since the last run, and fires the due timers. Counts the firings,
    /// missed deadlines and cancellations.
    pub(super) fn run(&mut self, scope: Scope, stats: &mut [u64; 3]) -> Flow {
        self.begin_run(scope, stats);
        self.fire_due(scope, stats).map(|_| ())
    }

    /// The entities whose timers have finished despawn in the next run.
    pub(super) fn begin_run(&mut self, scope: Scope, stats: &mut [u64; 3]) {
        self.runs += 1;
        *stats = [0; 3];
        self.swap(scope);
        stats[2] += self.unwritten.len() as u64;
        self.cancelled.append(&mut self.unwritten);
        self.end_finished(scope);
    }

    pub(super) fn end_finished(&mut self, scope: Scope) {
        if let Scope::Of { is_fixed } = scope {
            for nth in [usize::from(is_fixed), 2] {
                for (id, done) in core::mem::take(&mut self.ended[nth]) {
                    self.end_unarmed(id, done);
                }
            }
        }
    }

    /// One clock after another has its turn, unless it is stopped now or then. The turn keeps the time at which
    /// it begins, and ends when something stops the clock. Returns the length of the longest chain.
    pub(super) fn fire_due(&mut self, scope: Scope, stats: &mut [u64; 3]) -> Result<u32, Panicked> {
        let mut deepest = 0;
        // Handlers may move a clock to another cadence. What ends in this run despawns in the next one like it.
        let is_fixed = match scope {
            Scope::Of { is_fixed } => is_fixed,
            Scope::Under { root, .. } => self.clocks.all[root].is_fixed,
        };
        let due = |model: &Self, clock| model.first_due(clock, model.clocks.all[clock].now);
        let clocks = (0..self.clocks.all.len()).filter(|&clock| {
            self.clocks.is_in(clock, scope)
                && self.clocks.is_running(clock, scope)
                && due(self, clock).is_some()
        });
        for clock in clocks.collect::<Vec<Nth>>() {
            let turn = self.turn(clock, is_fixed);
            while self.clocks.is_running(clock, scope)
                && let Some(at) = self.first_due(clock, turn.now)
            {
                let fired = self.fire(at, &turn, stats);
                deepest = deepest.max(core::mem::take(&mut self.chain));
                fired?;
            }
        }
        Ok(deepest)
    }

    fn turn(&self, clock: Nth, is_fixed: bool) -> Turn {
        let Clock {
            now, skipped_to, ..
        } = self.clocks.all[clock];
        let end = match &self.course {
            Some(course) => self.clocks.at_end_of(course)[clock],
            None => now,
        };
        Turn {
            is_fixed,
            now,
            end,
            skipped_to,
        }
    }

    fn first_due(&self, clock: Nth, now: u64) -> Option<usize> {
        let timers = self.timers.iter().enumerate();
        let due = timers.filter_map(|(at, timer)| {
            let is_here = timer.clock == Some(clock) && timer.is_released;
            let is_due = is_here && self.may_fire(timer) && timer.deadline <= now;
            is_due.then_some((timer.rank(), at))
        });
        due.min().map(|(.., at)| at)
    }

    /// Returns `true` unless a timer is paused, never fires, or waits for the next run.
    pub(super) fn may_fire(&self, timer: &Timer) -> bool {
        timer.paused_at.is_none() && timer.deadline != NEVER && !self.waits_for_next_frame(timer)
    }

    /// A timer fires: the message, the observers, the action, and then its end if this was the last
    /// firing.
    fn fire(&mut self, at: usize, turn: &Turn, stats: &mut [u64; 3]) -> Flow {
        let clock = self.timers[at].clock.expect("it is armed");
        let reading = &self.clocks.all[clock];
        let (name, is_fixed) = (reading.name, turn.is_fixed);
        let deadline = self.timers[at].deadline;
        let (shown, lateness) = (reading.shown(deadline), turn.now - deadline);
        let (missed, next) = self.serve(at, turn);
        let timer = &self.timers[at];
        let (id, seat, owner) = (timer.entity, timer.seat, timer.owner);
        let (count, kind) = (timer.count, timer.kind);
        match next {
            Some(next) => self.timers[at].deadline = next,
            None => drop(self.timers.remove(at)),
        }
        stats[0] += 1;
        stats[1] += missed;
        match kind {
            Kind::Timer => {}
            Kind::Request => {
                self.time_out(id);
                return Ok(());
            }
            Kind::Lifetime => {
                self.despawn(id);
                return Ok(());
            }
        }
        let firing = Firing {
            entity: id,
            owner,
            key: self.key_name(id).filter(|_| owner != id),
            clock: name,
            deadline: shown,
            lateness,
            count,
            missed,
            is_last: next.is_none(),
        };
        self.fired.push(Entry::Fired(firing));
        if firing.is_last {
            let done = self.entities[id].timer.map_or(Done::Keeps, done);
            let done = if self.despawns(id, done) {
                done
            } else {
                Done::Keeps
            };
            self.ended[usize::from(is_fixed)].push((id, done));
        }
        // The action that it has now counts, even if an observer inserts another one.
        let action = self.entities[id].action;
        if self.rules.is_observed {
            self.log.push(Entry::Fired(firing));
            self.slots[FIRED] = Some(id);
            self.react(Handler::Command)?;
            if owner != id {
                self.log.push(Entry::Owned(id, owner));
            }
        }
        if let Some(action) = action
            && self.is_still(id, seat)
            && self.entities[id].action.is_some()
        {
            self.act(action, firing)?;
        }
        if firing.is_last {
            self.end(id, seat, is_fixed);
        }
        Ok(())
    }

    /// Returns `true` if a timer that fired was not removed or replaced.
    fn is_still(&self, id: Id, seat: u64) -> bool {
        self.exists(id) && self.entities[id].seat == Some(seat)
    }

    fn act(&mut self, action: Action, firing: Firing) -> Flow {
        match action {
            Action::Nothing => {}
            Action::DespawnTimer => self.despawn(firing.entity),
            Action::DespawnOwner => self.despawn(firing.owner),
            Action::Named => {
                self.log.push(Entry::Acted(firing.entity, firing.count));
                self.slots[FIRED] = Some(firing.entity);
                self.react(Handler::Exclusive)?;
            }
        }
        Ok(())
    }

    /// A timer that has finished is removed. A timer that a handler has inserted stays, with its entity. If the
    /// entity will despawn, what it does to others ends now.
    fn end(&mut self, id: Id, seat: u64, is_fixed: bool) {
        let is_replaced = if self.is_still(id, seat) {
            self.drop_timer(id);
            false
        } else {
            self.exists(id) && self.entities[id].timer.is_some()
        };
        let ended = &mut self.ended[usize::from(is_fixed)];
        if let Some(at) = ended.iter().rposition(|&(of, _)| of == id) {
            let (_, done) = ended[at];
            if is_replaced || done == Done::Keeps {
                ended.remove(at);
            } else if self.exists(id) && self.despawns(id, done) {
                self.end_effects(id);
            }
        }
    }

    /// What the entity of a finished timer does to others ends with its last firing, and so does what its belongings do.
    fn end_effects(&mut self, id: Id) {
        let mut all = vec![id];
        let mut at = 0;
        while let Some(&carrier) = all.get(at) {
            let owned = self.entities[carrier].owned.iter();
            all.extend(owned.filter(|&&owned| owned != id));
            self.end_pause(carrier);
            self.end_modifier(carrier);
            at += 1;
        }
    }

    /// The timers of a clock are cancelled with it, in the order of arming, except for new ones. Returns them:
    /// they must retire.
    pub(super) fn remove_clock(&mut self, id: Id, is_despawned: bool) -> Vec<(Id, Kind)> {
        let Some(clock) = self.clocks.find(Named::Own(id)) else {
            return Vec::new();
        };
        // What has yet to follow its default clock to another one does so now.
        let here = self.timers.iter().enumerate().filter(|(_, timer)| {
            timer.clock == Some(clock) && !timer.is_new && timer.chosen.is_none()
        });
        let mut here: Vec<_> = here.map(|(at, timer)| (timer.sequence, at)).collect();
        here.sort_unstable();
        for (_, at) in here {
            let default = self.clock_of(self.timers[at].entity, None);
            if let Some(to) = self.clocks.find(default) {
                self.carry(at, Some(to));
            }
        }
        let (new, mut armed): (Vec<&mut Timer>, Vec<&mut Timer>) = self
            .timers
            .iter_mut()
            .filter(|timer| timer.clock == Some(clock))
            .partition(|timer| timer.is_new);
        for timer in new {
            timer.clock = None;
        }
        armed.sort_by_key(|timer| timer.sequence);
        let armed = armed
            .into_iter()
            .map(|timer| (timer.entity, timer.kind, timer.owner));
        let armed: Vec<_> = armed.collect();
        for &(timer, kind, owner) in &armed {
            match kind {
                Kind::Request => self.cancel_silently(timer, kind),
                Kind::Lifetime => self.cancel_life(timer),
                Kind::Timer if is_despawned && owner == id => {
                    self.cancel(timer, CancelReason::OwnerGone);
                }
                Kind::Timer => self.cancel(timer, CancelReason::ClockGone),
            }
        }
        self.clocks.remove(clock);
        self.modified.push(id);
        let lost = armed.into_iter();
        lost.map(|(timer, kind, _)| (timer, kind)).collect()
    }
}

impl Model {
    /// Counts a firing. Returns the number of missed deadlines, and the next deadline unless this firing was the
    /// last.
    fn serve(&mut self, at: usize, turn: &Turn) -> (u64, Option<u64>) {
        let span = self.entities[self.timers[at].entity].timer;
        let span = span.map_or(0, |spec| self.rules.nanos(spec.span));
        let timer = &mut self.timers[at];
        let firings = timer.burst_in(self.runs);
        let is_exact = self.course.as_ref().is_some_and(|course| !course.is_over);
        if is_exact {
            self.chain = firings + 1;
        }
        timer.count += 1;
        let is_last = timer.times != 0 && timer.count >= u64::from(timer.times);
        if is_last || timer.interval == 0 {
            return (0, None);
        }
        // For a time that is skipped, each timer fires at most once.
        let (now, end, limit) = match turn.skipped_to.filter(|&to| timer.deadline <= to) {
            Some(to) => (to, to, 1),
            None => (turn.now, turn.end, self.rules.burst_limit),
        };
        let step = timer.draw_step(span);
        let on_grid = timer.deadline.saturating_add(step);
        let (mut missed, mut next) = match timer.missed {
            MissedTicks::Skip if on_grid <= now => timer.skip(step, span, now),
            MissedTicks::Burst | MissedTicks::Skip => (0, on_grid),
            MissedTicks::Delay => {
                let (missed, _) = timer.skip(step, span, now);
                (missed, now.saturating_add(step))
            }
        };
        // In an exact frame, all firings of the frame count.
        let goes_on = next <= end;
        let burst = if goes_on || is_exact { firings + 1 } else { 0 };
        timer.burst = (self.runs, burst);
        if goes_on && burst >= limit {
            (missed, next) = timer.skip(step, span, end);
            if !is_exact {
                timer.burst.1 = 0;
            }
        }
        (missed.min(MOST_MISSED), Some(next))
    }
}

/// The turn of a clock in a run. It keeps the time at which it begins.
struct Turn {
    /// Whether its run is one of fixed steps.
    is_fixed: bool,
    now: u64,
    /// The time at the end of an exact frame, as it looked when the turn began. In any other run, it is now.
    end: u64,
    skipped_to: Option<u64>,
}

impl Timer {
    /// Returns the next interval, which may be random.
    fn draw_step(&mut self, span: u64) -> u64 {
        self.wait = self.interval;
        if self.is_random {
            self.random = self.random.wrapping_add(GOLDEN);
            let extra = scale(mix(self.random), span);
            self.wait = self.interval.saturating_add(extra);
        }
        self.wait
    }

    /// Skips the deadlines up to a time. Returns how many these are, and the next one. Without a grid, the interval
    /// starts at that time, and the number is an estimate.
    fn skip(&self, step: u64, span: u64, until: u64) -> (u64, u64) {
        let is_late = self.deadline.saturating_add(step) <= until;
        if self.is_random {
            let average = self.interval.saturating_add(span / 2);
            let missed = match is_late {
                true => ((until - self.deadline) / average).max(1),
                false => 0,
            };
            return (missed, until.saturating_add(step));
        }
        let missed = match is_late {
            true => (until - self.deadline) / self.interval,
            false => 0,
        };
        let skipped = self.interval.saturating_mul(missed + 1);
        (missed, self.deadline.saturating_add(skipped))
    }
}

//! Runs: the due timers of one clock after another fire by deadline, then in the order of arming.

use bevy_due::{CancelReason, MissedTicks};

use super::{
    Flow, Handler, Model,
    clock::NEVER,
    clocks::Nth,
    random::{GOLDEN, mix, scale},
    timers::{Done, Kind, Timer, done},
};
use crate::{
    entry::{Entry, Firing, Id, Named},
    op::Action,
};

/// The clocks that a run covers.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Scope {
    /// Those read in fixed steps, or those read in frames.
    Of { is_fixed: bool },
    /// A clock and its descendants.
    Under(Nth),
}

/// The most missed deadlines that a firing reports.
const MOST_MISSED: u64 = (1 << 48) - 1;

/// The result of a firing.
struct Served {
    missed: u64,
    /// The next deadline, or `None` after the last firing.
    next: Option<u64>,
}

impl Model {
    pub(super) fn is_in(&self, clock: Nth, scope: Scope) -> bool {
        let of = &self.clocks.all[clock];
        of.exists
            && match scope {
                Scope::Of { is_fixed } => of.is_fixed == is_fixed,
                Scope::Under(root) => self.clocks.runs_on(clock, root),
            }
    }

    /// Arms the timers that were inserted since the last run, and fires the due timers. Counts the
    /// firings, missed deadlines and cancellations.
    pub(super) fn run(&mut self, scope: Scope, stats: &mut [u64; 3]) -> Flow {
        self.runs += 1;
        let lost = self.resolve();
        for at in 0..self.timers.len() {
            let clock = self.timers[at]
                .clock
                .filter(|_| !self.timers[at].is_pending());
            if clock.is_some_and(|clock| self.is_in(clock, scope)) {
                self.timers[at].is_released = true;
            }
        }
        for (id, kind) in lost {
            if self.find_timer(id, kind).is_some() {
                self.lose_clock(id, kind);
            }
        }
        *stats = [0, 0, self.unwritten.len() as u64];
        self.cancelled.append(&mut self.unwritten);
        if let Scope::Of { is_fixed } = scope {
            for nth in [usize::from(is_fixed), 2] {
                for (id, done) in core::mem::take(&mut self.ended[nth]) {
                    self.end_unarmed(id, done);
                }
            }
        }
        let forwarded = match scope {
            Scope::Under(root) => Some(root),
            Scope::Of { .. } => None,
        };
        let clocks = 0..self.clocks.all.len();
        let due: Vec<Nth> = clocks
            .filter(|&clock| self.is_in(clock, scope) && self.clocks.may_fire(clock, forwarded))
            .filter(|&clock| self.first_due(clock).is_some())
            .collect();
        for &clock in &due {
            let is_fixed = self.clocks.all[clock].is_fixed;
            while self.clocks.may_fire(clock, forwarded)
                && let Some(at) = self.first_due(clock)
            {
                self.fire(at, is_fixed, stats)?;
            }
        }
        Ok(())
    }

    fn first_due(&self, clock: Nth) -> Option<usize> {
        let now = self.clocks.all[clock].now;
        let due = self.timers.iter().enumerate().filter_map(|(at, timer)| {
            let is_here = timer.clock == Some(clock) && timer.is_released && !timer.is_held;
            let is_due = is_here && timer.paused_at.is_none() && timer.deadline <= now;
            (is_due && timer.deadline != NEVER).then_some((timer.rank(), at))
        });
        due.min().map(|(.., at)| at)
    }

    /// A timer fires: the message, the observers, the action, and then its end if this was the last
    /// firing.
    pub(super) fn fire(&mut self, at: usize, is_fixed: bool, stats: &mut [u64; 3]) -> Flow {
        let clock = self.timers[at].clock.expect("it is armed");
        let reading = self.clocks.all[clock].clone();
        let limit = match self.clocks.has_skipped(clock) {
            true => 1,
            false => self.rules.burst_limit,
        };
        let runs = self.runs;
        let span = self.entities[self.timers[at].entity].timer;
        let span = span.map_or(0, |spec| self.rules.nanos(spec.span));
        let timer = &mut self.timers[at];
        let deadline = timer.deadline;
        let Served { missed, next } = timer.serve(reading.now, span, runs, limit);
        let missed = missed.min(MOST_MISSED);
        let (id, seat, acts) = (timer.entity, timer.seat, timer.acts);
        let (owner, count, kind) = (timer.owner, timer.count, timer.kind);
        match next {
            Some(next) => timer.deadline = next,
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
            clock: self.clocks.all[clock].name,
            deadline: reading.shown(deadline),
            lateness: reading.now - deadline,
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
        if self.rules.is_observed {
            self.log.push(Entry::Fired(firing));
            self.react(Handler::Command)?;
            if owner != id {
                self.log.push(Entry::Owned(id, owner));
            }
        }
        if acts && self.is_still(id, seat) {
            self.act(firing)?;
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

    fn act(&mut self, firing: Firing) -> Flow {
        let Firing { entity, owner, .. } = firing;
        match self.entities[entity].action {
            None | Some(Action::Nothing) => {}
            Some(Action::DespawnTimer) => self.despawn(entity),
            Some(Action::DespawnOwner) => self.despawn(owner),
            Some(Action::Named) => {
                self.log.push(Entry::Acted(entity, firing.count));
                self.react(Handler::Exclusive)?;
            }
        }
        Ok(())
    }

    /// A timer that has finished is removed. A timer that a handler has inserted stays, with its
    /// entity.
    fn end(&mut self, id: Id, seat: u64, is_fixed: bool) {
        let is_replaced = if self.is_still(id, seat) {
            self.drop_timer(id);
            false
        } else {
            self.exists(id) && self.entities[id].timer.is_some()
        };
        let ended = &mut self.ended[usize::from(is_fixed)];
        if let Some(at) = ended.iter().rposition(|&(of, _)| of == id)
            && (is_replaced || ended[at].1 == Done::Keeps)
        {
            ended.remove(at);
        }
    }

    /// The timers of a clock are cancelled with it, in the order of arming. Returns them: they must
    /// retire.
    pub(super) fn remove_clock(&mut self, id: Id, is_despawned: bool) -> Vec<(Id, Kind)> {
        let Some(clock) = self.clocks.find(Named::Own(id)) else {
            return Vec::new();
        };
        let armed = |timer: &&Timer| timer.clock == Some(clock) && !timer.is_pending();
        let mut armed: Vec<&Timer> = self.timers.iter().filter(armed).collect();
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

impl Timer {
    /// Counts a firing, and finds the next deadline by the policy for missed ones.
    fn serve(&mut self, now: u64, span: u64, run: u64, limit: u32) -> Served {
        self.count += 1;
        self.burst = match self.burst {
            (of, firings) if of == run => (run, firings + 1),
            _ => (run, 1),
        };
        let is_last = self.times != 0 && self.count >= u64::from(self.times);
        if is_last || self.interval == 0 {
            return Served {
                missed: 0,
                next: None,
            };
        }
        let is_burst = self.missed == MissedTicks::Burst && self.burst.1 < limit;
        if self.is_random {
            return self.serve_random(now, span, is_burst);
        }
        self.wait = self.interval;
        let mut next = self.deadline.saturating_add(self.interval);
        let mut missed = 0;
        if next <= now && !is_burst {
            missed = (now - self.deadline) / self.interval;
            let skipped = self.interval.saturating_mul(missed + 1);
            next = self.deadline.saturating_add(skipped);
        }
        if self.missed == MissedTicks::Delay {
            next = now.saturating_add(self.interval);
        }
        Served {
            missed,
            next: Some(next),
        }
    }

    /// Draws the next interval. After a deadline that is skipped, the interval starts now, and the
    /// number of missed deadlines is an estimate.
    fn serve_random(&mut self, now: u64, span: u64, is_burst: bool) -> Served {
        self.random = self.random.wrapping_add(GOLDEN);
        let extra = scale(mix(self.random), span);
        self.wait = self.interval.saturating_add(extra);
        let next = self.deadline.saturating_add(self.wait);
        let is_late = next <= now;
        let keeps = match self.missed {
            MissedTicks::Burst => !is_late || is_burst,
            MissedTicks::Skip => !is_late,
            MissedTicks::Delay => false,
        };
        if keeps {
            return Served {
                missed: 0,
                next: Some(next),
            };
        }
        let average = self.interval.saturating_add(span / 2);
        let missed = match is_late {
            true => ((now - self.deadline) / average).max(1),
            false => 0,
        };
        Served {
            missed,
            next: Some(now.saturating_add(self.wait)),
        }
    }
}

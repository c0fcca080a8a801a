//! The operations.

use super::{Model, clock::Component, mail::Role};
use crate::{
    entry::{Entry, Id, NOWHERE, Named},
    op::{At, Op, Ratio, Slot},
};

impl Model {
    pub(super) fn apply(&mut self, op: &Op) {
        match *op {
            Op::Spawn(slot) => _ = self.ensure(slot),
            Op::Despawn(slot) => self.on(slot, Self::despawn),
            Op::Belong(slot, Some(owner)) => {
                if let (Some(id), Some(owner)) = (self.at(slot), self.at(owner)) {
                    self.set_owner(id, owner);
                }
            }
            Op::Belong(slot, None) => self.on(slot, Self::leave_owner),
            Op::Orphan(slot) => self.on(slot, |model, id| model.set_owner(id, NOWHERE)),
            Op::Key(slot, key) => self.on(slot, |model, id| model.set_key(id, key)),
            Op::Arm(slot, spec) => {
                let id = self.ensure(slot);
                let on = spec.on.map(|on| self.named(on));
                self.insert_timer(id, spec, on);
            }
            Op::Disarm(slot) => self.on(slot, Self::remove_timer),
            Op::SetTimer(owner, key, slot, spec) => {
                if let Some(owner) = self.at(owner) {
                    self.set_timer(owner, key, slot, spec);
                }
            }
            Op::RefreshTimer(owner, key, slot, spec) => {
                if let Some(owner) = self.at(owner) {
                    let timer = self.keyed(owner, key);
                    if !self.refresh(timer) {
                        self.set_timer(owner, key, slot, spec);
                    }
                }
            }
            Op::CancelKey(owner, key) => {
                if let Some(owner) = self.at(owner) {
                    let was_armed = self.cancel_key(owner, key);
                    self.refuse_unless(was_armed);
                }
            }
            Op::CancelAll(owner) => self.on(owner, Self::cancel_all),
            Op::Change(slot, change) => {
                if let Some(id) = self.at(slot) {
                    let is_changed = self.change(Some(id), change);
                    self.refuse_unless(is_changed);
                }
            }
            Op::ChangeKey(owner, key, change) => {
                if let Some(owner) = self.at(owner) {
                    let timer = self.keyed(owner, key);
                    let is_changed = self.change(timer, change);
                    self.refuse_unless(is_changed);
                }
            }
            Op::DelayAll(owner, by) => self.on(owner, |model, owner| {
                for id in model.timers_of(owner) {
                    model.change(Some(id), crate::op::Change::DelayBy(by));
                }
            }),
            Op::Live(slot, Some(delay)) => {
                let (id, delay) = (self.ensure(slot), self.rules.nanos(delay));
                self.insert_life(id, delay);
            }
            Op::Live(slot, None) => self.on(slot, Self::cancel_life),
            Op::Act(slot, action) => self.on(slot, |model, id| model.set_action(id, action)),
            Op::Pause(slot, is_paused) => {
                self.on(slot, |model, id| model.set_paused(id, is_paused));
            }
            Op::Disable(slot, is_disabled) => {
                self.on(slot, |model, id| model.set_disabled(id, is_disabled));
            }
            Op::RunWhilePaused(slot, runs) => self.on(slot, |model, id| {
                model.entities[id].runs_while_paused = runs;
                model.update_pause(id);
            }),
            Op::PauseFor(slot, span) => {
                let span = self.rules.nanos(span);
                self.on(slot, |model, id| model.pause_for(id, span));
            }
            Op::EndPause(slot) => self.on(slot, |model, id| {
                if let Some(&pause) = model.entities[id].paused_by.first() {
                    model.despawn(pause);
                }
            }),
            Op::Pauses(slot, target) => {
                let target = target.map(|target| self.at(target));
                self.on(slot, |model, id| match target {
                    None => model.end_pause(id),
                    Some(None) => {}
                    Some(Some(target)) => model.set_pauses(id, target),
                });
            }
            Op::On(slot, at) => {
                let on = at.map(|at| self.named(at));
                self.on(slot, |model, id| model.entities[id].on = on);
            }
            Op::Update(slot, priority, on) => {
                let id = self.ensure(slot);
                self.insert_update(id, priority, on);
            }
            Op::StopUpdate(slot) => self.on(slot, Self::stop_update),
            Op::PauseUpdates(from) => self.updates.paused_from = from,
            ref op => self.apply_to_clock(op),
        }
    }

    fn apply_to_clock(&mut self, op: &Op) {
        match *op {
            Op::Clock(slot, parent, speed) => self.insert_clock(slot, parent, speed),
            Op::RemoveClock(slot) => self.on(slot, |model, id| {
                for (timer, kind) in model.remove_clock(id, false) {
                    model.retire(timer, kind);
                }
            }),
            Op::Speed(at, speed) => self.with_component(at, |clock| clock.speed = speed.get()),
            Op::PauseClock(at, is_paused) => {
                self.with_component(at, |clock| clock.is_paused = is_paused);
            }
            Op::SetParent(slot, parent) => {
                let parent = self.named(parent);
                self.with_component(At::Own(slot), |clock| clock.parent = parent);
            }
            Op::SetNow(at, shown) => {
                let shown = self.rules.nanos(shown);
                self.with_component(at, |clock| clock.set_now = Some(shown));
            }
            Op::Advance(at, by) => {
                let by = self.rules.nanos(by);
                self.with_component(at, |clock| {
                    clock.advance_by = clock.advance_by.saturating_add(by);
                    clock.set_now = clock.set_now.map(|now| now.saturating_add(by));
                });
            }
            Op::Modify(slot, modified) => self.on(slot, |model, id| {
                let modified = modified.map(|(slot, factor)| (model.at(slot), factor));
                match modified {
                    None => model.set_modifier(id, None),
                    Some((None, _)) => {}
                    Some((Some(clock), factor)) => model.set_modifier(id, Some((clock, factor))),
                }
            }),
            Op::Hold(slot, is_held) => {
                self.on(slot, |model, id| model.entities[id].is_held = is_held);
            }
            Op::Condition(condition) => self.condition = condition,
            Op::PauseGame(is_paused) => {
                self.is_game_paused = is_paused;
                self.clocks.times.is_paused_by_now = is_paused;
            }
            ref op => self.apply_to_mail(op),
        }
    }

    fn apply_to_mail(&mut self, op: &Op) {
        match *op {
            Op::Follow(slot, topics) => {
                let id = self.ensure(slot);
                self.follow(id, topics);
            }
            Op::Unfollow(slot) => self.on(slot, Self::unfollow),
            Op::Send(to, topic) => self.send(to, topic, Role::Plain),
            Op::Write => self.write(),
            Op::Ask(slot, to, spec) => self.on(slot, |model, id| model.ask(id, to, spec)),
            Op::Withdraw(slot) => self.withdraw(slot),
            Op::Reply { keep } => self.reply(keep),
            ref op => assert_eq!(*op, Op::Panic, "only between frames"),
        }
    }

    fn on(&mut self, slot: Slot, change: impl FnOnce(&mut Self, Id)) {
        if let Some(id) = self.at(slot) {
            change(self, id);
        }
    }

    fn refuse_unless(&mut self, is_done: bool) {
        if !is_done {
            self.log.push(Entry::Refused);
        }
    }

    /// The new timer takes the key before the earlier one is cancelled.
    fn set_timer(&mut self, owner: Id, key: usize, slot: Slot, spec: crate::op::Spec) {
        let on = spec.on.map(|on| self.named(on));
        let id = self.spawn();
        self.slots[slot] = Some(id);
        self.entities[id].owner = Some(owner);
        self.entities[id].key = Some(key);
        self.insert_timer(id, spec, on);
        self.set_owner(id, owner);
    }

    fn with_component(&mut self, at: At, change: impl FnOnce(&mut Component)) {
        if let Some(nth) = self.find_clock(at) {
            change(&mut self.clocks.all[nth].component);
        }
    }

    /// A clock that is inserted over another brings its settings, and keeps the time.
    fn insert_clock(&mut self, slot: Slot, parent: At, speed: Ratio) {
        let id = self.ensure(slot);
        let parent = self.named(parent);
        if let Some(nth) = self.clocks.find(Named::Own(id)) {
            let clock = &mut self.clocks.all[nth];
            clock.component = Component::new(parent, speed.get());
            return;
        }
        let factor = self.factor(id);
        let is_disabled = self.entities[id].is_disabled;
        self.clocks
            .add(id, parent, (speed.get(), factor, is_disabled));
    }

    fn factor(&self, clock: Id) -> f64 {
        let modifiers = self.entities[clock].modifiers.iter();
        let factors = modifiers.filter_map(|&id| self.entities[id].modifies);
        factors.map(|(_, factor)| factor.get()).product()
    }

    /// The factors of all modifiers of a clock multiply its speed.
    pub(super) fn set_modifier(&mut self, id: Id, modifies: Option<(Id, Ratio)>) {
        let before = self.entities[id].modifies.take();
        if let Some((clock, _)) = before {
            self.entities[clock].modifiers.retain(|&it| it != id);
        }
        self.entities[id].modifies = modifies;
        if let Some((clock, _)) = modifies {
            self.entities[clock].modifiers.push(id);
        }
        let changed = [before, modifies].into_iter().flatten();
        for (clock, _) in changed {
            let factor = self.factor(clock);
            if let Some(nth) = self.clocks.find(Named::Own(clock)) {
                self.clocks.all[nth].factor = factor;
            }
        }
    }
}

//! The operations.

use super::{Model, clock::Clock, clocks::Nth, mail::Role};
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
            Op::Belong(slot, None) => self.on(slot, Self::disown),
            Op::Orphan(slot) => self.on(slot, |model, id| model.set_owner(id, NOWHERE)),
            Op::Child(slot, Some(parent)) => {
                if let (Some(id), Some(parent)) = (self.at(slot), self.at(parent)) {
                    self.set_child_of(id, Some(parent));
                }
            }
            Op::Child(slot, None) => self.on(slot, |model, id| model.set_child_of(id, None)),
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
                let id = self.ensure(slot);
                self.insert_life(id, delay, None);
            }
            Op::LiveSince(slot, delay, since) => {
                let id = self.ensure(slot);
                self.insert_life(id, delay, Some(since));
            }
            Op::Live(slot, None) => self.on(slot, Self::cancel_life),
            Op::Act(slot, action) => self.on(slot, |model, id| model.entities[id].action = action),
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
                self.on(slot, |model, id| {
                    let before = core::mem::replace(&mut model.entities[id].on, on);
                    if before.or(on).is_some() {
                        model.follow_default_parent(id);
                        model.follow_defaults(id);
                    }
                });
            }
            Op::Update(slot, priority, on) => {
                let id = self.ensure(slot);
                self.insert_update(id, priority, on);
            }
            Op::StopUpdate(slot) => self.on(slot, Self::stop_update),
            Op::PauseUpdates(from) => self.updates.paused_from = from,
            Op::Seed(seed) => (self.rules.seed, self.draws) = (seed, 0),
            ref op => self.apply_to_clock(op),
        }
    }

    fn apply_to_clock(&mut self, op: &Op) {
        match *op {
            Op::Clock(slot, parent, speed) => {
                let id = self.ensure(slot);
                // A clock on the game clock is on the clock of its entity.
                match self.named(parent) {
                    Named::Virtual => {
                        let parent = self.default_parent(id);
                        self.insert_clock(id, Some(parent), true, speed.get());
                    }
                    parent => self.insert_clock(id, Some(parent), false, speed.get()),
                }
            }
            Op::ManualClock(slot) => {
                let id = self.ensure(slot);
                self.insert_clock(id, None, false, 1.0);
            }
            Op::RemoveClock(slot) => self.on(slot, |model, id| {
                for (timer, kind) in model.remove_clock(id, false) {
                    model.retire(timer, kind);
                }
            }),
            Op::Speed(at, speed) => self.with_clock(at, |clock| clock.speed = speed.get()),
            Op::PauseClock(at, is_paused) => {
                self.with_clock(at, |clock| clock.is_paused = is_paused);
            }
            Op::SetParent(slot, parent) => {
                let parent = self.named(parent);
                if let Some(nth) = self.find_clock(At::Own(slot)) {
                    let is_set = self.clocks.set_parent(nth, Some(parent));
                    if is_set {
                        self.clocks.all[nth].has_default_parent = false;
                    }
                    self.refuse_unless(is_set);
                }
            }
            Op::SetNow(at, shown) => {
                let shown = self.rules.nanos(shown);
                self.with_clock(at, |clock| clock.set_now(shown));
            }
            Op::Advance(at, by) => {
                let by = self.rules.nanos(by);
                self.with_clock(at, |clock| clock.jump(by));
            }
            Op::AdvanceTo(at, shown) => {
                let shown = self.rules.nanos(shown);
                self.with_clock(at, |clock| {
                    clock.jump(shown.saturating_sub(clock.shown(clock.now)));
                });
            }
            Op::SkipTime(at, by) => {
                let by = self.rules.nanos(by);
                if let Some(nth) = self.find_clock(at) {
                    self.clocks.skip(nth, by);
                }
            }
            Op::Modify(slot, modified) => self.on(slot, |model, id| {
                let at = |(slot, factor, group)| Some((model.at(slot)?, factor, group));
                match modified.map(at) {
                    None => model.end_modifier(id),
                    Some(None) => {}
                    Some(modifies) => model.set_modifier(id, modifies),
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

    /// Changes a clock at once. What its time does, the clocks below follow.
    fn with_clock(&mut self, at: At, change: impl FnOnce(&mut Clock)) {
        if let Some(nth) = self.find_clock(at) {
            self.clocks.jump(nth, change);
        }
    }

    /// A clock that is inserted over another changes its settings, and keeps the time. It keeps its parent if the
    /// other one is missing. That one counts if it arrives before the next reading.
    fn insert_clock(&mut self, id: Id, parent: Option<Named>, is_default: bool, speed: f64) {
        match self.clocks.find(Named::Own(id)) {
            Some(nth) => {
                self.replace_parent(nth, parent, is_default);
                let clock = &mut self.clocks.all[nth];
                (clock.speed, clock.is_paused) = (speed, false);
            }
            None => {
                self.add_clock(id, parent, speed, 0);
                if let Some(clock) = self.clocks.all.last_mut() {
                    clock.has_default_parent = is_default;
                }
            }
        }
    }

    fn replace_parent(&mut self, nth: Nth, parent: Option<Named>, is_default: bool) {
        let is_missing = parent.is_some_and(|parent| self.clocks.find(parent).is_none());
        let is_set = self.clocks.set_parent(nth, parent);
        let clock = &mut self.clocks.all[nth];
        if is_set {
            clock.has_default_parent = is_default;
        }
        (clock.awaited, clock.awaits_default) = (parent.filter(|_| is_missing), is_default);
    }

    /// A clock that chose no parent runs on the clock of its entity.
    fn default_parent(&self, id: Id) -> Named {
        let on = self.entities[id].on.filter(|&on| on != Named::Own(id));
        on.unwrap_or(Named::Virtual)
    }

    /// The `OnClock` of an entity names another parent for its clock, unless that has chosen one. If it leaves, this is
    /// the clock of the owner.
    fn follow_default_parent(&mut self, id: Id) {
        let owner = Some(self.owner_of(id)).filter(|&owner| owner != id);
        let parent = match (self.entities[id].on, owner) {
            (None, Some(owner)) => self.clock_on(owner).unwrap_or(Named::Virtual),
            _ => self.default_parent(id),
        };
        if self.entities[id].on != Some(Named::Own(id))
            && let Some(nth) = self.clocks.find(Named::Own(id))
            && self.clocks.all[nth].has_default_parent
            && self.clocks.all[nth].parent != Some(parent)
        {
            self.replace_parent(nth, Some(parent), true);
        }
    }

    /// What is on the clock of the entity by default moves to the new one.
    fn add_clock(&mut self, id: Id, parent: Option<Named>, speed: f64, shown: u64) {
        let factor = self.factor(id);
        let is_disabled = self.entities[id].is_disabled;
        let settings = (speed, factor, is_disabled);
        self.clocks.add(id, parent, settings, shown);
        self.follow_defaults(id);
    }

    /// Before time passes, an entity with modifiers gets a clock, which shows the time of its parent.
    pub(super) fn add_modified_clocks(&mut self) {
        for id in core::mem::take(&mut self.modified) {
            let is_modified = self.exists(id) && !self.entities[id].modifiers.is_empty();
            if is_modified && self.clocks.find(Named::Own(id)).is_none() {
                let parent = self.clock_of(id, None);
                let now = self.clocks.find(parent).map_or(0, |nth| {
                    let clock = &self.clocks.all[nth];
                    clock.shown(clock.now)
                });
                self.add_clock(id, Some(parent), 1.0, now);
                if let Some(clock) = self.clocks.all.last_mut() {
                    clock.has_default_parent = true;
                }
            }
        }
        self.follow_parents();
    }

    /// Timers on the entity of a modifier follow the modified clock to another parent.
    fn follow_parents(&mut self) {
        for clock in core::mem::take(&mut self.clocks.moved) {
            for modifier in self.entities[clock].modifiers.clone() {
                let owned = self.entities[modifier].owned.clone();
                for id in [modifier].into_iter().chain(owned) {
                    self.follow_default(id);
                }
            }
        }
    }

    fn factor(&self, clock: Id) -> f64 {
        let modifiers = self.entities[clock].modifiers.iter();
        let modifiers = modifiers.filter_map(|&id| self.entities[id].modifies);
        let modifiers: Vec<_> = modifiers.map(|(_, it, group)| (it.get(), group)).collect();
        let strength = |factor: f64| factor.max(1.0 / factor);
        let mut product = 1.0;
        for (nth, &(factor, group)) in modifiers.iter().enumerate() {
            let beats = |&(at, &(other, of)): &(usize, &(f64, Option<usize>))| {
                let (by, own) = (strength(other), strength(factor));
                of == group && (by > own || by == own && at < nth)
            };
            if group.is_none() || !modifiers.iter().enumerate().any(|it| beats(&it)) {
                product *= factor;
            }
        }
        product
    }

    /// The factors of all modifiers of a clock multiply its speed. Of a group, only the strongest counts, and of
    /// equal ones the first.
    pub(super) fn set_modifier(&mut self, id: Id, modifies: Option<(Id, Ratio, Option<usize>)>) {
        let before = self.entities[id].modifies.take();
        if let Some((clock, ..)) = before {
            self.entities[clock].modifiers.retain(|&it| it != id);
        }
        self.entities[id].modifies = modifies;
        if let Some((clock, ..)) = modifies {
            self.entities[clock].modifiers.push(id);
        }
        let changed = [before, modifies].into_iter().flatten();
        for (clock, ..) in changed {
            match self.clocks.find(Named::Own(clock)) {
                Some(_) => self.update_factor(clock),
                None => self.modified.push(clock),
            }
        }
        if modifies.is_some() {
            self.follow_defaults(id);
        }
    }

    pub(super) fn end_modifier(&mut self, id: Id) {
        if self.entities[id].modifies.is_some() {
            self.set_modifier(id, None);
            self.follow_defaults(id);
        }
    }

    pub(super) fn update_factor(&mut self, clock: Id) {
        if let Some(nth) = self.clocks.find(Named::Own(clock)) {
            self.clocks.all[nth].factor = self.factor(clock);
        }
    }
}

//! The operations.

use bevy_due::{
    Clock, OnClock, PausedBy, Timer, UpdateComponent,
    clock::{ClockMut, SpeedModifier},
    prelude::*,
    timer::{Keyed, Pauses, RunsWhilePaused},
};
use bevy_ecs::{entity_disabling::Disabled, prelude::*};
use bevy_time::{Time, Virtual};

use super::{
    Condition, Held, Newcomer, Shared, handlers,
    timers::{action, change, change_clock, timer},
};
use crate::{
    entry::Entry,
    op::{At, Change, KEYS, Op, Slot, Spec},
};

pub(super) fn apply(world: &mut World, op: &Op) {
    let shared = world.resource::<Shared>().clone();
    Player { world, shared }.play(op);
    world.flush();
}

/// Plays operations in a world.
pub(super) struct Player<'w> {
    pub(super) world: &'w mut World,
    pub(super) shared: Shared,
}

impl Player<'_> {
    fn play(&mut self, op: &Op) {
        match *op {
            Op::Spawn(slot) => _ = self.ensure(slot),
            Op::Despawn(slot) => self.with(slot, |entity| entity.despawn()),
            Op::Belong(slot, Some(owner)) => {
                if let Some(owner) = self.at(owner) {
                    self.change(slot, |entity| _ = entity.insert(OwnedBy(owner)));
                }
            }
            Op::Belong(slot, None) => self.change(slot, |entity| _ = entity.remove::<OwnedBy>()),
            Op::Orphan(slot) => {
                let owner = OwnedBy(self.shared.cast().nowhere);
                self.change(slot, |entity| _ = entity.insert(owner));
            }
            Op::Child(slot, Some(parent)) => {
                if let Some(parent) = self.at(parent) {
                    self.change(slot, |entity| _ = entity.insert(ChildOf(parent)));
                }
            }
            Op::Child(slot, None) => self.change(slot, |entity| _ = entity.remove::<ChildOf>()),
            Op::Key(slot, Some(key)) => {
                self.change(slot, |entity| _ = entity.insert(Keyed::new(KEYS[key])));
            }
            Op::Key(slot, None) => self.change(slot, |entity| _ = entity.remove::<Keyed>()),
            Op::Arm(slot, spec) => {
                let entity = self.ensure(slot).id();
                let timer = timer(&self.shared, spec);
                self.world.entity_mut(entity).insert(timer);
            }
            Op::Disarm(slot) => self.change(slot, |entity| _ = entity.remove::<Timer>()),
            Op::SetTimer(owner, key, slot, spec) => self.set_timer(owner, key, slot, spec, false),
            Op::RefreshTimer(owner, key, slot, spec) => {
                self.set_timer(owner, key, slot, spec, true);
            }
            Op::CancelKey(owner, key) => {
                if let Some(owner) = self.at(owner) {
                    let was_armed = self.world.cancel_timer(owner, KEYS[key]);
                    self.refuse_unless(was_armed);
                }
            }
            Op::CancelAll(owner) => self.change(owner, |owner| _ = owner.cancel_timers()),
            Op::Change(slot, how) => self.change_timer(slot, None, how),
            Op::ChangeKey(owner, key, how) => self.change_timer(owner, Some(key), how),
            Op::DelayAll(owner, by) => {
                let by = self.shared.rules.span(by);
                self.change(owner, |owner| _ = owner.delay_timers_by(by));
            }
            Op::Live(slot, Some(delay)) => {
                let life = DespawnAfter::new(self.shared.rules.span(delay));
                self.ensure(slot).insert(life);
            }
            Op::LiveSince(slot, delay, since) => {
                let span = |units| self.shared.rules.span(units);
                let life = DespawnAfter::new(span(delay)).since(span(since));
                self.ensure(slot).insert(life);
            }
            Op::Live(slot, None) => {
                self.change(slot, |entity| _ = entity.remove::<DespawnAfter>());
            }
            Op::Act(slot, Some(act)) => {
                self.change(slot, |entity| _ = entity.insert(action(act)));
            }
            Op::Act(slot, None) => self.change(slot, |entity| _ = entity.remove::<TimerAction>()),
            Op::Update(slot, priority, on) => {
                let entity = self.ensure(slot).id();
                let update = handlers::update(&self.shared).with_priority(priority);
                let update = match on {
                    Some(on) => update.on(self.shared.cast().clock(on)),
                    None => update,
                };
                self.world.entity_mut(entity).insert(update);
            }
            Op::StopUpdate(slot) => {
                self.change(slot, |entity| _ = entity.remove::<UpdateComponent>());
            }
            Op::PauseUpdates(Some(from)) => self.world.commands().pause_updates_from(from),
            Op::PauseUpdates(None) => self.world.commands().resume_updates(),
            Op::Seed(seed) => self.world.set_delay_seed(seed),
            ref op => self.play_pause(op),
        }
    }

    fn play_pause(&mut self, op: &Op) {
        match *op {
            Op::Pause(slot, true) => self.change(slot, |entity| _ = entity.insert(Paused)),
            Op::Pause(slot, false) => self.change(slot, |entity| _ = entity.remove::<Paused>()),
            Op::Disable(slot, true) => self.change(slot, |entity| _ = entity.insert(Disabled)),
            Op::Disable(slot, false) => {
                self.change(slot, |entity| _ = entity.remove::<Disabled>());
            }
            Op::RunWhilePaused(slot, true) => {
                self.change(slot, |entity| _ = entity.insert(RunsWhilePaused));
            }
            Op::RunWhilePaused(slot, false) => {
                self.change(slot, |entity| _ = entity.remove::<RunsWhilePaused>());
            }
            Op::PauseFor(slot, span) => {
                let span = self.shared.rules.span(span);
                let Some(target) = self.at(slot) else { return };
                self.world.entity_mut(target).pause_for(span);
                let pause = self.world.get::<PausedBy>(target);
                let pause = pause.and_then(|by| by.iter().last());
                let pause = pause.expect("the pause exists");
                self.shared.cast().name(pause);
            }
            Op::EndPause(slot) => {
                let Some(target) = self.at(slot) else { return };
                let pause = self.world.get::<PausedBy>(target);
                if let Some(pause) = pause.and_then(|by| by.iter().next()) {
                    assert_eq!(self.world.get::<Pauses>(pause), Some(&Pauses(target)));
                    self.world.despawn(pause);
                }
            }
            Op::Pauses(slot, Some(target)) => {
                if let Some(target) = self.at(target) {
                    self.change(slot, |entity| _ = entity.insert(Pauses(target)));
                }
            }
            Op::Pauses(slot, None) => self.change(slot, |entity| _ = entity.remove::<Pauses>()),
            Op::Hold(slot, true) => self.change(slot, |entity| _ = entity.insert(Held)),
            Op::Hold(slot, false) => self.change(slot, |entity| _ = entity.remove::<Held>()),
            Op::Condition(condition) => self.world.insert_resource(Condition(condition)),
            Op::PauseGame(is_paused) => {
                let mut time = self.world.resource_mut::<Time<Virtual>>();
                match is_paused {
                    true => time.pause(),
                    false => time.unpause(),
                }
            }
            ref op => self.play_clock(op),
        }
    }

    fn play_clock(&mut self, op: &Op) {
        match *op {
            Op::On(slot, Some(at)) => {
                let on = OnClock::new(self.shared.cast().clock(at));
                self.change(slot, |entity| _ = entity.insert(on));
            }
            Op::On(slot, None) => self.change(slot, |entity| _ = entity.remove::<OnClock>()),
            Op::Clock(slot, parent, speed) => {
                let mut entity = self.ensure(slot);
                let parent = entity.resource::<Shared>().cast().clock(parent);
                // A clock on the game clock is on the clock of its entity.
                let clock = match parent {
                    ClockId::Virtual => Clock::new(),
                    parent => Clock::of(parent),
                };
                entity.insert(clock.with_speed(speed.get()));
            }
            Op::ManualClock(slot) => _ = self.ensure(slot).insert(Clock::manual()),
            Op::RemoveClock(slot) => self.change(slot, |entity| _ = entity.remove::<Clock>()),
            Op::Speed(at, speed) => self.with_clock(at, |clock| clock.set_speed(speed.get())),
            Op::PauseClock(at, true) => self.with_clock(at, |clock| clock.pause()),
            Op::PauseClock(at, false) => self.with_clock(at, |clock| clock.unpause()),
            Op::SetParent(slot, parent) => {
                let parent = self.shared.cast().clock(parent);
                let clock = self.shared.cast().clock(At::Own(slot));
                let set = self
                    .world
                    .change_clock(clock, |clock| clock.set_parent(parent));
                self.refuse_unless(!matches!(set, Ok(Err(_))));
            }
            Op::SetNow(at, shown) => {
                let shown = self.shared.rules.span(shown);
                self.with_clock(at, |clock| clock.set_now(shown));
            }
            Op::Advance(at, by) => {
                let by = self.shared.rules.span(by);
                let clock = self.shared.cast().clock(at);
                self.world
                    .change_clock(clock, |clock| clock.advance_by(by))
                    .ok();
            }
            Op::AdvanceTo(at, shown) => {
                let shown = self.shared.rules.span(shown);
                self.with_clock(at, |clock| clock.advance_to(shown));
            }
            Op::SkipTime(at, by) => {
                let by = self.shared.rules.span(by);
                self.with_clock(at, |clock| clock.skip_by(by));
            }
            Op::Modify(slot, Some((clock, factor, group))) => {
                if let Some(clock) = self.at(clock) {
                    let modifier = SpeedModifier::new(clock, factor.get());
                    let modifier = match group {
                        Some(group) => modifier.in_group(KEYS[group]),
                        None => modifier,
                    };
                    self.change(slot, |entity| _ = entity.insert(modifier));
                }
            }
            Op::Modify(slot, None) => {
                self.change(slot, |entity| _ = entity.remove::<SpeedModifier>());
            }
            ref op => self.play_mail(op),
        }
    }

    /// Returns the entity in a slot, if it exists.
    pub(super) fn at(&self, slot: Slot) -> Option<Entity> {
        let entity = self.shared.cast().entity(slot);
        self.world
            .entities()
            .contains_spawned(entity)
            .then_some(entity)
    }

    /// Returns the entity in a slot. Spawns it if it does not exist.
    pub(super) fn ensure(&mut self, slot: Slot) -> EntityWorldMut<'_> {
        let entity = match self.at(slot) {
            Some(entity) => entity,
            None => {
                let entity = self.world.spawn_empty().id();
                self.put(slot, entity);
                entity
            }
        };
        self.world.entity_mut(entity)
    }

    /// Gives a new entity its number and its slot.
    fn put(&mut self, slot: Slot, entity: Entity) {
        let mut cast = self.shared.cast();
        let id = cast.name(entity);
        cast.slots[slot] = Some(id);
    }

    pub(super) fn change(&mut self, slot: Slot, change: impl FnOnce(&mut EntityWorldMut)) {
        self.with(slot, |mut entity| change(&mut entity));
    }

    fn with(&mut self, slot: Slot, change: impl FnOnce(EntityWorldMut)) {
        if let Some(entity) = self.at(slot) {
            change(self.world.entity_mut(entity));
        }
    }

    fn with_clock(&mut self, at: At, change: impl FnOnce(&mut ClockMut)) {
        let clock = self.shared.cast().clock(at);
        change_clock(self.world, clock, change);
    }

    fn set_timer(&mut self, owner: Slot, key: usize, slot: Slot, spec: Spec, refreshes: bool) {
        let Some(owner) = self.at(owner) else { return };
        let timer = (timer(&self.shared, spec), Newcomer);
        let before = self.shared.cast().entities.len();
        let mut entity = self.world.entity_mut(owner);
        match refreshes {
            true => entity.refresh_timer(KEYS[key], timer),
            false => entity.set_timer(KEYS[key], timer),
        };
        let mut cast = self.shared.cast();
        if cast.entities.len() > before {
            cast.slots[slot] = Some(before);
        }
    }

    fn change_timer(&mut self, slot: Slot, key: Option<usize>, how: Change) {
        let Some(entity) = self.at(slot) else { return };
        let (shared, mut is_done) = (self.shared.clone(), true);
        let changed = match key {
            None => self
                .world
                .change_timer(entity, |timer| is_done = change(timer, how, &shared)),
            Some(key) => self.world.change_keyed_timer(entity, KEYS[key], |timer| {
                is_done = change(timer, how, &shared);
            }),
        };
        self.refuse_unless(changed.is_ok() && is_done);
    }

    fn refuse_unless(&mut self, is_done: bool) {
        if !is_done {
            self.shared.log(Entry::Refused);
        }
    }
}

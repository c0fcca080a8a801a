//! The crate in a real app, which plays the same operations.
//!
//! The [`App`] can be replaced: the [`Cast`] names the entities, [`install`] adds all handlers to an
//! app, and all callbacks of a kind are equal.

mod apply;
mod handlers;
mod mail;
mod moving;
mod reload;
mod revive;
mod rollback;
mod timers;
mod view;

use core::panic::AssertUnwindSafe;
use std::{
    collections::VecDeque,
    panic::catch_unwind,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bevy_app::{App, First};
use bevy_due::{ClockId, conditions::run_clock_if, message::ReplyTo, prelude::*};
use bevy_ecs::{
    entity::EntityHashMap,
    error::{FallbackErrorHandler, ignore},
    prelude::*,
};
use bevy_time::{Fixed, Time};

use crate::{
    entry::{Entry, Id, NOWHERE, Named},
    op::{At, FIRED, Op, SLOTS, Slot, Topics},
    rules::Rules,
    support::advance,
};
use rollback::Rollback;

pub(crate) struct Game {
    app: App,
    rules: Rules,
    shared: Shared,
    rollback: Rollback,
}

/// The entities of a script.
struct Cast {
    /// Every entity ever spawned, in order.
    entities: Vec<Entity>,
    ids: EntityHashMap<Id>,
    slots: [Option<Id>; SLOTS],
    /// The entities of all requests ever made.
    requests: Vec<Entity>,
    /// An entity that does not exist.
    nowhere: Entity,
}

/// The events so far, and the reactions of the next handlers.
#[derive(Default)]
struct Record {
    reactions: VecDeque<Vec<Op>>,
    log: Vec<Entry>,
    /// The number of messages ever sent.
    serial: u64,
    /// The requests that were heard.
    heard: VecDeque<ReplyTo>,
    last_fired: Option<TimerFired>,
}

/// The data that the game and all its handlers share.
#[derive(Resource, Clone)]
struct Shared {
    rules: Rules,
    cast: Arc<Mutex<Cast>>,
    record: Arc<Mutex<Record>>,
}

/// Marks the clocks that run only under the condition.
#[derive(Component)]
struct Held;

/// Marks an entity that the crate spawns. It gets its number at once, because events may name it.
#[derive(Component)]
struct Newcomer;

/// The topics of a `MessageComponent`.
#[derive(Component, Clone, Copy)]
struct Following(Topics);

#[derive(Resource, PartialEq)]
struct Condition(bool);

impl Game {
    pub(crate) fn new(rules: Rules) -> Self {
        let mut app = rules.app();
        set_step(&mut app, rules);
        let nowhere = app.world_mut().spawn_empty().id();
        app.world_mut().despawn(nowhere);
        let cast = Cast {
            entities: Vec::new(),
            ids: [nowhere, Entity::PLACEHOLDER]
                .map(|entity| (entity, NOWHERE))
                .into_iter()
                .collect(),
            slots: [None; SLOTS],
            requests: Vec::new(),
            nowhere,
        };
        let shared = Shared {
            rules,
            cast: Arc::new(Mutex::new(cast)),
            record: Arc::default(),
        };
        install(&mut app, &shared);
        handlers::add_codecs(app.world_mut());
        for clock in [
            ClockId::Real,
            ClockId::Virtual,
            ClockId::Frames,
            ClockId::Fixed,
        ] {
            let ahead = core::time::Duration::from_nanos(rules.ahead);
            app.world_mut()
                .fast_forward(clock, ahead)
                .expect("it exists");
        }
        Self {
            app,
            rules,
            shared,
            rollback: Rollback::default(),
        }
    }

    /// Plays an operation between frames.
    pub(crate) fn play(&mut self, op: &Op) {
        match op {
            Op::Frame(by, then) => {
                self.shared.record().reactions = then.0.iter().cloned().collect();
                advance(&mut self.app, self.rules.span(*by));
            }
            Op::Reload(by, then) => {
                self.reload();
                self.shared.record().reactions = then.0.iter().cloned().collect();
                advance(&mut self.app, self.rules.span(*by));
            }
            Op::Revive(slot, by, then) => {
                self.revive(*slot);
                self.shared.record().reactions = then.0.iter().cloned().collect();
                advance(&mut self.app, self.rules.span(*by));
            }
            Op::Move(slot, on_the_way, by, then) => {
                self.move_away_and_back(*slot, self.rules.span(*on_the_way));
                self.shared.record().reactions = then.0.iter().cloned().collect();
                advance(&mut self.app, self.rules.span(*by));
            }
            Op::Forward(at, span, then) => {
                advance(&mut self.app, self.rules.span(0));
                self.shared.record().reactions = then.0.iter().cloned().collect();
                let span = self.rules.span(*span);
                let clock = self.shared.cast().clock(*at);
                let world = self.app.world_mut();
                let stats = catch_unwind(AssertUnwindSafe(|| world.fast_forward(clock, span)));
                let stats = stats.ok().and_then(Result::ok);
                let stats = stats.map(|stats| [stats.fired, stats.missed, stats.cancelled]);
                self.shared.record().log.push(Entry::Forwarded(stats));
            }
            Op::ForwardToNext(at, then) => {
                advance(&mut self.app, self.rules.span(0));
                self.shared.record().reactions = then.0.iter().cloned().collect();
                let clock = self.shared.cast().clock(*at);
                let world = self.app.world_mut();
                let by = catch_unwind(AssertUnwindSafe(|| world.fast_forward_to_next(clock)));
                let by = by.ok().and_then(Result::ok);
                let by = by.map(|by| by.map(|by| by.as_nanos() as u64));
                self.shared.record().log.push(Entry::ForwardedBy(by));
            }
            Op::Snapshot => self.snapshot(),
            Op::Restore(nth) => self.restore(*nth),
            op => apply::apply(self.app.world_mut(), op),
        }
        self.shared.record().reactions.clear();
    }
}

impl Shared {
    fn cast(&self) -> MutexGuard<'_, Cast> {
        self.cast.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_serial(&self) -> u64 {
        let mut record = self.record();
        record.serial += 1;
        record.serial
    }

    fn log(&self, entry: Entry) {
        self.record().log.push(entry);
    }

    fn note_fired(&self, entity: Entity) {
        let mut cast = self.cast();
        cast.slots[FIRED] = Some(cast.id(entity));
    }
}

impl Cast {
    /// Gives the next number to an entity.
    fn name(&mut self, entity: Entity) -> Id {
        let id = self.entities.len();
        self.entities.push(entity);
        self.ids.insert(entity, id);
        id
    }

    /// Returns the last entity in a slot, or an entity that does not exist.
    fn entity(&self, slot: Slot) -> Entity {
        self.slots[slot].map_or(self.nowhere, |id| self.entities[id])
    }

    fn id(&self, entity: Entity) -> Id {
        self.ids[&entity]
    }

    fn clock(&self, at: At) -> ClockId {
        match at {
            At::Real => ClockId::Real,
            At::Virtual => ClockId::Virtual,
            At::Frames => ClockId::Frames,
            At::Fixed => ClockId::Fixed,
            At::Own(slot) => ClockId::Own(self.entity(slot)),
        }
    }

    fn named(&self, clock: ClockId) -> Named {
        match clock {
            ClockId::Real => Named::Real,
            ClockId::Virtual => Named::Virtual,
            ClockId::Frames => Named::Frames,
            ClockId::Fixed => Named::Fixed,
            ClockId::Own(entity) => Named::Own(self.id(entity)),
        }
    }
}

fn set_step(app: &mut App, rules: Rules) {
    if rules.step > 0 {
        let mut fixed = app.world_mut().resource_mut::<Time<Fixed>>();
        fixed.set_timestep(rules.span(rules.step));
    }
}

/// Adds the observers, handlers, systems and resources of the game to an app with the plugin.
fn install(app: &mut App, shared: &Shared) {
    app.insert_resource(FallbackErrorHandler(ignore))
        .insert_resource(shared.clone())
        .insert_resource(Condition(true))
        .add_message::<handlers::Word>()
        .add_systems(
            First,
            run_clock_if::<Held, _>(resource_equals(Condition(true))),
        )
        .add_observer(|added: On<Add<Newcomer>>, shared: Res<Shared>| {
            shared.cast().name(added.entity);
        })
        .add_observer(handlers::on_cancelled);
    if shared.rules.is_observed {
        app.add_observer(handlers::on_fired)
            .add_observer(handlers::on_owned_fired);
    }
    let world = app.world_mut();
    world.add_timer_handler(handlers::NAME, handlers::named);
}

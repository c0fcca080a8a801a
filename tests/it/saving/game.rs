//! A game that can be saved and loaded at any frame.

use std::borrow::Cow;

use core::time::Duration;

use bevy_app::App;
use bevy_due::{
    Clock, ClockId, DespawnAfter, MissedTicks, OnClock, OwnedBy, Paused, Timer, TimerAction,
    TimerFired,
    clock::SpeedModifier,
    prelude::*,
    save::{SaveWorldExt, SavedTimers},
    timer::Keyed,
};
use bevy_ecs::{
    entity::EntityHashMap,
    entity_disabling::Disabled,
    message::{MessageCursor, Messages},
    prelude::*,
};
use bevy_time::{TimePlugin, TimeUpdateStrategy};

use super::script::Random;

/// An entity by its number in the order of spawning.
type Id = usize;

/// A firing with all its fields.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Firing {
    entity: Option<Id>,
    owner: Option<Id>,
    clock: Result<Option<Id>, ClockId>,
    key: Option<Cow<'static, str>>,
    deadline: Duration,
    lateness: Duration,
    count: u64,
    missed: u64,
    is_last: bool,
}

/// What a player can see in a frame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    firings: Vec<Firing>,
    alive: Vec<bool>,
    timers: Vec<String>,
    clocks: Vec<String>,
    called: Vec<(&'static str, Option<Id>)>,
}

impl Frame {
    /// Describes the first difference from the frame that should have been.
    pub(crate) fn difference(&self, expected: &Self) -> Option<String> {
        let lines = |frame: &Self| {
            let alive = (0..).zip(&frame.alive).filter(|(_, alive)| **alive);
            let mut lines: Vec<String> = Vec::new();
            lines.extend(frame.firings.iter().map(|it| format!("{it:?}")));
            lines.extend(frame.called.iter().map(|it| format!("{it:?}")));
            lines.push(format!(
                "alive: {:?}",
                alive.map(|(id, _): (Id, _)| id).collect::<Vec<_>>()
            ));
            lines.extend(frame.timers.iter().cloned());
            lines.extend(frame.clocks.iter().cloned());
            lines
        };
        let (found, expected) = (lines(self), lines(expected));
        let most = found.len().max(expected.len());
        let nth = (0..most).find(|&nth| found.get(nth) != expected.get(nth))?;
        Some(format!(
            "\n{:?}\ninstead of\n{:?}",
            found.get(nth),
            expected.get(nth)
        ))
    }
}

/// The named handlers that ran.
#[derive(Resource, Default)]
struct Called(Vec<(&'static str, Entity)>);

pub(crate) struct Game {
    pub(crate) seed: u64,
    pub(crate) app: App,
    pub(crate) entities: Vec<Entity>,
    pub(crate) fired: MessageCursor<TimerFired>,
}

fn app(seed: u64) -> App {
    let mut app = App::new();
    let plugin = DuePlugin {
        delay_seed: seed,
        ..DuePlugin::default()
    };
    app.add_plugins((TimePlugin, plugin))
        .init_resource::<Called>()
        .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::ZERO));
    for name in ["grow", "shrink"] {
        let note = move |In(fired): In<TimerFired>, mut called: ResMut<Called>| {
            called.0.push((name, fired.entity()));
        };
        app.world_mut().add_timer_handler(name, note);
    }
    app.update();
    app
}

impl Game {
    pub(crate) fn new(seed: u64) -> Self {
        let mut game = Self {
            seed,
            app: app(seed),
            entities: Vec::new(),
            fired: MessageCursor::default(),
        };
        let random = &mut Random::new(seed);
        for _ in 0..3 {
            game.spawn_clock(random);
        }
        for _ in 0..3 {
            game.spawn(OwnerOf);
        }
        for _ in 0..12 {
            game.spawn_timer(random);
        }
        game
    }

    /// Saves the timers, loads them into a new app, and goes on there.
    #[allow(dead_code, reason = "only some test targets save")]
    pub(crate) fn save_and_load(self, through: impl Fn(SavedTimers) -> SavedTimers) -> Self {
        self.move_to_new_app(|world, loaded, map| {
            let saved = world.save_timers().expect("all actions are data");
            let loaded = loaded.load_timers(&through(saved), map);
            loaded.expect("the data should be valid");
        })
    }

    #[allow(dead_code, reason = "only scenes need the world")]
    pub(crate) fn world_mut(&mut self) -> &mut World {
        self.app.world_mut()
    }

    /// Goes on in a new app, to which a function moves everything but the game's own components.
    pub(crate) fn move_to_new_app(
        mut self,
        move_timers: impl FnOnce(&mut World, &mut World, &mut EntityHashMap<Entity>),
    ) -> Self {
        let mut loaded = app(self.seed);
        let mut map = EntityHashMap::default();
        // The game keeps its own components itself.
        for &entity in &self.entities {
            if self.app.world().get_entity(entity).is_ok() {
                let copy = loaded.world_mut().spawn_empty().id();
                if self.app.world().get::<OwnerOf>(entity).is_some() {
                    loaded.world_mut().entity_mut(copy).insert(OwnerOf);
                }
                if self.app.world().get::<Disabled>(entity).is_some() {
                    loaded.world_mut().entity_mut(copy).insert(Disabled);
                }
                map.insert(entity, copy);
            }
        }
        move_timers(self.app.world_mut(), loaded.world_mut(), &mut map);
        for entity in &mut self.entities {
            // A new entity may have the number of one that is gone.
            *entity = map.get(entity).copied().unwrap_or(Entity::PLACEHOLDER);
        }
        let messages = loaded.world().resource::<Messages<TimerFired>>();
        let fired = messages.get_cursor_current();
        Self {
            app: loaded,
            fired,
            ..self
        }
    }

    /// Changes the game before a frame, as follows from the seed and the number of the frame.
    pub(crate) fn prepare(&mut self, frame: usize) {
        let random = &mut Random::new(self.seed ^ (frame as u64 + 1) << 32);
        for _ in 0..random.below(4) {
            self.change(random);
        }
    }

    /// Plays a frame.
    pub(crate) fn play(&mut self, frame: usize) -> Frame {
        let random = &mut Random::new(self.seed ^ (frame as u64 + 1) << 40);
        let by = Duration::from_millis(random.pick(&[0, 7, 10, 16, 33, 40, 100, 250]));
        self.app
            .insert_resource(TimeUpdateStrategy::ManualDuration(by));
        self.app.update();
        self.observe()
    }

    fn observe(&mut self) -> Frame {
        let world = self.app.world();
        let id = |entity| self.entities.iter().position(|&it| it == entity);
        let messages = world.resource::<Messages<TimerFired>>();
        let clock = |clock| match clock {
            ClockId::Own(entity) => Ok(id(entity)),
            clock => Err(clock),
        };
        let firings = self.fired.read(messages).map(|fired| Firing {
            entity: id(fired.entity()),
            owner: id(fired.owner()),
            clock: clock(fired.clock()),
            key: fired.key(),
            deadline: fired.deadline(),
            lateness: fired.lateness(),
            count: fired.count(),
            missed: fired.missed(),
            is_last: fired.is_last(),
        });
        let firings = firings.collect();
        let called = world.resource::<Called>().0.clone();
        let called = called.into_iter().map(|(name, entity)| (name, id(entity)));
        let called = called.collect();
        let alive = |&entity: &Entity| world.get_entity(entity).is_ok();
        let alive = self.entities.iter().map(alive).collect();
        let clocks = self.entities.iter().filter_map(|&entity| {
            let clock = world.get::<Clock>(entity)?;
            let now = world.clock_now(entity).expect("a clock");
            Some(format!("{now:?} {} {}", clock.speed(), clock.is_paused()))
        });
        let clocks = clocks.collect();
        let entities = self.entities.clone();
        let id = |entity| entities.iter().position(|&it| it == entity);
        let timers = self.app.world_mut().with_timers(|timers| {
            let timers = timers.iter().map(|timer| {
                let owner = id(timer.owner);
                let clock = match timer.clock {
                    ClockId::Own(entity) => format!("{:?}", id(entity)),
                    clock => format!("{clock}"),
                };
                format!(
                    "{:?} of {owner:?} on {clock} at {:?}: {:?} of {:?}, every {:?}, {} fired, {:?} left, {}",
                    id(timer.entity),
                    timer.deadline,
                    timer.remaining,
                    timer.wait,
                    timer.interval,
                    timer.count,
                    timer.left,
                    timer.paused
                )
            });
            let mut timers: Vec<String> = timers.collect();
            timers.sort();
            timers
        });
        self.app.world_mut().resource_mut::<Called>().0.clear();
        Frame {
            firings,
            alive,
            timers,
            clocks,
            called,
        }
    }

    fn spawn(&mut self, bundle: impl Bundle) -> Entity {
        let entity = self.app.world_mut().spawn(bundle).id();
        self.entities.push(entity);
        entity
    }

    fn alive(&self) -> Vec<Entity> {
        let world = self.app.world();
        let alive = self.entities.iter().copied();
        alive.filter(|&it| world.get_entity(it).is_ok()).collect()
    }

    fn with<C: Component>(&self, random: &mut Random) -> Option<Entity> {
        let world = self.app.world();
        let mut with = self.alive();
        with.retain(|&entity| world.get::<C>(entity).is_some());
        (!with.is_empty()).then(|| random.pick(&with))
    }

    fn clock(&self, random: &mut Random) -> ClockId {
        match random.below(8) {
            0 => ClockId::Real,
            1 => ClockId::Frames,
            2 => ClockId::Fixed,
            3 | 4 => ClockId::Virtual,
            _ => self
                .with::<Clock>(random)
                .map_or(ClockId::Virtual, ClockId::Own),
        }
    }

    fn spawn_clock(&mut self, random: &mut Random) {
        let mut clock = Clock::of(self.clock(random));
        clock = clock.with_speed(random.pick(&[0.0, 1.0 / 3.0, 0.5, 1.0, 1.0, 2.5]));
        if random.one_in(3) {
            clock.set_now(Duration::from_secs(1000));
        }
        self.spawn(clock);
    }

    fn timer(&self, random: &mut Random) -> Timer {
        let span = random.span(50);
        let interval = random.span(40) + Duration::from_millis(10);
        let mut timer = match random.below(6) {
            0 => Timer::after(span),
            1 => Timer::after_between(span..=span + interval),
            2 => Timer::every_between(interval..=interval + span),
            3 => Timer::every(interval).first_after(span),
            _ => Timer::every(interval),
        };
        if timer.interval().is_some() && random.one_in(3) {
            timer = timer.times(1 + random.below(5) as u32);
        }
        if random.one_in(2) {
            timer = timer.on(self.clock(random));
        }
        match random.below(6) {
            0 => timer.despawn_when_done(),
            1 => timer.keep_when_done(),
            2 => timer.with_missed_ticks(MissedTicks::Skip),
            3 => timer.with_missed_ticks(MissedTicks::Delay),
            _ => timer,
        }
    }

    fn spawn_timer(&mut self, random: &mut Random) {
        let timer = self.timer(random);
        let entity = self.spawn(timer);
        let owner = self.with::<OwnerOf>(random);
        let clock = self.clock(random);
        let mut entity = self.app.world_mut().entity_mut(entity);
        if let Some(owner) = owner.filter(|_| random.one_in(2)) {
            entity.insert(OwnedBy(owner));
            if random.one_in(2) {
                entity.insert(Keyed::new(random.pick(&["a", "b", "c", "d"])));
            }
        }
        if random.one_in(4) {
            entity.insert(DespawnAfter::new(random.span(200)));
        }
        if random.one_in(4) {
            entity.insert(OnClock(clock));
        }
        if random.one_in(4) {
            entity.insert(TimerAction::named(random.pick(&["grow", "shrink"])));
        }
        if random.one_in(8) {
            entity.insert(Paused);
        }
    }

    fn change(&mut self, random: &mut Random) {
        match random.below(14) {
            0 | 1 => self.spawn_timer(random),
            2 => self.spawn_clock(random),
            3 => _ = self.spawn(OwnerOf),
            4 | 5 => self.pause_something(random),
            6 | 7 => self.change_clock(random),
            8 | 9 => self.change_timer(random),
            10 => {
                let timer = self.timer(random);
                if let Some(entity) = self.with::<Timer>(random) {
                    self.app.world_mut().entity_mut(entity).insert(timer);
                }
            }
            11 => {
                let alive = self.alive();
                if random.one_in(3) && !alive.is_empty() {
                    self.app.world_mut().despawn(random.pick(&alive));
                }
            }
            12 => {
                if let Some(entity) = self.with::<Timer>(random) {
                    self.app.world_mut().entity_mut(entity).remove::<Timer>();
                }
            }
            _ => {
                if let Some(clock) = self.with::<Clock>(random) {
                    let factor = random.pick(&[0.0, 0.5, 3.0]);
                    let lifetime = DespawnAfter::new(random.span(40));
                    self.spawn((SpeedModifier::new(clock, factor), lifetime));
                }
            }
        }
    }

    fn pause_something(&mut self, random: &mut Random) {
        let alive = self.alive();
        if alive.is_empty() {
            return;
        }
        let mut entity = self.app.world_mut().entity_mut(random.pick(&alive));
        match random.below(5) {
            0 => _ = entity.insert(Paused),
            1 | 2 => _ = entity.remove::<Paused>(),
            3 => _ = entity.pause_for(random.span(30)),
            _ if entity.contains::<Disabled>() => _ = entity.remove::<Disabled>(),
            _ => _ = entity.insert(Disabled),
        }
    }

    fn change_clock(&mut self, random: &mut Random) {
        let Some(entity) = self.with::<Clock>(random) else {
            return;
        };
        let span = random.span(300);
        let mut clock = self.app.world_mut().get_mut::<Clock>(entity).unwrap();
        match random.below(6) {
            0 => clock.pause(),
            1 | 2 => clock.unpause(),
            3 => clock.set_speed(random.pick(&[0.0, 0.25, 1.0 / 3.0, 1.0, 1.7])),
            4 => clock.advance_by(span),
            _ => clock.set_now(span),
        }
    }

    fn change_timer(&mut self, random: &mut Random) {
        let Some(entity) = self.with::<Timer>(random) else {
            return;
        };
        let span = random.span(40);
        let left = 1 + random.below(4) as u32;
        let clock = self.clock(random);
        let op = random.below(7);
        let world = self.app.world_mut();
        let changed = world.change_timer(entity, |timer| match op {
            0 => timer.restart(),
            1 => timer.refresh(),
            2 => timer.set_left(left),
            3 => timer.set_interval(span + Duration::from_millis(10)),
            4 => timer.set_remaining(span),
            5 => timer.delay_by(span),
            _ => _ = timer.set_clock(clock),
        });
        _ = changed;
    }
}

/// An entity that owns timers.
#[derive(Component)]
pub(crate) struct OwnerOf;

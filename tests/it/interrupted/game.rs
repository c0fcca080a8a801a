//! A random game in two worlds. What it logs follows from its script alone.

use core::{fmt, time::Duration};
use std::collections::VecDeque;

use bevy_app::App;
use bevy_due::{
    Clock, ClockId, Clocks, Cooldown, OnClock, Owned, OwnedBy, Paused, PausedBy, TimerCancelled,
    TimerFired, message::MessageWorldExt, prelude::*, save::SaveWorldExt, timer::TimerStatus,
};
use bevy_ecs::{
    entity::EntityHashMap,
    entity_disabling::Disabled,
    error::{FallbackErrorHandler, ignore},
    message::Messages,
    prelude::*,
};
use bevy_time::{TimePlugin, TimeUpdateStrategy};
use serde::{Deserialize, Serialize};

use super::{
    play::{ACT, act, at, change_clock, ears, ensure, play, timer},
    script::{Frame, Op, PARTIES, SLOTS, Script, Way},
};

pub(crate) const CLOCKS: [ClockId; 4] = [
    ClockId::Real,
    ClockId::Virtual,
    ClockId::Fixed,
    ClockId::Frames,
];

pub(crate) struct Game {
    pub(crate) worlds: [App; 2],
    /// The world of each party.
    pub(crate) homes: [usize; PARTIES],
    settings: Settings,
}

#[derive(Clone, Copy)]
struct Settings {
    is_observed: bool,
    seed: u64,
    /// Each world draws delays of its own, so a game with a move has neither random ones nor slack.
    draws: bool,
}

/// What each world knows of the game.
#[derive(Resource, Clone, Default)]
pub(crate) struct Cast {
    /// The entities of the parties in this world.
    pub(crate) slots: [[Option<Entity>; SLOTS]; PARTIES],
    /// What the next handlers do.
    pub(crate) reactions: [VecDeque<Vec<Op>>; PARTIES],
    pub(crate) log: Vec<(usize, Entry)>,
    /// The time of each built-in clock when the game began.
    start: [Duration; CLOCKS.len()],
    pub(crate) draws: bool,
}

/// What happened to a party. Entities are named by their slot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entry {
    Fired(TimerFired),
    Cancelled(TimerCancelled),
    /// The handler was called for a firing with this count.
    Acted(Entity, u64),
    Heard(Entity, Heard),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Heard {
    Note(u8),
    Word(u8),
    Question { replies: bool },
    Answer,
    NoAnswer,
}

/// What a player can see of an entity after a frame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct View {
    name: Entity,
    timer: Option<TimerStatus>,
    lifetime: Option<Duration>,
    owned: Vec<(Entity, Option<TimerStatus>, Option<Duration>)>,
    paused_by: Vec<Entity>,
    is_paused: bool,
    is_disabled: bool,
    clock: Option<(Duration, f64, bool)>,
    cooldown: Option<(u32, Duration)>,
    record: Option<(u32, Entity)>,
}

/// What happened in a frame, and what was there at its end.
pub(crate) struct Seen {
    pub(crate) events: Vec<(usize, Entry)>,
    pub(crate) views: Vec<View>,
}

/// A message with a codec.
#[derive(Message)]
pub(crate) struct Word(pub(crate) u8);

/// A component of the game that is saved with the crate's own. Handlers write to it.
#[derive(Component, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) calls: u32,
    #[entities]
    pub(crate) last: Entity,
}

/// A reply with a codec.
#[derive(Message)]
pub(crate) struct Answer;

impl Game {
    pub(crate) fn new(script: &Script) -> Self {
        let moves = |way: &Way| matches!(way, Way::Move(..));
        let settings = Settings {
            is_observed: script.is_observed,
            seed: script.seed,
            draws: !script.interruptions.iter().any(|it| moves(&it.way)),
        };
        let mut game = Self {
            worlds: [settings.app(), settings.app()],
            homes: [0; PARTIES],
            settings,
        };
        // The clocks of the second world are ahead, by some steps of the fixed schedule.
        advance(&mut game.worlds[1], Duration::from_millis(125));
        for app in &mut game.worlds {
            let start = CLOCKS.map(|clock| app.world().clock_now(clock).expect("it is built in"));
            let mut cast = app.world_mut().resource_mut::<Cast>();
            cast.start = start;
            cast.draws = settings.draws;
        }
        let world = game.worlds[0].world_mut();
        for party in 0..PARTIES {
            // Without a component of the crate, it would be the game's to restore.
            let root = world.spawn((ears(), OnClock(ClockId::Virtual))).id();
            world.resource_mut::<Cast>().slots[party][0] = Some(root);
        }
        for spec in &script.crowd {
            let root = ensure(world, 1, 0);
            let timer = timer(world, 1, spec);
            world.spawn((OwnedBy(root), timer));
        }
        game
    }

    /// Goes on in a new app, in place of a world. The function moves everything that is not the game's own
    /// from the old world to the new one.
    pub(crate) fn load(
        &mut self,
        nth: usize,
        load: impl FnOnce(&mut World, &mut World, &mut EntityHashMap<Entity>),
    ) {
        let mut app = self.settings.app();
        let (old, new) = (self.worlds[nth].world_mut(), app.world_mut());
        let mut cast = old.resource::<Cast>().clone();
        let mut map = EntityHashMap::default();
        for &entity in cast.slots.as_flattened().iter().flatten() {
            map.insert(entity, new.spawn(ears()).id());
        }
        load(old, new, &mut map);
        for entity in cast.slots.as_flattened_mut().iter_mut().flatten() {
            *entity = map[entity];
        }
        app.insert_resource(cast);
        self.worlds[nth] = app;
    }

    pub(crate) fn world(&mut self, party: usize) -> &mut World {
        self.worlds[self.homes[party]].world_mut()
    }

    /// Forgets the entities that are gone, which have no name in another world.
    pub(crate) fn sweep(&mut self) {
        for app in &mut self.worlds {
            app.world_mut()
                .resource_scope(|world, mut cast: Mut<Cast>| {
                    for slot in cast.slots.as_flattened_mut() {
                        *slot = slot.filter(|&entity| world.entities().contains_spawned(entity));
                    }
                });
        }
    }

    /// Plays a frame.
    pub(crate) fn play(&mut self, frame: &Frame) -> Seen {
        self.prepare(frame);
        self.run(frame)
    }

    /// Plays what happens before a frame runs.
    pub(crate) fn prepare(&mut self, frame: &Frame) {
        self.sweep();
        for app in &mut self.worlds {
            for (clock, change) in &frame.clocks {
                change_clock(app.world_mut(), CLOCKS[*clock], 0, change);
            }
        }
        for (party, op) in &frame.ops {
            play(self.world(*party), *party, op);
        }
    }

    pub(crate) fn run(&mut self, frame: &Frame) -> Seen {
        for app in &mut self.worlds {
            let reactions = [(); PARTIES].map(|()| frame.reactions.iter().cloned().collect());
            app.world_mut().resource_mut::<Cast>().reactions = reactions;
            advance(app, Duration::from_millis(frame.millis));
        }
        self.see()
    }

    fn see(&mut self) -> Seen {
        let mut seen = Seen {
            events: Vec::new(),
            views: Vec::new(),
        };
        for app in &mut self.worlds {
            if !self.settings.is_observed {
                read_messages(app.world_mut());
            }
            let mut cast = app.world_mut().resource_mut::<Cast>();
            seen.events.append(&mut cast.log);
        }
        for party in 0..PARTIES {
            for slot in 0..SLOTS {
                seen.views.extend(view(self.world(party), party, slot));
            }
        }
        seen
    }
}

impl Seen {
    /// Returns the first difference from what should have been seen, if any. Parties that are apart have
    /// no common order.
    pub(crate) fn difference(&self, expected: &Self, are_apart: bool) -> Option<String> {
        let sorted = |seen: &Self| {
            let mut events = seen.events.clone();
            if are_apart {
                events.sort_by_key(|(party, _)| *party);
            }
            events
        };
        first_difference(&sorted(self), &sorted(expected))
            .or_else(|| first_difference(&self.views, &expected.views))
    }
}

fn first_difference<T: fmt::Debug + PartialEq>(found: &[T], expected: &[T]) -> Option<String> {
    let most = found.len().max(expected.len());
    let nth = (0..most).find(|&nth| found.get(nth) != expected.get(nth))?;
    let (found, expected) = (found.get(nth), expected.get(nth));
    Some(format!("\n{found:?}\ninstead of\n{expected:?}\n"))
}

impl Settings {
    fn app(self) -> App {
        let mut app = App::new();
        let plugin = DuePlugin {
            delay_seed: self.seed,
            ..DuePlugin::default()
        };
        app.add_plugins((TimePlugin, plugin))
            .insert_resource(FallbackErrorHandler(ignore))
            .init_resource::<Cast>();
        let world = app.world_mut();
        world.add_timer_handler(ACT, act);
        world.add_saved_component::<Record>("record");
        world.add_message_codec(
            "word",
            |word: &Word| Ok([word.0].into()),
            |data| Ok(Word(*data.first().ok_or("no byte")?)),
        );
        world.add_message_codec("answer", |_: &Answer| Ok(Vec::new()), |_| Ok(Answer));
        if self.is_observed {
            app.add_observer(|fired: On<TimerFired>, mut cast: ResMut<Cast>| {
                // An observed owner gets the same event again.
                if fired.event_target() == fired.entity() {
                    cast.log_fired(&fired);
                }
            });
            app.add_observer(|cancelled: On<TimerCancelled>, mut cast: ResMut<Cast>| {
                cast.log_cancelled(&cancelled);
            });
        }
        advance(&mut app, Duration::ZERO);
        app
    }
}

/// Runs a frame.
fn advance(app: &mut App, by: Duration) {
    app.insert_resource(TimeUpdateStrategy::ManualDuration(by));
    app.update();
}

impl Cast {
    /// Returns the party and the slot of an entity.
    pub(crate) fn find(&self, entity: Entity) -> Option<(usize, usize)> {
        let slots = self.slots.as_flattened();
        let nth = slots.iter().position(|&it| it == Some(entity))?;
        Some((nth / SLOTS, nth % SLOTS))
    }

    /// Returns the same name for an entity in each world.
    pub(crate) fn name(&self, entity: Entity) -> Entity {
        let number = self.find(entity).map(|(party, slot)| party * SLOTS + slot);
        let name = number.and_then(|number| Entity::from_raw_u32(number as u32));
        name.unwrap_or(Entity::PLACEHOLDER)
    }

    /// Returns the name of a clock, and the time at which it started.
    fn clock(&self, clock: ClockId) -> (ClockId, Duration) {
        let built_in = CLOCKS.iter().position(|&it| it == clock);
        match (clock, built_in) {
            (ClockId::Own(entity), _) => (self.name(entity).into(), Duration::ZERO),
            (_, Some(nth)) => (clock, self.start[nth]),
            _ => (clock, Duration::ZERO),
        }
    }

    /// The crate's own timers have an owner with a slot.
    fn party(&self, entity: Entity, owner: Entity) -> Option<usize> {
        let (party, _) = self.find(owner).or_else(|| self.find(entity))?;
        Some(party)
    }

    fn log_fired(&mut self, fired: &TimerFired) {
        let Some(party) = self.party(fired.entity(), fired.owner()) else {
            return;
        };
        let (clock, start) = self.clock(fired.clock());
        let mut named = TimerFired::new(self.name(fired.entity()))
            .with_owner(self.name(fired.owner()))
            .with_clock(clock)
            .with_deadline(fired.deadline().saturating_sub(start))
            .with_lateness(fired.lateness())
            .with_missed(fired.missed())
            .with_count(fired.count())
            .with_last(fired.is_last());
        if let Some(key) = fired.key() {
            named = named.with_key(key);
        }
        self.log.push((party, Entry::Fired(named)));
    }

    fn log_cancelled(&mut self, cancelled: &TimerCancelled) {
        let Some(party) = self.party(cancelled.entity(), cancelled.owner()) else {
            return;
        };
        let (clock, _) = self.clock(cancelled.clock());
        let mut named = TimerCancelled::new(self.name(cancelled.entity()), cancelled.reason())
            .with_owner(self.name(cancelled.owner()))
            .with_clock(clock)
            .with_count(cancelled.count())
            .with_left(cancelled.left())
            .with_remaining(cancelled.remaining());
        if let Some(key) = cancelled.key() {
            named = named.with_key(key);
        }
        self.log.push((party, Entry::Cancelled(named)));
    }

    fn status(&self, status: TimerStatus) -> TimerStatus {
        let (clock, start) = self.clock(status.clock);
        let mut named = status;
        named.entity = self.name(status.entity);
        named.owner = self.name(status.owner);
        named.clock = clock;
        named.deadline = status.deadline.saturating_sub(start);
        named
    }
}

/// Logs the firings that no observer has logged. A cancellation is written in the next run, which may be
/// in another app.
fn read_messages(world: &mut World) {
    let mut fired = world.resource_mut::<Messages<TimerFired>>();
    let fired: Vec<_> = fired.drain().collect();
    let mut cast = world.resource_mut::<Cast>();
    for fired in fired {
        cast.log_fired(&fired);
    }
}

fn view(world: &mut World, party: usize, slot: usize) -> Option<View> {
    let entity = at(world, party, slot)?;
    let cast = world.resource::<Cast>().clone();
    let related = world.get::<Owned>(entity);
    let owned: Vec<Entity> = related.into_iter().flat_map(Owned::iter).collect();
    let (timer, lifetime, owned) = world.with_timers(|timers| {
        let status = |entity| timers.get(entity).map(|status| cast.status(status));
        let owned = owned.into_iter();
        let owned = owned.map(|it| (cast.name(it), status(it), timers.lifetime(it)));
        (status(entity), timers.lifetime(entity), owned.collect())
    });
    let clock = world.get::<Clock>(entity).is_some().then(|| {
        let mut clocks = bevy_ecs::system::SystemState::<Clocks>::new(world);
        let clocks = clocks.get(world).expect("there are clocks");
        let clock = clocks.get(entity).expect("it has a clock");
        (clock.now(), clock.speed(), clock.is_paused())
    });
    let it = world.entity(entity);
    let pauses = it.get::<PausedBy>();
    let paused_by = pauses.into_iter().flat_map(PausedBy::iter);
    Some(View {
        name: cast.name(entity),
        timer,
        lifetime,
        owned,
        paused_by: paused_by.map(|pause| cast.name(pause)).collect(),
        is_paused: it.contains::<Paused>(),
        is_disabled: it.contains::<Disabled>(),
        clock,
        cooldown: it.get::<Cooldown>().and_then(|cooldown| {
            let now = now(world, entity)?;
            Some((cooldown.charges(now), cooldown.remaining(now)))
        }),
        record: it.get::<Record>().map(|record| {
            let is_there = world.entities().contains_spawned(record.last);
            let last = is_there.then(|| cast.name(record.last));
            (record.calls, last.unwrap_or(Entity::PLACEHOLDER))
        }),
    })
}

/// Returns the time on the clock of an entity: its own, or the one that it chose.
pub(crate) fn now(world: &World, entity: Entity) -> Option<Duration> {
    let clock = match world.get::<Clock>(entity) {
        Some(_) => entity.into(),
        None => world.get::<OnClock>(entity)?.0,
    };
    world.clock_now(clock).ok()
}

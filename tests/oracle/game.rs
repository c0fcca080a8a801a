//! Runs the operations in a real app.

use core::time::Duration;

use bevy_app::App;
use bevy_due::{
    ArmedTimers, Clock, ClockId, DueEntityWorldMutExt, Keyed, OwnedBy, Paused, RunStats, Timer,
    TimerAction, TimerCancelled, TimerFired,
};
use bevy_ecs::{entity::EntityHashMap, prelude::*, system::SystemState};

use crate::{
    BURST_LIMIT,
    script::{Armed, CLOCKS, LogEntry, Op, PLACES, Script, Spec, Step, TICK, sort_by_place},
    support::{Survives, advance, burst_limit, cancel_deletable, unobserved_app_with},
};

pub(crate) struct Game {
    app: App,
    timers: SystemState<ArmedTimers<'static, 'static>>,
    fired: Vec<LogEntry>,
}

#[derive(Component)]
struct Place(usize);

/// The last entity at each place, and the place of each entity, despawned ones included.
#[derive(Resource, Default)]
struct Places {
    entities: [Option<Entity>; PLACES.len()],
    of: EntityHashMap<usize>,
}

/// The id of each clock. A despawned clock keeps its id here.
#[derive(Resource)]
struct OwnClocks([ClockId; CLOCKS]);

#[derive(Resource)]
struct Scripted {
    script: Script,
    by_action: bool,
}

#[derive(Resource, Default)]
struct Log(Vec<LogEntry>);

impl Game {
    /// Handlers are observers by default. With `by_action` they are actions, and only timers with
    /// scripted operations have one.
    pub(crate) fn new(script: Script, by_action: bool) -> Self {
        let mut app = unobserved_app_with(burst_limit(BURST_LIMIT));
        let nowhere = app.world_mut().spawn_empty().id();
        app.world_mut().despawn(nowhere);
        let mut clocks = [ClockId::Own(nowhere); CLOCKS];
        clocks[0] = ClockId::Virtual;
        app.insert_resource(OwnClocks(clocks))
            .insert_resource(Scripted { script, by_action })
            .init_resource::<Places>()
            .init_resource::<Log>()
            .add_observer(note_place)
            .add_observer(log_cancelled);
        if !by_action {
            app.add_observer(log_and_run_script);
        }
        let timers = SystemState::new(app.world_mut());
        Self {
            app,
            timers,
            fired: Vec::new(),
        }
    }

    pub(crate) fn run_step(&mut self, step: Step) {
        match step {
            Step::Do(op) => apply(self.app.world_mut(), op),
            Step::Frame(by) => advance(&mut self.app, span(by)),
        }
        let world = self.app.world_mut();
        world.resource_scope(|world, mut messages: Mut<Messages<TimerFired>>| {
            let fired = messages.drain().map(|fired| fired_entry(world, &fired));
            self.fired.extend(fired);
        });
    }

    pub(crate) fn log(&self) -> &[LogEntry] {
        &self.app.world().resource::<Log>().0
    }

    /// Returns the firings that were read as messages.
    pub(crate) fn fired(&self) -> &[LogEntry] {
        &self.fired
    }

    pub(crate) fn last_run(&mut self) -> RunStats {
        self.read(|_, timers| timers.last_run())
    }

    pub(crate) fn entities(&self) -> Vec<usize> {
        let exists = |&place: &usize| entity_at(self.app.world(), place).is_some();
        (0..PLACES.len()).filter(exists).collect()
    }

    pub(crate) fn timers(&mut self) -> Vec<Armed> {
        let world = self.app.world();
        let entities = (0..PLACES.len()).filter_map(|place| entity_at(world, place));
        let with_timer = |&entity: &Entity| world.get::<Timer>(entity).is_some();
        let entities: Vec<Entity> = entities.filter(with_timer).collect();
        self.read(|world, timers| {
            assert_eq!(
                timers.count(),
                entities.len(),
                "every `Timer` component should be counted"
            );
            // The clock of a timer that was inserted since the last run may not exist.
            let armed = entities.iter().filter_map(|&entity| {
                let timer = timers
                    .get(entity)
                    .expect("an entity with a `Timer` should be armed");
                let clocks = &world.resource::<OwnClocks>().0;
                let clock = clocks.iter().position(|&clock| clock == timer.clock);
                let exists = |clock: &usize| match clocks[*clock] {
                    ClockId::Own(clock) => world.get::<Clock>(clock).is_some(),
                    _ => true,
                };
                Some(Armed {
                    place: world.resource::<Places>().of[&entity],
                    clock: clock.filter(exists)?,
                    deadline: timer.deadline.as_nanos() as i64,
                    count: timer.count,
                    paused: timer.paused,
                })
            });
            armed.collect()
        })
    }

    fn read<T>(&mut self, query: impl FnOnce(&World, ArmedTimers) -> T) -> T {
        let world = self.app.world();
        query(world, self.timers.get(world).unwrap())
    }
}

fn note_place(added: On<Add<Place>>, places: Query<&Place>, mut all: ResMut<Places>) {
    let place = places.get(added.entity).unwrap().0;
    all.entities[place] = Some(added.entity);
    all.of.insert(added.entity, place);
}

fn log_cancelled(cancelled: On<TimerCancelled>, places: Res<Places>, mut log: ResMut<Log>) {
    let place = places.of[&cancelled.entity()];
    log.0.push(LogEntry::Cancelled(place, cancelled.reason()));
}

fn log_and_run_script(fired: On<TimerFired>, mut commands: Commands) {
    let fired = *fired;
    commands.queue(move |world: &mut World| {
        let entry = fired_entry(world, &fired);
        world.resource_mut::<Log>().0.push(entry);
        run_script(world, fired);
    });
}

fn run_script(world: &mut World, fired: TimerFired) {
    let place = world.resource::<Places>().of[&fired.entity()];
    let script = &world.resource::<Scripted>().script;
    for op in script
        .get(&(place, fired.count()))
        .cloned()
        .unwrap_or_default()
    {
        apply(world, op);
    }
}

fn fired_entry(world: &World, fired: &TimerFired) -> LogEntry {
    LogEntry::Fired {
        place: world.resource::<Places>().of[&fired.entity()],
        deadline: fired.deadline().as_nanos() as i64,
        lateness: fired.lateness().as_nanos() as i64,
        count: fired.count(),
        missed: fired.missed(),
        last: fired.is_last(),
    }
}

fn apply(world: &mut World, op: Op) {
    let before = world.resource::<Log>().0.len();
    perform(world, op);
    world.flush();
    sort_by_place(&mut world.resource_mut::<Log>().0[before..]);
}

fn perform(world: &mut World, op: Op) {
    match op {
        Op::Arm(place, spec) => {
            let timer = timer(world, spec);
            let entity = ensure(world, place);
            let mut entity = world.entity_mut(entity);
            if spec.paused {
                entity.insert((timer, Paused));
            } else {
                entity.insert(timer);
            }
        }
        Op::Set(place, spec) => set_timer(world, place, spec),
        Op::Remove(place) => on_entity(world, place, |entity| {
            entity.remove::<Timer>();
        }),
        Op::Despawn(place) => {
            if let Some(entity) = entity_at(world, place) {
                world.despawn(entity);
            }
        }
        Op::PauseTimers(place) => on_entity(world, place, |entity| {
            entity.insert(Paused);
        }),
        Op::ResumeTimers(place) => on_entity(world, place, |entity| {
            entity.remove::<Paused>();
        }),
        Op::CancelKey(place) => {
            let (owner, key) = (PLACES[place].owner.unwrap(), PLACES[place].key.unwrap());
            let owner = entity_at(world, owner);
            let was_there = owner.is_some_and(|owner| world.entity_mut(owner).cancel_timer(key));
            log_refusal_unless(was_there, world, place);
        }
        Op::CancelDeletable(owner) => {
            if let Some(owner) = entity_at(world, owner) {
                cancel_deletable(world, owner);
            }
        }
        Op::CancelAll(owner) => {
            if let Some(owner) = entity_at(world, owner) {
                world.entity_mut(owner).cancel_timers();
            }
        }
        Op::Reschedule(place, shown) => {
            let entity = entity_at(world, place);
            let moved = entity
                .is_some_and(|entity| world.entity_mut(entity).reschedule(span(shown)).is_ok());
            log_refusal_unless(moved, world, place);
        }
        Op::DelayBy(place, by) => {
            let entity = entity_at(world, place);
            let moved =
                entity.is_some_and(|entity| world.entity_mut(entity).delay_by(span(by)).is_ok());
            log_refusal_unless(moved, world, place);
        }
        Op::DelayAllBy(owner, by) => {
            if let Some(owner) = entity_at(world, owner) {
                world.entity_mut(owner).delay_timers_by(span(by));
            }
        }
        Op::SpawnClock {
            clock,
            parent,
            quarters,
        } => {
            let parent = world.resource::<OwnClocks>().0[parent];
            let new = Clock::of(parent).with_speed(ratio(quarters));
            match clock_at(world, clock) {
                Some(mut entity) => {
                    entity.insert(new);
                }
                None => {
                    let entity = world.spawn(new).id();
                    world.resource_mut::<OwnClocks>().0[clock] = entity.into();
                }
            }
        }
        Op::DespawnClock(clock) => {
            if let Some(entity) = clock_at(world, clock) {
                entity.despawn();
            }
        }
        Op::SetSpeed(clock, quarters) => {
            set_clock(world, clock, |clock| clock.set_speed(ratio(quarters)));
        }
        Op::PauseClock(clock) => set_clock(world, clock, Clock::pause),
        Op::ResumeClock(clock) => set_clock(world, clock, Clock::unpause),
        Op::AdvanceBy(clock, by) => set_clock(world, clock, |clock| clock.advance_by(span(by))),
        Op::SetNow(clock, shown) => set_clock(world, clock, |clock| clock.set_now(span(shown))),
    }
}

fn timer(world: &World, spec: Spec) -> Timer {
    let clock = world.resource::<OwnClocks>().0[spec.clock];
    let timer = if spec.interval == 0 {
        Timer::after(span(spec.delay))
    } else {
        Timer::every(span(spec.interval)).first_after(span(spec.delay))
    };
    let timer = timer.on(clock).with_missed_ticks(spec.missed_ticks);
    match spec.times {
        times if times > 0 && spec.interval > 0 => timer.times(times),
        _ => timer,
    }
}

fn set_timer(world: &mut World, place: usize, spec: Spec) {
    let owner = PLACES[place].owner.map(|owner| ensure(world, owner));
    let (owner, key) = (owner.unwrap(), PLACES[place].key.unwrap());
    let bundle = (timer(world, spec), Place(place));
    if spec.paused {
        let (timer, place) = bundle;
        let bundle = (timer, place, Paused);
        world.entity_mut(owner).set_timer(key, bundle);
    } else {
        world.entity_mut(owner).set_timer(key, bundle);
    }
    equip(world, place);
}

fn entity_at(world: &World, place: usize) -> Option<Entity> {
    let entity = world.resource::<Places>().entities[place];
    entity.filter(|&entity| world.get_entity(entity).is_ok())
}

/// Returns the entity at a place. Spawns it and its owner if they do not exist.
fn ensure(world: &mut World, place: usize) -> Entity {
    if let Some(entity) = entity_at(world, place) {
        return entity;
    }
    let owner = PLACES[place].owner.map(|owner| ensure(world, owner));
    let mut entity = world.spawn(Place(place));
    if let Some(owner) = owner {
        entity.insert(OwnedBy(owner));
    }
    if let Some(key) = PLACES[place].key {
        entity.insert(Keyed::new(key));
    }
    let id = entity.id();
    equip(world, place);
    id
}

/// Inserts the components that the entity at a place has from the start.
fn equip(world: &mut World, place: usize) {
    let Scripted { script, by_action } = world.resource();
    let acts = *by_action && script.keys().any(|&(at, _)| at == place);
    on_entity(world, place, |entity| {
        if PLACES[place].survives {
            entity.insert(Survives);
        }
        if acts {
            entity.insert(TimerAction::call(run_script));
        }
    });
}

fn on_entity(world: &mut World, place: usize, change: impl FnOnce(&mut EntityWorldMut)) {
    if let Some(entity) = entity_at(world, place) {
        change(&mut world.entity_mut(entity));
    }
}

fn log_refusal_unless(done: bool, world: &mut World, place: usize) {
    if !done {
        world.resource_mut::<Log>().0.push(LogEntry::Refused(place));
    }
}

fn clock_at(world: &mut World, clock: usize) -> Option<EntityWorldMut<'_>> {
    match world.resource::<OwnClocks>().0[clock] {
        ClockId::Own(entity) => world.get_entity_mut(entity).ok(),
        _ => None,
    }
}

fn set_clock(world: &mut World, clock: usize, set: impl FnOnce(&mut Clock)) {
    let id = world.resource::<OwnClocks>().0[clock];
    let mut clocks = SystemState::<bevy_due::ClocksMut>::new(world);
    if let Ok(mut clock) = clocks.get_mut(world).unwrap().get_mut(id) {
        set(&mut clock);
    }
}

fn span(ticks: u64) -> Duration {
    Duration::from_nanos(ticks * TICK)
}

fn ratio(quarters: u32) -> f64 {
    f64::from(quarters) / 4.0
}

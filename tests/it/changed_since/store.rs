//! The data of all entities, as a program that must survive a crash stores it.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use bevy_app::App;
#[cfg(feature = "worlds")]
use bevy_due::worlds::StableKey;
use bevy_due::{
    Clock, ClockId, Clocks, ClocksMut, Cooldown, DespawnAfter, OnClock, Owned, OwnedBy, Paused,
    PausedBy, Timer, TimerFired,
    clock::SpeedModifier,
    moving::{MoveWorldExt, MovedEntity, TimePassed},
    rollback::TimerSnapshot,
    save::SaveWorldExt,
    timer::Pauses,
};
use bevy_ecs::{
    entity::EntityHashMap, entity_disabling::Disabled, message::Messages, prelude::*,
    system::RunSystemOnce,
};
use bevy_time::{Fixed, Real, Time, TimeUpdateStrategy, Virtual};

use super::game::{Game, MILLI, app};

const BUILT_IN: [ClockId; 4] = [
    ClockId::Real,
    ClockId::Virtual,
    ClockId::Frames,
    ClockId::Fixed,
];

/// The times at which an entity was stored: real, game, fixed.
type Times = [Duration; 3];

pub(crate) struct Store {
    snapshot: TimerSnapshot,
    stored: BTreeMap<Entity, (MovedEntity, Times)>,
}

impl Store {
    pub(crate) fn new(game: &mut Game) -> Self {
        let snapshot = game.snapshot();
        let times = times(game);
        let copies = copies(game).into_iter();
        Self {
            snapshot,
            stored: copies.map(|copy| (copy.entity(), (copy, times))).collect(),
        }
    }

    /// Stores what has changed since the previous call, and checks that all is up to date.
    pub(crate) fn update(&mut self, game: &mut Game, when: &str) {
        let changed = game.changed_since(&self.snapshot);
        assert!(
            changed.is_sorted_by(|one, other| one < other),
            "in order, once"
        );
        self.snapshot = game.snapshot();
        assert_eq!(game.changed_since(&self.snapshot), [], "no time has passed");
        let changed: BTreeSet<Entity> = changed.into_iter().collect();
        let (now, fresh) = (times(game), copies(game));
        let exist: BTreeSet<Entity> = fresh.iter().map(MovedEntity::entity).collect();
        for gone in self.stored.keys().filter(|it| !exist.contains(it)) {
            assert!(changed.contains(gone), "{gone} is gone: {when}");
        }
        self.stored.retain(|entity, _| exist.contains(entity));
        for copy in &fresh {
            let entity = copy.entity();
            if copy.entities().any(|member| changed.contains(&member)) {
                self.stored.insert(entity, (copy.clone(), now));
            }
            assert!(self.stored.contains_key(&entity), "{entity} is new: {when}");
        }
        self.check(game, &fresh, now, when);
    }

    /// Checks that the stored entities continue as those of the game.
    fn check(&self, game: &mut Game, fresh: &[MovedEntity], now: Times, when: &str) {
        let roots = roots(fresh);
        let fresh = fresh.iter().filter(|copy| roots.contains(&copy.entity()));
        let fresh: Vec<_> = fresh
            .map(|copy| (copy.clone(), TimePassed::default()))
            .collect();
        let stored = fresh.iter().map(|(copy, _)| {
            let (stored, then) = &self.stored[&copy.entity()];
            (stored.clone(), passed(*then, now))
        });
        let stored: Vec<_> = stored.collect();
        let clocks = built_in_clocks(game.world());
        let expected = Revived::new(fresh, &clocks, when).play();
        let found = Revived::new(stored, &clocks, when).play();
        for (nth, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let lines = |text: &str| text.replace("),(", "),\n(").replace("])", "]\n)");
            let (found, expected) = (lines(found), lines(expected));
            let differs = found.lines().zip(expected.lines()).find(|(a, b)| a != b);
            assert!(found == expected, "{when}, {nth} later: {differs:#?}");
        }
    }
}

/// Returns the copies of all entities with components of the crate.
fn copies(game: &mut Game) -> Vec<MovedEntity> {
    let world = game.world();
    let mut all = world.query_filtered::<EntityRef, Allow<Disabled>>();
    let all = all.iter(world).filter(|entity| {
        #[cfg(feature = "worlds")]
        if entity.contains::<StableKey>() {
            return true;
        }
        entity.contains::<Timer>()
            || entity.contains::<DespawnAfter>()
            || entity.contains::<Clock>()
            || entity.contains::<Owned>()
            || entity.contains::<OwnedBy>()
            || entity.contains::<Cooldown>()
            || entity.contains::<OnClock>()
            || entity.contains::<Paused>()
            || entity.contains::<PausedBy>()
            || entity.contains::<Pauses>()
            || entity.contains::<SpeedModifier>()
    });
    let mut all: Vec<Entity> = all.map(|entity| entity.id()).collect();
    all.sort_unstable();
    let copies = world.copy_entities(&all).into_iter();
    copies.map(|copy| copy.expect("all is data")).collect()
}

/// Returns the entities whose copies hold all others.
fn roots(copies: &[MovedEntity]) -> BTreeSet<Entity> {
    let parts = copies.iter().flat_map(|copy| {
        let root = copy.entity();
        copy.entities().filter(move |&member| member != root)
    });
    let parts: BTreeSet<Entity> = parts.collect();
    let all = copies.iter().map(MovedEntity::entity);
    let mut roots: BTreeSet<Entity> = all.filter(|entity| !parts.contains(entity)).collect();
    let is_root = |copy: &&MovedEntity, roots: &BTreeSet<Entity>| roots.contains(&copy.entity());
    let held = copies.iter().filter(|copy| is_root(copy, &roots));
    let mut held: BTreeSet<Entity> = held.flat_map(MovedEntity::entities).collect();
    // Two that pause each other are in the copies of both.
    for copy in copies {
        if !held.contains(&copy.entity()) {
            roots.insert(copy.entity());
            held.extend(copy.entities());
        }
    }
    roots
}

fn times(game: &mut Game) -> Times {
    let world = game.world();
    [
        world.resource::<Time<Real>>().elapsed(),
        world.resource::<Time<Virtual>>().elapsed(),
        world.resource::<Time<Fixed>>().elapsed(),
    ]
}

fn passed(then: Times, now: Times) -> TimePassed {
    TimePassed {
        real: now[0] - then[0],
        game: now[1] - then[1],
        fixed: now[2] - then[2],
        frames: 0,
    }
}

fn built_in_clocks(world: &mut World) -> [Clock; 4] {
    let clocks = |clocks: Clocks| BUILT_IN.map(|id| clocks.get(id).expect("it is built in"));
    world.run_system_once(clocks).expect("it is valid")
}

/// A new world that continues from stored entities.
struct Revived {
    app: App,
    names: EntityHashMap<Entity>,
}

impl Revived {
    fn new(stored: Vec<(MovedEntity, TimePassed)>, clocks: &[Clock; 4], when: &str) -> Self {
        let mut revived = Self {
            app: app(),
            names: EntityHashMap::default(),
        };
        let clocks = clocks.clone();
        let set = move |mut all: ClocksMut| {
            for (id, clock) in BUILT_IN.into_iter().zip(&clocks) {
                let mut here = all.get_mut(id).expect("it is built in");
                here.set_speed(clock.speed());
                match clock.is_paused() {
                    true => here.pause(),
                    false => here.unpause(),
                }
            }
        };
        let world = revived.app.world_mut();
        world.run_system_once(set).expect("it is valid");
        let names = &mut revived.names;
        for put in world.put_entities(stored, names) {
            put.unwrap_or_else(|error| panic!("{when}: {error}"));
        }
        revived
    }

    /// Plays some frames, and returns what can be seen after each.
    fn play(mut self) -> Vec<String> {
        let mut views = vec![self.view()];
        for millis in [0, 16, 16, 40, 104, 16, 248, 0, 504] {
            let by = TimeUpdateStrategy::ManualDuration(millis * MILLI);
            self.app.insert_resource(by);
            self.app.update();
            views.push(self.view());
        }
        views
    }

    fn view(&mut self) -> String {
        let world = self.app.world_mut();
        let mut fired = world.resource_mut::<Messages<TimerFired>>();
        let fired: Vec<TimerFired> = fired.drain().collect();
        let saved = world.save_timers().expect("all is data");
        let saved = ron::to_string(&saved).expect("it serializes");
        // A message changes no entity before it is delivered, so copies may be from before or after the sending.
        let (state, rest) = saved.split_once("mail:").expect("the mail");
        let (_, entities) = rest.split_once("ends:").expect("what ends");
        let saved = format!("{state}{entities}");
        #[cfg(feature = "worlds")]
        let keys: Vec<_> = {
            let mut keys = world.query_filtered::<(Entity, &StableKey), Allow<Disabled>>();
            keys.iter(world)
                .map(|(entity, key)| (entity, key.0))
                .collect()
        };
        #[cfg(not(feature = "worlds"))]
        let keys = ();
        format!(
            "{fired:?}\n{}\n{keys:?}",
            with_places(&with_missing_times(&saved))
        )
    }
}

/// Writes the place of each timer among those in the text. The numbers themselves depend on how often timers were armed.
fn with_places(saved: &str) -> String {
    let parts: Vec<&str> = saved.split("sequence:").collect();
    let (first, timers) = parts.split_first().expect("one part");
    let split = |timer: &str| {
        let end = timer.find(',').expect("another field");
        let sequence: u64 = timer[..end].parse().expect("a number");
        (sequence, end)
    };
    let mut places: Vec<u64> = timers.iter().map(|timer| split(timer).0).collect();
    places.sort_unstable();
    let timers = timers.iter().map(|timer| {
        let (sequence, end) = split(timer);
        let place = places.binary_search(&sequence).expect("it is there");
        format!("place:{place}{}", &timer[end..])
    });
    [(*first).to_owned()].into_iter().chain(timers).collect()
}

/// Writes the missing time of each cooldown in its place. A cooldown that is ready, or that has moved
/// from one clock to another, may note it in different ways.
fn with_missing_times(saved: &str) -> String {
    let mut parts = saved.split("Cooldown((");
    let mut text = String::from(parts.next().unwrap_or_default());
    for part in parts {
        let (cooldown, rest) = part.split_once("CooldownNow(now:(").expect("the time");
        let (now, rest) = rest.split_once("),").expect("the end of the time");
        let numbers = format!("{cooldown}{now}");
        let numbers = numbers.split(|it: char| !it.is_ascii_digit());
        let numbers: Vec<u64> = numbers.filter_map(|it| it.parse().ok()).collect();
        let time = |nth: usize| 1_000_000_000 * numbers[nth] + numbers[nth + 1];
        let (duration, charges) = (time(0), numbers[2]);
        let (full_at, used_at, now) = (time(3), time(5), time(7));
        let missing = full_at.saturating_sub(now).min(duration * charges);
        let missing = if now < used_at { 0 } else { missing };
        text += &format!("Cooldown({duration}, {charges}, {missing}){rest}");
    }
    text
}

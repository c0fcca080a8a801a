//! A game in which everything happens that can change a timer.

use core::time::Duration;

use bevy_app::App;
use bevy_due::{
    Clock, ClockId, Clocks, DespawnAfter, MissedTicks, OnClock, OwnedBy, Paused, Timer,
    clock::SpeedModifier,
    message::{MessageContext, NoAnswer, Packet},
    prelude::*,
    rollback::{RollbackWorldExt, TimerSnapshot},
    timer::Pauses,
};
#[cfg(feature = "worlds")]
use bevy_due::{message::MessageEntityCommandsExt, worlds::StableKey};
use bevy_ecs::{
    entity::EntityHashMap,
    entity_disabling::Disabled,
    error::{FallbackErrorHandler, ignore},
    prelude::*,
    system::RunSystemOnce,
};
use bevy_time::{Fixed, Time, TimePlugin, TimeUpdateStrategy};

use super::random::Random;

const KEYS: [&str; 3] = ["a", "b", "c"];

const SPEEDS: [f64; 6] = [0.0, 0.25, 0.5, 1.0, 1.0, 2.0];

/// A question with an answer, and one without.
const ASK: u32 = 1;
const IGNORE: u32 = 2;

/// A component that ends.
#[derive(Component)]
struct Boost;

pub(crate) struct Game {
    seed: u64,
    pub(crate) app: App,
    /// The clocks. Each runs on one of those before it.
    clocks: Vec<Entity>,
    /// The entities that own others.
    owners: Vec<Entity>,
    /// The entities with timers.
    others: Vec<Entity>,
    /// Whether a request is delivered before the end of the frame. Until then, it is no data.
    may_ask: bool,
}

/// An app without entities.
pub(crate) fn app() -> App {
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::ZERO))
        .insert_resource(Time::<Fixed>::from_duration(16 * MILLI))
        // A revived world warns about components and clocks that it does not have.
        .insert_resource(FallbackErrorHandler(ignore));
    app.world_mut()
        .add_timer_handler("grow", |_: In<TimerFired>| {});
    app.update();
    app
}

impl Game {
    pub(crate) fn new(seed: u64) -> Self {
        let mut game = Self {
            seed,
            app: app(),
            clocks: Vec::new(),
            owners: Vec::new(),
            others: Vec::new(),
            may_ask: false,
        };
        let random = &mut Random::new(seed);
        for _ in 0..4 {
            game.spawn_clock(random);
        }
        for _ in 0..4 {
            let ears = MessageComponent::new()
                .on_packet(ASK, |mut me: MessageContext, _: &Packet| {
                    _ = me.reply(Packet::new(ASK, []));
                })
                .on_packet(IGNORE, |_: MessageContext, _: &Packet| {})
                .on(|_: MessageContext, _: &NoAnswer| {});
            let owner = game.world().spawn((ears, Cooldown::new(0.2))).id();
            game.owners.push(owner);
        }
        for _ in 0..12 {
            game.spawn(random);
        }
        game
    }

    pub(crate) fn world(&mut self) -> &mut World {
        self.app.world_mut()
    }

    pub(crate) fn snapshot(&mut self) -> TimerSnapshot {
        self.world().snapshot_timers()
    }

    pub(crate) fn changed_since(&mut self, snapshot: &TimerSnapshot) -> Vec<Entity> {
        self.world().changed_since(snapshot)
    }

    /// Plays a frame without changes, in which no time passes.
    pub(crate) fn rest(&mut self) {
        self.advance(0);
    }

    fn advance(&mut self, millis: u32) {
        let by = TimeUpdateStrategy::ManualDuration(millis * MILLI);
        self.app.insert_resource(by);
        self.app.update();
    }

    /// Plays a frame, with changes before and after it.
    pub(crate) fn play(&mut self, frame: u64) {
        let random = &mut Random::new(self.seed ^ (frame + 1) << 32);
        if random.one_in(6) {
            self.change_and_go_back(random);
        }
        self.may_ask = true;
        for _ in 0..random.below(3) {
            self.change(random);
        }
        self.may_ask = false;
        self.advance(random.pick(&[0, 8, 16, 16, 40, 104, 248]));
        for _ in 0..random.below(3) {
            self.change(random);
        }
        self.world().flush();
        self.forget_later_uses();
    }

    /// Resets the cooldowns whose last use is later than their clock shows. An import resets them, too.
    fn forget_later_uses(&mut self) {
        let world = self.world();
        for entity in cooldowns(world) {
            let now = cooldown_now(world, entity);
            let Some(mut cooldown) = world.get_mut::<Cooldown>(entity) else {
                continue;
            };
            let others = cooldown.duration() * (cooldown.max_charges() - 1);
            let is_full = cooldown.charges(now) == cooldown.max_charges();
            if is_full && cooldown.ready_at() + others > now {
                cooldown.reset();
            }
        }
    }

    fn change_and_go_back(&mut self, random: &mut Random) {
        let snapshot = self.snapshot();
        let all = [
            self.clocks.clone(),
            self.owners.clone(),
            self.others.clone(),
        ];
        for _ in 0..3 {
            self.change(random);
        }
        let mut names = EntityHashMap::default();
        self.world().restore_timers(&snapshot, &mut names);
        let latest = |entity: &Entity| names.get(entity).copied().unwrap_or(*entity);
        let [clocks, owners, others] = all.map(|list| list.iter().map(latest).collect());
        (self.clocks, self.owners, self.others) = (clocks, owners, others);
    }

    fn change(&mut self, random: &mut Random) {
        let world = self.app.world();
        for list in [&mut self.clocks, &mut self.owners, &mut self.others] {
            list.retain(|&entity| world.get_entity(entity).is_ok());
        }
        match random.below(16) {
            0 | 1 => self.spawn(random),
            2 => self.spawn_clock(random),
            3 | 4 => self.change_clock(random),
            5 => self.change_built_in_clock(random),
            6 | 7 => self.change_pause(random),
            8 | 9 => self.change_timer(random),
            10 | 11 => self.change_components(random),
            12 | 13 => self.change_owner(random),
            14 => self.change_cooldown(random),
            _ => self.despawn(random),
        }
        self.world().flush();
    }

    fn clock(&self, random: &mut Random) -> ClockId {
        match random.below(6) {
            0 => ClockId::Real,
            1 => ClockId::Fixed,
            2 => ClockId::Virtual,
            _ => pick(random, &self.clocks).map_or(ClockId::Virtual, ClockId::Own),
        }
    }

    fn spawn_clock(&mut self, random: &mut Random) {
        let clock = Clock::of(self.clock(random)).with_speed(random.pick(&SPEEDS));
        let mut entity = self.world().spawn(clock);
        if random.one_in(2) {
            entity.insert((Timer::every(span(random, 30) + MILLI), Cooldown::new(0.1)));
        }
        let entity = entity.id();
        self.clocks.push(entity);
    }

    fn timer(&self, random: &mut Random) -> Timer {
        let (span, interval) = (span(random, 50), span(random, 40) + 8 * MILLI);
        let mut timer = match random.below(7) {
            0 | 1 => Timer::after(span),
            2 => Timer::every_between(interval..=interval + span),
            3 => Timer::every(interval).slack(interval),
            4 => Timer::after(span).with_jitter(interval),
            _ => Timer::every(interval).first_after(span),
        };
        if timer.interval().is_some() && random.one_in(3) {
            timer = timer.times(1 + random.below(5) as u32);
        }
        if random.one_in(3) {
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

    fn spawn(&mut self, random: &mut Random) {
        let (timer, clock) = (self.timer(random), self.clock(random));
        let owner = pick(random, &self.owners).filter(|_| random.one_in(2));
        let mut entity = self.world().spawn_empty();
        if random.one_in(5) {
            entity.insert(Cooldown::new(0.3).with_charges(2));
        }
        if random.one_in(4) {
            entity.insert(OnClock(clock));
        }
        if random.one_in(4) {
            entity.insert(TimerAction::named("grow"));
        }
        if random.one_in(6) {
            entity.insert(Paused);
        }
        if random.one_in(5) {
            entity.insert(DespawnAfter::new(span(random, 100)));
        }
        if let Some(owner) = owner {
            entity.insert(OwnedBy(owner));
        }
        if random.one_in(5) {
            entity.insert(DespawnAfter::default());
        }
        entity.insert(timer);
        let entity = entity.id();
        self.others.push(entity);
    }

    fn change_clock(&mut self, random: &mut Random) {
        let (Some(entity), speed) = (pick(random, &self.clocks), random.pick(&SPEEDS)) else {
            return;
        };
        let place = self.clocks.iter().position(|&clock| clock == entity);
        let parent = pick(random, &self.clocks[..place.unwrap_or(0)]);
        let span = span(random, 100);
        let what = random.below(9);
        if what < 2 {
            let (modifier, time) = (SpeedModifier::new(entity, 0.5), DespawnAfter::new(span));
            let owner = pick(random, &self.owners).filter(|_| random.one_in(3));
            let mut modifier = self.world().spawn((modifier, time));
            if let Some(owner) = owner {
                modifier.insert(OwnedBy(owner));
            }
            return;
        }
        if what == 2 {
            let clock = Clock::new().with_speed(speed);
            if let Ok(mut entity) = self.world().get_entity_mut(entity) {
                entity.insert(clock);
            }
            return;
        }
        // It may be gone.
        _ = self.world().change_clock(entity, |clock| match what {
            7 => clock.pause(),
            3 => clock.unpause(),
            4 => clock.set_speed(speed),
            5 => clock.advance_by(span),
            6 => clock.set_now(span),
            _ => {
                let parent = parent.map_or(ClockId::Real, ClockId::Own);
                _ = clock.set_parent(parent);
            }
        });
    }

    fn change_built_in_clock(&mut self, random: &mut Random) {
        let built_in = random.pick(&[ClockId::Real, ClockId::Virtual, ClockId::Fixed]);
        let (speed, is_paused) = (random.pick(&SPEEDS), random.one_in(4));
        let changed = self.world().change_clock(built_in, |clock| {
            clock.set_speed(speed);
            match is_paused {
                true => clock.pause(),
                false => clock.unpause(),
            }
        });
        changed.expect("it is built in");
    }

    fn change_pause(&mut self, random: &mut Random) {
        let span = span(random, 30);
        let Some(mut entity) = self.any(random) else {
            return;
        };
        match random.below(6) {
            0 => _ = entity.insert(Paused),
            1 | 2 => _ = entity.remove::<Paused>(),
            3 => _ = entity.pause_for(span),
            _ if entity.contains::<Disabled>() => _ = entity.remove::<Disabled>(),
            _ => _ = entity.insert(Disabled),
        }
    }

    fn change_timer(&mut self, random: &mut Random) {
        let (span, clock, left) = (span(random, 40), self.clock(random), random.below(4) as u32);
        let timer = self.timer(random);
        let Some(entity) = pick(random, &self.others) else {
            return;
        };
        let what = random.below(9);
        if what == 0 {
            self.world().entity_mut(entity).insert(timer);
            return;
        }
        let changed = self.world().change_timer(entity, |timer| match what {
            1 => timer.restart(),
            2 => timer.refresh(),
            3 => timer.set_left(1 + left),
            4 => timer.set_interval(span + 8 * MILLI),
            5 => timer.set_remaining(span),
            6 => timer.delay_by(span),
            _ => _ = timer.set_clock(clock),
        });
        _ = changed;
    }

    fn change_components(&mut self, random: &mut Random) {
        let (span, clock) = (span(random, 40), self.clock(random));
        #[cfg(feature = "worlds")]
        let key = StableKey(random.next());
        let Some(entity) = pick(random, &self.others) else {
            return;
        };
        let mut entity = self.world().entity_mut(entity);
        match random.below(9) {
            0 => _ = entity.remove::<Timer>(),
            1 => _ = entity.remove::<DespawnAfter>(),
            2 => _ = entity.insert(DespawnAfter::new(span)),
            3 => _ = entity.insert(OnClock(clock)),
            4 | 5 => _ = entity.remove::<OnClock>(),
            6 => _ = entity.remove::<TimerAction>(),
            #[cfg(feature = "worlds")]
            7 if entity.contains::<StableKey>() => _ = entity.remove::<StableKey>(),
            #[cfg(feature = "worlds")]
            7 => _ = entity.insert(key),
            _ => _ = entity.insert(TimerAction::despawn()),
        }
    }

    /// Changes what an owner owns.
    fn change_owner(&mut self, random: &mut Random) {
        let (timer, clock, span) = (self.timer(random), self.clock(random), span(random, 40));
        let Some(owner) = pick(random, &self.owners) else {
            return;
        };
        let other = pick(random, &self.others);
        let asked = pick(random, &self.owners).unwrap_or(owner);
        let key = random.pick(&KEYS);
        match (random.below(10), other) {
            (0, Some(other)) if self.world().get::<Pauses>(other).is_none() => {
                self.world().entity_mut(other).insert(OwnedBy(owner));
            }
            (1, Some(other)) => _ = self.world().entity_mut(other).remove::<OwnedBy>(),
            // The data of neither owner could be imported before that of the other.
            (2, Some(other)) if self.world().get::<OwnedBy>(other).is_none() => {
                self.world().entity_mut(other).insert(Pauses(owner));
            }
            (3 | 4, _) if self.may_ask => {
                let what = random.pick(&[ASK, IGNORE]);
                let mut commands = self.world().commands();
                let until = Timer::after(span);
                let mut asker = commands.entity(owner);
                asker.ask(asked, Packet::new(what, []), until);
            }
            (5, _) => _ = self.world().cancel_timer(owner, key),
            (6, _) => _ = self.world().entity_mut(owner).insert_for(span, Boost),
            (7, _) => _ = self.world().entity_mut(owner).insert(OnClock(clock)),
            (8, _) if random.one_in(3) => _ = self.world().entity_mut(owner).cancel_timers(),
            _ => _ = self.world().entity_mut(owner).set_timer(key, timer),
        }
    }

    fn change_cooldown(&mut self, random: &mut Random) {
        let span = span(random, 40);
        let world = self.app.world_mut();
        let Some(entity) = pick(random, &cooldowns(world)) else {
            return;
        };
        let now = cooldown_now(world, entity);
        match (random.below(4), world.get_mut::<Cooldown>(entity)) {
            (0 | 1, Some(mut cooldown)) => _ = cooldown.try_use(now),
            (2, Some(mut cooldown)) => cooldown.set_duration(span, now),
            _ => _ = world.entity_mut(entity).remove::<Cooldown>(),
        }
    }

    fn despawn(&mut self, random: &mut Random) {
        if let Some(entity) = self.any(random)
            && random.one_in(3)
        {
            entity.despawn();
        }
    }

    fn any(&mut self, random: &mut Random) -> Option<EntityWorldMut<'_>> {
        let lists = [&self.clocks, &self.owners, &self.others];
        let all: Vec<Entity> = lists.into_iter().flatten().copied().collect();
        let entity = pick(random, &all)?;
        Some(self.world().entity_mut(entity))
    }
}

/// About a millisecond. A clock that runs at a product of [`SPEEDS`] shows no fraction of a nanosecond.
pub(crate) const MILLI: Duration = Duration::from_nanos(1 << 20);

fn span(random: &mut Random, most: u64) -> Duration {
    10 * random.below(most) as u32 * MILLI
}

fn cooldowns(world: &mut World) -> Vec<Entity> {
    let mut cooldowns = world.query_filtered::<Entity, (With<Cooldown>, Allow<Disabled>)>();
    cooldowns.iter(world).collect()
}

/// Returns the time on the clock of the cooldown on an entity.
fn cooldown_now(world: &mut World, entity: Entity) -> Duration {
    let owner = world.get::<OwnedBy>(entity).map(|owner| owner.0);
    let clock_on = |entity| {
        let on = world.get::<OnClock>(entity).map(|on| on.0);
        let own = || world.get::<Clock>(entity).map(|_| ClockId::Own(entity));
        on.or_else(own)
    };
    let clock = clock_on(entity).or_else(|| clock_on(owner?));
    let clock = clock.unwrap_or_default();
    let now = move |clocks: Clocks| clocks.now(clock).ok();
    let now = world.run_system_once(now).expect("it is valid");
    now.unwrap_or_default()
}

fn pick(random: &mut Random, entities: &[Entity]) -> Option<Entity> {
    (!entities.is_empty()).then(|| random.pick(entities))
}

//! Thousands of timers of all kinds, so that the wheel of the queue is at work.

use core::time::Duration;

use bevy_app::prelude::*;
use bevy_due::{
    Clock, Cooldown, Owned, OwnedBy, PausedBy, Timer, TimerFired,
    clock::SpeedModifier,
    prelude::*,
    rollback::{RollbackWorldExt, TimerSnapshot},
    timer::Keyed,
};
use bevy_ecs::{entity::EntityHashMap, entity_disabling::Disabled, message::Messages, prelude::*};
use bevy_time::{TimePlugin, TimeUpdateStrategy, prelude::*};

use crate::saving::script::Random;

const FRAME: Duration = Duration::from_millis(50);
const FRAMES: usize = 40;
const TIMERS: usize = 3000;
const CLOCKS: usize = 10;
const OWNERS: usize = 40;
const KEYS: [&str; 4] = ["a", "b", "c", "d"];

/// A game. Its entities have numbers, which they keep when they are spawned again.
pub(crate) struct Crowd {
    app: App,
    seed: u64,
    entities: Vec<Entity>,
    numbers: EntityHashMap<usize>,
}

/// Everything that a player could see of the timers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct View(Vec<String>);

/// A moment to go back to.
pub(crate) struct Moment {
    pub(crate) frame: usize,
    timers: TimerSnapshot,
    times: (Time<Real>, Time<Virtual>, Time<Fixed>, Time),
    entities: Vec<Entity>,
}

impl Crowd {
    pub(crate) fn new(seed: u64) -> Self {
        let mut app = App::new();
        app.add_plugins((TimePlugin, DuePlugin::default()))
            .insert_resource(TimeUpdateStrategy::ManualDuration(FRAME));
        app.update();
        let mut crowd = Self {
            app,
            seed,
            entities: Vec::new(),
            numbers: EntityHashMap::default(),
        };
        for nth in 0..CLOCKS + OWNERS {
            let owner = (Clock::new(), Cooldown::new(10 * FRAME));
            let owner = crowd.app.world_mut().spawn(owner).id();
            crowd.add(owner);
            if nth < CLOCKS {
                let modifier = (
                    SpeedModifier::new(owner, 0.5),
                    DespawnAfter::new(20 * FRAME),
                );
                crowd.app.world_mut().spawn(modifier);
            }
        }
        let random = &mut Random::new(seed);
        for _ in 0..TIMERS {
            crowd.spawn(random);
        }
        crowd
    }

    fn add(&mut self, entity: Entity) {
        self.numbers.insert(entity, self.entities.len());
        self.entities.push(entity);
    }

    fn spawn(&mut self, random: &mut Random) {
        let owner = self.entities[CLOCKS + random.below(OWNERS as u64) as usize];
        let timer = self.timer(random);
        // An entity without a component of the crate would not be spawned again.
        let timer = (DespawnAfter::default(), timer);
        let mut entity = self.app.world_mut().spawn(timer);
        match random.below(8) {
            0 => _ = entity.insert(OwnedBy(owner)),
            1 => _ = entity.insert((OwnedBy(owner), Keyed::new(random.pick(&KEYS)))),
            2 => _ = entity.insert(DespawnAfter::new(random.span(400))),
            3 => _ = entity.insert(Paused),
            _ => {}
        }
        let entity = entity.id();
        self.add(entity);
    }

    fn timer(&self, random: &mut Random) -> Timer {
        let clock = self.entities[random.below(CLOCKS as u64) as usize];
        let timer = match random.below(5) {
            0 => Timer::every_between(FRAME..=20 * FRAME),
            1 => Timer::after(random.span(400)).with_jitter(FRAME),
            2 => Timer::after(random.span(400)).despawn_when_done(),
            _ => Timer::every(FRAME + random.span(200)).times(1 + random.below(20) as u32),
        };
        match random.below(6) {
            0 => timer.on(clock),
            1 => timer.on(ClockId::Fixed),
            _ => timer,
        }
    }

    /// Changes some timers. The changes follow from the seed and the frame.
    fn change(&mut self, frame: usize) {
        let random = &mut Random::new(self.seed ^ (frame as u64 + 1) << 32);
        for _ in 0..30 {
            let nth = random.below(self.entities.len() as u64) as usize;
            let timer = self.timer(random);
            let clock = self.entities[random.below(CLOCKS as u64) as usize];
            let owner = self.entities[CLOCKS + random.below(OWNERS as u64) as usize];
            let what = random.below(14);
            if what == 0 {
                self.spawn(random);
            }
            let span = random.span(300);
            let Ok(mut entity) = self.app.world_mut().get_entity_mut(self.entities[nth]) else {
                continue;
            };
            let is_owner = nth < CLOCKS + OWNERS;
            match what {
                1 if is_owner => _ = entity.pause_for(span),
                1 => _ = entity.insert(Paused),
                2 => _ = entity.remove::<(Paused, Disabled)>(),
                3 => _ = entity.insert(timer),
                4 if !is_owner || random.one_in(4) => entity.despawn(),
                5 => _ = entity.change_own_timer(move |timer| timer.delay_by(span)),
                6 => _ = entity.change_own_timer(move |timer| _ = timer.set_clock(clock)),
                7 => _ = entity.change_own_timer(move |timer| timer.set_interval(FRAME + span)),
                8 if !is_owner => _ = entity.insert(OwnedBy(owner)),
                9 => _ = entity.remove::<OwnedBy>(),
                10 => _ = entity.set_timer(random.pick(&KEYS), timer),
                11 => _ = entity.insert((Disabled, Keyed::new(random.pick(&KEYS)))),
                12 => _ = entity.remove::<(Timer, Keyed)>(),
                _ => change_clock(entity, span, random),
            }
        }
    }

    /// Plays a frame, and returns the firings.
    pub(crate) fn play(&mut self, frame: usize) -> View {
        self.change(frame);
        self.app.update();
        let mut fired = self.app.world_mut().resource_mut::<Messages<TimerFired>>();
        let fired: Vec<_> = fired.drain().collect();
        let name = |fired: TimerFired| {
            let (timer, owner) = (self.name(fired.entity()), self.name(fired.owner()));
            format!(
                "{timer} of {owner}: {} at {:?}, missed {}",
                fired.count(),
                fired.deadline(),
                fired.missed()
            )
        };
        View(fired.into_iter().map(name).collect())
    }

    /// Returns the number of an entity. Entities without one are equal.
    fn name(&self, entity: Entity) -> String {
        let number = self.numbers.get(&entity);
        number.map_or("another".into(), |number| number.to_string())
    }

    pub(crate) fn view(&mut self) -> View {
        let entities = self.entities.clone();
        let timers = self.app.world_mut().with_timers(|timers| {
            let timer = |&entity: &Entity| {
                let keyed = KEYS.map(|key| timers.keyed(entity, key).map(|timer| timer.entity));
                (timers.get(entity), timers.lifetime(entity), keyed)
            };
            entities.iter().map(timer).collect::<Vec<_>>()
        });
        let mut rows = Vec::new();
        for (nth, (timer, life, keyed)) in timers.into_iter().enumerate() {
            let Ok(entity) = self.app.world().get_entity(entities[nth]) else {
                continue;
            };
            let timer = timer.map(|timer| {
                let clock = match timer.clock {
                    ClockId::Own(clock) => self.name(clock),
                    built_in => built_in.to_string(),
                };
                let owner = self.name(timer.owner);
                let (deadline, wait, paused) = (timer.deadline, timer.wait, timer.paused);
                let (count, left) = (timer.count, timer.left);
                (clock, owner, deadline, wait, count, left, paused)
            });
            let keyed = keyed.map(|timer| timer.map(|timer| self.name(timer)));
            let owned = entity.get::<Owned>().into_iter().flat_map(Owned::iter);
            let owned: Vec<_> = owned.map(|owned| self.name(owned)).collect();
            let clock = entity.get::<Clock>();
            let clock = clock.map(|clock| {
                (
                    self.app.world().clock_now(entity.id()),
                    clock.speed(),
                    clock.is_paused(),
                )
            });
            let cooldown = entity.get::<Cooldown>();
            let disabled = entity.contains::<Disabled>();
            let pauses = entity.get::<PausedBy>().map_or(0, |it| it.iter().count());
            rows.push(format!(
                "{nth}: {timer:?} {life:?} {keyed:?} {owned:?} {clock:?} {cooldown:?} \
                 {disabled} {pauses}"
            ));
        }
        View(rows)
    }

    pub(crate) fn moment(&mut self, frame: usize) -> Moment {
        let timers = self.app.world_mut().snapshot_timers();
        let world = self.app.world();
        Moment {
            frame,
            timers,
            times: (
                *world.resource(),
                *world.resource(),
                *world.resource(),
                *world.resource(),
            ),
            entities: self.entities.clone(),
        }
    }

    pub(crate) fn go_back(&mut self, moment: &Moment) {
        // A new map: the log knows the earlier names.
        let mut names = EntityHashMap::default();
        let world = self.app.world_mut();
        world.restore_timers(&moment.timers, &mut names);
        let (real, virt, fixed, time) = moment.times;
        self.app
            .insert_resource(real)
            .insert_resource(virt)
            .insert_resource(fixed)
            .insert_resource(time);
        self.entities.clear();
        self.numbers.clear();
        for entity in &moment.entities {
            self.add(names.get(entity).copied().unwrap_or(*entity));
        }
    }
}

fn change_clock(mut entity: EntityWorldMut, span: Duration, random: &mut Random) {
    if let Some(mut cooldown) = entity.get_mut::<Cooldown>() {
        _ = cooldown.try_use(span);
    }
    let Some(mut clock) = entity.get_mut::<Clock>() else {
        return;
    };
    match random.below(5) {
        0 => clock.pause(),
        1 => clock.unpause(),
        2 => clock.set_speed(random.pick(&[0.0, 0.5, 1.0, 3.0])),
        3 => clock.advance_by(span),
        _ => clock.set_now(span),
    }
}

fn frames_of(seed: u64) -> Vec<(View, View)> {
    let mut crowd = Crowd::new(seed);
    let frames = (0..FRAMES).map(|frame| (crowd.view(), crowd.play(frame)));
    frames.collect()
}

#[track_caller]
fn assert_same(view: &View, expected: &View, what: &str) {
    let rows = view.0.iter().zip(&expected.0);
    for (row, expected) in rows {
        assert_eq!(row, expected, "{what}");
    }
    assert_eq!(view.0.len(), expected.0.len(), "{what}");
}

fn seeds() -> core::ops::Range<u64> {
    let seeds = std::env::var("CROWDS").ok();
    0..seeds.map_or(1, |seeds| seeds.parse().expect("a number of crowds"))
}

/// Takes, restores and drops snapshots at random, and checks each frame.
#[test]
fn many_snapshots_are_restored_and_dropped_in_any_order() {
    for seed in seeds() {
        let expected = frames_of(seed);
        let mut crowd = Crowd::new(seed);
        let random = &mut Random::new(seed ^ 7);
        let mut moments: Vec<Moment> = Vec::new();
        let mut frame = 0;
        for step in 0..3 * FRAMES {
            if random.one_in(2) {
                moments.push(crowd.moment(frame));
            }
            if !moments.is_empty() && random.one_in(4) {
                let nth = random.below(moments.len() as u64) as usize;
                moments.swap_remove(nth);
            }
            if !moments.is_empty() && (frame == FRAMES || random.one_in(4)) {
                let nth = random.below(moments.len() as u64) as usize;
                crowd.go_back(&moments[nth]);
                frame = moments[nth].frame;
                let what = format!("game {seed}, step {step}, back to {frame}");
                if frame < FRAMES {
                    assert_same(&crowd.view(), &expected[frame].0, &what);
                }
            }
            if frame < FRAMES {
                let what = format!("game {seed}, step {step}, frame {frame}");
                assert_same(&crowd.play(frame), &expected[frame].1, &what);
                frame += 1;
            }
        }
    }
}

#[test]
fn an_old_snapshot_a_later_one_and_the_old_one_again() {
    let expected = frames_of(99);
    let mut crowd = Crowd::new(99);
    let mut moments = Vec::new();
    for (frame, (_, firings)) in expected.iter().enumerate() {
        if frame % 4 == 0 {
            moments.push(crowd.moment(frame));
        }
        assert_same(&crowd.play(frame), firings, "before");
    }
    for nth in [1, 8, 1, 0, 9, 5, 5, 0] {
        let frame = moments[nth].frame;
        crowd.go_back(&moments[nth]);
        assert_same(
            &crowd.view(),
            &expected[frame].0,
            &format!("back to {frame}"),
        );
    }
    for (frame, (view, firings)) in expected.iter().enumerate() {
        assert_same(&crowd.view(), view, &format!("frame {frame}"));
        assert_same(&crowd.play(frame), firings, &format!("frame {frame}"));
    }
}

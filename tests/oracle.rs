//! The whole against a list that is searched: timers whose handlers arm, cancel and despawn each
//! other in frames of any length fire as the promises say, for any script.

mod support;

use core::num::NonZeroU32;
use std::collections::{BTreeSet, HashMap};

use bevy_due::{BurstLimit, CancelReason, Timer, TimerCancelled, TimerFired};
use bevy_ecs::prelude::*;
use proptest::prelude::*;
use support::{advance_ms, app, ms};

const PLACES: usize = 6;
const BURST_LIMIT: u32 = 4;

#[derive(Clone, Copy, Debug)]
struct Spec {
    delay: u64,
    /// Zero for a timer that fires once.
    interval: u64,
    /// Zero for ever.
    times: u32,
}

impl Spec {
    fn timer(self) -> Timer {
        if self.interval == 0 {
            return Timer::after(ms(self.delay));
        }
        let timer = Timer::every(ms(self.interval)).first_after(ms(self.delay));
        if self.times == 0 {
            timer
        } else {
            timer.times(self.times)
        }
    }
}

/// Something done to the timer at a place. A place whose entity is gone gets a new one when armed.
#[derive(Clone, Copy, Debug)]
enum Op {
    Arm(usize, Spec),
    Remove(usize),
    Despawn(usize),
}

#[derive(Clone, Debug)]
enum Step {
    Do(Op),
    Advance(u64),
}

/// What the handler does at the n-th firing of the timer at a place.
type Script = HashMap<(usize, u64), Vec<Op>>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Happened {
    Fired {
        place: usize,
        deadline: u128,
        count: u64,
        missed: u64,
        last: bool,
    },
    Cancelled(usize, CancelReason),
}

#[derive(Clone)]
struct Listed {
    deadline: u64,
    sequence: u64,
    armed_in_run: u64,
    spec: Spec,
    count: u64,
    burst: u32,
}

/// The obviously right scheduler.
#[derive(Default)]
struct Oracle {
    timers: [Option<Listed>; PLACES],
    now: u64,
    run: u64,
    next_sequence: u64,
    log: Vec<Happened>,
}

impl Oracle {
    fn cancel(&mut self, place: usize, reason: CancelReason) {
        if self.timers[place].take().is_some() {
            self.log.push(Happened::Cancelled(place, reason));
        }
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Arm(place, spec) => {
                self.cancel(place, CancelReason::Replaced);
                self.timers[place] = Some(Listed {
                    deadline: self.now + spec.delay,
                    sequence: self.next_sequence,
                    armed_in_run: self.run,
                    spec,
                    count: 0,
                    burst: 0,
                });
                self.next_sequence += 1;
            }
            Op::Remove(place) => self.cancel(place, CancelReason::Removed),
            Op::Despawn(place) => self.cancel(place, CancelReason::Despawned),
        }
    }

    fn advance(&mut self, by: u64, script: &Script) {
        self.now += by;
        self.run += 1;
        while let Some(place) = self.first_due() {
            let timer = self.timers[place].as_mut().unwrap();
            let (deadline, interval) = (timer.deadline, timer.spec.interval);
            timer.count += 1;
            timer.burst += 1;
            let count = timer.count;
            let last = interval == 0 || count == u64::from(timer.spec.times);
            let mut missed = 0;
            timer.deadline += interval;
            if timer.deadline <= self.now && timer.burst == BURST_LIMIT && !last {
                while timer.deadline <= self.now {
                    missed += 1;
                    timer.deadline += interval;
                }
            }
            if timer.deadline > self.now {
                timer.burst = 0;
            }
            if last {
                self.timers[place] = None;
            }
            self.log.push(Happened::Fired {
                place,
                deadline: u128::from(deadline),
                count,
                missed,
                last,
            });
            for &op in script.get(&(place, count)).into_iter().flatten() {
                self.apply(op);
            }
        }
    }

    fn first_due(&self) -> Option<usize> {
        let due = |timer: &Listed| timer.armed_in_run < self.run && timer.deadline <= self.now;
        self.timers
            .iter()
            .enumerate()
            .filter_map(|(place, timer)| Some((place, timer.as_ref().filter(|timer| due(timer))?)))
            .min_by_key(|(_, timer)| (timer.deadline, timer.sequence))
            .map(|(place, _)| place)
    }

    fn armed(&self) -> BTreeSet<usize> {
        (0..PLACES)
            .filter(|&place| self.timers[place].is_some())
            .collect()
    }
}

#[derive(Component)]
struct Place(usize);

#[derive(Resource, Default)]
struct Places([Option<Entity>; PLACES]);

#[derive(Resource)]
struct Scripted(Script);

#[derive(Resource, Default)]
struct Log(Vec<Happened>);

/// The place of a despawned entity has to be told by what it was spawned with.
fn log_cancellations(place: usize) -> impl Fn(On<TimerCancelled>, ResMut<Log>) {
    move |cancelled, mut log| {
        log.0.push(Happened::Cancelled(place, cancelled.reason));
    }
}

fn apply(world: &mut World, op: Op) {
    match op {
        Op::Arm(place, spec) => {
            let entity = world.resource::<Places>().0[place];
            match entity.and_then(|entity| world.get_entity_mut(entity).ok()) {
                Some(mut entity) => {
                    entity.insert(spec.timer());
                }
                None => {
                    let entity = world
                        .spawn((Place(place), spec.timer()))
                        .observe(log_cancellations(place))
                        .id();
                    world.resource_mut::<Places>().0[place] = Some(entity);
                }
            }
        }
        Op::Remove(place) => {
            if let Some(entity) = world.resource::<Places>().0[place] {
                world.entity_mut(entity).remove::<Timer>();
            }
        }
        Op::Despawn(place) => {
            if let Some(entity) = world.resource_mut::<Places>().0[place].take() {
                world.despawn(entity);
            }
        }
    }
}

fn follow_script(
    fired: On<TimerFired>,
    places: Query<&Place>,
    script: Res<Scripted>,
    mut log: ResMut<Log>,
    mut commands: Commands,
) {
    let place = places.get(fired.entity).unwrap().0;
    log.0.push(Happened::Fired {
        place,
        deadline: fired.deadline.as_millis(),
        count: fired.count,
        missed: fired.missed,
        last: fired.last,
    });
    for &op in script.0.get(&(place, fired.count)).into_iter().flatten() {
        commands.queue(move |world: &mut World| apply(world, op));
    }
}

fn check(script: Script, steps: Vec<Step>) {
    let mut app = app();
    app.insert_resource(BurstLimit(NonZeroU32::new(BURST_LIMIT).unwrap()))
        .insert_resource(Scripted(script.clone()))
        .init_resource::<Places>()
        .init_resource::<Log>()
        .add_observer(follow_script);
    let mut oracle = Oracle::default();
    for step in steps {
        match step {
            Step::Do(op) => {
                apply(app.world_mut(), op);
                oracle.apply(op);
            }
            Step::Advance(by) => {
                advance_ms(&mut app, by);
                oracle.advance(by, &script);
            }
        }
        let world = app.world_mut();
        let mut places = world.query_filtered::<&Place, With<Timer>>();
        let armed: BTreeSet<usize> = places.iter(world).map(|place| place.0).collect();
        assert_eq!(armed, oracle.armed(), "who has a timer");
        assert_eq!(world.resource::<Log>().0, oracle.log);
    }
}

fn spec() -> impl Strategy<Value = Spec> {
    (0..12_u64, prop_oneof![Just(0), 1..8_u64], 0..5_u32).prop_map(|(delay, interval, times)| {
        Spec {
            delay,
            interval,
            times,
        }
    })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..PLACES, spec()).prop_map(|(place, spec)| Op::Arm(place, spec)),
        1 => (0..PLACES).prop_map(Op::Remove),
        1 => (0..PLACES).prop_map(Op::Despawn),
    ]
}

fn script() -> impl Strategy<Value = Script> {
    let when = (0..PLACES, 1..6_u64);
    prop::collection::hash_map(when, prop::collection::vec(op(), 1..4), 0..20)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => op().prop_map(Step::Do),
        1 => (0..40_u64).prop_map(Step::Advance),
    ];
    prop::collection::vec(step, 0..40)
}

proptest! {
    #[test]
    fn timers_do_what_a_sorted_list_does(script in script(), steps in steps()) {
        check(script, steps);
    }
}

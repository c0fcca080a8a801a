//! With exact frames, a game does not depend on the lengths of its frames: random games are played several times,
//! each time with other frames, and are always the same.

#[allow(dead_code, reason = "it needs only some of these helpers")]
mod support;

use core::{iter, time::Duration};

use bevy_app::App;
use bevy_due::{
    Clocks, ClocksMut, DespawnAfter, OnClock, Timer, TimerFired, clock::SpeedModifier, prelude::*,
    timer::Pauses,
};
use bevy_ecs::prelude::*;
use proptest::{collection::vec, option::weighted, prelude::*, sample::select};
use support::*;

const CLOCKS: usize = 4;
const UNITS: usize = 4;
const PLANS: usize = 6;
const KEYS: [&str; 2] = ["a", "b"];

/// The length of a game, in milliseconds.
const LENGTH: u64 = 20_000;

/// The most deeds of a game, so that timers that arm timers come to an end.
const MOST_DEEDS: usize = 300;

#[derive(Clone, Debug)]
struct Game {
    /// The parent of each clock, and its speed. A clock is older than its children, or younger.
    clocks: Vec<(Place, f64)>,
    units: Vec<Unit>,
    plans: Vec<Plan>,
}

/// The clock of something, or of a clock.
#[derive(Clone, Copy, Debug)]
enum Place {
    Real,
    Game,
    Own(usize),
}

#[derive(Clone, Copy, Debug)]
enum Unit {
    /// On the clock of the game.
    Plain,
    On(Place),
    /// With a clock of its own.
    With(Place, f64),
}

/// A timer that may be armed any number of times. The first ones of each unit are there from the start.
#[derive(Clone, Debug)]
struct Plan {
    unit: usize,
    on: Option<Place>,
    delay: u64,
    interval: Option<u64>,
    times: u32,
    /// One for each firing, over and over again.
    deeds: Vec<Deed>,
}

/// What the handler of a timer does.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Nothing,
    Arm(usize),
    Set(usize, usize),
    Cancel(usize),
    CancelKey(usize, usize),
    Remain(u64),
    Move(Place),
    Speed(usize, f64),
    /// Pauses a clock for a time of the real clock.
    Hold(usize, u64),
    /// Pauses a clock, and resumes it at once.
    Blink(usize),
    SetParent(usize, Place),
    Advance(usize, u64),
    Forward(Place, u64),
    Enter(usize, Place),
    Stun(usize, u64),
    /// Pauses a unit as long as a keyed timer.
    Freeze(usize, u64),
    Slow(usize, f64, u64),
    /// Slows a unit as long as a keyed timer.
    Chill(usize, f64, u64),
    Blind(usize, u64),
    Later(usize, u64),
}

#[derive(Component)]
struct Blind;

/// The plan of a timer, and its number among those of the plan.
#[derive(Component, Clone, Copy)]
struct Of(usize, usize);

#[derive(Resource)]
struct Played {
    game: Game,
    clocks: Vec<Entity>,
    units: Vec<Entity>,
    armed: [usize; PLANS],
    deeds: usize,
    log: Vec<String>,
}

impl Played {
    fn clock(&self, place: Place) -> ClockId {
        match place {
            Place::Real => ClockId::Real,
            Place::Game => ClockId::Virtual,
            Place::Own(nth) => self.clocks[nth].into(),
        }
    }

    fn timer(&mut self, nth: usize) -> (Timer, Of) {
        let plan = &self.game.plans[nth];
        let timer = match plan.interval {
            Some(interval) => Timer::every(ms(interval)).first_after(ms(plan.delay)),
            None => Timer::after(ms(plan.delay)),
        };
        let timer = match plan.interval.and(Some(plan.times)) {
            Some(times) if times > 0 => timer.times(times),
            _ => timer,
        };
        let timer = match plan.on {
            Some(place) => timer.on(self.clock(place)),
            None => timer,
        };
        self.armed[nth] += 1;
        (timer, Of(nth, self.armed[nth]))
    }

    fn arm(&mut self, nth: usize, commands: &mut Commands) {
        let owner = OwnedBy(self.units[self.game.plans[nth].unit]);
        let timer = self.timer(nth);
        commands.spawn((owner, timer));
    }

    fn act(&mut self, deed: Deed, timer: Entity, commands: &mut Commands, clocks: &mut ClocksMut) {
        let clock = |nth: usize| ClockId::from(self.clocks[nth]);
        let units = self.units.clone();
        let unit = |nth: usize| units[nth];
        match deed {
            Deed::Nothing => {}
            Deed::Arm(plan) => self.arm(plan, commands),
            Deed::Set(plan, key) => {
                let owner = self.units[self.game.plans[plan].unit];
                let timer = self.timer(plan);
                commands.entity(owner).set_timer(KEYS[key], timer);
            }
            Deed::Cancel(nth) => _ = commands.entity(unit(nth)).cancel_timers(),
            Deed::CancelKey(nth, key) => _ = commands.entity(unit(nth)).cancel_timer(KEYS[key]),
            Deed::Remain(span) => commands.queue(move |world: &mut World| {
                world
                    .change_timer(timer, |timer| timer.set_remaining(ms(span)))
                    .ok();
            }),
            Deed::Move(to) => {
                let to = self.clock(to);
                commands.queue(move |world: &mut World| {
                    world
                        .change_timer(timer, |timer| _ = timer.set_clock(to))
                        .ok();
                });
            }
            Deed::Speed(nth, speed) => clocks.get_mut(clock(nth)).unwrap().set_speed(speed),
            Deed::Hold(nth, span) => {
                let clock = clock(nth);
                clocks.get_mut(clock).unwrap().pause();
                let resume = move |commands: &mut Commands| {
                    commands.queue(move |world: &mut World| {
                        world.change_clock(clock, |clock| clock.unpause()).unwrap();
                    });
                };
                commands.after(ms(span)).on(ClockId::Real).queue(resume);
            }
            Deed::Blink(nth) => {
                let mut clock = clocks.get_mut(clock(nth)).unwrap();
                clock.pause();
                clock.unpause();
            }
            Deed::SetParent(nth, parent) => {
                let parent = self.clock(parent);
                clocks.get_mut(clock(nth)).unwrap().set_parent(parent).ok();
            }
            Deed::Advance(nth, span) => clocks.get_mut(clock(nth)).unwrap().advance_by(ms(span)),
            Deed::Forward(place, span) => commands.fast_forward(self.clock(place), ms(span)),
            Deed::Enter(nth, place) => {
                _ = commands
                    .entity(unit(nth))
                    .insert(OnClock(self.clock(place)));
            }
            Deed::Stun(nth, span) => _ = commands.entity(unit(nth)).pause_for(ms(span)),
            Deed::Freeze(nth, span) => {
                let pause = Pauses(unit(nth));
                commands
                    .entity(unit(nth))
                    .set_timer("ice", (Timer::after(ms(span)), pause));
            }
            Deed::Slow(nth, factor, span) => {
                let modifier = SpeedModifier::new(unit(nth), factor).in_group("slow");
                commands.spawn((modifier, DespawnAfter::new(ms(span))));
            }
            Deed::Chill(nth, factor, span) => {
                let modifier = SpeedModifier::new(unit(nth), factor).in_group("slow");
                commands
                    .entity(unit(nth))
                    .set_timer("cold", (Timer::after(ms(span)), modifier));
            }
            Deed::Blind(nth, span) => _ = commands.entity(unit(nth)).insert_for(ms(span), Blind),
            Deed::Later(plan, span) => {
                let later = move |commands: &mut Commands| {
                    commands.queue(move |world: &mut World| {
                        world.resource_scope(|world, mut played: Mut<Played>| {
                            played.arm(plan, &mut world.commands());
                        });
                        world.flush();
                    });
                };
                commands.after(ms(span)).queue(later);
            }
        }
    }
}

/// Logs a firing, with the time on every clock, and does the next deed of the timer.
fn on_fired(
    fired: On<TimerFired>,
    of: Query<&Of>,
    mut played: ResMut<Played>,
    mut commands: Commands,
    clocks: Clocks,
    mut changed: ClocksMut,
) {
    let Ok(&Of(plan, nth)) = of.get(fired.entity()) else {
        return;
    };
    let times = times(&played, &clocks);
    let (deadline, clock, count) = (fired.deadline(), fired.clock(), fired.count());
    let lateness = fired.lateness();
    let entry = format!(
        "timer {nth} of {plan}: {deadline:?} on {clock} ({count}, {lateness:?}), {times:?}"
    );
    played.log.push(entry);
    if played.deeds < MOST_DEEDS {
        played.deeds += 1;
        let deeds = &played.game.plans[plan].deeds;
        let deed = deeds[(count as usize - 1) % deeds.len()];
        played.act(deed, fired.entity(), &mut commands, &mut changed);
    }
}

fn on_seeing(seeing: On<Remove<Blind>>, mut played: ResMut<Played>, clocks: Clocks) {
    let unit = played.units.iter().position(|&unit| unit == seeing.entity);
    let entry = format!("unit {unit:?} sees, {:?}", times(&played, &clocks));
    played.log.push(entry);
}

/// Returns the time on each clock that belongs to no frame.
fn times(played: &Played, clocks: &Clocks) -> Vec<Duration> {
    let own = played.clocks.iter().chain(&played.units);
    let own = own.map(|&clock| ClockId::from(clock));
    let all = own.chain([ClockId::Real, ClockId::Virtual]);
    all.filter_map(|clock| clocks.now(clock).ok()).collect()
}

/// Plays a game in frames of these lengths. Returns what has happened.
fn play(game: &Game, frames: impl Iterator<Item = Duration>) -> Vec<String> {
    let mut app = unobserved_app_with(DuePlugin {
        exact_frames: true,
        ..DuePlugin::default()
    });
    start(&mut app, game);
    app.add_observer(on_fired).add_observer(on_seeing);
    let mut left = ms(LENGTH);
    for by in frames {
        let by = by.min(left);
        left -= by;
        advance(&mut app, by);
        if left.is_zero() {
            break;
        }
    }
    advance(&mut app, left);
    let end = |played: Res<Played>, clocks: Clocks| times(&played, &clocks);
    let end = app.world_mut().run_system_cached(end).unwrap();
    let mut played = app.world_mut().resource_mut::<Played>();
    played.log.push(format!("the end, {end:?}"));
    core::mem::take(&mut played.log)
}

fn start(app: &mut App, game: &Game) {
    let world = app.world_mut();
    let clocks: Vec<Entity> = (0..CLOCKS).map(|_| world.spawn_empty().id()).collect();
    let units: Vec<Entity> = (0..UNITS).map(|_| world.spawn_empty().id()).collect();
    let mut played = Played {
        game: game.clone(),
        clocks,
        units,
        armed: [0; PLANS],
        deeds: 0,
        log: Vec::new(),
    };
    for (nth, &(parent, speed)) in game.clocks.iter().enumerate() {
        let clock = Clock::of(played.clock(parent)).with_speed(speed);
        world.entity_mut(played.clocks[nth]).insert(clock);
    }
    for (nth, &unit) in game.units.iter().enumerate() {
        let mut entity = world.entity_mut(played.units[nth]);
        match unit {
            Unit::Plain => {}
            Unit::On(place) => _ = entity.insert(OnClock(played.clock(place))),
            Unit::With(place, speed) => {
                entity.insert(Clock::of(played.clock(place)).with_speed(speed));
            }
        }
    }
    for plan in 0..PLANS {
        played.arm(plan, &mut world.commands());
    }
    world.flush();
    app.insert_resource(played);
}

fn any_game() -> impl Strategy<Value = Game> {
    // No clock drives itself.
    let clock = |nth: usize| (any_place(nth), any_speed());
    let clocks: Vec<_> = (0..CLOCKS).map(clock).collect();
    let unit = prop_oneof![
        1 => Just(Unit::Plain),
        2 => any_place(CLOCKS).prop_map(Unit::On),
        2 => (any_place(CLOCKS), any_speed()).prop_map(|(on, speed)| Unit::With(on, speed)),
    ];
    (clocks, vec(unit, UNITS), vec(any_plan(), PLANS)).prop_map(|(clocks, units, plans)| Game {
        clocks,
        units,
        plans,
    })
}

fn any_place(clocks: usize) -> BoxedStrategy<Place> {
    match clocks {
        0 => select(vec![Place::Real, Place::Game]).boxed(),
        clocks => prop_oneof![
            1 => Just(Place::Real),
            2 => Just(Place::Game),
            4 => (0..clocks).prop_map(Place::Own),
        ]
        .boxed(),
    }
}

fn any_speed() -> impl Strategy<Value = f64> {
    select(vec![0.37, 0.5, 1.0, 1.0, 2.0])
}

fn any_plan() -> impl Strategy<Value = Plan> {
    let rhythm = (any_span(), weighted(0.6, 50..2000_u64), 0..9_u32);
    let on = weighted(0.4, any_place(CLOCKS));
    let deeds = vec(any_deed(), 1..4);
    (0..UNITS, on, rhythm, deeds).prop_map(|(unit, on, (delay, interval, times), deeds)| Plan {
        unit,
        on,
        delay,
        interval,
        times,
        deeds,
    })
}

/// Returns spans with many equal ones, and those that end in the same frame.
fn any_span() -> BoxedStrategy<u64> {
    prop_oneof![1 => Just(0), 3 => 1..500_u64, 2 => select(vec![100, 250, 500, 1000, 2000])].boxed()
}

fn any_deed() -> impl Strategy<Value = Deed> {
    let (clock, unit, plan, key) = (|| 0..CLOCKS, || 0..UNITS, || 0..PLANS, || 0..KEYS.len());
    prop_oneof![
        4 => Just(Deed::Nothing),
        4 => plan().prop_map(Deed::Arm),
        2 => (plan(), key()).prop_map(|(plan, key)| Deed::Set(plan, key)),
        1 => unit().prop_map(Deed::Cancel),
        1 => (unit(), key()).prop_map(|(unit, key)| Deed::CancelKey(unit, key)),
        1 => any_span().prop_map(Deed::Remain),
        1 => any_place(CLOCKS).prop_map(Deed::Move),
        2 => (clock(), any_speed()).prop_map(|(clock, speed)| Deed::Speed(clock, speed)),
        2 => (clock(), any_span()).prop_map(|(clock, span)| Deed::Hold(clock, span)),
        1 => clock().prop_map(Deed::Blink),
        1 => (clock(), any_place(CLOCKS)).prop_map(|(clock, place)| Deed::SetParent(clock, place)),
        1 => (clock(), any_span()).prop_map(|(clock, span)| Deed::Advance(clock, span)),
        1 => (any_place(CLOCKS), any_span()).prop_map(|(place, span)| Deed::Forward(place, span)),
        1 => (unit(), any_place(CLOCKS)).prop_map(|(unit, place)| Deed::Enter(unit, place)),
        2 => (unit(), any_span()).prop_map(|(unit, span)| Deed::Stun(unit, span)),
        1 => (unit(), any_span()).prop_map(|(unit, span)| Deed::Freeze(unit, span)),
        2 => (unit(), any_speed(), any_span()).prop_map(|(unit, by, span)| Deed::Slow(unit, by, span)),
        1 => (unit(), any_speed(), any_span()).prop_map(|(unit, by, span)| Deed::Chill(unit, by, span)),
        1 => (unit(), any_span()).prop_map(|(unit, span)| Deed::Blind(unit, span)),
        1 => (plan(), any_span()).prop_map(|(plan, span)| Deed::Later(plan, span)),
    ]
}

/// Returns frames of one to a thousand milliseconds, some of a fraction of one.
fn any_frames() -> impl Strategy<Value = Vec<Duration>> {
    let frame = prop_oneof![
        2 => (1..=1000_u64).prop_map(ms),
        2 => (1..=40_u64).prop_map(ms),
        1 => Just(Duration::from_nanos(16_666_667)),
        1 => (1_000_000..1_000_000_000_u64).prop_map(Duration::from_nanos),
    ];
    vec(frame, 20..60)
}

fn seconds() -> impl Iterator<Item = Duration> {
    iter::repeat(ms(1000))
}

/// Returns the number of games: `GAMES`, or a few.
fn games() -> u32 {
    let games = std::env::var("GAMES").ok();
    games.map_or(48, |games| games.parse().expect("a number"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: games(), ..Default::default() })]

    #[test]
    fn a_game_with_exact_frames_does_not_depend_on_their_lengths(
        game in any_game(),
        frames in any_frames(),
    ) {
        let expected = play(&game, seconds());
        let shown = play(&game, frames.into_iter().cycle());
        for (shown, expected) in shown.iter().zip(&expected) {
            prop_assert_eq!(shown, expected);
        }
        prop_assert_eq!(shown.len(), expected.len());
    }
}

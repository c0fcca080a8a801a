//! Random games: an entity that moves at a random frame fires as one that stays.

use std::borrow::Cow;

use core::time::Duration;
use std::collections::BTreeMap;

use bevy_due::{Clock, ClockId, MissedTicks, Paused, Timer, timer::TimerStatus};

use super::*;
use crate::saving::script::Random;

const FRAMES: usize = 40;

/// The keys of the hero's timers.
const KEYS: [&str; 4] = ["a", "b", "c", "d"];

/// When the hero moves.
#[derive(Clone, Copy, Debug)]
struct Plan {
    export_at: usize,
    import_at: usize,
    commit_at: usize,
    comes_back: bool,
}

impl Plan {
    fn new(random: &mut Random) -> Self {
        let export_at = random.below(FRAMES as u64 / 2) as usize;
        let import_at = export_at + random.below(4) as usize;
        Self {
            export_at,
            import_at,
            commit_at: import_at + random.below(4) as usize,
            comes_back: random.one_in(4),
        }
    }

    fn is_moving(&self, frame: usize) -> bool {
        (self.export_at..self.commit_at).contains(&frame)
    }
}

/// The timers that fire in the same way in a game with a move.
#[derive(Clone, Copy)]
struct Kinds {
    /// With policies other than a burst.
    policies: bool,
    /// With random intervals. Each world draws its own numbers.
    draws: bool,
}

/// The clock of a firing or a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum On {
    Real,
    Virtual,
    Own,
}

/// A firing: key, count, deadline in game time, missed, last.
type Firing = (Option<Cow<'static, str>>, u64, i128, u64, bool);

/// What the hero does.
#[derive(Debug, Default, PartialEq)]
struct Record {
    /// In order on each clock. In which order the clocks run differs if a move spans several frames.
    firings: BTreeMap<On, Vec<Firing>>,
    /// After each frame in which the hero is not in transit.
    states: Vec<(usize, String)>,
}

struct Game {
    zones: [App; 2],
    hero: Entity,
    /// The zone of the hero.
    at: usize,
    record: Record,
    heard: Vec<u8>,
    sent: Vec<u8>,
    /// Mail that the other zone gets before the commit.
    newer: Vec<u8>,
}

/// The time of the second zone, whose clocks are ahead.
const AHEAD: u64 = 12_345;

impl Game {
    fn new(random: &mut Random) -> Self {
        let mut zones = [zone(), zone()];
        advance_ms(&mut zones[1], AHEAD);
        let hero = zones[0].world_mut().spawn((ears(), Tag("hero"))).id();
        let mut game = Self {
            zones,
            hero,
            at: 0,
            record: Record::default(),
            heard: Vec::new(),
            sent: Vec::new(),
            newer: Vec::new(),
        };
        let mut dash = Cooldown::new(ms(700)).with_charges(2);
        if random.one_in(2) {
            let speed = random.pick(&[0.0, 0.3, 1.0 / 3.0, 2.5]);
            let clock = Clock::new().with_speed(speed).with_now(ms(500));
            assert!(dash.try_use(ms(500)));
            game.hero().insert((clock, dash));
        } else {
            assert!(dash.try_use(game_time(&game.zones[0])));
            game.hero().insert(dash);
        }
        game
    }

    fn hero(&mut self) -> EntityWorldMut<'_> {
        self.zones[self.at].world_mut().entity_mut(self.hero)
    }

    /// Changes the hero before a frame.
    fn change(&mut self, random: &mut Random, kinds: Kinds) {
        let key = random.pick(&KEYS);
        match random.below(6) {
            0..3 => {
                let timer = timer(random, kinds);
                self.hero().set_timer(key, timer);
            }
            3 => _ = self.hero().cancel_timer(key),
            4 => {
                let by = ms(random.below(50));
                self.hero().delay_timers_by(by);
            }
            _ if random.one_in(2) => _ = self.hero().insert(Paused),
            _ => _ = self.hero().remove::<Paused>(),
        }
        self.zones[self.at].world_mut().flush();
    }

    fn send(&mut self, nth: &mut u8, to: (usize, Entity)) {
        *nth += 1;
        send(&mut self.zones[to.0], to.1, *nth);
        match to.0 == self.at {
            true => self.sent.push(*nth),
            false => self.newer.push(*nth),
        }
    }

    /// Plays a frame in both zones.
    fn play(&mut self, by: Duration) {
        for at in 0..2 {
            advance(&mut self.zones[at], by);
            let ahead = if at == 1 {
                i128::from(AHEAD) * 1_000_000
            } else {
                0
            };
            for fired in firings(&mut self.zones[at]) {
                let on = on(fired.clock());
                let deadline = fired.deadline().as_nanos() as i128;
                let deadline = if on == On::Own {
                    deadline
                } else {
                    deadline - ahead
                };
                let firing = (
                    fired.key(),
                    fired.count(),
                    deadline,
                    fired.missed(),
                    fired.is_last(),
                );
                self.record.firings.entry(on).or_default().push(firing);
            }
        }
    }

    /// Notes the state of the hero after a frame.
    fn note(&mut self, frame: usize) {
        let hero = self.hero;
        let world = self.zones[self.at].world_mut();
        let mut timers: Vec<String> =
            world.with_timers(|timers| timers.of(hero).map(|timer| state(&timer)).collect());
        timers.sort();
        let dash = *world.get::<Cooldown>(hero).expect("it moves along");
        let now = game_time(&self.zones[self.at]);
        let world = self.zones[self.at].world();
        let dash = match world.clock_now(hero) {
            Ok(now) => format!("{} {} at {now:?}", dash.charges(now), dash.fraction(now)),
            Err(_) => format!("{} {}", dash.charges(now), dash.fraction(now)),
        };
        let state = format!("{timers:?} {dash}");
        self.record.states.push((frame, state));
        let heard = heard(&mut self.zones[self.at], hero);
        self.heard.extend(heard);
    }
}

fn on(clock: ClockId) -> On {
    match clock {
        ClockId::Real => On::Real,
        ClockId::Virtual => On::Virtual,
        ClockId::Own(_) => On::Own,
        clock => panic!("no timer is on {clock}"),
    }
}

fn state(timer: &TimerStatus) -> String {
    format!(
        "{:?} {:?} of {:?}, every {:?}, {} fired, {:?} left, {}",
        on(timer.clock),
        timer.remaining,
        timer.wait,
        timer.interval,
        timer.count,
        timer.left,
        timer.paused
    )
}

fn timer(random: &mut Random, kinds: Kinds) -> Timer {
    let interval = ms(5 + random.below(60));
    let mut timer = match random.below(4) {
        0 => Timer::after(ms(random.below(300))),
        1 if kinds.draws => Timer::every_between(interval..=2 * interval),
        _ => Timer::every(interval).first_after(ms(random.below(100))),
    };
    if timer.interval().is_some() && random.one_in(3) {
        timer = timer.times(1 + random.below(8) as u32);
    }
    if kinds.policies {
        let policy = [MissedTicks::Burst, MissedTicks::Skip, MissedTicks::Delay];
        timer = timer.with_missed_ticks(random.pick(&policy));
    }
    match random.below(4) {
        0 => timer.on(ClockId::Real),
        1 => timer.on(ClockId::Virtual),
        _ => timer,
    }
}

/// Plays a game with or without its move.
fn play(seed: u64, plan: Plan, moves: bool) -> Record {
    let mut game = Game::new(&mut Random::new(seed));
    // A deadline in transit counts as missed, so policies other than a burst see the move.
    let policies = plan.export_at == plan.commit_at;
    let (mut exported, mut there, mut on_the_way) = (None, None, Duration::ZERO);
    let mut nth = 0;
    for frame in 0..FRAMES {
        let random = &mut Random::new(seed ^ (frame as u64 + 1) << 32);
        if moves && frame == plan.export_at {
            exported = Some(export(&mut game.zones[0], game.hero));
            on_the_way = Duration::ZERO;
        }
        if moves && frame == plan.import_at {
            let moved = exported.as_ref().expect("it was exported");
            let nanos = on_the_way.as_nanos() as u64;
            let mut map = EntityHashMap::default();
            let on_the_way = Duration::from_nanos(nanos);
            let world = game.zones[1].world_mut();
            let here = world.import_entity(moved, on_the_way, &mut map);
            let here = here.expect("the data is valid");
            world.entity_mut(here).insert((ears(), Tag("hero")));
            there = Some(here);
        }
        if moves && frame == plan.commit_at {
            let there = there.take().expect("it was imported");
            let [forest, town] = &mut game.zones;
            if plan.comes_back {
                let late = forget(town, there);
                commit(forest, game.hero, &late);
            } else {
                let late = forget(forest, game.hero);
                commit(town, there, &late);
                (game.hero, game.at) = (there, 1);
            }
            game.sent.append(&mut game.newer);
        }
        // Before the first run, what became due in transit has not fired yet.
        let is_overdue = frame == plan.commit_at && !policies;
        if !plan.is_moving(frame) && !is_overdue {
            for _ in 0..random.below(3) {
                let draws = frame < plan.export_at;
                game.change(random, Kinds { policies, draws });
            }
        }
        for _ in 0..random.below(3) {
            let goes_ahead = random.one_in(2);
            let to = match there {
                Some(there) if goes_ahead => (1, there),
                _ => (game.at, game.hero),
            };
            game.send(&mut nth, to);
        }
        let by = ms(random.pick(&[0, 7, 10, 16, 33, 100]));
        on_the_way += by;
        game.play(by);
        if !plan.is_moving(frame) {
            game.note(frame);
        }
    }
    assert_eq!(game.heard, game.sent, "game {seed}: {plan:?}");
    for app in &game.zones {
        let stats = app.world().resource::<MessageStats>();
        assert_eq!(stats.undeliverable, 0, "game {seed}: {plan:?}");
    }
    game.record
}

/// Checks that a game with a move goes on as the same one without it.
fn check(seed: u64) {
    let plan = Plan::new(&mut Random::new(!seed));
    let (stays, moves) = (play(seed, plan, false), play(seed, plan, true));
    for (nth, (expected, found)) in stays.states.iter().zip(&moves.states).enumerate() {
        assert_eq!(found, expected, "state {nth} of game {seed}: {plan:?}");
    }
    for (on, expected) in &stays.firings {
        let found = moves.firings.get(on);
        let found = found.map_or(&[][..], |found| &found[..]);
        let nth = (0..expected.len()).find(|&nth| found.get(nth) != Some(&expected[nth]));
        let differs = nth.map(|nth| (found.get(nth), &expected[nth]));
        assert_eq!(differs, None, "on {on:?} in game {seed}: {plan:?}");
    }
    assert_eq!(moves, stays, "game {seed}: {plan:?}");
}

#[test]
fn an_entity_that_moves_at_a_random_frame_fires_as_one_that_stays() {
    let games = std::env::var("GAMES").ok();
    let games = games.map_or(40, |games| games.parse().expect("a number"));
    let first = std::env::var("FIRST_GAME").ok();
    let first = first.map_or(0, |first| first.parse().expect("a number"));
    for seed in first..first + games {
        check(seed);
    }
}

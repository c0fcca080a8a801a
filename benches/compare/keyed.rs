//! Units with four effects, which are set, refreshed and cancelled all the time.

use core::time::Duration;

use bevy_app::prelude::*;
use bevy_due::{Timer, TimerKey, prelude::*};
use bevy_ecs::prelude::*;
use bevy_time::{Time, TimerMode};

use crate::{
    contenders::{app, due_app, on_one_thread},
    frames::frames,
    sides::Table,
    work::{period_up_to, random},
};

const UNITS: usize = 100_000;

/// Each frame sets, refreshes and cancels the effects of this many units.
const PER_FRAME: usize = UNITS / 100;

/// An effect ends after this many ticks.
const TICKS: u32 = 10;

#[derive(Resource)]
struct Units(Vec<Entity>);

#[derive(Clone, Copy)]
enum Change {
    Set,
    Refresh,
    Cancel,
}

#[derive(Component)]
struct Poison;
#[derive(Component)]
struct Slow;
#[derive(Component)]
struct Haste;
#[derive(Component)]
struct Shield;

impl TimerKey for Poison {
    const NAME: &'static str = "poison";
}
impl TimerKey for Slow {
    const NAME: &'static str = "slow";
}
impl TimerKey for Haste {
    const NAME: &'static str = "haste";
}
impl TimerKey for Shield {
    const NAME: &'static str = "shield";
}

pub fn compare(table: &mut Table) {
    for (peer, theirs) in [
        ("bevy_timers", in_component as fn() -> App),
        ("child_of", children),
    ] {
        let per_turn = |units: usize| units / (3 * PER_FRAME) + 1;
        table.line(
            ("app_keyed", UNITS, peer),
            None,
            |units| frames(keyed(), per_turn(units), 1, armed::<Timer>),
            |units| match peer {
                "child_of" => frames(theirs(), per_turn(units), 1, armed::<Effect>),
                _ => frames(theirs(), per_turn(units), 1, armed_in_components),
            },
        );
    }
}

/// Returns the changes of a frame: the kind, the unit, its effect, and the interval of the ticks.
fn changes(frame: u64) -> impl Iterator<Item = (Change, usize, usize, Duration)> {
    let changes = [Change::Set, Change::Refresh, Change::Cancel];
    let changes = changes.into_iter().cycle().take(3 * PER_FRAME);
    let first = random(frame) as usize;
    changes.enumerate().map(move |(nth, change)| {
        let random = random(frame * 3 * PER_FRAME as u64 + nth as u64);
        // No unit comes twice in a frame.
        let unit = (first + nth * 33) % UNITS;
        (change, unit, (random >> 40) as usize % 4, interval(random))
    })
}

/// The effects at the start: two of four on each unit, with one to ten ticks left. So effects end from the
/// first second on.
fn first_effects() -> impl Iterator<Item = (usize, usize, Duration, u32)> {
    (0..UNITS).flat_map(|unit| {
        [0, 2].map(|effect| {
            let random = random((unit * 4 + effect) as u64);
            let ticks = 1 + (random >> 20) as u32 % TICKS;
            (unit, effect + random as usize % 2, interval(random), ticks)
        })
    })
}

fn interval(random: u64) -> Duration {
    Duration::from_nanos(period_up_to(5, random))
}

fn spawn_units<B: Bundle>(app: &mut App, unit: impl Fn() -> B) {
    let units = (0..UNITS).map(|_| app.world_mut().spawn(unit()).id());
    let units = Units(units.collect());
    app.insert_resource(units);
}

/// This crate's keyed timers.
fn keyed() -> App {
    fn change<K: TimerKey>(mut unit: EntityCommands, key: K, change: Change, timer: Timer) {
        match change {
            Change::Set => unit.set_timer(key, timer),
            Change::Refresh => unit.refresh_timer(key, timer),
            Change::Cancel => unit.cancel_timer(key),
        };
    }

    fn change_nth(unit: EntityCommands, effect: usize, what: Change, timer: Timer) {
        match effect {
            0 => change(unit, Poison, what, timer),
            1 => change(unit, Slow, what, timer),
            2 => change(unit, Haste, what, timer),
            _ => change(unit, Shield, what, timer),
        }
    }

    let mut app = due_app();
    spawn_units(&mut app, || ());
    app.add_systems(Startup, |units: Res<Units>, mut commands: Commands| {
        for (unit, effect, interval, ticks) in first_effects() {
            let unit = commands.entity(units.0[unit]);
            let timer = Timer::every(interval).times(ticks);
            change_nth(unit, effect, Change::Set, timer);
        }
    });
    app.add_systems(
        Update,
        |mut frame: Local<u64>, units: Res<Units>, mut commands: Commands| {
            for (what, unit, effect, interval) in changes(*frame) {
                let timer = Timer::every(interval).times(TICKS);
                change_nth(commands.entity(units.0[unit]), effect, what, timer);
            }
            *frame += 1;
        },
    );
    on_one_thread(app)
}

/// An effect that a system ticks.
#[derive(Component, Clone)]
struct Effect {
    nth: usize,
    timer: bevy_time::Timer,
    ticks: u32,
    left: u32,
}

impl Effect {
    fn new(nth: usize, interval: Duration, ticks: u32) -> Self {
        Self {
            nth,
            timer: bevy_time::Timer::new(interval, TimerMode::Repeating),
            ticks,
            left: ticks,
        }
    }

    fn refresh(&mut self) {
        self.left = self.ticks;
    }

    /// Returns `true` if this was the last tick.
    fn tick(&mut self, delta: Duration) -> bool {
        if self.timer.tick(delta).just_finished() {
            self.left -= 1;
        }
        self.left == 0
    }
}

#[derive(Component, Default)]
struct Effects([Option<Effect>; 4]);

/// A component with four timers on each unit, which a system ticks.
fn in_component() -> App {
    let mut app = app();
    spawn_units(&mut app, Effects::default);
    app.add_systems(
        Startup,
        |units: Res<Units>, mut effects: Query<&mut Effects>| {
            for (unit, nth, interval, ticks) in first_effects() {
                let Ok(mut effects) = effects.get_mut(units.0[unit]) else {
                    continue;
                };
                effects.0[nth] = Some(Effect::new(nth, interval, ticks));
            }
        },
    );
    let tick = |mut effects: Query<&mut Effects>, time: Res<Time>| {
        for mut effects in &mut effects {
            for effect in &mut effects.0 {
                if effect
                    .as_mut()
                    .is_some_and(|effect| effect.tick(time.delta()))
                {
                    *effect = None;
                }
            }
        }
    };
    let change = |mut frame: Local<u64>, units: Res<Units>, mut effects: Query<&mut Effects>| {
        for (what, unit, nth, interval) in changes(*frame) {
            let Ok(mut effects) = effects.get_mut(units.0[unit]) else {
                continue;
            };
            match (what, &mut effects.0[nth]) {
                (Change::Cancel, effect) => *effect = None,
                (Change::Refresh, Some(effect)) => effect.refresh(),
                (_, effect) => *effect = Some(Effect::new(nth, interval, TICKS)),
            }
        }
        *frame += 1;
    };
    app.add_systems(Update, (tick, change).chain());
    on_one_thread(app)
}

/// A child with a timer per effect, which a system ticks.
fn children() -> App {
    let mut app = app();
    spawn_units(&mut app, || ());
    app.add_systems(Startup, |units: Res<Units>, mut commands: Commands| {
        for (unit, nth, interval, ticks) in first_effects() {
            commands.spawn((Effect::new(nth, interval, ticks), ChildOf(units.0[unit])));
        }
    });
    let tick =
        |mut effects: Query<(Entity, &mut Effect)>, time: Res<Time>, mut commands: Commands| {
            for (entity, mut effect) in &mut effects {
                if effect.tick(time.delta()) {
                    commands.entity(entity).despawn();
                }
            }
        };
    let change = |mut frame: Local<u64>,
                  units: Res<Units>,
                  children: Query<&Children>,
                  mut effects: Query<&mut Effect>,
                  mut commands: Commands| {
        for (what, unit, nth, interval) in changes(*frame) {
            let unit = units.0[unit];
            let children = children.get(unit).into_iter().flatten();
            let has_effect = |&child: &Entity| effects.get(child).is_ok_and(|it| it.nth == nth);
            let effect = children.copied().find(has_effect);
            match (what, effect) {
                (Change::Refresh, Some(effect)) => {
                    if let Ok(mut effect) = effects.get_mut(effect) {
                        effect.refresh();
                    }
                }
                (Change::Cancel, Some(effect)) => commands.entity(effect).despawn(),
                (Change::Cancel, None) => {}
                (Change::Set, Some(effect)) => {
                    let new = Effect::new(nth, interval, TICKS);
                    commands.entity(effect).insert(new);
                }
                (_, None) => {
                    let new = Effect::new(nth, interval, TICKS);
                    commands.spawn((new, ChildOf(unit)));
                }
            }
        }
        *frame += 1;
    };
    app.add_systems(Update, (tick, change).chain());
    on_one_thread(app)
}

fn armed<C: Component>(app: &mut App) -> u64 {
    let mut timers = app.world_mut().query_filtered::<(), With<C>>();
    timers.iter(app.world()).count() as u64
}

fn armed_in_components(app: &mut App) -> u64 {
    let mut effects = app.world_mut().query::<&Effects>();
    let effects = effects.iter(app.world());
    effects
        .map(|effects| effects.0.iter().flatten().count() as u64)
        .sum()
}

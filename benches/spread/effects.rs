//! Half a million effects on a hundred thousand units, which tick, end, are set again and are refreshed.

use core::time::Duration;
use std::time::Instant;

use bevy_app::prelude::*;
use bevy_due::{Timer, prelude::*};
use bevy_ecs::{prelude::*, schedule::SingleThreadedExecutor};
use bevy_time::{TimePlugin, TimeUpdateStrategy};

use crate::print_line;

const UNITS: usize = 100_000;
const EFFECTS: [&str; 5] = ["poison", "slow", "haste", "shield", "burn"];

/// An effect ticks every second, and ends after at most this many ticks.
const TICKS: u32 = 20;

const FRAMES_PER_SECOND: u32 = 60;
const WARM_UP: u32 = 5 * FRAMES_PER_SECOND;
const MEASURED: u32 = 10 * FRAMES_PER_SECOND;

/// Each frame refreshes this many effects, about as many as end.
const REFRESHES: usize = 800;

#[derive(Component)]
struct Health(u64);

#[derive(Resource)]
struct Units(Vec<Entity>);

/// The numbers of ticks and of ends so far.
#[derive(Resource, Default)]
struct Counts {
    ticks: usize,
    ends: usize,
}

pub(crate) fn measure() {
    let mut app = App::new();
    let frame = TimeUpdateStrategy::ManualDuration(Duration::from_secs(1) / FRAMES_PER_SECOND);
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .insert_resource(frame)
        .init_resource::<Counts>()
        .add_systems(Update, (react, refresh).chain());
    let world = app.world_mut();
    let units = (0..UNITS).map(|_| world.spawn(Health(0)).id()).collect();
    world.insert_resource(Units(units));
    app.add_systems(Startup, set_all);
    app.update();
    for (_, schedule) in app.world_mut().resource_mut::<Schedules>().iter_mut() {
        schedule.set_executor(SingleThreadedExecutor::new());
    }
    for _ in 0..WARM_UP {
        app.update();
    }
    *app.world_mut().resource_mut() = Counts::default();
    let frames = (0..MEASURED).map(|_| {
        let start = Instant::now();
        app.update();
        start.elapsed()
    });
    let frames: Vec<_> = frames.collect();
    let &Counts { ticks, ends } = app.world().resource();
    let all = UNITS * EFFECTS.len();
    let ticks_expected = all * (MEASURED / FRAMES_PER_SECOND) as usize;
    assert!(
        ticks.abs_diff(ticks_expected) < ticks_expected / 50,
        "{ticks} ticks"
    );
    assert!(ends > all / 4, "{ends} ends");
    print_line("effects", ticks, &frames, Duration::ZERO);
}

/// Sets all effects, each at a random point of its interval and of its life.
fn set_all(units: Res<Units>, mut commands: Commands) {
    for (nth, &unit) in units.0.iter().enumerate() {
        let mut unit = commands.entity(unit);
        for (effect, key) in EFFECTS.into_iter().enumerate() {
            let random = random(nth * EFFECTS.len() + effect);
            let first = Duration::from_nanos(1 + random as u64 % 1_000_000_000);
            let ticks = 1 + (random >> 32) as u32 % TICKS;
            unit.set_timer(key, Timer::every(1.0).first_after(first).times(ticks));
        }
    }
}

/// Each tick changes its unit. An effect that ends is set again.
fn react(
    mut fired: MessageReader<TimerFired>,
    mut healths: Query<&mut Health>,
    mut counts: ResMut<Counts>,
    mut commands: Commands,
) {
    for fired in fired.read() {
        if let Ok(mut health) = healths.get_mut(fired.owner()) {
            health.0 += 1;
        }
        counts.ticks += 1;
        if fired.is_last()
            && let Some(key) = EFFECTS.into_iter().find(|&key| fired.has_key(key))
        {
            counts.ends += 1;
            let ticks = 1 + random(counts.ends) as u32 % TICKS;
            let mut unit = commands.entity(fired.owner());
            unit.set_timer(key, Timer::every(1.0).times(ticks));
        }
    }
}

fn refresh(mut frame: Local<usize>, units: Res<Units>, mut commands: Commands) {
    for nth in 0..REFRESHES {
        let random = random(*frame * REFRESHES + nth);
        let key = EFFECTS[(random >> 40) % EFFECTS.len()];
        let timer = Timer::every(1.0).times(TICKS);
        let mut unit = commands.entity(units.0[random % UNITS]);
        unit.refresh_timer(key, timer);
    }
    *frame += 1;
}

/// Returns the n-th pseudo-random number.
fn random(n: usize) -> usize {
    let n = (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((n ^ n >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 8) as usize
}

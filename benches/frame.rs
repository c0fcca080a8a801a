//! Whole frames through `App::update`, by the number of timers, beside what Bevy has:
//!
//! - `empty_app`: no timers and no plugin, only Bevy's clock
//! - `bevy_timer`: a system that ticks a `bevy_time::Timer` on every entity
//! - `delayed_commands`: `commands.delayed()`, each command queueing its next
//!
//! All count their firings, and the counts are asserted equal to what is due.
//!
//! ```text
//! cargo bench --bench frame
//! ```

#![allow(missing_docs, reason = "criterion's macros")]

use core::time::Duration;

use bevy_app::prelude::*;
use bevy_due::{Timer, prelude::*};
use bevy_ecs::{prelude::*, schedule::SingleThreadedExecutor};
use bevy_time::{DelayedCommandsExt, Time, TimePlugin, TimeUpdateStrategy, TimerMode, Virtual};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

const FRAME: Duration = Duration::from_nanos(16_666_667);

/// The firings so far.
#[derive(Resource, Default)]
struct Fired(u64);

/// A periodic timer: its period, and when it is first due.
#[derive(Clone, Copy)]
struct Work {
    first: Duration,
    period: Duration,
}

impl Work {
    /// Due once in 1 to 60 seconds, spread evenly but in no order.
    fn periodic(timer: u64) -> Self {
        let period = 1_000_000_000 + timer.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 59_000_000_000;
        let first = timer.wrapping_mul(0xd1b5_4a32_d192_ed03) % period;
        Self {
            first: Duration::from_nanos(first),
            period: Duration::from_nanos(period),
        }
    }

    /// Never due while the bench runs.
    fn idle(timer: u64) -> Self {
        let year = Duration::from_secs(365 * 24 * 3600);
        Self {
            first: year + Duration::from_nanos(timer),
            period: year,
        }
    }

    fn due_by(self, now: Duration) -> u64 {
        now.checked_sub(self.first).map_or(0, |past| {
            (past.as_nanos() / self.period.as_nanos()) as u64 + 1
        })
    }
}

fn app() -> App {
    let mut app = App::new();
    app.add_plugins(TimePlugin)
        .insert_resource(TimeUpdateStrategy::ManualDuration(FRAME))
        .init_resource::<Fired>();
    app
}

/// One thread for all, because waking another costs more than an empty frame.
fn on_one_thread(app: &mut App) {
    for (_, schedule) in app.world_mut().resource_mut::<Schedules>().iter_mut() {
        schedule.set_executor(SingleThreadedExecutor::new());
    }
}

fn empty_app(_: &[Work]) -> App {
    app()
}

fn bevy_due(work: &[Work]) -> App {
    let mut app = app();
    app.add_plugins(DuePlugin).add_systems(
        Update,
        |mut messages: MessageReader<TimerFired>, mut fired: ResMut<Fired>| {
            fired.0 += messages.read().count() as u64;
        },
    );
    for &Work { first, period } in work {
        app.world_mut()
            .spawn(Timer::every(period).first_after(first));
    }
    app
}

fn bevy_due_observed(work: &[Work]) -> App {
    let mut app = app();
    app.add_plugins(DuePlugin)
        .add_observer(|_: On<TimerFired>, mut fired: ResMut<Fired>| fired.0 += 1);
    for &Work { first, period } in work {
        app.world_mut()
            .spawn(Timer::every(period).first_after(first));
    }
    app
}

#[derive(Component)]
struct Ticked(bevy_time::Timer);

fn bevy_timer(work: &[Work]) -> App {
    let mut app = app();
    app.add_systems(
        Update,
        |mut timers: Query<&mut Ticked>, time: Res<Time>, mut fired: ResMut<Fired>| {
            for mut timer in &mut timers {
                timer.0.tick(time.delta());
                fired.0 += u64::from(timer.0.times_finished_this_tick());
            }
        },
    );
    for &Work { first, period } in work {
        let mut timer = bevy_time::Timer::new(period, TimerMode::Repeating);
        // Its first deadline is at `first`.
        timer.set_elapsed(period - first.min(period));
        app.world_mut().spawn(Ticked(timer));
    }
    app
}

fn delayed_commands(work: &[Work]) -> App {
    fn fire(world: &mut World, due: Duration, period: Duration) {
        world.resource_mut::<Fired>().0 += 1;
        delay(world, due + period, period);
    }

    fn delay(world: &mut World, due: Duration, period: Duration) {
        let now = world.resource::<Time<Virtual>>().elapsed();
        world
            .commands()
            .delayed()
            .duration(due.saturating_sub(now))
            .queue(move |world: &mut World| fire(world, due, period));
    }

    let mut app = app();
    for &Work { first, period } in work {
        delay(app.world_mut(), first, period);
    }
    app.world_mut().flush();
    app
}

fn bench(
    c: &mut Criterion,
    name: &str,
    sizes: &[u64],
    work: fn(u64) -> Work,
    contenders: &[(&str, fn(&[Work]) -> App)],
) {
    let mut group = c.benchmark_group(name);
    for &len in sizes {
        let work: Vec<Work> = (0..len).map(work).collect();
        for (contender, start) in contenders {
            let mut app = start(&work);
            on_one_thread(&mut app);
            for _ in 0..10 {
                app.update();
            }
            group.bench_function(BenchmarkId::new(*contender, len), |b| {
                b.iter(|| app.update());
            });
            let fired = app.world().resource::<Fired>().0;
            let now = app.world().resource::<Time<Virtual>>().elapsed();
            let due: u64 = work.iter().map(|work| work.due_by(now)).sum();
            assert!(
                *contender == "empty_app" || fired == due,
                "{contender} fired {fired} of {due}"
            );
        }
    }
    group.finish();
}

/// What waiting timers cost when none is due.
fn idle(c: &mut Criterion) {
    bench(c, "idle", &[0], Work::idle, &[("empty_app", empty_app)]);
    bench(
        c,
        "idle",
        &[0, 10_000, 100_000, 1_000_000],
        Work::idle,
        &[("bevy_due", bevy_due)],
    );
    bench(
        c,
        "idle",
        &[10_000, 100_000, 1_000_000],
        Work::idle,
        &[
            ("bevy_timer", bevy_timer),
            ("delayed_commands", delayed_commands),
        ],
    );
}

/// Timers of 1 to 60 seconds at 60 frames a second.
fn periodic(c: &mut Criterion) {
    bench(
        c,
        "periodic",
        &[1_000, 10_000, 100_000, 1_000_000],
        Work::periodic,
        &[
            ("bevy_due", bevy_due),
            ("bevy_due_observed", bevy_due_observed),
            ("bevy_timer", bevy_timer),
            ("delayed_commands", delayed_commands),
        ],
    );
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = idle, periodic
}
criterion_main!(benches);

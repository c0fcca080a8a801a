//! Workloads that take a snapshot of all timers, and go back to it. The peer clones the components of
//! Bevy's timers. After many timers are gone, the peer is an app that never had them.

use core::time::Duration;

use bevy_app::App;
use bevy_due::{
    Timer,
    rollback::{RollbackWorldExt, TimerSnapshot},
};
use bevy_ecs::entity::EntityHashMap;
use bevy_time::{Fixed, Real, Time, Virtual};

use crate::{
    contenders::{Fired, Ticked, TimerSpec, bevy_timer, due_messages},
    sides::{Done, Side, Table, timed},
    work::{FRAME, first_deadline},
};

const SIZES: [usize; 2] = [1_000, 100_000];
/// So that 1 % of the timers fire in a frame.
const PERIOD: u64 = 100 * FRAME;

/// The timers that were despawned before the snapshots.
const GONE: [usize; 2] = [10_000, 500_000];
const REMAINING: usize = 1_000;
/// The frames between their end and the first snapshot.
const FRAMES_SINCE: usize = 200;

#[derive(Clone, Copy, PartialEq)]
enum Workload {
    Snapshot,
    Restore,
}

/// Takes a snapshot of the timers of an app, and goes back to it.
trait Rollback {
    type Snapshot;
    fn snapshot(app: &mut App) -> Self::Snapshot;
    fn restore(app: &mut App, snapshot: &Self::Snapshot);
}

struct Due;
struct Cloned;

pub fn compare(table: &mut Table) {
    for (name, workload) in [
        ("snapshot", Workload::Snapshot),
        ("restore", Workload::Restore),
    ] {
        for n in SIZES {
            let rounds = move |units: usize| units / n + 1;
            table.line(
                (name, n, "cloned_bevy_timers"),
                None,
                |units| side::<Due>(workload, due_messages(&specs(n)), rounds(units)),
                |units| side::<Cloned>(workload, bevy_timer(&specs(n)), rounds(units)),
            );
        }
    }
    for n in GONE {
        let rounds = |units: usize| units / 2000 + 1;
        table.line(
            ("snapshot_gone_timers", n, "never_there"),
            None,
            |units| side::<Due>(Workload::Snapshot, gone_timers(n), rounds(units)),
            |units| side::<Due>(Workload::Snapshot, gone_timers(0), rounds(units)),
        );
    }
}

/// Returns an app with a few timers, in which so many others were despawned a while ago.
fn gone_timers(gone: usize) -> App {
    let mut app = due_messages(&specs(REMAINING));
    let timers = (0..gone).map(|_| Timer::after(Duration::from_secs(3600)));
    let timers: Vec<_> = app.world_mut().spawn_batch(timers).collect();
    app.update();
    for timer in timers {
        app.world_mut().despawn(timer);
    }
    for _ in 0..FRAMES_SINCE {
        app.update();
    }
    app
}

fn specs(n: usize) -> Vec<TimerSpec> {
    let spec = |id| TimerSpec {
        first: first_deadline(id, PERIOD),
        period: PERIOD,
    };
    (0..n as u32).map(spec).collect()
}

/// Returns a side that takes a snapshot before each frame, goes back to it, and plays the frame again.
/// The workload decides which of the two counts.
fn side<R: Rollback + 'static>(workload: Workload, mut app: App, rounds: usize) -> Side {
    // The first frame arms the timers.
    app.update();
    let mut done = Done::default();
    Box::new(move || {
        let mut time = Duration::ZERO;
        for _ in 0..rounds {
            let mut taken = None;
            let snapshot = timed(|| taken = Some(R::snapshot(&mut app)));
            let times = Times::of(&app);
            app.update();
            let restore = timed(|| {
                if let Some(taken) = &taken {
                    R::restore(&mut app, taken);
                }
            });
            times.restore(&mut app);
            app.update();
            time += match workload {
                Workload::Snapshot => snapshot,
                Workload::Restore => restore,
            };
            done.units += 1;
        }
        done.checksum = app.world().resource::<Fired>().checksum;
        (time, done)
    })
}

impl Rollback for Due {
    type Snapshot = TimerSnapshot;

    fn snapshot(app: &mut App) -> TimerSnapshot {
        app.world_mut().snapshot_timers()
    }

    fn restore(app: &mut App, snapshot: &TimerSnapshot) {
        let entities = &mut EntityHashMap::default();
        app.world_mut().restore_timers(snapshot, entities);
        assert!(entities.is_empty(), "no entity despawns");
    }
}

impl Rollback for Cloned {
    type Snapshot = Vec<Ticked>;

    fn snapshot(app: &mut App) -> Vec<Ticked> {
        let mut timers = app.world_mut().query::<&Ticked>();
        timers.iter(app.world()).cloned().collect()
    }

    fn restore(app: &mut App, snapshot: &Vec<Ticked>) {
        let mut timers = app.world_mut().query::<&mut Ticked>();
        for (mut timer, earlier) in timers.iter_mut(app.world_mut()).zip(snapshot) {
            *timer = earlier.clone();
        }
    }
}

/// Bevy's times.
struct Times(Time<Real>, Time<Virtual>, Time<Fixed>, Time);

impl Times {
    fn of(app: &App) -> Self {
        let world = app.world();
        Self(
            *world.resource(),
            *world.resource(),
            *world.resource(),
            *world.resource(),
        )
    }

    fn restore(&self, app: &mut App) {
        app.insert_resource(self.0)
            .insert_resource(self.1)
            .insert_resource(self.2)
            .insert_resource(self.3);
    }
}

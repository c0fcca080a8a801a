//! Workloads that spawn and despawn entities. The time includes the next frame, which arms the timers.

use core::{mem, time::Duration};

use bevy_app::App;
use bevy_due::Timer;
use bevy_ecs::prelude::*;

use crate::{
    app::SIZES,
    contenders::{due_messages, empty_app},
    frames::warm_up,
    sides::{Done, Side, Table, timed},
    work::{period_up_to, random},
};

#[derive(Component)]
#[expect(dead_code, reason = "only its size matters")]
struct Id(u32);

/// A component as large as a timer.
#[derive(Component)]
#[expect(dead_code, reason = "only its size matters")]
struct Plain([u64; mem::size_of::<Timer>() / 8]);

#[derive(Clone, Copy, PartialEq)]
enum Workload {
    Spawn,
    SpawnBatch,
    Despawn,
    DespawnShuffled,
}

pub fn compare(table: &mut Table) {
    for (name, workload) in [
        ("app_spawn", Workload::Spawn),
        ("app_spawn_batch", Workload::SpawnBatch),
        ("app_despawn", Workload::Despawn),
        ("app_despawn_shuffled", Workload::DespawnShuffled),
    ] {
        for n in SIZES {
            table.line(
                (name, n, "plain_bundle"),
                None,
                |_| side(workload, n, due_messages(&[]), with_timer),
                |_| side(workload, n, empty_app(&[]), plain),
            );
        }
    }
}

fn with_timer(id: u32) -> (Id, Timer) {
    let delay = Duration::from_nanos(period_up_to(60, id.into()));
    (Id(id), Timer::after(delay))
}

fn plain(id: u32) -> (Id, Plain) {
    let delay = period_up_to(60, id.into());
    (Id(id), Plain([delay; _]))
}

/// Returns a side that spawns n entities per turn and despawns them again. The workload decides which of
/// the two counts. A unit is an entity.
fn side<C: Component>(
    workload: Workload,
    n: usize,
    mut app: App,
    bundle: fn(u32) -> (Id, C),
) -> Side {
    warm_up(&mut app);
    let bundles = (0..n as u32).map(bundle);
    let mut entities = Vec::with_capacity(n);
    let mut done = Done::default();
    Box::new(move || {
        let bundles = bundles.clone();
        let spawn = timed(|| {
            if workload == Workload::SpawnBatch {
                entities.extend(app.world_mut().spawn_batch(bundles));
            } else {
                entities.extend(bundles.map(|bundle| app.world_mut().spawn(bundle).id()));
            }
            app.update();
        });
        done.units += n as u64;
        done.checksum += app.world_mut().query::<&Id>().iter(app.world()).count() as u64;
        if workload == Workload::DespawnShuffled {
            shuffle(&mut entities);
        }
        let despawn = timed(|| {
            for entity in entities.drain(..) {
                app.world_mut().despawn(entity);
            }
            app.update();
        });
        let time = match workload {
            Workload::Spawn | Workload::SpawnBatch => spawn,
            Workload::Despawn | Workload::DespawnShuffled => despawn,
        };
        (time, done)
    })
}

/// Puts entities into a random order, the same in every run.
fn shuffle(entities: &mut [Entity]) {
    for end in (1..entities.len()).rev() {
        let nth = random(end as u64) % (end as u64 + 1);
        entities.swap(end, nth as usize);
    }
}

//! A script of operations on an app, with the checks that hold for any script.

mod ops;
mod watch;

use core::{num::NonZeroU32, time::Duration};

use bevy_due::{DuePlugin, DueWorldExt, Timer, TimerFired, UpdateComponent};
use bevy_ecs::prelude::*;
use bevy_time::{Real, Time};

use super::{app, bytes::Bytes};
use ops::{Slots, run_op, span};
use watch::{Entry, Watch};

/// The number of operations in a script, so that no input takes long.
const MAX_OPS: usize = 400;

/// Runs operations on timers, clocks, owners and messages, also inside handlers, and checks each
/// firing. Runs them a second time and compares the two.
///
/// # Panics
///
/// Panics if a check fails.
pub fn timers(bytes: &[u8]) {
    let first = play(bytes);
    let second = play(bytes);
    assert_eq!(first, second, "the same script gives the same firings");
}

/// Runs a script, and returns its events.
fn play(bytes: &[u8]) -> Vec<Entry> {
    let mut app = app::app(DuePlugin {
        burst_limit: const { NonZeroU32::new(4).unwrap() },
        ..DuePlugin::default()
    });
    let world = app.world_mut();
    watch::add_observers(world);
    world.add_observer(run_handler);
    world.insert_resource(Bytes::new(bytes));
    world.init_resource::<Slots>();
    // A callback sees each frame once.
    world.spawn(UpdateComponent::new(|mut me| {
        me.commands
            .queue(|world: &mut World| world.resource_mut::<Watch>().updates += 1);
    }));
    for _ in 0..MAX_OPS {
        if world.resource::<Bytes>().is_empty() {
            break;
        }
        match take(world, |bytes| bytes.below(4)) {
            0 => run_frame(world),
            1 => run_fixed_step(world),
            _ => run_op(world),
        }
        check_counts(world);
    }
    core::mem::take(&mut world.resource_mut::<Watch>().log)
}

fn take<T>(world: &mut World, read: impl FnOnce(&mut Bytes) -> T) -> T {
    read(&mut world.resource_mut::<Bytes>())
}

fn run_frame(world: &mut World) {
    let by = take(world, span);
    Watch::begin_run(world);
    // Bevy's time must not overflow.
    let now = world.resource::<Time<Real>>().elapsed();
    let by = by.min(Duration::from_nanos(u64::MAX).saturating_sub(now));
    app::frame(world, by);
    let mut watch = world.resource_mut::<Watch>();
    watch.frames += 1;
    assert!(
        watch.updates <= watch.frames,
        "a callback runs once per frame"
    );
}

fn run_fixed_step(world: &mut World) {
    let by = take(world, span).min(Duration::from_secs(3600));
    Watch::begin_run(world);
    app::fixed_step(world, by);
}

/// Some firings run an operation of the script.
fn run_handler(fired: On<TimerFired>, mut commands: Commands) {
    if fired.event_target() == fired.entity() {
        commands.queue(|world: &mut World| {
            if take(world, |bytes| bytes.below(3)) == 1 {
                run_op(world);
            }
        });
    }
}

/// Every `Timer` must be counted, listed and found.
fn check_counts(world: &mut World) {
    let mut timers = world.query_filtered::<Entity, With<Timer>>();
    let timers: Vec<_> = timers.iter(world).collect();
    world.with_timers(|armed| {
        assert_eq!(armed.count(), timers.len(), "{armed}");
        assert_eq!(armed.iter().count(), timers.len());
        for &timer in &timers {
            let status = armed.get(timer).expect("an entity with a `Timer` is armed");
            assert!(
                status.elapsed <= status.wait || status.wait.is_zero(),
                "{status:?}"
            );
            assert!((0.0..=1.0).contains(&status.fraction()), "{status:?}");
        }
    });
}

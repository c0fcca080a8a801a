//! Promise 2: a timer never fires before its deadline, but does fire exactly on it.

use crate::support::*;
use bevy_app::prelude::*;
use bevy_due::{DueSystems, Timer, TimerFired};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time, TimeSystems, Virtual};
use core::time::Duration;

#[test]
fn a_timer_fires_on_its_deadline_and_not_a_nanosecond_earlier() {
    let mut app = app();
    spawn(
        &mut app,
        "x",
        Timer::after(Duration::from_nanos(1_000_000_001)),
    );
    advance_ms(&mut app, 1000);
    assert!(
        fired(&mut app).is_empty(),
        "should not fire one nanosecond before its deadline"
    );
    advance(&mut app, Duration::from_nanos(1));
    assert_eq!(fired(&mut app), ["x"], "should fire when deadline == now");
}

#[test]
fn no_firing_is_early_with_uneven_frames() {
    let mut app = app();
    app.add_observer(|fired: On<TimerFired>, time: Res<Time<Virtual>>| {
        assert!(fired.deadline() <= time.elapsed(), "should not fire early");
        assert_eq!(
            fired.deadline() + fired.lateness(),
            time.elapsed(),
            "lateness should be the distance from the deadline to now"
        );
    });
    for interval in [1, 3, 16, 17, 100] {
        spawn(&mut app, "", Timer::every(ms(interval)));
    }
    for frame in [16, 17, 16, 0, 33, 250, 1, 16] {
        advance_ms(&mut app, frame);
    }
    assert_eq!(fired(&mut app).len(), 349 + 116 + 21 + 20 + 3);
}

/// In every schedule a delay counts from the time that the arming system reads.
#[test]
fn a_delay_counts_from_the_time_that_the_arming_system_reads() {
    #[derive(Component)]
    struct ArmedAt(Duration);

    fn arm(mut commands: Commands, time: Res<Time<Virtual>>) {
        commands.spawn((ArmedAt(time.elapsed()), Timer::after(ms(50))));
    }

    let mut app = app();
    app.insert_resource(Time::<Fixed>::from_hz(64.0))
        .add_systems(First, arm.after(TimeSystems))
        .add_systems(PreUpdate, arm.before(DueSystems::Timers))
        .add_systems(PreUpdate, arm.after(DueSystems::Timers))
        .add_systems(FixedUpdate, arm)
        .add_systems(Update, arm)
        .add_systems(Last, arm)
        .add_observer(|fired: On<TimerFired>, armed: Query<&ArmedAt>| {
            let ArmedAt(armed) = armed.get(fired.entity()).unwrap();
            assert_eq!(fired.deadline(), *armed + ms(50));
        });
    for _ in 0..20 {
        advance_ms(&mut app, 16);
    }
    assert!(fired(&mut app).len() > 60);
}

#[test]
fn lateness_is_the_time_since_the_deadline() {
    let mut app = app();
    spawn(&mut app, "x", Timer::every(ms(10)).times(2));
    advance_ms(&mut app, 25);
    let late: Vec<Duration> = firings(&mut app).iter().map(|f| f.lateness()).collect();
    assert_eq!(late, [ms(15), ms(5)]);
}

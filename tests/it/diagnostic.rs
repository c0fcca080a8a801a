//! `DueDiagnosticsPlugin`: what Bevy's diagnostics learn about timers.

use crate::support::*;
use bevy_app::App;
use bevy_diagnostic::{DiagnosticPath, DiagnosticsStore};
use bevy_due::{DueDiagnosticsPlugin as Due, MissedTicks, Timer, prelude::*};
use bevy_time::{Fixed, Time};

fn measured_app() -> App {
    let mut app = app();
    app.add_plugins(Due::default());
    app
}

fn latest(app: &App, path: &DiagnosticPath) -> f64 {
    let diagnostics = app.world().resource::<DiagnosticsStore>();
    diagnostics.get_measurement(path).unwrap().value
}

#[test]
fn a_frame_measures_its_firings_and_cancellations() {
    let mut app = measured_app();
    let skip = Timer::every(ms(10)).with_missed_ticks(MissedTicks::Skip);
    spawn(&mut app, "skip", skip);
    spawn(&mut app, "burst", Timer::every(ms(10)));
    let waiting = spawn(&mut app, "waiting", Timer::after(ms(1000)));
    app.world_mut().spawn(DespawnAfter::new(ms(20)));
    advance_ms(&mut app, 35);
    assert_eq!(latest(&app, &Due::ARMED), 3.0);
    assert_eq!(
        latest(&app, &Due::FIRED),
        5.0,
        "once, three times, and a lifetime"
    );
    assert_eq!(latest(&app, &Due::DUE), 7.0);
    assert_eq!(latest(&app, &Due::LATENESS), 25.0);
    assert_eq!(latest(&app, &Due::CANCELLED), 0.0);
    assert!(latest(&app, &Due::TIME) > 0.0);

    app.world_mut().despawn(waiting);
    advance_ms(&mut app, 1);
    assert_eq!(latest(&app, &Due::ARMED), 2.0);
    assert_eq!(latest(&app, &Due::CANCELLED), 1.0);
    assert_eq!(latest(&app, &Due::DUE), 0.0);
    assert_eq!(latest(&app, &Due::LATENESS), 0.0);
}

#[test]
fn all_fixed_steps_of_a_frame_count() {
    let mut app = measured_app();
    app.insert_resource(Time::<Fixed>::from_duration(ms(10)));
    spawn(&mut app, "fixed", Timer::every(ms(10)).on(ClockId::Fixed));
    advance_ms(&mut app, 50);
    assert_eq!(latest(&app, &Due::FIRED), 5.0);
    advance_ms(&mut app, 30);
    assert_eq!(latest(&app, &Due::FIRED), 3.0);
}

#[test]
fn a_disabled_measurement_keeps_its_last_value() {
    let mut app = measured_app();
    spawn(&mut app, "x", Timer::every(ms(10)));
    advance_ms(&mut app, 10);
    let mut diagnostics = app.world_mut().resource_mut::<DiagnosticsStore>();
    diagnostics.get_mut(&Due::FIRED).unwrap().is_enabled = false;
    advance_ms(&mut app, 30);
    let diagnostics = app.world().resource::<DiagnosticsStore>();
    assert_eq!(diagnostics.get(&Due::FIRED).unwrap().value(), Some(1.0));
    assert_eq!(latest(&app, &Due::DUE), 3.0);
}

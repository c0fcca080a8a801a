//! Measures the time that the timers of each mode take.

use std::time::Instant;

use bevy::{
    diagnostic::{Diagnostic, DiagnosticPath, Diagnostics, DiagnosticsStore, RegisterDiagnostic},
    prelude::*,
};
use bevy_due::DueSystems;

use crate::{mode::Mode, ticking::TickingSystems};

/// The milliseconds from one frame to the next. Bevy's own diagnostic shows the time of the game.
pub const FRAME: DiagnosticPath = DiagnosticPath::const_new("frame");

/// The number of frames that are remembered.
const HISTORY: usize = 30;

pub fn plugin(app: &mut App) {
    for path in [time_of(Mode::Due), time_of(Mode::Ticking), FRAME] {
        let diagnostic = Diagnostic::new(path).with_suffix("ms");
        app.register_diagnostic(diagnostic.with_max_history_length(HISTORY));
    }
    app.insert_resource(Stopwatch(Instant::now()))
        .add_systems(First, measure_frame)
        .configure_sets(PreUpdate, TickingSystems.after(DueSystems::Messages))
        .add_systems(
            PreUpdate,
            (
                start.before(DueSystems::Timers),
                stop.after(DueSystems::Timers).before(DueSystems::Updates),
            )
                .run_if(in_state(Mode::Due)),
        )
        .add_systems(
            PreUpdate,
            (
                start.after(DueSystems::Messages).before(TickingSystems),
                stop.after(TickingSystems),
            )
                .run_if(in_state(Mode::Ticking)),
        );
}

/// Returns the diagnostic of the milliseconds per frame that a mode takes for its timers. Shots that
/// start and end count.
pub fn time_of(mode: Mode) -> DiagnosticPath {
    DiagnosticPath::const_new(match mode {
        Mode::Due => "timers/bevy_due",
        Mode::Ticking => "timers/ticking",
    })
}

/// Returns the median of the last frames. A swap of modes makes one frame much longer.
pub fn median(diagnostics: &DiagnosticsStore, path: &DiagnosticPath) -> Option<f64> {
    let mut values: Vec<f64> = diagnostics.get(path)?.values().copied().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[derive(Resource)]
struct Stopwatch(Instant);

fn start(mut stopwatch: ResMut<Stopwatch>) {
    stopwatch.0 = Instant::now();
}

fn stop(stopwatch: Res<Stopwatch>, mode: Res<State<Mode>>, mut diagnostics: Diagnostics) {
    let millis = stopwatch.0.elapsed().as_secs_f64() * 1000.0;
    diagnostics.add_measurement(&time_of(*mode.get()), || millis);
}

fn measure_frame(mut last: Local<Option<Instant>>, mut diagnostics: Diagnostics) {
    let now = Instant::now();
    if let Some(last) = last.replace(now) {
        diagnostics.add_measurement(&FRAME, || (now - last).as_secs_f64() * 1000.0);
    }
}

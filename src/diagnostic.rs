//! Measurements for Bevy's diagnostics.

use core::time::Duration;

use bevy_app::prelude::*;
use bevy_diagnostic::{
    DEFAULT_MAX_HISTORY_LENGTH, Diagnostic, DiagnosticPath, Diagnostics, RegisterDiagnostic,
};
use bevy_ecs::prelude::*;
use bevy_platform::time::Instant;

use crate::{
    plugin::DueSystems,
    timer::{ArmedTimers, RunStats, TimerFired},
};

/// Adds measurements of timers to Bevy's diagnostics.
///
/// Add the plugin next to [`DuePlugin`](crate::DuePlugin). Bevy's `LogDiagnosticsPlugin` prints the
/// measurements, and `DiagnosticsStore` keeps them. They are made once per frame, in [`Update`], and
/// include all steps of the fixed schedule in that frame.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_app::prelude::*;
/// use bevy_diagnostic::{DiagnosticPath, DiagnosticsStore};
/// use bevy_due::{DueDiagnosticsPlugin, Timer, prelude::*};
/// use bevy_time::{TimePlugin, TimeUpdateStrategy};
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default(), DueDiagnosticsPlugin::default()))
///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(100)));
/// app.update(); // Bevy's first frame takes no time.
/// app.world_mut().spawn(Timer::every(0.03));
/// app.world_mut().spawn(Timer::after(60.0));
/// app.update();
///
/// let diagnostics = app.world().resource::<DiagnosticsStore>();
/// let latest = |path: &DiagnosticPath| diagnostics.get_measurement(path).unwrap().value;
/// assert_eq!(latest(&DueDiagnosticsPlugin::ARMED), 2.0);
/// assert_eq!(latest(&DueDiagnosticsPlugin::FIRED), 3.0);
/// assert_eq!(latest(&DueDiagnosticsPlugin::LATENESS), 70.0);
/// ```
#[doc(alias("profiling", "metrics"))]
#[derive(Clone, Copy, Debug)]
pub struct DueDiagnosticsPlugin {
    /// The number of measurements to keep, 120 by default.
    pub max_history_length: usize,
}

impl DueDiagnosticsPlugin {
    /// The number of armed and paused timers.
    pub const ARMED: DiagnosticPath = DiagnosticPath::const_new("due/armed");
    /// The number of deadlines that passed: firings, ends of lifetimes, time-outs, and missed deadlines.
    pub const DUE: DiagnosticPath = DiagnosticPath::const_new("due/due");
    /// The number of firings, of lifetimes that ended, and of requests that timed out.
    pub const FIRED: DiagnosticPath = DiagnosticPath::const_new("due/fired");
    /// The number of timers cancelled.
    pub const CANCELLED: DiagnosticPath = DiagnosticPath::const_new("due/cancelled");
    /// The longest [lateness](TimerFired::lateness) of a firing, in milliseconds.
    pub const LATENESS: DiagnosticPath = DiagnosticPath::const_new("due/lateness");
    /// The time spent in [`DueSystems`], handlers included, in milliseconds.
    pub const TIME: DiagnosticPath = DiagnosticPath::const_new("due/time");
}

impl Default for DueDiagnosticsPlugin {
    fn default() -> Self {
        Self {
            max_history_length: DEFAULT_MAX_HISTORY_LENGTH,
        }
    }
}

impl Plugin for DueDiagnosticsPlugin {
    fn build(&self, app: &mut App) {
        for (path, suffix) in [
            (Self::ARMED, ""),
            (Self::DUE, ""),
            (Self::FIRED, ""),
            (Self::CANCELLED, ""),
            (Self::LATENESS, "ms"),
            (Self::TIME, "ms"),
        ] {
            let diagnostic = Diagnostic::new(path).with_suffix(suffix);
            app.register_diagnostic(diagnostic.with_max_history_length(self.max_history_length));
        }
        let start = || start_run.before(DueSystems::Timers);
        app.init_resource::<Tally>()
            .add_systems(
                PreUpdate,
                (start(), tally_frame.after(DueSystems::Messages)),
            )
            .add_systems(
                FixedPreUpdate,
                (start(), tally_fixed_step.after(DueSystems::Updates)),
            )
            .add_systems(Update, Self::measure);
    }
}

impl DueDiagnosticsPlugin {
    fn measure(
        mut diagnostics: Diagnostics,
        mut tally: ResMut<Tally>,
        timers: ArmedTimers,
        mut fired: MessageReader<TimerFired>,
    ) {
        let Tally { stats, time, .. } = core::mem::take(&mut *tally);
        let lateness = fired.read().map(TimerFired::lateness).max();
        let millis = |time: Duration| time.as_secs_f64() * 1000.0;
        let mut add = |path, value: f64| diagnostics.add_measurement(&path, || value);
        add(Self::ARMED, timers.count() as f64);
        add(Self::DUE, (stats.fired + stats.missed) as f64);
        add(Self::FIRED, stats.fired as f64);
        add(Self::CANCELLED, stats.cancelled as f64);
        add(Self::LATENESS, millis(lateness.unwrap_or_default()));
        add(Self::TIME, millis(time));
    }
}

/// The sums of the runs since the last measurement.
#[derive(Resource, Default)]
struct Tally {
    stats: RunStats,
    started: Option<Instant>,
    time: Duration,
}

impl Tally {
    fn add(&mut self, run: RunStats) {
        self.stats.add(run);
        if let Some(started) = self.started.take() {
            self.time += started.elapsed();
        }
    }
}

fn start_run(mut tally: ResMut<Tally>) {
    tally.started = Some(Instant::now());
}

fn tally_frame(mut tally: ResMut<Tally>, timers: ArmedTimers) {
    tally.add(timers.last_run());
}

fn tally_fixed_step(mut tally: ResMut<Tally>, timers: ArmedTimers) {
    tally.add(timers.last_fixed_run());
}

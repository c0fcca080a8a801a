//! The cost of each frame, for a remote client.

use std::{collections::VecDeque, time::Instant};

use bevy_app::prelude::*;
use bevy_diagnostic::{DiagnosticPath, DiagnosticsStore};
use bevy_due::DueDiagnosticsPlugin;
use bevy_ecs::prelude::*;
use bevy_reflect::Reflect;

/// The number of frames to keep: four seconds.
const KEPT: usize = 240;

/// The costs of the last frames, the newest last.
#[derive(Resource, Debug, Default, Reflect)]
#[reflect(Resource)]
#[type_path = "inspector"]
pub struct FrameCosts {
    /// The number of all frames so far.
    pub total: u64,
    /// The number of armed timers.
    pub armed: u32,
    /// The costs.
    pub frames: VecDeque<FrameCost>,
}

/// The cost of a frame, from `First` to `Last`. The answers to remote clients come later, and do not
/// count.
#[derive(Clone, Copy, Debug, Reflect)]
#[type_path = "inspector"]
pub struct FrameCost {
    /// The time spent in all systems, in microseconds.
    pub all: f32,
    /// The time of this that `bevy_due` took, with all handlers of timers.
    pub timers: f32,
    /// The number of timers that fired.
    pub fired: u32,
}

#[derive(Resource)]
struct Started(Instant);

pub(crate) fn plugin(app: &mut App) {
    app.register_type::<FrameCosts>()
        .init_resource::<FrameCosts>()
        .insert_resource(Started(Instant::now()))
        .add_systems(First, |mut started: ResMut<Started>| {
            started.0 = Instant::now();
        })
        .add_systems(Last, note_frame);
}

fn note_frame(
    started: Res<Started>,
    diagnostics: Res<DiagnosticsStore>,
    mut costs: ResMut<FrameCosts>,
) {
    let latest = |path: &DiagnosticPath| {
        let latest = diagnostics.get_measurement(path);
        latest.map_or(0.0, |latest| latest.value)
    };
    let cost = FrameCost {
        all: started.0.elapsed().as_secs_f32() * 1e6,
        timers: (latest(&DueDiagnosticsPlugin::TIME) * 1e3) as f32,
        fired: latest(&DueDiagnosticsPlugin::FIRED) as u32,
    };
    costs.total += 1;
    costs.armed = latest(&DueDiagnosticsPlugin::ARMED) as u32;
    if costs.frames.len() == KEPT {
        costs.frames.pop_front();
    }
    costs.frames.push_back(cost);
}

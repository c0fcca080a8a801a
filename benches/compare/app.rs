//! Workloads of whole frames, through `App::update`.

use bevy_app::App;

use crate::{
    contenders::{
        Fired, TimerSpec, bevy_timer, delayed_commands, due_messages, due_observer,
        due_without_reaction, empty_app,
    },
    frames::frames,
    sides::Table,
    work::{FRAME, SECOND, first_deadline, period_up_to},
};

pub const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];

struct Workload {
    name: &'static str,
    spec: fn(u32) -> TimerSpec,
    /// A frame costs about one firing per this many timers. Sets the number of frames in a turn.
    timers_per_firing: usize,
    ours: fn(&[TimerSpec]) -> App,
}

const WORKLOADS: [Workload; 5] = [
    Workload {
        name: "app_idle",
        spec: idle,
        timers_per_firing: 200,
        ours: due_without_reaction,
    },
    Workload {
        name: "app_periodic_messages",
        spec: up_to_a_minute,
        timers_per_firing: 200,
        ours: due_messages,
    },
    Workload {
        name: "app_periodic_observers",
        spec: up_to_a_minute,
        timers_per_firing: 200,
        ours: due_observer,
    },
    Workload {
        name: "app_due_15_percent",
        spec: |id| periodic(id, FRAME * 20 / 3),
        timers_per_firing: 10,
        ours: due_messages,
    },
    Workload {
        name: "app_burst",
        spec: |_| TimerSpec {
            first: FRAME,
            period: FRAME,
        },
        timers_per_firing: 1,
        ours: due_messages,
    },
];

const YEAR: u64 = 365 * 24 * 3600 * SECOND;

/// Not due for a year.
pub fn idle(id: u32) -> TimerSpec {
    TimerSpec {
        first: YEAR + u64::from(id),
        period: YEAR,
    }
}

/// Due every 1 to 60 s.
pub fn up_to_a_minute(id: u32) -> TimerSpec {
    periodic(id, period_up_to(60, id.into()))
}

fn periodic(id: u32, period: u64) -> TimerSpec {
    TimerSpec {
        first: first_deadline(id, period),
        period,
    }
}

pub fn compare(table: &mut Table) {
    for workload in &WORKLOADS {
        for n in SIZES {
            let mut against = |peer, contender: fn(&[TimerSpec]) -> App, timers_per_firing| {
                let side = |app: fn(&[TimerSpec]) -> App| {
                    let specs = move || (0..n as u32).map(workload.spec).collect::<Vec<_>>();
                    let fired = |app: &mut App| app.world().resource::<Fired>().checksum;
                    move |units| frames(app(&specs()), units * timers_per_firing / n + 1, 1, fired)
                };
                let (ours, theirs) = (side(workload.ours), side(contender));
                table.line((workload.name, n, peer), None, ours, theirs);
            };
            against("bevy_timer", bevy_timer, workload.timers_per_firing);
            against(
                "delayed_commands",
                delayed_commands,
                workload.timers_per_firing,
            );
            if workload.name == "app_idle" {
                // The number of frames does not depend on the number of timers.
                against("empty_app", empty_app, n / 50);
            }
        }
    }
}

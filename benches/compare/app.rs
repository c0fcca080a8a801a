//! Whole frames through `App::update`.

use bevy_app::App;

use crate::{
    contenders::{
        Fired, Work, bevy_timer, delayed_commands, due_alone, due_messages, due_observer, empty_app,
    },
    sides::{Done, Side, Table, timed},
    work::{FRAME, SECOND, every_second_up_to, first_deadline},
};

pub const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];

struct Workload {
    name: &'static str,
    work: fn(u32) -> Work,
    /// How many of the waiting timers cost about what one does that is due.
    waiting: usize,
    ours: fn(&[Work]) -> App,
}

const WORKLOADS: [Workload; 5] = [
    Workload {
        name: "app_idle",
        work: |id| Work {
            first: YEAR + u64::from(id),
            period: YEAR,
        },
        waiting: 200,
        ours: due_alone,
    },
    Workload {
        name: "app_periodic_messages",
        work: |id| repeating(id, every_second_up_to(60, id.into())),
        waiting: 200,
        ours: due_messages,
    },
    Workload {
        name: "app_periodic_observers",
        work: |id| repeating(id, every_second_up_to(60, id.into())),
        waiting: 200,
        ours: due_observer,
    },
    Workload {
        name: "app_due_15_percent",
        work: |id| repeating(id, FRAME * 20 / 3),
        waiting: 10,
        ours: due_messages,
    },
    Workload {
        name: "app_burst",
        // All armed together.
        work: |_| Work {
            first: FRAME,
            period: FRAME,
        },
        waiting: 1,
        ours: due_messages,
    },
];

const YEAR: u64 = 365 * 24 * 3600 * SECOND;

fn repeating(id: u32, period: u64) -> Work {
    Work {
        first: first_deadline(id, period),
        period,
    }
}

pub fn compare(table: &mut Table) {
    for workload in &WORKLOADS {
        for n in SIZES {
            let mut against = |peer, contender: fn(&[Work]) -> App, waiting| {
                let side = |app: fn(&[Work]) -> App| {
                    let work = move || (0..n as u32).map(workload.work).collect::<Vec<_>>();
                    move |units| side(app(&work()), units * waiting / n + 1)
                };
                let (ours, theirs) = (side(workload.ours), side(contender));
                table.line((workload.name, n, peer), None, ours, theirs);
            };
            against("bevy_timer", bevy_timer, workload.waiting);
            against("delayed_commands", delayed_commands, workload.waiting);
            if workload.name == "app_idle" {
                // As many frames with many timers as with few.
                against("empty_app", empty_app, n / 50);
            }
        }
    }
}

/// An app that runs so many frames in a turn. Its units are frames.
fn side(mut app: App, frames: usize) -> Side {
    let mut units = 0;
    Box::new(move || {
        let time = timed(|| {
            for _ in 0..frames {
                app.update();
            }
        });
        units += frames as u64;
        let checksum = app.world().resource::<Fired>().checksum;
        (time, Done { units, checksum })
    })
}

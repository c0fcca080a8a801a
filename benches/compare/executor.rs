//! An app with fifty systems on Bevy's multi-threaded executor, with and without the plugin.

use bevy_app::{TaskPoolPlugin, prelude::*};
use bevy_ecs::prelude::*;
use bevy_time::Time;

use crate::{
    app::{idle, up_to_a_minute},
    contenders::{TimerSpec, app, due, read_messages},
    frames::frames,
    sides::Table,
};

const TIMERS: usize = 100_000;

/// The number of entities that each of the systems visits.
const PARTS: usize = 100;

#[derive(Component)]
struct Part<const N: usize>(f32);

pub fn compare(table: &mut Table) {
    for (name, spec) in [
        ("systems_idle", idle as fn(u32) -> TimerSpec),
        ("systems_periodic", up_to_a_minute),
    ] {
        let per_turn = |units: usize| units / 500 + 1;
        table.line(
            (name, TIMERS, "without_plugin"),
            None,
            |units| {
                let specs = (0..TIMERS as u32).map(spec).collect::<Vec<_>>();
                let mut app = due(&specs);
                read_messages(&mut app);
                frames(with_systems(app), per_turn(units), 1, |_| 0)
            },
            |units| frames(with_systems(app()), per_turn(units), 1, |_| 0),
        );
    }
}

fn grow<const N: usize>(mut parts: Query<&mut Part<N>>, time: Res<Time>) {
    for mut part in &mut parts {
        part.0 += time.delta_secs();
    }
}

macro_rules! systems {
    ($app:ident, $($n:literal)*) => {
        $(
            $app.add_systems(Update, grow::<$n>);
            $app.world_mut().spawn_batch((0..PARTS).map(|_| Part::<$n>(0.0)));
        )*
    };
}

/// Adds fifty systems that can run at the same time.
fn with_systems(mut app: App) -> App {
    app.add_plugins(TaskPoolPlugin::default());
    systems!(app,
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24
        25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49
    );
    app
}

//! Systems that arm no timers. Their order must not matter.

use bevy_app::prelude::*;
use bevy_due::{ArmedTimers, ClockId, Timer, TimerFired, conditions::timer_fired};
use bevy_ecs::{
    prelude::*,
    schedule::{InternedScheduleLabel, ScheduleLabel},
};

use super::Dice;

#[derive(Component)]
struct Leaf(u32);

#[derive(Resource, Default)]
struct Sums([u64; 4]);

/// Adds the systems to several schedules, in an order that the dice choose.
pub(super) fn add(app: &mut App, mut dice: Dice) {
    app.init_resource::<Sums>();
    let add: [fn(&mut App, InternedScheduleLabel); 7] = [
        |app, label| _ = app.add_systems(label, grow),
        |app, label| _ = app.add_systems(label, fall),
        |app, label| _ = app.add_systems(label, wither),
        |app, label| _ = app.add_systems(label, count_firings),
        |app, label| _ = app.add_systems(label, ask_timers),
        |app, label| _ = app.add_systems(label, read_components),
        |app, label| _ = app.add_systems(label, nothing.run_if(timer_fired::<Leaf>)),
    ];
    let labels = [
        First.intern(),
        PreUpdate.intern(),
        Update.intern(),
        Last.intern(),
    ];
    let systems = labels
        .into_iter()
        .flat_map(|label| add.map(|add| (label, add)));
    let mut systems: Vec<_> = systems.collect();
    for last in (1..systems.len()).rev() {
        let other = dice.roll(last as u64 + 1) as usize;
        systems.swap(last, other);
    }
    for (label, add) in systems {
        add(app, label);
    }
}

/// Takes entity ids, so that those of the timers differ.
fn grow(mut commands: Commands, mut nth: Local<u32>) {
    *nth += 1;
    commands.spawn_batch((0..*nth % 5).map(Leaf));
}

fn fall(leaves: Query<(Entity, &Leaf)>, mut commands: Commands) {
    for (leaf, _) in leaves.iter().filter(|(_, leaf)| leaf.0 == 3) {
        commands.entity(leaf).despawn();
    }
}

fn wither(mut leaves: Query<&mut Leaf>) {
    for mut leaf in &mut leaves {
        leaf.0 = leaf.0.saturating_add(1);
    }
}

fn count_firings(mut fired: MessageReader<TimerFired>, mut sums: ResMut<Sums>) {
    sums.0[0] += fired.read().map(|fired| fired.count()).sum::<u64>();
}

fn ask_timers(timers: ArmedTimers, mut sums: ResMut<Sums>) {
    sums.0[1] += timers.count() as u64;
    let next = timers.next_deadline(ClockId::Virtual);
    sums.0[2] ^= next.map_or(0, |next| next.map_or(1, |_| 2));
}

fn read_components(timers: Query<&Timer>, mut sums: ResMut<Sums>) {
    sums.0[3] ^= timers.iter().take(100).count() as u64;
}

fn nothing() {}

//! Records everything that happens, and makes a move at some of the firings and cancellations.

use bevy_app::prelude::*;
use bevy_due::{
    ArmedTimers, DespawnAfter, DueSystems, OwnedTimerCancelled, OwnedTimerFired, Timer,
    TimerCancelled, conditions::every, prelude::*,
};
use bevy_ecs::{
    lifecycle::{Insert, Remove},
    prelude::*,
};

use super::{
    Cast, Dice,
    cast::Shout,
    checksum::{Kind, Recorder},
    clocks, moves, ms,
};

pub(super) fn add(app: &mut App) {
    clocks::add(app);
    app.add_message::<Shout>()
        .add_observer(note_armed)
        .add_observer(note_fired)
        .add_observer(note_owned_fired)
        .add_observer(note_cancelled)
        .add_observer(note_owned_cancelled)
        .add_observer(note_end_of_lifetime)
        .add_systems(PreUpdate, arm_in_run::<2>.before(DueSystems::Timers))
        // Unordered, so they may run in parallel. No bystanders here: Bevy may order unordered
        // systems in another way when the schedule has others.
        .add_systems(PostUpdate, (arm::<3>, arm::<4>, arm::<5>))
        .add_systems(FixedUpdate, arm::<64>)
        .add_systems(Update, shout.run_if(every(0.3)))
        .add_systems(Last, (read_messages, arm::<7>).chain());
    let world = app.world_mut();
    world.add_timer_handler("note", |In(fired): In<TimerFired>, notes: Res<Recorder>| {
        notes.call(
            Kind::Call,
            fired.entity(),
            [fired.deadline()],
            &[fired.count()],
        );
    });
}

fn note_armed(armed: On<Insert<Timer>>, recorder: Res<Recorder>) {
    recorder.call(Kind::Armed, armed.entity, [], &[]);
}

fn note_fired(
    fired: On<TimerFired>,
    recorder: Res<Recorder>,
    mut dice: ResMut<Dice>,
    mut commands: Commands,
) {
    recorder.fired(Kind::Fired, &fired);
    if dice.roll(4) == 0 {
        let entity = fired.entity();
        commands.queue(move |world: &mut World| moves::make(world, entity));
    }
}

fn note_owned_fired(fired: On<OwnedTimerFired>, recorder: Res<Recorder>) {
    recorder.fired(Kind::OwnedFired, &fired);
}

fn note_cancelled(
    cancelled: On<TimerCancelled>,
    recorder: Res<Recorder>,
    mut dice: ResMut<Dice>,
    mut commands: Commands,
) {
    recorder.cancelled(Kind::Cancelled, &cancelled);
    if dice.roll(40) == 0 {
        commands.spawn(Timer::after(dice.ms(900)));
    }
}

fn note_owned_cancelled(cancelled: On<OwnedTimerCancelled>, recorder: Res<Recorder>) {
    recorder.cancelled(Kind::OwnedCancelled, &cancelled);
}

fn note_end_of_lifetime(removed: On<Remove<DespawnAfter>>, recorder: Res<Recorder>) {
    recorder.call(Kind::LifetimeOver, removed.entity, [], &[]);
}

/// Spawns a timer in every `N`-th run.
fn arm<const N: u32>(mut runs: Local<u32>, mut commands: Commands) {
    *runs += 1;
    if runs.is_multiple_of(N) {
        let every = Timer::every(ms(u64::from(10 * N))).times(N);
        commands.spawn(every);
    }
}

/// Spawns a timer with exclusive access, right before the timers run.
fn arm_in_run<const N: u32>(world: &mut World, mut runs: Local<u32>) {
    *runs += 1;
    if runs.is_multiple_of(N) {
        world.spawn(Timer::after(ms(0)));
    }
}

fn shout(mut shouts: MessageWriter<Shout>, mut dice: ResMut<Dice>) {
    shouts.write(Shout(dice.roll(100)));
}

fn read_messages(
    mut fired: MessageReader<TimerFired>,
    mut cancelled: MessageReader<TimerCancelled>,
    timers: ArmedTimers,
    cast: Option<Res<Cast>>,
    recorder: Res<Recorder>,
) {
    for fired in fired.read() {
        recorder.fired(Kind::FiredMessage, fired);
    }
    for cancelled in cancelled.read() {
        recorder.cancelled(Kind::CancelledMessage, cancelled);
    }
    let Some(owner) = cast.and_then(|cast| cast.owners.first().copied()) else {
        return;
    };
    for stats in [timers.last_run(), timers.last_fixed_run()] {
        let values = [stats.armed, stats.fired, stats.missed, stats.cancelled];
        recorder.call(Kind::Stats, owner, [], &values);
    }
    recorder.call(Kind::Stats, owner, [], &[timers.count() as u64]);
}

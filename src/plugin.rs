//! The plugin: everything that happens in a frame, in the order in which it happens.

use alloc::vec::Vec;

use bevy_app::prelude::*;
use bevy_ecs::{
    prelude::*,
    schedule::{InternedScheduleLabel, ScheduleLabel},
};
use bevy_time::{Time, Virtual};

use crate::{
    clock::Clock,
    fire::{BurstLimit, fire_due},
    fixed::run_fixed,
    message::{
        Inbox, Mail, MessageComponent, MessageStats, StableKey, bind, deliver, follow,
        swap_followers,
    },
    timer::{
        DelaySeed, Timelines, Timer, TimerCancelled, TimerFired, arm, begin_clock, on_disable,
        on_discard_clock, on_enable, on_insert_clock, read_clocks, replace_earlier, swap_added,
    },
    update::{UpdateComponent, UpdateRosters, enroll, run_fixed_updates, run_updates},
};

/// Runs the [`Timer`]s, [`UpdateComponent`]s and [`MessageComponent`]s of an [`App`].
///
/// It needs Bevy's clock, so add it beside `DefaultPlugins`, `MinimalPlugins` or a bare
/// [`TimePlugin`](bevy_time::TimePlugin), before or after. What was spawned before the plugin was
/// added takes part when it is, in no particular order.
///
/// # Promises
///
/// 1. **Order.** All that is due on a clock in a frame fires by (deadline, sequence): equal
///    deadlines in the order in which their timers were armed, and the repeats of different timers
///    interleaved as they would have been in real time. The sequence is kept through all repeats
///    and through a pause; re-arming and rescheduling take a new one. The clocks go one after the
///    other: real, virtual, frames, then your own by age. The fixed clock has its own schedule.
/// 2. **Never early.** A timer never fires before its deadline; on it, it does.
/// 3. **Cancel is immediate.** From the moment a timer is removed, replaced, despawned or paused it
///    does not fire, even later in the same run, even between two repeats of itself.
/// 4. **Adds are deferred.** What is armed during a run fires in the next run at the earliest.
/// 5. **Handlers may do anything**: arm, re-arm, cancel, pause, despawn themselves, their owner,
///    their clock or others. A new `Timer` on the entity that is firing its last stays.
/// 6. **No drift.** The k-th deadline of a periodic timer is first + k × interval, exactly. A clock
///    of any speed keeps the fractions of a nanosecond.
/// 7. **Long frames** follow the timer's [`MissedTicks`](crate::MissedTicks). A burst is bounded by
///    [`BurstLimit`]; past it the rest are skipped on the grid and counted in
///    [`TimerFired::missed`]. (Bevy's clock itself cuts frames short at
///    `Time::<Virtual>::max_delta`, 250 ms unless set otherwise. Time that it leaves out passes for
///    nobody.)
/// 8. **Deterministic.** The same inputs give the same firings in the same order.
/// 9. **Extremes are quiet.** Zero delays, the longest `Duration` and thousand-year jumps of the
///    clock neither panic nor overflow nor break the order. Deadlines saturate.
/// 10. **Bad input is a clear error** that names the value: [`InvalidTimer`](crate::InvalidTimer),
///     [`InvalidSpeed`](crate::InvalidSpeed), [`UnknownClock`](crate::UnknownClock).
///
/// What is promised of timers holds for functions of entities, too, where it applies: an
/// [`UpdateComponent`] is called in the order of priority and then of inserting, a message delivered
/// in the order of sending; what is inserted during a frame takes part in the next, and what is
/// removed, not from that moment on; functions may do anything by commands; and the same inputs give
/// the same calls, but for what other threads send. Of a [question](crate::MessageEntityCommandsExt::ask)
/// exactly one end is told, and nothing that was sent is lost when an app is
/// [shut down in order](crate::MessageWorldExt::close_inbox).
///
/// # Panics
///
/// The app panics before its first frame if there is no `Time<Virtual>`, and when the plugin is
/// added twice.
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::prelude::*;
/// use bevy_time::TimePlugin;
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin));
/// app.update();
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct DuePlugin;

/// The stages of a run, in order, all in [`PreUpdate`]: before the fixed schedule and before
/// [`Update`] of the same frame. For the [fixed clock](crate::ClockId::Fixed), and for those that
/// run on it, they are in [`FixedPreUpdate`], where all of them are one system, which is added with
/// the first timer there. Order your own systems against these.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DueSystems {
    /// Reads the clocks, once for the whole run.
    Clocks,
    /// Puts the timers that have been added since the last run into the queue, and writes the
    /// [`TimerCancelled`] messages. What has been inserted by now takes part in this run.
    Swap,
    /// Fires what is due: [`TimerFired`] messages, observers and actions.
    Fire,
    /// Calls every [`UpdateComponent`].
    Update,
    /// Delivers messages to every [`MessageComponent`].
    Message,
}

impl Plugin for DuePlugin {
    fn build(&self, app: &mut App) {
        #[cfg(feature = "bevy_reflect")]
        register_types(app);

        // Somebody may have a sender already.
        let is_expecting_mail = app.world().contains_resource::<Inbox>();
        let timelines = Timelines::new(app.world_mut(), add_fixed_run);
        let updates = UpdateRosters::new(app.world_mut());
        app.insert_resource(timelines)
            .insert_resource(updates)
            .insert_resource(Mail::new(add_message_run))
            .init_resource::<MessageStats>()
            .init_resource::<Inbox>()
            .init_resource::<BurstLimit>()
            .init_resource::<DelaySeed>()
            .add_message::<TimerFired>()
            .add_message::<TimerCancelled>()
            .add_observer(on_insert_clock)
            .add_observer(on_discard_clock)
            .add_observer(on_disable)
            .add_observer(on_enable)
            .add_observer(replace_earlier)
            .init_schedule(FixedPreUpdate)
            .configure_sets(
                PreUpdate,
                (
                    DueSystems::Clocks,
                    DueSystems::Swap,
                    DueSystems::Fire,
                    DueSystems::Update,
                    DueSystems::Message,
                )
                    .chain(),
            )
            .add_systems(PreStartup, require_clock)
            .add_systems(
                PreUpdate,
                (
                    read_clocks.in_set(DueSystems::Clocks),
                    swap_added.in_set(DueSystems::Swap),
                    fire_due.in_set(DueSystems::Fire),
                    run_updates.in_set(DueSystems::Update),
                ),
            )
            .add_systems(
                FixedPreUpdate,
                run_fixed_updates
                    .in_set(DueSystems::Update)
                    .after(run_fixed),
            );

        arm_existing(app.world_mut());
        if is_expecting_mail {
            Mail::begin_run(app.world_mut());
        }
    }
}

#[cfg(feature = "bevy_reflect")]
fn register_types(app: &mut App) {
    app.register_type::<Timer>()
        .register_type::<crate::TimerOf>()
        .register_type::<crate::Timers>()
        .register_type::<crate::Keyed>()
        .register_type::<crate::TimersPaused>()
        .register_type::<crate::SurvivesCancelAll>()
        .register_type::<crate::TimerAction>()
        .register_type::<crate::DespawnAfter>()
        .register_type::<crate::Cooldown>()
        .register_type::<Clock>()
        .register_type::<crate::OnClock>()
        .register_type::<crate::ClockId>()
        .register_type::<crate::MissedTicks>()
        .register_type::<TimerFired>()
        .register_type::<TimerCancelled>()
        .register_type::<BurstLimit>()
        .register_type::<DelaySeed>()
        .register_type::<UpdateComponent>()
        .register_type::<crate::UpdateOf>()
        .register_type::<crate::Updates>()
        .register_type::<crate::UpdatesPaused>()
        .register_type::<MessageComponent>()
        .register_type::<MessageStats>()
        .register_type::<StableKey>();
}

/// Lets the clocks of the fixed schedule run.
fn add_fixed_run(world: &mut World) {
    add_late(world, FixedPreUpdate.intern(), |schedules| {
        schedules.add_systems(
            FixedPreUpdate,
            run_fixed
                .in_set(DueSystems::Clocks)
                .in_set(DueSystems::Swap)
                .in_set(DueSystems::Fire),
        );
    });
}

/// Lets messages be delivered.
fn add_message_run(world: &mut World) {
    add_late(world, PreUpdate.intern(), |schedules| {
        schedules.add_systems(
            PreUpdate,
            (
                swap_followers.in_set(DueSystems::Swap),
                deliver.in_set(DueSystems::Message),
            ),
        );
    });
}

/// Adds systems with their first use: an idle frame would feel them. If their schedule is running,
/// they are added at the end of the frame.
fn add_late(world: &mut World, schedule: InternedScheduleLabel, add: AddSystems) {
    let mut schedules = world.resource_mut::<Schedules>();
    if schedules.contains(schedule) {
        return add(&mut schedules);
    }
    if !world.contains_resource::<Late>() {
        world.init_resource::<Late>();
        world
            .resource_mut::<Schedules>()
            .add_systems(Last, add_what_is_late);
    }
    world.resource_mut::<Late>().0.push(add);
}

type AddSystems = fn(&mut Schedules);

/// What is to be added when no schedule of those is running.
#[derive(Resource, Default)]
struct Late(Vec<AddSystems>);

fn add_what_is_late(mut late: ResMut<Late>, mut schedules: ResMut<Schedules>) {
    for add in late.0.drain(..) {
        add(&mut schedules);
    }
}

fn require_clock(time: Option<Res<Time<Virtual>>>) {
    assert!(
        time.is_some(),
        "DuePlugin needs a clock: add bevy_time::TimePlugin to the App \
         (it is part of MinimalPlugins and DefaultPlugins)"
    );
}

fn arm_existing(world: &mut World) {
    // Not queries, which would leave out disabled entities.
    let with = |world: &World, is_of: fn(EntityRef) -> bool| -> Vec<Entity> {
        let entities = world.iter_entities().filter(|&entity| is_of(entity));
        entities.map(|entity| entity.id()).collect()
    };
    for clock in with(world, |entity| entity.contains::<Clock>()) {
        begin_clock(&mut world.into(), clock);
    }
    for timer in with(world, |entity| entity.contains::<Timer>()) {
        arm(world.into(), timer);
    }
    for update in with(world, |entity| entity.contains::<UpdateComponent>()) {
        enroll(world.into(), update);
    }
    for component in with(world, |entity| entity.contains::<MessageComponent>()) {
        follow(world.into(), component);
    }
    for key in with(world, |entity| entity.contains::<StableKey>()) {
        bind(world.into(), key);
    }
}

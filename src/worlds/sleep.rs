//! How often a world of a group runs, and its sleep while nothing is due.

use core::time::Duration;
use std::time::Instant;

use bevy_app::App;
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Real, Time, TimeUpdateStrategy, Virtual};

use crate::{
    clock::{Cadence, ClockId, ClockTable, saturating_nanos},
    message::has_mail,
    timer::{awaits_run, next_look, plan_all},
    update::{UpdateState, has_callbacks},
};

/// How often a world of [`WorldGroups`](crate::worlds::WorldGroups) runs a frame when no message arrives from
/// other threads. The default is [`Every`](Self::Every) with a sixtieth of a second.
///
/// When messages or parcels arrive, the world runs a frame at once. It also runs one extra frame at once for
/// messages that wait for new callbacks, and for refusals of parcels.
///
/// # Conversations
///
/// A single message that arrives within a millisecond after the start of a frame is delivered at once, unless the
/// next frame is due before, and the next frame runs right after it. For ten microseconds after each delivery, the
/// thread stays awake, because a reply may be on its way: if it comes, it is delivered before that frame, too. Your
/// systems therefore see what the callbacks did within about a millisecond.
///
/// A delivery between frames runs no systems and reads no clocks: its callbacks see the time of the last frame. It
/// includes the messages that were sent within the world. A run condition on
/// [`DueSystems::Messages`](crate::DueSystems::Messages) does not stop it.
///
/// # Examples
///
/// A world that takes parcels and reports once a minute. Between the two it sleeps.
///
/// ```
/// use core::time::Duration;
/// use std::sync::mpsc;
/// use bevy_due::{
///     Timer,
///     message::{Delivery, Packet},
///     prelude::*,
///     worlds::{LoopInterval, Parcel, WorldGroups},
/// };
/// use bevy_ecs::prelude::*;
///
/// const ADD: u32 = 1;
///
/// let (sender, receiver) = mpsc::channel();
/// let mut groups = WorldGroups::new();
/// groups.start("accounts", 1, move |app| {
///     let sender = sender.clone();
///     app.add_plugins(DuePlugin::default())
///         .insert_resource(LoopInterval::WhenDue(Duration::from_millis(10)));
///     let world = app.world_mut();
///     world.spawn(Timer::every(60.0)).observe(|_: On<TimerFired>| println!("another minute"));
///     world.spawn(MessageComponent::new().on_packet(ADD, move |_, added: &Packet| {
///         sender.send(added.clone()).ok();
///     }));
/// })?;
///
/// let added = Packet::new(ADD, [5]);
/// groups.post(Parcel::new("accounts", Delivery::InTurn, added.clone()))?;
/// assert_eq!(receiver.recv()?, added);
/// # Ok::<(), BevyError>(())
/// ```
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopInterval {
    /// Runs a frame once per interval.
    ///
    /// Due timers, and messages sent within the world, wait for the next frame. For an interval of more
    /// than 250 ms, also raise `Time::<Virtual>::max_delta`, or game time falls behind.
    Every(Duration),
    /// Sleeps while nothing is due, and takes no CPU time. Runs a frame when something is due, but not
    /// sooner than an interval after the last frame. A timer may be late by up to the interval, so choose
    /// it as short as the precision you need. A message from another thread or world still runs a frame at
    /// once.
    ///
    /// The next deadline of a [`Timer`](crate::Timer) or a [`DespawnAfter`](crate::DespawnAfter) ends the
    /// sleep, whatever its clock. Timers on stopped clocks do not count. With more than about two thousand
    /// timers, the world may also wake for a moment to sort those of the next half minute. The world does
    /// not sleep, and runs once per interval, while the next frame has something to do:
    ///
    /// - an [`UpdateComponent`](crate::UpdateComponent) that is not paused or disabled, and whose clock
    ///   runs;
    /// - a timer on [`ClockId::Frames`](crate::ClockId::Frames);
    /// - a message that was sent within the world, or a reply to an entity that is disabled;
    /// - an entity that is moving to another world;
    /// - a timer that was inserted or cancelled, or that finished, or a clock that changed, since the last
    ///   run.
    ///
    /// **Systems do not run while the world sleeps**, whatever their run conditions: neither yours nor
    /// Bevy's, such as the one behind `commands.delayed()`. A world whose systems look for work needs
    /// [`Every`](Self::Every), or a timer that wakes it.
    ///
    /// # Time
    ///
    /// Time passes while the world sleeps. The next frame is as long as the sleep. For this frame,
    /// `Time::<Virtual>::max_delta` is raised by the time slept, so it still bounds only the time that a
    /// frame hangs.
    ///
    /// Bevy then catches up on the fixed steps of the sleep in the same frame, after the messages. An hour
    /// has 230,400 steps, which take about a second even if they are empty. If the world has no use for
    /// the fixed schedule, make its steps long:
    /// `app.insert_resource(Time::<Fixed>::from_seconds(60.0))`. A timer on
    /// [`ClockId::Fixed`](crate::ClockId::Fixed) wakes the world for the step in which it fires.
    ///
    /// With a `TimeUpdateStrategy` other than `Automatic`, time passes only in frames. A timer that
    /// waits then keeps the world at its interval.
    WhenDue(Duration),
}

impl Default for LoopInterval {
    fn default() -> Self {
        Self::Every(Duration::from_secs(1) / 60)
    }
}

/// Returns the time of the next frame if no message arrives, or `None` if only a message leads to one. The
/// last frame began at `start`.
pub(super) fn next_frame(
    world: &mut World,
    updates: &mut UpdateState,
    start: Instant,
) -> Option<Instant> {
    let interval = match *world.resource::<LoopInterval>() {
        LoopInterval::Every(interval) => return start.checked_add(interval),
        LoopInterval::WhenDue(interval) => interval,
    };
    let wait = until_due(world, updates)?;
    let earliest = start.checked_add(interval)?;
    let read = world.get_resource::<Time<Real>>();
    match read.and_then(Time::last_update) {
        Some(read) if is_automatic(world.get_resource()) => {
            Some(earliest.max(read.checked_add(wait)?))
        }
        _ => Some(earliest),
    }
}

/// Returns the real time from the last reading of Bevy's clocks until something is due. It is zero if the
/// next frame has something to do at any time, and `None` if nothing is due.
fn until_due(world: &mut World, updates: &mut UpdateState) -> Option<Duration> {
    world.flush();
    plan_all(world);
    let is_paused = game_speed(world).is_none();
    if has_mail(world)
        || awaits_run(world, Cadence::Frame)
        || has_callbacks(world, updates, is_paused)
        || next_look(world, ClockId::Frames).is_some()
    {
        return Some(Duration::ZERO);
    }
    let waits = [until_real(world), until_game(world), until_fixed(world)];
    waits.into_iter().flatten().min().map(Duration::from_nanos)
}

/// Runs a frame after a sleep. Game time does not lose the time of the sleep.
pub(super) fn update_after(app: &mut App, slept: Duration) {
    let world = app.world_mut();
    if !slept.is_zero()
        && is_automatic(world.get_resource())
        && let Some(mut game) = world.get_resource_mut::<Time<Virtual>>()
    {
        let max_delta = game.max_delta();
        let time = Duration::try_from_secs_f64(slept.as_secs_f64() * game.relative_speed_f64());
        game.set_max_delta(max_delta.saturating_add(time.unwrap_or(Duration::MAX)));
        world.resource_mut::<ClockTable>().max_delta = Some(max_delta);
    }
    app.update();
}

/// Ends the long step of game time after a sleep.
pub(crate) fn restore_max_delta(world: &mut World) {
    let mut clocks = world.resource_mut::<ClockTable>();
    if let Some(max_delta) = clocks.max_delta.take()
        && let Some(mut game) = world.get_resource_mut::<Time<Virtual>>()
    {
        game.set_max_delta(max_delta);
    }
}

/// Returns `true` if time passes between two frames.
fn is_automatic(strategy: Option<&TimeUpdateStrategy>) -> bool {
    strategy.is_none_or(|strategy| matches!(strategy, TimeUpdateStrategy::Automatic))
}

/// Returns the nanoseconds of real time until a timer of real time is due.
fn until_real(world: &World) -> Option<u64> {
    let now = world.get_resource::<Time<Real>>()?.elapsed();
    let due = next_look(world, ClockId::Real)?;
    Some(due.saturating_sub(saturating_nanos(now)))
}

/// Returns the nanoseconds of real time until a timer of game time is due.
fn until_game(world: &World) -> Option<u64> {
    let now = world.get_resource::<Time<Virtual>>()?.elapsed();
    let due = next_look(world, ClockId::Virtual)?;
    on_real_time(world, due.saturating_sub(saturating_nanos(now)))
}

/// Returns the nanoseconds of real time until the fixed step in which a timer is due.
fn until_fixed(world: &World) -> Option<u64> {
    let fixed = world.get_resource::<Time<Fixed>>()?;
    let step = saturating_nanos(fixed.timestep());
    let due = match awaits_run(world, Cadence::FixedStep) {
        true => 0,
        false => next_look(world, ClockId::Fixed)?,
    };
    let left = due.saturating_sub(saturating_nanos(fixed.elapsed()));
    let steps = left.div_ceil(step).max(1);
    let overstep = saturating_nanos(fixed.overstep());
    match steps.saturating_mul(step).saturating_sub(overstep) {
        // Also if the game is paused.
        0 => Some(0),
        missing => on_real_time(world, missing),
    }
}

/// Returns the nanoseconds of real time in which these nanoseconds of game time pass, unless the game is
/// paused.
fn on_real_time(world: &World, nanos: u64) -> Option<u64> {
    let speed = game_speed(world)?;
    Some(match speed {
        1.0 => nanos,
        // The cast saturates.
        speed => (nanos as f64 / speed).ceil() as u64,
    })
}

/// Returns how fast game time passes, unless the game is paused.
fn game_speed(world: &World) -> Option<f64> {
    let game = world.get_resource::<Time<Virtual>>()?;
    let speed = game.relative_speed_f64();
    (!game.is_paused() && speed > 0.0).then_some(speed)
}

#[cfg(test)]
mod tests;

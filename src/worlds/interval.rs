//! How often a world of a group runs.

use core::time::Duration;

use bevy_ecs::resource::Resource;

/// How often a world of [`WorldGroups`](crate::worlds::WorldGroups) runs a frame when no message arrives from
/// other threads. The default is [`Every`](Self::Every) with a sixtieth of a second.
///
/// When a message or a parcel arrives, the world runs a frame at once. It runs one extra frame at once
/// for messages that wait for new callbacks, and for refusals of parcels.
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

//! How often a world of a group runs.

use core::time::Duration;

use bevy_ecs::resource::Resource;

/// How often a world of [`WorldGroups`](crate::WorldGroups) runs a frame when no message arrives from
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
/// use bevy_due::{LoopInterval, Packet, Parcel, Timer, WorldGroups, prelude::*};
/// use bevy_ecs::prelude::*;
///
/// const ADD: u32 = 1;
///
/// let (tell, told) = mpsc::channel();
/// let mut groups = WorldGroups::new();
/// groups.start("accounts", 1, move |app| {
///     let tell = tell.clone();
///     app.add_plugins(DuePlugin::default())
///         .insert_resource(LoopInterval::WhenDue(Duration::from_millis(10)));
///     let world = app.world_mut();
///     world.spawn(Timer::every_secs(60.0)).observe(|_: On<TimerFired>| println!("another minute"));
///     world.spawn(MessageComponent::new().on_packet(ADD, move |_, added: &Packet| {
///         tell.send(added.clone()).ok();
///     }));
/// })?;
///
/// let added = Packet::new(ADD, [5]);
/// groups.post(Parcel::new("accounts", Delivery::InTurn, added.clone()))?;
/// assert_eq!(told.recv()?, added);
/// # Ok::<(), BevyError>(())
/// ```
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopInterval {
    /// Runs a frame once per interval.
    ///
    /// Due timers, and messages sent within the world, wait for the next frame. For an interval of more
    /// than 250 ms, also raise `Time::<Virtual>::max_delta`, or game time falls behind.
    Every(Duration),
    /// Runs a frame when something is due, and at most once per interval. Otherwise the world sleeps,
    /// and takes no CPU time.
    ///
    /// The next deadline of a timer ends the sleep, on whatever clock it is. Timers on clocks that stand
    /// still do not count. The world runs once per interval while there is something to do in the next
    /// frame, whenever that is:
    ///
    /// - an [`UpdateComponent`](crate::UpdateComponent) that is not paused or disabled, and whose clock
    ///   runs;
    /// - a timer on [`ClockId::Frames`](crate::ClockId::Frames);
    /// - a message that was sent within the world, or a reply to an entity that is disabled;
    /// - an entity that is moving to another world;
    /// - a timer that has been inserted or cancelled or has finished, or a clock that has changed, since
    ///   the last run.
    ///
    /// **Your own systems do not run while the world sleeps**, whatever their run conditions, nor do those
    /// of Bevy, such as the one for its `commands.delayed()`. A world whose systems look for work
    /// themselves needs [`Every`](Self::Every), or a timer that wakes it.
    ///
    /// # Time
    ///
    /// The time of the world goes on while it sleeps. The frame after the sleep is as long as the sleep,
    /// and `Time::<Virtual>::max_delta` is raised for this frame by the time slept. It keeps its
    /// meaning: it bounds what a frame that hangs adds.
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

//! Timers for Bevy that cost what is due, not what exists.
//!
//! A frame in which nothing is due costs the same with a million waiting [`Timer`]s as with none.
//! What is due fires in exact order, never early, and never after it was cancelled. There is nothing
//! to tick: a timer is a component, and dies with its entity.
//!
//! ```
//! use core::time::Duration;
//!
//! use bevy_app::prelude::*;
//! use bevy_due::{Timer, prelude::*};
//! use bevy_ecs::prelude::*;
//! use bevy_time::{TimePlugin, TimeUpdateStrategy};
//!
//! #[derive(Component)]
//! struct Bomb;
//!
//! fn light_a_bomb(mut commands: Commands) {
//!     commands.spawn((Bomb, Timer::after_secs(3.0))).observe(
//!         |fired: On<TimerFired>, mut commands: Commands| {
//!             commands.entity(fired.entity).despawn();
//!         },
//!     );
//! }
//!
//! let mut app = App::new();
//! app.add_plugins((TimePlugin, DuePlugin))
//!     .add_systems(Startup, light_a_bomb)
//!     // A quarter of a second a frame. A game leaves this out, and lives in real time.
//!     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)));
//!
//! for _ in 0..12 {
//!     app.update();
//! }
//! let mut bombs = app.world_mut().query::<&Bomb>();
//! assert_eq!(bombs.iter(app.world()).count(), 1, "2.75 seconds have passed");
//! app.update();
//! assert_eq!(bombs.iter(app.world()).count(), 0, "and now three");
//! ```
//!
//! # Timers
//!
//! [`Timer::after`] fires once, [`Timer::every`] again and again; [`first_after`] sets the first
//! delay apart from the interval, [`immediately`] makes it zero, [`times`] ends it after so many
//! firings. Each has a form in seconds, and a `try_` form for numbers that come from data.
//!
//! ```
//! use bevy_due::Timer;
//!
//! let fuse = Timer::after_secs(3.0);
//! let heartbeat = Timer::every_secs(1.0);
//! let poison = Timer::every_secs(1.0).first_after_secs(0.5).times(5);
//! let waves = Timer::every_secs(20.0).immediately();
//! ```
//!
//! Inserting a `Timer` arms it; inserting another re-arms; removing it, or despawning its
//! entity, cancels. An entity has a `Timer` exactly while it is armed. For many timers on one
//! entity, spawn them as its [`Timers`].
//!
//! # Reactions
//!
//! Observe [`TimerFired`] on the entity, or everywhere; or read it as a message in a system that
//! wants all that fired in this frame:
//!
//! ```
//! use bevy_due::prelude::*;
//! use bevy_ecs::prelude::*;
//!
//! #[derive(Component)]
//! struct Poison;
//! #[derive(Component)]
//! struct Health(i32);
//!
//! fn poison(mut fired: MessageReader<TimerFired>, mut victims: Query<&mut Health, With<Poison>>) {
//!     for fired in fired.read() {
//!         if let Ok(mut health) = victims.get_mut(fired.entity) {
//!             health.0 -= 1;
//!         }
//!     }
//! }
//! # bevy_ecs::system::assert_is_system(poison);
//! ```
//!
//! [`TimerCancelled`] says of a timer that it will not fire any more, and why.
//!
//! Whatever the handlers do and however long a frame takes, the ten promises of [`DuePlugin`]
//! hold.
//!
//! # The way of a timer
//!
//! ```text
//! insert Timer ──hook──► added ─┐ swap                       ┌─► TimerFired message
//!                               ├──► TimerQueue ──► due ─────┤
//! remove/despawn ─hook─► gone  ─┘               in order     └─► observers of TimerFired
//!                                    ▲                                    │
//!                                    └──────────── re-arm ◄───────────────┴─► or finish
//! ```
//!
//! | when | what | set |
//! |---|---|---|
//! | `PreUpdate` | the clock is read, once a run | [`DueSystems::Clocks`] |
//! | `PreUpdate` | what was added since the last run enters the queue | [`DueSystems::Swap`] |
//! | `PreUpdate` | what is due fires, in exact order | [`DueSystems::Fire`] |
//!
//! For those who read the source: the modules are `plugin`, `fire`, `timer`, `clock`, `deferred`
//! and [`queue`], and each imports only from those after it. The last one knows no Bevy and can
//! be used alone.
//!
//! # Features
//!
//! - `std` (default): without it the crate is `no_std` and needs `alloc`.
//! - `bevy_reflect`: reflection for the components, events and resources.
//! - `serialize`: serde for [`Timer`]. What is read is checked like any other input.
//!
//! [`first_after`]: Timer::first_after
//! [`immediately`]: Timer::immediately
//! [`times`]: Timer::times

#![no_std]
#![warn(clippy::unwrap_used)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod plugin;

mod fast_forward;
mod fire;

mod timer;

mod clock;
mod deferred;
pub mod queue;

pub use clock::{Clock, ClockId, InvalidSpeed, UnknownClock};
pub use fast_forward::{FastForward, FastForwardError};
pub use fire::BurstLimit;
pub use plugin::{DuePlugin, DueSystems};
pub use timer::{
    ArmedTimers, CancelReason, Clocks, Cooldown, DelaySeed, DespawnAfter, InvalidTimer, Keyed,
    MissedTicks, NoSuchTimer, NotReady, OnClock, Once, Repeatedly, RunStats, SurvivesCancelAll,
    TimedCommands, Timer, TimerAction, TimerAppExt, TimerCancelled, TimerCommandsExt,
    TimerEntityCommandsExt, TimerFired, TimerOf, TimerStatus, TimerWorldExt, Timers, TimersPaused,
    UnknownHandler,
};

/// The common names, but for [`Timer`]: Bevy's prelude has one of that name, so import ours by
/// its name.
pub mod prelude {
    pub use crate::{
        ArmedTimers, BurstLimit, CancelReason, Clock, ClockId, Clocks, Cooldown, DelaySeed,
        DespawnAfter, DuePlugin, DueSystems, FastForward, InvalidTimer, Keyed, MissedTicks,
        NoSuchTimer, OnClock, SurvivesCancelAll, TimerAction, TimerAppExt, TimerCancelled,
        TimerCommandsExt, TimerEntityCommandsExt, TimerFired, TimerOf, TimerWorldExt, Timers,
        TimersPaused,
    };
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

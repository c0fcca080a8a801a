//! Timers for Bevy that cost what is due, not what exists; and functions of entities that are called
//! in every frame, or for a message.
//!
//! A frame in which nothing is due costs the same with a million waiting [`Timer`]s as with none.
//! What is due fires in exact order, never early, and never after it was cancelled. There is nothing
//! to tick: a timer is a component, and dies with its entity.
//!
//! | component | what it does |
//! |---|---|
//! | [`Timer`] | fires once after a while, so many times, or for ever |
//! | [`UpdateComponent`] | calls a function of the entity in every frame, in order of priority |
//! | [`MessageComponent`] | calls a function of the entity for each message that it follows |
//!
//! Each is put on any entity, at any time, and taken off again; what was not used yet costs nothing.
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
//! firings. [`at`] names a time, [`after_between`] draws a delay, [`since`] counts from another
//! deadline. Each has a form in seconds where that makes sense, and a `try_` form for numbers that
//! come from data.
//!
//! ```
//! use core::time::Duration;
//! use bevy_due::{ClockId, MissedTicks, Timer};
//!
//! let fuse = Timer::after_secs(3.0);
//! let poison = Timer::every_secs(1.0).first_after_secs(0.5).times(5);
//! let waves = Timer::every_secs(20.0).immediately();
//! let blink = Timer::after_between(Duration::from_secs(2)..=Duration::from_secs(6));
//! let autosave = Timer::every_secs(300.0).on(ClockId::Real).with_missed_ticks(MissedTicks::Skip);
//! ```
//!
//! Inserting a `Timer` arms it; inserting another re-arms; removing it, or despawning its
//! entity, cancels; [`TimersPaused`] pauses. An entity has a `Timer` exactly while it is armed or
//! paused.
//!
//! For many timers on one entity, spawn them as its [`Timers`], which die with it, or
//! [set them](TimerEntityCommandsExt::set_timer) under a [key](Keyed), of which an owner has one.
//! [`DespawnAfter`] lets an entity live for a while. A [`Cooldown`] needs no timer at all.
//!
//! # Reactions
//!
//! You pay for what you use:
//!
//! | to react | write |
//! |---|---|
//! | on the timer's entity, or on its owner | an observer of [`TimerFired`] there |
//! | everywhere | a global observer of it (which Bevy runs once more for an owner that is observed) |
//! | to all that fired in this frame at once | a system that reads the message of that name |
//! | with something plain: despawn, insert, trigger, .. | a [`TimerAction`] beside the timer |
//! | with code that a saved timer can name | [`TimerAction::named`] |
//! | with commands, later or again and again | [`commands.after_secs(2.0)`](TimerCommandsExt) |
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
//! # Clocks
//!
//! A timer lives on a clock: that of the game, [`ClockId::Virtual`], unless told otherwise; that of
//! real time, of the fixed schedule, or of frames; or on an entity with a [`Clock`] of your own,
//! whose speed and pause are one write for all its timers. [`Clocks`] and [`ClocksMut`] find them.
//!
//! ```
//! use bevy_due::{Timer, prelude::*};
//! use bevy_ecs::prelude::*;
//!
//! #[derive(Component)]
//! struct Arena;
//!
//! fn open_arena(mut commands: Commands) {
//!     let arena = commands.spawn((Arena, Clock::new())).id();
//!     commands.spawn(Timer::every_secs(1.0).on(arena));
//! }
//!
//! fn slow_motion(mut arena: Single<&mut Clock, With<Arena>>) {
//!     arena.set_speed(0.25);
//! }
//! # bevy_ecs::system::assert_is_system(open_arena);
//! # bevy_ecs::system::assert_is_system(slow_motion);
//! ```
//!
//! # Asking after timers
//!
//! [`ArmedTimers`] tells the remaining time of a timer, how much of it is over, what is due next on
//! an owner or a clock, what the last run did, and lists all timers for people to read.
//! [`TimerWorldExt`] and [`TimerEntityCommandsExt`] move deadlines and cancel what an owner has.
//! [`FastForwardWorldExt`] runs eight hours in a moment.
//!
//! Whatever the handlers do and however long a frame takes, the ten promises of [`DuePlugin`]
//! hold.
//!
//! # Functions of every frame
//!
//! What all entities of a kind do is for a plain system. An [`UpdateComponent`] is for what this one
//! does, now: a state of a character, a script, a socket that is polled. It has a priority, lives on
//! a clock like a timer, and is paused by [`UpdatesPaused`]; [`UpdateOf`] gives an entity several.
//!
//! ```
//! use bevy_due::prelude::*;
//! use bevy_ecs::prelude::*;
//!
//! #[derive(Component)]
//! struct Fear(f32);
//!
//! fn frighten(monster: Entity, mut commands: Commands) {
//!     commands.entity(monster).insert((Fear(1.0), UpdateComponent::new(|mut me: UpdateContext| {
//!         let Some(mut fear) = me.entity.get_mut::<Fear>() else { return };
//!         fear.0 -= me.delta.as_secs_f32();
//!         if fear.0 <= 0.0 {
//!             me.commands.entity(me.update_entity).remove::<(Fear, UpdateComponent)>();
//!         }
//!     })));
//! }
//! # let _ = frighten;
//! ```
//!
//! # Messages
//!
//! A [`MessageComponent`] says which messages and [`Packet`]s an entity follows, and what it does
//! about them. They are sent to an entity, to all who follow them, or to exactly one of those in
//! turn, by [`commands.send`](MessageCommandsExt), an [`Outbox`], a timer, or by other threads with a
//! [`MessageSender`]; and what Bevy's `MessageWriter`s write goes to all who follow it. A
//! [question](MessageEntityCommandsExt::ask) gets an answer, or word that there is none.
//!
//! ```
//! use bevy_due::prelude::*;
//! use bevy_ecs::prelude::*;
//!
//! #[derive(Message)]
//! struct Order(&'static str);
//! #[derive(Component)]
//! struct Busy(&'static str);
//!
//! fn hire_cooks(mut commands: Commands) {
//!     for _ in 0..3 {
//!         commands.spawn(MessageComponent::new().on(|mut me: MessageContext, order: &Order| {
//!             me.commands.entity(me.entity.id()).insert(Busy(order.0));
//!         }));
//!     }
//! }
//!
//! fn order(mut commands: Commands) {
//!     commands.send(Delivery::InTurn, Order("soup")); // to the first cook,
//!     commands.send(Delivery::InTurn, Order("bread")); // and to the second
//! }
//! # bevy_ecs::system::assert_is_system(hire_cooks);
//! # bevy_ecs::system::assert_is_system(order);
//! ```
//!
//! # Worlds
//!
//! [`WorldGroups`] runs headless apps on threads of their own, in groups that have a name. They send
//! each other [`Parcel`]s: to all worlds of a group, to exactly one in turn, or to the one with an
//! entity of that [`StableKey`]. With a [`Link`] of your own, a world of another process is a member
//! as a thread is.
//!
//! # The way of a timer
//!
//! ```text
//! insert Timer ──hook──► added ─┐ swap                       ┌─► TimerFired message
//!                               ├──► TimerQueue ──► due ─────┼─► observers of TimerFired
//! remove/despawn ─hook─► gone  ─┘  (per clock)  in order     └─► the timer's action
//!                                    ▲                                    │
//!                                    └──────────── re-arm ◄───────────────┴─► or finish
//! ```
//!
//! | when | what | set |
//! |---|---|---|
//! | `PreUpdate` | the clocks are read, once a run | [`DueSystems::Clocks`] |
//! | `PreUpdate` | what was added since the last run enters the queue | [`DueSystems::Swap`] |
//! | `PreUpdate` | what is due fires, in exact order | [`DueSystems::Fire`] |
//! | `PreUpdate` | functions of every frame are called, in order of priority | [`DueSystems::Update`] |
//! | `PreUpdate` | messages are delivered, in the order of sending | [`DueSystems::Message`] |
//! | `FixedPreUpdate` | the same for the fixed clock, and for those that run on it, but for messages | the same |
//!
//! For those who read the source: the modules are `group`, `plugin`, `fast_forward`, `fixed`,
//! `message`, `update`, `fire`, `timer`, `clock`, `call`, `roster`, `seat`, `deferred` and [`queue`], and
//! each imports only from those after it. The last one knows no Bevy and can be used alone.
//!
//! # Features
//!
//! - `std` (default): without it the crate is `no_std` and needs `alloc`, and there is no
//!   [`WorldGroups`].
//! - `bevy_reflect`: reflection for the components, events and resources.
//! - `serialize`: serde for [`Timer`] and most of what goes beside it. What is read is checked like
//!   any other input.
//!
//! [`after_between`]: Timer::after_between
//! [`at`]: Timer::at
//! [`first_after`]: Timer::first_after
//! [`immediately`]: Timer::immediately
//! [`since`]: Timer::since
//! [`times`]: Timer::times

#![no_std]
#![warn(clippy::unwrap_used)]

extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

#[cfg(feature = "std")]
mod group;

mod plugin;

mod fast_forward;
mod fixed;

mod message;

mod update;

mod fire;

mod timer;

mod call;
mod clock;

mod roster;

mod seat;

mod deferred;

pub mod queue;

pub use clock::{Clock, ClockId, InvalidSpeed, UnknownClock};
pub use fast_forward::{FastForwardError, FastForwardWorldExt};
pub use fire::BurstLimit;
#[cfg(feature = "std")]
pub use group::{LoopInterval, ParcelReceiver, StartError, WorldGroups, WorldReport};
pub use message::{
    Address, Assurance, Delivery, Inbox, Letter, Link, MessageCommandsExt, MessageComponent,
    MessageContext, MessageEntityCommandsExt, MessageSender, MessageStats, MessageWorldExt,
    NoAnswer, NotAnswerable, Outbox, Packet, Parcel, Payload, Received, Recipient, Refused,
    RefusedBecause, ReplyTo, SendError, Session, StableKey, WorldLink,
};
pub use plugin::{DuePlugin, DueSystems};
pub use timer::{
    ArmedTimers, CancelReason, Clocks, ClocksMut, Cooldown, DelaySeed, DespawnAfter, InvalidTimer,
    Keyed, MissedTicks, NoSuchTimer, NotReady, OnClock, Once, Repeatedly, RunStats,
    SurvivesCancelAll, TimedCommands, Timer, TimerAction, TimerAppExt, TimerCancelled,
    TimerCommandsExt, TimerEntityCommandsExt, TimerFired, TimerOf, TimerStatus, TimerWorldExt,
    Timers, TimersPaused, UnknownHandler,
};
pub use update::{
    UpdateCommandsExt, UpdateComponent, UpdateContext, UpdateOf, Updates, UpdatesPaused,
};

/// The common names, but for [`Timer`]: Bevy's prelude has one of that name, so import ours by
/// its name.
pub mod prelude {
    pub use crate::{
        ArmedTimers, BurstLimit, CancelReason, Clock, ClockId, Clocks, ClocksMut, Cooldown,
        DelaySeed, Delivery, DespawnAfter, DuePlugin, DueSystems, FastForwardWorldExt, Inbox,
        InvalidTimer, Keyed, MessageCommandsExt, MessageComponent, MessageContext,
        MessageEntityCommandsExt, MessageSender, MessageStats, MessageWorldExt, MissedTicks,
        NoAnswer, NoSuchTimer, OnClock, Outbox, Packet, Parcel, Received, ReplyTo, RunStats,
        Session, StableKey, SurvivesCancelAll, TimerAction, TimerAppExt, TimerCancelled,
        TimerCommandsExt, TimerEntityCommandsExt, TimerFired, TimerOf, TimerStatus, TimerWorldExt,
        Timers, TimersPaused, UpdateCommandsExt, UpdateComponent, UpdateContext, UpdateOf, Updates,
        UpdatesPaused,
    };
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! Timers, per-entity callbacks and messages for [Bevy](https://bevy.org). You pay for what is due,
//! not for what exists.
//!
//! A frame costs the same with ten waiting [`Timer`]s as with a million. Due timers fire in exact
//! order, on the clock you chose, and never after you cancelled them. There is nothing to tick: a
//! timer is a component and dies with its entity.
//!
//! | component | what it does |
//! |---|---|
//! | [`Timer`] | fires once after a delay, *n* times, or forever |
//! | [`UpdateComponent`] | calls a per-entity callback every frame, in priority order |
//! | [`MessageComponent`](message::MessageComponent) | calls a per-entity callback for every message that the entity follows |
//!
//! You can insert and remove them at any time, on any entity. A feature you do not use costs next
//! to nothing.
//!
//! The [cookbook](guide::cookbook) has recipes for stuns, poison, cast bars, waves, saving and other problems of a game.
//! The [`guide`] explains one topic per page, and lists [all calls](guide::calls). [`coming_from`](guide::coming_from)
//! translates from Bevy's own timers and from other engines.
//!
//! | question | answer |
//! |---|---|
//! | How do I stun an enemy? | [`pause_for(2.0)`][`pause_for`] pauses its timers and callbacks. Stuns may overlap. Let your own systems skip entities with [`Paused`] or [`PausedBy`]: [stun](guide::cookbook::stun). |
//! | How do I refresh a poison? | [`refresh_timer`] renews the ticks and keeps the next one on time. Observe [`OwnedTimerFired`] on the enemy for each tick: [poison](guide::cookbook::poison). |
//! | In what order do timers fire if they are due in the same frame? | On one clock, by deadline. With equal deadlines, in the order in which they were armed. Clocks run one after another: [order](guide::model#order). |
//! | What happens while the game is paused? | Timers, lifetimes, cooldowns and callbacks on game time wait, and keep their remaining time. Timers on [`ClockId::Real`] and `Frames` still fire: [clocks](guide::clocks), [pause menu](guide::cookbook::pause_menu). |
#![cfg_attr(
    feature = "serialize",
    doc = "| How do I save? | [`save_timers`](save::SaveWorldExt::save_timers) returns data for serde, and \
           [`load_timers`](save::SaveWorldExt::load_timers) continues from it: \
           [save and load](guide::cookbook::save_and_load). |"
)]
#![cfg_attr(
    not(feature = "serialize"),
    doc = "| How do I save? | With the feature `serialize`, `world.save_timers()?` returns data for serde, and \
           `world.load_timers(&saved, &mut entities)?` continues from it in a new app. |"
)]
//! | How do I count in turns, or follow a song? | With a clock that only your game moves, [`Clock::manual`]: [turns](guide::cookbook::turns), [song](guide::cookbook::song). |
//! | What do a million timers cost? | A few microseconds per frame while they wait, and at most 128 bytes each, or 400 with an owner and a key: [performance](guide::performance). |
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
//!     commands.spawn((Bomb, Timer::after(3.0))).observe(
//!         |fired: On<TimerFired>, mut commands: Commands| {
//!             commands.entity(fired.entity()).despawn();
//!         },
//!     );
//! }
//!
//! let mut app = App::new();
//! app.add_plugins((TimePlugin, DuePlugin::default()))
//!     .add_systems(Startup, light_a_bomb)
//!     // A quarter of a second per frame. A game leaves this out and runs in real time.
//!     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)));
//!
//! for _ in 0..12 {
//!     app.update();
//! }
//! let mut bombs = app.world_mut().query::<&Bomb>();
//! assert_eq!(bombs.iter(app.world()).count(), 1, "2.75 seconds have passed");
//! app.update();
//! assert_eq!(bombs.iter(app.world()).count(), 0, "three seconds have passed");
//! ```
//!
//! # Timers
//!
//! [`Timer::after`] creates a one-shot timer, [`Timer::every`] a periodic one. [`first_after`] sets
//! the first delay separately from the interval, [`immediately`] makes that delay zero, and
//! [`times`] limits the number of firings. [`at`] sets a time on the clock, [`with_jitter`] adds a
//! random delay, [`every_between`] draws each interval, and [`since`] counts from another deadline.
//! [`slack`] spreads timers over frames.
//! A span of time of a timer is a `Duration`, or a [number of seconds](timer::IntoDuration). The `try_`
//! methods return an error for invalid numbers instead of panicking.
//!
//! ```
//! use core::time::Duration;
//! use bevy_due::{ClockId, MissedTicks, Timer};
//!
//! let fuse = Timer::after(3.0);
//! let poison = Timer::every(1.0).first_after(0.5).times(5);
//! let waves = Timer::every(20.0).immediately();
//! let blink = Timer::after(2.0).with_jitter(Duration::from_secs(4));
//! let autosave = Timer::every(300.0).on(ClockId::Real).with_missed_ticks(MissedTicks::Skip);
//! ```
//!
//! Insert a `Timer` to arm it. To re-arm, insert another. To cancel, remove it or despawn its
//! entity. An entity has a `Timer` exactly as long as the timer is armed or paused.
//!
//! To give an entity many timers, spawn them as its [`Owned`] entities, or [set
//! them](DueEntityCommandsExt::set_timer) under a key: a [`TimerKey`] type or a string. They die
//! with their owner.
//!
//! | to | use |
//! |---|---|
//! | pause everything on an entity | [`Paused`], or [`pause_for`] for a stun |
//! | extend a buff, or renew a poison and keep its rhythm | [`refresh_timer`] |
//! | change the interval, the firings left or the remaining time | [`change_timer`] |
//! | add a component for a while | [`insert_for`] |
//! | limit the lifetime of an entity | [`DespawnAfter`] |
//! | limit how often an ability is used | a [`Cooldown`], which needs no timer |
//!
//! # Reactions
//!
//! You pay for the reaction you use:
//!
//! | where you react | use |
//! |---|---|
//! | on the timer's entity | an observer of [`TimerFired`] on that entity |
//! | on the owner of the timer | an observer of [`OwnedTimerFired`] on the owner |
//! | anywhere | a global observer of [`TimerFired`] |
//! | in one system, to everything that fired this frame | the buffered message [`TimerFired`] |
//! | in a system that runs only when a timer fired | [`.run_if(timer_fired::<Waves>)`](conditions::timer_fired) |
//! | in a system that runs at an interval | [`.run_if(every(1.0))`](conditions::every) |
//! | in the bundle of the timer: a despawn, a closure, or a named handler, which can be saved | a [`TimerAction`] |
//! | in commands that run once or repeatedly | [`commands.after(2.0)`](DueCommandsExt) |
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
//!         if let Ok(mut health) = victims.get_mut(fired.entity()) {
//!             health.0 -= 1;
//!         }
//!     }
//! }
//! # bevy_ecs::system::assert_is_system(poison);
//! ```
//!
//! [`TimerCancelled`] reports a cancelled timer and the reason. The owner gets an
//! [`OwnedTimerCancelled`].
//!
//! # Clocks
//!
//! By default a timer uses the game clock, [`ClockId::Virtual`], and waits while the game is paused. It
//! can also use real time, the fixed schedule, frames, or an entity with your own [`Clock`]. One
//! [change](clock::ClockMut) of that clock slows or pauses all timers on it. A [`SpeedModifier`](clock::SpeedModifier)
//! slows it for a while, and [`run_clock_if`](conditions::run_clock_if) runs it only in a state. A
//! [manual](Clock::manual) clock moves only when your game moves it, for turns or a song. [`Clocks`] reads clocks, and
//! [`ClocksMut`] changes them.
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
//!     commands.spawn(Timer::every(1.0).on(arena));
//! }
//!
//! fn slow_motion(arena: Single<Entity, With<Arena>>, mut commands: Commands) {
//!     commands.entity(*arena).change_clock(|clock| clock.set_speed(0.25));
//! }
//! # bevy_ecs::system::assert_is_system(open_arena);
//! # bevy_ecs::system::assert_is_system(slow_motion);
//! ```
//!
//! # Queries and changes
//!
//! [`ArmedTimers`] returns the remaining time of a timer, the progress of its wait, and the next
//! deadline of an owner or a clock. It also returns the statistics of the last run and a readable
//! list of all timers. A [`TimerStatus`](timer::TimerStatus) shows a timer or a cooldown to an inspector.
//! [`DueEntityCommandsExt`] moves deadlines and cancels the timers of an owner.
//! [`fast_forward`](DueWorldExt::fast_forward) runs the timers of eight hours in a moment.
//!
//! [`snapshot_timers`](rollback::RollbackWorldExt::snapshot_timers) and
//! [`restore_timers`](rollback::RollbackWorldExt::restore_timers) roll all timers and messages back, for netcode: see [`rollback`].
//!
//! The ten promises of [`DuePlugin`] hold whatever the handlers do and however long a frame takes. With
//! [`exact_frames`](DuePlugin::exact_frames), the lengths of the frames do not matter at all:
//! see [long frames](guide::long_frames#exact-frames).
//!
//! # Update callbacks
//!
//! Use a plain system for work that all entities of a kind share. Use an [`UpdateComponent`] for
//! work of a single entity: the current state of a character, a script, a socket to poll. The
//! component has a priority, runs on a clock like a timer, and stops while its entity is
//! [`Paused`]. [`OwnedBy`] gives an entity several of them.
//!
//! ```
//! use bevy_due::prelude::*;
//! use bevy_ecs::prelude::*;
//!
//! #[derive(Component)]
//! struct Fear(f32);
//!
//! fn frighten(monster: Entity, mut commands: Commands) {
//!     commands.entity(monster).insert((Fear(1.0), UpdateComponent::new(|mut me| {
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
//! A [`MessageComponent`](message::MessageComponent) lists the messages and [`Packet`](message::Packet)s
//! that an entity follows, with a callback for each. A message goes to one entity, to all followers, or
//! to one follower in turn. Systems send with [`commands.send`](message::MessageCommandsExt::send) or an
//! [`Outbox`](message::Outbox), and other threads with a [`MessageSender`](message::MessageSender).
//! Messages from Bevy's `MessageWriter` reach all followers. A
//! [request](message::MessageEntityCommandsExt::ask) completes exactly once: with a reply or with
//! [`NoAnswer`](message::NoAnswer).
//!
//! ```
//! use bevy_due::{
//!     message::{Delivery, MessageCommandsExt},
//!     prelude::*,
//! };
//! use bevy_ecs::prelude::*;
//!
//! #[derive(Message)]
//! struct Order(&'static str);
//! #[derive(Component)]
//! struct Busy(&'static str);
//!
//! fn hire_cooks(mut commands: Commands) {
//!     for _ in 0..3 {
//!         commands.spawn(MessageComponent::new().on(|mut me, order: &Order| {
//!             me.commands.entity(me.entity.id()).insert(Busy(order.0));
//!         }));
//!     }
//! }
//!
//! fn order(mut commands: Commands) {
//!     commands.send(Delivery::InTurn, Order("soup")); // To the first cook.
//!     commands.send(Delivery::InTurn, Order("bread")); // To the second one.
//! }
//! # bevy_ecs::system::assert_is_system(hire_cooks);
//! # bevy_ecs::system::assert_is_system(order);
//! ```
//!
#![cfg_attr(
    feature = "worlds",
    doc = "
# Worlds

[`WorldGroups`](worlds::WorldGroups) runs headless apps on threads, in named groups. They send each other [`Parcel`](worlds::Parcel)s: to
all worlds of a group, to one in turn, or to the world that has the entity with a [`StableKey`](worlds::StableKey).
With a [link](worlds::link), worlds in other processes become members. A world with
[`LoopInterval::WhenDue`](worlds::LoopInterval::WhenDue) sleeps while nothing is due in it.
"
)]
//! # The life of a timer
//!
//! ```text
//!                                            ┌── repeat ─┐
//!                                            ▼           │     ┌─► TimerFired messages
//! insert Timer ──hook──► parked ──swap──► waiting ──due──┴─────┼─► observers of TimerFired
//!                           │  in the queue  │                 └─► the timer's action
//!                           │  of its clock  │
//! remove/despawn ─hook──────┴────────────────┴─► out of the queue at once ──► TimerCancelled
//! ```
//!
//! The insertion puts the timer into a queue, parked, so that it cannot fire yet. Its delay counts from there.
//! A clock, an owner or a pause that arrives later moves or halts it. The swap is the first step of a run, and releases
//! the timer. By then, all components of the timer are there, whatever the order in which they were inserted.
//!
//! A periodic timer is in the queue for its next deadline before its handlers run. After its last firing, the
//! `Timer` is removed instead.
//!
//! A *run* is one pass through the sets of [`DueSystems`]: [`Timers`](DueSystems::Timers),
//! [`Updates`](DueSystems::Updates), [`Messages`](DueSystems::Messages). There is one per frame in
//! `PreUpdate`, and one per fixed step in `FixedPreUpdate` for the fixed clock and its descendants. A fixed
//! step delivers no messages.
//!
//! To read the source, start with `plugin.rs`. The modules below it are, from top to bottom, `ext`,
//! `conditions`, `state`, `worlds`, `message`, `update`, `timer` with `owner` and `pause`, a shared floor
//! (`call`, `missing_plugin`, `roster`, `seat`, `sync`, `systems`, `recent_peak`), `clock`,
//! [`queue`], and `journal`. Imports only go down this list. The queue knows no entities and can be used alone.
//!
//! # Features
//!
//! - `std` (default): uses the standard library. Without it the crate is `no_std` and needs
//!   `alloc`.
//! - `worlds`: worlds on threads and links to other processes. Implies `std`.
//! - `diagnostic`: measurements of timers for Bevy's diagnostics.
//! - `bevy_reflect`: reflection for the components, events and resources.
//! - `trace`: a span around the handlers of each timer, with its name, for profilers.
//! - `serialize`: serde for [`Timer`] and most other components, with their progress, and the modules
//!   `save` and `moving`. Invalid input is an error.
//!
//! [`at`]: Timer::at
//! [`change_timer`]: DueEntityCommandsExt::change_timer
//! [`every_between`]: Timer::every_between
//! [`first_after`]: Timer::first_after
//! [`immediately`]: Timer::immediately
//! [`insert_for`]: DueEntityCommandsExt::insert_for
//! [`pause_for`]: DueEntityCommandsExt::pause_for
//! [`refresh_timer`]: DueEntityCommandsExt::refresh_timer
//! [`since`]: Timer::since
//! [`slack`]: Timer::slack
//! [`times`]: Timer::times
//! [`with_jitter`]: Timer::with_jitter

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![warn(clippy::unwrap_used)]

extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

pub mod guide;

#[cfg(feature = "diagnostic")]
mod diagnostic;

pub mod conditions;

mod plugin;

mod ext;

#[cfg(feature = "worlds")]
pub mod worlds;

mod state;

pub mod message;
mod update;

pub mod timer;
// All three components use them.
use timer::{owner, pause};

mod call;
mod copies;
mod journal;
mod missing_plugin;
mod recent_peak;
mod report;
mod roster;
mod seat;
mod seconds;
mod sync;
mod systems;

pub mod clock;

pub mod queue;

#[doc(inline)]
pub use clock::{Clock, ClockId, Clocks, ClocksMut, OnClock};
#[cfg(feature = "diagnostic")]
pub use diagnostic::DueDiagnosticsPlugin;
pub use ext::{DueCommandsExt, DueEntityCommandsExt, DueWorldExt};
pub use plugin::{DuePlugin, DueSystems};
pub use state::rollback;
#[cfg(feature = "serialize")]
pub use state::{moving, save};
#[doc(inline)]
pub use timer::{
    ArmedTimers, CancelReason, Cooldown, DespawnAfter, MissedTicks, Owned, OwnedBy,
    OwnedTimerCancelled, OwnedTimerFired, Paused, PausedBy, Timer, TimerAction, TimerCancelled,
    TimerFired, TimerKey,
};
pub use update::{UpdateComponent, UpdateContext};

/// The names that a typical game uses, except for [`Timer`]: Bevy's prelude has one of the same
/// name, so import ours by name.
pub mod prelude {
    pub use crate::{
        ArmedTimers, Clock, ClockId, Clocks, Cooldown, DespawnAfter, DueCommandsExt,
        DueEntityCommandsExt, DuePlugin, DueWorldExt, MissedTicks, Owned, OwnedBy, OwnedTimerFired,
        Paused, TimerAction, TimerFired, TimerKey, UpdateComponent, message::MessageComponent,
    };
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! Recipes, organized by problem.
//!
//! Each recipe is a page with code that runs as a test. The recipes import Bevy's sub-crates; in a
//! game, `use bevy::prelude::*` replaces those imports.
//!
//! | a timer | |
//! |---|---|
//! | despawn after five seconds | [`despawn_later`] |
//! | repeat every second, ten times | [`repeat`] |
//! | a chain of steps without drift | [`chain`] |
//! | undo a delayed action | [`undo`] |
//! | spread the work of a thousand AIs over many frames | [`staggered_ai`] |
//! | a timer in the fixed schedule | [`fixed_step`] |
//! | timers that follow a song | [`song`] |
//! | timers that follow a physics engine | [`physics_clock`] |
//!
//! | an ability | |
//! |---|---|
//! | a cooldown with charges | [`cooldown`] |
//! | a fire rate | [`fire_rate`] |
//! | at most once per second | [`throttle`] |
//! | a cast bar and an interrupt | [`cast_bar`] |
//! | a combo window | [`combo_window`] |
//! | tap, double tap and long press | [`taps`] |
//!
//! | an effect | |
//! |---|---|
//! | poison and other damage over time: stack, refresh, cure | [`poison`] |
//! | stun; stuns may overlap | [`stun`] |
//! | slow, haste, a slow field | [`slow_field`] |
//! | invincible and blinking | [`invincibility`] |
//!
//! | a level | |
//! |---|---|
//! | waves at a growing rate | [`waves`] |
//! | a spawner with a condition | [`spawner`] |
//! | day and night, a merchant who comes at eight, a bed | [`day_and_night`] |
//! | turns: a battle in which time passes only at the end of a turn | [`turns`] |
//! | boss phases | [`boss_phases`] |
//! | pause the game behind an animated menu | [`pause_menu`] |
//! | a splash screen, and timers that run only in a state | [`states`] |
//! | restart the level | [`restart`] |
//!
//! | a server, a save file | |
//! |---|---|
//! | a request with a time-out | [`request`] |
//! | heartbeat and idle kick | [`idle_kick`] |
//! | show the timers of a server on a client | [`server_and_client`] |
//! | auto-save | [`auto_save`] |
//! | a daily reset, and its test | [`daily_reset`] |
#![cfg_attr(
    feature = "serialize",
    doc = "| rollback netcode | [`rollback`] |",
    doc = "| save and load | [`save_and_load`] |",
    doc = "| store what has changed after each frame | [`store_changes`] |"
)]
#![cfg_attr(
    not(feature = "serialize"),
    doc = "| rollback netcode, save and load | turn on the feature `serialize` |"
)]

#[doc = include_str!("../../docs/cookbook/auto_save.md")]
#[doc(alias = "autosave")]
pub mod auto_save {}

#[doc = include_str!("../../docs/cookbook/boss_phases.md")]
#[doc(alias = "enrage")]
pub mod boss_phases {}

#[doc = include_str!("../../docs/cookbook/cast_bar.md")]
#[doc(alias("interrupt", "progress_bar"))]
pub mod cast_bar {}

#[doc = include_str!("../../docs/cookbook/chain.md")]
#[doc(alias("sequence", "coroutine"))]
pub mod chain {}

#[doc = include_str!("../../docs/cookbook/combo_window.md")]
#[doc(alias = "debounce")]
pub mod combo_window {}

#[doc = include_str!("../../docs/cookbook/cooldown.md")]
#[doc(alias("charges", "dash"))]
pub mod cooldown {}

#[doc = include_str!("../../docs/cookbook/daily_reset.md")]
#[doc(alias("midnight", "calendar", "offline_progress"))]
pub mod daily_reset {}

#[doc = include_str!("../../docs/cookbook/day_and_night.md")]
#[doc(alias("sleep", "calendar", "time_of_day"))]
pub mod day_and_night {}

#[doc = include_str!("../../docs/cookbook/despawn_later.md")]
#[doc(alias("lifetime", "bullet"))]
pub mod despawn_later {}

#[doc = include_str!("../../docs/cookbook/fire_rate.md")]
#[doc(alias = "machine_gun")]
pub mod fire_rate {}

#[doc = include_str!("../../docs/cookbook/fixed_step.md")]
#[doc(alias("physics", "FixedUpdate"))]
pub mod fixed_step {}

#[doc = include_str!("../../docs/cookbook/idle_kick.md")]
#[doc(alias("heartbeat", "keep_alive"))]
pub mod idle_kick {}

#[doc = include_str!("../../docs/cookbook/invincibility.md")]
#[doc(alias("blink", "iframes"))]
pub mod invincibility {}

#[doc = include_str!("../../docs/cookbook/pause_menu.md")]
#[doc(alias("paused", "unpause", "real_time"))]
pub mod pause_menu {}

#[doc = include_str!("../../docs/cookbook/physics_clock.md")]
#[doc(alias("avian", "rapier", "hit_stop"))]
pub mod physics_clock {}

#[doc = include_str!("../../docs/cookbook/poison.md")]
#[doc(alias("damage_over_time", "dot", "stack", "refresh", "burn", "bleed"))]
pub mod poison {}

#[doc = include_str!("../../docs/cookbook/repeat.md")]
#[doc(alias = "interval")]
pub mod repeat {}

#[doc = include_str!("../../docs/cookbook/request.md")]
#[doc(alias("timeout", "rpc"))]
pub mod request {}

#[doc = include_str!("../../docs/cookbook/restart.md")]
#[doc(alias("reset", "new_game"))]
pub mod restart {}

#[cfg(feature = "serialize")]
#[doc = include_str!("../../docs/cookbook/rollback.md")]
#[doc(alias("netcode", "prediction"))]
pub mod rollback {}

#[cfg(feature = "serialize")]
#[doc = include_str!("../../docs/cookbook/save_and_load.md")]
#[doc(alias("persistence", "save_game", "load_game", "serialize"))]
pub mod save_and_load {}

#[cfg(feature = "serialize")]
#[doc = include_str!("../../docs/cookbook/store_changes.md")]
#[doc(alias("database", "journal", "crash"))]
pub mod store_changes {}

// `crates/ecosystem` runs its code: the crates in it depend on all of Bevy.
#[cfg_attr(not(doctest), doc = include_str!("../../docs/cookbook/server_and_client.md"))]
#[doc(alias("replication", "multiplayer", "replicon"))]
pub mod server_and_client {}

#[doc = include_str!("../../docs/cookbook/slow_field.md")]
#[doc(alias("slow", "haste"))]
pub mod slow_field {}

#[doc = include_str!("../../docs/cookbook/song.md")]
#[doc(alias("music", "rhythm", "beat", "audio"))]
pub mod song {}

#[doc = include_str!("../../docs/cookbook/spawner.md")]
#[doc(alias = "spawn")]
pub mod spawner {}

#[doc = include_str!("../../docs/cookbook/staggered_ai.md")]
#[doc(alias("spread", "jitter", "budget", "queue", "load_balancing"))]
pub mod staggered_ai {}

#[doc = include_str!("../../docs/cookbook/states.md")]
#[doc(alias("splash_screen", "DespawnOnExit"))]
pub mod states {}

#[doc = include_str!("../../docs/cookbook/stun.md")]
#[doc(alias("freeze", "root", "sleep", "crowd_control"))]
pub mod stun {}

#[doc = include_str!("../../docs/cookbook/taps.md")]
#[doc(alias("double_tap", "long_press", "hold"))]
pub mod taps {}

#[doc = include_str!("../../docs/cookbook/throttle.md")]
#[doc(alias = "rate_limit")]
pub mod throttle {}

#[doc = include_str!("../../docs/cookbook/turns.md")]
#[doc(alias("turn_based", "rounds", "initiative"))]
pub mod turns {}

#[doc = include_str!("../../docs/cookbook/undo.md")]
#[doc(alias = "cancel")]
pub mod undo {}

#[doc = include_str!("../../docs/cookbook/waves.md")]
#[doc(alias = "wave_spawner")]
pub mod waves {}

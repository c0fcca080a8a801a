//! The tests of the whole crate through its public items, as one program that is linked once.
//!
//! Each module is one behaviour. Its name chooses its tests: `cargo test --all-features --test it pause`.
//! Tests run at the same time in one process, so none changes what all threads share. A test that must is a
//! program of its own.

mod actions;
mod arming_faults;
mod change_timer;
#[cfg(feature = "serialize")]
mod changed_since;
mod changed_status;
mod clock;
mod clock_replacement;
mod clock_speed;
mod clocks;
mod conditions;
mod cooldown;
mod cost;
mod defaults;
mod delayed_commands;
#[cfg(feature = "serialize")]
mod deliver;
mod designers;
mod despawn_after;
#[cfg(feature = "diagnostic")]
mod diagnostic;
mod errors;
mod exact_frames;
mod fast_forward;
mod faults;
mod game_loop;
mod hostile_handlers;
mod house;
mod insert_for;
#[cfg(feature = "serialize")]
mod interrupted;
mod keys;
mod late_components;
#[cfg(feature = "serialize")]
mod load_timers;
#[cfg(all(feature = "bevy_reflect", feature = "serialize"))]
mod loaded_timers;
#[cfg(feature = "serialize")]
mod loading_clocks;
mod manual_clock;
mod message;
mod message_capacity;
mod message_sender;
mod missed_ticks;
#[cfg(feature = "serialize")]
mod moving;
mod observed;
mod odd_orders;
mod on_clock;
mod one_now;
mod owner;
mod panicking_systems;
mod parity_bigworld;
mod parity_cocos;
mod parity_framework;
mod parity_skynet;
mod parity_trinity;
mod pause;
mod plugin;
mod promise_01_order;
mod promise_02_never_early;
mod promise_03_cancel;
mod promise_04_deferred_adds;
mod promise_05_handlers;
mod promise_06_no_drift;
mod promise_07_long_frames;
mod promise_09_extremes;
mod promise_10_bad_input;
mod questions;
mod random_intervals;
#[cfg(feature = "bevy_reflect")]
mod reflect;
mod regressions;
mod reschedule;
#[cfg(feature = "serialize")]
mod rollback;
#[cfg(feature = "serialize")]
mod saving;
mod slack;
mod status;
#[path = "../support/mod.rs"]
mod support;
mod timer_status;
mod together;
mod tower_defense;
mod track_location;
#[cfg(feature = "bevy_reflect")]
mod type_paths;
mod update;
mod update_clock;
mod update_owner;
#[cfg(feature = "worlds")]
mod world_groups;

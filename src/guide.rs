//! The guide: one page per question.
//!
//! | page | question |
//! |---|---|
//! | [`model`] | How does a timer fire? What does a pause do? In which order do timers fire? |
//! | [`reactions`] | How do I react to a timer? |
//! | [`clocks`] | What happens while the game is paused? How do I slow a part of it? |
//! | [`long_frames`] | What happens when a frame takes longer than an interval? |
//! | [`keys_and_owners`] | How do I put many timers on one entity? |
//! | [`callbacks`] | When do I use an [`UpdateComponent`](crate::UpdateComponent)? |
//! | [`messages`] | How do entities talk to each other? |
#![cfg_attr(
    feature = "worlds",
    doc = "| [`worlds`] | How do I run services on other threads? |"
)]
#![cfg_attr(
    feature = "serialize",
    doc = "| [`saving`] | How do I save, roll back, or move entities? |"
)]
//! | [`calls`] | Which call do I need? |
//! | [`testing`] | How do I test time in my own game? |
//! | [`ecosystem`] | How do I use it with other crates for Bevy? |
//! | [`performance`] | What do a million timers cost? When do I use something else? |
//!
//! The [`cookbook`] has recipes for the problems of a game, and
//! [`coming_from`] translates from other engines.

pub mod coming_from;
pub mod cookbook;

#[doc = include_str!("../docs/guide/model.md")]
#[doc(alias("order", "same_frame", "deterministic", "promises"))]
pub mod model {}

#[doc = include_str!("../docs/guide/reactions.md")]
#[doc(alias("observer", "event", "on_timeout"))]
pub mod reactions {}

#[doc = include_str!("../docs/guide/clocks.md")]
#[doc(alias("paused", "slow_motion", "bullet_time", "time_scale"))]
pub mod clocks {}

#[doc = include_str!("../docs/guide/long_frames.md")]
#[doc(alias("lag", "hitch", "catch_up", "drift"))]
pub mod long_frames {}

#[doc = include_str!("../docs/guide/keys_and_owners.md")]
#[doc(alias("multiple_timers", "several_timers"))]
pub mod keys_and_owners {}

#[doc = include_str!("../docs/guide/callbacks.md")]
#[doc(alias("every_frame", "script", "state_machine"))]
pub mod callbacks {}

#[doc = include_str!("../docs/guide/messages.md")]
#[doc(alias("mailbox", "actor", "event_bus"))]
pub mod messages {}

#[cfg(feature = "worlds")]
#[doc = include_str!("../docs/guide/worlds.md")]
#[doc(alias("threads", "services", "headless"))]
pub mod worlds {}

#[cfg(feature = "serialize")]
#[doc = include_str!("../docs/guide/saving.md")]
#[doc(alias("save_game", "load_game", "serde"))]
pub mod saving {}

#[doc = include_str!("../docs/guide/ecosystem.md")]
#[doc(alias("replicon", "ggrs", "moonshine_save", "integration"))]
pub mod ecosystem {}

#[doc = include_str!("../docs/guide/calls.md")]
#[doc(alias("cheat_sheet", "overview"))]
pub mod calls {}

#[doc = include_str!("../docs/guide/testing.md")]
#[doc(alias("mock_time", "fake_clock"))]
pub mod testing {}

#[doc = include_str!("../docs/guide/performance.md")]
#[doc(alias("cost", "million", "benchmark", "memory"))]
pub mod performance {}

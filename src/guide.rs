//! The guide: one page per question.
//!
//! | page | question |
//! |---|---|
//! | [`model`] | How does it work, and what is promised? |
//! | [`reactions`] | How do I react to a timer? |
//! | [`clocks`] | How do I pause, slow down and speed up? |
//! | [`long_frames`] | What happens to deadlines that pass during a hitch? |
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
//! | [`calls`] | What is the call for ..? |
//! | [`testing`] | How do I test time in my own game? |
//! | [`performance`] | What does it cost, and when do I use something else? |
//!
//! The [cookbook](crate::cookbook) has recipes for the problems of a game, and
//! [`coming_from`](crate::coming_from) translates from other engines.

#[doc = include_str!("../docs/guide/model.md")]
pub mod model {}

#[doc = include_str!("../docs/guide/reactions.md")]
pub mod reactions {}

#[doc = include_str!("../docs/guide/clocks.md")]
pub mod clocks {}

#[doc = include_str!("../docs/guide/long_frames.md")]
pub mod long_frames {}

#[doc = include_str!("../docs/guide/keys_and_owners.md")]
pub mod keys_and_owners {}

#[doc = include_str!("../docs/guide/callbacks.md")]
pub mod callbacks {}

#[doc = include_str!("../docs/guide/messages.md")]
pub mod messages {}

#[cfg(feature = "worlds")]
#[doc = include_str!("../docs/guide/worlds.md")]
pub mod worlds {}

#[cfg(feature = "serialize")]
#[doc = include_str!("../docs/guide/saving.md")]
pub mod saving {}

#[doc = include_str!("../docs/guide/calls.md")]
pub mod calls {}

#[doc = include_str!("../docs/guide/testing.md")]
pub mod testing {}

#[doc = include_str!("../docs/guide/performance.md")]
pub mod performance {}

//! Their line, and ours: for readers who know another engine.
//!
//! | you know | page |
//! |---|---|
//! | Bevy's `Timer` | [`bevy_timer`] |
//! | Bevy's `commands.delayed()` | [`delayed_commands`] |
//! | Bevy's `on_timer` | [`on_timer`] |
//! | Unity | [`unity`] |
//! | Godot | [`godot`] |
//! | Unreal | [`unreal`] |
//! | cocos2d-x | [`cocos2d_x`] |
//! | skynet | [`skynet`] |
//! | TrinityCore | [`trinity_core`] |

#[doc = include_str!("../docs/coming_from/bevy_timer.md")]
pub mod bevy_timer {}

#[doc = include_str!("../docs/coming_from/delayed_commands.md")]
pub mod delayed_commands {}

#[doc = include_str!("../docs/coming_from/on_timer.md")]
pub mod on_timer {}

#[doc = include_str!("../docs/coming_from/unity.md")]
pub mod unity {}

#[doc = include_str!("../docs/coming_from/godot.md")]
pub mod godot {}

#[doc = include_str!("../docs/coming_from/unreal.md")]
pub mod unreal {}

#[doc = include_str!("../docs/coming_from/cocos2d_x.md")]
pub mod cocos2d_x {}

#[doc = include_str!("../docs/coming_from/skynet.md")]
pub mod skynet {}

#[doc = include_str!("../docs/coming_from/trinity_core.md")]
pub mod trinity_core {}

//! Translations from other timers and engines, call by call.
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
//! | `leafwing_abilities`, `bevy_auto_timer`, `bevy_gameplay_effects` | [`ability_crates`] |

#[doc = include_str!("../../docs/coming_from/bevy_timer.md")]
pub mod bevy_timer {}

#[doc = include_str!("../../docs/coming_from/delayed_commands.md")]
#[doc(alias = "delayed")]
pub mod delayed_commands {}

#[doc = include_str!("../../docs/coming_from/on_timer.md")]
#[doc(alias("on_real_timer", "once_after_delay", "repeating_after_delay"))]
pub mod on_timer {}

#[doc = include_str!("../../docs/coming_from/unity.md")]
#[doc(alias("Invoke", "InvokeRepeating", "WaitForSeconds", "coroutine"))]
pub mod unity {}

#[doc = include_str!("../../docs/coming_from/godot.md")]
#[doc(alias("create_timer", "await", "timeout"))]
pub mod godot {}

#[doc = include_str!("../../docs/coming_from/unreal.md")]
#[doc(alias("FTimerManager", "FTimerHandle", "SetTimer"))]
pub mod unreal {}

#[doc = include_str!("../../docs/coming_from/cocos2d_x.md")]
#[doc(alias("Scheduler", "scheduleOnce", "scheduleUpdate"))]
pub mod cocos2d_x {}

#[doc = include_str!("../../docs/coming_from/skynet.md")]
#[doc(alias = "skynet.timeout")]
pub mod skynet {}

#[doc = include_str!("../../docs/coming_from/trinity_core.md")]
#[doc(alias("EventMap", "TaskScheduler", "ScheduleEvent"))]
pub mod trinity_core {}

#[doc = include_str!("../../docs/coming_from/ability_crates.md")]
#[doc(alias("leafwing_abilities", "AutoTimer", "ChargeState"))]
pub mod ability_crates {}

//! How a world of a group runs, starts and ends.

use alloc::{borrow::Cow, string::String, vec::Vec};
use core::{fmt, time::Duration};
use std::io;

use bevy_app::AppExit;
use bevy_ecs::resource::Resource;

use crate::message::Undelivered;

/// The time between two frames of a world of [`WorldGroups`](crate::WorldGroups) when no message
/// arrives from other threads; a sixtieth of a second by default.
///
/// Due timers, and messages sent within the world, wait for its next frame. With more than 250 ms,
/// raise `Time::<Virtual>::max_delta`, too, or the game time falls behind.
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopInterval(pub Duration);

impl Default for LoopInterval {
    fn default() -> Self {
        Self(Duration::from_secs(1) / 60)
    }
}

/// The end of a world of [`WorldGroups`](crate::WorldGroups).
#[derive(Debug)]
#[non_exhaustive]
pub struct WorldReport {
    /// The group of the world.
    pub group: Cow<'static, str>,
    /// The index of the world in its group, counted from zero. Indices are not reused.
    pub nth: usize,
    /// The exit status, if the world ended by itself.
    pub exit: Option<AppExit>,
    /// The panic message, if the world panicked.
    pub panic: Option<String>,
    /// The messages that were sent to or in the world, but not delivered.
    ///
    /// It excludes messages without followers, and requests that the world has received but not
    /// replied to: those time out in the asking world.
    pub undelivered: Vec<Undelivered>,
}

/// The reason why a world could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The system could not create a thread.
    NoThread(io::Error),
    /// The function that builds the world panicked, with this message.
    Panicked(String),
    /// The function that builds the world did not add a [`DuePlugin`](crate::DuePlugin).
    NoPlugin,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoThread(error) => write!(f, "no thread for the world: {error}"),
            Self::Panicked(message) => write!(f, "building the world panicked: {message}"),
            Self::NoPlugin => f.write_str(
                "the world has no message delivery: \
                 add a DuePlugin to the App in the function that builds it",
            ),
        }
    }
}

impl core::error::Error for StartError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::NoThread(error) => Some(error),
            Self::Panicked(_) | Self::NoPlugin => None,
        }
    }
}

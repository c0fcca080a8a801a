//! Why a world of a group did not start.

use alloc::string::String;
use core::fmt;
use std::io;

/// The reason why a world could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The operating system could not create a thread.
    NoThread(io::Error),
    /// The function that builds the world panicked, with this message.
    Panicked(String),
    /// The function that builds the world did not add a [`DuePlugin`](crate::DuePlugin).
    NoPlugin,
    /// The groups have been stopped.
    Stopped,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoThread(error) => write!(f, "could not create a thread for the world: {error}"),
            Self::Panicked(message) => write!(f, "building the world panicked: {message}"),
            Self::NoPlugin => f.write_str(
                "the world has no `DuePlugin`: add it in the function that builds the app",
            ),
            Self::Stopped => f.write_str("the groups of worlds have been stopped"),
        }
    }
}

impl core::error::Error for StartError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::NoThread(error) => Some(error),
            Self::Panicked(_) | Self::NoPlugin | Self::Stopped => None,
        }
    }
}

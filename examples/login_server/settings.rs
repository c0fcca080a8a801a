//! The limits of the server.

use core::time::Duration;

use bevy_due::Cooldown;
use bevy_ecs::prelude::*;

/// The limits of the server.
#[derive(Resource, Clone, Debug)]
pub struct Settings {
    /// The time limit for the check of a password.
    pub login_timeout: Duration,
    /// The duration of the check for a name.
    pub login_time: fn(&str) -> Duration,
    /// The time of silence after which a client is warned.
    pub warn_after: Duration,
    /// The further time of silence after which a client is disconnected.
    pub close_after: Duration,
    /// The rate of the lines of a client. The server reads no more than that.
    pub line_rate: Cooldown,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            login_timeout: Duration::from_secs(2),
            login_time: |name| match name {
                "sloth" => Duration::from_secs(3),
                _ => Duration::from_millis(300),
            },
            warn_after: Duration::from_secs(60),
            close_after: Duration::from_secs(30),
            line_rate: Cooldown::new(0.2).with_charges(10),
        }
    }
}

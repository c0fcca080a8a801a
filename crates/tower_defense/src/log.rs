//! The log: what has happened, for the player.

use core::fmt::Display;

use bevy_due::{ClockId, Clocks};
use bevy_ecs::{prelude::*, system::SystemParam};

/// The lines of the log, each with the time of the game.
#[derive(Resource, Debug, Default)]
pub struct Log(pub Vec<String>);

/// Writes the log.
#[derive(SystemParam)]
pub struct Story<'w> {
    clocks: Clocks<'w>,
    log: ResMut<'w, Log>,
}

impl Story<'_> {
    /// Adds a line. Its time is that of the game clock, which a loaded game continues.
    pub fn tell(&mut self, line: impl Display) {
        let now = self.clocks.now(ClockId::Virtual);
        let secs = now.map_or(0.0, |now| now.as_secs_f32());
        self.log.0.push(format!("{secs:5.1} {line}"));
    }
}

/// Adds a line from outside the systems.
pub fn tell(In(line): In<String>, mut story: Story) {
    story.tell(line);
}

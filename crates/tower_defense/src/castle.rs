//! The castle: what the player has, and may lose.

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{
    log::Story,
    menu::{GAME_OVER, menu},
};

/// What the player has.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Castle {
    pub gold: u32,
    pub lives: u32,
    pub kills: u32,
}

impl Default for Castle {
    fn default() -> Self {
        Self {
            gold: 260,
            lives: 20,
            kills: 0,
        }
    }
}

impl Castle {
    /// Takes lives. With the last one, the game is over.
    pub fn lose_lives(&mut self, lives: u32, story: &mut Story, commands: &mut Commands) {
        if self.lives == 0 {
            return;
        }
        self.lives = self.lives.saturating_sub(lives);
        if self.lives == 0 {
            story.tell("The castle has fallen");
            commands.spawn(menu(GAME_OVER));
        }
    }
}

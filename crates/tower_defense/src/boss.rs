//! The boss: it casts a curse on the castle, and a stun interrupts it.

use bevy_due::{CancelReason, Timer, TimerCancelled, TimerKey, prelude::*};
use bevy_ecs::prelude::*;

use crate::{castle::Castle, log::Story};

/// The key of the timer that makes the boss begin to cast.
#[derive(Component, Debug)]
pub struct Spell;

/// The key of the cast: its progress is the cast bar.
#[derive(Component, Debug)]
pub struct Cast;

impl TimerKey for Spell {
    const NAME: &'static str = "spell";
}

impl TimerKey for Cast {
    const NAME: &'static str = "cast";
}

impl Spell {
    #[must_use]
    pub fn timer() -> Timer {
        Timer::every(8.0).first_after(5.0)
    }
}

pub fn begin_to_cast(
    mut fired: MessageReader<TimerFired>,
    mut story: Story,
    mut commands: Commands,
) {
    for fired in fired.read().filter(|fired| fired.has_key(Spell)) {
        story.tell("The warlock is casting");
        let mut boss = commands.entity(fired.owner());
        boss.set_timer(Cast, Timer::after(3.0));
    }
}

pub fn end_cast(
    mut fired: MessageReader<TimerFired>,
    mut castle: ResMut<Castle>,
    mut story: Story,
    mut commands: Commands,
) {
    for _ in fired.read().filter(|fired| fired.has_key(Cast)) {
        story.tell("The curse strikes");
        castle.lose_lives(5, &mut story, &mut commands);
    }
}

/// The death of the boss ends the cast too, but for another reason.
pub fn report_interruption(mut cancelled: MessageReader<TimerCancelled>, mut story: Story) {
    for cancelled in cancelled.read() {
        if cancelled.has_key(Cast) && cancelled.reason() == CancelReason::Cancelled {
            story.tell("The curse is interrupted");
        }
    }
}

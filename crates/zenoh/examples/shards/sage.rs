//! The sage of a zone, who thinks before each answer.

use bevy_due::{
    Timer,
    message::{MessageCommandsExt, MessageContext, Packet},
    prelude::*,
};
use bevy_due_ownership::{Arrived, Zone};
use bevy_ecs::prelude::*;

use crate::{keys, player, shard::Here};

pub const QUESTION: u32 = 3;
pub const ANSWER: u32 = 4;

/// Returns the callbacks of a sage.
fn ears() -> MessageComponent {
    MessageComponent::new().on_packet(QUESTION, |mut me: MessageContext, _: &Packet| -> Result {
        let question = me.reply_to().ok_or("nobody to answer to")?.clone();
        let answer = TimerAction::call(move |world, _| {
            let question = question.clone();
            world.commands().reply(question, Packet::new(ANSWER, []));
        });
        // Nobody owns the timer, so it need not survive a crash: then there is no answer.
        let thought = Timer::after(0.3).despawn_when_done();
        me.commands.spawn((thought, answer));
        Ok(())
    })
}

/// Fills a zone that is new. The sage is in the first frame of its journal, with all players who are born
/// there, so they are born once.
pub fn begin(zone: Res<Zone>, here: Res<Here>, mut commands: Commands) {
    let key = keys::sage(here.shard);
    if zone.entity(key).is_some() {
        return;
    }
    commands.spawn((key, ears()));
    for number in (0..here.players).filter(|player| player % here.shards == here.shard) {
        commands.spawn(player::newborn(number, here.zone));
    }
}

pub fn arrive(arrived: On<Arrived>, here: Res<Here>, mut commands: Commands) {
    if arrived.key == keys::sage(here.shard) {
        commands.entity(arrived.entity).insert(ears());
    }
}

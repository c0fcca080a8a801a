//! An entity that answers later.

use bevy_due::message::{MessageCommandsExt, ReplyTo};

use super::*;

/// The requests that an entity has received and not answered.
#[derive(Component, Default)]
pub(crate) struct Kept(pub(crate) Vec<ReplyTo>);

/// Keeps each request.
pub(crate) fn thinker() -> impl Bundle {
    let follows = MessageComponent::new().on_packet(QUESTION, |mut me, _| {
        let reply_to = me.reply_to().expect("a request").clone();
        me.entity
            .get_mut::<Kept>()
            .expect("it keeps")
            .0
            .push(reply_to);
    });
    (Kept::default(), follows)
}

/// Answers each request that an entity has kept.
pub(crate) fn reply_all(app: &mut App, asked: Entity, what: u8) {
    let kept = core::mem::take(&mut app.world_mut().get_mut::<Kept>(asked).expect("it keeps").0);
    for reply_to in kept {
        let answer = Packet::new(ANSWER, [what]);
        app.world_mut().commands().reply(reply_to, answer);
    }
    app.world_mut().flush();
}

/// Returns the answers that an entity has received, or `None` for a time-out.
pub(crate) fn told(app: &App, asker: Entity) -> Vec<Option<u8>> {
    let told = app.world().get::<Told>(asker).expect("it asks");
    told.0.iter().map(|(_, answer)| *answer).collect()
}

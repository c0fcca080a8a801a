//! The handlers: they log their call, and play the next reaction.

use std::panic::resume_unwind;

use bevy_due::{
    OwnedTimerFired, TimerCancelled, TimerFired, UpdateComponent, UpdateContext,
    message::{MessageComponent, MessageContext, MessageWorldExt, NoAnswer, Packet, Request},
};
use bevy_ecs::prelude::*;

use super::{Cast, Shared, apply::apply};
use crate::{
    entry::{Call, Cancel, Entry, Firing, Hearing},
    op::{KEYS, Op, Topic, Topics},
};

/// The name of the handler of timers.
pub(super) const NAME: &str = "what the script says";

/// Messages with their number in the order of sending.
#[derive(Message)]
pub(super) struct Word(pub(super) u64);

#[derive(Message)]
pub(super) struct Answer(pub(super) u64);

/// Adds the codecs with which messages move.
pub(super) fn add_codecs(world: &mut World) {
    let decode = |data: &[u8]| -> Result<u64> { Ok(u64::from_le_bytes(data.try_into()?)) };
    world.add_message_codec(
        "word",
        |word: &Word| Ok(word.0.to_le_bytes().into()),
        move |data| decode(data).map(Word),
    );
    world.add_message_codec(
        "answer",
        |answer: &Answer| Ok(answer.0.to_le_bytes().into()),
        move |data| decode(data).map(Answer),
    );
}

/// Each observer gets a copy of the event: writing another one over it changes nothing for others.
pub(super) fn on_fired(mut fired: On<TimerFired>, shared: Res<Shared>, commands: Commands) {
    let firing = firing(&shared.cast(), &fired);
    shared.log(firing);
    shared.note_fired(fired.entity());
    if let Some(before) = shared.record().last_fired.replace(*fired) {
        *fired = before;
    }
    react(&shared, commands);
}

pub(super) fn on_owned_fired(fired: On<OwnedTimerFired>, shared: Res<Shared>) {
    let cast = shared.cast();
    let ids = (cast.id(fired.entity()), cast.id(fired.owner()));
    drop(cast);
    shared.log(Entry::Owned(ids.0, ids.1));
}

pub(super) fn on_cancelled(cancelled: On<TimerCancelled>, shared: Res<Shared>) {
    let cancel = cancel(&shared.cast(), &cancelled);
    shared.log(cancel);
}

/// The handler of a timer, which has exclusive access to the world.
pub(super) fn named(In(fired): In<TimerFired>, world: &mut World) {
    let shared = world.resource::<Shared>().clone();
    let id = shared.cast().id(fired.entity());
    shared.log(Entry::Acted(id, fired.count()));
    shared.note_fired(fired.entity());
    for op in next_reaction(&shared) {
        panic_if(op == Op::Panic);
        apply(world, &op);
    }
}

/// Returns a callback. All callbacks are equal, because they find out whose they are.
pub(super) fn update(shared: &Shared) -> UpdateComponent {
    let shared = shared.clone();
    UpdateComponent::new(move |me: UpdateContext| {
        let cast = shared.cast();
        shared.log(Entry::Called(Call {
            entity: cast.id(me.update_entity),
            target: cast.id(me.entity.id()),
            clock: cast.named(me.clock),
            delta: me.delta.as_nanos() as u64,
            elapsed: me.elapsed.as_nanos() as u64,
        }));
        drop(cast);
        react(&shared, me.commands);
    })
}

/// Returns a component that follows these topics. All components with the same topics are equal.
pub(super) fn follower(shared: &Shared, topics: Topics) -> MessageComponent {
    let mut component = MessageComponent::new();
    for (id, topic) in [(0, Topic::Packet0), (1, Topic::Packet1)] {
        if topics.contain(topic) {
            let shared = shared.clone();
            component = component.on_packet(id, move |me: MessageContext, packet: &Packet| {
                let serial = packet.payload().try_into().map(u64::from_le_bytes);
                hear(&shared, me, topic, serial.expect("eight bytes"));
            });
        }
    }
    if topics.contain(Topic::Word) {
        let shared = shared.clone();
        component = component.on(move |me, word: &Word| hear(&shared, me, Topic::Word, word.0));
    }
    if topics.contain(Topic::Answer) {
        let shared = shared.clone();
        component = component.on(move |me, word: &Answer| hear(&shared, me, Topic::Answer, word.0));
    }
    if topics.contain(Topic::NoReply) {
        let shared = shared.clone();
        component = component.on(move |me, _: &NoAnswer| hear(&shared, me, Topic::NoReply, 0));
    }
    component
}

fn hear(shared: &Shared, me: MessageContext, topic: Topic, serial: u64) {
    if let Some(reply_to) = me.reply_to() {
        shared.record().heard.push_back(reply_to.clone());
    }
    let cast = shared.cast();
    let request = me.request().and_then(Request::entity);
    shared.log(Entry::Heard(Hearing {
        entity: cast.id(me.entity.id()),
        topic,
        serial,
        request: request.map(|request| cast.id(request)),
        asks: me.reply_to().is_some(),
        elapsed: me.elapsed().as_nanos() as u64,
    }));
    drop(cast);
    react(shared, me.commands);
}

/// Takes the next reaction, and plays it in a command. If it starts with a panic, panics at once.
fn react(shared: &Shared, mut commands: Commands) {
    let ops = next_reaction(shared);
    panic_if(ops.first() == Some(&Op::Panic));
    if ops.is_empty() {
        return;
    }
    commands.queue(move |world: &mut World| {
        for op in &ops {
            panic_if(*op == Op::Panic);
            apply(world, op);
        }
    });
}

fn next_reaction(shared: &Shared) -> Vec<Op> {
    shared.record().reactions.pop_front().unwrap_or_default()
}

/// Panics without a message, so that the output stays clean.
fn panic_if(condition: bool) {
    if condition {
        resume_unwind(Box::new("the script says so"));
    }
}

pub(super) fn firing(cast: &Cast, fired: &TimerFired) -> Entry {
    Entry::Fired(Firing {
        entity: cast.id(fired.entity()),
        owner: cast.id(fired.owner()),
        key: KEYS.into_iter().find(|&key| fired.has_key(key)),
        clock: cast.named(fired.clock()),
        deadline: fired.deadline().as_nanos() as u64,
        lateness: fired.lateness().as_nanos() as u64,
        count: fired.count(),
        missed: fired.missed(),
        is_last: fired.is_last(),
    })
}

pub(super) fn cancel(cast: &Cast, cancelled: &TimerCancelled) -> Entry {
    Entry::Cancelled(Cancel {
        entity: cast.id(cancelled.entity()),
        owner: cast.id(cancelled.owner()),
        key: KEYS.into_iter().find(|&key| cancelled.has_key(key)),
        clock: cast.named(cancelled.clock()),
        count: cancelled.count(),
        left: cancelled.left(),
        remaining: cancelled.remaining().as_nanos() as u64,
        reason: cancelled.reason(),
    })
}

//! Moving entities between worlds: nothing is lost, doubled or reordered. `interrupted.rs` moves the
//! entities of random games.

mod all_or_nothing;
mod copies;
mod errors;
#[cfg(feature = "worlds")]
mod groups;
mod mail;
mod others;
mod requests;
mod thinker;
mod time;

use bevy_app::App;
use bevy_due::{
    message::{Delivery, MessageContext, MessageStats, MessageWorldExt, NoAnswer, Packet, Request},
    moving::{MoveError, MoveWorldExt, MovedEntity, PutError},
    prelude::*,
};
use bevy_ecs::{entity::EntityHashMap, prelude::*};
use serde::{Serialize, de::DeserializeOwned};

use crate::support::*;
use thinker::*;

const NOTE: u32 = 1;
const QUESTION: u32 = 2;
const ANSWER: u32 = 3;

/// The messages that an entity has got, in order.
#[derive(Component, Default, Debug)]
struct Heard(Vec<u8>);

/// The replies that an entity has got, in order, or `None` for a time-out.
#[derive(Component, Default)]
struct Told(Vec<(Request, Option<u8>)>);

/// A typed message with a codec in [`zone`].
#[derive(Message, Clone, Debug, PartialEq)]
struct Hit(u8);

/// A typed message without a codec.
#[derive(Message)]
struct Look(u8);

fn hear(me: &mut MessageContext, what: u8) {
    if let Some(mut heard) = me.entity.get_mut::<Heard>() {
        heard.0.push(what);
    }
}

/// Follows notes, hits, looks and answers.
fn ears() -> impl Bundle {
    let follows = MessageComponent::new()
        .on_packet(NOTE, |mut me, note| hear(&mut me, note.payload()[0]))
        .on(|mut me, hit: &Hit| hear(&mut me, 100 + hit.0))
        .on(|mut me, look: &Look| hear(&mut me, 200 + look.0))
        .on_packet(ANSWER, |mut me, answer| {
            let answer = (me.request().expect("a reply"), Some(answer.payload()[0]));
            me.entity
                .get_mut::<Told>()
                .expect("an asker")
                .0
                .push(answer);
        })
        .on(|mut me, _: &NoAnswer| {
            let none = (me.request().expect("a reply"), None);
            me.entity.get_mut::<Told>().expect("an asker").0.push(none);
        });
    (Heard::default(), Told::default(), follows)
}

/// An app with codecs and manual time.
fn zone() -> App {
    let mut app = app();
    app.world_mut().add_message_codec(
        "hit",
        |hit: &Hit| Ok([hit.0].into()),
        |data| match data {
            [hit] => Ok(Hit(*hit)),
            _ => Err(format!("{} bytes", data.len()).into()),
        },
    );
    app
}

fn note(nth: u8) -> Packet {
    Packet::new(NOTE, [nth])
}

fn send(app: &mut App, to: impl Into<Delivery>, nth: u8) {
    let sent = app.world_mut().send(to, note(nth));
    sent.expect("there is room");
}

fn heard(app: &mut App, entity: Entity) -> Vec<u8> {
    let mut heard = app.world_mut().get_mut::<Heard>(entity).expect("ears");
    core::mem::take(&mut heard.0)
}

/// Sends data through text, as to another process.
fn through_text<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let text = ron::to_string(value).expect("it should serialize");
    ron::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[track_caller]
fn take(app: &mut App, entity: Entity) -> MovedEntity {
    let moved = app.world_mut().take_entity(entity);
    through_text(&moved.expect("the entity can move"))
}

/// Puts an entity into a world, and gives it ears.
#[track_caller]
fn put(app: &mut App, moved: MovedEntity, on_the_way: u64) -> Entity {
    let mut map = EntityHashMap::default();
    let entity = put_with(app, moved, on_the_way, &mut map);
    app.world_mut().entity_mut(entity).insert(ears());
    entity
}

/// Puts an entity into a world.
#[track_caller]
fn put_with(
    app: &mut App,
    moved: MovedEntity,
    on_the_way: u64,
    map: &mut EntityHashMap<Entity>,
) -> Entity {
    let put = app.world_mut().put_entity(moved, ms(on_the_way), map);
    put.expect("the data is valid")
}

/// Moves an entity in no time.
#[track_caller]
fn carry(from: &mut App, entity: Entity, to: &mut App) -> Entity {
    let moved = take(from, entity);
    put(to, moved, 0)
}

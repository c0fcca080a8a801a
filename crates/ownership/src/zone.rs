//! A zone: what it owns, and where everything else goes.

mod arrive;
mod book;
mod claims;
mod leave;
mod lost;
mod notes;
mod open;
mod protocol;
mod store;

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use bevy_due::{
    message::{MessageComponent, MessageSender, MessageWorldExt},
    worlds::StableKey,
};
use bevy_ecs::{entity_disabling::Disabled, prelude::*};
use bevy_time::{Real, Time};

use crate::{
    events::MailReturned,
    ids::{Life, Recipient, ZoneId},
    item::{Batch, Item},
    outbox::Outbox,
    outboxes::Outboxes,
    report::report,
    routes::{Location, Routes},
    shard::Shard,
    streams::Streams,
    unrouted::Unrouted,
    wire::Message,
};
use book::{Book, Entry, State};
use claims::Claims;
use leave::Departure;
use lost::Lost;
pub(crate) use open::open;
use store::Storage;

/// This world, as a zone.
#[derive(Resource, Debug)]
pub struct Zone {
    key: StableKey,
    /// `None` if this build can't load the entity.
    entities: BTreeMap<StableKey, Option<Entity>>,
    is_new: bool,
    on_the_way: usize,
}

impl Zone {
    /// Returns the key of the zone.
    #[must_use]
    pub fn key(&self) -> StableKey {
        self.key
    }

    /// Returns the durable entity with a key, if it is here. An entity that is new in this frame is not yet.
    #[must_use]
    pub fn entity(&self, key: StableKey) -> Option<Entity> {
        self.entities.get(&key).copied().flatten()
    }

    /// Returns the durable entities of this zone, by their keys.
    pub fn entities(&self) -> impl Iterator<Item = (StableKey, Entity)> {
        let entities = self.entities.iter();
        entities.filter_map(|(&key, &entity)| Some((key, entity?)))
    }

    /// Returns `true` in the first life of the zone: its file had nothing of it. This is the time to fill it.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns the entities that this build can't load. They stay in the file, and their letters wait.
    pub fn unloadable(&self) -> impl Iterator<Item = StableKey> {
        let entities = self.entities.iter();
        entities.filter_map(|(&key, entity)| entity.is_none().then_some(key))
    }

    /// Returns the number of entities, letters and receipts that have left this zone or are about to, and that
    /// others have yet to confirm, as of the last frame that was handed to the journal. A letter can count twice.
    /// At 0, nothing is on its way.
    #[must_use]
    pub fn on_the_way(&self) -> usize {
        self.on_the_way
    }
}

/// What a zone knows and does.
#[derive(Resource)]
pub(crate) struct ZoneState {
    home: Home,
    book: Book,
    post: Post,
    departures: BTreeMap<Entity, Departure>,
    claims: Claims,
    lost: Lost,
    storage: Storage,
}

/// Where the zone is.
struct Home {
    me: ZoneId,
    endpoint: Entity,
    shard: Shard,
    sender: MessageSender,
    /// A random number of this world, which names entities.
    names: u64,
}

/// Tells an entity of something that did not happen.
type Failure = Box<dyn FnOnce(&mut World) + Send + Sync>;

/// What goes to other zones.
struct Post {
    streams: Streams,
    unrouted: Unrouted,
    routes: Routes,
    outboxes: Outboxes,
    /// What to tell other zones at the end of the frame: one, or all.
    to_tell: Vec<(Option<StableKey>, Message)>,
    /// What failed at the end of the last frame. Entities hear of it in the next one, which stores what they do then.
    failures: Vec<Failure>,
}

/// Calls a function with the zone of a world, if it is open.
pub(crate) fn with_zone<Out>(
    world: &mut World,
    call: impl FnOnce(&mut ZoneState, &mut World) -> Out,
) -> Option<Out> {
    world
        .contains_resource::<ZoneState>()
        .then(|| world.resource_scope(|world, mut zone: Mut<ZoneState>| call(&mut zone, world)))
}

/// Returns the time that tells when to send again.
fn now(world: &World) -> Duration {
    let time = world.get_resource::<Time<Real>>();
    time.map(Time::elapsed).unwrap_or_default()
}

impl Post {
    /// Returns where a recipient is, if that is known.
    fn locate(&self, to: Recipient) -> Option<Location> {
        let known = self.routes.locate(to);
        let certain = known.filter(|known| !known.is_guess());
        certain.or_else(|| self.streams.leaving(to)).or(known)
    }

    /// Tells an entity in the next frame of something that did not happen.
    fn fail<E>(&mut self, event: E)
    where
        E: for<'a> EntityEvent<Trigger<'a>: Default> + Send + Sync,
    {
        self.failures
            .push(Box::new(move |world| notify(world, event)));
    }
}

impl ZoneState {
    /// Brings an item to its recipient: here, in another zone, or nowhere yet.
    fn route(&mut self, world: &mut World, item: Item) {
        let mut items = VecDeque::from([item]);
        while let Some(item) = items.pop_front() {
            let Some(to) = item.recipient() else {
                continue;
            };
            if self.is_reachable(to) {
                match self.deliver(world, item) {
                    // The sender hears of it at the start of a frame, which stores what it does then.
                    Some(Item::Receipt(batch)) if !batch.letters.is_empty() => {
                        self.post.unrouted.add(Item::Receipt(batch), now(world));
                    }
                    answer => items.extend(answer),
                }
            } else if let Some(location) = self.post.locate(to) {
                self.post.streams.push(location.zone, item);
            } else {
                self.post.unrouted.add(item, now(world));
            }
        }
    }

    /// Returns `true` if an item for a recipient can be delivered here.
    fn is_reachable(&self, to: Recipient) -> bool {
        match (self.owned(to), to) {
            (Some(owned), _) => !matches!(owned.state, State::Unloadable(_)),
            // It has despawned, and its last letters are on their way.
            (None, Recipient::Life(life)) => {
                self.post.outboxes.contains(life) && !self.belongs_to_another(life)
            }
            (None, Recipient::Key(_)) => false,
        }
    }

    /// Returns `true` if a life waits here until its entity is free again.
    fn belongs_to_another(&self, life: Life) -> bool {
        let found = self.book.belonging.get(&life.key);
        found.is_some_and(|&(_, it, _)| it == life)
    }

    /// Returns a recipient that this zone owns.
    fn owned(&self, to: Recipient) -> Option<&Entry> {
        let owned = self.book.owned.get(&to.key())?;
        to.is(owned.life).then_some(owned)
    }

    /// Returns `true` if an entity is here, and can't take a letter: it has no callbacks, or is disabled. Its letters wait.
    fn is_deaf(&self, world: &World, key: StableKey) -> bool {
        let entity = self.book.entity(key);
        let entity = entity.and_then(|entity| world.get_entity(entity).ok());
        entity.is_some_and(|it| !it.contains::<MessageComponent>() || it.contains::<Disabled>())
    }

    /// Delivers an item here, and returns the answer.
    fn deliver(&mut self, world: &mut World, item: Item) -> Option<Item> {
        match item {
            Item::Letters(batch) => self.deliver_letters(world, batch),
            Item::Receipt(batch) => {
                self.post.outboxes.arrived(batch.from, batch.to, batch.id);
                self.hand_back(world, batch);
                None
            }
            Item::Entity(_) => None,
        }
    }

    fn hand_back(&self, world: &mut World, batch: Batch) {
        let Batch {
            from, to, letters, ..
        } = batch;
        if letters.is_empty() {
            return;
        }
        let owned = self.owned(Recipient::Life(from));
        let Some(entity) = owned.and_then(Entry::entity) else {
            let letters = letters.len();
            let (from, to) = (from.key.0, to.0);
            let gone = format!(
                "{letters} letters from the entity with the stable key {from} to that with {to} can't be delivered, and \
                 their sender is gone"
            );
            return report(world, gone);
        };
        for letter in letters {
            notify(world, MailReturned { entity, to, letter });
        }
    }

    /// Calls the recipient for each letter, here and now: what waited in its mailbox would be lost if it despawned.
    fn deliver_letters(&mut self, world: &mut World, batch: Batch) -> Option<Item> {
        let Batch {
            id,
            from,
            to,
            letters,
        } = batch;
        let mut letters = VecDeque::from(letters);
        let mut returned = Vec::new();
        while let Some(letter) = letters.pop_front() {
            let Some(entity) = self.hearer(world, to) else {
                // The rest keeps the place of the batch.
                letters.push_front(letter);
                returned.extend(letters);
                let letters = returned;
                let rest = Batch {
                    id,
                    from,
                    to,
                    letters,
                };
                self.post.unrouted.add(Item::Letters(rest), now(world));
                return None;
            };
            self.book.dirty.insert(to);
            match world.deliver(entity, &letter) {
                Ok(true) => continue,
                Ok(false) => report(world, not_followed(to, letter.id())),
                Err(error) => report(world, error),
            }
            returned.push(letter);
        }
        Some(Item::Receipt(Batch {
            id,
            from,
            to,
            letters: returned,
        }))
    }

    /// Returns the entity that takes a letter. A callback may have despawned it, or may have removed what takes letters.
    fn hearer(&self, world: &World, key: StableKey) -> Option<Entity> {
        if self.is_deaf(world, key) {
            let deaf = format!(
                "a letter waits for the entity with the stable key {}, which is disabled or has no `MessageComponent`: \
                 insert one when the entity is spawned, and when it has `Arrived`",
                key.0
            );
            report(world, deaf);
            return None;
        }
        let entity = self.book.entity(key)?;
        (world.get::<StableKey>(entity) == Some(&key)).then_some(entity)
    }

    /// Notes that the zone owns an entity.
    fn own(&mut self, world: &mut World, owned: Entry, outbox: Outbox) {
        let life = owned.life;
        if let Some(mut zone) = world.get_resource_mut::<Zone>() {
            zone.entities.insert(life.key, owned.entity());
        }
        self.take_outbox(life, outbox);
        self.post.routes.forget(life);
        self.book.dirty.insert(life.key);
        self.book.owned.insert(life.key, owned);
    }

    /// Notes that the zone no longer owns an entity.
    fn disown(&mut self, world: &mut World, key: StableKey) -> Option<Entry> {
        let owned = self.book.owned.remove(&key)?;
        if let Some(mut zone) = world.get_resource_mut::<Zone>() {
            zone.entities.remove(&key);
        }
        Some(owned)
    }
}

fn not_followed(key: StableKey, packet: u32) -> String {
    format!(
        "a letter to the entity with the stable key {} comes back, because its `MessageComponent` does not follow the \
         packet {packet}: call `on_packet` with this id",
        key.0
    )
}

/// Tells an entity that something did not happen, unless it is gone.
fn notify<E>(world: &mut World, event: E)
where
    E: for<'a> EntityEvent<Trigger<'a>: Default>,
{
    if world.get_entity(event.event_target()).is_ok() {
        world.trigger(event);
        world.flush();
    }
}

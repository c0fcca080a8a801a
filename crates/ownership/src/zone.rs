//! A zone: what it owns, and where everything else goes.

mod arrive;
mod judge;
mod leave;
mod notes;
mod open;
mod store;
mod talk;

use core::{fmt, time::Duration};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bevy_due::{
    message::{MessageComponent, MessageSender, MessageWorldExt, SendError},
    worlds::StableKey,
};
use bevy_ecs::{
    entity::{EntityHashMap, EntityHashSet},
    prelude::*,
};
use bevy_time::{Real, Time};

use crate::{
    components::Declared,
    events::{MailReturned, MoveFailed},
    item::{Batch, Item},
    journal::{JournalId, Place, Record},
    outbox::Outbox,
    owners::{Owner, Referee},
    readings::Readings,
    routes::Routes,
    shard::Shard,
    stored::Body,
    streams::Streams,
    waiting::Waiting,
    wire::Message,
};
pub(crate) use arrive::report;
use leave::Departure;
pub(crate) use open::open;
use store::Storage;

/// This world, as a zone.
#[derive(Resource, Debug)]
pub struct Zone {
    key: StableKey,
    entities: BTreeMap<StableKey, Entity>,
    parked: BTreeSet<StableKey>,
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
        self.entities.get(&key).copied()
    }

    /// Returns the durable entities of this zone, by their keys.
    pub fn entities(&self) -> impl Iterator<Item = (StableKey, Entity)> {
        self.entities.iter().map(|(&key, &entity)| (key, entity))
    }

    /// Returns `true` in the first life of the zone: its file had nothing of it. This is the time to fill it.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns the entities that this build can't load. They stay in the file, and their letters wait.
    pub fn parked(&self) -> impl Iterator<Item = StableKey> {
        self.parked.iter().copied()
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
    me: Place,
    endpoint: Entity,
    declared: Vec<Declared>,
    owned: BTreeMap<StableKey, Owned>,
    /// The durable entities of this world.
    keys: EntityHashMap<StableKey>,
    /// Entities with a key that can't be stored. They were reported.
    refused: EntityHashSet,
    /// What is to be stored in this frame.
    dirty: BTreeSet<StableKey>,
    /// Entities with mail, which are to be stored again when it is delivered.
    with_mail: BTreeSet<StableKey>,
    streams: Streams,
    waiting: Waiting,
    routes: Routes,
    departures: Vec<Departure>,
    /// The entities for which the store of owners has yet to say whether they may leave.
    asked: BTreeSet<StableKey>,
    /// What to tell other zones at the end of the frame: one, or all.
    to_tell: Vec<(Option<StableKey>, Message)>,
    /// What failed at the end of the last frame. Entities hear of it in the next one, which stores what they do then.
    failures: Vec<Failure>,
    /// Records of what has ended in this frame.
    ended: Vec<Record>,
    dead: BTreeSet<JournalId>,
    /// How many of the journals that the shard has given up this zone has given up.
    reclaims: usize,
    storage: Storage,
    /// Who decides on owners, if the journals do not, and where the answers go.
    referee: Option<Referee>,
    sender: MessageSender,
    shard: Shard,
}

/// Something that a game asked for at the end of a frame, and that did not happen.
enum Failure {
    Move(MoveFailed),
    Mail(MailReturned),
}

/// An entity that belongs to this zone.
struct Owned {
    epoch: u64,
    state: State,
    outbox: Outbox,
    /// Whether the journal has it.
    is_stored: bool,
}

enum State {
    Here(Entity),
    /// It has despawned, and its last letters are on their way.
    Gone,
    /// This build of the game can't load it.
    Parked(Box<(Body, Readings)>),
}

impl Owned {
    fn entity(&self) -> Option<Entity> {
        match self.state {
            State::Here(entity) => Some(entity),
            State::Gone | State::Parked(_) => None,
        }
    }
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

impl ZoneState {
    /// Returns this zone as an owner.
    fn owner(&self, epoch: u64) -> Owner {
        let place = self.me;
        Owner { place, epoch }
    }

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
                    Some(returned @ Item::Returned(_)) => self.waiting.add(returned, now(world)),
                    answer => items.extend(answer),
                }
            } else if let Some(zone) = self.routes.zone_of(to) {
                self.streams.push(zone, item);
            } else {
                self.waiting.add(item, now(world));
            }
        }
    }

    /// Returns `true` if an item for an entity can be delivered here.
    fn is_reachable(&self, key: StableKey) -> bool {
        let owned = self.owned.get(&key);
        owned.is_some_and(|owned| !matches!(owned.state, State::Parked(_)))
    }

    /// Returns `true` if an entity is here, and has nothing that could take a letter. Its letters wait.
    fn is_deaf(&self, world: &World, key: StableKey) -> bool {
        let entity = self.owned.get(&key).and_then(Owned::entity);
        entity.is_some_and(|entity| world.get::<MessageComponent>(entity).is_none())
    }

    /// Returns the record that ends the state of an entity here.
    fn gone(&self, key: StableKey, epoch: u64) -> Record {
        let zone = self.me.zone;
        Record::Gone { zone, key, epoch }
    }

    /// Delivers an item here, and returns the answer.
    fn deliver(&mut self, world: &mut World, item: Item) -> Option<Item> {
        match item {
            Item::Letters(batch) => self.deliver_letters(world, batch),
            Item::Delivered { from, to } => {
                self.letters_arrived(from, to);
                None
            }
            Item::Returned(Batch { from, to, letters }) => {
                self.letters_arrived(from, to);
                if let Some(entity) = self.owned.get(&from).and_then(Owned::entity) {
                    for letter in letters {
                        notify(world, MailReturned { entity, to, letter });
                    }
                }
                None
            }
            Item::Entity(_) => None,
        }
    }

    fn deliver_letters(&mut self, world: &mut World, batch: Batch) -> Option<Item> {
        if self.is_deaf(world, batch.to) {
            report(world, Deaf(batch.to));
            self.waiting.add(Item::Letters(batch), now(world));
            return None;
        }
        let Batch { from, to, letters } = batch;
        let Some(entity) = self.owned.get(&to).and_then(Owned::entity) else {
            return Some(Item::Returned(Batch { from, to, letters }));
        };
        self.dirty.insert(to);
        self.with_mail.insert(to);
        let mut letters = VecDeque::from(letters);
        while let Some(letter) = letters.pop_front() {
            if let Err(SendError::Full(letter) | SendError::Closed(letter)) =
                world.send(entity, letter)
            {
                letters.push_front(letter);
                let letters = letters.into();
                let rest = Item::Letters(Batch { from, to, letters });
                self.waiting.add(rest, now(world));
                return None;
            }
        }
        Some(Item::Delivered { from, to })
    }

    fn letters_arrived(&mut self, from: StableKey, to: StableKey) {
        if let Some(owned) = self.owned.get_mut(&from) {
            owned.outbox.arrived(to);
            self.dirty.insert(from);
        }
    }

    /// Makes an entity of this world one that the zone owns.
    fn own(
        &mut self,
        world: &mut World,
        key: StableKey,
        entity: Entity,
        epoch: u64,
        outbox: Outbox,
    ) {
        let owned = Owned {
            epoch,
            state: State::Here(entity),
            outbox,
            is_stored: false,
        };
        self.owned.insert(key, owned);
        self.keys.insert(entity, key);
        self.dirty.insert(key);
        self.routes.forget(key);
        if let Some(mut zone) = world.get_resource_mut::<Zone>() {
            zone.entities.insert(key, entity);
        }
    }

    /// Notes that a journal has an entity: its own, or that of the zone from which it comes. If the entity can't
    /// be stored later, the world ends.
    fn note_stored(&mut self, key: StableKey) {
        if let Some(owned) = self.owned.get_mut(&key) {
            owned.is_stored = true;
        }
    }

    /// Notes that an entity is no longer in this world.
    fn disown(&mut self, world: &mut World, key: StableKey) -> Option<Owned> {
        let owned = self.owned.remove(&key)?;
        // It can have another key by now.
        if let Some(entity) = owned.entity()
            && self.keys.get(&entity) == Some(&key)
        {
            self.keys.remove(&entity);
        }
        if let Some(mut zone) = world.get_resource_mut::<Zone>() {
            zone.entities.remove(&key);
        }
        Some(owned)
    }
}

/// An entity has a letter, and nothing that could take it.
#[derive(Debug)]
struct Deaf(StableKey);

impl fmt::Display for Deaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a letter waits for the entity with the stable key {}, which has no `MessageComponent`: insert one when the \
             entity is spawned, and when it has `Arrived`",
            self.0.0
        )
    }
}

impl core::error::Error for Deaf {}

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

//! Opening a zone: what the journal has comes back.

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

use bevy_due::{
    message::{MessageComponent, MessageWorldExt, Packet, RefusalReason},
    moving::HeldMail,
    worlds::{
        Refused, StableKey, WorldLink,
        link::{Effect, Liveness, PeerChanged},
    },
};
use bevy_ecs::{entity::EntityHashMap, prelude::*};

use super::{
    Owned, State, Zone, ZoneState,
    arrive::{bring_in, report},
    now,
    store::Storage,
};
use crate::{
    components::Declared,
    item::{Item, decode},
    journal::{Place, Recovered},
    noted::Outgoing,
    outbox::Outbox,
    readings::Readings,
    routes::Routes,
    shard::Shard,
    stored::Stored,
    streams::Streams,
    waiting::Waiting,
    wire::ZONE_PACKET,
};

/// What has come for the zone.
#[derive(Component, Default)]
pub(super) struct Arrivals {
    /// The packets of other zones.
    pub(super) packets: Vec<Packet>,
    /// Whether another process has come up.
    pub(super) is_peer_up: bool,
}

/// Opens a zone in a world.
pub(crate) fn open(
    world: &mut World,
    shard: Shard,
    key: StableKey,
    declared: Vec<Declared>,
    allows_parked: bool,
) -> Result {
    let sender = world.message_sender();
    let link = world.get_resource::<WorldLink>().ok_or(NoGroup(key))?;
    let (recovered, dead) = shard.open_zone(key, sender.clone())?;
    let held = world.resource::<Outgoing>().clone();
    link.hold(move |effect: Effect| {
        let bytes = effect.parcel().map_or(0, |it| it.packet.payload().len());
        held.push(Box::new(move || effect.release()), bytes);
    });
    let endpoint = world.spawn((key, endpoint(), Arrivals::default())).id();

    let before = decode_readings(&recovered)?.after_a_stop();
    let me = Place {
        journal: shard.journal_id(),
        zone: key,
    };
    let mut zone = ZoneState {
        me,
        endpoint,
        declared,
        owned: BTreeMap::new(),
        keys: EntityHashMap::default(),
        refused: Default::default(),
        dirty: Default::default(),
        with_mail: Default::default(),
        streams: Streams::new(me),
        waiting: Waiting::default(),
        routes: Routes::default(),
        departures: Vec::new(),
        asked: BTreeSet::new(),
        to_tell: Vec::new(),
        failures: Vec::new(),
        ended: Vec::new(),
        dead: dead.into_iter().collect(),
        reclaims: 0,
        storage: Storage::new(&shard, sender.clone(), Readings::of(world, 0), before),
        referee: shard.referee(),
        sender,
        shard,
    };
    world.insert_resource(Zone {
        key,
        entities: BTreeMap::new(),
        parked: BTreeSet::new(),
        is_new: recovered == Recovered::default(),
        on_the_way: 0,
    });
    zone.restore_streams(world, &recovered)?;
    zone.bring_back(world, recovered)?;
    let parked = world.resource::<Zone>().parked.len();
    if parked > 0 && !allows_parked {
        return Err(BevyError::error(CannotLoad(parked)));
    }
    zone.finish_opening(world);
    zone.check_owners();
    zone.give_up_dead(world);
    world.insert_resource(zone);
    Ok(())
}

/// Returns the callbacks of the entity that stands for the zone.
fn endpoint() -> MessageComponent {
    MessageComponent::new()
        .on_packet(ZONE_PACKET, |mut me, packet: &Packet| {
            if let Some(mut arrivals) = me.entity.get_mut::<Arrivals>() {
                arrivals.packets.push(packet.clone());
            }
        })
        .on(|mut me, changed: &PeerChanged| {
            if let Some(mut arrivals) = me.entity.get_mut::<Arrivals>() {
                arrivals.is_peer_up |= changed.liveness == Liveness::Up;
            }
        })
        .on(|_, refused: &Refused| {
            let is_own = refused.parcel.packet.id() == ZONE_PACKET;
            match refused.reason {
                RefusalReason::TooLarge => Err(BevyError::warning(refused.clone())),
                // The zone sends it again.
                _ if is_own => Ok(()),
                _ => Err(BevyError::warning(refused.clone())),
            }
        })
}

fn decode_readings(recovered: &Recovered) -> Result<Readings> {
    match &recovered.readings {
        Some(body) => decode(body),
        None => Ok(Readings::default()),
    }
}

impl ZoneState {
    fn restore_streams(&mut self, world: &World, recovered: &Recovered) -> Result {
        // A zone can have had a journal that is dead by now. The one that it has now counts.
        let is_dead = |peer: &Place| self.dead.contains(&peer.journal);
        let mut streams: Vec<_> = recovered.streams.iter().collect();
        streams.sort_by_key(|(peer, _)| !is_dead(peer));
        for (&peer, &(acked, taken)) in streams {
            self.streams.restore(peer, acked, taken);
        }
        for (&(to, number), body) in &recovered.items {
            let item: Item = decode(body)?;
            if to == self.me.zone {
                self.waiting.restore(number, item, now(world));
                continue;
            }
            if let Item::Entity(moved) = &item {
                self.routes.learn(moved.key, to, moved.epoch);
            }
            self.streams.restore_item(to, item);
        }
        Ok(())
    }

    /// Brings back the entities of the journal, all at once, so that they find each other.
    fn bring_back(&mut self, world: &mut World, recovered: Recovered) -> Result {
        let mut to_bring = Vec::new();
        for (key, (epoch, stored)) in recovered.entities {
            let Stored {
                body,
                outbox,
                readings,
            } = decode(&stored)?;
            let state = match body {
                Some(body) => State::Parked(Box::new((body, readings))),
                None => State::Gone,
            };
            to_bring.extend(matches!(state, State::Parked(_)).then_some(key));
            self.owned.insert(key, Owned::stored(epoch, state, outbox));
        }
        let now = self.storage.readings(world);
        let bodies = to_bring
            .iter()
            .filter_map(|key| match &self.owned.get(key)?.state {
                State::Parked(parked) => Some((&parked.0, now.since(&parked.1))),
                _ => None,
            });
        let bodies: Vec<_> = bodies.collect();
        let brought = bring_in(world, &self.declared, &bodies);
        for (key, brought) in to_bring.into_iter().zip(brought) {
            match brought {
                Ok(entity) => {
                    let owned = self.owned.remove(&key);
                    let (epoch, outbox) =
                        owned.map_or((0, Outbox::default()), |it| (it.epoch, it.outbox));
                    self.own(world, key, entity, epoch, outbox);
                    self.note_stored(key);
                }
                Err(error) => {
                    report(world, Parked { key, error });
                    world.resource_mut::<Zone>().parked.insert(key);
                }
            }
        }
        Ok(())
    }

    /// Tells the game who is here, and lets them act. All of them exist by now.
    fn finish_opening(&mut self, world: &mut World) {
        let here: Vec<_> = self
            .keys
            .iter()
            .map(|(&entity, &key)| (key, entity))
            .collect();
        for (key, entity) in here {
            if let Err(error) = self.welcome(world, key, entity, &HeldMail::default()) {
                report(world, error);
            }
        }
    }
}

impl Owned {
    fn stored(epoch: u64, state: State, outbox: Outbox) -> Self {
        Self {
            epoch,
            state,
            outbox,
            is_stored: true,
        }
    }
}

/// A zone is in no group.
#[derive(Debug)]
struct NoGroup(StableKey);

impl fmt::Display for NoGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "zone {} is in no group: start its world with `WorldGroups::start`, or call `WorldGroups::add` before \
             its first frame",
            self.0.0
        )
    }
}

impl core::error::Error for NoGroup {}

/// Entities can't be loaded, and the game has not allowed that.
#[derive(Debug)]
struct CannotLoad(usize);

impl fmt::Display for CannotLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the world ends, because this build can't load {} of its entities: see the warnings. They are safe in the \
             file. Start the build that has stored them, read them with `ZonePlugin::component_with`, or start without \
             them with `ZonePlugin::allow_parked`",
            self.0
        )
    }
}

impl core::error::Error for CannotLoad {}

/// An entity can't be loaded.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) key: StableKey,
    pub(super) error: BevyError,
}

impl fmt::Display for Parked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the entity with the stable key {} stays in the journal, because this world can't load it: {}",
            self.key.0, self.error
        )
    }
}

impl core::error::Error for Parked {}

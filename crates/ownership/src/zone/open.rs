//! Opening a zone: what the journal has comes back.

use std::collections::BTreeMap;

use bevy_due::{
    message::{MessageComponent, MessageWorldExt, Packet, RefusalReason},
    moving::MoveError,
    worlds::{
        Refused, StableKey, WorldLink,
        link::{Effect, Liveness, PeerChanged},
    },
};
use bevy_ecs::prelude::*;

use super::{
    Book, Claims, Entry, Home, Lost, Post, State, Zone, ZoneState, arrive::bring_in, now,
    store::Storage,
};
use crate::{
    changes::Outgoing,
    ids::{Life, ZoneId, random},
    item::{Item, decode},
    journal::{Rows, rows},
    outbox::Outbox,
    outboxes::Outboxes,
    report::report,
    routes::Routes,
    shard::Shard,
    stored::{Body, Stored},
    streams::Streams,
    unrouted::Unrouted,
    wire::ZONE_PACKET,
    zone_clock::Readings,
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
    allows_unloadable: bool,
) -> Result {
    let sender = world.message_sender();
    let link = world
        .get_resource::<WorldLink>()
        .ok_or_else(|| no_group(key))?;
    let (rows, dead) = shard.open_zone(key, sender.clone())?;
    let lost = Lost::new(dead);
    // Items go to zones. So other processes need no key of an entity.
    link.announce_only(key);
    let held = world.resource::<Outgoing>().clone();
    link.hold(move |effect: Effect| {
        let bytes = effect.parcel().map_or(0, |it| it.packet.payload().len());
        held.push(Box::new(move || effect.release()), bytes);
    });
    let endpoint = world.spawn((key, endpoint(), Arrivals::default())).id();

    let before = rows.get(&rows::readings(key));
    let before: Readings = before.map_or(Ok(Readings::default()), |body| decode(body))?;
    let before = before.after_a_stop();
    let me = ZoneId {
        journal: shard.journal_id(),
        zone: key,
    };
    let claims = Claims::new(shard.referee());
    let storage = Storage::new(&shard, sender.clone(), Readings::of(world, 0), before);
    let mut zone = ZoneState {
        home: Home {
            me,
            endpoint,
            shard,
            sender,
            names: random(),
        },
        book: Book::default(),
        post: Post {
            streams: Streams::new(me),
            unrouted: Unrouted::default(),
            routes: Routes::default(),
            outboxes: Outboxes::default(),
            to_tell: Vec::new(),
            failures: Vec::new(),
        },
        departures: BTreeMap::new(),
        claims,
        lost,
        storage,
    };
    world.insert_resource(Zone {
        key,
        entities: BTreeMap::new(),
        is_new: rows.is_empty(),
        on_the_way: 0,
    });
    zone.restore(world, rows)?;
    let unloadable = world.resource::<Zone>().unloadable().count();
    if unloadable > 0 && !allows_unloadable {
        return Err(BevyError::error(format!(
            "the world ends, because this build can't load {unloadable} of its entities: see the warnings. They are \
             safe in the file. Start the build that has stored them, read them with `ZonePlugin::component_with`, or \
             start without them with `ZonePlugin::allow_unloadable`"
        )));
    }
    zone.finish_opening(world);
    zone.ask_for_copies();
    zone.check_owners();
    zone.give_up_dead(world);
    world.resource_mut::<Zone>().on_the_way = zone.on_the_way();
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

impl ZoneState {
    /// Takes what the journal has. Entities come back at once, so that they find each other.
    fn restore(&mut self, world: &mut World, rows: Rows) -> Result {
        // Those that an earlier build has stored, and later ones could not load, have their own names.
        let mut groups: BTreeMap<u64, Vec<_>> = BTreeMap::new();
        for (place, body) in rows {
            match place.1 {
                rows::STREAM => {
                    let numbers = decode(&body)?;
                    self.post.streams.restore(rows::peer_at(place), numbers);
                }
                rows::ITEM => {
                    let (to, number) = rows::item_at(place);
                    self.restore_item(world, (to, number), decode(&body)?);
                }
                rows::ENTITY => {
                    let (epoch, stored): (u64, Stored) = decode(&body)?;
                    let Stored {
                        body,
                        outbox,
                        readings,
                    } = stored;
                    let life = rows::life_at(place);
                    match body {
                        Some(body) => {
                            let group = groups.entry(body.names).or_default();
                            group.push((life, epoch, outbox, body, readings));
                        }
                        None => self.bring_last_letters_back((life, epoch), outbox),
                    }
                }
                rows::READINGS | rows::DEAD => {}
                kind => {
                    let unknown = format!(
                        "the journal has a row of the unknown kind {kind}: start the release that wrote it"
                    );
                    return Err(BevyError::error(unknown));
                }
            }
        }
        for group in groups.into_values() {
            self.bring_group_back(world, group);
        }
        Ok(())
    }

    fn restore_item(&mut self, world: &World, (to, number): (StableKey, u64), item: Item) {
        if to == self.home.me.zone {
            return self.post.unrouted.restore(number, item, now(world));
        }
        if let Item::Entity(moved) = &item {
            self.post.routes.learn(moved.location(to));
        }
        self.post.streams.restore_item(to, item);
    }

    fn bring_last_letters_back(&mut self, (life, epoch): (Life, u64), outbox: Outbox) {
        self.take_outbox(life, outbox);
        self.post.outboxes.touch(life);
        if self.claims.referee.is_some() && epoch > 0 {
            self.claims.released.insert(life, epoch);
        }
    }

    fn bring_group_back(
        &mut self,
        world: &mut World,
        to_bring: Vec<(Life, u64, Outbox, Body, Readings)>,
    ) {
        let now = self.storage.readings(world);
        let parts = to_bring.into_iter();
        let parts = parts.map(|(life, epoch, outbox, body, readings)| {
            let passed = now.since(&readings);
            ((life, epoch, outbox, readings), (body, passed))
        });
        let (rest, bodies): (Vec<_>, Vec<_>) = parts.unzip();
        let brought = bring_in(world, bodies);
        for ((life, epoch, outbox, readings), brought) in rest.into_iter().zip(brought) {
            let key = life.key;
            let state = match brought {
                Ok(entity) => State::Here(entity),
                Err((body, error)) => {
                    report(world, cannot_load(key, &error));
                    State::Unloadable(Box::new((body, readings)))
                }
            };
            let is_here = matches!(state, State::Here(_));
            self.own(world, Entry::new(life, epoch, state), outbox);
            if !is_here {
                self.book.dirty.remove(&key);
            }
        }
    }

    /// Tells the game who is here. All of them exist by now.
    fn finish_opening(&mut self, world: &mut World) {
        let here: Vec<_> = world.resource::<Zone>().entities().collect();
        for (key, entity) in here {
            self.welcome(world, key, entity);
        }
    }
}

fn no_group(zone: StableKey) -> String {
    format!(
        "zone {} is in no group: start its world with `WorldGroups::start`, or call `WorldGroups::add` before its first \
         frame",
        zone.0
    )
}

/// Says that an entity can't be loaded.
pub(super) fn cannot_load(key: StableKey, error: &MoveError) -> String {
    format!(
        "the entity with the stable key {} stays in the journal, because this world can't load it: {error}",
        key.0
    )
}

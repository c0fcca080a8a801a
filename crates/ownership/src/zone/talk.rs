//! What a zone hears from others, and tells them.

use core::fmt;

use bevy_app::AppExit;
use bevy_due::{
    message::{Delivery, Packet},
    worlds::{Parcel, StableKey, WorldLink},
};
use bevy_ecs::prelude::*;

use super::{ZoneState, now, open::Arrivals, report};
use crate::{
    item::Item,
    journal::{JournalId, Record},
    streams::{self, StreamError},
    waiting::Whereabouts,
    wire::{Items, Message},
};

/// The number of entities in one question or answer, which is then far smaller than any link allows.
const KEYS_AT_ONCE: usize = 1024;

impl ZoneState {
    /// Takes what other zones have sent since the last frame.
    ///
    /// # Errors
    ///
    /// Returns an error if the game has despawned what the zone needs.
    pub(crate) fn receive(&mut self, world: &mut World) -> Result {
        let arrivals = world.get_mut::<Arrivals>(self.endpoint);
        let mut arrivals = arrivals.ok_or_else(|| BevyError::error(NoEndpoint))?;
        let Arrivals {
            packets,
            is_peer_up,
        } = core::mem::take(&mut *arrivals);
        if is_peer_up {
            self.streams.try_again();
        }
        for journal in self.shard.reclaimed_after(self.reclaims) {
            self.reclaims += 1;
            self.to_tell.push((None, Message::Dead(journal)));
            self.give_up(world, journal);
        }
        for packet in packets {
            if let Err(error) = self.hear(world, &packet) {
                if let Some(StreamError::Stale { .. }) = error.downcast_ref() {
                    world.write_message(AppExit::error());
                }
                report(world, error);
            }
        }
        self.tell_failures(world);
        self.route_waiting(world);
        Ok(())
    }

    /// Sends the items whose recipients are known by now.
    fn route_waiting(&mut self, world: &mut World) {
        let mut waiting = core::mem::take(&mut self.waiting);
        let known = waiting.take(|item| self.whereabouts(world, item), now(world));
        self.waiting = waiting;
        for item in known {
            self.route(world, item);
        }
    }

    fn whereabouts(&self, world: &World, item: &Item) -> Whereabouts {
        let Some(to) = item.recipient() else {
            return Whereabouts::Unknown;
        };
        let is_letter = matches!(item, Item::Letters(_));
        if is_letter && self.is_deaf(world, to) {
            Whereabouts::NotReady
        } else if self.is_reachable(to) || self.routes.zone_of(to).is_some() {
            Whereabouts::Known
        } else if self.owned.contains_key(&to) {
            Whereabouts::NotReady
        } else {
            Whereabouts::Unknown
        }
    }

    fn hear(&mut self, world: &mut World, packet: &Packet) -> Result {
        let message = Message::from_packet(packet)?;
        if let Message::Items(Items { from, .. }) | Message::Have { from, .. } = &message
            && self.dead.contains(&from.journal)
        {
            let dead = Message::Dead(from.journal);
            self.to_tell.push((Some(from.zone), dead));
            return Ok(());
        }
        match message {
            Message::Items(items) => self.take_items(world, items)?,
            Message::Have {
                from,
                number,
                session,
            } => {
                let answer = (number, session);
                self.streams.acknowledge(from, answer, now(world))?;
            }
            Message::Who { from, keys } => self.answer(from, &keys),
            Message::At(places) => self.learn(world, &places),
            Message::Dead(journal) => self.give_up(world, journal),
        }
        Ok(())
    }

    fn take_items(&mut self, world: &mut World, items: Items) -> Result {
        let from = items.from.zone;
        let items = self.streams.receive(items)?;
        for item in items {
            match item {
                Item::Entity(moved) => self.arrive(world, from, moved),
                item => {
                    if let Item::Letters(batch) = &item
                        && !self.owned.contains_key(&batch.from)
                    {
                        // The way back, unless a better one is known.
                        self.routes.learn(batch.from, from, 0);
                    }
                    // The sender has sent it to the wrong zone, or through this one.
                    let place = item.recipient().and_then(|to| self.routes.entry(to));
                    self.route(world, item);
                    if let Some(place) = place {
                        self.to_tell.push((Some(from), Message::At(vec![place])));
                    }
                }
            }
        }
        Ok(())
    }

    /// Tells a zone which of these entities are here.
    fn answer(&mut self, to: StableKey, keys: &[StableKey]) {
        let here = self.me.zone;
        let places = keys.iter().filter_map(|key| {
            let owned = self.owned.get(key)?;
            Some((*key, here, owned.epoch))
        });
        let places: Vec<_> = places.collect();
        if to != here {
            for places in places.chunks(KEYS_AT_ONCE) {
                self.to_tell.push((Some(to), Message::At(places.to_vec())));
            }
        }
    }

    fn learn(&mut self, world: &mut World, places: &[(StableKey, StableKey, u64)]) {
        for &(key, zone, epoch) in places {
            if zone == self.me.zone {
                // What this zone believes is older, or the entity would be here.
                self.routes.forget_up_to(key, epoch);
                continue;
            }
            if self
                .owned
                .get(&key)
                .is_some_and(|owned| owned.epoch < epoch)
            {
                self.fence(world, key, epoch);
            }
            if !self.owned.contains_key(&key) {
                self.routes.learn(key, zone, epoch);
            }
        }
    }

    /// Gives up the dead journals from which this zone has not taken back everything yet.
    pub(super) fn give_up_dead(&mut self, world: &mut World) {
        let not_given_up = |journal: &JournalId| self.streams.has_peer(*journal);
        let journals: Vec<_> = self.dead.iter().copied().filter(not_given_up).collect();
        for journal in journals {
            self.dead.remove(&journal);
            self.give_up(world, journal);
        }
    }

    /// Gives up a lost journal, once it is known what to take back.
    fn give_up(&mut self, world: &mut World, journal: JournalId) {
        if journal == self.me.journal {
            world.write_message(AppExit::error());
            return report(world, GivenUp);
        }
        if self.dead.contains(&journal) {
            return;
        }
        match self.referee.is_some() {
            true => self.ask_what_to_reclaim(journal),
            false => self.bury(world, journal, &|_| true),
        }
    }

    /// Takes back what was on its way to a lost journal, except for what somebody else owns.
    pub(super) fn bury(
        &mut self,
        world: &mut World,
        journal: JournalId,
        is_free: &dyn Fn(StableKey) -> bool,
    ) {
        if !self.dead.insert(journal) {
            return;
        }
        let mut lost = self.streams.give_up(journal);
        self.ended.append(&mut lost.ended);
        self.ended.push(Record::Dead { journal });
        self.end_lost_letters(&lost);
        for &zone in &lost.zones {
            self.routes.forget_zone(zone);
        }
        for (zone, item) in lost.items {
            match item {
                Item::Entity(moved) if !is_free(moved.key) => {}
                Item::Entity(moved) => self.take_back(world, zone, moved),
                item => self.route(world, item),
            }
        }
    }

    /// Lets the next letters go to entities of lost zones, if nobody will tell what has become of those before.
    fn end_lost_letters(&mut self, lost: &streams::GivenUp) {
        let is_here = |from, to| {
            lost.items.iter().any(|(_, item)| match item {
                Item::Letters(batch) => (batch.from, batch.to) == (from, to),
                _ => false,
            })
        };
        let is_lost = |to| {
            self.routes
                .zone_of(to)
                .is_some_and(|it| lost.zones.contains(&it))
        };
        for (&from, owned) in &mut self.owned {
            let ended = owned.outbox.on_the_way();
            let ended: Vec<_> = ended
                .filter(|&to| is_lost(to) && !is_here(from, to))
                .collect();
            for to in ended {
                owned.outbox.arrived(to);
                self.dirty.insert(from);
            }
        }
    }

    /// Sends what there is to tell. It leaves the world when the frame is durable.
    pub(super) fn tell(&mut self, world: &World) -> Result {
        let now = now(world);
        let unknown = self.waiting.keys().into_iter();
        let unknown = unknown.filter(|key| !self.owned.contains_key(key));
        let keys = self.routes.take_questions(unknown, now);
        let from = self.me.zone;
        for keys in keys.chunks(KEYS_AT_ONCE) {
            let keys = keys.to_vec();
            self.to_tell.push((None, Message::Who { from, keys }));
        }
        let zone_now = self.storage.readings(world).real();
        let messages = self.streams.messages(now, zone_now).into_iter();
        let messages = messages.map(|(to, message)| (Some(to), message));
        self.to_tell.extend(messages);
        let link = world.resource::<WorldLink>();
        for (to, message) in core::mem::take(&mut self.to_tell) {
            let to = to.map_or(Delivery::All, Delivery::To);
            let parcel = Parcel::new(link.group().to_owned(), to, message.to_packet()?);
            // The link is held, so it takes everything.
            link.post(parcel).map_err(BevyError::warning)?;
        }
        Ok(())
    }
}

/// The game has despawned the entity to which other zones send.
#[derive(Debug)]
struct NoEndpoint;

impl fmt::Display for NoEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the world ends, because the game has despawned the entity of its zone, and perhaps the observers that \
             find what to store: spare entities that you have not spawned",
        )
    }
}

impl core::error::Error for NoEndpoint {}

/// Others have given up the journal of this zone.
#[derive(Debug)]
struct GivenUp;

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the world ends, because another shard has given up its journal: what it owned may live elsewhere by \
             now. Start it with an empty journal",
        )
    }
}

impl core::error::Error for GivenUp {}

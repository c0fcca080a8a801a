//! What a zone hears from others, and tells them.

use bevy_due::{Delivery, Packet, Parcel, StableKey, WorldLink};
use bevy_ecs::prelude::*;

use super::{ZoneState, arrive::report, now, open::Arrivals};
use crate::{
    crash_point::{crash_point, crash_point_after_commit},
    item::Item,
    journal::{JournalId, Record},
    wire::{Items, Message},
};

/// Gives up a lost journal in this zone, and tells the others.
pub(crate) fn reclaim(world: &mut World, journal: JournalId) {
    if world.contains_resource::<ZoneState>() {
        world.resource_scope(|world, mut zone: Mut<ZoneState>| {
            zone.to_tell.push((None, Message::Dead(journal)));
            zone.bury(world, journal);
        });
    }
}

impl ZoneState {
    /// Takes what other zones have sent since the last frame.
    pub(crate) fn receive(&mut self, world: &mut World) {
        let Some(mut arrivals) = world.get_mut::<Arrivals>(self.endpoint) else {
            return;
        };
        for packet in core::mem::take(&mut arrivals.0) {
            if let Err(error) = self.hear(world, &packet) {
                report(world, error);
            }
        }
    }

    fn hear(&mut self, world: &mut World, packet: &Packet) -> Result {
        match Message::from_packet(packet)? {
            Message::Items(items) => self.take_items(world, items)?,
            Message::Have { from, number, last } => {
                crash_point!("have.received");
                self.streams.acknowledge((from, number, last), now(world))?;
                crash_point!("have.noted");
            }
            Message::Who { from, keys } => self.answer(from, &keys),
            Message::At(places) => self.learn(world, &places),
            Message::Dead(journal) => self.bury(world, journal),
        }
        Ok(())
    }

    fn take_items(&mut self, world: &mut World, items: Items) -> Result {
        let from = items.from.zone;
        if self.dead.contains(&items.from.journal) {
            self.to_tell
                .push((Some(from), Message::Dead(items.from.journal)));
            return Ok(());
        }
        crash_point!("items.received");
        let items = self.streams.receive(items, now(world))?;
        crash_point!("items.numbered");
        for item in items {
            match item {
                Item::Entity(moved) => self.arrive(world, from, moved),
                item => {
                    // The sender has sent it to the wrong zone, or through this one.
                    let place = item.recipient().and_then(|to| self.routes.entry(to));
                    self.route(world, item);
                    if let Some(place) = place.filter(|&(_, zone, _)| zone != from) {
                        self.to_tell.push((Some(from), Message::At(vec![place])));
                    }
                }
            }
        }
        crash_point!("items.taken");
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
        if !places.is_empty() && to != here {
            self.to_tell.push((Some(to), Message::At(places)));
        }
    }

    fn learn(&mut self, world: &mut World, places: &[(StableKey, StableKey, u64)]) {
        for &(key, zone, epoch) in places {
            if zone == self.me.zone {
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

    /// Gives up a lost journal: takes back what was on its way there.
    fn bury(&mut self, world: &mut World, journal: JournalId) {
        if journal == self.me.journal || !self.dead.insert(journal) {
            return;
        }
        let lost = self.streams.give_up(journal);
        self.ended.extend(lost.ended);
        self.ended.push(Record::Dead { journal });
        for zone in lost.zones {
            self.routes.forget_zone(zone);
        }
        for item in lost.items {
            match item {
                Item::Entity(moved) => self.take_back(world, moved),
                item => self.route(world, item),
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
        if !keys.is_empty() {
            self.to_tell.push((None, Message::Who { from, keys }));
        }
        let messages = self.streams.messages(now).into_iter();
        let messages = messages.map(|(to, message)| (Some(to), message));
        self.to_tell.extend(messages);
        let link = world.resource::<WorldLink>();
        for (to, message) in core::mem::take(&mut self.to_tell) {
            mark(world, &message, false);
            let to = to.map_or(Delivery::All, Delivery::To);
            let parcel = Parcel::new(link.group().to_owned(), to, message.to_packet()?);
            // The link is held, so it takes everything.
            link.post(parcel).map_err(BevyError::warning)?;
            mark(world, &message, true);
        }
        Ok(())
    }
}

/// Lets tests kill the process before and after it sends a message.
fn mark(world: &World, message: &Message, is_sent: bool) {
    match (message, is_sent) {
        (Message::Items(_), false) => crash_point_after_commit!(world, "items.committed"),
        (Message::Items(_), true) => crash_point_after_commit!(world, "items.sent"),
        (Message::Have { .. }, false) => crash_point_after_commit!(world, "have.committed"),
        (Message::Have { .. }, true) => crash_point_after_commit!(world, "have.sent"),
        _ => {}
    }
}

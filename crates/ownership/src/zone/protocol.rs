//! What a zone hears from others, and tells them.

use bevy_app::AppExit;
use bevy_due::{
    message::{Delivery, Packet},
    worlds::{Parcel, StableKey, WorldLink},
};
use bevy_ecs::prelude::*;

use super::{ZoneState, now, open::Arrivals};
use crate::{
    ids::{JournalId, Life, Recipient},
    item::Item,
    report::report,
    routes::Location,
    streams::StreamError,
    unrouted::Whereabouts,
    wire::{Items, Message},
};

/// The number of entities or batches in one question or answer, which is then far smaller than any link allows.
pub(super) const AT_ONCE: usize = 1024;

/// The game has despawned the entity to which other zones send.
const NO_ENDPOINT: &str = "the world ends, because the game has despawned the entity of its zone, and perhaps the \
                           observers that find what to store: spare entities that you have not spawned";

impl ZoneState {
    /// Takes what other zones have sent since the last frame.
    ///
    /// # Errors
    ///
    /// Returns an error if the game has despawned what the zone needs.
    pub(crate) fn receive(&mut self, world: &mut World) -> Result {
        let arrivals = world.get_mut::<Arrivals>(self.home.endpoint);
        let mut arrivals = arrivals.ok_or_else(|| BevyError::error(NO_ENDPOINT))?;
        let Arrivals {
            packets,
            is_peer_up,
        } = core::mem::take(&mut *arrivals);
        if is_peer_up {
            self.post.streams.try_again();
            self.post.routes.ask_again();
            self.ask_for_copies();
        }
        for journal in self.home.shard.reclaimed_after(self.lost.reclaims) {
            self.lost.reclaims += 1;
            let session = None;
            let dead = Message::Dead { journal, session };
            self.post.to_tell.push((None, dead));
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
        self.claim_again(world);
        self.search_for_letters(now(world));
        self.route_waiting(world);
        Ok(())
    }

    /// Asks who has the entities of this zone, if it was made of a copy.
    pub(super) fn ask_for_copies(&mut self) {
        if !self.is_restored() {
            return;
        }
        let lives = self.book.owned.values();
        let lives = lives.map(|owned| Recipient::Life(owned.life));
        self.ask_all_zones(&lives.collect::<Vec<_>>());
    }

    fn ask_all_zones(&mut self, recipients: &[Recipient]) {
        let from = self.home.me.zone;
        for recipients in recipients.chunks(AT_ONCE) {
            let recipients = recipients.to_vec();
            let locate = Message::Locate { from, recipients };
            self.post.to_tell.push((None, locate));
        }
    }

    /// Sends the items whose recipients are known by now.
    fn route_waiting(&mut self, world: &mut World) {
        let may_end_receipts = self.may_end_receipts(world);
        let mut waiting = core::mem::take(&mut self.post.unrouted);
        let (ready, unknown) = waiting.take(
            |item| self.whereabouts(world, item),
            may_end_receipts,
            now(world),
        );
        self.post.unrouted = waiting;
        for item in ready {
            self.route(world, item);
        }
        for item in unknown {
            match item {
                Item::Letters(batch) => self.route(world, Item::Receipt(batch)),
                Item::Receipt(batch) => self.hand_back(world, batch),
                Item::Entity(_) => {}
            }
        }
    }

    fn whereabouts(&self, world: &World, item: &Item) -> Whereabouts {
        let Some(to) = item.recipient() else {
            return Whereabouts::Unknown;
        };
        if matches!(item, Item::Letters(_)) && self.is_deaf(world, to.key()) {
            Whereabouts::NotReady
        } else if self.is_reachable(to) || self.post.locate(to).is_some() {
            Whereabouts::Known
        } else if self.owned(to).is_some()
            || matches!(to, Recipient::Life(life) if self.belongs_to_another(life))
        {
            Whereabouts::NotReady
        } else {
            Whereabouts::Unknown
        }
    }

    fn hear(&mut self, world: &mut World, packet: &Packet) -> Result {
        let message = Message::from_packet(packet)?;
        if let Message::Items(Items { from, .. }) | Message::Ack { from, .. } = &message
            && self.lost.dead.contains(&from.journal)
        {
            let session = match &message {
                Message::Items(items) => Some(items.session),
                _ => self.post.streams.session_of(from.zone),
            };
            let journal = from.journal;
            let dead = Message::Dead { journal, session };
            self.post.to_tell.push((Some(from.zone), dead));
            return Ok(());
        }
        match message {
            Message::Items(items) => self.take_items(world, items)?,
            Message::Ack {
                from,
                number,
                session,
            } => {
                let answer = (number, session);
                self.post.streams.acknowledge(from, answer, now(world))?;
            }
            Message::Locate { from, recipients } => self.answer(from, &recipients),
            Message::Located(locations) => self.learn(world, &locations),
            Message::FindLetters {
                from,
                search,
                batches,
                dead,
            } => {
                self.hear_of_dead(world, dead, None);
                self.answer_search(from, search, batches);
            }
            Message::FoundLetters {
                from,
                search,
                batches,
            } => self.lost.note_answer(from, search, &batches),
            Message::Dead { journal, session } => self.hear_of_dead(world, [journal], session),
        }
        Ok(())
    }

    /// Gives up the journals that another zone has given up. `session` is that of this zone, if the other one knows it.
    fn hear_of_dead(
        &mut self,
        world: &mut World,
        dead: impl IntoIterator<Item = JournalId>,
        session: Option<u64>,
    ) {
        for journal in dead {
            if journal == self.home.me.journal && !self.post.streams.is_session(session) {
                // Whoever has given this journal up says it again when it is asked.
                self.post.streams.ask_all();
            } else {
                self.give_up(world, journal);
            }
        }
    }

    fn take_items(&mut self, world: &mut World, items: Items) -> Result {
        self.hear_of_dead(world, items.dead.iter().copied(), items.to_session);
        let from = items.from.zone;
        let items = self.post.streams.receive(items)?;
        for item in items {
            match item {
                Item::Entity(moved) => self.arrive(world, from, moved),
                item => {
                    if let Item::Letters(batch) = &item
                        && self.owned(Recipient::Life(batch.from)).is_none()
                    {
                        // The way back, unless a better one is known.
                        let guess = Location::guess(batch.from, from);
                        self.post.routes.learn(guess);
                    }
                    let to = item.recipient();
                    if let Some(location) = to.and_then(|to| self.post.routes.locate(to)) {
                        // What has only been guessed may lead in a circle.
                        self.post.routes.forget_up_to(location.life, 0);
                    }
                    // The sender has sent it to the wrong zone, or through this one.
                    let location = to.and_then(|to| self.post.locate(to));
                    self.route(world, item);
                    if let Some(location) = location {
                        self.tell_where(Some(from), location);
                    }
                }
            }
        }
        Ok(())
    }

    /// Tells a zone which of these recipients are here, or on their way from here.
    fn answer(&mut self, to: StableKey, recipients: &[Recipient]) {
        let locations = recipients.iter().filter_map(|&recipient| {
            if let Some(owned) = self.owned(recipient) {
                return Some(self.here(owned.life, owned.epoch));
            }
            let belonging = self.book.belonging.get(&recipient.key());
            match (recipient, belonging) {
                (Recipient::Life(life), Some(&(_, it, epoch))) if it == life => {
                    Some(self.here(life, epoch))
                }
                // It has no later owner.
                (Recipient::Life(life), _) if self.post.outboxes.contains(life) => {
                    Some(self.here(life, u64::MAX))
                }
                _ => self.post.streams.leaving(recipient),
            }
        });
        let locations: Vec<_> = locations.collect();
        if to != self.home.me.zone {
            for locations in locations.chunks(AT_ONCE) {
                let located = Message::Located(locations.to_vec());
                self.post.to_tell.push((Some(to), located));
            }
        }
    }

    fn learn(&mut self, world: &mut World, locations: &[Location]) {
        let here = self.home.me.zone;
        let coming = locations.iter().filter(|it| it.zone == here);
        let coming = coming.map(|it| it.life.key).collect();
        self.post.unrouted.expect(&coming, now(world));
        for &location in locations {
            let Location { life, zone, epoch } = location;
            if zone == here {
                // What this zone believes is older, or the entity would be here. It may be on its way.
                self.post.routes.forget_up_to(life, epoch);
                continue;
            }
            let owned = self.owned(Recipient::Life(life));
            if owned.is_some_and(|owned| owned.epoch < epoch) {
                self.fence(world, life, epoch);
            }
            if !self.book.owned.contains_key(&life.key) {
                let before = self.post.routes.learn(location);
                self.tell_of_later_owner(before, location);
            }
        }
    }

    /// Returns that an entity is in this zone.
    pub(super) fn here(&self, life: Life, epoch: u64) -> Location {
        let zone = self.home.me.zone;
        Location { life, zone, epoch }
    }

    /// Tells a zone, or all, where an entity is.
    pub(super) fn tell_where(&mut self, to: Option<StableKey>, location: Location) {
        let located = Message::Located(vec![location]);
        self.post.to_tell.push((to, located));
    }

    /// If this shard is a restored copy, tells the zone that took one of its entities about a later owner.
    fn tell_of_later_owner(&mut self, before: Option<Location>, location: Location) {
        let before = before.filter(|it| it.life == location.life && it.zone != location.zone);
        if let Some(before) = before
            && self.is_restored()
        {
            self.tell_where(Some(before.zone), location);
        }
    }

    /// Sends what there is to tell. It leaves the world when the frame is durable.
    pub(super) fn tell(&mut self, world: &World) -> Result {
        let now = now(world);
        let mut unknown = self.post.unrouted.recipients();
        unknown.retain(|&it| self.owned(it).is_none());
        let unknown = self.post.routes.take_questions(&unknown, now);
        self.ask_all_zones(&unknown);
        let zone_now = self.storage.readings(world).real();
        let dead = &self.lost.dead;
        let messages = self.post.streams.messages(now, zone_now, dead).into_iter();
        let messages = messages.map(|(to, message)| (Some(to), message));
        self.post.to_tell.extend(messages);
        let link = world.resource::<WorldLink>();
        for (to, message) in core::mem::take(&mut self.post.to_tell) {
            let to = to.map_or(Delivery::All, Delivery::To);
            let parcel = Parcel::new(link.group().to_owned(), to, message.to_packet()?);
            // The link is held, so it takes everything.
            link.post(parcel).map_err(BevyError::warning)?;
        }
        Ok(())
    }
}

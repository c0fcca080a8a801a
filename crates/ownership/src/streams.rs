//! The numbered items between this zone and the others.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use bevy_due::worlds::StableKey;
use bevy_ecs::error::BevyError;
use thiserror::Error;

use crate::{
    ids::{JournalId, Recipient, ZoneId, random},
    item::{Item, MovedOut, encode},
    journal::{Change, rows},
    routes::Location,
    unrouted::RETURN_AFTER,
    wire::{Items, Message},
};

/// How long a zone waits for an acknowledgement before it sends again.
const RETRY: Duration = Duration::from_millis(250);
/// The longest time between two attempts to reach a zone that does not answer.
const LAST_RETRY: Duration = Duration::from_secs(2);
/// The items that are on their way at once have about this many bytes.
const WINDOW: usize = 256 << 10;

/// The streams between this zone and the others.
///
/// The items of a stream are numbered from 1 on. A zone takes the next number only, and acknowledges it when it
/// is durable. So each item is taken exactly once and in order, whatever the way between does.
///
/// A zone sends nothing before the other has answered in this session. So a zone that was started from an old
/// copy of its journal learns of it before it uses a number again.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) me: ZoneId,
    /// A random number of this start of the zone.
    session: u64,
    streams: BTreeMap<StableKey, Stream>,
    /// The entities among the items, and where they go.
    leaving: HashMap<StableKey, Location>,
}

/// The items to another zone, and how far both have come.
#[derive(Debug, Default)]
struct Stream {
    /// The other zone, from the first contact on.
    peer: Option<ZoneId>,
    /// The items behind `acked`.
    items: VecDeque<Item>,
    acked: u64,
    taken: u64,
    /// What the journal has of this.
    stored: Stored,
    /// What is under way.
    flight: Flight,
}

/// What the journal has of a stream.
#[derive(Debug, Default)]
struct Stored {
    /// The number of the last item.
    last: u64,
    /// The numbers of both directions, if the peer is known.
    numbers: Option<(u64, u64)>,
}

/// What has been sent since the last attempt, and when.
#[derive(Debug, Default)]
struct Flight {
    sent: u64,
    /// The last number that the peer can have.
    most: u64,
    /// When something was sent last.
    since: Option<Duration>,
    /// The attempts without an answer.
    tries: u32,
    /// When the peer has answered last.
    heard: Option<Duration>,
    is_asked: bool,
    /// The session of the peer, if it has told.
    peer_session: Option<u64>,
    /// Whether the peer waits for an answer.
    must_tell: bool,
}

impl Flight {
    /// Restarts the back-off. The next attempt is a while after `since`, or now.
    fn begin(&mut self, since: Option<Duration>) {
        (self.since, self.tries) = (since, 0);
    }

    /// Returns `true` if the peer has not answered in time.
    fn is_late(&self, now: Duration) -> bool {
        let wait = LAST_RETRY.min(RETRY * (1 << self.tries.min(8)));
        self.since
            .is_none_or(|since| now.saturating_sub(since) >= wait)
    }
}

impl Stream {
    /// Returns the number of the last item.
    fn last(&self) -> u64 {
        self.acked + self.items.len() as u64
    }
}

/// What was on its way to zones whose journal is lost.
#[derive(Default)]
pub(crate) struct GivenUp {
    pub(crate) zones: Vec<StableKey>,
    /// With the zones to which they went.
    pub(crate) items: Vec<(StableKey, Item)>,
    /// What ends the streams and their items.
    pub(crate) ended: Vec<Change>,
}

/// Why the numbers of a zone cannot be right.
#[derive(Clone, Debug, PartialEq, Error)]
pub(crate) enum StreamError {
    /// The zone has another journal than before.
    #[error(
        "zone {} has the shard {} now, and had {}: start it with its old file, or, if that is lost, call \
         `Shard::reclaim({})`",
        found.zone.0, found.journal, known.journal, known.journal
    )]
    OtherJournal { known: ZoneId, found: ZoneId },
    /// The journal of this zone is older than what the other zone has.
    #[error(
        "the file of this zone is older than what zone {} has from it: start the zone with its latest file. If that is \
         lost, make a new shard of this one with `Shard::restore`, and call `Shard::reclaim` in the other shards",
        peer.zone.0
    )]
    Stale { peer: ZoneId },
}

impl Streams {
    pub(crate) fn new(me: ZoneId) -> Self {
        Self {
            me,
            session: random(),
            streams: BTreeMap::new(),
            leaving: HashMap::new(),
        }
    }

    /// Adds what the journal has of a stream.
    pub(crate) fn restore(&mut self, peer: ZoneId, numbers: (u64, u64)) {
        let stream = self.streams.entry(peer.zone).or_default();
        stream.peer = Some(peer);
        (stream.acked, stream.taken) = numbers;
        stream.stored.numbers = Some(numbers);
        stream.stored.last = stream.acked;
        stream.flight.most = stream.acked;
    }

    /// Adds an item that the journal has. They come in order, after [`restore`](Self::restore).
    pub(crate) fn restore_item(&mut self, to: StableKey, item: Item) {
        self.push(to, item);
        let stream = self.streams.entry(to).or_default();
        stream.stored.last = stream.last();
        stream.flight.most = stream.last();
    }

    /// Adds an item.
    pub(crate) fn push(&mut self, to: StableKey, item: Item) {
        if let Item::Entity(moved) = &item {
            self.leaving.insert(moved.life.key, moved.location(to));
        }
        self.streams.entry(to).or_default().items.push_back(item);
    }

    /// Returns where an entity goes that is on its way from this zone.
    pub(crate) fn leaving(&self, recipient: Recipient) -> Option<Location> {
        let location = self.leaving.get(&recipient.key()).copied();
        location.filter(|location| recipient.is(location.life))
    }

    /// Notes that items have arrived, or are lost.
    fn end<'a>(
        leaving: &mut HashMap<StableKey, Location>,
        items: impl IntoIterator<Item = &'a Item>,
    ) {
        for item in items {
            if let Item::Entity(MovedOut { life, epoch, .. }) = item
                && let Some(location) = leaving.get(&life.key)
                && (location.life, location.epoch) == (*life, *epoch)
            {
                leaving.remove(&life.key);
            }
        }
    }

    /// Returns the items that were not acknowledged.
    pub(crate) fn items(&self) -> impl Iterator<Item = &Item> {
        self.streams.values().flat_map(|stream| &stream.items)
    }

    /// Returns the number of items that were not acknowledged.
    pub(crate) fn len(&self) -> usize {
        self.streams.values().map(|stream| stream.items.len()).sum()
    }

    /// Returns `true` if a zone was heard within the last second. Otherwise asks it.
    pub(crate) fn is_near(&mut self, zone: StableKey, now: Duration) -> bool {
        let Flight {
            heard, is_asked, ..
        } = &mut self.streams.entry(zone).or_default().flight;
        let is_near = heard.is_some_and(|at| now.saturating_sub(at) < Duration::from_secs(1));
        *is_asked |= !is_near;
        is_near
    }

    /// Returns `true` if all zones that have ever answered have done so within the last 30 seconds. Asks the others.
    pub(crate) fn have_all_answered(&mut self, now: Duration) -> bool {
        let mut is_silent = false;
        for stream in self.streams.values_mut() {
            let heard = stream.flight.heard;
            let silence = heard.map_or(Duration::MAX, |at| now.saturating_sub(at));
            stream.flight.is_asked |= stream.peer.is_some() && silence >= RETURN_AFTER / 3;
            is_silent |= stream.peer.is_some() && silence >= RETURN_AFTER;
        }
        !is_silent
    }

    /// Takes the new items from a zone.
    pub(crate) fn receive(&mut self, items: Items) -> Result<Vec<Item>, StreamError> {
        let Items {
            from,
            session,
            to_session,
            first,
            acked,
            items,
            ..
        } = items;
        let knows_session = to_session == Some(self.session);
        let stream = self.known(from)?;
        stream.flight.peer_session = Some(session);
        if acked > stream.taken {
            if knows_session {
                return Err(StreamError::Stale { peer: from });
            }
            // Anybody could say that. The other zone is asked, and gets no answer before it has said it again.
            stream.flight.is_asked = true;
            return Ok(Vec::new());
        }
        stream.flight.must_tell = true;
        let Some(known) = (stream.taken + 1).checked_sub(first) else {
            return Ok(Vec::new());
        };
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        let new: Vec<_> = items.into_iter().skip(known).collect();
        stream.taken += new.len() as u64;
        Ok(new)
    }

    /// Notes that a zone has the items up to `number`, if it answers this session.
    pub(crate) fn acknowledge(
        &mut self,
        from: ZoneId,
        (number, session): (u64, u64),
        now: Duration,
    ) -> Result<(), StreamError> {
        if session != self.session {
            return Ok(());
        }
        let stream = self.known(from)?;
        if number > stream.flight.most {
            return Err(StreamError::Stale { peer: from });
        }
        let flight = &mut stream.flight;
        if flight.heard.replace(now).is_none() {
            flight.begin(None);
        }
        let new = number.saturating_sub(stream.acked);
        if new > 0 {
            stream.acked = number;
            flight.begin(Some(now));
            let taken: Vec<_> = stream.items.drain(..new as usize).collect();
            Self::end(&mut self.leaving, &taken);
        }
        Ok(())
    }

    /// Notes which journal a zone has. Fails if it had another one before.
    pub(crate) fn meet(&mut self, zone: ZoneId) -> Result<(), StreamError> {
        self.known(zone).map(drop)
    }

    /// Returns the stream of a zone, with the journal that it had before.
    fn known(&mut self, from: ZoneId) -> Result<&mut Stream, StreamError> {
        let stream = self.streams.entry(from.zone).or_default();
        let known = *stream.peer.get_or_insert(from);
        if known != from {
            return Err(StreamError::OtherJournal { known, found: from });
        }
        Ok(stream)
    }

    /// Returns the entities that are on their way to a journal, with their zones.
    pub(crate) fn entities_to(
        &self,
        journal: JournalId,
    ) -> impl Iterator<Item = (ZoneId, &MovedOut)> {
        let streams = self.streams.values();
        let streams = streams.filter_map(move |stream| {
            let peer = stream.peer.filter(|peer| peer.journal == journal)?;
            Some((peer, stream))
        });
        streams.flat_map(|(peer, stream)| {
            stream.items.iter().filter_map(move |item| match item {
                Item::Entity(moved) => Some((peer, moved)),
                _ => None,
            })
        })
    }

    /// Returns the zones with which this one has spoken.
    pub(crate) fn peers(&self) -> impl Iterator<Item = ZoneId> {
        self.streams.values().filter_map(|stream| stream.peer)
    }

    /// Forgets a zone that has never answered, if nothing is on its way there.
    pub(crate) fn forget_stranger(&mut self, zone: StableKey) {
        let is_stranger = |it: &Stream| it.peer.is_none() && it.items.is_empty();
        if self.streams.get(&zone).is_some_and(is_stranger) {
            self.streams.remove(&zone);
        }
    }

    /// Returns the session of a zone, if it has told.
    pub(crate) fn session_of(&self, zone: StableKey) -> Option<u64> {
        self.streams.get(&zone)?.flight.peer_session
    }

    /// Returns `true` if a number is that of this start of the zone. Only zones with which it has spoken know it.
    pub(crate) fn is_session(&self, number: Option<u64>) -> bool {
        number == Some(self.session)
    }

    /// Asks all zones how far they are.
    pub(crate) fn ask_all(&mut self) {
        self.try_again();
        for stream in self.streams.values_mut() {
            stream.flight.is_asked = true;
        }
    }

    /// Returns the zone with a key, if it has answered ever.
    pub(crate) fn id_of(&self, zone: StableKey) -> Option<ZoneId> {
        self.streams.get(&zone)?.peer
    }

    /// Forgets the zones of a lost journal, and returns what was on its way there.
    pub(crate) fn give_up(&mut self, lost: JournalId) -> GivenUp {
        let from = self.me.zone;
        let mut given_up = GivenUp::default();
        let is_lost = |stream: &Stream| stream.peer.is_some_and(|peer| peer.journal == lost);
        for (to, stream) in self.streams.extract_if(.., |_, stream| is_lost(stream)) {
            let items = rows::item(from, to, 0)..=rows::item(from, to, u64::MAX);
            given_up.ended.push(Change::Remove(items));
            let stored = stream.peer.map(|peer| rows::stream(from, peer));
            given_up.ended.extend(stored.map(Change::remove));
            Self::end(&mut self.leaving, &stream.items);
            let items = stream.items.into_iter().map(|item| (to, item));
            given_up.items.extend(items);
            given_up.zones.push(to);
        }
        given_up
    }

    /// Sends again at once what was not acknowledged: a zone may be back.
    pub(crate) fn try_again(&mut self) {
        for stream in self.streams.values_mut() {
            stream.flight.begin(None);
        }
    }

    /// Returns what has changed since the last call, for the journal.
    pub(crate) fn changes(&mut self) -> Result<Vec<Change>, BevyError> {
        let mut changes = Vec::new();
        let from = self.me.zone;
        for (&to, stream) in &mut self.streams {
            let last = stream.last();
            let stored = &mut stream.stored;
            for number in stored.last.max(stream.acked) + 1..=last {
                let item = &stream.items[(number - stream.acked - 1) as usize];
                changes.push(Change::Put(rows::item(from, to, number), encode(item)?));
            }
            stored.last = last;
            let numbers = (stream.acked, stream.taken);
            if let Some(peer) = stream.peer
                && stored.numbers.replace(numbers) != Some(numbers)
            {
                changes.push(Change::Put(rows::stream(from, peer), encode(&numbers)?));
                let taken = rows::item(from, to, 0)..=rows::item(from, to, stream.acked);
                changes.push(Change::Remove(taken));
            }
        }
        Ok(changes)
    }

    /// Returns what to tell the other zones now, once everything so far is durable. `zone_now` is what the clock of the
    /// zone shows, and `dead` are the journals that it has given up.
    pub(crate) fn messages(
        &mut self,
        now: Duration,
        zone_now: Duration,
        dead: &BTreeSet<JournalId>,
    ) -> Vec<(StableKey, Message)> {
        let from = self.me;
        let mut messages = Vec::new();
        for (&to, stream) in &mut self.streams {
            let must_tell = core::mem::take(&mut stream.flight.must_tell);
            if let Some(session) = stream.flight.peer_session.filter(|_| must_tell) {
                let number = stream.taken;
                let ack = Message::Ack {
                    from,
                    number,
                    session,
                };
                messages.push((to, ack));
            }
            if let Some((first, mut items)) = stream.next_items(now) {
                for item in &mut items {
                    if let Item::Entity(moved) = item {
                        moved.sent_at(zone_now);
                    }
                }
                let items = Items {
                    from,
                    session: self.session,
                    to_session: stream.flight.peer_session,
                    first,
                    acked: stream.acked,
                    items,
                    dead: dead.clone(),
                };
                messages.push((to, Message::Items(items)));
            }
        }
        messages
    }
}

impl Stream {
    /// Returns the next items to send, or again the first ones if the peer has not answered in time. Until
    /// it has answered once, there are none, and the peer is only asked.
    fn next_items(&mut self, now: Duration) -> Option<(u64, Vec<Item>)> {
        let flight = &mut self.flight;
        let is_late = flight.is_late(now);
        flight.sent = flight.sent.max(self.acked);
        if is_late && flight.sent > self.acked {
            flight.sent = self.acked;
            flight.tries += 1;
        }
        let on_the_way = (flight.sent - self.acked) as usize;
        let waits = on_the_way < self.items.len();
        let items = match flight.heard {
            Some(_) => self.window(on_the_way),
            None => Vec::new(),
        };
        let flight = &mut self.flight;
        let asks = is_late && (flight.is_asked || waits);
        if items.is_empty() && !asks {
            return None;
        }
        if items.is_empty() {
            flight.tries += 1;
        }
        let first = flight.sent + 1;
        flight.sent += items.len() as u64;
        flight.most = flight.most.max(flight.sent);
        // Later items must not put off the next attempt with those before.
        if on_the_way == 0 {
            flight.since = Some(now);
        }
        flight.is_asked = false;
        Some((first, items))
    }

    /// Returns the items behind those that are on the way, as many as may be.
    fn window(&self, on_the_way: usize) -> Vec<Item> {
        let mut room = WINDOW.saturating_sub(bytes(self.items.range(..on_the_way)));
        let new = self.items.range(on_the_way..).take_while(|item| {
            let size = size(item);
            // A large item goes alone.
            let fits = size <= room || on_the_way == 0 && room == WINDOW;
            room = room.saturating_sub(size);
            fits
        });
        new.cloned().collect()
    }
}

fn bytes<'a>(items: impl IntoIterator<Item = &'a Item>) -> usize {
    items.into_iter().map(size).sum()
}

/// Returns about how many bytes an item has.
fn size(item: &Item) -> usize {
    let content = match item {
        Item::Entity(moved) => moved.stored.len(),
        Item::Letters(batch) | Item::Receipt(batch) => {
            let letters = batch.letters.iter();
            letters.map(|letter| letter.payload().len() + 8).sum()
        }
    };
    content + 32
}

#[cfg(test)]
mod tests;

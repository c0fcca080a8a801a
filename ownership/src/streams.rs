//! The numbered items between this zone and the others.

use core::{fmt, time::Duration};
use std::collections::{BTreeMap, VecDeque};

use bevy_due::StableKey;
use bevy_ecs::error::BevyError;

use crate::{
    item::{Item, encode},
    journal::{JournalId, Place, Record},
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
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) me: Place,
    streams: BTreeMap<StableKey, Stream>,
}

/// The items to another zone, and how far both have come.
#[derive(Debug)]
struct Stream {
    /// The other zone, from the first contact on.
    peer: Option<Place>,
    /// The items behind `acked`, encoded, with what the journal has of them.
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
#[derive(Debug)]
struct Flight {
    sent: u64,
    since: Duration,
    retry: Duration,
    heard: Option<Duration>,
    is_asked: bool,
    must_tell: bool,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            peer: None,
            items: VecDeque::new(),
            acked: 0,
            taken: 0,
            stored: Stored::default(),
            flight: Flight {
                sent: 0,
                since: Duration::ZERO,
                retry: RETRY,
                heard: None,
                is_asked: false,
                must_tell: false,
            },
        }
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
    pub(crate) items: Vec<Item>,
    /// The records that end the items.
    pub(crate) ended: Vec<Record>,
}

/// Why the numbers of a zone cannot be right.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StreamError {
    /// The zone has another journal than before.
    OtherJournal { known: Place, found: Place },
    /// The journal of the other zone is older than what this zone has.
    PeerIsStale { peer: Place },
    /// The journal of this zone is older than what the other zone has.
    Stale { peer: Place },
}

impl Streams {
    pub(crate) fn new(me: Place) -> Self {
        let streams = BTreeMap::new();
        Self { me, streams }
    }

    /// Adds what the journal has of a stream.
    pub(crate) fn restore(&mut self, peer: Place, acked: u64, taken: u64) {
        let stream = self.streams.entry(peer.zone).or_default();
        stream.peer = Some(peer);
        (stream.acked, stream.taken) = (acked, taken);
        stream.stored.numbers = Some((acked, taken));
        (stream.stored.last, stream.flight.sent) = (acked, acked);
    }

    /// Adds an item that the journal has. They come in order, after [`restore`](Self::restore).
    pub(crate) fn restore_item(&mut self, to: StableKey, item: Item) {
        let stream = self.streams.entry(to).or_default();
        stream.items.push_back(item);
        stream.stored.last = stream.last();
    }

    /// Adds an item.
    pub(crate) fn push(&mut self, to: StableKey, item: Item) {
        self.streams.entry(to).or_default().items.push_back(item);
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

    /// Takes the new items from a zone.
    pub(crate) fn receive(
        &mut self,
        items: Items,
        now: Duration,
    ) -> Result<Vec<Item>, StreamError> {
        let Items {
            from,
            acked,
            first,
            last,
            ..
        } = items;
        let stream = self.known(from, now)?;
        if acked > stream.taken {
            // Without an answer, the other zone sends nothing more here.
            return Err(StreamError::Stale { peer: from });
        }
        stream.flight.must_tell = true;
        if last < stream.taken {
            return Err(StreamError::PeerIsStale { peer: from });
        }
        let next = stream.taken + 1;
        let Some(known) = next.checked_sub(first) else {
            return Ok(Vec::new());
        };
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        let new: Vec<_> = items.items.into_iter().skip(known).collect();
        stream.taken += new.len() as u64;
        Ok(new)
    }

    /// Notes that a zone has the items up to `number`, and has sent those up to `last`.
    pub(crate) fn acknowledge(
        &mut self,
        (from, number, last): (Place, u64, u64),
        now: Duration,
    ) -> Result<(), StreamError> {
        let stream = self.known(from, now)?;
        if number > stream.last() {
            return Err(StreamError::Stale { peer: from });
        }
        if last < stream.taken {
            return Err(StreamError::PeerIsStale { peer: from });
        }
        let new = number.saturating_sub(stream.acked);
        if new > 0 {
            stream.items.drain(..new as usize);
            stream.acked = number;
            stream.flight.retry = RETRY;
            stream.flight.since = now;
        }
        Ok(())
    }

    /// Returns the stream of a zone, with the journal that it had before.
    fn known(&mut self, from: Place, now: Duration) -> Result<&mut Stream, StreamError> {
        let stream = self.streams.entry(from.zone).or_default();
        let known = *stream.peer.get_or_insert(from);
        if known != from {
            return Err(StreamError::OtherJournal { known, found: from });
        }
        stream.flight.heard = Some(now);
        Ok(stream)
    }

    /// Forgets the zones of a lost journal, and returns what was on its way there.
    pub(crate) fn give_up(&mut self, lost: JournalId) -> GivenUp {
        let from = self.me.zone;
        let mut given_up = GivenUp::default();
        let is_lost = |stream: &Stream| stream.peer.is_some_and(|peer| peer.journal == lost);
        for (to, stream) in self.streams.extract_if(.., |_, stream| is_lost(stream)) {
            let stored = stream.acked + 1..=stream.stored.last;
            let ended = stored.map(|number| Record::Done { from, to, number });
            given_up.ended.extend(ended);
            given_up.items.extend(stream.items);
            given_up.zones.push(to);
        }
        given_up
    }

    /// Returns what has changed since the last call, for the journal.
    pub(crate) fn records(&mut self) -> Result<Vec<Record>, BevyError> {
        let mut records = Vec::new();
        let from = self.me.zone;
        for (&to, stream) in &mut self.streams {
            let stored = &mut stream.stored;
            let last = stream.acked + stream.items.len() as u64;
            for number in stored.last.max(stream.acked) + 1..=last {
                let item = &stream.items[(number - stream.acked - 1) as usize];
                let body = encode(item)?;
                records.push(Record::Item {
                    from,
                    to,
                    number,
                    body,
                });
            }
            stored.last = last;
            let numbers = (stream.acked, stream.taken);
            if let Some(peer) = stream.peer
                && stored.numbers != Some(numbers)
            {
                stored.numbers = Some(numbers);
                let (acked, taken) = numbers;
                records.push(Record::Stream {
                    zone: from,
                    peer,
                    acked,
                    taken,
                });
            }
        }
        Ok(records)
    }

    /// Returns what to tell the other zones now, once everything so far is durable.
    pub(crate) fn messages(&mut self, now: Duration) -> Vec<(StableKey, Message)> {
        let from = self.me;
        let mut messages = Vec::new();
        for (&to, stream) in &mut self.streams {
            if core::mem::take(&mut stream.flight.must_tell) {
                let (number, last) = (stream.taken, stream.last());
                messages.push((to, Message::Have { from, number, last }));
            }
            messages.extend(stream.next_items(from, now).map(|it| (to, it)));
        }
        messages
    }
}

impl Stream {
    /// Returns the next items to send, or again the first ones if the peer has not answered in time.
    fn next_items(&mut self, from: Place, now: Duration) -> Option<Message> {
        let last = self.last();
        let flight = &mut self.flight;
        let is_late = now.saturating_sub(flight.since) >= flight.retry;
        flight.sent = flight.sent.max(self.acked);
        if is_late && flight.sent > self.acked {
            flight.sent = self.acked;
            flight.retry = LAST_RETRY.min(2 * flight.retry);
        }
        let is_asked = flight.is_asked && is_late;
        let on_the_way = (flight.sent - self.acked) as usize;
        let window = WINDOW.saturating_sub(bytes(self.items.range(..on_the_way)));
        let mut room = window;
        let new = self.items.range(on_the_way..).take_while(|item| {
            let size = size(item);
            let fits = room > 0;
            room = room.saturating_sub(size);
            fits
        });
        let items: Vec<_> = new.cloned().collect();
        if items.is_empty() && !is_asked {
            return None;
        }
        let first = flight.sent + 1;
        flight.sent += items.len() as u64;
        flight.since = now;
        flight.is_asked = false;
        Some(Message::Items(Items {
            from,
            acked: self.acked,
            first,
            last,
            items,
        }))
    }
}

fn bytes<'a>(items: impl IntoIterator<Item = &'a Item>) -> usize {
    items.into_iter().map(size).sum()
}

/// Returns about how many bytes an item has.
fn size(item: &Item) -> usize {
    let content = match item {
        Item::Entity(moved) => moved.stored.len(),
        Item::Letters(batch) | Item::Returned(batch) => {
            let letters = batch.letters.iter();
            letters.map(|letter| letter.payload().len() + 8).sum()
        }
        Item::Delivered { .. } => 0,
    };
    content + 32
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherJournal { known, found } => write!(
                f,
                "zone {} has the journal {:032x} now, and had {:032x}: start it with its old journal, or, if \
                 that is lost, call `Shard::reclaim` with its id",
                found.zone.0, found.journal.0, known.journal.0
            ),
            Self::PeerIsStale { peer } => write!(
                f,
                "the journal {:032x} of zone {} is older than what this zone has from it: it must not run. \
                 If its latest journal is lost, call `Shard::reclaim` with its id",
                peer.journal.0, peer.zone.0
            ),
            Self::Stale { peer } => write!(
                f,
                "the journal of this zone is older than what zone {} has from it: start the zone with its \
                 latest journal",
                peer.zone.0
            ),
        }
    }
}

impl core::error::Error for StreamError {}

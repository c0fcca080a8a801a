//! The letters that an entity has sent.

use std::collections::BTreeMap;

use bevy_due::{message::Packet, worlds::StableKey};
use serde::{Deserialize, Serialize};

use crate::{ids::Life, item::Batch};

/// The number of letters that can wait in an outbox.
pub(crate) const MAX_LETTERS: usize = 1024;
/// The number of bytes that can wait in an outbox. All of them can be one batch, which is one parcel.
pub(crate) const MAX_BYTES: usize = 768 << 10;

/// The letters of an entity that are not delivered yet, by recipient.
///
/// At most one batch is on its way from one entity to another. The next one leaves when it has been delivered.
/// So letters stay in order, however often both entities move, and no number needs to be remembered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outbox {
    recipients: BTreeMap<StableKey, Pending>,
    /// The number of letters that wait, and of their bytes.
    letters: usize,
    bytes: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Pending {
    batch: Flight,
    /// The letters behind the batch that is on its way.
    waiting: Vec<Packet>,
}

/// Where the batch is that is on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Flight {
    /// There is none.
    #[default]
    Landed,
    /// It waits in the zone of the sender.
    Here,
    /// It went to this zone first. If that one is lost, the batch is, too.
    SentTo(StableKey),
}

impl Outbox {
    pub(crate) fn is_empty(&self) -> bool {
        self.recipients.is_empty()
    }

    /// Adds a letter, or hands it back if too much waits.
    pub(crate) fn add(&mut self, to: StableKey, letter: Packet) -> Result<(), Packet> {
        let bytes = self.bytes.saturating_add(letter.payload().len());
        if self.letters >= MAX_LETTERS || bytes > MAX_BYTES {
            return Err(letter);
        }
        self.letters += 1;
        self.bytes = bytes;
        self.recipients.entry(to).or_default().waiting.push(letter);
        Ok(())
    }

    /// Takes the letters to recipients to whom none are on their way.
    pub(crate) fn take_ready(&mut self, from: Life) -> Vec<Batch> {
        if self.letters == 0 {
            return Vec::new();
        }
        let ready = self.recipients.iter_mut();
        let ready = ready.filter(|(_, pending)| pending.batch == Flight::Landed);
        let batches = ready.map(|(&to, pending)| {
            pending.batch = Flight::Here;
            let letters = core::mem::take(&mut pending.waiting);
            Batch { from, to, letters }
        });
        let batches: Vec<_> = batches.collect();
        let letters = batches.iter().flat_map(|batch| &batch.letters);
        for letter in letters {
            self.letters = self.letters.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(letter.payload().len());
        }
        batches
    }

    /// Returns the entities to which letters are on their way.
    pub(crate) fn on_the_way(&self) -> impl Iterator<Item = StableKey> {
        let pending = self.recipients.iter();
        let pending = pending.filter(|(_, pending)| pending.batch != Flight::Landed);
        pending.map(|(&to, _)| to)
    }

    /// Notes to which zone the letters to `to` have gone, if they are not here. Returns `true` if that is new.
    pub(crate) fn sent(&mut self, to: StableKey, zone: Option<StableKey>) -> bool {
        let flight = zone.map_or(Flight::Here, Flight::SentTo);
        let pending = self.recipients.get_mut(&to);
        let pending = pending.filter(|pending| pending.batch != Flight::Landed);
        pending.is_some_and(|it| core::mem::replace(&mut it.batch, flight) != flight)
    }

    /// Notes that letters are no longer on their way. `is_over` gets the recipient and the zone to which they have gone,
    /// if they are not here. Returns `true` if there are such letters.
    pub(crate) fn end(&mut self, is_over: impl Fn(StableKey, Option<StableKey>) -> bool) -> bool {
        let pending = self.recipients.iter();
        let over = pending.filter(|&(&to, pending)| match pending.batch {
            Flight::Landed => false,
            Flight::Here => is_over(to, None),
            Flight::SentTo(zone) => is_over(to, Some(zone)),
        });
        let over: Vec<_> = over.map(|(&to, _)| to).collect();
        over.iter().for_each(|&to| self.arrived(to));
        !over.is_empty()
    }

    /// Notes that no letters to `to` are on their way any more.
    pub(crate) fn arrived(&mut self, to: StableKey) {
        if let Some(pending) = self.recipients.get_mut(&to) {
            pending.batch = Flight::Landed;
            if pending.waiting.is_empty() {
                self.recipients.remove(&to);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Life = Life {
        key: StableKey(1),
        birth: 1,
    };
    const THERE: StableKey = StableKey(2);

    fn letter(id: u32) -> Packet {
        Packet::new(id, [])
    }

    #[test]
    fn the_next_batch_waits_for_the_one_before() {
        let mut outbox = Outbox::default();
        for id in [1, 2] {
            outbox.add(THERE, letter(id)).unwrap();
        }
        let batch = |letters| Batch {
            from: HERE,
            to: THERE,
            letters,
        };
        let first = vec![letter(1), letter(2)];
        assert_eq!(outbox.take_ready(HERE), [batch(first)]);
        outbox.add(THERE, letter(3)).unwrap();
        assert_eq!(outbox.take_ready(HERE), []);
        outbox.arrived(THERE);
        assert_eq!(outbox.take_ready(HERE), [batch(vec![letter(3)])]);
        outbox.arrived(THERE);
        assert!(outbox.is_empty());
        assert_eq!(outbox, Outbox::default());
    }

    #[test]
    fn a_full_outbox_hands_letters_back() {
        let mut outbox = Outbox::default();
        for _ in 0..MAX_LETTERS {
            outbox.add(THERE, letter(1)).unwrap();
        }
        assert_eq!(outbox.add(THERE, letter(2)), Err(letter(2)));
        outbox.take_ready(HERE);
        assert_eq!(outbox.add(THERE, letter(2)), Ok(()));
        let large = Packet::new(3, vec![0; MAX_BYTES + 1]);
        assert!(Outbox::default().add(THERE, large).is_err());
    }
}

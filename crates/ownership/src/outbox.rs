//! The letters that an entity has sent.

use std::collections::BTreeMap;

use bevy_due::{message::Packet, worlds::StableKey};
use serde::{Deserialize, Serialize};

use crate::{
    ids::{Life, random},
    item::Batch,
};

/// The number of letters that can wait in an outbox.
pub(crate) const MAX_LETTERS: usize = 1024;
/// The number of bytes that can wait in an outbox. All of them can be one batch, which is one parcel.
pub(crate) const MAX_BYTES: usize = 768 << 10;

/// The letters of an entity that are not delivered yet, by recipient.
///
/// At most one batch is on its way from one entity to another. The next one leaves when it has been delivered.
/// So letters stay in order, however often both entities move, and the recipient has no number to remember.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outbox {
    recipients: BTreeMap<StableKey, Pending>,
    /// The number of letters that wait, and of their bytes.
    letters: usize,
    bytes: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Pending {
    /// The batch that is on its way.
    batch: Option<u64>,
    /// The letters behind it.
    waiting: Vec<Packet>,
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
        let ready = ready.filter(|(_, pending)| pending.batch.is_none());
        let batches = ready.map(|(&to, pending)| {
            pending.batch = Some(random());
            Batch {
                id: pending.batch,
                from,
                to,
                letters: core::mem::take(&mut pending.waiting),
            }
        });
        let batches: Vec<_> = batches.collect();
        let letters = batches.iter().flat_map(|batch| &batch.letters);
        for letter in letters {
            self.letters = self.letters.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(letter.payload().len());
        }
        batches
    }

    /// Returns the batches that are on their way.
    pub(crate) fn on_the_way(&self) -> impl Iterator<Item = u64> {
        self.recipients.values().filter_map(|pending| pending.batch)
    }

    /// Notes that a batch to `to` is no longer on its way. A batch that was sent after it still is.
    pub(crate) fn arrived(&mut self, to: StableKey, id: Option<u64>) {
        if let Some(pending) = self.recipients.get_mut(&to)
            && pending.batch == id
        {
            pending.batch = None;
            if pending.waiting.is_empty() {
                self.recipients.remove(&to);
            }
        }
    }

    /// Notes that batches are no longer on their way, and returns `true` if there are such ones.
    pub(crate) fn end(&mut self, is_over: impl Fn(u64) -> bool) -> bool {
        let pending = self.recipients.iter();
        let over = pending.filter(|(_, pending)| pending.batch.is_some_and(&is_over));
        let over: Vec<_> = over.map(|(&to, pending)| (to, pending.batch)).collect();
        over.iter().for_each(|&(to, id)| self.arrived(to, id));
        !over.is_empty()
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
        let first = outbox.take_ready(HERE).remove(0);
        assert_eq!(first.letters, [letter(1), letter(2)]);
        outbox.add(THERE, letter(3)).unwrap();
        assert_eq!(outbox.take_ready(HERE), []);
        outbox.arrived(THERE, first.id);
        let second = outbox.take_ready(HERE).remove(0);
        assert_eq!(second.letters, [letter(3)]);
        // The receipt of the first one comes again.
        outbox.arrived(THERE, first.id);
        assert_eq!(outbox.on_the_way().next(), second.id);
        outbox.arrived(THERE, second.id);
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

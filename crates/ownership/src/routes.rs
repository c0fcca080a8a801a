//! Where the entities of other zones are.

use core::time::Duration;
use std::collections::{BTreeSet, HashMap};

use bevy_due::worlds::StableKey;
use serde::{Deserialize, Serialize};

use crate::ids::{Life, Recipient};

/// How long a zone waits for an answer before it asks again. Then it waits twice as long each time.
const ASK_AGAIN: Duration = Duration::from_millis(250);
/// The longest time that it waits.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// The number of entities that a zone remembers.
const MAX_ROUTES: usize = 1 << 16;

/// The zone in which an entity is, or to which it is on its way, and the number of its owner there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Location {
    pub(crate) life: Life,
    pub(crate) zone: StableKey,
    pub(crate) epoch: u64,
}

impl Location {
    /// Returns the way back of something that has come from a zone.
    pub(crate) fn guess(life: Life, zone: StableKey) -> Self {
        let epoch = 0;
        Self { life, zone, epoch }
    }

    /// Returns `true` if no owner has said so.
    pub(crate) fn is_guess(&self) -> bool {
        self.epoch == 0
    }
}

/// Where a zone believes that entities are. It may be wrong: a zone that has given an entity away passes
/// on what still comes for it, and one that knows nothing asks.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    known: HashMap<StableKey, Location>,
    asked: HashMap<Recipient, Asked>,
}

/// When a zone has asked for an entity last, and how long it waits until it asks again.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: Duration,
    wait: Duration,
}

impl Routes {
    /// Returns where a recipient is, if that is known.
    pub(crate) fn locate(&self, to: Recipient) -> Option<Location> {
        let known = self.known.get(&to.key()).copied();
        known.filter(|known| to.is(known.life))
    }

    /// Notes where an entity is, unless a later owner is known. Returns what was believed before, if that has changed.
    pub(crate) fn learn(&mut self, location: Location) -> Option<Location> {
        let life = location.life;
        self.asked.remove(&Recipient::Key(life.key));
        self.asked.remove(&Recipient::Life(life));
        let known = self.known.get(&life.key);
        let is_worse = |it: &Location| {
            let is_same = it.life == life;
            is_same && it.epoch >= location.epoch || !is_same && location.is_guess()
        };
        if known.is_some_and(is_worse) {
            return None;
        }
        if self.known.len() >= MAX_ROUTES {
            self.known.clear();
        }
        self.known.insert(life.key, location)
    }

    /// Forgets where an entity is, because it is here.
    pub(crate) fn forget(&mut self, life: Life) {
        self.known.remove(&life.key);
        self.asked.remove(&Recipient::Key(life.key));
        self.asked.remove(&Recipient::Life(life));
    }

    /// Forgets where an entity is, unless a later owner than this one is known.
    pub(crate) fn forget_up_to(&mut self, life: Life, epoch: u64) {
        let known = self.known.get(&life.key);
        if known.is_some_and(|it| it.life != life || it.epoch <= epoch) {
            self.known.remove(&life.key);
        }
    }

    /// Forgets the entities of a zone, because its journal is lost.
    pub(crate) fn forget_zone(&mut self, zone: StableKey) {
        self.known.retain(|_, location| location.zone != zone);
    }

    /// Returns for which of these recipients to ask now. Forgets the waits of all other recipients.
    pub(crate) fn take_questions(
        &mut self,
        recipients: &BTreeSet<Recipient>,
        now: Duration,
    ) -> Vec<Recipient> {
        self.asked.retain(|asked, _| recipients.contains(asked));
        let mut due = Vec::new();
        for &recipient in recipients {
            let asked = self.asked.get(&recipient).copied();
            let wait = match asked {
                None => ASK_AGAIN,
                Some(Asked { at, wait }) if now.saturating_sub(at) >= wait => {
                    LONGEST_WAIT.min(2 * wait)
                }
                Some(_) => continue,
            };
            self.asked.insert(recipient, Asked { at: now, wait });
            due.push(recipient);
        }
        due
    }

    /// Asks for all entities again at once: another process is there.
    pub(crate) fn ask_again(&mut self) {
        self.asked.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(birth: u64) -> Life {
        let key = StableKey(1);
        Life { key, birth }
    }

    fn location(birth: u64, zone: u64, epoch: u64) -> Location {
        Location {
            life: life(birth),
            zone: StableKey(zone),
            epoch,
        }
    }

    fn zone_of(routes: &Routes, to: Recipient) -> Option<u64> {
        routes.locate(to).map(|location| location.zone.0)
    }

    #[test]
    fn a_question_is_asked_again() {
        let mut routes = Routes::default();
        let recipients = [Recipient::Key(StableKey(1))].into();
        let mut asked = Vec::new();
        for frame in 0..600 {
            let now = Duration::from_millis(10 * frame);
            if !routes.take_questions(&recipients, now).is_empty() {
                asked.push(now.as_millis());
            }
        }
        assert_eq!(asked, [0, 250, 750, 1750, 3750, 5750]);
    }

    #[test]
    fn a_later_owner_wins() {
        let mut routes = Routes::default();
        let key = Recipient::Key(StableKey(1));
        routes.learn(location(7, 3, 2));
        routes.learn(location(7, 2, 1));
        assert_eq!(zone_of(&routes, key), Some(3));
        routes.forget_up_to(life(7), 1);
        assert_eq!(zone_of(&routes, key), Some(3));
        routes.forget_up_to(life(7), 2);
        assert_eq!(zone_of(&routes, key), None);
    }

    #[test]
    fn an_entity_with_the_same_key_is_another_one() {
        let mut routes = Routes::default();
        routes.learn(location(7, 3, 5));
        routes.learn(location(8, 2, 1));
        assert_eq!(zone_of(&routes, Recipient::Key(StableKey(1))), Some(2));
        assert_eq!(zone_of(&routes, Recipient::Life(life(8))), Some(2));
        assert_eq!(zone_of(&routes, Recipient::Life(life(7))), None);
        routes.forget_up_to(life(7), 0);
        assert_eq!(zone_of(&routes, Recipient::Key(StableKey(1))), None);
    }
}

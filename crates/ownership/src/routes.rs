//! Where the entities of other zones are.

use core::time::Duration;
use std::collections::HashMap;

use bevy_due::worlds::StableKey;

/// How long a zone waits for an answer before it asks again.
const ASK_AGAIN: Duration = Duration::from_millis(250);
/// The number of entities that a zone remembers.
const MAX_ROUTES: usize = 1 << 16;

/// Where a zone believes that entities are. It may be wrong: a zone that has given an entity away passes
/// on what still comes for it, and one that knows nothing asks.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    known: HashMap<StableKey, Route>,
    asked: HashMap<StableKey, Duration>,
}

#[derive(Clone, Copy, Debug)]
struct Route {
    zone: StableKey,
    epoch: u64,
}

impl Routes {
    /// Returns the zone of an entity, if it is known.
    pub(crate) fn zone_of(&self, key: StableKey) -> Option<StableKey> {
        self.known.get(&key).map(|route| route.zone)
    }

    /// Returns where an entity is, as a zone tells it to others.
    pub(crate) fn entry(&self, key: StableKey) -> Option<(StableKey, StableKey, u64)> {
        let Route { zone, epoch } = *self.known.get(&key)?;
        Some((key, zone, epoch))
    }

    /// Notes where an entity is, unless a later owner is known.
    pub(crate) fn learn(&mut self, key: StableKey, zone: StableKey, epoch: u64) {
        self.asked.remove(&key);
        if self.known.get(&key).is_some_and(|it| it.epoch >= epoch) {
            return;
        }
        if self.known.len() >= MAX_ROUTES {
            self.known.clear();
        }
        self.known.insert(key, Route { zone, epoch });
    }

    /// Forgets where an entity is, because it is here.
    pub(crate) fn forget(&mut self, key: StableKey) {
        self.known.remove(&key);
        self.asked.remove(&key);
    }

    /// Forgets where an entity is, unless a later owner than this one is known.
    pub(crate) fn forget_up_to(&mut self, key: StableKey, epoch: u64) {
        if self.known.get(&key).is_some_and(|it| it.epoch <= epoch) {
            self.known.remove(&key);
        }
    }

    /// Forgets the entities of a zone, because its journal is lost.
    pub(crate) fn forget_zone(&mut self, zone: StableKey) {
        self.known.retain(|_, route| route.zone != zone);
    }

    /// Returns which of these entities to ask for now.
    pub(crate) fn take_questions(
        &mut self,
        keys: impl IntoIterator<Item = StableKey>,
        now: Duration,
    ) -> Vec<StableKey> {
        let due = |asked: Duration| now.saturating_sub(asked) >= ASK_AGAIN;
        self.asked.retain(|_, asked| !due(*asked));
        let mut new: Vec<_> = keys.into_iter().collect();
        new.retain(|key| !self.asked.contains_key(key));
        self.asked.extend(new.iter().map(|&key| (key, now)));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_asked_again() {
        let mut routes = Routes::default();
        let key = StableKey(1);
        let mut asked = 0;
        for frame in 0..100 {
            let now = Duration::from_millis(10 * frame);
            asked += routes.take_questions([key], now).len();
        }
        assert_eq!(asked, 4, "once in 250 of 1,000 milliseconds");
    }

    #[test]
    fn a_later_owner_wins() {
        let mut routes = Routes::default();
        let (key, [first, second]) = (StableKey(1), [StableKey(2), StableKey(3)]);
        routes.learn(key, second, 2);
        routes.learn(key, first, 1);
        assert_eq!(routes.zone_of(key), Some(second));
        routes.forget_up_to(key, 1);
        assert_eq!(routes.zone_of(key), Some(second));
        routes.forget_up_to(key, 2);
        assert_eq!(routes.zone_of(key), None);
    }
}
